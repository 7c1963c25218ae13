"""Codex gets what the case says and nothing of the host, and asks no server but the model."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator

import pytest

from tests.support import Project

CASE = """
    input: {prompt: go}
    context: {files: {AGENTS.md: "CANARY-OF-THE-FIXTURE: be brief"}}
    judge: {type: rule_based, success: [{output_contains: {all: [fine]}}]}
    script: [{say: fine}]
"""


@pytest.fixture
def proxy() -> Iterator[tuple[str, list[bytes]]]:
    """A proxy that serves nobody: its address, and the first line of every request that came."""
    asked: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection:
                    asked.append(connection.recv(4096).partition(b"\r\n")[0])

        threading.Thread(target=serve, daemon=True).start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}", asked


@pytest.mark.parametrize("agent", ["codex", "claude_code"])
def test_the_cli_asks_no_server_but_the_model(claude: Project, proxy: tuple[str, list[bytes]], agent: str) -> None:
    address, asked = proxy
    claude.write("one.yaml", CASE)
    names = ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "all_proxy", "ALL_PROXY")
    done = claude.run("one.yaml", "--agent", agent, "--model", "scripted", env=dict.fromkeys(names, address))
    assert done.code == 0, done.stdout
    assert asked == []


def test_instructions_of_the_fixture_load_and_those_of_the_host_do_not(claude: Project) -> None:
    for place in ("AGENTS.md", "user-home/.codex/AGENTS.md", "user-home/AGENTS.md"):
        claude.write(place, "CANARY-OF-THE-HOST")
    skill = "---\nname: evil\ndescription: CANARY-OF-THE-HOST\n---\n"
    for place in ("user-home/.agents/skills/evil", "user-home/.codex/skills/evil", ".agents/skills/evil"):
        claude.write(f"{place}/SKILL.md", skill)
    claude.write("suite/one.yaml", CASE)
    done = claude.run("suite/one.yaml", "--agent", "codex", "--model", "scripted")
    assert done.code == 0, done.stdout
    asked = json.dumps(done.requests())
    assert "CANARY-OF-THE-FIXTURE" in asked
    assert "CANARY-OF-THE-HOST" not in asked
    assert "skill-creator" not in asked, "a skill that the CLI brings itself"


FIXTURE = """
    input: {turns: [{role: user, content: go}, {role: user, content: look}]}
    context: {repo_fixture: fixture, git: {init: %s}}
    judge: {type: rule_based, success: [{output_contains: {all: [fine]}}]}
    script: [{user: go, say: fine}, {user: look, say: fine}]
"""


@pytest.mark.parametrize("git", ["false", "true"])
def test_skills_of_the_fixture_do_not_load_unless_the_profile_says_so(claude: Project, git: str) -> None:
    for place in (".agents/skills/one", ".agents/skills/deep/er/two", '.codex/skills/thr"ee ñ', "elsewhere/four"):
        text = f"---\nname: {place[-3:]}\ndescription: CANARY-OF-THE-FIXTURE\n---\n"
        claude.write(f"suite/fixture/{place}/SKILL.md", text)
    (claude.root / "suite/fixture/.agents/skills/linked").symlink_to("../../elsewhere/four")
    (claude.root / "suite/fixture/.agents/skills/circle").symlink_to("..")
    claude.write("suite/one.yaml", FIXTURE % git)
    claude.write("agents/open.yaml", "engine: codex\nmodel: scripted\nsettings: {workspace_skills: true}\n")
    done = claude.run("suite/one.yaml", "--agent", "codex", "--agent", "open", "--model", "scripted")
    assert done.code == 0, done.stdout
    assert len(done.requests(agent="codex")) == 2
    assert "CANARY-OF-THE-FIXTURE" not in json.dumps(done.requests(agent="codex"))
    assert json.dumps(done.requests(agent="open")[0]).count("CANARY-OF-THE-FIXTURE") >= 4


def test_a_skill_that_the_agent_makes_is_its_own_business(claude: Project) -> None:
    claude.write(
        "one.yaml",
        """
        input: {turns: [{role: user, content: make}, {role: user, content: look}]}
        judge: {type: rule_based, success: [{output_contains: {all: [fine]}}]}
        script:
          - user: make
            replies:
              - calls:
                  - tool: bash
                    args:
                      command: >-
                        mkdir -p .agents/skills/own;
                        printf -- '---\\nname: own\\ndescription: BY-THE-AGENT\\n---\\n' > .agents/skills/own/SKILL.md
              - say: fine
          - {user: look, say: fine}
        """,
    )
    done = claude.run("one.yaml", "--agent", "codex", "--model", "scripted")
    assert done.code == 0, done.stdout
    later = [request for request in done.requests() if "look" in json.dumps(request["body"]["input"][-1])]
    assert "own: BY-THE-AGENT" in json.dumps(later)


def test_a_skill_of_the_suite_is_told_to_the_model(claude: Project) -> None:
    claude.write("skill/SKILL.md", "---\nname: heron\ndescription: CANARY-OF-THE-SKILL for herons\n---\nSay heron.\n")
    claude.write("skill/evals/one.yaml", CASE)
    claude.write(
        "skill/evals/eval.yaml",
        """
        schema_version: v1alpha1
        skills: [{path: .}]
        cases: {files: [evals/one.yaml]}
        """,
    )
    done = claude.run("skill/evals/eval.yaml", "--agent", "codex", "--model", "scripted")
    assert done.code == 0, done.stdout
    (first,) = done.requests()
    assert "CANARY-OF-THE-SKILL for herons" in json.dumps(first)
