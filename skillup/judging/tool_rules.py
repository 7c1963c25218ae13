"""`tool_called` and `tool_not_called`: which tools the agent used, with which arguments."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from skillup.judging.arguments import difference
from skillup.judging.evidence import Evidence, calls_of
from skillup.judging.outcome import Outcome, either
from skillup.judging.texts import shortened
from skillup.results import TurnRecord
from skillup.spec.rules import ToolCalled, ToolNotCalled
from skillup.transcript import ToolCall

_SHOWN_CALLS = 3
_SHOWN_ARGUMENTS = 4


def called(rule: ToolCalled, evidence: Evidence) -> Outcome:
    """The agent made such a call, as often as the rule says."""
    turns = evidence.named_by(rule)
    if isinstance(turns, Outcome):
        return turns
    if rule.turn == "any":
        return either([_counted(rule, (turn,), evidence) for turn in turns])
    return _counted(rule, turns, evidence)


def not_called(rule: ToolNotCalled, evidence: Evidence) -> Outcome:
    """The agent made no such call."""
    turns = evidence.named_by(rule)
    if isinstance(turns, Outcome):
        return turns
    search = _search(rule, turns)
    if search.hits:
        return Outcome("not_met", f"called: {_first(search.hits)}", forbidden=True)
    unseen = _hidden(rule, evidence)
    if unseen:
        return unseen
    if not evidence.all_complete(turns):
        return Outcome("unknown", "no such call so far, but the turn was cut", "incomplete")
    near = f"; near: {search.misses[0]}" if search.misses else ""
    return Outcome("met", f"no such call; tools called: {_tools_of(turns)}{near}")


def _counted(rule: ToolCalled, turns: Sequence[TurnRecord], evidence: Evidence) -> Outcome:
    search = _search(rule, turns)
    count, least, most = len(search.hits), rule.count.min, rule.count.max
    said = f"{count} such call{'' if count == 1 else 's'}: {_first(search.hits)}" if search.hits else "no such call"
    if most is not None and count > most:
        return Outcome("not_met", f"{_range(rule)} wanted; {said}", forbidden=True)
    if count >= least and most is None:
        return Outcome("met", said)
    unseen = _hidden(rule, evidence)
    if unseen:
        return unseen
    if not evidence.all_complete(turns):
        return Outcome("unknown", f"{said}; but the turn was cut, so more could have come", "incomplete")
    if count >= least:
        return Outcome("met", said)
    wanted = [f"{_range(rule)} wanted"] if (least, most) != (1, None) else []
    near = [f"near miss: {miss}" for miss in search.misses[:_SHOWN_CALLS]]
    looked_at = {turn.number for turn in turns}
    others = [turn for turn in evidence.turns if turn.number not in looked_at]
    near += [f"but in another turn: {hit}" for hit in _search(rule, others).hits[:1]]
    return Outcome("not_met", "; ".join([said, *wanted, *(near or [f"tools called: {_tools_of(turns)}"])]))


def _range(rule: ToolCalled) -> str:
    least, most = rule.count.min, rule.count.max
    if most is None:
        return f"at least {least}"
    return f"exactly {least}" if least == most else f"{least} to {most}"


@dataclass(frozen=True)
class _Matches:
    """Calls that fit the rule, and calls of the same tool that do not, each as shown to the user."""

    hits: tuple[str, ...]
    misses: tuple[str, ...]


def _search(rule: ToolCalled | ToolNotCalled, turns: Iterable[TurnRecord]) -> _Matches:
    hits: list[str] = []
    misses: list[str] = []
    for turn in turns:
        for call in calls_of(turn):
            if not any(_same_tool(name, call) for name in rule.name):
                if any(_same_tool(name, call, ignore_case=True) for name in rule.name):
                    misses.append(f"{_shown(call, turn.number)}: the name differs by the case of letters alone")
                continue
            why = _mismatch(rule, call)
            if why is None:
                hits.append(_shown(call, turn.number))
            else:
                misses.append(f"{_shown(call, turn.number)}: {why}")
    return _Matches(tuple(hits), tuple(misses))


def _same_tool(name: str, call: ToolCall, *, ignore_case: bool = False) -> bool:
    """Whether a rule's name means the tool of a call: canonical, the engine's own, or `server::tool`."""
    server, separator, tool = name.partition("::")
    meant = f"mcp:{server}/{tool}" if separator else name
    if ignore_case:
        return meant.casefold() in (call.tool.casefold(), call.name.casefold())
    return meant in (call.tool, call.name)


def _mismatch(rule: ToolCalled | ToolNotCalled, call: ToolCall) -> str | None:
    """Why a call of the right tool is not the one that the rule asks for; None when it is."""
    differs = difference(rule.args, call.arguments) or difference(rule.raw_args, call.raw_arguments)
    if differs:
        return differs
    if rule.status and call.status != rule.status:
        return f"its status is {call.status}, not {rule.status}"
    return None


def _hidden(rule: ToolCalled | ToolNotCalled, evidence: Evidence) -> Outcome | None:
    hidden = {name.casefold() for name in evidence.record.hidden_tools}
    unseen = [name for name in rule.name if name.casefold() in hidden]
    if not unseen:
        return None
    engine = evidence.record.agent.engine
    return Outcome("unknown", f"{engine} cannot show calls of {', '.join(unseen)}", "unobservable")


def _shown(call: ToolCall, turn: int) -> str:
    arguments = [f"{key}={shortened(str(value), 80)}" for key, value in list(call.arguments.items())[:_SHOWN_ARGUMENTS]]
    more = ["…"] if len(call.arguments) > _SHOWN_ARGUMENTS else []
    by = " by a subagent" if call.parent else ""
    return f"turn {turn}{by}: {call.tool}({', '.join(arguments + more)}) [{call.status}]"


def _first(hits: Sequence[str]) -> str:
    more = f" and {len(hits) - _SHOWN_CALLS} more" if len(hits) > _SHOWN_CALLS else ""
    return "; ".join(hits[:_SHOWN_CALLS]) + more


def _tools_of(turns: Iterable[TurnRecord]) -> str:
    return ", ".join(sorted({call.tool for turn in turns for call in calls_of(turn)})) or "none"
