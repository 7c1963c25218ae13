"""`workspace_changed`: what a turn, or the whole conversation, did to the workspace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from skillup.environments.snapshot_log import SavedEntry
from skillup.judging.evidence import Evidence
from skillup.judging.file_rules import listed
from skillup.judging.outcome import Outcome, either, together
from skillup.results import TurnRecord
from skillup.spec.rules import WorkspaceChanged
from skillup.spec.values import path_matches

_KINDS = ("created", "changed", "deleted")


@dataclass(frozen=True)
class _Span:
    """What happened between two snapshots. `unseen` says what of the workspace could not be looked at, if anything."""

    where: str
    paths: Mapping[str, tuple[str, ...]]
    complete: bool
    unseen: str

    @property
    def touched(self) -> tuple[str, ...]:
        """Every path that was created, changed or deleted."""
        return tuple(path for kind in _KINDS for path in self.paths[kind])

    def described(self) -> str:
        """All that happened, in words."""
        parts = [f"{kind} {listed(self.paths[kind])}" for kind in _KINDS if self.paths[kind]]
        return f"{self.where} {'; '.join(parts) if parts else 'changed nothing'}"


def changed(rule: WorkspaceChanged, evidence: Evidence) -> Outcome:
    """All that had to happen did in one span that the rule is about; nothing that had to stay was touched in any."""
    turns = evidence.named_by(rule)
    if isinstance(turns, Outcome):
        return turns
    groups = [turns] if rule.turn is None else [(turn,) for turn in turns]
    spans = [_span(group, evidence) for group in groups]
    parts: list[Outcome] = []
    if rule.created or rule.changed or rule.deleted:
        parts.append(either([_happened(rule, span) for span in spans]))
    if rule.only is not None or rule.unchanged:
        parts.append(together([_spared(rule, span) for span in spans]))
    return together(parts)


def _span(turns: Sequence[TurnRecord], evidence: Evidence) -> _Span | Outcome:
    first, last = turns[0].number, turns[-1].number
    seen = [number for number in range(first, last + 1) if evidence.tree(number) is not None]
    before, after = evidence.tree(first - 1), evidence.tree(seen[-1]) if seen else None
    where = f"turn {last}" if first == last else f"turns {first} to {last}"
    if before is None or after is None:
        return Outcome("unknown", f"there is no snapshot of the workspace around {where}", "not_reached")
    locked = tuple(
        dict.fromkeys(p for tree in (before, after) for p, entry in tree.items() if entry.kind == "dir" and entry.note)
    )
    old, new = _files(before, locked), _files(after, locked)
    # A file that is too large to be read is known by its status alone, which only the turn's own record has seen.
    unread = {path for turn in turns if turn.changes for path in turn.changes.changed}
    in_part = evidence.snapshots.in_part
    paths = {
        "created": tuple(sorted(new.keys() - old.keys())) if first - 1 not in in_part else (),
        "changed": tuple(sorted(p for p in new.keys() & old.keys() if old[p] != new[p] or _unread(new[p], p, unread))),
        "deleted": tuple(sorted(old.keys() - new.keys())) if seen[-1] not in in_part else (),
    }
    unseen = f"{locked[0]} could not be looked into" if locked else ""
    if in_part & {first - 1, seen[-1]}:
        unseen = "the workspace held too many files to see them all"
    return _Span(where, paths, seen[-1] == last and evidence.all_complete(turns), unseen)


def _files(tree: Mapping[str, SavedEntry], locked: Sequence[str]) -> dict[str, SavedEntry]:
    hidden = frozenset(locked)
    return {
        path: entry
        for path, entry in tree.items()
        if entry.kind != "dir" and not (hidden and any(str(up) in hidden for up in PurePosixPath(path).parents))
    }


def _unread(entry: SavedEntry, path: str, reported: set[str]) -> bool:
    return entry.kind == "file" and entry.digest is None and path in reported


def _happened(rule: WorkspaceChanged, span: _Span | Outcome) -> Outcome:
    if isinstance(span, Outcome):
        return span
    missing = [
        f"{span.where} {kind} nothing that matches {pattern}{_near_miss(pattern, kind, span)}"
        for kind in _KINDS
        for pattern in getattr(rule, kind)
        if not any(_fits(path, pattern) for path in span.paths[kind])
    ]
    if not missing:
        return Outcome("met", span.described())
    if span.unseen:
        return Outcome("unknown", f"{span.unseen} around {span.where}", "unobservable")
    said = "; ".join(missing[:3])
    if not span.complete:
        return Outcome("unknown", f"{said}; but the turn was cut", "incomplete")
    return Outcome("not_met", f"{said}; {span.described()}")


def _spared(rule: WorkspaceChanged, span: _Span | Outcome) -> Outcome:
    if isinstance(span, Outcome):
        return span
    wrong: list[str] = []
    forbidden = [path for path in span.touched if any(_fits(path, pattern) for pattern in rule.unchanged)]
    if forbidden:
        wrong.append(f"{span.where} touched {listed(forbidden)}, which had to stay")
    if rule.only is not None:
        others = [path for path in span.touched if not any(_fits(path, pattern) for pattern in rule.only)]
        if others:
            wrong.append(f"{span.where} also touched {listed(others)}")
    if wrong:
        return Outcome("not_met", "; ".join([*wrong, span.described()]), forbidden=True)
    if span.unseen:
        return Outcome("unknown", f"{span.unseen} around {span.where}", "unobservable")
    if not span.complete:
        return Outcome("unknown", f"{span.described()} so far; but the turn was cut", "incomplete")
    return Outcome("met", span.described())


def _fits(path: str, pattern: str) -> bool:
    return path == pattern or path_matches(path, pattern)


def _near_miss(pattern: str, kind: str, span: _Span) -> str:
    other = next((k for k in _KINDS if k != kind and any(_fits(path, pattern) for path in span.paths[k])), None)
    if other is not None:
        return f" (but it was {other})"
    done = span.paths[kind]
    close = next((path for path in done if path.casefold() == pattern.casefold()), None)
    if close is not None:
        return f" (but {close}: the case of the letters differs)"
    if any(path.startswith(f"{pattern}/") for path in done):
        return f" (it is a folder; {pattern}/** means all below it)"
    return ""
