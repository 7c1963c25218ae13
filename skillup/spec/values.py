"""The strict, frozen base of everything that users write, and the small types that several files share."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
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

from skillup.spec.problems import fault_at, quoted

MAX_SECONDS = 7 * 24 * 3600.0
"""A week: longer than any trial, and far below what timers of the operating system can hold."""


class Spec(BaseModel):
    """A mapping in a file of the user's: unknown keys are faults.

    `later` names keys of the format that we recognise and do not support yet; `later_values` does the same for the
    values of a key. Both are refused with these words, never ignored and never taken for a misspelling.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", serialize_by_alias=True)

    later: ClassVar[frozenset[str]] = frozenset()
    later_values: ClassVar[Mapping[str, frozenset[str]]] = MappingProxyType({})


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
    try:
        compile_pattern(pattern)
    except ValueError as error:
        raise fault_at(str(error), hint=_pattern_hint(pattern)) from None
    return pattern


def _pattern_hint(pattern: str) -> str:
    """What to write instead of what other dialects have and RE2 has not."""
    if any(part in pattern for part in ("(?=", "(?!", "(?<=", "(?<!")):
        return "RE2 has no look-ahead and no look-behind: use two checks, or a group"
    if any(f"\\{digit}" in pattern for digit in range(1, 10)):
        return "RE2 has no back references"
    return "write \\ in front of ( ) [ ] { } . * + ? | that are meant literally"


def _not_empty(text: str) -> str:
    if not text:
        raise fault_at("an empty text is contained in everything", hint="write the text that must be found")
    return text


def _not_blank(text: str) -> str:
    if not text.strip():
        raise fault_at("the text is blank", hint="write something, or remove the key")
    return text


def _without_nul(text: str) -> str:
    if "\0" in text:
        raise fault_at("no process can be given a text that holds NUL (U+0000)", hint="remove it")
    return text


def _as_float(value: Any) -> Any:
    if isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    return value


def number(value: Any) -> Any:
    """A number as a float; a text or a truth value is none."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise fault_at("must be a number", hint="without quotes")
    return float(value)


def _limit_seconds(value: Any) -> Any:
    value = _as_float(value)
    if isinstance(value, float) and value < 0:
        raise fault_at(
            "a negative limit would mean none, and everything that we start has a limit",
            hint=f"give seconds, at most {MAX_SECONDS:g}; 0 means the default",
        )
    return None if value == 0 and isinstance(value, float) else value


def _limit_dollars(value: Any) -> Any:
    return None if value == 0 and not isinstance(value, (bool, str)) else _as_float(value)


def _limit_count(value: Any) -> Any:
    return None if value == 0 and isinstance(value, int) and not isinstance(value, bool) else value


def _turn_reference(value: Any) -> Any:
    if value in ("any", "last") or (isinstance(value, int) and not isinstance(value, bool) and value >= 1):
        return value
    raise fault_at("must be a turn number from 1, `any` or `last`")


def _inside(path: str) -> str:
    """A relative POSIX path that cannot leave the folder it is relative to, without `.` and empty parts."""
    if "\\" in path or "\0" in path:
        raise fault_at(f"the path {quoted(path)} holds a backslash or NUL", hint="paths are written with /")
    parts = path.split("/")
    if path.startswith(("/", "~")) or ".." in parts:
        raise fault_at(f"the path {quoted(path)} leaves its folder", hint="use a relative path with / and without ..")
    named = [part for part in parts if part not in ("", ".")]
    if not named:
        raise fault_at("an empty path names nothing")
    return "/".join(named)


def _not_of_git(path: str) -> str:
    if ".git" in path.split("/"):
        raise fault_at("what lies in a .git is never collected", hint="let the agent, or a rule, ask git")
    return path


Pattern = Annotated[str, AfterValidator(_checked_pattern)]
"""An RE2 regular expression."""

Text = Annotated[str, AfterValidator(_not_empty)]
"""A literal, non-empty text."""

Words = Annotated[str, AfterValidator(_not_blank), AfterValidator(_without_nul)]
"""A text that says something and can be handed to a process: a name, a path, a command."""

Value = Annotated[str, AfterValidator(_without_nul)]
"""The value of a variable; may be empty."""

Message = Annotated[str, AfterValidator(_not_blank)]
"""What a user says; not blank."""

Seconds = Annotated[StrictFloat, BeforeValidator(_as_float), Field(gt=0, le=MAX_SECONDS, allow_inf_nan=False)]
"""A duration in seconds, more than 0."""

LimitSeconds = Annotated[
    Annotated[StrictFloat, Field(gt=0, le=MAX_SECONDS, allow_inf_nan=False)] | None, BeforeValidator(_limit_seconds)
]
"""A time limit in seconds; 0 and null mean that nothing is said here, as in the public format."""

Dollars = Annotated[StrictFloat, BeforeValidator(_as_float), Field(gt=0, allow_inf_nan=False)]
"""An amount of money in US dollars, more than 0."""

LimitDollars = Annotated[
    Annotated[StrictFloat, Field(gt=0, allow_inf_nan=False)] | None, BeforeValidator(_limit_dollars)
]
"""A limit in US dollars; 0 and null mean that nothing is said here."""

LimitCount = Annotated[Annotated[StrictInt, Field(ge=1)] | None, BeforeValidator(_limit_count)]
"""A limit on a number; 0 and null mean that nothing is said here, as in the public format."""

Delay = Annotated[StrictFloat, BeforeValidator(_as_float), Field(ge=0, le=MAX_SECONDS, allow_inf_nan=False)]
"""A wait in seconds, 0 for none."""

Threshold = Annotated[float, BeforeValidator(number), Field(gt=0, le=1, allow_inf_nan=False)]
"""A score that must be reached, above 0 and at most 1."""

TurnReference = Annotated[int | str, BeforeValidator(_turn_reference)]
"""A turn by number (from 1), `any` or `last`."""

InnerPath = Annotated[str, AfterValidator(_inside)]
"""A path or a glob inside the workspace or the suite."""

ArtifactPath = Annotated[InnerPath, AfterValidator(_not_of_git)]
"""A path or a glob of files to collect."""

Flag = StrictBool
Whole = StrictInt


def path_matches(path: str, pattern: str) -> bool:
    """Whether a relative POSIX path matches a glob (`*`, `?`, `[…]`, `**`), hidden files included."""
    included, excluded = _glob(pattern)
    return any(one.match(path) for one in included) and not any(one.match(path) for one in excluded)


@lru_cache(maxsize=1024)
def _glob(pattern: str) -> tuple[tuple[re.Pattern[str], ...], tuple[re.Pattern[str], ...]]:
    """A glob as regular expressions; made once, because a rule asks about every file of a workspace."""
    included, excluded = glob.translate(pattern, flags=glob.GLOBSTAR | glob.DOTGLOB | glob.FORCEUNIX)
    return tuple(map(re.compile, included)), tuple(map(re.compile, excluded))
