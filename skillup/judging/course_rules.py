"""The course of a conversation: only these tools, not too many calls, no loops, an end in time and not too early."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence

from skillup.judging.calls import Made, counted, first, hidden, is_meant, is_one_of, made_in, unseen_calls
from skillup.judging.evidence import Evidence
from skillup.judging.order_rules import named
from skillup.judging.outcome import Outcome, together
from skillup.results import TurnRecord
from skillup.spec.call_rules import MaxToolCalls, NoPrematureStop, NoRepeatedCalls, NothingToCheck, ToolsOnly
from skillup.spec.rules import Rule
from skillup.transcript import ToolCall

_Judged = Callable[[Sequence[TurnRecord]], Outcome]


def only_these(rule: ToolsOnly, evidence: Evidence) -> Outcome:
    """No tool was called but those that the rule allows; the share is that of the calls that are allowed."""

    def allowed(call: ToolCall) -> bool:
        return is_one_of(rule.names, call) or any(is_meant(step, call) for step in rule.calls)

    def judged(turns: Sequence[TurnRecord]) -> Outcome:
        made = made_in(turns)
        others = [one for one in made if not allowed(one.call)]
        if others:
            listed = ", ".join((*rule.names, *map(named, rule.calls)))
            said = f"{f'only {listed}' if listed else 'no call'} allowed; called: {first(others)}"
            return Outcome("not_met", said, forbidden=True, share=1 - len(others) / len(made))
        return Outcome("met", f"no other call among {counted(len(made), 'call')}" if made else "no call was made")

    return _forbidding(rule, evidence, judged, unseen_calls(evidence, rule.names))


def not_too_many(rule: MaxToolCalls, evidence: Evidence) -> Outcome:
    """No more calls than the rule allows."""

    def judged(turns: Sequence[TurnRecord]) -> Outcome:
        calls = [made for made in made_in(turns) if not rule.name or is_one_of(rule.name, made.call)]
        said = f"{counted(len(calls), 'call')}, at most {rule.max} allowed"
        if len(calls) > rule.max:
            return Outcome("not_met", f"{said}; the first too many: {calls[rule.max]}", forbidden=True)
        return Outcome("met", said)

    unseen = hidden(rule.name, evidence) if rule.name else unseen_calls(evidence)
    return _forbidding(rule, evidence, judged, unseen)


def no_loops(rule: NoRepeatedCalls, evidence: Evidence) -> Outcome:
    """No call came more often than the rule allows with the same arguments."""

    def judged(turns: Sequence[TurnRecord]) -> Outcome:
        calls = [made for made in made_in(turns) if not is_one_of(rule.ignore, made.call)]
        most, made = _longest_run(calls) if rule.consecutive else _most_frequent(calls)
        how = "in a row" if rule.consecutive else "times"
        if made is not None and most > rule.max:
            said = f"the same call {most} {how}, at most {rule.max} allowed: {made}"
            return Outcome("not_met", said, forbidden=True)
        return Outcome("met", f"no call more than {rule.max} {how}, of {counted(len(calls), 'call')}")

    return _forbidding(rule, evidence, judged, unseen_calls(evidence, rule.ignore))


def tried_on(rule: NoPrematureStop, evidence: Evidence) -> Outcome:
    """After the last call that failed there came one that tries to get on."""

    def judged(turns: Sequence[TurnRecord]) -> Outcome:
        calls = made_in(turns)
        failed = max((at for at, made in enumerate(calls) if made.call.status in ("error", "denied")), default=None)
        if failed is None:
            unclear = [made for made in calls if made.call.status == "unknown"]
            if unclear:
                return Outcome("unknown", f"what came of this call is not known: {unclear[0]}", "unobservable")
            return Outcome("met", "nothing to check: no call failed")
        wanted = ", ".join(map(named, rule.must_attempt))
        attempts = [at for at in range(failed + 1, len(calls)) if _attempts(rule, calls[at].call)]
        if not attempts:
            later = first(calls[failed + 1 :]) or "nothing"
            said = f"no attempt ({wanted}) after the last failure, {calls[failed]}; called after it: {later}"
            return Outcome("not_met", said)
        unclear = [made for made in calls[attempts[-1] :] if made.call.status == "unknown"]
        if unclear:
            return Outcome("unknown", f"what came of this call is not known: {unclear[0]}", "unobservable")
        return Outcome("met", f"after the last failure, {calls[failed]}, it tried {calls[attempts[0]]}")

    names = [name for step in rule.must_attempt for name in step.name]
    return _forbidding(rule, evidence, judged, hidden(names, evidence))


def nothing(rule: NothingToCheck, _evidence: Evidence) -> Outcome:
    """An evaluator that has nothing to check in this case finds nothing wrong."""
    return Outcome("met", f"nothing to check: the case gives {rule.evaluator} nothing to look for")


def _forbidding(rule: Rule, evidence: Evidence, judged: _Judged, unseen: Outcome | None) -> Outcome:
    """What holds unless something is seen that should not be: that decides at once; else all must have been seen."""
    turns = evidence.named_by(rule)
    if isinstance(turns, Outcome):
        return turns
    groups = [(turn,) for turn in turns] if rule.turn == "any" else [turns]
    return together([_if_all_was_seen(judged(group), group, evidence, unseen) for group in groups])


def _if_all_was_seen(
    found: Outcome, turns: Sequence[TurnRecord], evidence: Evidence, unseen: Outcome | None
) -> Outcome:
    if found.forbidden:
        return found
    if unseen:
        return unseen
    return evidence.more_unseen(turns, f"{found.evidence} so far") or found


def _attempts(rule: NoPrematureStop, call: ToolCall) -> bool:
    return any(is_meant(step, call) for step in rule.must_attempt)


def _fingerprint(call: ToolCall) -> str:
    """What makes two calls the same: the tool and its arguments, and who made them."""
    return json.dumps([call.tool, call.name, call.arguments or call.raw_arguments, call.parent], sort_keys=True)


def _most_frequent(calls: Sequence[Made]) -> tuple[int, Made | None]:
    prints = [_fingerprint(made.call) for made in calls]
    if not prints:
        return 0, None
    common, count = Counter(prints).most_common(1)[0]
    return count, calls[prints.index(common)]


def _longest_run(calls: Sequence[Made]) -> tuple[int, Made | None]:
    best: tuple[int, Made | None] = (0, None)
    run, before = 0, ""
    for made in calls:
        now = _fingerprint(made.call)
        run, before = (run + 1 if now == before else 1), now
        best = max(best, (run, made), key=lambda pair: pair[0])
    return best
