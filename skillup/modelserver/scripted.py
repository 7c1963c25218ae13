"""The script source: replies from a case's `script:`, found by the content of the request alone.

CLIs repeat requests, retry them, fall back to another transport and make requests of their own, so nothing
here counts requests: the user's text selects the entry, the number of assistant messages after it the step.
Only planned faults are counted, per identical request, as "fails twice, then works" means nothing else.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from skillup.modelserver.source import Answer, Conversation, Fault, Msg, RouteView, ToolCall, make_reply
from skillup.modelserver.tools import own_call, raw_call
from skillup.spec.script import TEMPLATE, ScriptEntry, ScriptReply
from skillup.spec.script_parts import ScriptCall, ScriptFault
from skillup.spec.values import compile_pattern

NEUTRAL_REPLY: Final = "(no scripted answer)"
"""What the model says to a request that the script does not foresee."""

_CLI_NOTES: Final = (
    ("<system-reminder>", "</system-reminder>"),  # the date, instructions
    ("<task-notification>", "</task-notification>"),  # a background task has ended
    ("Output token limit hit.", ""),  # after a reply that stopped at its limit
    ("[Your previous response had no visible output.", ""),  # after an empty reply
    ("<skill>\n<name>", "</skill>"),  # a skill that the message names
)
"""How the texts begin and end that CLIs write in the user's name: Claude Code 2.1.197, the last one Codex 0.169.0."""

_SHOWN_CHARACTERS: Final = 80
"""How much of a user text a description of an unmatched request shows: one line of a report."""


class ScriptedSource:
    """Answers requests from one trial's script. Holds no state but how often each planned fault has come."""

    def __init__(self, script: Sequence[ScriptEntry]) -> None:
        self._entries = tuple(_Entry.compiled(number, entry) for number, entry in enumerate(script, start=1))
        self._served: Counter[tuple[str, int]] = Counter()
        self._lock = threading.Lock()

    def answer(self, conversation: Conversation, route: RouteView) -> Answer:
        """The scripted reply or the planned fault; a neutral reply where the script has none."""
        heard = _Heard.of(conversation)
        entry = next((entry for entry in self._entries if entry.matches(heard)), None)
        if entry is None:
            return _neutral(conversation, f"no entry for the user text {_shown(heard.user_text)}")
        steps = entry.spec.steps
        reply = steps[heard.step - 1] if heard.step <= len(steps) else None
        faults = entry.spec.faults + (reply.faults if reply is not None else ())
        fault = self._next_fault(faults, conversation, entry)
        if reply is None:
            missing = f"entry {entry.number} has no reply for step {heard.step}"
            answer = _neutral(conversation, f"{missing}, user text {_shown(heard.user_text)}")
        else:
            answer = _scripted(entry, reply, heard, conversation, route)
        pause = next((item.slow for item in faults if item.slow is not None), 0.0)
        return Answer(answer.reply, fault, pause, entry.number, heard.step, answer.unmatched if fault is None else None)

    def _next_fault(self, faults: Iterable[ScriptFault], conversation: Conversation, entry: _Entry) -> Fault | None:
        """The fault that is due for this request, if any; the request is counted."""
        planned = [fault for fault in faults if fault.kind != "slow"]
        if not planned:
            return None
        key = (conversation.identity, entry.number)
        with self._lock:
            earlier = self._served[key]
            self._served[key] += 1
        for fault in planned:
            if fault.times == "always" or earlier < fault.times:
                return _neutral_fault(fault)
            earlier -= fault.times
        return None


@dataclass(frozen=True, slots=True)
class _Heard:
    """A conversation as a script sees it: the last user message, and what lies before and after it."""

    user_text: str
    before: tuple[str, ...]
    everything: tuple[str, ...]
    step: int
    result: str

    @classmethod
    def of(cls, conversation: Conversation) -> _Heard:
        messages = conversation.messages
        last = next((at for at in reversed(range(len(messages))) if _is_user_turn(messages[at])), -1)
        after = messages[last + 1 :]
        results = next((message.tool_results for message in reversed(after) if message.tool_results), ())
        return cls(
            # What stands before it in the same message was never answered: a command that the CLI took for itself.
            user_text=_said(messages[last])[-1] if last >= 0 else "",
            before=tuple(_spoken(messages[: max(last, 0)])),
            everything=tuple(_spoken(messages)),
            step=1 + sum(message.role == "assistant" for message in after),
            result="\n".join(_valid(result).rstrip("\n") for result in results),  # some CLIs take it off, some do not
        )


def _said(message: Msg) -> tuple[str, ...]:
    """The texts of a message without what the CLI put in of its own."""
    return tuple(_valid(text) for text in message.texts if not _is_cli_note(text))


def _is_cli_note(text: str) -> bool:
    return any(text.startswith(begin) and text.rstrip().endswith(end) for begin, end in _CLI_NOTES)


def _valid(text: str) -> str:
    """The text with lone surrogates, which JSON can carry and RE2 cannot read, replaced by `?`."""
    return text if text.isascii() else text.encode(errors="replace").decode()


def _is_user_turn(message: Msg) -> bool:
    """Whether the message is the user's own; a skill's body or a note beside tool results is not."""
    return message.role == "user" and not message.tool_results and any(_said(message))


def _spoken(messages: Iterable[Msg]) -> Iterator[str]:
    """What user, model and tools said, in order. What a CLI adds is left out: it differs between engines."""
    for message in messages:
        if message.role != "system":
            yield from map(_valid, message.tool_results)
            yield from _said(message)


@dataclass(frozen=True, slots=True)
class _Entry:
    """An entry with its patterns compiled."""

    number: int
    spec: ScriptEntry
    user_pattern: Any
    find: Mapping[str, Any]

    @classmethod
    def compiled(cls, number: int, spec: ScriptEntry) -> _Entry:
        pattern = compile_pattern(spec.user_matches) if spec.user_matches else None
        return cls(number, spec, pattern, {name: compile_pattern(text) for name, text in spec.find.items()})

    def matches(self, heard: _Heard) -> bool:
        if self.spec.user is not None and self.spec.user not in heard.user_text:
            return False
        if self.user_pattern is not None and self.user_pattern.search(heard.user_text) is None:
            return False
        return self.spec.after is None or any(self.spec.after in text for text in heard.before)

    def values(self, heard: _Heard) -> dict[str, str]:
        """The template names of this entry and what they stand for in this conversation."""
        values = {"user": heard.user_text, "result": heard.result}
        if self.user_pattern is not None:
            groups = self.user_pattern.search(heard.user_text).groupdict()
            values |= {name: text or "" for name, text in groups.items()}
        for name, pattern in self.find.items():
            group = "value" if "value" in pattern.groupindex else pattern.groups
            found = (match.group(group) for text in heard.everything for match in pattern.finditer(text))
            values[name] = ", ".join(dict.fromkeys(text for text in found if text))
        return values


def _scripted(entry: _Entry, reply: ScriptReply, heard: _Heard, conversation: Conversation, route: RouteView) -> Answer:
    values = entry.values(heard)
    calls: list[ToolCall] = []
    for call in reply.calls:
        own = _own_call(call, expand(call.args, values), conversation, route)
        if own is None:
            wanted = f"entry {entry.number} step {heard.step} calls {call.tool or call.name}"
            return _neutral(conversation, f"{wanted}, which the request does not offer")
        calls.append(own)
    text, thinking = expand(reply.say or "", values), expand(reply.think or "", values)
    return Answer(make_reply(conversation, text=text, thinking=thinking, calls=tuple(calls), stop=reply.stop))


def _own_call(call: ScriptCall, args: Any, conversation: Conversation, route: RouteView) -> ToolCall | None:
    if call.tool is not None:
        return own_call(call.tool, args, conversation.tools, route.workspace)
    return raw_call(call.name or "", args, conversation.tools)


def expand(value: Any, values: Mapping[str, str]) -> Any:
    """A JSON value with the templates in its texts replaced, in one pass: values are never expanded again."""
    if isinstance(value, str):
        return TEMPLATE.sub(lambda match: f"{{{{{match[2]}}}}}" if match[1] else values[match[3]], value)
    if isinstance(value, Mapping):
        return {key: expand(item, values) for key, item in value.items()}
    if isinstance(value, list):
        return [expand(item, values) for item in value]
    return value


def _neutral(conversation: Conversation, unmatched: str | None) -> Answer:
    return Answer(make_reply(conversation, text=NEUTRAL_REPLY), unmatched=unmatched)


def _neutral_fault(fault: ScriptFault) -> Fault:
    if fault.kind == "slow":
        raise ValueError("`slow` delays a good reply and is no fault of its own")
    return Fault(fault.kind, fault.status or 0, fault.message or "", fault.retry_after)


def _shown(text: str) -> str:
    return repr(text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + "…")
