"""What will be run, and what cannot be, decided before anything is spent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from skillup.engines import ENGINES
from skillup.environments.host import instructions_above, trial_base
from skillup.environments.process import Nursery
from skillup.errors import Fault, InputError
from skillup.execution.agents import agents_of, provider_of, settings_of
from skillup.execution.evaluators import check_evaluators
from skillup.execution.inputs import Inputs
from skillup.execution.judges import JudgeChoice, judges_of
from skillup.execution.obstacles import (
    case_obstacle,
    credential_obstacle,
    engine_version,
    environment_obstacle,
    mask_obstacle,
    network_obstacle,
    permission_obstacle,
    resumes,
    skill_obstacle,
)
from skillup.execution.requirements import path_of, unmet
from skillup.execution.setup import secrets_of
from skillup.execution.task import Keep, TrialTask
from skillup.execution.vacuity import vacuity_warnings
from skillup.loading.paths import shown
from skillup.results import Failure
from skillup.spec.agent import Agent, Fallback, proxy_passwords
from skillup.spec.budget import Budget, tightest
from skillup.spec.case import Case
from skillup.spec.suite import Environment, Suite


@dataclass(frozen=True)
class Choices:
    """What the command line decides."""

    agents: tuple[str, ...] = ()
    model: str | None = None
    parallelism: int | None = None
    keep: Keep = "failed"
    fallback: Fallback | None = None
    judge: JudgeChoice = field(default_factory=JudgeChoice)
    trials: int | None = None
    retries: int | None = None
    budget: Budget = field(default_factory=Budget)

    def times(self, case: Case) -> int:
        """How many trials of a case each agent makes."""
        return self.trials or case.trials or 1


@dataclass(frozen=True)
class Plan:
    """The trials in order, how many may run at once, and what they are made from.

    `versions` has None for an agent that no trial needs; `proxy_passwords` are secrets that the host passes to all.
    """

    tasks: tuple[TrialTask, ...]
    agents: tuple[Agent, ...]
    versions: Mapping[str, str | None]
    parallelism: int
    warnings: tuple[str, ...]
    inputs: Inputs
    budget: Budget = field(default_factory=Budget)
    proxy_passwords: tuple[str, ...] = ()

    def below(self, directory: Path) -> tuple[TrialTask, ...]:
        """The trials with their folders in a run directory."""
        return tuple(
            replace(
                task,
                folder=directory / task.folder,
                after={directory / place: name for place, name in task.after.items()},
            )
            for task in self.tasks
        )


def make_plan(suites: Sequence[Suite], choices: Choices, host: Mapping[str, str], nursery: Nursery) -> Plan:
    """Cases × agents.

    Bad input is raised. What one agent cannot do becomes an obstacle of its own trials; what a case requires and it
    has not, the reason to skip them.

    Raises:
        InputError: an agent or a judge that cannot be used, or a trial root that lies below instructions.
    """
    base = trial_base(host)
    above = instructions_above(base)
    if above:
        hint = "agents would read it; set SKILLUP_TRIAL_ROOT to a folder without such files above it"
        raise InputError([Fault(str(base), 0, 0, "", f"{above[0]} lies above the trial root", hint)])
    agents_by_suite = agents_of(suites, choices.agents, choices.model, host)
    check_evaluators(suites)
    judges = judges_of(suites, choices.judge, host)
    inputs = Inputs.of(tuple(suites))
    probes = _Probes(host, nursery)
    tasks: list[TrialTask] = []
    found: dict[str, Agent] = {}
    for suite, agents in zip(suites, agents_by_suite, strict=True):
        for agent in agents:
            found.setdefault(agent.name, agent)
            trials = _trials(suite, agent, probes, base, choices)
            tasks += [
                _telling(replace(task, judges=judges.get(task.case.id, {}), inputs=inputs.cases[task.case.id]), host)
                for task in trials
            ]
    versions: dict[str, str | None] = dict.fromkeys(found)
    versions |= {task.agent.name: task.engine_version for task in tasks if not task.unmet}
    parallelism = choices.parallelism or max(suite.parallelism for suite in suites)
    warnings = [warning for suite in suites for warning in suite.warnings]
    warnings += vacuity_warnings(suites)
    for suite, agents in zip(suites, agents_by_suite, strict=True):
        warnings += _redirections(suite, agents)
    warnings += [_sharing(agent) for agent in found.values() if agent.shared_home]
    warnings += [_opening(task) for task in tasks if task.agent.shared_home and task.environment.type != "none"]
    for place in sorted({place for agent in found.values() for place in ENGINES[agent.engine].host_policy}):
        if Path(place).exists():
            warnings.append(f"{place} is obeyed by its CLI whatever home it gets: trials are not free of this host")
    if any(task.environment.type == "none" and not task.agent.model.scripted for task in tasks):
        safer = "`environment: {type: bubblewrap}` confines them"
        warnings.append(f"agents run on this host with full permissions: run only cases that you trust; {safer}")
    budget = _budget(suites, choices, tuple(found.values()))
    told = tuple(dict.fromkeys(warnings))
    return Plan(tuple(tasks), tuple(found.values()), versions, parallelism, told, inputs, budget, proxy_passwords(host))


def _budget(suites: Sequence[Suite], choices: Choices, agents: Sequence[Agent]) -> Budget:
    """What the run may take.

    Raises:
        InputError: it limits money, and nobody says what one of the agents costs.
    """
    unpriced = [agent.name for agent in agents if not ENGINES[agent.engine].reports_cost]
    message = f"{', '.join(unpriced)} cannot say what a turn costs, so a budget of money cannot be held to"
    hint = "limit the tokens instead (max_tokens), or run these agents by themselves"
    places = [
        Fault(shown(suite.source), *suite.budget_place, "budget.max_cost_usd", message, hint)
        for suite in suites
        if suite.budget.max_cost_usd is not None
    ]
    if choices.budget.max_cost_usd is not None:
        places = [Fault("--max-cost-usd", 0, 0, "", message, hint)]
    if unpriced and places:
        raise InputError(places)
    return tightest([suite.budget for suite in suites], choices.budget)


class _Probes:
    """What the agents' CLIs say of their versions, where they would run: each is asked once, if a trial needs it."""

    def __init__(self, host: Mapping[str, str], nursery: Nursery) -> None:
        self.host = host
        self._nursery = nursery
        self._said: dict[tuple[str, tuple[str, ...]], tuple[str | None, Failure | None]] = {}
        self._missing: dict[str, Failure | None] = {}

    def of(self, agent: Agent, wanted: Environment) -> tuple[str | None, Failure | None]:
        """The version of the agent's CLI, or why it cannot be started."""
        engine, place = ENGINES[agent.engine], wanted.model_dump_json()
        if place not in self._missing:
            self._missing[place] = environment_obstacle(wanted, self.host, self._nursery)
        missing = self._missing[place]
        if missing is not None:
            return None, missing
        asked = (place, engine.version_argv(settings_of(agent)))
        if asked not in self._said:
            self._said[asked] = engine_version(engine, agent.settings, self.host, self._nursery, wanted)
        return self._said[asked]


def _trials(suite: Suite, agent: Agent, probes: _Probes, base: Path, choices: Choices) -> Iterator[TrialTask]:
    """The trials of one agent in one suite. What the agent need not do is no obstacle: `unmet` comes first."""
    engine = ENGINES[agent.engine]
    path, can_resume = path_of(agent, suite, probes.host), resumes(engine, agent)
    for case in suite.cases:
        reason = unmet(case.requires, engine, path, resumes=can_resume)
        version, missing = (None, None) if reason else probes.of(agent, suite.environment)
        obstacle = (
            missing
            or credential_obstacle(engine, agent, suite, probes.host)
            or skill_obstacle(suite, agent)
            or permission_obstacle(agent, suite.environment)
            or network_obstacle(agent, suite.environment)
            or case_obstacle(case, agent, engine, choices.fallback or agent.fallback or suite.fallback)
        )
        task = TrialTask(
            case=case,
            suite_root=suite.root,
            environment=suite.environment,
            skills=suite.skills,
            agent=agent,
            engine_version=version,
            variant="with_skill",
            trial=1,
            attempt=1,
            folder=_folder(case, agent, 1),
            trial_base=base,
            keep=choices.keep,
            obstacle=None if reason else obstacle,
            unmet=reason,
            retry=suite.retry if choices.retries is None else suite.retry.with_retries(choices.retries),
            single_shot=not (reason or obstacle) and len(case.turns) > 1 and not can_resume,
        )
        for number in range(1, choices.times(case) + 1):
            after = _awaited(suite, case, agent, number, choices)
            yield replace(task, trial=number, folder=_folder(case, agent, number), after=after)


def _telling(task: TrialTask, host: Mapping[str, str]) -> TrialTask:
    """The trial, with an obstacle where a check of it could not tell its credential from any other."""
    if task.obstacle or task.unmet:
        return task
    return replace(task, obstacle=mask_obstacle(task.case, secrets_of(task, host)))


def _folder(case: Case, agent: Agent, trial: int) -> Path:
    return Path(case.id) / agent.name / "with_skill" / f"trial-{trial}"


def _awaited(suite: Suite, case: Case, agent: Agent, trial: int, choices: Choices) -> dict[Path, str]:
    """The trials that one waits for: of each case that it depends on that with its number, else all of them."""
    awaited = {}
    for other in (one for one in suite.cases if one.id in case.depends_on):
        times = choices.times(other)
        for number in [trial] if trial <= times else range(1, times + 1):
            awaited[_folder(other, agent, number)] = other.id
    return awaited


def _redirections(suite: Suite, agents: Sequence[Agent]) -> Iterator[str]:
    """Warnings about agents whose requests, and with them a credential, the suite sends elsewhere."""
    for agent in agents:
        for name in provider_of(agent).address_variables:
            decided = agent.model.scripted or agent.model.base_url or name in agent.env
            if name in suite.environment.env and not decided:
                where = suite.environment.env[name]
                yield f"{shown(suite.source)}: environment.env sends the requests of {agent.name} to {where!r}"


def _sharing(agent: Agent) -> str:
    return (
        f"all trials of {agent.name} share {agent.shared_home}: what it holds (instructions, skills, settings) is part "
        "of every trial, and results are comparable only with each other"
    )


def _opening(task: TrialTask) -> str:
    where = f"{task.agent.shared_home} from within `environment.type: {task.environment.type}`"
    return f"{task.agent.name} can write in {where}: what it leaves there, its CLI obeys on this host later"
