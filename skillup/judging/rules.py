"""When each rule is met: one function a rule, over the evidence of a saved trial.

Three-valued throughout: what exists is judged whatever the turn's status; absence is met only where the turn came to
its end and the engine can show what the rule asks about; everything else is `unknown`, with the cause.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from skillup.environments.snapshot_log import SavedEntry
from skillup.judging.arguments import difference
from skillup.judging.evidence import Evidence, calls_of
from skillup.judging.texts import Finding, Wanted, look, shortened
from skillup.results import Changes, CheckState, TurnRecord, UnknownCause
from skillup.spec.rules import (
    FileContains,
    FilesExist,
    FilesNotExist,
    OutputContains,
    OutputMatches,
    Rule,
    ToolCalled,
    ToolNotCalled,
    WorkspaceChanged,
)
from skillup.spec.values import path_matches
from skillup.transcript import ToolCall


@dataclass(frozen=True)
class Outcome:
    """How a rule ended, why, and why not when it is unknown."""

    state: CheckState
    evidence: str
    cause: UnknownCause | None = None


def evaluate(rule: Rule, evidence: Evidence) -> Outcome:
    """The outcome of one rule on one trial."""
    return _EVALUATORS[type(rule).kind](rule, evidence)


def together(outcomes: Sequence[Outcome]) -> Outcome:
    """All must hold: one `not_met` decides, then one `unknown`."""
    for state in ("not_met", "unknown"):
        decisive = [outcome for outcome in outcomes if outcome.state == state]
        if decisive:
            return Outcome(decisive[0].state, "; ".join(o.evidence for o in decisive), decisive[0].cause)
    return Outcome("met", "; ".join(outcome.evidence for outcome in outcomes))


def either(outcomes: Sequence[Outcome]) -> Outcome:
    """One must hold: one `met` decides, then one `unknown`."""
    for state in ("met", "unknown"):
        decisive = [outcome for outcome in outcomes if outcome.state == state]
        if decisive:
            return decisive[0]
    return Outcome("not_met", "; ".join(outcome.evidence for outcome in outcomes))


# Which turns a rule looks at


def _turns(rule: Rule, evidence: Evidence) -> tuple[TurnRecord, ...] | Outcome:
    """The turns that the rule names; an outcome when the turn that it names did not run."""
    ran = evidence.turns
    if not ran:
        return Outcome("unknown", "no turn ran", "not_reached")
    if isinstance(rule.turn, int):
        turn = evidence.turn(rule.turn)
        return (turn,) if turn else _did_not_run(rule.turn, evidence)
    return (ran[-1],) if rule.turn == "last" else ran


def _did_not_run(number: int, evidence: Evidence) -> Outcome:
    ending = evidence.record.ending
    if ending.how in ("gate_skipped", "capture_skipped"):
        return Outcome("unknown", f"turn {number} was skipped: {ending.reason}", "skip_gate")
    return Outcome(
        "unknown",
        f"turn {number} did not run: {ending.reason or 'the conversation ended before'}",
        "not_reached",
    )


def _of(finding: Finding) -> Outcome:
    return Outcome(finding.state, finding.evidence, "incomplete" if finding.state == "unknown" else None)


# Texts


def _texts(rule: OutputContains | OutputMatches, evidence: Evidence) -> Outcome:
    turns = _turns(rule, evidence)
    if isinstance(turns, Outcome):
        return turns
    if rule.turn is None:
        turns = turns[-1:]  # the final answer: the reply of the last turn that ran
    patterns = isinstance(rule, OutputMatches)
    ignore_case = evidence.ignore_case if rule.ignore_case is None else rule.ignore_case
    required, any_of, forbidden = rule.parts

    def seen(wanted: Wanted, turn: TurnRecord) -> Outcome:
        what = f"the answer of turn {turn.number}"
        return _of(look(wanted, turn.response or "", what=what, complete=evidence.complete(turn)))

    parts: list[Outcome] = []
    if required or any_of:
        wanted = Wanted(required, any_of, (), patterns, ignore_case)
        outcome = either([seen(wanted, turn) for turn in turns])
        if outcome.state == "not_met" and rule.turn != "any":
            elsewhere = [t.number for t in evidence.turns if t not in turns and seen(wanted, t).state == "met"]
            if elsewhere:
                outcome = Outcome("not_met", f"{outcome.evidence} (but turn {elsewhere[0]} does)")
        parts.append(outcome)
    if forbidden:
        wanted = Wanted((), (), forbidden, patterns, ignore_case)
        parts.append(together([seen(wanted, turn) for turn in turns]))
    return together(parts)


# Tool calls


def _same_tool(name: str, call: ToolCall) -> bool:
    if "::" in name:
        server, _, tool = name.partition("::")
        return call.tool == f"mcp:{server}/{tool}"
    return name in (call.tool, call.name)


def _shown(call: ToolCall, turn: int) -> str:
    arguments = ", ".join(f"{key}={shortened(str(value), 80)}" for key, value in call.arguments.items())
    by = " by a subagent" if call.parent else ""
    return f"turn {turn}{by}: {call.tool}({arguments}) [{call.status}]"


def _mismatch(rule: ToolCalled | ToolNotCalled, call: ToolCall) -> str | None:
    """Why a call of the right tool is not the one that the rule asks for; None when it is."""
    differs = difference(rule.args, call.arguments) or difference(rule.raw_args, call.raw_arguments)
    if differs:
        return differs
    if rule.status and call.status != rule.status:
        return f"status is {call.status}, not {rule.status}"
    return None


@dataclass(frozen=True)
class _Search:
    """Calls that fit the rule, and calls of the same tool that do not, each as shown to the user."""

    hits: tuple[str, ...]
    misses: tuple[str, ...]


def _search(rule: ToolCalled | ToolNotCalled, turns: Iterable[TurnRecord]) -> _Search:
    hits: list[str] = []
    misses: list[str] = []
    for turn in turns:
        for call in calls_of(turn):
            if not any(_same_tool(name, call) for name in rule.name):
                if any(name.casefold() in (call.tool.casefold(), call.name.casefold()) for name in rule.name):
                    misses.append(f"{_shown(call, turn.number)}: the name differs by case alone")
                continue
            why = _mismatch(rule, call)
            if why is None:
                hits.append(_shown(call, turn.number))
            else:
                misses.append(f"{_shown(call, turn.number)}: {why}")
    return _Search(tuple(hits), tuple(misses))


def _hidden(rule: ToolCalled | ToolNotCalled, evidence: Evidence) -> tuple[str, ...]:
    return tuple(name for name in rule.name if name in evidence.record.hidden_tools)


def _called(rule: ToolCalled, evidence: Evidence) -> Outcome:
    turns = _turns(rule, evidence)
    if isinstance(turns, Outcome):
        return turns
    if rule.turn == "any":
        return either([_counted(rule, (turn,), evidence) for turn in turns])
    return _counted(rule, turns, evidence)


def _counted(rule: ToolCalled, turns: Sequence[TurnRecord], evidence: Evidence) -> Outcome:
    search = _search(rule, turns)
    count, least, most = len(search.hits), rule.count.min, rule.count.max
    shown = f": {'; '.join(search.hits[:3])}" if search.hits else ""
    said = f"{count} such call{'' if count == 1 else 's'}{shown}"
    if most is not None and count > most:
        return Outcome("not_met", f"{said}, at most {most} wanted")
    complete = all(evidence.complete(turn) for turn in turns)
    if count >= least and (most is None or complete):
        return Outcome("met", said)
    hidden = _hidden(rule, evidence)
    if hidden:
        engine = evidence.record.agent.engine
        return Outcome("unknown", f"{engine} cannot show calls of {', '.join(hidden)}", "unobservable")
    if not complete:
        return Outcome("unknown", f"{said}, but the turn was cut, so more could have come", "incomplete")
    wanted = f"at least {least} wanted" if most is None else f"{least} to {most} wanted"
    near = [f"near miss: {miss}" for miss in search.misses[:3]]
    others = [turn for turn in evidence.turns if turn not in turns]
    near += [f"but in another turn: {hit}" for hit in _search(rule, others).hits[:2]]
    if not near:
        near = [f"tools called: {', '.join(_tools_of(turns)) or 'none'}"]
    return Outcome("not_met", "; ".join([f"{said}, {wanted}", *near]))


def _tools_of(turns: Iterable[TurnRecord]) -> list[str]:
    return sorted({call.tool for turn in turns for call in calls_of(turn)})


def _not_called(rule: ToolNotCalled, evidence: Evidence) -> Outcome:
    turns = _turns(rule, evidence)
    if isinstance(turns, Outcome):
        return turns
    search = _search(rule, turns)
    if search.hits:
        return Outcome("not_met", f"called: {'; '.join(search.hits[:3])}")
    hidden = _hidden(rule, evidence)
    if hidden:
        engine = evidence.record.agent.engine
        return Outcome("unknown", f"{engine} cannot show calls of {', '.join(hidden)}", "unobservable")
    if not all(evidence.complete(turn) for turn in turns):
        return Outcome("unknown", "no such call so far, but the turn was cut", "incomplete")
    near = f"; near: {search.misses[0]}" if search.misses else ""
    return Outcome("met", f"no such call among {sum(len(calls_of(t)) for t in turns)}{near}")


# Files: always the snapshot, never a folder that can still change


def _trees(rule: Rule, evidence: Evidence) -> list[tuple[int, Mapping[str, SavedEntry], bool]] | Outcome:
    """Snapshots that the rule looks at: (turn, tree, whether that turn came to its end)."""
    if isinstance(rule.turn, int) and evidence.turn(rule.turn) is None:
        return _did_not_run(rule.turn, evidence)
    if rule.turn == "any":
        numbers = [turn.number for turn in evidence.turns]
    elif isinstance(rule.turn, int):
        numbers = [rule.turn]
    else:
        numbers = [evidence.final_turn or 0]
    found: list[tuple[int, Mapping[str, SavedEntry], bool]] = []
    for number in numbers:
        tree, turn = evidence.tree(number), evidence.turn(number)
        if tree is not None and turn is not None:
            found.append((number, tree, evidence.complete(turn)))
    return found or Outcome("unknown", "the workspace was not looked at", "not_reached")


def _is_glob(path: str) -> bool:
    return any(character in path for character in "*?[")


def _there(path: str, tree: Mapping[str, SavedEntry]) -> bool:
    if path.rstrip("/") in tree:
        return True
    return _is_glob(path) and any(path_matches(known, path) for known in tree)


def _other_case(path: str, tree: Mapping[str, SavedEntry]) -> str:
    close = [known for known in tree if known.casefold() == path.casefold()]
    return f" (but {close[0]!r} is there: the case of the letters differs)" if close else ""


def _exist(rule: FilesExist, evidence: Evidence) -> Outcome:
    trees = _trees(rule, evidence)
    if isinstance(trees, Outcome):
        return trees
    return either([_all_there(rule.paths, *entry) for entry in trees])


def _all_there(paths: Sequence[str], turn: int, tree: Mapping[str, SavedEntry], complete: bool) -> Outcome:  # noqa: FBT001 - unpacked from a row of `_trees`
    missing = [path for path in paths if not _there(path, tree)]
    after = f"after turn {turn}"
    if not missing:
        return Outcome("met", f"{after} the workspace holds {', '.join(paths)}")
    near = "".join(_other_case(path, tree) for path in missing[:1])
    said = f"{after} the workspace lacks {', '.join(missing)}{near}"
    return Outcome("not_met", said) if complete else Outcome("unknown", f"{said}, but the turn was cut", "incomplete")


def _not_exist(rule: FilesNotExist, evidence: Evidence) -> Outcome:
    trees = _trees(rule, evidence)
    if isinstance(trees, Outcome):
        return trees
    outcomes = []
    for turn, tree, complete in trees:
        present = [path for path in rule.paths if _there(path, tree)]
        if present:
            outcomes.append(Outcome("not_met", f"after turn {turn} the workspace holds {', '.join(present)}"))
        elif not complete:
            outcomes.append(Outcome("unknown", f"turn {turn} was cut", "incomplete"))
        else:
            outcomes.append(Outcome("met", f"after turn {turn} the workspace lacks {', '.join(rule.paths)}"))
    return together(outcomes)


def _contains(rule: FileContains, evidence: Evidence) -> Outcome:
    trees = _trees(rule, evidence)
    if isinstance(trees, Outcome):
        return trees
    ignore_case = evidence.ignore_case if rule.ignore_case is None else rule.ignore_case
    required, any_of, forbidden = rule.parts
    wanted = Wanted(required, any_of, forbidden, patterns=False, ignore_case=ignore_case)

    def seen(turn: int, tree: Mapping[str, SavedEntry], *, complete: bool) -> Outcome:
        entry = tree.get(rule.path)
        if entry is None:
            return _all_there([rule.path], turn, tree, complete)
        if entry.kind != "file":
            return Outcome("not_met", f"{rule.path} is a {entry.kind}, not a file")
        content = evidence.snapshots.content(entry.digest) if entry.digest else None
        if content is None:
            why = f"the content of {rule.path} ({entry.size} bytes) was not kept: it is too large or not text"
            return Outcome("unknown", why, "unobservable")
        text = content.decode("utf-8", errors="replace")
        return _of(look(wanted, text, what=f"{rule.path} after turn {turn}", complete=complete))

    outcomes = [seen(turn, tree, complete=complete) for turn, tree, complete in trees]
    return together(outcomes) if forbidden and not (required or any_of) else either(outcomes)


def _changed(rule: WorkspaceChanged, evidence: Evidence) -> Outcome:
    turns = _turns(rule, evidence)
    if isinstance(turns, Outcome):
        return turns
    if rule.turn == "any":
        return either([_judge_changes(rule, *_between(t.number - 1, t.number, evidence), evidence) for t in turns])
    if rule.turn is None:
        return _judge_changes(rule, *_between(0, evidence.final_turn or 0, evidence), evidence)
    number = turns[0].number
    return _judge_changes(rule, *_between(number - 1, number, evidence), evidence)


def _between(before: int, after: int, evidence: Evidence) -> tuple[Changes | None, str]:
    old, new = evidence.tree(before), evidence.tree(after)
    where = f"turn {after}" if before == after - 1 else f"turns {before + 1} to {after}"
    if old is None or new is None:
        return None, where
    old = {path: entry for path, entry in old.items() if entry.kind != "dir"}
    new = {path: entry for path, entry in new.items() if entry.kind != "dir"}
    return (
        Changes(
            created=tuple(sorted(new.keys() - old.keys())),
            changed=tuple(sorted(path for path in new.keys() & old.keys() if new[path] != old[path])),
            deleted=tuple(sorted(old.keys() - new.keys())),
        ),
        where,
    )


def _judge_changes(rule: WorkspaceChanged, changes: Changes | None, where: str, evidence: Evidence) -> Outcome:
    if changes is None:
        return Outcome("unknown", f"the workspace was not looked at around {where}", "not_reached")
    everything = (*changes.created, *changes.changed, *changes.deleted)
    wrong: list[str] = []
    for kind in ("created", "changed", "deleted"):
        done: tuple[str, ...] = getattr(changes, kind)
        for pattern in getattr(rule, kind):
            if not any(_fits(path, pattern) for path in done):
                wrong.append(f"{where} {kind} nothing that matches {pattern!r}{_kind_miss(pattern, kind, changes)}")
    forbidden = [path for path in everything if any(_fits(path, pattern) for pattern in rule.unchanged)]
    if forbidden:
        wrong.append(f"{where} touched {', '.join(forbidden)}, which had to stay")
    if rule.only is not None:
        others = [path for path in everything if not any(_fits(path, pattern) for pattern in rule.only)]
        if others:
            wrong.append(f"{where} also touched {', '.join(others)}")
    said = _described(changes, where)
    if wrong:
        if not evidence.all_complete and not forbidden and rule.only is None:
            return Outcome("unknown", "; ".join([*wrong, "but a turn was cut"]), "incomplete")
        return Outcome("not_met", "; ".join([*wrong, said]))
    if (rule.only is not None or rule.unchanged) and not evidence.all_complete:
        return Outcome("unknown", f"{said}, but a turn was cut", "incomplete")
    return Outcome("met", said)


def _fits(path: str, pattern: str) -> bool:
    return path == pattern or path_matches(path, pattern)


def _kind_miss(pattern: str, kind: str, changes: Changes) -> str:
    for other in ("created", "changed", "deleted"):
        if other != kind and any(_fits(path, pattern) for path in getattr(changes, other)):
            return f" (but it was {other})"
    return ""


def _described(changes: Changes, where: str) -> str:
    parts = []
    for kind in ("created", "changed", "deleted"):
        paths: tuple[str, ...] = getattr(changes, kind)
        if paths:
            more = f" and {len(paths) - 5} more" if len(paths) > 5 else ""
            parts.append(f"{kind} {', '.join(paths[:5])}{more}")
    return f"{where} {'; '.join(parts) if parts else 'changed nothing'}"


_EVALUATORS: Mapping[str, Callable[[Any, Evidence], Outcome]] = MappingProxyType(
    {
        "output_contains": _texts,
        "output_matches": _texts,
        "tool_called": _called,
        "tool_not_called": _not_called,
        "files_exist": _exist,
        "files_not_exist": _not_exist,
        "file_contains": _contains,
        "workspace_changed": _changed,
    }
)
"""Every rule's function, by the rule's `kind`; a test holds it together with the spec."""
