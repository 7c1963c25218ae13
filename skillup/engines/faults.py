"""Which fault the CLI of an engine means: one table an engine, read in one way.

A kind comes from what the CLI says as a CLI: the class of its error event, the HTTP status in it, its own sentence,
else from how the process ended and what it left on stderr. What the agent says never comes near these functions.

Two events may tell of one failure, the error and the end of the turn. The one that is surer of its kind counts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Final

from skillup.engines.events import EngineFault
from skillup.errors import ErrorKind, kind_of_status

_NOTHING: Final[Mapping[str, ErrorKind]] = MappingProxyType({})

_HINTS: Final[Mapping[ErrorKind, str]] = MappingProxyType(
    {
        "auth": "check the credential that the profile passes",
        "quota": "look at the account of the credential",
        "rate_limit": "run fewer trials at once, or later",
        "request": "check the model's name and the size of the input",
    }
)

_WAIT = re.compile(
    r"try again in\s*((?:\d+(?:\.\d+)?\s*(?:ms|milliseconds?|s|seconds?|m|minutes?|h|hours?)\s*)+)", re.I
)
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|mil|s|m|h)[a-z]*", re.I)
_UNITS: Final = MappingProxyType({"ms": 0.001, "mil": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0})

_LATEST = 253_402_300_799
"""The last second of the year 9999, after which the standard library knows no date."""


@dataclass(frozen=True)
class Refusal:
    """How a CLI that never began says why: by words on stderr, or by an exit code of its own."""

    kind: ErrorKind
    said: str
    words: tuple[str, ...] = ()
    exit_code: int | None = None
    hint: str = ""


@dataclass(frozen=True)
class FaultTable:
    """What one CLI says of its faults.

    Attributes:
        cli: how messages name it.
        last_word: the event with which a turn ends.
        classes: its error classes that name a kind without doubt; the others are judged by the HTTP status.
        sentences: parts of its own sentences, for where it gives neither; the first that fits counts.
        status: where a sentence holds the HTTP status.
        refusals: what it says when it does not even begin.
        otherwise: the kind of a fault of which it says nothing that is known here.
    """

    cli: str
    last_word: str
    classes: Mapping[str, ErrorKind]
    sentences: Mapping[str, ErrorKind]
    status: re.Pattern[str] | None = None
    refusals: tuple[Refusal, ...] = ()
    otherwise: ErrorKind = "network"

    def told(
        self,
        message: str,
        *,
        error_class: str | None = None,
        status: int | None = None,
        retry_after: float | None = None,
    ) -> EngineFault:
        """The fault that an error event of the CLI describes; `message` is its own text, `retry_after` in seconds."""
        wait = seconds_in(message) if retry_after is None else retry_after
        known = self.classes.get(error_class or "")
        if known is not None:
            return _fault(known, message, wait, doubt=0)
        if status is None and self.status is not None:
            found = self.status.search(message)
            status = int(found[1]) if found else None
        if status is not None:
            return _fault(kind_of_status(status), message, wait, doubt=1)
        said = next((kind for words, kind in self.sentences.items() if words in message), None)
        return _fault(said or self.otherwise, message, wait, doubt=3 if said is None else 2)

    def ended(self, exit_code: int | None, signal: int | None, stdout: str, stderr: str) -> EngineFault:
        """Why a process that ended without its last word did so; the texts are the ends of its output."""
        lines = [line for line in stderr.splitlines() if line.strip()] or ["it said nothing on stderr"]
        for refusal in self.refusals if signal is None else ():  # what dies has begun, and its tools write there, too
            named = [line for line in lines if any(words in line for words in refusal.words)]
            if named or (stderr.strip() and exit_code is not None and exit_code == refusal.exit_code):
                said = (named or lines)[0].strip()
                return EngineFault(refusal.kind, f"{self.cli} {refusal.said}: {said}", hint=refusal.hint)
        last = lines[-1].strip()
        if signal is not None:
            return EngineFault("crash", f"{self.cli} was ended by signal {signal} before it answered: {last}")
        if exit_code:
            return EngineFault("crash", f"{self.cli} exited with {exit_code} before it answered: {last}")
        printed = f"no {self.last_word}" if stdout.strip() else "nothing"
        return EngineFault("output", f"{self.cli} exited with 0 and printed {printed}: {last}")


def _fault(kind: ErrorKind, message: str, retry_after: float | None, *, doubt: int) -> EngineFault:
    return EngineFault(kind, message, hint=_HINTS.get(kind, ""), retry_after=retry_after, doubt=doubt)


def surer(last: EngineFault, earlier: EngineFault | None) -> EngineFault:
    """Of two faults that tell of one failure the one whose kind is less in doubt, else the last."""
    return earlier if earlier is not None and earlier.doubt < last.doubt else last


def with_reset(fault: EngineFault, retried: EngineFault | None, resets_at: float | None) -> EngineFault:
    """The fault with what the CLI told elsewhere of when to come back: in its last retry, or of the account's limit."""
    if fault.kind not in ("rate_limit", "overloaded"):
        return fault
    asked = fault.retry_after
    if asked is None and retried is not None and retried.kind == fault.kind:
        asked = retried.retry_after
    return replace(fault, retry_after=asked, resets_at=resets_at if fault.kind == "rate_limit" else None)


def seconds_in(sentence: str) -> float | None:
    """The pause for which a sentence asks, as in `Please try again in 6m0s`; None where it asks for none."""
    asked = _WAIT.search(sentence)
    if asked is None:
        return None
    return sum(float(number) * _UNITS[unit.lower()] for number, unit in _PART.findall(asked[1]))


def amount(value: Any) -> float | None:
    """A number out of an event, where it is one that a time or a share can be; else None."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if 0 <= value <= _LATEST else None


def seconds_of(milliseconds: Any) -> float | None:
    """The seconds of a time in milliseconds out of an event, where it is one."""
    given = amount(milliseconds)
    return None if given is None else given / 1000


CLAUDE_CODE: Final = FaultTable(
    cli="Claude Code",
    last_word="result event",
    classes=MappingProxyType[str, ErrorKind](
        {
            "authentication_failed": "auth",
            "oauth_org_not_allowed": "auth",
            "billing_error": "quota",
            "rate_limit": "rate_limit",
            "overloaded": "overloaded",
            "model_not_found": "request",
            "invalid_request": "request",
            "max_output_tokens": "request",
        }
    ),
    sentences=MappingProxyType[str, ErrorKind](
        {"timed out": "timeout", "Failed to parse JSON": "output", "No conversation found": "session"}
    ),
    refusals=(Refusal("session", "refused the session", words=("Session ID", "No conversation found")),),
)
"""Measured on 2.1.197; `server_error` and `unknown` are its words for anything, a refused connection included."""

CODEX: Final = FaultTable(
    cli="Codex",
    last_word="terminal event",
    classes=_NOTHING,
    sentences=MappingProxyType[str, ErrorKind](
        {
            "Quota exceeded": "quota",
            "hit your usage limit": "quota",
            "out of credits": "quota",
            "spend cap": "quota",
            "rate limit exceeded": "rate_limit",
            "high demand": "overloaded",
            "at capacity": "overloaded",
            "Missing environment variable": "auth",
            "idle timeout": "timeout",
            "context window": "request",
            "does not exist": "request",
            '"error"': "request",  # the raw body of a refused request
        }
    ),
    status=re.compile(r"(?:unexpected|last) status:? (\d{3})"),
    refusals=(
        Refusal("session", "refused the session", words=("no rollout found", "active writer", "thread not found")),
        Refusal("auth", "has no credential", words=("Missing environment variable",)),
        Refusal("setup", "does not work in this folder", words=("Not inside a trusted directory",)),
    ),
)
"""Measured on 0.169.0; it gives sentences and no classes, and no Retry-After but where the provider's text has it."""

BUILTIN: Final = FaultTable(
    cli="the built-in agent",
    last_word="end event",
    classes=MappingProxyType[str, ErrorKind](
        {
            "auth": "auth",
            "quota": "quota",
            "request": "request",
            "rate_limit": "rate_limit",
            "overloaded": "overloaded",
            "server_error": "overloaded",
            "network": "network",
            "output": "output",
            "malformed": "output",
            "session": "session",
            "setup": "setup",
            "environment": "environment",
            "internal": "internal",
        }
    ),
    sentences=_NOTHING,
    refusals=(
        Refusal(
            "setup",
            "was called wrongly",
            exit_code=2,
            hint="pass the address by `env`, or as `model: {base_url: …}`",
        ),
    ),
    otherwise="crash",
)
"""docs/builtin-agent.md; the words of its `retry` events and of its `end` event."""
