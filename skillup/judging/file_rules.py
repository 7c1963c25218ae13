"""Rules on files, their existence and their texts: the snapshot after a turn, never a folder that can change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from skillup.environments.snapshot_log import SavedEntry
from skillup.judging.equality import same_text
from skillup.judging.evidence import Evidence
from skillup.judging.outcome import Outcome, either, together
from skillup.judging.texts import Wanted, look
from skillup.spec.content_rules import FileEquals, FileMatches
from skillup.spec.rules import FileContains, FilesExist, FilesNotExist, Rule
from skillup.spec.values import path_matches

_SHOWN_PATHS = 5


@dataclass(frozen=True)
class Look:
    """The workspace after a turn; `complete` says whether that turn came to its end.

    `in_part` is True when there were too many files to see them all.
    """

    turn: int
    tree: Mapping[str, SavedEntry]
    complete: bool
    in_part: bool

    def holds(self, path: str) -> bool:
        """Whether a path or glob is there: a file, a folder, a link or anything else."""
        return path in self.tree or (is_glob(path) and any(path_matches(known, path) for known in self.tree))

    def unseen(self, paths: Sequence[str]) -> Outcome | None:
        """Unknown, when one of these could lie where nobody has looked: in a locked folder, or beyond the last file."""
        if self.in_part:
            said = f"the workspace after turn {self.turn} holds too many files to see them all"
            return Outcome("unknown", said, "unobservable")
        locked = [path for path, entry in self.tree.items() if entry.kind == "dir" and entry.note]
        above = {str(parent) for path in paths for parent in PurePosixPath(path).parents}
        blocking = locked if any(is_glob(path) for path in paths) else [path for path in locked if path in above]
        if not blocking:
            return None
        return Outcome("unknown", f"after turn {self.turn} {blocking[0]} could not be looked into", "unobservable")


def exist(rule: FilesExist, evidence: Evidence) -> Outcome:
    """All the paths are there."""
    looks = looks_of(rule, evidence)
    return looks if isinstance(looks, Outcome) else either([_all_there(rule.paths, at) for at in looks])


def not_exist(rule: FilesNotExist, evidence: Evidence) -> Outcome:
    """None of the paths is there."""
    looks = looks_of(rule, evidence)
    return looks if isinstance(looks, Outcome) else together([_none_there(rule.paths, at) for at in looks])


def contains(rule: FileContains | FileMatches, evidence: Evidence) -> Outcome:
    """The wanted texts, or patterns, stand in the file, the forbidden ones do not."""
    looks = looks_of(rule, evidence)
    if isinstance(looks, Outcome):
        return looks
    ignore_case = evidence.ignore_case if rule.ignore_case is None else rule.ignore_case
    required, any_of, forbidden = rule.parts
    patterns = isinstance(rule, FileMatches)
    parts: list[Outcome] = []
    if required or any_of:
        wanted = Wanted(required, any_of, (), patterns, ignore_case)
        parts.append(either([_holds(wanted, rule.path, at, evidence) for at in looks]))
    if forbidden:
        wanted = Wanted((), (), forbidden, patterns, ignore_case)
        parts.append(together([_holds(wanted, rule.path, at, evidence) for at in looks]))
    return together(parts)


def equals(rule: FileEquals, evidence: Evidence) -> Outcome:
    """The file holds exactly what the rule says."""
    looks = looks_of(rule, evidence)
    if isinstance(looks, Outcome):
        return looks
    return either([_equals(rule, at, evidence) for at in looks])


def _equals(rule: FileEquals, at: Look, evidence: Evidence) -> Outcome:
    text = text_at(rule.path, at, evidence)
    if isinstance(text, Outcome):
        return text
    return same_text(
        rule.expected, text, what=f"{rule.path} after turn {at.turn}", complete=at.complete, trim=rule.trim
    )


def looks_of(rule: Rule, evidence: Evidence) -> list[Look] | Outcome:
    """The workspace at each moment that a rule is about: after its turns, or at the end."""
    turns = evidence.named_by(rule)
    if isinstance(turns, Outcome):
        return turns
    in_part = evidence.snapshots.in_part
    looks = [
        Look(turn.number, tree, evidence.complete(turn), turn.number in in_part)
        for turn in turns
        if (tree := evidence.tree(turn.number)) is not None
    ]
    if not looks:
        return Outcome("unknown", "there is no snapshot of the workspace", "not_reached")
    if rule.turn is not None:
        return looks
    # The last one. A turn that a fault broke off has none; what the one before left may be gone by now.
    last = looks[-1]
    return [last if last.turn == turns[-1].number else replace(last, complete=False)]


def _all_there(paths: Sequence[str], at: Look) -> Outcome:
    missing = [path for path in paths if not at.holds(path)]
    if not missing:
        return Outcome("met", f"after turn {at.turn} the workspace holds {listed(paths)}")
    unseen = at.unseen(missing)
    if unseen:
        return unseen
    said = f"after turn {at.turn} the workspace lacks {listed(missing)}{_near_miss(missing[0], at.tree)}"
    if not at.complete:
        return Outcome("unknown", f"{said}; but the turn was cut", "incomplete")
    return Outcome("not_met", said)


def _none_there(paths: Sequence[str], at: Look) -> Outcome:
    present = [path for path in paths if at.holds(path)]
    if present:
        return Outcome("not_met", f"after turn {at.turn} the workspace holds {listed(present)}", forbidden=True)
    unseen = at.unseen(paths)
    if unseen:
        return unseen
    said = f"after turn {at.turn} the workspace lacks {listed(paths)}"
    if not at.complete:
        return Outcome("unknown", f"{said} so far; but the turn was cut", "incomplete")
    return Outcome("met", said)


def text_at(path: str, at: Look, evidence: Evidence) -> str | Outcome:
    """What a file held at that moment, or why that cannot be read; bytes that are no UTF-8 are replaced."""
    entry = at.tree.get(path)
    what = f"{path} after turn {at.turn}"
    if entry is None:
        missing = _all_there([path], at)
        if missing.state != "met":
            return missing
        return Outcome("not_met", f"{what} is not there: the rule takes the path of one file, no glob")
    if entry.kind != "file":
        return Outcome("not_met", f"{what} is a {_KINDS[entry.kind]}, not a file")
    content = evidence.snapshots.content(entry.digest) if entry.digest else None
    if content is None:
        return Outcome("unknown", f"{what} ({entry.size} bytes) was too large, or not readable", "unobservable")
    return content.decode("utf-8", errors="replace")


def _holds(wanted: Wanted, path: str, at: Look, evidence: Evidence) -> Outcome:
    text = text_at(path, at, evidence)
    if isinstance(text, Outcome):
        return text
    return look(wanted, text, what=f"{path} after turn {at.turn}", complete=at.complete, masked=True)


_KINDS = {"dir": "folder", "symlink": "symbolic link (links are not followed)", "special": "special file"}


def _near_miss(path: str, tree: Mapping[str, SavedEntry]) -> str:
    folded = path.casefold()
    close = next((known for known in tree if known.casefold() == folded), None)
    if close is not None:
        return f" (but {close} is there: the case of the letters differs)"
    name = path.rpartition("/")[2]
    elsewhere = next((known for known in tree if known.rpartition("/")[2] == name), None)
    return f" (but {elsewhere} is there)" if elsewhere else ""


def is_glob(path: str) -> bool:
    """Whether a path of a rule is a pattern."""
    return any(character in path for character in "*?[")


def listed(paths: Sequence[str]) -> str:
    """Paths as evidence names them: the first few, and how many more."""
    more = f" and {len(paths) - _SHOWN_PATHS} more" if len(paths) > _SHOWN_PATHS else ""
    return ", ".join(paths[:_SHOWN_PATHS]) + more
