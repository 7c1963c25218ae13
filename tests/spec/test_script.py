"""What a `script:` may say, and what each mistake in one is answered with."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from pydantic import TypeAdapter, ValidationError

from skillup.spec.script import Script, ScriptEntry

SCRIPT: TypeAdapter[tuple[ScriptEntry, ...]] = TypeAdapter(Script)


def read(text: str) -> tuple[ScriptEntry, ...]:
    return SCRIPT.validate_python(yaml.safe_load(text))


def faults(text: str) -> list[tuple[tuple[str | int, ...], str]]:
    """Place and message of every fault."""
    with pytest.raises(ValidationError) as caught:
        read(text)
    return [((*error["loc"], *error.get("ctx", {}).get("at", ())), error["msg"]) for error in caught.value.errors()]


def test_a_whole_entry_is_read() -> None:
    entry, short = read(r"""
        - user_matches: 'create (?P<what>\w+)'
          after: T-1
          find: {words: 'SECRET-[a-z]+', ids: 'id=(?P<value>\d+) (x)'}
          replies:
            - say: let me look
              think: hm
              calls: [{tool: bash, args: {command: "echo {{what}}"}}, {name: Monitor, args: {seconds: 3}}]
              faults: [{status: 429, times: 2, retry_after: 1, message: slow down}]
            - {say: "{{result}} {{ user }} {{words}} {{ids}} {{!anything}}", stop: max_tokens}
          faults: [{drop: true, times: 1}, {slow: 0.5}]
        - {user: hi, say: hello}
    """)
    assert entry.replies is not None
    assert [call.tool or call.name for call in entry.replies[0].calls] == ["bash", "Monitor"]
    assert [fault.kind for fault in entry.faults] == ["drop", "slow"]
    assert entry.replies[0].faults[0].retry_after == 1.0
    assert [reply.say for reply in short.steps] == ["hello"]


def test_an_entry_that_only_fails_needs_no_reply() -> None:
    (entry,) = read("[{user: x, faults: [{status: 500}]}]")
    assert entry.steps == ()


def test_scripts_are_frozen() -> None:
    (entry,) = read("[{say: hello}]")
    with pytest.raises(ValidationError):
        entry.say = "other"  # type: ignore[misc]  # the point of the test


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("[]", (), "the script has no entry"),
        ("[{user: x}]", (0,), "the entry answers nothing"),
        ("[{user: x, replies: []}]", (0,), "the entry answers nothing"),
        ("[{user: x, faults: [{status: 500, times: 1}]}]", (0,), "the entry answers nothing"),
        ("[{user: x, say: a, replies: [{say: b}]}]", (0, "say"), "`say` and `replies` cannot stand together"),
        ("[{user: x, user_matches: y, say: a}]", (0, "user_matches"), "cannot stand together"),
        ("[{user_matches: '(', say: a}]", (0, "user_matches"), "not a valid RE2 pattern: missing )"),
        ("[{user_matches: '(?=x)', say: a}]", (0, "user_matches"), "not a valid RE2 pattern"),
        ("[{find: {a: '('}, say: a}]", (0, "find", "a"), "not a valid RE2 pattern"),
        ("[{find: {a: '(x)(y)'}, say: a}]", (0, "find", "a"), "the pattern has several groups"),
        ("[{find: {user: x}, say: a}]", (0, "find", "user"), "the name is taken"),
        ("[{find: {a-b: x}, say: a}]", (0, "find", "a-b"), "not a name"),
        ("[{user_matches: '(?P<w>x)', find: {w: x}, say: a}]", (0, "find", "w"), "the name is taken"),
        ("[{user_matches: '(?P<result>x)', say: a}]", (0, "user_matches"), "`result` is taken"),
        ("[{say: '{{ticket}}'}]", (0, "say"), "nothing here is called `ticket`"),
        ("[{say: '{{ticket-id}}'}]", (0, "say"), "nothing here is called `ticket-id`"),
        ("[{replies: [{think: '{{x}}'}]}]", (0, "replies", 0, "think"), "nothing here is called `x`"),
        ("[{replies: [{}]}]", (0, "replies", 0), "the reply is empty"),
        ("[{sya: a}]", (0, "sya"), "Extra inputs are not permitted"),
        ("[{say: 3}]", (0, "say"), "valid string"),
        ("[{replies: [{say: a, stop: tool_use}]}]", (0, "replies", 0, "stop"), "'refusal'"),
    ],
)
def test_a_mistake_in_an_entry_is_named_at_its_place(text: str, place: tuple[Any, ...], message: str) -> None:
    assert any(at == place and message in said for at, said in faults(text)), faults(text)


@pytest.mark.parametrize(
    ("call", "place", "message"),
    [
        ("{args: {command: x}}", (), "a call names its tool once"),
        ("{tool: bash, name: Bash, args: {command: x}}", (), "a call names its tool once"),
        ("{tool: Bash, args: {command: x}}", ("tool",), "`Bash` is not a canonical tool"),
        ("{tool: 'mcp:server', args: {}}", ("tool",), "is not a canonical tool"),
        ("{tool: write, args: {path: a}}", (), "`write` lacks the argument `content`"),
        ("{tool: bash, args: {command: x, cwd: y}}", ("args", "cwd"), "`bash` has no argument `cwd`"),
        ("{tool: bash, args: {command: 3}}", ("args", "command"), "`command` must be text"),
        ("{tool: ask_user, args: {question: x, options: y}}", ("args", "options"), "must be a list of texts"),
        (
            "{name: Any, args: {deep: [{a: '{{no}}'}]}}",
            ("args", "deep", 0, "a"),
            "nothing here is called `no`",
        ),
    ],
)
def test_a_mistake_in_a_call_is_named_at_its_place(call: str, place: tuple[Any, ...], message: str) -> None:
    found = faults(f"[{{replies: [{{calls: [{call}]}}]}}]")
    assert [at for at, _ in found] == [(0, "replies", 0, "calls", 0, *place)]
    assert message in found[0][1]


def test_mcp_arguments_are_not_checked() -> None:
    (entry,) = read("[{replies: [{calls: [{tool: 'mcp:tiny/add', args: {a: 1, b: [true]}}]}]}]")
    assert entry.steps[0].calls[0].args == {"a": 1, "b": [True]}


@pytest.mark.parametrize(
    ("planned", "place", "message"),
    [
        ("{}", (0,), "a fault has exactly one kind, found none"),
        ("{status: 500, drop: true}", (0,), "exactly one kind, found `status` and `drop`"),
        ("{status: 200}", (0, "status"), "greater than or equal to 400"),
        ("{status: '500'}", (0, "status"), "valid integer"),
        ("{drop: false}", (0, "drop"), "must be `true`"),
        ("{drop: 1}", (0, "drop"), "must be `true`"),
        ("{drop: true, times: 0}", (0, "times"), "a whole number from 1, or `always`"),
        ("{drop: true, times: true}", (0, "times"), "a whole number from 1, or `always`"),
        ("{drop: true, message: x}", (0,), "belong to `status`, not to `drop`"),
        ("{slow: 0}", (0, "slow"), "greater than 0"),
        ("{slow: 1, times: 2}", (0, "times"), "`slow` holds for every good reply"),
        ("{slow: 1}, {slow: 2}", (1,), "`slow` is given twice"),
        ("{status: 500}, {drop: true}", (1,), "the fault never comes"),
        ("{status: 500, retry_after: -1}", (0, "retry_after"), "greater than or equal to 0"),
    ],
)
def test_a_mistake_in_a_fault_is_named_at_its_place(planned: str, place: tuple[Any, ...], message: str) -> None:
    found = faults(f"[{{say: a, faults: [{planned}]}}]")
    assert [at for at, _ in found] == [(0, "faults", *place)]
    assert message in found[0][1]


def test_faults_of_a_reply_behind_one_that_always_comes_are_refused() -> None:
    found = faults("[{faults: [{status: 500}], replies: [{say: a, faults: [{drop: true}]}]}]")
    assert found == [((0, "replies", 0, "faults"), "the faults never come: one of the whole entry happens always")]


@pytest.mark.parametrize(
    "entries",
    [
        "{say: a}, {user: x, say: b}",
        "{user: cat, say: a}, {user: a cat, say: b}",
        "{user: x, after: T, say: a}, {user: x, after: T-1, say: b}",
        "{user_matches: x+, say: a}, {user_matches: x+, after: T, say: b}",
    ],
)
def test_an_entry_that_can_never_answer_is_refused(entries: str) -> None:
    ((place, message),) = faults(f"[{entries}]")
    assert place == (1,)
    assert "this entry never answers: entry 1 comes first" in message


@pytest.mark.parametrize(
    "entries",
    [
        "{user: a cat, say: a}, {user: cat, say: b}, {say: c}",
        "{user: x, after: T, say: a}, {user: x, say: b}",
        "{user_matches: x+, say: a}, {user: x, say: b}",
    ],
)
def test_entries_from_special_to_general_are_fine(entries: str) -> None:
    assert len(read(f"[{entries}]")) >= 2
