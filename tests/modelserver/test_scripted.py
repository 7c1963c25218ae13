"""The script source: the entry and step that a request gets, what templates stand for, when faults come."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from pydantic import TypeAdapter

from skillup.modelserver.scripted import NEUTRAL_REPLY, ScriptedSource
from skillup.modelserver.source import Answer, Conversation, Fault, Msg, ToolCall, ToolOffer
from skillup.spec.script import Script, ScriptEntry

SCRIPT: TypeAdapter[tuple[ScriptEntry, ...]] = TypeAdapter(Script)
TOOLS = tuple(ToolOffer(name, {}) for name in ("Bash", "Write", "Edit"))


@dataclass(frozen=True)
class Place:
    workspace: Path = Path("/ws")


def source(script: str) -> ScriptedSource:
    return ScriptedSource(SCRIPT.validate_python(yaml.safe_load(script)))


def ask(answers: ScriptedSource, *messages: Msg, stream: bool = True, model: str = "m") -> Answer:
    return answers.answer(Conversation(messages, TOOLS, "system", model, stream), Place())


def user(*texts: str) -> Msg:
    return Msg("user", texts)


def assistant(text: str = "working") -> Msg:
    return Msg("assistant", (text,))


def result(*results: str, note: str = "") -> Msg:
    return Msg("user", (note,) if note else (), (), results)


TWO_STEPS = "[{user: create, replies: [{say: first}, {say: second}]}, {say: else}]"


def test_the_first_entry_whose_text_the_user_said_answers() -> None:
    answers = source("[{user: create a, say: A}, {user: create, say: B}, {say: C}]")
    said = ["please create a table", "create b", "Create b"]
    assert [ask(answers, user(text)).reply.text for text in said] == ["A", "B", "C"]


def test_the_step_is_the_number_of_assistant_messages_since_the_user_spoke() -> None:
    answers = source(TWO_STEPS)
    assert ask(answers, user("create")).reply.text == "first"
    second = ask(answers, user("create"), assistant(), result("ok"))
    assert (second.reply.text, second.entry, second.step) == ("second", 1, 2)


def test_the_same_request_gets_the_same_reply_again() -> None:
    answers = source(TWO_STEPS)
    messages = (user("create"), assistant(), result("ok"))
    assert ask(answers, *messages) == ask(answers, *messages)


def test_a_later_user_message_begins_again_at_the_first_step() -> None:
    answer = ask(source(TWO_STEPS), user("hello"), assistant(), user("create"))
    assert (answer.entry, answer.step) == (1, 1)


def test_texts_beside_tool_results_are_not_a_user_message() -> None:
    """A skill's body and reminders come in the message that holds the tool result."""
    answer = ask(source(TWO_STEPS), user("create"), assistant(), result("Launching", note="Base directory"))
    assert (answer.entry, answer.step) == (1, 2)


def test_what_the_cli_writes_in_the_users_name_is_not_the_user_text() -> None:
    answers = source("[{say: '{{user}}'}]")
    assert ask(answers, user("<system-reminder>\ncreate\n</system-reminder>\n\n", "hi")).reply.text == "hi"


def test_a_message_that_only_begins_like_a_note_of_the_cli_is_the_users() -> None:
    answers = source("[{say: '{{user}}'}]")
    prompt = "<system-reminder>obey</system-reminder> this"
    assert ask(answers, user(prompt)).reply.text == prompt


def test_the_user_text_is_the_last_text_of_its_message() -> None:
    """A command that the CLI answered itself stands before it, with what the CLI said to that."""
    answers = source("[{say: '{{user}}'}]")
    assert ask(answers, user("/command", "<local-command-stdout>x</local-command-stdout>", "hi")).reply.text == "hi"


def test_the_note_that_a_background_task_has_ended_is_not_a_user_message() -> None:
    answers = source("[{user: create, replies: [{say: started}, {say: noticed}]}]")
    note = "<task-notification>\n<status>completed</status>\n</task-notification>"
    assert ask(answers, user("create"), assistant("started"), user(note)).reply.text == "noticed"


def test_a_note_of_the_cli_after_a_cut_reply_goes_on_with_the_next_step() -> None:
    answers = source("[{user: create, replies: [{say: cut, stop: max_tokens}, {say: rest}]}]")
    assert ask(answers, user("create")).reply.stop == "max_tokens"
    assert ask(answers, user("create"), assistant("cut"), user("Output token limit hit. Go on")).reply.text == "rest"


def test_after_looks_at_what_was_said_before_the_user_message_only() -> None:
    answers = source("[{after: T-42, say: known}, {say: new}]")
    assert ask(answers, user("show T-42")).reply.text == "new"
    for earlier in (user("T-42"), assistant("T-42"), result("T-42")):
        assert ask(answers, user("go"), earlier, user("show it")).reply.text == "known"
    assert ask(answers, Msg("system", ("T-42",)), user("show it")).reply.text == "new"


def test_find_collects_every_distinct_match_of_the_conversation() -> None:
    answers = source(
        "[{find: {words: 'S-[a-z]+', ids: 'id=(.)', v: '(x)(?P<value>y)?'}, say: '{{words}}|{{ids}}|{{v}}'}]"
    )
    reply = ask(answers, user("S-one id=1 xy"), assistant("S-two, S-one"), result("S-three"), user("id=2")).reply
    assert reply.text == "S-one, S-two, S-three|1, 2|y"


def test_find_without_a_match_is_empty() -> None:
    assert ask(source("[{find: {words: 'S-[a-z]+'}, say: '<{{words}}>'}]"), user("hi")).reply.text == "<>"


def test_templates_reach_into_arguments_and_are_never_expanded_twice() -> None:
    answers = source(r"""
        - user_matches: 'call (?P<name>\S+)(?P<rest> .*)?'
          replies:
            - think: "{{name}}"
              calls: [{name: Bash, args: {a: ["{{name}}", 1, {b: "{{ rest }}{{!name}}"}]}}]
    """)
    reply = ask(answers, user("call {{user}}")).reply
    assert reply.thinking == "{{user}}"
    assert reply.calls == (ToolCall("Bash", {"a": ["{{user}}", 1, {"b": "{{name}}"}]}),)
    assert reply.stop == "tool_use"


def test_result_is_the_text_of_the_last_tool_results_of_the_turn() -> None:
    answers = source("[{replies: [{say: '<{{result}}>'}, {say: '<{{result}}>'}, {say: '<{{result}}>'}]}]")
    turn = (user("go"), assistant(), result("old"), assistant(), result("a", "b"))
    assert ask(answers, *turn).reply.text == "<a\nb>"
    assert ask(answers, *turn, user("next")).reply.text == "<>"


def test_canonical_calls_become_the_tools_that_the_request_offers() -> None:
    answers = source("[{replies: [{calls: [{tool: write, args: {path: a/b.txt, content: x}}]}]}]")
    call = ToolCall("Write", {"file_path": "/ws/a/b.txt", "content": "x"})
    assert ask(answers, user("go")).reply.calls == (call,)


@pytest.mark.parametrize(
    ("script", "messages", "why"),
    [
        ("[{user: x, say: a}]", (user("other"),), "no entry for the user text 'other'"),
        ("[{say: a}]", (user("go"), assistant()), "entry 1 has no reply for step 2, user text 'go'"),
        (
            "[{replies: [{calls: [{tool: skill, args: {name: x}}]}]}]",
            (user("go"),),
            "entry 1 step 1 calls skill, which the request does not offer",
        ),
        ("[{replies: [{calls: [{name: Nope}]}]}]", (user("go"),), "entry 1 step 1 calls Nope, which"),
        ("[{user: x, say: a}]", (), "no entry for the user text ''"),
    ],
)
def test_what_the_script_does_not_foresee_gets_the_neutral_reply(
    script: str, messages: tuple[Msg, ...], why: str
) -> None:
    answer = ask(source(script), *messages)
    assert answer.reply.text == NEUTRAL_REPLY
    assert answer.unmatched is not None
    assert answer.unmatched.startswith(why)


def test_a_long_user_text_is_cut_in_the_description() -> None:
    unmatched = ask(source("[{user: x, say: a}]"), user("y" * 10_000)).unmatched
    assert unmatched is not None
    assert len(unmatched) < 150


def test_faults_come_first_and_in_order_for_every_request_of_the_entry() -> None:
    answers = source("[{user: go, faults: [{status: 429, times: 2, retry_after: 1}, {drop: true, times: 1}], say: ok}]")
    for messages in ((user("go"),), (user("go again"),)):
        faults = [ask(answers, *messages).fault for _ in range(5)]
        limited = Fault("status", 429, "", 1.0)
        assert faults == [limited, limited, Fault("drop"), None, None]
    assert ask(answers, user("go")).reply.text == "ok"


def test_a_fault_of_a_reply_comes_at_its_step_only() -> None:
    answers = source("[{replies: [{say: a}, {say: b, faults: [{status: 500, times: 1}]}]}]")
    assert ask(answers, user("go")).fault is None
    second = (user("go"), assistant(), result("ok"))
    assert [ask(answers, *second).fault for _ in range(2)] == [Fault("status", 500), None]


def test_a_retry_without_streaming_is_the_same_request() -> None:
    answers = source("[{faults: [{drop: true, times: 1}], say: ok}]")
    assert ask(answers, user("go"), stream=True, model="big").fault == Fault("drop")
    assert ask(answers, user("go"), stream=False, model="small").fault is None


def test_a_fault_that_happens_always_never_ends() -> None:
    answers = source("[{faults: [{stall: true}], say: ok}]")
    assert {ask(answers, user("go")).fault for _ in range(4)} == {Fault("stall")}


def test_slow_delays_good_replies_and_is_never_counted() -> None:
    answers = source("[{faults: [{slow: 0.5}, {status: 529, times: 1}], say: ok}]")
    answers_given = [ask(answers, user("go")) for _ in range(3)]
    assert [answer.fault for answer in answers_given] == [Fault("status", 529), None, None]
    assert {answer.pause for answer in answers_given} == {0.5}


def test_an_entry_that_only_fails_is_not_unmatched() -> None:
    answer = ask(source("[{user: go, faults: [{status: 401, message: who are you}]}]"), user("go"))
    assert (answer.fault, answer.unmatched) == (Fault("status", 401, "who are you"), None)


def test_usage_is_counted_from_characters() -> None:
    reply = ask(source("[{say: '12345'}]"), user("123")).reply
    assert (reply.usage.input_tokens, reply.usage.output_tokens) == (3, 2)  # "system" + "123", "12345"
    assert ask(source("[{say: ''}]"), user("x")).reply.usage.output_tokens == 1


def test_text_that_is_no_valid_unicode_is_matched_all_the_same() -> None:
    reply = ask(source("[{user_matches: 'go', say: '{{user}}'}]"), user("go \ud83d")).reply
    assert reply.text == "go ?"
