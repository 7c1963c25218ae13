"""Tool calls as rules see them: which one is meant, what the engine may not have shown, how evidence names them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from skillup.judging.arguments import difference
from skillup.judging.evidence import Evidence, calls_of
from skillup.judging.outcome import Outcome
from skillup.judging.texts import shortened
from skillup.results import TurnRecord
from skillup.spec.rules import CallPattern
from skillup.transcript import ToolCall

SHOWN_CALLS = 3
_SHOWN_ARGUMENTS = 4

_SEEN_OTHERWISE = frozenset({"skill"})
"""An engine without an event for a skill loads it by reading its file, and that call is seen."""


@dataclass(frozen=True)
class Made:
    """One call with the turn that it was made in."""

    call: ToolCall
    turn: int

    def __str__(self) -> str:
        call = self.call
        given = [f"{key}={shortened(str(value), 80)}" for key, value in list(call.arguments.items())[:_SHOWN_ARGUMENTS]]
        more = ["…"] if len(call.arguments) > _SHOWN_ARGUMENTS else []
        by = " by a subagent" if call.parent else ""
        return f"turn {self.turn}{by}: {call.label}({', '.join(given + more)}) [{call.status}]"


def made_in(turns: Iterable[TurnRecord]) -> tuple[Made, ...]:
    """All calls of these turns, in their order, those of subagents included."""
    return tuple(Made(call, turn.number) for turn in turns for call in calls_of(turn))


def same_tool(name: str, call: ToolCall, *, ignore_case: bool = False) -> bool:
    """Whether a rule's name means the tool of a call: canonical, the engine's own, or `server::tool`."""
    server, separator, tool = name.partition("::")
    meant = f"mcp:{server}/{tool}" if separator else name
    if ignore_case:
        return meant.casefold() in (call.tool.casefold(), call.name.casefold())
    return meant in (call.tool, call.name)


def is_one_of(names: Iterable[str], call: ToolCall) -> bool:
    """Whether one of a rule's names means the tool of a call."""
    return any(same_tool(name, call) for name in names)


def mismatch(wanted: CallPattern, call: ToolCall) -> str | None:
    """Why a call of the right tool is not the one that is meant; None when it is."""
    args, whole = wanted.args, wanted.args_match != "part"
    if wanted.args_match == "within":
        args = {key: value for key, value in args.items() if key in call.arguments}
    differs = difference(args, call.arguments, whole=whole) or difference(wanted.raw_args, call.raw_arguments)
    if differs:
        return differs
    if wanted.status and call.status != wanted.status:
        return f"its status is {call.status}, not {wanted.status}"
    return None


def is_meant(wanted: CallPattern, call: ToolCall) -> bool:
    """Whether a call is one that is meant."""
    return is_one_of(wanted.name, call) and mismatch(wanted, call) is None


def near_miss(wanted: CallPattern, made: Made) -> str | None:
    """A call that is nearly the one that is meant, and what is different; None when it is another one, or the one."""
    if is_one_of(wanted.name, made.call):
        why = mismatch(wanted, made.call)
        return f"{made}: {why}" if why else None
    if any(same_tool(name, made.call, ignore_case=True) for name in wanted.name):
        return f"{made}: the name differs by the case of letters alone"
    return None


def hidden(names: Iterable[str], evidence: Evidence) -> Outcome | None:
    """Unknown, when the engine cannot show calls of one of these tools."""
    unseen = {name.casefold() for name in evidence.record.hidden_tools}
    found = [name for name in names if name.casefold() in unseen]
    if not found:
        return None
    return Outcome("unknown", f"{evidence.record.agent.engine} cannot show calls of {', '.join(found)}", "unobservable")


def unseen_calls(evidence: Evidence, allowed: Iterable[str] = ()) -> Outcome | None:
    """Unknown, when there could be calls that the engine does not show, other than of the tools allowed."""
    fine = {name.casefold() for name in allowed} | _SEEN_OTHERWISE
    return hidden(sorted(set(evidence.record.hidden_tools) - fine), evidence)


def first(calls: Sequence[object]) -> str:
    """The first few calls, and how many more."""
    more = f" and {len(calls) - SHOWN_CALLS} more" if len(calls) > SHOWN_CALLS else ""
    return "; ".join(map(str, calls[:SHOWN_CALLS])) + more


def tools_of(turns: Iterable[TurnRecord]) -> str:
    """The tools that were called, each once."""
    return ", ".join(sorted({made.call.label for made in made_in(turns)})) or "none"


def counted(number: int, what: str) -> str:
    """`1 call`, `2 calls`."""
    return f"{number} {what}{'' if number == 1 else 's'}"
