"""What a judge's script said, as a check: pure, from the saved trial. Nothing is started here."""

from __future__ import annotations

from skillup.judging.evidence import Evidence
from skillup.judging.outcome import Outcome, bounded
from skillup.results import Check, ScriptRecord
from skillup.spec.case import Case
from skillup.spec.script_judge import ScriptFile

LAST_NO = 125
"""The highest exit code of a program's own; by those above, shells say that nothing was run, or what ended it."""


def script_checks(case: Case, evidence: Evidence) -> tuple[Check, ...]:
    """The check of the judge's script; nothing where the judge has none."""
    if case.judge is None or case.judge.script_path is None:
        return ()
    script, seconds = case.judge.script_path, case.judge.script_seconds
    record = _record_of(script, seconds, evidence)
    found = _outcome(record, evidence)
    check = Check(
        id="judge.script",
        role="script",
        text=f"the script {script.path} says yes",
        state=found.state,
        evidence=bounded(found.evidence),
        cause=found.cause,
        scope="conversation",
        reasoning=record.output.strip() or None if record else None,
    )
    return (check,)


def _record_of(script: ScriptFile, seconds: float, evidence: Evidence) -> ScriptRecord | None:
    wanted = (script.path, script.sha256, seconds)
    return next((one for one in evidence.record.scripts if (one.path, one.sha256, one.timeout_seconds) == wanted), None)


def _outcome(done: ScriptRecord | None, evidence: Evidence) -> Outcome:
    """Exit code 0 is yes, 1 to 125 are no; a script that said neither has judged nothing."""
    missing = evidence.missing()
    if missing is not None:
        return missing
    if done is None:
        return Outcome("unknown", "the trial holds no result of this script: it was run with another", "judging")
    if done.problem:
        return Outcome("unknown", done.problem, "judging")
    said = _said(done)
    if done.timed_out:
        limit = f"the script did not end within {done.timeout_seconds:g} s (`timeout_seconds` raises it)"
        return Outcome("unknown", f"{limit}{said}", "judging")
    if done.exit_code is None:
        return Outcome("unknown", f"the script was ended by signal {done.signal}{said}", "judging")
    if done.exit_code > LAST_NO:
        return Outcome("unknown", f"the script ended with {done.exit_code}, which is no answer{said}", "judging")
    verdict = f"the script ended with {done.exit_code}{said}"
    if done.exit_code == 0:
        return Outcome("met", verdict)
    # A turn that was cut left the work half done: what was missing could still have come.
    if evidence.turns and not evidence.complete(evidence.turns[-1]):
        return Outcome("unknown", f"{verdict}; but the turn was cut, so the work was not done", "incomplete")
    return Outcome("not_met", verdict)


def _said(done: ScriptRecord) -> str:
    texts = [text for text in (done.output.strip(), done.errors.strip()) if text]
    return f": {' · '.join(texts)}" if texts else "; it said nothing"
