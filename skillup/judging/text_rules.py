"""`output_contains`, `output_matches` and `output_equals`: what the agent answered."""

from __future__ import annotations

from dataclasses import replace

from skillup.judging.equality import same_text
from skillup.judging.evidence import Evidence
from skillup.judging.outcome import Outcome, either, together
from skillup.judging.texts import Wanted, look
from skillup.results import TurnRecord
from skillup.spec.content_rules import OutputEquals
from skillup.spec.rules import OutputContains, OutputMatches


def answers(rule: OutputContains | OutputMatches, evidence: Evidence) -> Outcome:
    """The wanted texts stand in one answer that the rule is about, the forbidden ones in none of them."""
    turns = evidence.named_by(rule)
    if isinstance(turns, Outcome):
        return turns
    if rule.turn is None:
        turns = turns[-1:]  # the final answer: the reply of the last turn that took place
    ignore_case = evidence.ignore_case if rule.ignore_case is None else rule.ignore_case
    required, any_of, forbidden = rule.parts
    patterns = isinstance(rule, OutputMatches)
    parts: list[Outcome] = []
    if required or any_of:
        parts.append(_one_holds(Wanted(required, any_of, (), patterns, ignore_case), turns, evidence))
    if forbidden:
        wanted = Wanted((), (), forbidden, patterns, ignore_case)
        parts.append(together([_seen(wanted, turn, evidence) for turn in turns]))
    return together(parts)


def equals(rule: OutputEquals, evidence: Evidence) -> Outcome:
    """An answer that the rule is about is exactly what it says, but for blanks at both ends."""
    turns = evidence.named_by(rule)
    if isinstance(turns, Outcome):
        return turns
    return either(
        [
            same_text(
                rule.expected,
                turn.response or "",
                what=f"the answer of turn {turn.number}",
                complete=evidence.complete(turn),
                trim=True,
            )
            for turn in (turns[-1:] if rule.turn is None else turns)
        ]
    )


def _seen(wanted: Wanted, turn: TurnRecord, evidence: Evidence) -> Outcome:
    what = f"the answer of turn {turn.number}"
    return look(wanted, turn.response or "", what=what, complete=evidence.complete(turn), masked=True)


def _one_holds(wanted: Wanted, turns: tuple[TurnRecord, ...], evidence: Evidence) -> Outcome:
    outcome = either([_seen(wanted, turn, evidence) for turn in turns])
    if outcome.state != "not_met":
        return outcome
    looked_at = {turn.number for turn in turns}
    others = (turn for turn in evidence.turns if turn.number not in looked_at)
    elsewhere = next((turn.number for turn in others if _seen(wanted, turn, evidence).state == "met"), None)
    if elsewhere is None:
        return outcome
    return replace(outcome, evidence=f"only the answer of turn {elsewhere} does it; {outcome.evidence}")
