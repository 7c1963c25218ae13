"""`command`: what was recorded of a command that ran on a copy of the workspace. Nothing is started here."""

from __future__ import annotations

from skillup.judging.evidence import Evidence
from skillup.judging.outcome import Outcome, together
from skillup.judging.texts import Wanted, look, shortened
from skillup.results import CommandRecord
from skillup.spec.command_rule import CommandHolds
from skillup.spec.rules import OutputContains, OutputMatches

_TAIL = 400
"""Characters of the end of an output that evidence quotes: where tools say what went wrong."""


def held(rule: CommandHolds, evidence: Evidence) -> Outcome:
    """The command ended, and printed, as the rule says."""
    turns = evidence.named_by(rule)
    if isinstance(turns, Outcome):
        return turns
    same = (
        one for one in evidence.record.commands if (one.run, one.timeout_seconds) == (rule.run, rule.timeout_seconds)
    )
    done = next(same, None)
    if done is None:
        ending = evidence.record.ending
        if ending.how == "error":
            return Outcome("unknown", f"the command was not run: {ending.reason}", "not_reached")
        return Outcome("unknown", "the trial holds no result of this command: it was run with other rules", "judging")
    if done.problem:
        return Outcome("unknown", done.problem, "judging")
    # A turn that was cut left the workspace half done: what holds there holds, what does not could still have come.
    complete = evidence.complete(turns[-1])
    outcomes = [_ended(rule, done, complete=complete)]
    for wanted in (rule.output, rule.output_matches):
        if wanted is not None:
            outcomes.append(_printed(wanted, done, evidence, complete=complete))
    return together(outcomes)


def _ended(rule: CommandHolds, done: CommandRecord, *, complete: bool) -> Outcome:
    end = (
        f"; its output ends: {shortened(done.output[-_TAIL:], _TAIL)}"
        if done.output.strip()
        else "; it printed nothing"
    )
    if done.timed_out:
        said = f"the command did not end within {done.timeout_seconds:g} s (`timeout_seconds` raises it){end}"
    elif done.exit_code is None:
        said = f"the command was ended by signal {done.signal}{end}"
    elif rule.exit_code == "any" or done.exit_code in rule.exit_code:
        return Outcome("met", f"the command ended with {done.exit_code}{end}")
    else:
        wanted = " or ".join(map(str, rule.exit_code))
        said = f"the command ended with {done.exit_code}, expected {wanted}{end}"
    if not complete:
        return Outcome("unknown", f"{said}; but the turn was cut, so the work was not done", "incomplete")
    return Outcome("not_met", said)


def _printed(
    wanted: OutputContains | OutputMatches, done: CommandRecord, evidence: Evidence, *, complete: bool
) -> Outcome:
    ignore_case = evidence.ignore_case if wanted.ignore_case is None else wanted.ignore_case
    required, any_of, forbidden = wanted.parts
    looked = look(
        Wanted(required, any_of, forbidden, isinstance(wanted, OutputMatches), ignore_case),
        done.output,
        what="the command's output",
        complete=complete,
        masked=True,
    )
    if done.cut and not looked.forbidden and (looked.state == "not_met" or forbidden):
        return Outcome("unknown", f"{looked.evidence}; but the middle of the output was not kept", "unobservable")
    return looked
