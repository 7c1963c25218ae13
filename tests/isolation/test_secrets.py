"""No secret reaches a file of the run directory or the terminal, however the agent shows it."""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path

import pytest

from skillup.masking import MASK
from skillup.modelserver.scripted import ScriptedSource
from skillup.modelserver.server import ModelServer
from skillup.spec.script import ScriptEntry
from tests.support import Finished, Project

ENGINES = ["builtin", pytest.param("claude_code", marks=pytest.mark.claude)]
ODD_TOKEN = "od\"d\\tok'en\twith ünicode"
SHOWN = [
    pytest.param("builtin", "plain-token-value-4711", id="builtin-plain"),
    pytest.param("builtin", ODD_TOKEN, id="builtin-odd"),
    pytest.param("claude_code", ODD_TOKEN, id="claude_code-odd", marks=pytest.mark.claude),
]
HOST_KEY = "sk-ant-of-the-host-0123456789abcdef"

SHOWS_ALL = """
    input:
      turns:
        - role: user
          content: show the token
          capture: [{variable: token, pattern: '(?s)token is (.+)\\.'}]
        - {role: user, content: "again: {{token}}"}
    judge:
      type: rule_based
      success:
        - output_contains: {all: ["the token is"], turn: 1}
        - file_contains: {path: config.json, content: token}
    script:
      - user: show the token
        replies:
          - think: the token will be shown
            calls:
              - tool: bash
                args:
                  command: |
                    printf '%s' "$MY_TOKEN" > plain; printf '{"token": "%s"}' "$MY_TOKEN" > config.json
                    touch "name-$MY_TOKEN-name"; ln -s "$MY_TOKEN" link; mkdir "$MY_TOKEN"; touch "$MY_TOKEN/inner"
                    python3 -c 'import json, os; print(json.dumps(os.environ["MY_TOKEN"]))' > escaped.json
                    printf '%s' "$MY_TOKEN"; printf '%s' "$MY_TOKEN" >&2
          - calls: [{tool: bash, args: {command: 'printf "%s" "$MY_TOKEN"'}}]
          - calls: [{tool: bash, args: {command: "echo {{result}} > copied || true"}}]
            say: "I will copy {{result}} now"
          - calls: [{tool: bash, args: {command: 'printf "%s" "$MY_TOKEN"'}}]
          - say: "the token is {{result}}."
      - {user: again, say: "you said {{user}}"}
"""


def spelled(token: str) -> set[bytes]:
    """How a token may stand in a file: as it is, and in JSON."""
    inner = json.dumps(token)[1:-1]
    forms = {token, inner, json.dumps(token, ensure_ascii=False)[1:-1], json.dumps(inner)[1:-1]}
    return {form.encode() for form in forms}


def leaks(done: Finished, token: str) -> list[str]:
    """Where in a run directory, in names or contents, a token stands."""
    found = []
    for here, folders, names in os.walk(done.directory):
        for name in (*folders, *names):
            place = Path(here, name)
            content = os.readlink(place).encode() if place.is_symlink() else b""
            content += place.read_bytes() if place.is_file() and not place.is_symlink() else b""
            if any(form in name.encode() + b"\0" + content for form in spelled(token)):
                found.append(str(place.relative_to(done.directory)))
    return found


def pieces_of(stdout: Path) -> str:
    """What a reader of the saved stream gets who puts the streamed pieces together."""
    events = [json.loads(line) for line in stdout.read_text().splitlines() if line.startswith("{")]
    deltas = [event["event"].get("delta", {}) for event in events if event.get("type") == "stream_event"]
    return "".join(delta.get(key, "") for delta in deltas for key in ("thinking", "text", "partial_json"))


@pytest.mark.parametrize(("agent", "token"), SHOWN)
def test_a_token_of_the_profile_is_masked_wherever_the_agent_shows_it(claude: Project, agent: str, token: str) -> None:
    claude.write("agents/with.yaml", f'{{engine: {agent}, model: scripted, env: {{MY_TOKEN: "${{MY_TOKEN}}"}}}}')
    claude.write("show.yaml", SHOWS_ALL)
    host = {"MY_TOKEN": token, "ANTHROPIC_API_KEY": HOST_KEY}
    done = claude.run("show.yaml", "--agent", "with", "--keep", "all", "-vv", env=host)
    assert done.trial().status == "PASS", done.stdout
    assert leaks(done, token) == []
    assert leaks(done, HOST_KEY) == []
    assert not any(form in (done.stdout + done.stderr).encode() for form in spelled(token))
    stdout = done.folder() / "turn-1" / "stdout"
    assert token not in pieces_of(stdout)
    assert MASK in stdout.read_text()
    assert (done.folder() / "workspace" / "plain").read_text() == MASK
    assert (done.folder() / "workspace" / f"name-{MASK}-name").exists()
    assert (done.trial().response or "").startswith(f"you said again: {MASK}")
    assert claude.call("judge", done.directory).code == 0


@pytest.mark.parametrize("agent", ENGINES)
def test_the_key_of_the_host_is_not_passed_to_a_scripted_model(claude: Project, agent: str) -> None:
    claude.write(
        "show.yaml",
        """
        input: {prompt: show}
        judge: {type: rule_based, failure: [{output_contains: {any: [masked, of-the-host]}}]}
        script:
          - user: show
            replies:
              - calls: [{tool: bash, args: {command: 'printf "%s" "$ANTHROPIC_API_KEY" | base64 -w0'}}]
              - say: "{{result}}"
        """,
    )
    claude.write("agents/own.yaml", f"{{engine: {agent}, env: {{ANTHROPIC_API_KEY: null}}}}")
    done = claude.run("show.yaml", "--agent", "own", "--model", "scripted", env={"ANTHROPIC_API_KEY": HOST_KEY})
    assert done.trial().status == "PASS"
    assert HOST_KEY not in base64.b64decode(done.trial().response or "").decode()


def test_the_password_of_a_proxy_is_masked(project: Project) -> None:
    project.write("says.sh", 'echo "$https_proxy p@ss-of-proxy"\n')
    project.write(
        "show.yaml",
        """
        input: {prompt: show}
        judge: {type: script, script_path: says.sh}
        script:
          - user: show
            replies:
              - calls: [{tool: bash, args: {command: 'echo "$https_proxy p@ss-of-proxy"'}}]
              - say: "{{result}}"
        """,
    )
    host = {"https_proxy": "http://me:p%40ss-of-proxy@127.0.0.1:9"}
    done = project.run("show.yaml", "--agent", "demo", "--keep", "all", env=host)
    assert done.trial().response == f"http://{MASK}@127.0.0.1:9 {MASK}", done.stderr
    again = project.call("judge", done.directory, "--ask", "all", env=host)
    assert again.code == 0, again.stderr
    for form in ("p%40ss-of-proxy", "p@ss-of-proxy"):
        assert leaks(done, form) == []
        assert form not in done.stdout + done.stderr + again.stdout + again.stderr


LOGIN = {
    "claudeAiOauth": {
        "accessToken": "sk-ant-oat01-0123456789abcdefghij",
        "refreshToken": "refresh:0123456789/abcdefghij",
        "expiresAt": 4102444800000,
        "scopes": ["user:inference", "user:profile"],
        "subscriptionType": "max",
    }
}

LOOKS = {
    "user": "look",
    "replies": [
        {"calls": [{"tool": "bash", "args": {"command": "stat -c %a ~/.claude/.credentials.json; find ~ -type f"}}]},
        {"calls": [{"tool": "bash", "args": {"command": "cat ~/.claude/.credentials.json | tee copied"}}]},
        {"say": "{{result}}"},
    ],
}

LOOKING_CASE = """
    input: {prompt: look}
    judge: {type: rule_based, success: [{tool_called: {name: bash, count: 2}}]}
"""

NOWHERE = {"https_proxy": "http://127.0.0.1:9", "http_proxy": "http://127.0.0.1:9"}
"""A CLI with a login would like to talk to its provider; only the loopback addresses are reached."""


@pytest.mark.claude
def test_a_copied_login_is_the_credential_file_alone_and_stays_secret(claude: Project) -> None:
    claude.write(str(claude.home / ".claude" / ".credentials.json"), json.dumps(LOGIN)).chmod(0o644)
    claude.write(str(claude.home / ".claude" / "settings.json"), '{"env": {"CANARY": "1"}}')
    claude.write(str(claude.home / ".claude" / "CLAUDE.md"), "canary")
    claude.write("look.yaml", LOOKING_CASE)
    with ModelServer() as server:
        route = server.open_route(ScriptedSource([ScriptEntry.model_validate(LOOKS)]), workspace=Path("/"))
        model = f"{{name: claude-test, base_url: '{route.base_url}'}}"
        claude.write("agents/copied.yaml", f"{{engine: claude_code, model: {model}, login: copy}}")
        done = claude.run("look.yaml", "--agent", "copied", "--keep", "all", env=NOWHERE)
    assert done.trial().status == "PASS", done.stderr
    assert "canary" not in json.dumps([request.body for request in route.requests])
    record = (done.folder() / "record.json").read_text()
    mode, *files = next(
        message["tool_result"]["content"].split("\n")
        for message in json.loads(record)["turns"][0]["messages"]
        if message["tool_result"]
    )
    assert mode == "600"
    of_the_user = {file.rpartition("/")[2] for file in files} & {"settings.json", "CLAUDE.md", ".credentials.json"}
    assert of_the_user == {".credentials.json"}
    for token in ("accessToken", "refreshToken"):
        assert leaks(done, str(LOGIN["claudeAiOauth"][token])) == []
    assert (done.trial().response or "").count(MASK) == 2


@pytest.mark.claude
def test_without_a_login_the_error_says_where_it_was_looked_for(claude: Project) -> None:
    claude.write("agents/copied.yaml", "{engine: claude_code, login: copy}")
    claude.write("look.yaml", LOOKING_CASE)
    done = claude.run("look.yaml", "--agent", "copied")
    error = done.trial().error
    assert error is not None
    assert error.kind == "auth"
    assert error.message == f"`login: copy` found no login: there is no {claude.home}/.claude/.credentials.json"
    assert error.hint == "log in with the CLI first, or pass a key by the profile's `env`"
    assert done.code == 3
