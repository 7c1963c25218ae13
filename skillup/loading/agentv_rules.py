"""AgentV's assertions that need no model, as rules of ours."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from skillup.loading.spelling import closest
from skillup.spec.agentv_rules import (
    AgentVField,
    AgentVGrader,
    ArgsMatch,
    Cost,
    ExecutionMetrics,
    ExpectedCall,
    FieldAccuracy,
    IsJson,
    Latency,
    OneText,
    Regex,
    SeveralTexts,
    SkillTrigger,
    TokenUsage,
    ToolTrajectory,
    WholeText,
)
from skillup.spec.problems import quoted

_JSON_TYPES = ["object", "array", "string", "number", "boolean", "null"]


class UntranslatableError(Exception):
    """(message, hint, place below the assertion…): an assertion that means nothing where it stands."""


def rules_of(written: AgentVGrader) -> Iterator[dict[str, Any]]:
    """The rules that a deterministic grader amounts to; with several its score is the share that holds."""
    match written:
        case OneText():
            yield _contains(written.type, "all", [written.value])
        case SeveralTexts():
            yield _contains(written.type, written.type.rpartition("-")[2], list(written.value))
        case WholeText(type="equals"):
            yield {"output_equals": {"text": written.value}}
        case WholeText():
            text = re.escape(written.value.strip())
            pattern = rf"\A\s*{text}" if written.type == "starts-with" else rf"{text}\s*\z"
            yield {"output_matches": {"all": [pattern], "ignore_case": False}}
        case Regex():
            yield {"output_matches": {"all": [written.pattern], "ignore_case": False}}
        case IsJson():
            yield {"json_schema": {"schema": {"type": _JSON_TYPES}}}
        case ToolTrajectory():
            yield from _trajectory(written)
        case SkillTrigger():
            yield {"skill_used": {"name": written.skill, "used": written.should_trigger}}
        case _:
            yield from _limits(written)


def _contains(kind: str, how: str, texts: list[str]) -> dict[str, Any]:
    return {"output_contains": {how: texts, "ignore_case": kind.startswith("icontains")}}


def _trajectory(written: ToolTrajectory) -> Iterator[dict[str, Any]]:
    for tool, count in written.minimums.items():
        yield {"tool_called": {"name": tool, "count": {"min": count}}}
    if not written.expected:
        return
    _check_names(written)
    steps = [_step(call, call.args_match or written.args_match, index) for index, call in enumerate(written.expected)]
    if written.mode == "subset":
        names = dict.fromkeys(step["name"] for step in steps if "args" not in step)
        with_args = [step for step in steps if "args" in step]
        yield {"tools_only": {"names": list(names), **({"calls": with_args} if with_args else {})}}
    else:
        yield {"tool_order": {"order": steps, "mode": "any_order" if written.mode == "superset" else written.mode}}


def _step(call: ExpectedCall, how: ArgsMatch, index: int) -> dict[str, Any]:
    """One expected call. Arguments stand for themselves there, and no pattern can be meant."""
    args = call.args
    if args != "any" and not isinstance(how, str):
        args = _chosen(args, how) or "any"
    if args == "any" or how == "ignore":
        return {"name": call.tool}
    if _has_pattern(args):
        message = "a mapping with `matches` alone is a pattern here, and these arguments are meant as they are"
        raise UntranslatableError(message, "list the other arguments in `args_match`", "expected", index, "args")
    match = {"exact": "exact", "subset": "within"}.get(how) if isinstance(how, str) else None
    return {"name": call.tool, "args": args, **({"args_match": match} if match else {})}


def _check_names(written: ToolTrajectory) -> None:
    """Refuses an argument in a list of `args_match` that no call has for which the list stands."""
    lists: list[tuple[ArgsMatch | None, Sequence[ExpectedCall], tuple[str | int, ...]]] = [
        (written.args_match, [call for call in written.expected if not call.args_match], ())
    ]
    lists += [(call.args_match, [call], ("expected", index)) for index, call in enumerate(written.expected)]
    for names, calls, at in lists:
        known = dict.fromkeys(path for call in calls if call.args != "any" for path in _paths(call.args))
        for index, name in enumerate(names if calls and isinstance(names, tuple) else ()):
            if name not in known:
                meant = closest(name, known)
                hint = f"did you mean {quoted(meant)}?" if meant else f"known here: {', '.join(known) or 'none'}"
                message = f"no expected call has the argument {quoted(name)}, so nothing could be compared"
                raise UntranslatableError(message, hint, *at, "args_match", index)


def _paths(args: dict[str, Any]) -> Iterator[str]:
    """The names of arguments, and the dotted paths of those inside them."""
    for name, value in args.items():
        yield name
        if isinstance(value, dict):
            yield from (f"{name}.{inner}" for inner in _paths(value))


def _chosen(args: dict[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """Those arguments that are named, by dotted paths; what is not expected is not compared."""
    chosen: dict[str, Any] = {}
    for name in names:
        *above, last = [name] if name in args else name.split(".")
        source: Any = args
        for key in above:
            source = source.get(key) if isinstance(source, dict) else None
        if isinstance(source, dict) and last in source:
            target = chosen
            for key in above:
                target = target.setdefault(key, {})
            target[last] = source[last]
    return chosen


def _has_pattern(value: Any) -> bool:
    if isinstance(value, dict):
        lone = set(value) == {"matches"} and isinstance(value["matches"], str)
        return lone or any(map(_has_pattern, value.values()))
    return isinstance(value, list) and any(map(_has_pattern, value))


def fields_rule(written: FieldAccuracy, reference: str) -> dict[str, Any]:
    """The fields with what the reference answer says of each.

    Raises:
        UntranslatableError: there is no such reference, or a field that it has not.
    """
    try:
        data = json.loads(reference) if reference else None
    except (ValueError, RecursionError) as error:
        raise UntranslatableError(
            f"the turn's `expected_output` is not JSON: {error}", "write it as a mapping"
        ) from None
    if not isinstance(data, (dict, list)):
        raise UntranslatableError("the fields are compared with nothing", "give the turn an `expected_output` in JSON")
    fields = [_field(field, data, index) for index, field in enumerate(written.fields)]
    return {"json_fields": {"fields": fields, "partial": written.aggregation == "weighted_average"}}


def _field(field: AgentVField, data: Any, index: int) -> dict[str, Any]:
    path = "$"
    for part in filter(None, re.split(r"[.\[\]]", field.path)):
        known = data.keys() if isinstance(data, dict) else ()
        if isinstance(data, list) and part.isascii() and part.isdigit() and int(part) < len(data):
            path, data = f"{path}[{int(part)}]", data[int(part)]
        elif part in known and not set(part) & set("'\\"):
            path, data = f"{path}['{part}']", data[part]
        else:
            meant = closest(part, known)
            hint = f"did you mean {quoted(meant)}?" if meant else f"it has {', '.join(known) or 'nothing there'}"
            message = f"the turn's `expected_output` has no {quoted(field.path)}, so nothing could be compared"
            raise UntranslatableError(message, hint, "fields", index, "path")
    match = {"numeric_tolerance": "number"}.get(field.match, field.match)
    own = {"tolerance": field.tolerance, "relative": field.relative, "formats": field.formats or None}
    given = {key: value for key, value in own.items() if value is not None}
    wanted = {"path": path, "equals": data, "match": match, "optional": not field.required, "weight": field.weight}
    return {**wanted, **given}


def _limits(written: AgentVGrader) -> Iterator[dict[str, Any]]:
    match written:
        case Latency():
            yield {"max_seconds": written.threshold / 1000}
        case Cost():
            yield {"max_cost_usd": written.budget}
        case TokenUsage():
            for of in ("total", "input", "output"):
                most = getattr(written, f"max_{of}")
                if most is not None:
                    yield {"max_tokens": {"max": most, "of": of}}
        case ExecutionMetrics():
            seconds = None if written.max_duration_ms is None else written.max_duration_ms / 1000
            limits = {
                "max_tool_calls": written.max_tool_calls,
                "max_tokens": written.max_tokens,
                "max_cost_usd": written.max_cost_usd,
                "max_seconds": seconds,
            }
            yield from ({name: most} for name, most in limits.items() if most is not None)
