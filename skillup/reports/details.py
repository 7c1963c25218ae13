"""What `-v` and `-vv` print of a trial: every check with its evidence, every turn with what was said and done."""

from __future__ import annotations

from collections import Counter

from rich.console import Console
from rich.text import Text

from skillup.judging.totals import is_fallback
from skillup.reports.lines import STYLES, say
from skillup.reports.plain import plain
from skillup.results import Assertion, Judging, TrialResult, TurnResult, Verdict

_LONG = 1000
"""Characters of an answer or a piece of evidence: a screenful; the files have all of it."""

_LABEL = 11
"""Columns of what stands before a text: the widest word and two blanks."""


def details(name: str, result: TrialResult, console: Console, *, turns: bool) -> None:
    """Prints the checks of a trial, under its name, and with `turns` its conversation before them."""
    say(console, Text())
    status = f"{result.status} {result.grading.code}"
    title = Text.assemble((f"{plain(name)} · {plain(result.agent.name)} · ", "bold"), (status, STYLES[result.status]))
    say(console, title)
    if is_fallback(result):
        _say(console, "mode", "single-shot fallback: all turns were sent as one message", "yellow")
    if turns:
        for turn in result.turn_results:
            _turn(turn, console)
    for check in result.grading.assertion_results:
        _check(check, console)
    _judges(result.grading, console)
    if result.error is not None:
        _say(console, "error", f"{result.error.kind}: {result.error.message}", "magenta")
        if result.error.hint:
            _say(console, "→", result.error.hint)
        if result.error.tail:
            _say(console, "it said", result.error.tail, "dim")
    for violation in result.grading.violations_before_error:
        _say(console, "✗ before", violation, "red")
    if result.artifacts:
        _say(console, "artifacts", ", ".join(result.artifacts))
    _say(console, "files", result.folder, "dim")


def _check(check: Assertion, console: Console) -> None:
    mark, style = _mark(check)
    _say(console, f"{mark} {'judged' if check.role in ('criterion', 'evaluator') else check.role}", check.text, style)
    _say(console, "", check.evidence)
    if check.reasoning and check.reasoning not in check.evidence:
        _say(console, "", check.reasoning)


def _judges(verdict: Verdict, console: Console) -> None:
    """Who judged, and what each of several said."""
    if verdict.judging is not None:
        _say(console, "judge", _judge(verdict.judging))
    for one in verdict.judges:
        score = "" if one.score is None else f", score {one.score:.2f}"
        _say(console, "judge", f"{one.id}: {one.status}{score}: {one.reason}", STYLES[one.status])
        if one.judging is not None:
            _say(console, "", _judge(one.judging))


def _judge(judging: Judging) -> str:
    """Which model judged, and what that took; the agent's figures hold none of it."""
    judge, usage = judging.judge, judging.usage
    facts = [f"{judging.calls} call{'' if judging.calls == 1 else 's'}"]
    facts += [f"{usage.total_tokens} tokens"] if usage.total_tokens is not None else []
    facts += [f"${usage.cost_usd:.4f}"] if usage.cost_usd is not None else []
    facts += [f"agreement {judging.agreement:.2f}"] if judging.agreement is not None else []
    facts += judging.notes
    model = judge.answered_by or judge.model
    who = judge.engine or judge.provider
    return f"{who}{f'/{model}' if model else ''}: {', '.join(facts)}"


def _mark(check: Assertion) -> tuple[str, str]:
    """Held, failed, unknown, or a gate that ended the conversation as it was meant to."""
    if check.state == "unknown":
        return "?", "yellow"
    if check.passed:
        return "✓", "green"
    return ("-", "yellow") if check.skipped else ("✗", "red")


def _turn(turn: TurnResult, console: Console) -> None:
    facts: list[str] = [turn.status]
    if turn.status != "skipped":
        facts.append(f"{turn.duration_ms / 1000:.1f} s")
    if turn.usage.total_tokens is not None:
        facts.append(f"{turn.usage.total_tokens} tokens")
    _say(console, f"turn {turn.turn_number}", ", ".join(facts), "bold")
    _say(console, "  user", turn.content)
    if turn.tool_calls:
        counted = Counter(turn.tool_calls)
        _say(console, "  tools", ", ".join(f"{tool} ×{n}" if n > 1 else tool for tool, n in counted.items()))
    if turn.response is not None:
        _say(console, "  agent", turn.response)
    if turn.reason:
        _say(console, "  why", turn.reason)
    if turn.gate is not None:
        _say(console, "  gate", f"{turn.gate.state.replace('_', ' ')}: {turn.gate.evidence}")
    for capture in turn.captures:
        note = " (the default: nothing was found)" if capture.defaulted else ""
        _say(console, "  captured", f"{capture.variable} = {capture.value}{note}")
    if turn.workspace is not None:
        for kind in ("created", "changed", "deleted"):
            paths = getattr(turn.workspace, kind)
            if paths:
                _say(console, f"  {kind}", ", ".join(paths))
    for note in (*turn.notes, *(f"no scripted answer: {request}" for request in turn.unmatched)):
        _say(console, "  note", note, "yellow")


def _say(console: Console, label: str, text: str, style: str = "") -> None:
    say(
        console,
        Text(plain(text, _LONG), style="" if style == "bold" else style),
        indent=2,
        label=Text(label, style=style),
        width=_LABEL,
    )
