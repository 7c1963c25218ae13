"""`asked_user`: whether the agent asked instead of guessing."""

from __future__ import annotations

import re
from collections.abc import Iterator

from skillup.judging.calls import Made, made_in
from skillup.judging.evidence import Evidence
from skillup.judging.outcome import Outcome, either
from skillup.judging.texts import quoted, shortened
from skillup.results import TurnRecord
from skillup.spec.call_rules import AskedUser
from skillup.spec.values import compile_pattern

_CODE = re.compile(r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)|`[^`\n]*`|\bhttps?://[^\s)>\]]+", re.DOTALL)
"""Code and addresses: a question mark there asks nobody anything."""

_END = re.compile(r"[?？؟]+(?=[\s\"'”’)\]*_]|\Z|[^\x00-\x7f])|[.!](?=\s)|[。！\n]")
"""The end of a sentence; a question mark is one where a blank, a closing sign or the end follows: not in `a?b:c`."""

_MARKS = "?？؟"


def asked(rule: AskedUser, evidence: Evidence) -> Outcome:
    """The agent asked a question in a turn that the rule is about."""
    turns = evidence.named_by(rule)
    if isinstance(turns, Outcome):
        return turns
    return either([_asked_in(rule, turn, evidence) for turn in turns])


def _asked_in(rule: AskedUser, turn: TurnRecord, evidence: Evidence) -> Outcome:
    questions = list(_questions(rule, turn))
    pattern = compile_pattern(rule.matches) if rule.matches else None
    meant = [question for _, question in questions if pattern is None or pattern.search(question)]
    if meant:
        return Outcome("met", f"turn {turn.number} asked {shortened(meant[0])}")
    if rule.by != "answer" and "ask_user" in evidence.record.hidden_tools:
        engine = evidence.record.agent.engine
        return Outcome("unknown", f"{engine} cannot show calls of ask_user", "unobservable")
    said = f"turn {turn.number} asked nothing"
    if questions:
        wanted = quoted(rule.matches or "")
        said = f"turn {turn.number} asked only {shortened(questions[0][1])}, which does not match {wanted}"
    elif other := next(iter(_questions(rule.model_copy(update={"by": "any"}), turn)), None):
        said = f"turn {turn.number} asked by {other[0]} alone: {shortened(other[1])}"
    if rule.by != "answer":
        return evidence.more_unseen((turn,), f"{said} so far") or Outcome("not_met", said)
    if not evidence.complete(turn):
        return Outcome("unknown", f"{said} so far; but the turn was cut", "incomplete")
    return Outcome("not_met", said)


def _questions(rule: AskedUser, turn: TurnRecord) -> Iterator[tuple[str, str]]:
    """Each question as (how it was asked, its words)."""
    if rule.by != "answer":
        yield from (("its tool", _words(made)) for made in made_in([turn]) if made.call.tool == "ask_user")
    if rule.by != "tool":
        text, start = _CODE.sub(" ", turn.response or ""), 0
        for end in _END.finditer(text):
            sentence, start = text[start : end.end()].strip(), end.end()
            if sentence and sentence[-1] in _MARKS and sentence.strip(_MARKS + " "):
                yield "its answer", sentence


def _words(made: Made) -> str:
    """All that a call of the asking tool says."""
    return " ".join(_texts(made.call.arguments or made.call.raw_arguments)) or made.call.name


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, (list, tuple)):
        for inner in value:
            yield from _texts(inner)
