#!/bin/sh
# Installs the pinned agent CLIs into a cache of our own and prints the folder of their commands.
# The folder is named for the lock file, so another pin is another folder; an installed one is used as it is.
# Where it may (root, apt), it installs bubblewrap, podman and runc too; elsewhere the tests of sandboxes and containers
# are skipped, and say so.
set -eu
if ! { command -v bwrap && command -v podman && command -v runc; } >/dev/null && command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
    install() { apt-get install -qq -y --no-install-recommends bubblewrap podman runc iptables; }
    # The lists of a fresh machine are empty, and to fetch them takes longer than bubblewrap itself.
    { install || { apt-get update -qq && install; }; } >/dev/null 2>&1 \
        || echo "bubblewrap and podman could not be installed: tests of sandboxes and containers will be skipped" >&2
fi
export NPM_CONFIG_UPDATE_NOTIFIER=false
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
pin=$(cksum <"$here/package-lock.json" | cut -d' ' -f1)
cache=${SKILLUP_TOOLS_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/skillup/tools}
place=$cache/$pin
bin=$place/node_modules/.bin
if [ ! -e "$place/complete" ]; then
    command -v npm >/dev/null || { echo "npm is missing: the tests drive real agent CLIs; install Node 20 or newer" >&2; exit 1; }
    mkdir -p "$cache"
    partial=$(mktemp -d "$cache/partial.XXXXXX")
    trap 'rm -rf "$partial"' EXIT
    cp "$here/package.json" "$here/package-lock.json" "$partial/"
    # Without install scripts, which newer npm refuses: the one that is needed is called by name.
    (cd "$partial" && npm ci --ignore-scripts --no-fund --no-audit --loglevel=error >&2)
    (cd "$partial/node_modules/@anthropic-ai/claude-code" && node install.cjs >&2)
    for command in claude codex; do
        "$partial/node_modules/.bin/$command" --version >>"$partial/versions"
    done
    mv "$partial/versions" "$partial/complete"
    # Two installations at once: the first one to arrive is kept.
    mv -T "$partial" "$place" 2>/dev/null || [ -e "$place/complete" ]
fi
printf '%s\n' "$bin"
