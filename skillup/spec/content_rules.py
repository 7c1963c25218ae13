"""Rules on whole contents: patterns in a file, a file or an answer that must be exactly what the suite says."""

from __future__ import annotations

from typing import Any, Self

from pydantic import Field, model_validator

from skillup.spec.problems import fault_at
from skillup.spec.rules import OneFile, Rule, refuse_contradiction
from skillup.spec.values import Flag, Pattern, Spec, Words


class SuiteText(Spec):
    """A text that a case is held against: written here, or the file of the suite that holds it.

    A text alone is the file's path, relative to the suite's root. Loading fills in `text`, so that a saved trial holds
    all that it is judged by, and what is judged later is the same.
    """

    path: Words | None = None
    text: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _bare_path(cls, value: Any) -> Any:
        return {"path": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _something(self) -> Self:
        if self.path is None and self.text is None:
            raise fault_at("there is nothing to compare with", hint="give the `path` of a file of the suite, or `text`")
        return self

    @property
    def content(self) -> str:
        """The text itself; only what was loaded has it."""
        assert self.text is not None, f"{self.path} was not loaded"  # noqa: S101 - loading fills it in or fails
        return self.text


class FileMatches(OneFile):
    """RE2 patterns in one file of the workspace; `pattern` is one more of `all`."""

    kind = "file_matches"
    pattern: Pattern | None = None
    all_: tuple[Pattern, ...] = Field((), alias="all")
    any_: tuple[Pattern, ...] = Field((), alias="any")
    not_: tuple[Pattern, ...] = Field((), alias="not")
    ignore_case: Flag | None = None

    @model_validator(mode="after")
    def _not_empty(self) -> Self:
        if not (self.pattern or self.all_ or self.any_ or self.not_):
            raise fault_at("the rule checks nothing", hint="give `pattern`, or at least one of all, any, not")
        required, _, forbidden = self.parts
        refuse_contradiction(required, forbidden, "not")
        return self

    @property
    def parts(self) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
        """All-of, any-of and none-of patterns."""
        pattern = (self.pattern,) if self.pattern else ()
        return pattern + self.all_, self.any_, self.not_


class FileEquals(OneFile):
    """One file of the workspace holds exactly this; `trim` leaves blanks at both ends out."""

    kind = "file_equals"
    content: str | None = None
    file: SuiteText | None = None
    trim: Flag = False

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if (self.content is None) == (self.file is None):
            raise fault_at("the rule needs one content to compare with", hint="give `content`, or `file` of the suite")
        return self

    @property
    def expected(self) -> str:
        """What the file must hold."""
        return self.content if self.file is None else self.file.content  # type: ignore[return-value] # one is there


class OutputEquals(Rule):
    """The answer is exactly this, blanks at both ends left out."""

    kind = "output_equals"
    text: str | None = None
    file: SuiteText | None = None

    @model_validator(mode="before")
    @classmethod
    def _bare_text(cls, value: Any) -> Any:
        return {"text": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if (self.text is None) == (self.file is None):
            raise fault_at("the rule needs one text to compare with", hint="give `text`, or `file` of the suite")
        if self.text is not None and not self.text.strip():
            raise fault_at("an answer that is empty says nothing about an agent", hint="write the answer")
        return self

    @property
    def expected(self) -> str:
        """What the answer must be."""
        return self.text if self.file is None else self.file.content  # type: ignore[return-value] # one is there
