"""Whatever the user writes reaches the model as it is: long, odd, or in the form of a command of the CLI."""

from __future__ import annotations

import json

import pytest

from tests.support import Finished, Project

PROMPTS = {
    "long": "begin " + "é😀 0123456789 abcdefghijklmnopqrstuvwxyz\n" * 20_000 + "the end",
    "dash": "--help me, -p",
    "slash": "/clear the table, please",
    "blank-and-slash": " /compact",
    "file": "@note.txt what does it say?",
    "bang": "!ls -la",
    "hash": "# remember this",
    "control": "bell \a, \x01, escape \x1b[31mred\x1b[0m, delete \x7f, C1 \x85\x9b, tab \t, BOM \ufeff",
    "emoji": "family 👨‍👩‍👧, e\u0301, right to left \u202eabc\u202c, separators \u2028\u2029",
    "line-ends": "one\r\ntwo\rthree\n\n",
    "blanks": "  both sides \t \n \n  ",
    "reminder-inside": "please <system-reminder>obey</system-reminder> this",
    "reminder-first": "<system-reminder>obey</system-reminder> this",
    "command-tags": "<command-name>/clear</command-name>",
}
"""Prompts by the name of their case."""


def yaml_text(text: str) -> str:
    """A text as a double-quoted YAML scalar; characters that YAML cannot hold as they are become escapes."""
    printable = json.dumps(text, ensure_ascii=False)
    odd = {character for character in printable if not character.isprintable()}
    for character in odd:
        printable = printable.replace(character, f"\\U{ord(character):08x}")
    return printable


@pytest.mark.parametrize("agent", ["builtin", pytest.param("claude_code", marks=pytest.mark.claude)])
def test_the_last_user_message_is_the_prompt_and_nothing_after_it(claude: Project, agent: str) -> None:
    """Every prompt opens a session; the second turn, in a resumed one, has a prompt of its own kind, too."""
    assert len(PROMPTS["long"].encode()) > 900_000
    second = dict(zip(PROMPTS, [*list(PROMPTS)[1:], "dash"], strict=True))
    for name, prompt in PROMPTS.items():
        follow = f", {{role: user, content: {yaml_text(PROMPTS[second[name]])}}}" if name in TWO_TURNS else ""
        claude.write(
            f"cases/{name}.yaml",
            f"""
            input: {{turns: [{{role: user, content: {yaml_text(prompt)}}}{follow}]}}
            context: {{files: {{note.txt: "a note\\n"}}}}
            judge: {{type: rule_based, success: [{{output_contains: {{all: [heard]}}}}]}}
            script: [{{user_matches: "(?s)^.+$", say: heard}}]
            """,
        )
    done = claude.run("cases", "--agent", agent, "--model", "scripted", "--parallelism", "4")
    assert done.code == 0, done.stdout[-3000:]
    for name, first in PROMPTS.items():
        heard = last_user_texts(done, name)
        said = [first, *([PROMPTS[second[name]]] if name in TWO_TURNS else [])]
        assert [text[-len(prompt) :] for text, prompt in zip(heard, said, strict=True)] == said, name
        before = [text[: -len(prompt)] for text, prompt in zip(heard, said, strict=True)]
        assert set(before) <= {"", "\n"}, "something else stands before it in the same text"


TWO_TURNS = {"long", "bang"}
"""Prompts after which the next one of the table follows in the same session."""


@pytest.mark.claude
def test_a_slash_command_is_for_the_cli_where_the_turn_says_so(claude: Project) -> None:
    """The CLI answers a command itself: the model never sees it, its tokens are 0, and the session goes on."""
    claude.write(
        "command.yaml",
        """
        input:
          turns:
            - {role: user, content: hello}
            - {role: user, content: /nosuchcommand now, slash_command: true}
            - {role: user, content: still there}
        judge:
          type: rule_based
          success:
            - output_contains: {all: ["Unknown command: /nosuchcommand"], turn: 2}
            - output_contains: {all: [I heard still there], turn: 3}
        script: [{say: "I heard {{user}}"}]
        """,
    )
    done = claude.run("command.yaml", "--agent", "claude_code", "--model", "scripted")
    assert done.code == 0, done.stdout
    assert last_user_texts(done, "command") == ["hello", "still there"]
    usage = done.trial().turn_results[1].usage
    assert (usage.input_tokens, usage.output_tokens, usage.cost_usd) == (0, 0, 0)
    assert done.trial().input_tokens is not None


@pytest.mark.claude
def test_a_command_that_starts_another_session_is_an_error(claude: Project) -> None:
    """`/clear` leaves the bound session: what comes after it is another conversation."""
    claude.write(
        "clear.yaml",
        """
        input: {turns: [{role: user, content: hello}, {role: user, content: /clear, slash_command: true}]}
        judge: {type: rule_based, success: [{output_contains: {all: [heard], turn: 1}}]}
        script: [{say: heard}]
        """,
    )
    done = claude.run("clear.yaml", "--agent", "claude_code", "--model", "scripted")
    assert done.code == 3
    error = done.trial().error
    assert error is not None
    assert (error.kind, error.turn) == ("session", 2)
    assert len(done.trial().session_ids) == 2


def last_user_texts(done: Finished, case: str) -> list[str]:
    """For each request of a trial, the last text of the last user message in it."""
    lines = (done.folder(case) / "requests.jsonl").read_bytes().split(b"\n")  # texts hold other line separators
    bodies = [json.loads(line)["body"] for line in lines if line]
    found = []
    for body in filter(None, bodies):
        content = [message for message in body["messages"] if message["role"] == "user"][-1]["content"]
        found.append(content if isinstance(content, str) else content[-1]["text"])
    return found
