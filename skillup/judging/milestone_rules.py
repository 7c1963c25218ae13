"""`max_calls_after`: whether the agent stopped once its work was done."""

from __future__ import annotations

from collections.abc import Sequence

from skillup.judging.calls import Made, counted, first, hidden, is_meant, made_in, unseen_calls
from skillup.judging.evidence import Evidence
from skillup.judging.file_rules import contains, exist
from skillup.judging.outcome import Outcome
from skillup.judging.text_rules import answers
from skillup.spec.milestones import MaxCallsAfter
from skillup.spec.rules import FileContains, FilesExist, OutputContains, OutputMatches, Rule, ToolCalled


def stopped_after(rule: MaxCallsAfter, evidence: Evidence) -> Outcome:
    """At most `n` calls came after the one, or after the turn, that brought the milestone about.

    Calls are counted within the turns that the rule is about.
    """
    turns = evidence.named_by(rule)
    if isinstance(turns, Outcome):
        return turns
    calls = made_in(turns)
    reached = _reached(rule.rule.rule, calls, [turn.number for turn in turns], evidence)
    if isinstance(reached, Outcome):
        return reached
    if reached is None:
        more = evidence.more_unseen(turns, "not done so far")
        if more:
            return more
        return Outcome("met", "nothing to check: it never came so far that the agent had to stop")
    at, where = reached
    later = calls[at:]
    said = f"{counted(len(later), 'call')} after {where}, at most {rule.n} allowed"
    if len(later) > rule.n:
        return Outcome("not_met", f"{said}; the first too many: {later[rule.n]}", forbidden=True)
    unseen = unseen_calls(evidence)
    if unseen:
        return unseen
    more = evidence.more_unseen(turns, f"{said} so far")
    if more:
        return more
    return Outcome("met", said + (f": {first(later)}" if later else ""))


_Reached = tuple[int, str] | Outcome | None
"""How many calls had been made when it was reached, and how to name that moment; unknown; or never."""


def _reached(milestone: Rule, calls: Sequence[Made], turns: Sequence[int], evidence: Evidence) -> _Reached:
    if isinstance(milestone, ToolCalled):
        hits = [at for at, made in enumerate(calls) if is_meant(milestone, made.call)]
        if len(hits) >= milestone.count.min:
            at = hits[milestone.count.min - 1]
            return at + 1, str(calls[at])
        return hidden(milestone.name, evidence)
    for number in turns:
        found = _holds_after(milestone.model_copy(update={"turn": number}), evidence)
        if found.state == "unknown":
            return found
        if found.state == "met":
            return sum(made.turn <= number for made in calls), f"turn {number}: {found.evidence}"
    return None


def _holds_after(milestone: Rule, evidence: Evidence) -> Outcome:
    """Whether the milestone, told for one turn, holds there."""
    match milestone:
        case FilesExist():
            return exist(milestone, evidence)
        case FileContains():
            return contains(milestone, evidence)
        case OutputContains() | OutputMatches():
            return answers(milestone, evidence)
    raise AssertionError(f"unreachable: {milestone.kind} is no milestone")
