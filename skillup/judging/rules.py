"""Every rule's evaluator, by the rule's `kind`.

Three-valued throughout: what exists is judged whatever the turn's status; absence is met only where the turn came to
its end and the engine can show what the rule asks about; everything else is `unknown`, with the cause.

Adding a rule: a function from the rule and the evidence to an `Outcome`, and its line below.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from skillup.judging.change_rules import changed
from skillup.judging.command_rules import held
from skillup.judging.course_rules import no_loops, not_too_many, nothing, only_these, tried_on
from skillup.judging.evidence import Evidence
from skillup.judging.field_rules import fields
from skillup.judging.file_rules import contains, exist, not_exist
from skillup.judging.file_rules import equals as file_equals
from skillup.judging.json_rules import at_path, of_shape
from skillup.judging.limit_rules import cost, seconds, tokens
from skillup.judging.milestone_rules import stopped_after
from skillup.judging.order_rules import in_order
from skillup.judging.outcome import Outcome, bounded
from skillup.judging.question_rules import asked
from skillup.judging.skill_rules import used
from skillup.judging.text_rules import answers
from skillup.judging.text_rules import equals as answer_equals
from skillup.judging.tool_rules import called, not_called
from skillup.spec.rules import Rule

EVALUATORS: Mapping[str, Callable[[Any, Evidence], Outcome]] = MappingProxyType(
    {
        "output_contains": answers,
        "output_matches": answers,
        "output_equals": answer_equals,
        "tool_called": called,
        "tool_not_called": not_called,
        "tool_order": in_order,
        "tools_only": only_these,
        "max_tool_calls": not_too_many,
        "no_repeated_calls": no_loops,
        "no_premature_stop": tried_on,
        "max_calls_after": stopped_after,
        "nothing_to_check": nothing,
        "asked_user": asked,
        "max_tokens": tokens,
        "max_cost_usd": cost,
        "max_seconds": seconds,
        "files_exist": exist,
        "files_not_exist": not_exist,
        "file_contains": contains,
        "file_matches": contains,
        "file_equals": file_equals,
        "json_path": at_path,
        "json_schema": of_shape,
        "json_fields": fields,
        "workspace_changed": changed,
        "skill_used": used,
        "command": held,
    }
)


def evaluate(rule: Rule, evidence: Evidence) -> Outcome:
    """The outcome of one rule on one trial; its evidence is printable and no longer than a screenful."""
    outcome = EVALUATORS[rule.kind](rule, evidence)
    return replace(outcome, evidence=bounded(outcome.evidence))
