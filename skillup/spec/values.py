"""The strict, frozen base of everything that users write, and the small types that several files share."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

import re2
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictBool,
    StrictFloat,
    StrictInt,
)
from wcmatch import glob

from skillup.spec.problems import fault_at


class Spec(BaseModel):
    """A mapping in a file of the user's: unknown keys are faults.

    `later` names keys of the public format that we recognise and do not support yet.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", serialize_by_alias=True)

    later: ClassVar[frozenset[str]] = frozenset()


def compile_pattern(pattern: str, *, ignore_case: bool = False) -> Any:
    """A compiled RE2 pattern: linear time, so that no case file can hang a run.

    Raises:
        ValueError: the pattern is not RE2; the message says why.
    """
    options = re2.Options()
    options.log_errors = False
    options.case_sensitive = not ignore_case
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        reason = error.args[0] if error.args else "unknown reason"
        text = reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
        raise ValueError(f"not a valid RE2 pattern: {text}") from None


def _checked_pattern(pattern: str) -> str:
    if not pattern:
        raise fault_at("an empty pattern matches everything", hint="write the text that must be found")
    compile_pattern(pattern)
    return pattern


def _not_empty(text: str) -> str:
    if not text:
        raise fault_at("an empty text is contained in everything", hint="write the text that must be found")
    return text


def _seconds(value: Any) -> Any:
    if isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    return value


def _turn_reference(value: Any) -> Any:
    if value in ("any", "last") or (isinstance(value, int) and not isinstance(value, bool) and value >= 1):
        return value
    raise fault_at("must be a turn number from 1, `any` or `last`")


def _inside(path: str) -> str:
    """A relative POSIX path that cannot leave the folder it is relative to."""
    parts = path.split("/")
    if path.startswith(("/", "~")) or ".." in parts or "\\" in path or "\0" in path:
        raise fault_at(f"the path {path!r} leaves its folder", hint="use a relative path with / and without ..")
    if not path or path == ".":
        raise fault_at("an empty path names nothing")
    return path


Pattern = Annotated[str, AfterValidator(_checked_pattern)]
"""An RE2 regular expression."""

Text = Annotated[str, AfterValidator(_not_empty)]
"""A literal, non-empty text."""

Seconds = Annotated[StrictFloat, BeforeValidator(_seconds), Field(gt=0)]
"""A duration in seconds, more than 0."""

Delay = Annotated[StrictFloat, BeforeValidator(_seconds), Field(ge=0)]
"""A wait in seconds, 0 for none."""

TurnReference = Annotated[int | str, BeforeValidator(_turn_reference)]
"""A turn by number (from 1), `any` or `last`."""

InnerPath = Annotated[str, AfterValidator(_inside)]
"""A path inside the workspace or the suite."""

Flag = StrictBool
Whole = StrictInt


def path_matches(path: str, pattern: str) -> bool:
    """Whether a relative POSIX path matches a glob (`*`, `?`, `[…]`, `**`), hidden files included."""
    flags = glob.GLOBSTAR | glob.DOTGLOB | glob.FORCEUNIX
    return bool(glob.globmatch(path, pattern, flags=flags))
