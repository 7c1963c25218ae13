"""What we write: the record of a trial, its verdict, and the results made from both.

    RunManifest   what is going to be run, with what, where                         run.json
    JournalEntry  that something began or ended, the moment it did                  a line of journal.jsonl
    SavedTurn     one turn, on disk before the next one starts                      turn-N/turn.json
    TrialRecord   what happened: turns, transcript, workspace changes, failures     record.json
    Criteria      what a model said about the trial's criteria                      criteria.json
    Evaluated     what an evaluator said about the trial                            evaluation.json
    Grading       what it means: status, reason, every check with evidence          grading.json
    Timing        tokens and time                                                   timing.json
    TrialResult   record and verdict, in the names of the public format             result.json of a trial
    TaskResult    a trial in the words of the Agent Framework's lab                 results.jsonl
    RunResult     all trials of a run                                               result.json of a run
    Iterations    several runs of the same, and how steady their outcomes are       stdout with --json
    Agreement     how steady a model judges                                         stdout with --agreement --json
    RunPlan       what a run would do                                               stdout with --dry-run --json

Field names follow the public skill-up result format (docs/results.md); extra keys are ours. Records are masked
before they are written, and the judge reads nothing else.

Longer than most modules: it is the one list of all names that we write.
"""

from __future__ import annotations

from typing import Any, Final, Literal, Self

from pydantic import model_validator

from skillup.errors import ErrorKind, Phase, TrialError
from skillup.transcript import Message, Usage, Value

SchemaVersion = Literal["skillup/1"]
SCHEMA_VERSION: Final[SchemaVersion] = "skillup/1"
"""Version of every file that we write; a reader refuses what it does not know."""

Status = Literal["PASS", "FAIL", "ERROR", "SKIP", "UNCHECKED"]
TurnStatus = Literal["completed", "timed_out", "limit", "failed", "skipped", "error"]
CheckState = Literal["met", "not_met", "unknown"]
UnknownCause = Literal[
    "skip_gate",
    "not_reached",
    "incomplete",
    "unobservable",
    "judging",
    "undetermined",
    "not_asked",
    "not_evaluated",
]
CheckRole = Literal["gate", "expect", "success", "failure", "script", "evaluator", "criterion", "graded", "score"]
PartVerdict = Literal["pass", "fail", "skip", "unknown"]
CriterionVerdict = Literal["met", "not_met", "cannot_determine"]
Scope = Literal["turn", "conversation", "workspace"]
Continuity = Literal["resumed", "live", "history", "single_shot_fallback"]
ExecutionMode = Literal["multi_turn", "single_turn", "single_shot_fallback"]
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


class StreamDamage(Value):
    """What was wrong with the CLI's output in a turn: how many places, the first at byte `first_position` (from 0).

    `lost` are those of them in which an event may be gone, so that nobody can tell what did not happen.
    """

    count: int
    first_position: int
    lost: int


class TurnRecord(Value):
    """One turn that was tried, or skipped.

    `content` is the message as sent; `response` the agent's answer, None when it gave none. `limit` names the limit
    that cut the turn. `steps` are the replies of the model that it took, None where the CLI does not say. `notes` says
    what was out of the ordinary (`retried`, `fallback`, `unfinished_background`, …). `messages_left_out` counts what a
    turn said and did beyond what is kept of it.
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
    messages_left_out: int = 0
    stream_corrupt: StreamDamage | None = None
    usage: Usage = Usage()
    steps: int | None = None
    duration_ms: int = 0
    cpu_seconds: float | None = None
    exit_code: int | None = None
    signal: int | None = None
    policy: dict[str, str] = {}
    changes: Changes | None = None
    notes: tuple[str, ...] = ()
    unfinished_background: tuple[str, ...] = ()
    model_traffic: ModelTraffic | None = None


class SavedTurn(TurnRecord):
    """A turn as it is saved the moment it ends; later the trial's record holds it, too."""

    schema_version: SchemaVersion = SCHEMA_VERSION


class Ending(Value):
    """How the conversation of a trial ended.

    `gate_failed`, `gate_skipped`, `capture_failed`, `capture_skipped`, `stopped` (the score of a turn was too low to go
    on), `limit` and `error` name the `turn`; `limit` also the limit (`turn_seconds`, `case_seconds`, `steps`) and what
    the case wants done about it. `unmet` is a `requires:` that this agent does not meet. With `dependency_skipped` and
    `dependency_failed` a case that this one depends on did not pass, and that is what the case wants then.
    """

    how: Literal[
        "completed",
        "gate_failed",
        "gate_skipped",
        "capture_failed",
        "capture_skipped",
        "stopped",
        "limit",
        "error",
        "unmet",
        "dependency_skipped",
        "dependency_failed",
    ]
    turn: int | None = None
    limit: str | None = None
    on_limit: Literal["fail", "judge"] = "fail"
    reason: str = ""

    @property
    def by_skip(self) -> bool:
        """Whether the case itself wanted the rest to be skipped."""
        return self.how in ("gate_skipped", "capture_skipped")

    @property
    def whole(self) -> bool:
        """Whether there is a conversation that can be judged as a whole: neither skipped, nor broken, nor refused."""
        return not self.by_skip and not self.never_began and self.how != "error"

    @property
    def never_began(self) -> bool:
        """Whether no turn was meant to take place."""
        return self.how in ("unmet", "dependency_skipped", "dependency_failed")


class EnvironmentFacts(Value):
    """Where the processes of a trial ran, and what they could reach; `limits` by the names of `environment.limits`.

    `image`: what its container was made of.
    """

    type: str = "none"
    network: str = "full"
    limits: dict[str, int] = {}
    image: str | None = None


class AgentIdentity(Value):
    """What played the agent: enough to compare two runs field by field. `home` is the folder that its trials shared.

    `environment_names` are the names of its variables.
    """

    name: str
    engine: str
    model: str | None
    provider: str | None
    base_url: str | None
    engine_version: str | None
    settings: dict[str, Any]
    permissions: str
    session_binding: Literal["isolated", "shared"] = "isolated"
    home: str | None = None
    environment: EnvironmentFacts = EnvironmentFacts()
    environment_names: tuple[str, ...]
    source: str


class Executed(Value):
    """What a program did on a copy of the last workspace; `problem` says why that is worth nothing.

    `output` is what it printed, without its middle when it is long (`cut`). `duration_ms` includes the copying.
    """

    timeout_seconds: float
    exit_code: int | None = None
    signal: int | None = None
    timed_out: bool = False
    output: str = ""
    cut: bool = False
    duration_ms: int = 0
    problem: str = ""


class CommandRecord(Executed):
    """What the command of a rule did; `output` is both of its streams together."""

    run: str


class ScriptRecord(Executed):
    """What a judge's script said: `output` on stdout, its rationale, `errors` on stderr. `sha256` is the script's."""

    path: str
    sha256: str | None
    errors: str = ""


class ProgramRecord(Executed):
    """What the program of a grader printed: `output` on stdout, `errors` on stderr.

    `files` are those of the suite, with their hashes; `grader` is its part's name and its own. `cwd`, `config`,
    `criteria` and `expected_output` are what the grader said: its answer holds for these alone.
    """

    grader: str
    command: tuple[str, ...]
    files: dict[str, str]
    cwd: str | None = None
    config: dict[str, Any] = {}
    criteria: str = ""
    expected_output: str = ""
    errors: str = ""


class TrialRecord(Value):
    """Everything that happened in one trial; the judge reads this, the snapshots and the case, and nothing else.

    `waited_ms` is how long a repeated attempt waited before it began, and in no other time.
    `skill_files` is where each installed skill's SKILL.md lay. `hidden_tools` are canonical tools whose calls the
    engine's stream cannot show. `artifacts` are the files that were collected, by their paths in the workspace;
    `artifact_notes` say which patterns matched none, and what was left out.
    """

    schema_version: SchemaVersion = SCHEMA_VERSION
    case_id: str
    title: str
    configuration: Variant
    trial: int
    attempt: int
    agent: AgentIdentity
    continuity: Continuity
    execution_mode: ExecutionMode
    skills: tuple[str, ...]
    skill_files: dict[str, str] = {}
    started_at: str
    duration_ms: int
    setup_ms: int
    waited_ms: int = 0
    ending: Ending
    turns: tuple[TurnRecord, ...]
    turns_total: int
    session_ids: tuple[str, ...]
    failures: tuple[Failure, ...]
    hidden_tools: tuple[str, ...] = ()
    artifacts: tuple[str, ...] = ()
    artifact_notes: tuple[str, ...] = ()
    commands: tuple[CommandRecord, ...] = ()
    scripts: tuple[ScriptRecord, ...] = ()
    programs: tuple[ProgramRecord, ...] = ()

    @model_validator(mode="after")
    def _error_has_a_failure(self) -> Self:
        if self.ending.how == "error" and not self.failures:
            raise ValueError("the conversation ended in an error, but no failure is recorded")
        return self


class CriterionSample(Value):
    """One answer of the judge's model to one criterion; `score` is in [0, 1], None when it cannot be determined.

    `evidence` are verbatim quotes of the trial, checked before the answer was taken.
    """

    verdict: CriterionVerdict
    score: float | None
    evidence: tuple[str, ...]
    reason: str


class CriterionResult(Value):
    """What all samples of one criterion come to; `agreement` is the share of them that say the same.

    Without a verdict there is an `error`, or it was not asked.
    """

    id: str
    verdict: CriterionVerdict | None = None
    score: float | None = None
    evidence: tuple[str, ...] = ()
    reason: str = ""
    agreement: float | None = None
    samples: tuple[CriterionSample, ...] = ()
    error: str = ""


class Evaluated(Value):
    """What an evaluator said about a trial: saved once, and from then on evidence like any other.

    Without a `status` the score and the judge's threshold decide, or there is an `error`. `turns` has `turn`, `score`
    and `reasoning` of each turn, or nothing.
    """

    schema_version: SchemaVersion = SCHEMA_VERSION
    evaluator: str
    config: dict[str, Any] = {}
    status: Literal["passed", "failed", "not_evaluated"] | None = None
    score: float | None = None
    reasoning: str = ""
    turns: tuple[dict[str, Any], ...] = ()
    error: str = ""


class JudgeIdentity(Value):
    """What judged: `model` as it was asked for, `answered_by` as the provider named itself.

    `engine` is the agent whose CLI was asked, None where the model itself was. `structured` says whether the endpoint
    held the answers to the schema, `temperature` what it accepted.
    """

    type: str
    provider: str
    model: str | None
    base_url: str | None
    engine: str | None = None
    answered_by: str | None = None
    structured: bool | None = None
    temperature: float | None = None


class Criteria(Value):
    """What a model said about the criteria of a trial: saved once, and from then on evidence like any other.

    `revision` counts from 1 and grows when it is asked again. `calls` are questions, not tries of the network.
    `usage` is what judging cost, apart from the agent's; `known_tokens` and `known_cost_usd` are what of it is known.
    `notes` say what the judge was not shown.
    """

    schema_version: SchemaVersion = SCHEMA_VERSION
    revision: int
    asked_at: str
    judge: JudgeIdentity | None
    results: tuple[CriterionResult, ...]
    calls: int
    usage: Usage
    known_tokens: int = 0
    known_cost_usd: float = 0.0
    notes: tuple[str, ...] = ()


class JudgingTotals(Value):
    """What models and agents that judge took, in all revisions; it is in no figure of the agents that are judged.

    A figure is None as soon as that of one call is unknown; the `known` ones add up the others.
    """

    calls: int
    total_tokens: int | None
    known_tokens: int
    cost_usd: float | None
    known_cost_usd: float


class Judging(Value):
    """The model's part in a verdict; `agreement` is the least of all criteria, None with one sample."""

    judge: JudgeIdentity
    revision: int
    calls: int
    usage: Usage
    agreement: float | None
    notes: tuple[str, ...] = ()


class Check(Value):
    """One check with its outcome; `cause` says why an `unknown` is unknown.

    One that is not `required` decides nothing alone: it counts in the score. `score` is in [0, 1].
    `forbidden` marks a `not_met` that is something that happened, not something missing: a later fault of ours does
    not excuse it (`violations_before_error`). `evaluator` names the evaluator that gave the `score`, from 0 to 1.
    `share`, in [0, 1], is how much of a rule holds that does not hold whole: what it counts where parts are scored.
    `assertions` are what the program of a grader said one by one.
    """

    id: str
    role: CheckRole
    text: str
    state: CheckState
    evidence: str
    turn: int | str | None = None
    cause: UnknownCause | None = None
    scope: Scope = "turn"
    forbidden: bool = False
    evaluator: str | None = None
    required: bool = True
    score: float | None = None
    share: float | None = None
    reasoning: str | None = None
    assertions: tuple[PartAssertion, ...] = ()


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
    evaluator: str | None = None
    score: float | None = None
    reasoning: str | None = None


class PartAssertion(Value):
    """One judged statement or rule of a part; `score` is in [0, 1], None when it is not known."""

    text: str
    passed: bool
    evidence: str
    score: float | None
    state: CheckState


class GraderScore(Value):
    """What one grader says; `score` is in [0, 1], None when it is not known. `scores` are those of its members."""

    name: str
    type: str
    weight: float
    required: bool
    score: float | None
    verdict: PartVerdict
    assertions: tuple[PartAssertion, ...] = ()
    scores: tuple[GraderScore, ...] = ()


class PartScore(Value):
    """The score in [0, 1] of one turn, or of the whole conversation (`turn` is None); None when it is not known.

    `skip` is a turn that an earlier one's score kept from taking place: it scores 0.
    """

    name: str
    type: str
    turn: int | None
    score: float | None
    verdict: PartVerdict
    assertions: tuple[PartAssertion, ...]
    scores: tuple[GraderScore, ...]


class Summary(Value):
    """Counts over a verdict's assertions; `pass_rate` is None when there is nothing to count."""

    passed: int
    failed: int
    unknown: int
    total: int
    pass_rate: float | None


class JudgeVerdict(Value):
    """What one of several judges says; `score` is in [0, 1], None where there is none, or none that is certain."""

    id: str
    type: str
    status: Status
    code: str
    reason: str
    score: float | None
    pass_threshold: float | None
    weight: float
    required: bool
    reasoning: str | None = None
    judging: Judging | None = None


class Verdict(Value):
    """What a trial means. `reason` is one sentence; `code` the short machine word (`gate`, `limit/turn_seconds`, …).

    `score` is the weighted mean of the criteria, in [0, 1], None where it is not certain; `reasoning` what the judge
    said about the whole conversation. `partial`: there are criteria that no model was asked about. With several judges
    `judges` has what each says, and `score` is what they reach together.
    """

    schema_version: SchemaVersion = SCHEMA_VERSION
    status: Status
    code: str
    reason: str
    assertion_results: tuple[Assertion, ...]
    summary: Summary
    error: Failure | None = None
    violations_before_error: tuple[str, ...] = ()
    turns_executed: int
    turns_total: int
    score: float | None = None
    scores: tuple[PartScore, ...] = ()
    pass_threshold: float | None = None
    reasoning: str | None = None
    partial: bool = False
    judging: Judging | None = None
    judges: tuple[JudgeVerdict, ...] = ()


class Expectation(Value):
    """A check in the words of Anthropic's grading.json."""

    text: str
    passed: bool
    evidence: str


class Grading(Verdict):
    """A verdict as it is saved; `expectations` repeats `assertion_results` under the name that other readers know."""

    expectations: tuple[Expectation, ...]


class Timing(Value):
    """Tokens (input and output, caches left out; None when unknown) and the duration of set-up and turns together."""

    schema_version: SchemaVersion = SCHEMA_VERSION
    total_tokens: int | None
    duration_ms: int


class TurnResult(Value):
    """A turn in the names of the public format, with our extra keys.

    `unmatched` are requests that no entry of the script answered; always empty on a real model.
    """

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
    steps: int | None = None
    tool_calls: tuple[str, ...]
    workspace: Changes | None
    notes: tuple[str, ...]
    stream_corrupt: StreamDamage | None = None
    messages_left_out: int = 0
    unfinished_background: tuple[str, ...]
    unmatched: tuple[str, ...]


class AttemptResult(Value):
    """One attempt at a trial that took several: how it ended, what it cost, and where it is kept."""

    attempt: int
    status: Status
    code: str
    reason: str
    error: Failure | None
    violations_before_error: tuple[str, ...]
    duration_ms: int
    usage: Usage
    cost_usd: float | None
    judging: JudgingTotals | None = None
    waited_ms: int = 0
    folder: str


class TornAttempt(Value):
    """An attempt that the end of skillup itself cut off: `turns` ended before, and what they took is known.

    What the turn that was running took is not, and is in no figure.
    """

    attempt: int
    turns: int
    duration_ms: int
    usage: Usage
    cost_usd: float | None
    folder: str


class TrialResult(Value):
    """One entry of `case_results`: a trial and its verdict.

    `attempts` are those that ended; `torn_attempts` did not, and measure nothing. After retries it is the last valid
    attempt's (PASS or FAIL), else the last one's; `attempt_results` are all of them then. `best_of_n` is set where a
    FAIL was tried again: then `first_valid_status` is what rates count.
    """

    schema_version: SchemaVersion = SCHEMA_VERSION
    case_id: str
    title: str
    status: Status
    configuration: Variant
    agent: AgentIdentity
    trial: int
    attempts: int
    attempt_results: tuple[AttemptResult, ...] = ()
    torn_attempts: tuple[TornAttempt, ...] = ()
    best_of_n: int | None = None
    first_valid_status: Status | None = None
    duration_ms: int
    waited_ms: int = 0
    turns: int
    input_tokens: int | None
    output_tokens: int | None
    usage: Usage
    cost_usd: float | None
    judging: JudgingTotals | None = None
    continuity: Continuity
    execution_mode: ExecutionMode
    session_ids: tuple[str, ...]
    prompt: str
    response: str | None
    turn_results: tuple[TurnResult, ...]
    grading: Verdict
    error: Failure | None
    failures: tuple[Failure, ...]
    artifacts: tuple[str, ...] = ()
    artifact_notes: tuple[str, ...] = ()
    folder: str


class TaskFacts(Value):
    """What a trial was about, in the words of the Agent Framework's lab."""

    task_id: str
    question: str


class TaskPrediction(Value):
    """What the agent answered (None: nothing), and all that it said and did, as OpenAI's chat messages."""

    prediction: str | None
    messages: tuple[dict[str, Any], ...] = ()


class TaskDetails(Value):
    """How the evaluation came about; `scores` and `reasons` by the evaluator's name, without what nobody could tell.

    `threshold` is what every score must reach. `steps` are the replies of the model, None where the CLI does not say.
    """

    scores: dict[str, float]
    reasons: dict[str, str]
    threshold: float | None
    tools_used: tuple[str, ...]
    tool_call_order: tuple[str, ...]
    steps: int | None
    status: Status
    code: str
    reason: str
    agent: str
    model: str | None
    trial: int


class TaskEvaluation(Value):
    """The verdict; both are None where there is none (ERROR, SKIP, UNCHECKED). `score` is the mean of the scores."""

    is_correct: bool | None
    score: float | None
    details: TaskDetails


class TaskResult(Value):
    """One line of `results.jsonl`: a trial as the Agent Framework's lab and the harness for trajectories write it."""

    schema_version: SchemaVersion = SCHEMA_VERSION
    task_id: str
    task: TaskFacts
    prediction: TaskPrediction
    evaluation: TaskEvaluation
    runtime_seconds: float
    error: str | None = None


class RetryCosts(Value):
    """What was spent on attempts that no result shows, because the trial was tried again.

    `trials` were tried again, `attempts` given up for it; `waited_ms` lay between the attempts, and is in no duration.
    A figure is None as soon as that of one attempt is unknown; the `known` ones add up the others.
    """

    trials: int = 0
    attempts: int = 0
    duration_ms: int = 0
    waited_ms: int = 0
    total_tokens: int | None = 0
    known_tokens: int = 0
    cost_usd: float | None = 0.0
    known_cost_usd: float = 0.0


class Totals(Value):
    """Trials by status, and the rates over valid trials (PASS + FAIL) and over all (valid + ERROR).

    `errors_by_kind` tells a capture that found nothing from a provider that was down. Rates count the first valid
    attempt of each trial: `passed_first` of `valid` passed in it. `best_of_n` trials are shown as their best attempt.
    """

    passed: int
    failed: int
    errors: int
    errors_by_kind: dict[ErrorKind, int]
    skipped: int
    unchecked: int
    best_of_n: int = 0
    passed_first: int
    valid: int
    pass_rate_valid: float | None
    pass_rate_all: float | None
    retries: RetryCosts = RetryCosts()


class AgentTotals(Value):
    """What one agent's trials amount to, and what they took together (None: unknown).

    Trials that ran as `single_shot_fallback` stand apart from the agent's others: they measure something else.
    """

    agent: str
    single_shot_fallback: bool
    totals: Totals
    duration_ms: int
    total_tokens: int | None
    cost_usd: float | None


class HostFacts(Value):
    """The machine that a run was made on."""

    python: str
    system: str
    release: str


class SuiteFacts(Value):
    """A suite of a run: its name, the file or folder that it was read from, and where its trials ran.

    `sha256` is that of what it decides for all its cases: environment, retries, fallback.
    """

    name: str
    source: str
    environment: EnvironmentFacts = EnvironmentFacts()
    sha256: str = ""


class ModelFacts(Value):
    """The model that an agent was told to use; None leaves the choice to the CLI."""

    provider: str | None
    name: str | None
    base_url: str | None


class JudgeFacts(ModelFacts):
    """A model that judges; `engine` is the agent whose CLI asks it, None where it is asked directly."""

    engine: str | None = None


class AgentFacts(Value):
    """An agent of a run, resolved: profile, suite and command line applied. `variables` are names, never values."""

    name: str
    engine: str
    engine_version: str | None
    model: ModelFacts
    settings: dict[str, Any]
    variables: tuple[str, ...]
    permissions: str
    login: str
    source: str
    session_binding: Literal["isolated", "shared"] = "isolated"
    limits: dict[str, float | None] = {}
    fallback: str | None = None


class RunManifest(Value):
    """What a run is made of, written before anything is run.

    `command` is how it was started, in the folder `cwd`; `iteration` of `iterations` is its place in `--iteration N`.
    `judges` are the models that judge criteria. `cases`, `skills` and `files` (fixtures, patches, scripts of judges)
    map names to SHA-256 of their contents; `trials` are the trials' folders, relative to the run directory, in order.
    `resumed_anyway` has what was different when `--resume-anyway` went on: a line each.
    """

    schema_version: SchemaVersion = SCHEMA_VERSION
    run_id: str
    suite: str
    skillup_version: str
    start_time: str
    command: tuple[str, ...]
    host: HostFacts
    parallelism: int
    suites: tuple[SuiteFacts, ...]
    agents: tuple[AgentFacts, ...]
    judges: tuple[JudgeFacts, ...] = ()
    cases: dict[str, str]
    skills: dict[str, str]
    files: dict[str, str] = {}
    trials: tuple[str, ...]
    cwd: str = ""
    iteration: int = 1
    iterations: int = 1
    resumed_anyway: tuple[str, ...] = ()


JournalEvent = Literal[
    "run_started",
    "run_resumed",
    "trial_started",
    "attempt_started",
    "turn_ended",
    "attempt_ended",
    "retry_wait",
    "trial_ended",
    "trial_reopened",
    "run_ended",
]


class JournalEntry(Value):
    """One event of a run; keys that say nothing of it are left out.

    `trial` is its folder, relative to the run directory. `pid` is the process of skillup and `mark` what all that it
    starts carries, for `run_started` and `run_resumed`. `status` is that of the turn, attempt, trial or run that ended,
    `code` the short word of a verdict; `seconds` are those of a wait. `torn_bytes` of a line that was cut off were
    removed from the end of the journal, `differences` taken in spite of themselves.
    """

    schema_version: SchemaVersion = SCHEMA_VERSION
    time: str
    event: JournalEvent
    trial: str | None = None
    attempt: int | None = None
    turn: int | None = None
    status: TurnStatus | Status | Literal["finished", "interrupted", "stopped"] | None = None
    code: str | None = None
    seconds: float | None = None
    pid: int | None = None
    mark: int | None = None
    command: tuple[str, ...] | None = None
    trials_left: int | None = None
    torn_bytes: int | None = None
    differences: tuple[str, ...] | None = None


class RunResult(Value):
    """All trials of one run that ended. `running` is a run without an end: it goes on, or was killed.

    `stopped` is one whose budget, or whose provider's limit, was reached (`stopped_by`) before all trials had ended.
    `resumed_anyway` says what was different for a part of the trials: a line each. `changed_files` are files of the
    suites that were changed while the run went on; no trial was made from them after that.

    `totals` count all trials, whoever ran them; its rates are None where some ran as `single_shot_fallback` and others
    did not. `judging` is apart from `total_tokens`, and None where nobody was asked.
    """

    schema_version: SchemaVersion = SCHEMA_VERSION
    run_id: str
    status: Literal["finished", "interrupted", "stopped", "running"]
    stopped_by: str = ""
    suite: str
    skillup_version: str
    engine_name: str
    model_name: str
    start_time: str
    end_time: str | None
    total_tokens: int | None
    judging: JudgingTotals | None = None
    trials_planned: int
    totals: Totals
    totals_by_agent: tuple[AgentTotals, ...] = ()
    resumed_anyway: tuple[str, ...] = ()
    changed_files: tuple[str, ...] = ()
    case_results: tuple[TrialResult, ...]


class Stability(Value):
    """How often a case ended how on one agent, over several runs of the same.

    `flaky` when attempts that were no ERROR ended differently, `steady` when they all ended the same, `unmeasured` when
    there was none. `outcomes` count the first valid attempt of each trial. Fallback trials stand apart.
    """

    case_id: str
    agent: str
    single_shot_fallback: bool
    outcomes: dict[Status, int]
    stability: Literal["steady", "flaky", "unmeasured"]


class Iterations(Value):
    """Several runs of the same, one after another; they are never pooled. `directories` are those of `runs`."""

    schema_version: SchemaVersion = SCHEMA_VERSION
    iterations_planned: int
    directories: tuple[str, ...]
    cases: tuple[Stability, ...]
    runs: tuple[RunResult, ...]


class CriterionAgreement(Value):
    """One criterion asked several times: how often it was answered how, `error` and `not_asked` among it.

    `agreement` is the share of its verdicts that say the same. `judge` is empty where there is only one.
    """

    judge: str
    id: str
    answers: dict[str, int]
    agreement: float | None
    score_min: float | None
    score_max: float | None


class TrialAgreement(Value):
    """A trial whose criteria were asked several times; `statuses` is how often the verdict would have been which."""

    case_id: str
    agent: str
    folder: str
    statuses: dict[Status, int]
    criteria: tuple[CriterionAgreement, ...]
    calls: int
    usage: Usage


class Agreement(Value):
    """How steady the models that judge are; `agreement` is the mean of all criteria, None when none has a verdict."""

    schema_version: SchemaVersion = SCHEMA_VERSION
    repeats: int
    trials: tuple[TrialAgreement, ...]
    agreement: float | None
    calls: int
    usage: Usage


class PlannedTrial(Value):
    """A trial as planning sees it: it would run, or end as SKIP or ERROR with this code at once."""

    case_id: str
    agent: str
    engine: str
    engine_version: str | None
    model: str | None
    configuration: Variant
    trial: int = 1
    would: Literal["run", "SKIP", "ERROR"]
    code: str = ""
    reason: str = ""
    hint: str = ""


class RunPlan(Value):
    """What a run would do; nothing of it was started or written."""

    schema_version: SchemaVersion = SCHEMA_VERSION
    suite: str
    parallelism: int
    iterations: int
    trials: tuple[PlannedTrial, ...]
