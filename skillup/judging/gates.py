"""Whether an answer lets the conversation go on."""

from __future__ import annotations

from skillup.judging.texts import Finding, Wanted, look
from skillup.spec.case import Gate


def ask(gate: Gate, answer: str, *, turn: int, ignore_case: bool) -> Finding:
    """Whether the gate holds for a turn's whole answer; `ignore_case` is the case's default."""
    relaxed = ignore_case if gate.ignore_case is None else gate.ignore_case
    what = f"the answer of turn {turn}"
    texts = Wanted(gate.must_contain_all, gate.must_contain_any, gate.must_not_contain, ignore_case=relaxed)
    patterns = Wanted(gate.must_match, (), gate.must_not_match, patterns=True, ignore_case=relaxed)
    findings = [
        look(wanted, answer, what=what)
        for wanted in (texts, patterns)
        if wanted.all_of or wanted.any_of or wanted.none_of
    ]
    failed = [finding for finding in findings if finding.state != "met"]
    return Finding("not_met" if failed else "met", "; ".join(f.evidence for f in failed or findings))
