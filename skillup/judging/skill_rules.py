"""`skill_used`: whether the agent used an installed skill, told by a call that shows it and never guessed.

A use is the CLI's own skill call, the skill's text put into the conversation (some CLIs do that, and their session file
says so), or a call that read the installed SKILL.md: `read` with its path, or a command that names it, ended well and
printed more than its name. A command that names it by another path may have read it, so absence is unknown then.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from skillup.judging.evidence import Evidence
from skillup.judging.outcome import Outcome, either
from skillup.judging.texts import shortened
from skillup.results import TurnRecord
from skillup.spec.skill_rules import SkillUsed
from skillup.transcript import ToolCall

_WAYS = frozenset({"skill", "read", "bash"})
"""The tools whose calls show a use; an engine that hides all of them cannot show any."""

_SHOWN = 3


@dataclass(frozen=True)
class _Seen:
    """Uses of the skill, and calls of which nobody can tell whether they are one; each as shown to the user."""

    uses: tuple[str, ...]
    doubts: tuple[str, ...]


def used(rule: SkillUsed, evidence: Evidence) -> Outcome:
    """The skill was used as often as the rule says, or, with `used: false`, never."""
    turns = evidence.named_by(rule)
    if isinstance(turns, Outcome):
        return turns
    if not rule.used:
        return _never(rule, turns, evidence)
    if rule.turn == "any":
        return either([_counted(rule, (turn,), evidence) for turn in turns])
    return _counted(rule, turns, evidence)


def _never(rule: SkillUsed, turns: Sequence[TurnRecord], evidence: Evidence) -> Outcome:
    seen = _search(rule.name, turns, evidence)
    if seen.uses:
        return Outcome("not_met", f"used: {_first(seen.uses)}", forbidden=True)
    return _unseen(rule, turns, seen, evidence) or Outcome("met", f"not used: {_looked_for(rule.name, evidence)}")


def _counted(rule: SkillUsed, turns: Sequence[TurnRecord], evidence: Evidence) -> Outcome:
    seen = _search(rule.name, turns, evidence)
    count, least, most = len(seen.uses), rule.count.min, rule.count.max
    said = f"{count} use{'' if count == 1 else 's'}: {_first(seen.uses)}" if seen.uses else "not used"
    if most is not None and count > most:
        return Outcome("not_met", f"at most {most} wanted; {said}", forbidden=True)
    if count >= least and most is None:
        return Outcome("met", said)
    unseen = _unseen(rule, turns, seen, evidence)
    if unseen:
        return unseen
    if count >= least:
        return Outcome("met", said)
    wanted = f"at least {least} wanted; " if least > 1 else ""
    others = [turn for turn in evidence.turns if turn.number not in {looked.number for looked in turns}]
    elsewhere = _search(rule.name, others, evidence).uses
    near = f"but in another turn: {elsewhere[0]}" if elsewhere else _looked_for(rule.name, evidence)
    return Outcome("not_met", f"{wanted}{said}; {near}")


def _unseen(rule: SkillUsed, turns: Sequence[TurnRecord], seen: _Seen, evidence: Evidence) -> Outcome | None:
    """Why a use may have taken place that was not seen."""
    record = evidence.record
    if set(record.hidden_tools) >= _WAYS:
        return Outcome("unknown", f"{record.agent.engine} cannot show the use of skills", "unobservable")
    if rule.name in record.skills and rule.name not in record.skill_files:
        return Outcome("unknown", f"the record does not say where the skill {rule.name} was", "unobservable")
    if seen.doubts:
        return Outcome("unknown", f"it cannot be told whether this is a use: {_first(seen.doubts)}", "unobservable")
    return evidence.more_unseen(turns, "no such use so far")


def _search(name: str, turns: Sequence[TurnRecord], evidence: Evidence) -> _Seen:
    uses: list[str] = []
    doubts: list[str] = []
    path = evidence.record.skill_files.get(name)
    for turn in turns:
        if re.match(rf"/{re.escape(name)}(?:\s|\Z)", turn.content):
            doubts.append(f"turn {turn.number}: the message begins with /{name}, which runs the skill on some CLIs")
        for call, output in _answered(turn):
            basis = _basis(name, path, call, output)
            shown = f"turn {turn.number}: {call.tool}({shortened(_argument(call), 80)})"
            if basis:
                uses.append(f"{shown}, basis: {basis}")
            elif _mentions(name, path, call):
                doubts.append(f"{shown} [{call.status}]")
    return _Seen(tuple(uses), tuple(doubts))


def _answered(turn: TurnRecord) -> Iterator[tuple[ToolCall, str]]:
    """The calls of a turn, each with what it gave back."""
    outputs = {
        message.tool_result.call_id: message.tool_result.content for message in turn.messages if message.tool_result
    }
    for message in turn.messages:
        if message.tool_call is not None:
            yield message.tool_call, outputs.get(message.tool_call.id, "")


def _basis(name: str, path: str | None, call: ToolCall, output: str) -> str:
    """What shows that the call is a use of the skill; empty when it is none."""
    if call.status != "ok":
        return ""
    if call.tool == "skill" and call.arguments.get("name") == name:
        return (
            "session_file, the skill's text was put into the conversation" if call.basis == "session_file" else "call"
        )
    if path is not None and call.tool == "read" and call.arguments.get("path") == path:
        return f"it reads {path}"
    if path is not None and call.tool == "bash" and _names(path, str(call.arguments.get("command", ""))):
        told = any(line.strip() and path not in line for line in output.splitlines())
        return f"the command names {path} and printed its text" if told else ""
    return ""


def _names(path: str, command: str) -> bool:
    """Whether a command names exactly this path, not a longer one."""
    return re.search(rf"(?<![\w./-]){re.escape(path)}(?![\w./-])", command) is not None


def _mentions(name: str, path: str | None, call: ToolCall) -> bool:
    """Whether a call that ended well may have read the skill by another spelling of its path."""
    if call.status != "ok" or call.tool not in ("bash", "read", "grep"):
        return False
    given = json.dumps(call.arguments, ensure_ascii=False)
    return "SKILL.md" in given and (path is None or path not in given) and name in given


def _argument(call: ToolCall) -> str:
    return str(next((call.arguments[key] for key in ("command", "path", "name") if key in call.arguments), ""))


def _looked_for(name: str, evidence: Evidence) -> str:
    installed = evidence.record.skills
    if name not in installed:
        return f"the skill {name} was not installed in this trial; installed: {', '.join(installed) or 'none'}"
    return f"no skill call, and no call that reads {evidence.record.skill_files[name]}"


def _first(shown: Sequence[str]) -> str:
    more = f" and {len(shown) - _SHOWN} more" if len(shown) > _SHOWN else ""
    return "; ".join(shown[:_SHOWN]) + more
