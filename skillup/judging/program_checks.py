"""What a grader's program said, as a check with a share: pure, from the saved trial. Nothing is started here."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from skillup.judging.evidence import Evidence
from skillup.judging.json_rules import same
from skillup.judging.outcome import Outcome, bounded
from skillup.judging.script_checks import LAST_NO
from skillup.results import Check, PartAssertion, ProgramRecord
from skillup.spec.programs import Program
from skillup.spec.scoring import Leaf, Part


@dataclass(frozen=True)
class _Said:
    """What a program printed: its score, and single assertions where it makes any."""

    outcome: Outcome
    assertions: tuple[PartAssertion, ...] = ()


def program_check(part: Part, leaf: Leaf, program: Program, threshold: float, evidence: Evidence) -> Check:
    """The check of one program: met from its threshold on, and counted by its score."""
    absent = evidence.missing()
    if absent is None and part.turn is not None and evidence.turn(part.turn) is None:
        absent = evidence.absent(part.turn)
    said = _Said(absent) if absent else _read(_record_of(part, leaf, program, evidence), threshold)
    found = said.outcome
    turn = evidence.turn(part.turn) if part.turn is not None else next(reversed(evidence.turns), None)
    if found.state == "not_met" and turn is not None and not evidence.complete(turn):
        found = Outcome("unknown", f"{found.evidence}; but the turn was cut, so the work was not done", "incomplete")
    return Check(
        id=f"judge.scoring.{part.name}.{leaf.name}.program",
        role="graded",
        text=bounded(f"the program says so: {' '.join(program.command)}", 300),
        state=found.state,
        evidence=bounded(found.evidence),
        turn=part.turn,
        cause=found.cause,
        scope="conversation" if part.turn is None else "turn",
        required=False,
        share=found.share,
        assertions=said.assertions if found.state != "unknown" else (),
    )


def _record_of(part: Part, leaf: Leaf, program: Program, evidence: Evidence) -> ProgramRecord | None:
    """What this very program said when it was told this."""
    found = (one for one in evidence.record.programs if one.grader == f"{part.name}.{leaf.name}")
    return next((one for one in found if _is_of(one, program)), None)


def _is_of(one: ProgramRecord, program: Program) -> bool:
    files = {file.path: file.sha256 for file in program.files}
    wanted = (program.command, files, program.cwd, program.criteria, program.expected_output)
    ran = (one.command, one.files, one.cwd, one.criteria, one.expected_output)
    return ran == wanted and same(program.config, one.config)


def _read(done: ProgramRecord | None, threshold: float) -> _Said:
    if done is None:
        return _broken("the trial holds no result of this program: it was run with another, or told something else")
    if done.problem:
        return _broken(done.problem)
    trouble = f": {done.errors.strip()}" if done.errors.strip() else ""
    if done.timed_out:
        return _broken(f"the program did not end within {done.timeout_seconds:g} s{trouble}")
    if done.exit_code is None or done.exit_code > LAST_NO:
        ended = f"signal {done.signal}" if done.exit_code is None else f"exit code {done.exit_code}"
        return _broken(f"the program was ended by {ended}{trouble}")
    text = done.output.strip()
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        # A list is no answer either, but words may begin like one: `[ok] five pages`.
        if text.startswith("{") or (done.cut and text.startswith("[")):
            return _broken("the program printed JSON that is not whole, or more than is kept")
        return _plain(done, text, trouble)
    if not isinstance(data, dict):
        return _broken(f"the program printed {bounded(text, 80)}, and no object with a score")
    if done.exit_code != 0:
        return _broken(f"the program ended with {done.exit_code}{trouble}")
    return _scored(data, threshold)


def _plain(done: ProgramRecord, text: str, trouble: str) -> _Said:
    """Words instead of JSON: the exit code is the answer, unless it ended with a complaint."""
    if done.exit_code == 0:
        return _Said(Outcome("met", text or "the program ended with 0", share=1.0))
    if trouble:
        return _broken(f"the program ended with {done.exit_code}{trouble}")
    return _Said(Outcome("not_met", text or f"the program ended with {done.exit_code}", share=0.0))


def _scored(data: dict[str, Any], threshold: float) -> _Said:
    written = data.get("assertions", [])
    if not isinstance(written, list) or not all(isinstance(one, dict) and "text" in one for one in written):
        return _broken("the program's `assertions` are no list of objects with `text` and `passed`")
    if not all(isinstance(one.get("passed"), bool) for one in written):
        return _broken("`passed` of the program's assertions is true or false")
    score = data.get("score")
    if score is None:
        if not written:
            return _broken("the program gave neither a score nor assertions")
        score = sum(one["passed"] for one in written) / len(written)
    if isinstance(score, bool) or not isinstance(score, (int, float)) or not 0 <= score <= 1:
        return _broken(f"the program's score is {bounded(json.dumps(score), 80)}, and no number from 0 to 1")
    assertions = tuple(
        PartAssertion(
            text=bounded(str(one["text"]), 300),
            passed=one["passed"],
            evidence=bounded(str(one.get("evidence") or "")),
            score=float(one["passed"]),
            state="met" if one["passed"] else "not_met",
        )
        for one in written
    )
    missed = [one.text for one in assertions if not one.passed]
    said = f"the program scored it {score:.4g}" + (f"; not passed: {'; '.join(missed)}" if missed else "")
    return _Said(Outcome("met" if score >= threshold else "not_met", said, share=float(score)), assertions)


def _broken(why: str) -> _Said:
    return _Said(Outcome("unknown", why, "judging"))
