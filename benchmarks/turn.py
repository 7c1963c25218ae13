"""The wall time that a turn costs besides the CLI: a trivial agent, an empty workspace and one of 10,000 files.

The agent is a shell script that speaks Claude Code's format. A conversation of many turns less one of a single turn,
divided by the turns between, is what a turn costs; the same script called as often by a plain loop is taken off.
"""

from __future__ import annotations

from pathlib import Path

from benchmarks.measure import SKILLUP, measure, plain_variables, spread

TURNS = 100
ROUNDS = 5
MANY_FILES = 10_000

AGENT = """\
#!/bin/sh
[ "$1" = --version ] && { echo 1.0; exit; }
while [ $# -gt 0 ]; do
    case $1 in --session-id | --resume) id=$2 ;; esac
    shift
done
echo '{"type":"system","subtype":"init","session_id":"'"$id"'"}'
echo '{"type":"result","subtype":"success","is_error":false,"result":"ok","session_id":"'"$id"'"}'
"""


def main(folder: Path) -> None:
    """Prints what a turn adds, for both workspaces."""
    agent = folder / "agent.sh"
    agent.write_text(AGENT)
    agent.chmod(0o755)
    (folder / "trivial.yaml").write_text(f"engine: claude_code\nmodel: scripted\nsettings: {{binary: {agent}}}\n")
    fixture = folder / "many"
    for number in range(MANY_FILES):
        place = fixture / f"folder-{number // 100}"
        place.mkdir(parents=True, exist_ok=True)
        (place / f"file-{number}.txt").write_text(f"file number {number}\n" * 20)
    env = plain_variables(folder)
    loop = f"i=0; while [ $i -lt {TURNS} ]; do {agent} --session-id x </dev/null >/dev/null; i=$((i+1)); done"
    for name, extra in (("empty workspace", ""), (f"{MANY_FILES:,} files", "context: {repo_fixture: many}\n")):
        for turns in (1, TURNS + 1):
            lines = "".join("    - {role: user, content: go}\n" for _ in range(turns))
            (folder / f"turns-{turns}.yaml").write_text(
                f"input:\n  turns:\n{lines}{extra}"
                "judge: {type: rule_based, success: [{output_contains: {all: [ok]}}]}\n"
                "script: [{say: unused}]\n"
            )
        added = []
        for number in range(ROUNDS):
            bare = measure(("/bin/sh", "-c", loop), cwd=folder, env=env).wall / TURNS
            walls = []
            for turns in (1, TURNS + 1):
                out = folder / f"{len(extra)}-{number}-{turns}"
                argv = (*SKILLUP, "run", f"turns-{turns}.yaml", "--agent", "trivial.yaml", "--output-dir", str(out))
                walls.append(measure(argv, cwd=folder, env=env).wall)
            added.append((walls[1] - walls[0]) / TURNS - bare)
        print(f"turn: wall time added a turn, {name}: {spread(added, 'ms', 1000, 1)}")
