"""The file that a CLI keeps of its session lies within the agent's reach: whatever it puts there, a run goes on."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest

from skillup.engines import ENGINES
from tests.support import Project

CASE = """
    input: {{turns: [{{role: user, content: one}}, {{role: user, content: two}}, {{role: user, content: three}}]}}
    expect: {{must_contain: [answer three]}}
    judge: {{type: rule_based, failure: [{{tool_called: {{name: bash, args: {{command: {{matches: other}}}}}}}}]}}
    script:
      - {{user: one, say: answer one}}
      - {{user: two, replies: [{{calls: [{{tool: bash, args: {{command: '{command}'}}}}]}}, {{say: answer two}}]}}
      - {{user: three, say: answer three}}
"""

BESIDE = 'cd "$CLAUDE_CONFIG_DIR"/projects && mkdir other && {make} other/"$(basename ./*/*.jsonl)" && echo done'


@pytest.mark.claude
@pytest.mark.parametrize(
    ("make", "why"),
    [
        ("mkfifo", "no regular file any more"),
        ("mkdir", os.strerror(errno.EISDIR)),
        ("ln -s /dev/zero", os.strerror(errno.ELOOP)),
        ("truncate -s 300G", "it is larger than 128 MiB"),
    ],
)
def test_what_is_no_session_in_the_place_of_one_is_told_and_nothing_waits_for_it(
    claude: Project, make: str, why: str
) -> None:
    claude.write("a.yaml", CASE.format(command=BESIDE.format(make=make)))
    done = claude.run("a.yaml", "--agent", "claude_code", "--model", "scripted", seconds=60)
    trial = done.trial()
    assert (trial.status, trial.grading.code, trial.session_ids != ()) == ("ERROR", "session", True), done.stdout
    assert trial.error is not None
    assert (trial.error.turn, trial.error.message.endswith(f"cannot be read: {why}")) == (2, True), trial.error.message
    assert trial.turn_results[1].response == "answer two", "what the turn did is kept"
    assert trial.grading.violations_before_error != ()


@pytest.mark.claude
def test_what_an_agent_writes_into_its_codex_thread_is_no_bug_of_ours(claude: Project) -> None:
    """Lines of the right kinds with values of the wrong ones."""
    text = "<skill>\n<name>a</name>\n<path>b</path>\n"
    message = {"type": "message", "role": "user", "id": "x", "content": [{"type": "input_text", "text": text}]}
    kinds = [[1], {"content_item_kinds": 1}, {"content_item_kinds": [None]}, "x"]
    lines = [
        json.dumps(
            {"type": "response_item", "payload": {**message, "internal_chat_message_metadata_passthrough": kind}}
        )
        for kind in kinds
    ]
    claude.write("lines.jsonl", "\n".join([*lines, "[]", "{", '{"payload": 1}', ""]))
    command = f"cat {claude.root}/lines.jsonl >> $(ls $CODEX_HOME/sessions/*/*/*/*.jsonl) && echo done"
    claude.write(
        "a.yaml",
        f"""
        input: {{prompt: go}}
        expect: {{must_contain: [answer]}}
        script: [{{replies: [{{calls: [{{tool: bash, args: {{command: '{command}'}}}}]}}, {{say: answer}}]}}]
        """,
    )
    done = claude.run("a.yaml", "--agent", "codex", "--model", "scripted")
    trial = done.trial()
    assert trial.status == "PASS", done.stdout
    assert trial.turn_results[0].tool_calls == ("bash",)


@pytest.mark.parametrize("engine", ["claude_code", "codex"])
def test_an_id_is_no_pattern(tmp_path: Path, engine: str) -> None:
    """What a CLI prints as its session is a name, whatever its characters."""
    wanted = ENGINES[engine].session_file("***[a-z]")
    assert wanted is not None
    assert list(tmp_path.glob(wanted)) == []
