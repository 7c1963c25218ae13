"""What a model is asked about a trial: criteria, and how much of the trial it is shown."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Final, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, StrictInt, model_validator

from skillup.spec.problems import fault_at, quoted
from skillup.spec.values import Flag, Spec, Text, Whole, Words, number

MAX_CRITERIA = 50
"""More than any model answers with care in one reply."""

_ID_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")


def _criterion_id(text: str) -> str:
    if not text or len(text) > 64 or not set(text) <= _ID_CHARACTERS:
        raise fault_at(f"{quoted(text)} cannot be an id", hint="use letters, digits, `.`, `_` and `-`, at most 64")
    return text


CriterionId = Annotated[str, AfterValidator(_criterion_id)]
BuiltIn = Literal["instruction_retention", "inference_memory", "versioned_editing", "self_coherence"]

BUILT_IN: Final[Mapping[BuiltIn, str]] = MappingProxyType(
    {
        "instruction_retention": "Every instruction that the user gave for the rest of the conversation is followed in "
        "each later turn, until the user takes it back.",
        "inference_memory": "Where a later turn depends on something that the user said or implied in an earlier one, "
        "the agent draws on it without being told again, and gets it right.",
        "versioned_editing": "When the user asks to change an earlier result, the agent changes what was asked for in "
        "the version that the user means, and keeps the rest as it was.",
        "self_coherence": "Nothing that the agent says contradicts what it said or did before, unless it says that it "
        "corrects itself.",
    }
)
"""Criteria about whole conversations that many cases need, by name."""

Weight = Annotated[float, BeforeValidator(number), Field(ge=0, le=1_000_000, allow_inf_nan=False)]


class Criterion(Spec):
    """One statement that a model judges. A text alone is a criterion with an id by its place.

    It is about the whole conversation, its last `window` turns, or one `turn`; with both it is about the turn, and the
    judge is shown the last `window` turns up to it. A `scored` one is answered with 1 to
    10 instead of yes or no; a `builtin` one has its text from `BUILT_IN`.
    """

    id: CriterionId
    text: Words
    builtin: BuiltIn | None = None
    weight: Weight = 1.0
    required: Flag = False
    scored: Flag = False
    scope: Literal["conversation", "turn"] | None = None
    turn: Annotated[StrictInt, Field(ge=1)] | None = None
    window: Annotated[StrictInt, Field(ge=1)] | None = None

    @model_validator(mode="after")
    def _one_scope(self) -> Self:
        if self.scope == "turn" and self.turn is None:
            raise fault_at("`scope: turn` does not say which turn", "scope", hint="write `turn: N`")
        if self.scope == "conversation" and self.turn is not None:
            raise fault_at("`turn` and `scope: conversation` contradict each other", "turn", hint="keep one of them")
        return self


def with_ids(criteria: Any) -> Any:
    """Criteria as they were written, texts as mappings, each with an id: its own, or `criterion-N` by its place.

    A built-in one gets its text, and its name as the id.
    """
    if not isinstance(criteria, list):
        return criteria
    whole = []
    for place, one in enumerate(criteria, start=1):
        written = {"text": one} if isinstance(one, str) else one
        if isinstance(written, dict):
            name = written.get("builtin")
            known = next((text for builtin, text in BUILT_IN.items() if builtin == name), None)
            own = {"id": name, "text": known} if known else {"text": "?"} if "builtin" in written else {}
            written = {"id": f"criterion-{place}", **own, **written}
        whole.append(written)
    return whole


def refuse_useless(criteria: tuple[Criterion, ...]) -> None:
    """Raises a fault where two criteria share an id, or where no answer could change the score."""
    if len(criteria) > MAX_CRITERIA:
        raise fault_at(f"{len(criteria)} criteria, and no model answers more than {MAX_CRITERIA}", "criteria")
    seen: dict[str, int] = {}
    for index, criterion in enumerate(criteria):
        if criterion.id in seen:
            raise fault_at(
                f"the id {criterion.id} is taken by criterion {seen[criterion.id] + 1}",
                "criteria",
                index,
                hint="answers are told apart by the id: give each its own",
            )
        seen[criterion.id] = index
    if criteria and not sum(criterion.weight for criterion in criteria):
        raise fault_at(
            "the weights sum to 0, so no answer could change the score", "criteria", hint="weigh one of them"
        )


Mode = Literal["include", "omit", "truncate", "file_ref"]
"""How a part of the trial is shown. A judge that opens no files gets what `file_ref` would lead to."""


class ContextLimits(Spec):
    """Bounds of what the judge is shown; 0 is none of its own."""

    max_bytes: Annotated[Whole, Field(ge=0)] | None = None
    transcript_max_turns: Annotated[Whole, Field(ge=0)] | None = None
    workspace_diff_max_lines: Annotated[Whole, Field(ge=0)] | None = None


class Attachment(Spec):
    """A text of the suite's for the judge alone, such as a style guide: a `path`, or the `text` itself.

    Loading reads the file, so that a saved case holds all that judging needs. One with a `turn` goes beside the
    criteria about that turn alone.
    """

    path: Words | None = None
    label: Words | None = None
    turn: Annotated[StrictInt, Field(ge=1)] | None = None
    text: Text | None = None

    @model_validator(mode="before")
    @classmethod
    def _path_alone(cls, value: Any) -> Any:
        return {"path": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _something(self) -> Self:
        if self.path is None and self.text is None:
            raise fault_at("the attachment holds nothing", hint="give a `path`, or a `label` and a `text`")
        return self


class JudgeSkill(Spec):
    """A skill for the judge alone: the text of its SKILL.md, read when the case is loaded."""

    later_values: ClassVar[Mapping[str, frozenset[str]]] = MappingProxyType({"source": frozenset({"registry"})})

    source: Literal["local_path"] = "local_path"
    path: Words
    text: Text | None = None

    @model_validator(mode="before")
    @classmethod
    def _path_alone(cls, value: Any) -> Any:
        return {"path": value} if isinstance(value, str) else value


class JudgeContext(Spec):
    """What of the trial the judge is shown; a profile's word alone is that profile."""

    profile: Literal["standard", "minimal"] = "standard"
    final_message: Mode | None = None
    transcript: Mode | None = None
    workspace_diff: Mode | None = None
    generated_files: Literal["omit", "index", "include"] | None = None
    limits: ContextLimits = ContextLimits()
    attachments: tuple[Attachment, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _word(cls, value: Any) -> Any:
        return {"profile": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _shows_something(self) -> Self:
        shown = [self.mode(name) for name in ("final_message", "transcript", "workspace_diff")]
        if all(mode == "omit" for mode in shown) and self.files == "omit":
            raise fault_at("the judge would be shown nothing of the trial", hint="include one part of it")
        return self

    def mode(self, part: Literal["final_message", "transcript", "workspace_diff"]) -> Mode:
        """How a part is shown: as written, else by the profile."""
        written: Mode | None = getattr(self, part)
        if written is not None:
            return written
        if self.profile == "standard":
            return "include"
        return "truncate" if part == "final_message" else "omit"

    @property
    def files(self) -> Literal["omit", "index", "include"]:
        """How the files of the workspace at the end are shown."""
        return self.generated_files or ("index" if self.profile == "standard" else "omit")
