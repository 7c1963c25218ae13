"""What a judge is shown of a saved trial: pieces of plain data, bounded, each with its author.

Who said a thing matters twice: the judge must not take the user's words for the agent's, and a quote that is to prove
what the agent did must come from the agent's side.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from skillup.judging.evidence import Evidence, not_seen, took_place
from skillup.results import TurnRecord
from skillup.spec.criteria import ContextLimits, Criterion, JudgeContext, Mode
from skillup.transcript import Message

Side = Literal["user", "agent"]

LONGEST: Final = 20_000
"""Characters of one text; what is longer is a file, and no judge reads it line by line."""

_TRUNCATED: Final = 2_000
"""Characters of a text whose mode is `truncate`: a page."""

_SHORTEST: Final = 200
"""Below this a text says nothing any more, and the trial does not fit."""

_MOST_PATHS: Final = 200
_DIFF_LINES: Final = 500
"""Lines of all diffs together; the public format's default."""


@dataclass(frozen=True)
class Piece:
    """One thing that happened, as JSON data; `turn` is None for what is true at the end."""

    side: Side
    turn: int | None
    data: Mapping[str, Any]

    @property
    def line(self) -> str:
        """The piece as one line: nothing in it can begin another one, and nothing is there that is not seen."""
        line = json.dumps(self.data, ensure_ascii=False)
        return line if line.isprintable() else "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in line)


@dataclass(frozen=True)
class About:
    """What a set of criteria is about: one turn, the last `window` turns, or everything."""

    turn: int | None = None
    window: int | None = None

    @classmethod
    def of(cls, criterion: Criterion) -> About:
        """What one criterion is about."""
        return cls(criterion.turn, criterion.window)

    @property
    def words(self) -> str:
        """How the question says it."""
        if self.turn is not None:
            return f"turn {self.turn} (earlier turns are shown so that you understand it)"
        return f"the last {self.window} turns" if self.window else "the whole conversation"


@dataclass(frozen=True)
class Shown:
    """The pieces, and what was left out or shortened."""

    pieces: tuple[Piece, ...]
    notes: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """All pieces, one a line."""
        return "\n".join(piece.line for piece in self.pieces)


def shown(evidence: Evidence, context: JudgeContext, about: About, before: Iterable[Piece] = ()) -> Shown:
    """What the judge sees for criteria about `about`, with every text bounded and nothing yet fitted to a model.

    `before` is what was there before the first turn; it is left out where turns are.
    """
    turns = [turn for turn in evidence.record.turns if about.turn is None or turn.number <= about.turn]
    notes: list[str] = []
    keep = about.window or context.limits.transcript_max_turns or len(turns)
    if keep < len(turns):
        notes.append(f"turns 1 to {len(turns) - keep} are not shown")
        turns = turns[-keep:]
    transcript = context.mode("transcript")
    pieces = [] if notes or transcript == "omit" else list(before)
    if transcript != "omit":
        for turn in turns:
            pieces += _turn(turn, _bound(transcript))
    notes += [why for turn in turns for why in not_seen(turn)]
    final = _final(turns)
    if final is not None and transcript == "omit" and context.mode("final_message") != "omit":
        text = cut(final.response or "", _bound(context.mode("final_message")))
        pieces.append(Piece("agent", final.number, {"turn": final.number, "final answer of the agent": text}))
    pieces += _workspace(evidence, context, about, notes)
    return Shown(tuple(pieces), tuple(dict.fromkeys(notes)))


def fitted(whole: Shown, most: int) -> Shown | None:
    """The same within a number of characters: the longest texts lose first. None when it cannot be done."""
    limit = LONGEST
    result = whole
    while len(result.text) > most:
        limit //= 2
        if limit < _SHORTEST:
            return None
        pieces = tuple(Piece(piece.side, piece.turn, cut_all(piece.data, limit)) for piece in whole.pieces)
        result = Shown(pieces, (*whole.notes, f"texts of more than {limit} characters are shortened"))
    return result


def budget(limits: ContextLimits, room: int) -> int:
    """Characters that the record may take: what the model has room for, and no more than the case allows."""
    return min(room, limits.max_bytes or room)


def _bound(mode: Mode) -> int:
    return _TRUNCATED if mode == "truncate" else LONGEST


def _final(turns: Sequence[TurnRecord]) -> TurnRecord | None:
    return next((turn for turn in reversed(turns) if took_place(turn)), None)


def _turn(turn: TurnRecord, limit: int) -> Iterator[Piece]:
    number = turn.number
    if not took_place(turn):
        yield Piece("user", number, {"turn": number, "did not take place": cut(turn.reason, limit)})
        return
    yield Piece("user", number, {"turn": number, "user says": cut(turn.content, limit)})
    said = ""
    for message in turn.messages:
        data = _message(message, limit)
        if data:
            yield Piece("agent", number, {"turn": number, **data})
        if message.role == "assistant":
            said = message.text
    if turn.response is not None and turn.response.strip() != said.strip():
        yield Piece("agent", number, {"turn": number, "agent says": cut(turn.response, limit)})
    if turn.status not in ("completed", "failed"):
        yield Piece("agent", number, {"turn": number, "how it ended": turn.status, "why": cut(turn.reason, limit)})
    if turn.changes is not None and (turn.changes.created or turn.changes.changed or turn.changes.deleted):
        paths = {kind: listed_paths(getattr(turn.changes, kind)) for kind in ("created", "changed", "deleted")}
        yield Piece("agent", number, {"turn": number, "files in the workspace": {k: v for k, v in paths.items() if v}})


def _message(message: Message, limit: int) -> dict[str, Any]:
    """What the agent said or did; nothing for what it only thought, and for the CLI's own notes."""
    by = {"by a subagent": True} if message.parent else {}
    if message.tool_call is not None:
        call = message.tool_call
        arguments = cut_all(call.arguments, limit)
        return {"agent calls": call.tool, "call": call.id, "arguments": arguments, "status": call.status, **by}
    if message.tool_result is not None:
        result = message.tool_result
        return {"result of call": result.call_id, "status": result.status, "content": cut(result.content, limit)}
    if message.role == "assistant" and message.text.strip():
        return {"agent says": cut(message.text, limit), **by}
    return {}


def _workspace(evidence: Evidence, context: JudgeContext, about: About, notes: list[str]) -> Iterator[Piece]:
    """The changes as diffs, and the files that there are at the end."""
    last = about.turn if about.turn is not None else evidence.snapshots.last_turn
    after = evidence.tree(last) if last is not None else None
    if last is None or after is None:
        return
    before = evidence.tree(last - 1 if about.turn is not None else 0) or {}
    touched = sorted(path for path in {*before, *after} if before.get(path) != after.get(path))
    files = [path for path in touched if "file" in _kinds(before, after, path)]
    mode = context.mode("workspace_diff")
    left = context.limits.workspace_diff_max_lines or _DIFF_LINES
    for path in files if mode != "omit" else ():
        lines = _diff(evidence, before, after, path)
        if left <= 0:
            notes.append("the workspace diff is not whole")
            break
        text = "\n".join(lines[:left])
        notes += ["the workspace diff is not whole"] if len(lines) > left else []
        left -= len(lines)
        yield Piece("agent", about.turn, {"diff of the file": path, "lines": cut(text, _bound(mode))})
    if context.files == "index":
        yield Piece("agent", about.turn, {"files at the end": listed_paths(sorted(after))})
    elif context.files == "include":
        for path in [path for path in files if path in after]:
            content = _text(evidence, after, path)
            if content is not None:
                yield Piece("agent", about.turn, {"file at the end": path, "content": cut(content, LONGEST)})


def _kinds(before: Mapping[str, Any], after: Mapping[str, Any], path: str) -> set[str]:
    return {tree[path].kind for tree in (before, after) if path in tree}


def _diff(evidence: Evidence, before: Mapping[str, Any], after: Mapping[str, Any], path: str) -> list[str]:
    """The lines of a file's diff; one line where there is no text to compare."""
    old = _text(evidence, before, path) if path in before else ""
    new = _text(evidence, after, path) if path in after else ""
    what = "deleted" if path not in after else "created" if path not in before else "changed"
    if old is None or new is None:
        return [f"({what}; its content is no text, or was not kept)"]
    lines = list(difflib.unified_diff(old.splitlines(), new.splitlines(), lineterm="", n=2))[2:]
    return [f"({what})", *lines]


def _text(evidence: Evidence, tree: Mapping[str, Any], path: str) -> str | None:
    digest = tree[path].digest
    content = evidence.snapshots.content(digest) if digest else None
    try:
        return content.decode() if content is not None else None
    except UnicodeDecodeError:
        return None


def listed_paths(paths: Sequence[str]) -> list[str]:
    """The first paths of a long list, and how many more there are."""
    more = len(paths) - _MOST_PATHS
    return [*paths[:_MOST_PATHS], *([f"(and {more} more)"] if more > 0 else [])]


def cut_all(value: Any, limit: int) -> Any:
    """Plain data in which every text is cut."""
    if isinstance(value, str):
        return cut(value, limit)
    if isinstance(value, Mapping):
        return {key: cut_all(inner, limit) for key, inner in value.items()}
    return [cut_all(inner, limit) for inner in value] if isinstance(value, (list, tuple)) else value


def cut(text: str, limit: int) -> str:
    """The beginning and the end of a long text, and how much is missing between them."""
    if len(text) <= limit:
        return text
    head = limit * 2 // 3
    tail = limit - head
    return f"{text[:head]} [… {len(text) - head - tail} characters are not shown …] {text[-tail:]}"
