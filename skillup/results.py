"""What we write: the record of a trial, its verdict, and the results made from both.

    TrialRecord   what happened: turns, transcript, workspace changes, failures     record.json
    Verdict       what it means: status, reason, every check with evidence          grading.json
    TrialResult   both, in the names of the public format                           result.json of a trial
    RunResult     all trials of a run                                               result.json of a run

Field names follow the public skill-up result format (docs/results.md); extra keys are ours. Records are masked
before they are written, and the judge reads nothing else.
"""

from __future__ import annotations

from typing import Any, Literal

from skillup.errors import ErrorKind, Phase, TrialError
from skillup.transcript import Message, Usage, Value

SCHEMA_VERSION = "skillup/1"
"""Version of every file that we write; a reader refuses what it does not know."""

Status = Literal["PASS", "FAIL", "ERROR", "SKIP", "UNCHECKED"]
TurnStatus = Literal["completed", "timed_out", "limit", "failed", "skipped", "error"]
CheckState = Literal["met", "not_met", "unknown"]
UnknownCause = Literal["skip_gate", "not_reached", "incomplete", "unobservable", "judging"]
CheckRole = Literal["gate", "expect", "success", "failure"]
Scope = Literal["turn", "conversation", "workspace"]
Continuity = Literal["resumed", "live", "history", "single_shot_fallback"]
Variant = Literal["with_skill", "without_skill"]


class Failure(Value):
    """One fault of ours, of the machine or of the provider; never the agent's doing."""

    kind: ErrorKind
    phase: Phase
    message: str
    turn: int | None = None
    hint: str = ""
    tail: str = ""
    retry_after: float | None = None

    @classmethod
    def of(cls, error: TrialError) -> Failure:
        """The failure that an exception describes."""
        return cls(
            kind=error.kind,
            phase=error.phase,
            message=error.message,
            turn=error.turn,
            hint=error.hint,
            tail=error.tail,
            retry_after=error.retry_after,
        )


class GateRecord(Value):
    """How a turn's `post_condition` ended: `met` or `not_met`, with what decided it."""

    state: CheckState
    on_fail: Literal["fail", "skip_remaining"]
    evidence: str


class CaptureRecord(Value):
    """A value taken out of a turn; `defaulted` when the pattern found nothing and the default was used."""

    variable: str
    value: str
    defaulted: bool = False


class Changes(Value):
    """Paths that a turn created, changed and deleted, relative to the workspace and sorted."""

    created: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()


class ModelTraffic(Value):
    """What the loopback model saw of one turn; `unmatched` are requests that no entry of the script answered."""

    requests: int
    faults: tuple[str, ...] = ()
    unmatched: tuple[str, ...] = ()


class TurnRecord(Value):
    """One turn that was tried, or skipped.

    `content` is the message as sent; `response` the agent's answer, None when it gave none. `limit` names the limit
    that cut the turn. `notes` says what was out of the ordinary (`retried`, `fallback`, `unfinished_background`, …).
    """

    number: int
    content: str
    status: TurnStatus
    response: str | None = None
    reason: str = ""
    limit: str | None = None
    session_id: str | None = None
    gate: GateRecord | None = None
    captures: tuple[CaptureRecord, ...] = ()
    messages: tuple[Message, ...] = ()
    usage: Usage = Usage()
    duration_ms: int = 0
    cpu_seconds: float | None = None
    exit_code: int | None = None
    signal: int | None = None
    policy: dict[str, str] = {}
    changes: Changes | None = None
    notes: tuple[str, ...] = ()
    unfinished_background: tuple[str, ...] = ()
    model_traffic: ModelTraffic | None = None


class Ending(Value):
    """How the conversation of a trial ended.

    `gate_failed`, `gate_skipped`, `capture_failed`, `capture_skipped`, `limit` and `error` name the `turn`; `limit`
    also the limit (`turn_seconds`, `case_seconds`, `steps`) and what the case wants done about it. `unmet` is a
    `requires:` that this agent does not meet.
    """

    how: Literal[
        "completed",
        "gate_failed",
        "gate_skipped",
        "capture_failed",
        "capture_skipped",
        "limit",
        "error",
        "unmet",
    ]
    turn: int | None = None
    limit: str | None = None
    on_limit: Literal["fail", "judge"] = "fail"
    reason: str = ""


class AgentIdentity(Value):
    """What played the agent: enough to compare two runs field by field."""

    name: str
    engine: str
    model: str | None
    provider: str | None
    base_url: str | None
    engine_version: str | None
    settings: dict[str, Any]
    permissions: str
    environment_names: tuple[str, ...]
    source: str


class TrialRecord(Value):
    """Everything that happened in one trial; the judge reads this, the snapshots and the case, and nothing else.

    `hidden_tools` are canonical tools whose calls the engine's stream cannot show.
    """

    schema_version: str = SCHEMA_VERSION
    case_id: str
    title: str
    configuration: Variant
    trial: int
    attempt: int
    agent: AgentIdentity
    continuity: Continuity
    execution_mode: Literal["multi_turn", "single_turn", "single_shot_fallback"]
    skills: tuple[str, ...]
    started_at: str
    duration_ms: int
    setup_ms: int
    ending: Ending
    turns: tuple[TurnRecord, ...]
    turns_total: int
    session_ids: tuple[str, ...]
    failures: tuple[Failure, ...]
    hidden_tools: tuple[str, ...] = ()


class Check(Value):
    """One check with its outcome; `cause` says why an `unknown` is unknown.

    `forbids` marks a check that is met by absence, so that a violation before an error is kept.
    """

    id: str
    role: CheckRole
    text: str
    state: CheckState
    evidence: str
    turn: int | str | None = None
    cause: UnknownCause | None = None
    scope: Scope = "turn"
    forbids: bool = False


class Assertion(Value):
    """A check as reports show it. `passed` is what the public format knows; `state` is the whole truth."""

    text: str
    passed: bool
    evidence: str
    id: str
    role: CheckRole
    state: CheckState
    scope: Scope
    turn: int | str | None = None
    skipped: bool = False
    cause: UnknownCause | None = None
    score: float | None = None
    reasoning: str | None = None


class Summary(Value):
    """Counts over a verdict's assertions; `pass_rate` is None when there is nothing to count."""

    passed: int
    failed: int
    unknown: int
    total: int
    pass_rate: float | None


class Verdict(Value):
    """What a trial means. `reason` is one sentence; `code` the short machine word (`gate`, `limit/turn_seconds`, …)."""

    schema_version: str = SCHEMA_VERSION
    status: Status
    code: str
    reason: str
    assertion_results: tuple[Assertion, ...]
    summary: Summary
    error: Failure | None = None
    violations_before_error: tuple[str, ...] = ()
    turns_executed: int
    turns_total: int


class TurnResult(Value):
    """A turn in the names of the public format, with our extra keys."""

    turn_number: int
    content: str
    response: str | None
    status: TurnStatus
    reason: str
    session_id: str | None
    gate: GateRecord | None
    captures: tuple[CaptureRecord, ...]
    duration_ms: int
    usage: Usage
    tool_calls: tuple[str, ...]
    workspace: Changes | None
    notes: tuple[str, ...]
    unfinished_background: tuple[str, ...]


class TrialResult(Value):
    """One entry of `case_results`: a trial and its verdict."""

    schema_version: str = SCHEMA_VERSION
    case_id: str
    title: str
    status: Status
    configuration: Variant
    agent: AgentIdentity
    trial: int
    attempts: int
    duration_ms: int
    turns: int
    input_tokens: int | None
    output_tokens: int | None
    usage: Usage
    cost_usd: float | None
    continuity: Continuity
    execution_mode: str
    session_ids: tuple[str, ...]
    prompt: str
    response: str | None
    turn_results: tuple[TurnResult, ...]
    grading: Verdict
    error: Failure | None
    failures: tuple[Failure, ...]
    folder: str


class Totals(Value):
    """Trials by status, and the rates over valid trials (PASS + FAIL) and over all (valid + ERROR)."""

    passed: int
    failed: int
    errors: int
    skipped: int
    unchecked: int
    valid: int
    pass_rate_valid: float | None
    pass_rate_all: float | None


class RunResult(Value):
    """All trials of one run."""

    schema_version: str = SCHEMA_VERSION
    run_id: str
    status: Literal["finished", "interrupted", "running"]
    suite: str
    skillup_version: str
    engine_name: str
    model_name: str
    start_time: str
    end_time: str | None
    total_tokens: int | None
    totals: Totals
    case_results: tuple[TrialResult, ...]
