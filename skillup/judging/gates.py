"""Whether an answer lets the conversation go on."""

from __future__ import annotations

from skillup.judging.outcome import Outcome, bounded
from skillup.judging.texts import Wanted, look
from skillup.spec.case import Gate


def ask(gate: Gate, answer: str, *, turn: int, ignore_case: bool) -> Outcome:
    """Whether the gate holds for a turn's whole answer; `ignore_case` is the case's default."""
    relaxed = ignore_case if gate.ignore_case is None else gate.ignore_case
    what = f"the answer of turn {turn}"
    texts = Wanted(gate.must_contain_all, gate.must_contain_any, gate.must_not_contain, ignore_case=relaxed)
    patterns = Wanted(gate.must_match, (), gate.must_not_match, patterns=True, ignore_case=relaxed)
    asked = [wanted for wanted in (texts, patterns) if wanted.all_of or wanted.any_of or wanted.none_of]
    outcomes = [look(wanted, answer, what=what) for wanted in asked]
    failed = [outcome for outcome in outcomes if outcome.state != "met"]
    evidence = bounded("; ".join(outcome.evidence for outcome in failed or outcomes))
    return Outcome("not_met" if failed else "met", evidence)
