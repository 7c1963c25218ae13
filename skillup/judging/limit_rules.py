"""`max_tokens`, `max_cost_usd`, `max_seconds`: what is over is not met, what is not known is unknown."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from skillup.judging.evidence import Evidence
from skillup.judging.outcome import Outcome, together
from skillup.results import TurnRecord
from skillup.spec.limit_rules import MaxCostUsd, MaxSeconds, MaxTokens

_Figure = Callable[[TurnRecord], float | None]


def tokens(rule: MaxTokens, evidence: Evidence) -> Outcome:
    """Not more tokens than allowed."""
    name = f"{rule.of}_tokens"
    what = "tokens" if rule.of == "total" else f"{rule.of} tokens"
    return _within(rule, evidence, lambda turn: getattr(turn.usage, name), lambda figure: f"{figure:,.0f} {what}")


def cost(rule: MaxCostUsd, evidence: Evidence) -> Outcome:
    """Not more money than allowed."""
    return _within(rule, evidence, lambda turn: turn.usage.cost_usd, lambda figure: f"${figure:.4f}")


def seconds(rule: MaxSeconds, evidence: Evidence) -> Outcome:
    """Not more time at work than allowed."""
    return _within(rule, evidence, lambda turn: turn.duration_ms / 1000, lambda figure: f"{figure:.1f} s")


def _within(
    rule: MaxTokens | MaxCostUsd | MaxSeconds, evidence: Evidence, figure: _Figure, say: Callable[[float], str]
) -> Outcome:
    turns = evidence.named_by(rule)
    if isinstance(turns, Outcome):
        return turns
    groups: list[Sequence[TurnRecord]] = [(turn,) for turn in turns] if rule.turn == "any" else [turns]
    return together([_sum(group, float(rule.max), evidence, figure, say) for group in groups])


def _sum(
    turns: Sequence[TurnRecord], most: float, evidence: Evidence, figure: _Figure, say: Callable[[float], str]
) -> Outcome:
    """What is known of several turns against the limit; one unknown figure is enough not to know that it is kept."""
    known = [(turn, value) for turn in turns if (value := figure(turn)) is not None]
    total = sum(value for _, value in known)
    said = f"{say(total)}, at most {say(most)} allowed"
    if total > most:
        return Outcome("not_met", said, forbidden=True)
    missing = [turn for turn in turns if figure(turn) is None]
    whole = [turn for turn in missing if evidence.complete(turn)]
    if whole:
        engine = evidence.record.agent.engine
        said = f"{engine} did not say what turn {whole[0].number} used; the other turns: {say(total)}"
        return Outcome("unknown", said if known else f"{engine} did not say what was used", "unobservable")
    if missing or not evidence.all_complete(turns):
        return Outcome("unknown", f"{said} so far; but the turn was cut", "incomplete")
    return Outcome("met", said)
