"""The rule on skills: whether the agent used one that the suite installs."""

from __future__ import annotations

from typing import Any, Self

from pydantic import model_validator

from skillup.spec.problems import fault_at
from skillup.spec.rules import Count, Rule
from skillup.spec.values import Flag, Words


class SkillUsed(Rule):
    """The agent used a skill, as often as `count` says (default: at least once); with `used: false` it never did."""

    kind = "skill_used"
    name: Words
    used: Flag = True
    count: Count = Count(min=1, max=None)

    @model_validator(mode="before")
    @classmethod
    def _bare_name(cls, value: Any) -> Any:
        if isinstance(value, str):
            return {"name": value}
        if isinstance(value, dict) and value.get("count") == 0 and value.get("count") is not False:
            raise fault_at("a count of 0 asks for absence", "count", hint="write `used: false`")
        return value

    @model_validator(mode="after")
    def _one_question(self) -> Self:
        if not self.used and "count" in self.model_fields_set:
            raise fault_at("`used: false` leaves nothing to count", "count", hint="remove one of the two")
        return self

    @property
    def forbids(self) -> bool:
        return not self.used or self.count.min == 0
