"""`tool_called` and `tool_not_called`: which tools the agent used, with which arguments."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from skillup.judging.calls import SHOWN_CALLS, Made, first, hidden, is_meant, made_in, near_miss, tools_of
from skillup.judging.evidence import Evidence
from skillup.judging.outcome import Outcome, either
from skillup.results import TurnRecord
from skillup.spec.rules import CallPattern, ToolCalled, ToolNotCalled


def called(rule: ToolCalled, evidence: Evidence) -> Outcome:
    """The agent made such a call, as often as the rule says."""
    turns = evidence.named_by(rule)
    if isinstance(turns, Outcome):
        return turns
    if rule.turn == "any":
        return either([_counted(rule, (turn,), evidence) for turn in turns])
    return _counted(rule, turns, evidence)


def not_called(rule: ToolNotCalled, evidence: Evidence) -> Outcome:
    """The agent made no such call."""
    turns = evidence.named_by(rule)
    if isinstance(turns, Outcome):
        return turns
    search = _search(rule, turns)
    if search.hits:
        return Outcome("not_met", f"called: {first(search.hits)}", forbidden=True)
    unseen = hidden(rule.name, evidence)
    if unseen:
        return unseen
    more = evidence.more_unseen(turns, "no such call so far")
    if more:
        return more
    near = f"; near: {search.misses[0]}" if search.misses else ""
    return Outcome("met", f"no such call; tools called: {tools_of(turns)}{near}")


def _counted(rule: ToolCalled, turns: Sequence[TurnRecord], evidence: Evidence) -> Outcome:
    search = _search(rule, turns)
    count, least, most = len(search.hits), rule.count.min, rule.count.max
    said = f"{count} such call{'' if count == 1 else 's'}: {first(search.hits)}" if search.hits else "no such call"
    if most is not None and count > most:
        return Outcome("not_met", f"{_range(rule)} wanted; {said}", forbidden=True)
    if count >= least and most is None:
        return Outcome("met", said)
    unseen = hidden(rule.name, evidence)
    if unseen:
        return unseen
    more = evidence.more_unseen(turns, said)
    if more:
        return more
    if count >= least:
        return Outcome("met", said)
    wanted = [f"{_range(rule)} wanted"] if (least, most) != (1, None) else []
    near = [f"near miss: {miss}" for miss in search.misses[:SHOWN_CALLS]]
    looked_at = {turn.number for turn in turns}
    others = [turn for turn in evidence.turns if turn.number not in looked_at]
    near += [f"but in another turn: {hit}" for hit in _search(rule, others).hits[:1]]
    return Outcome("not_met", "; ".join([said, *wanted, *(near or [f"tools called: {tools_of(turns)}"])]))


def _range(rule: ToolCalled) -> str:
    least, most = rule.count.min, rule.count.max
    if most is None:
        return f"at least {least}"
    return f"exactly {least}" if least == most else f"{least} to {most}"


@dataclass(frozen=True)
class _Matches:
    """Calls that fit the rule, and, as shown to the user, those that nearly do."""

    hits: tuple[Made, ...]
    misses: tuple[str, ...]


def _search(wanted: CallPattern, turns: Iterable[TurnRecord]) -> _Matches:
    made = made_in(turns)
    misses = (near_miss(wanted, one) for one in made)
    return _Matches(tuple(one for one in made if is_meant(wanted, one.call)), tuple(miss for miss in misses if miss))
