"""`tool_order`: the calls that were expected, in this order, in any, or exactly these.

Subsequence matching is the default: calls between the expected ones are the agent's business.
"""

from __future__ import annotations

from collections.abc import Sequence

from skillup.judging.calls import Made, counted, first, hidden, is_meant, made_in, near_miss, unseen_calls
from skillup.judging.evidence import Evidence
from skillup.judging.outcome import Outcome, either
from skillup.results import TurnRecord
from skillup.spec.call_rules import Step, ToolOrder


def in_order(rule: ToolOrder, evidence: Evidence) -> Outcome:
    """The expected calls were made, in the way that the rule's mode asks for."""
    turns = evidence.named_by(rule)
    if isinstance(turns, Outcome):
        return turns
    groups = [(turn,) for turn in turns] if rule.turn == "any" else [turns]
    judged = _exactly if rule.mode == "exact" else _found
    return either([judged(rule, group, evidence) for group in groups])


def _found(rule: ToolOrder, turns: Sequence[TurnRecord], evidence: Evidence) -> Outcome:
    """All expected calls are there: one after the other, or, in any order, each as a call of its own."""
    calls = made_in(turns)
    places = _in_sequence(rule.order, calls) if rule.mode == "in_order" else _assigned(rule.order, calls)
    wanted = [named(step) for step in rule.order]
    done = len([place for place in places if place is not None])
    if done == len(rule.order):
        return Outcome("met", f"called {', '.join(wanted)}: {first([calls[at] for at in places if at is not None])}")
    lacking = [step for step, place in zip(rule.order, places, strict=True) if place is None]
    unseen = hidden([name for step in lacking for name in step.name], evidence)
    if unseen:
        return unseen
    how = "in this order" if rule.mode == "in_order" else "at all"
    said = f"{done} of {counted(len(wanted), 'call')} {'was' if done == 1 else 'were'} made {how}: "
    after = f" after {wanted[done - 1]}" if done and rule.mode == "in_order" else ""
    said += f"no {named(lacking[0])}{after}"
    more = evidence.more_unseen(turns, f"{said} so far")
    if more:
        return more
    said += _near_miss(lacking[0], calls, places) + f"; calls: {_names(calls)}"
    most = _most_in_order(rule.order, calls) if rule.mode == "in_order" else done
    return Outcome("not_met", said, share=most / len(wanted))


def _exactly(rule: ToolOrder, turns: Sequence[TurnRecord], evidence: Evidence) -> Outcome:
    """These calls and no others; the share is that of the places at which call and expectation agree."""
    calls, wanted = made_in(turns), rule.order
    agreeing = sum(is_meant(step, made.call) for step, made in zip(wanted, calls, strict=False))
    share = agreeing / max(len(wanted), len(calls))
    for number, (step, made) in enumerate(zip(wanted, calls, strict=False), start=1):
        if not is_meant(step, made.call):
            near = near_miss(step, made)
            said = f"call {number} had to be {named(step)}, but it was {near or made}"
            return Outcome("not_met", f"{said}; calls: {_names(calls)}", forbidden=True, share=share)
    if len(calls) > len(wanted):
        more = first(calls[len(wanted) :])
        said = f"{counted(len(wanted), 'call')} expected, then there came {more}"
        return Outcome("not_met", said, forbidden=True, share=share)
    unseen = unseen_calls(evidence)
    if unseen:
        return unseen
    said = f"{len(calls)} of {counted(len(wanted), 'expected call')} made: {_names(calls)}"
    cut = evidence.more_unseen(turns, said)
    if cut:
        return cut
    if len(calls) == len(wanted):
        return Outcome("met", f"exactly these calls: {_names(calls)}")
    return Outcome("not_met", f"{said}; no {named(wanted[len(calls)])}", share=share)


def _in_sequence(steps: Sequence[Step], calls: Sequence[Made]) -> list[int | None]:
    """Where each step was made after the one before it; None from the first one on that was not."""
    places: list[int | None] = []
    at = 0
    for step in steps:
        found = next((place for place in range(at, len(calls)) if is_meant(step, calls[place].call)), None)
        if found is None:
            return places + [None] * (len(steps) - len(places))
        places.append(found)
        at = found + 1
    return places


def _most_in_order(steps: Sequence[Step], calls: Sequence[Made]) -> int:
    """The greatest number of steps that were made one after the other, whichever are left out."""
    most = [0] * (len(calls) + 1)
    for step in steps:
        before = list(most)
        for place, made in enumerate(calls):
            longer = before[place] + 1 if is_meant(step, made.call) else 0
            most[place + 1] = max(before[place + 1], most[place], longer)
    return most[-1]


def _assigned(steps: Sequence[Step], calls: Sequence[Made]) -> list[int | None]:
    """A call of its own for as many steps as possible, whatever the order."""
    good = [[place for place, made in enumerate(calls) if is_meant(step, made.call)] for step in steps]
    owner: dict[int, int] = {}

    def give(step: int, tried: set[int]) -> bool:
        for place in good[step]:
            if place not in tried:
                tried.add(place)
                if place not in owner or give(owner[place], tried):
                    owner[place] = step
                    return True
        return False

    for step in range(len(steps)):
        give(step, set())
    places = {step: place for place, step in owner.items()}
    return [places.get(step) for step in range(len(steps))]


def _near_miss(step: Step, calls: Sequence[Made], places: Sequence[int | None]) -> str:
    """A call of the missing kind that came too early, or one that is nearly it."""
    taken = [place for place in places if place is not None]
    early = next((made for at, made in enumerate(calls) if at not in taken and is_meant(step, made.call)), None)
    if early is not None:
        return f" (but before: {early})"
    near = next((miss for made in calls if (miss := near_miss(step, made))), None)
    return f" (near miss: {near})" if near else ""


def named(step: Step) -> str:
    """A step in a word or two: `read`, `write or edit`."""
    return " or ".join(step.name) + (" with its arguments" if step.args or step.raw_args else "")


def _names(calls: Sequence[Made]) -> str:
    shown = [made.call.label for made in calls[:20]]
    more = f" and {len(calls) - 20} more" if len(calls) > 20 else ""
    return (", ".join(shown) + more) or "none"
