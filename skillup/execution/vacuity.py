"""What the checks of a case say of an agent that does nothing: every answer empty, the workspace as it was.

A case that would PASS there can pass for no reason. A check that holds there, and asks for more than absence, says
nothing about the agent. Nothing is run: neither agent nor set-up step nor command.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from skillup.environments.snapshot import take
from skillup.environments.snapshot_log import SavedSnapshots, SnapshotLog
from skillup.environments.workspace import copy_fixture, write_files
from skillup.errors import TrialError
from skillup.execution.variables import captured
from skillup.judging.evidence import Evidence
from skillup.judging.gates import ask
from skillup.judging.records import turn_record
from skillup.judging.several import judge_all
from skillup.results import (
    AgentIdentity,
    Assertion,
    Changes,
    Ending,
    Failure,
    GateRecord,
    TrialRecord,
    TurnRecord,
    Verdict,
)
from skillup.spec.case import Case, Turn
from skillup.spec.rules import Rule
from skillup.spec.suite import Suite
from skillup.transcript import Message, Usage

_NOBODY = AgentIdentity(
    name="nobody",
    engine="none",
    model=None,
    provider=None,
    base_url=None,
    engine_version=None,
    settings={},
    permissions="none",
    environment_names=(),
    source="vacuity",
)

_NOTHING_USED = Usage(
    input_tokens=0, output_tokens=0, cache_read_tokens=0, cache_write_tokens=0, cost_usd=0.0, basis="per_turn"
)


@dataclass(frozen=True)
class Idle:
    """A case judged without an agent. `holding` are checks that hold although they ask for something to be there.

    `all_held` are all checks that hold. `trouble` says why the workspace could not be made, or made only in part.
    """

    case: Case
    verdict: Verdict
    holding: tuple[str, ...]
    all_held: tuple[str, ...]
    trouble: str = ""

    @property
    def passes(self) -> bool:
        """Whether the case would pass without an agent."""
        return self.verdict.status == "PASS"


def idle_cases(suites: Sequence[Suite]) -> Iterator[Idle]:
    """Every case of the suites that checks anything, judged without an agent."""
    for suite in suites:
        for case in suite.cases:
            if not case.checks_nothing:
                found = judged_idle(case, suite.root)
                if suite.environment.setup_steps and not found.trouble:
                    found = replace(found, trouble="set-up steps were not run")
                yield found


def vacuity_warnings(suites: Sequence[Suite]) -> Iterator[str]:
    """One warning for all cases that would pass without an agent and do not say that they may."""
    names = [
        case.id
        for suite in suites
        for case in suite.cases
        if case.vacuous_ok is None
        and not case.checks_nothing
        and _could_pass(case)
        and judged_idle(case, suite.root).passes
    ]
    if names:
        shown = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
        what = "1 case" if len(names) == 1 else f"{len(names)} cases"
        yield f"{what} would PASS with an agent that does nothing: {shown}; `skillup validate --vacuity` says why"


def _could_pass(case: Case) -> bool:
    """Whether answers and calls alone rule a pass out; most cases need no workspace to be told."""
    evidence = Evidence(_record(case), SavedSnapshots(Path(), {}, {}), bool(case.ignore_case))
    return judge_all(case, evidence, {}).status != "FAIL"


def judged_idle(case: Case, suite_root: Path) -> Idle:
    """One case, judged on its untouched workspace and empty answers."""
    record = _record(case)
    with TemporaryDirectory(prefix="skillup-") as name:
        folder = Path(name)
        trouble = _snapshots(case, suite_root, folder, len(record.turns))
        evidence = Evidence(record, SavedSnapshots.load(folder), bool(case.ignore_case))
        verdict = judge_all(case, evidence, {})
    rules = dict(_rules(case))
    held = [one for one in verdict.assertion_results if one.passed]
    holding = [one for one in held if one.role != "failure" and not _forbids(one, case, rules)]
    return Idle(case, verdict, _texts(holding), _texts(held), trouble)


def _texts(assertions: Sequence[Assertion]) -> tuple[str, ...]:
    return tuple(one.text for one in assertions)


def _rules(case: Case) -> Iterator[tuple[str, Rule]]:
    """The case's rules by the ids of their checks."""
    yield from ((f"expect.{key}", rule) for key, rule in case.expect.rules())
    yield from ((f"judge.success[{index}]", rule) for index, rule in enumerate(case.success_rules))
    for member in case.judges:
        yield from ((f"judges.{member.id}.success[{index}]", item.rule) for index, item in enumerate(member.success))


def _forbids(assertion: Assertion, case: Case, rules: dict[str, Rule]) -> bool:
    """Whether a check asks for absence alone, so that it must hold without an agent."""
    if assertion.role != "gate":
        return rules[assertion.id].forbids if assertion.id in rules else False
    gate = case.turns[int(str(assertion.turn)) - 1].post_condition
    return gate is not None and not (gate.must_contain_all or gate.must_contain_any or gate.must_match)


def _snapshots(case: Case, suite_root: Path, folder: Path, turns: int) -> str:
    """Saves the untouched workspace as it was after every turn; why it could not be made, if so."""
    if not any(rule.about_files or rule.files_read for rule in case.all_rules):
        return ""
    workspace = folder / "workspace"
    workspace.mkdir()
    try:
        if case.context.repo_fixture is not None:
            copy_fixture(suite_root / case.context.repo_fixture, workspace)
        write_files(case.context.files, workspace)
        wanted = frozenset(path for rule in case.all_rules for path in rule.files_read)
        with SnapshotLog(folder, bytes, wanted) as log:
            snapshot = take(workspace, keep=log.keep, wanted=log.wanted)
            for number in range(turns + 1):
                log.save(number, snapshot)
    except (TrialError, OSError) as error:
        return f"the workspace cannot be made: {error}"
    return ""


def _record(case: Case) -> TrialRecord:
    """A conversation in which the agent said and did nothing, as far as gates and captures let it go."""
    turns: list[TurnRecord] = []
    ending, failures = Ending(how="completed"), tuple[Failure, ...]()
    for number, turn in enumerate(case.turns, start=1):
        if ending.how != "completed":
            turns.append(TurnRecord(number=number, content=turn.content, status="skipped"))
            continue
        record, ending, failures = _turn(number, turn, ignore_case=bool(case.ignore_case))
        turns.append(record)
    return TrialRecord(
        case_id=case.id,
        title=case.title,
        configuration="with_skill",
        trial=1,
        attempt=1,
        agent=_NOBODY,
        continuity="resumed",
        execution_mode="multi_turn" if len(case.turns) > 1 else "single_turn",
        skills=(),
        started_at="",
        duration_ms=0,
        setup_ms=0,
        ending=ending,
        turns=tuple(turns),
        turns_total=len(case.turns),
        session_ids=(),
        failures=failures,
    )


def _turn(number: int, turn: Turn, *, ignore_case: bool) -> tuple[TurnRecord, Ending, tuple[Failure, ...]]:
    """A turn with an empty answer, and what its gate and captures make of the conversation."""
    record = TurnRecord(
        number=number,
        content=turn.content,
        status="completed",
        response="",
        messages=(Message(role="user", turn=number, source="case", text=turn.content),),
        usage=_NOTHING_USED,
        changes=Changes(),
    )
    ending = Ending(how="completed")
    gate = turn.post_condition
    if gate is not None:
        found = ask(gate, "", turn=number, ignore_case=ignore_case)
        asked = GateRecord(state=found.state, on_fail=gate.on_fail, evidence=found.evidence)
        record = record.model_copy(update={"gate": asked})
        if found.state != "met":
            if gate.on_fail == "fail":
                record = record.model_copy(update={"status": "failed"})
                return record, Ending(how="gate_failed", turn=number, reason=found.evidence), ()
            return record, Ending(how="gate_skipped", turn=number, reason=found.evidence), ()
    taken = captured(turn.capture, turn_record("", record.messages, record.usage, record.changes), number)
    if taken.error is not None:
        record = record.model_copy(update={"status": "error"})
        return record, Ending(how="error", turn=number, reason=taken.error.message), (Failure.of(taken.error),)
    return record, taken.ending or ending, ()
