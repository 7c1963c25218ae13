"""What will be run, and what cannot be, decided before anything is spent."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from skillup.engines import ENGINES
from skillup.engines.base import Engine
from skillup.environments.host import instructions_above, trial_base
from skillup.environments.process import Command, ExecutableNotFoundError, Nursery, ProcessError
from skillup.errors import Fault, InputError
from skillup.execution.agents import agents_of
from skillup.execution.single_shot import needs_turns
from skillup.execution.task import Keep, TrialTask
from skillup.loading.paths import shown
from skillup.results import Failure
from skillup.spec.agent import Agent, Fallback
from skillup.spec.case import Case
from skillup.spec.rules import ToolCalled
from skillup.spec.suite import Suite

VERSION_SECONDS = 20.0
"""A cold CLI on a busy machine takes some seconds to print its version; one that takes longer would hang turns, too."""


@dataclass(frozen=True)
class Choices:
    """What the command line decides."""

    agents: tuple[str, ...] = ()
    model: str | None = None
    parallelism: int | None = None
    keep: Keep = "failed"
    fallback: Fallback | None = None


@dataclass(frozen=True)
class Plan:
    """The trials in order, and how many may run at once."""

    tasks: tuple[TrialTask, ...]
    agents: tuple[Agent, ...]
    versions: Mapping[str, str | None]
    parallelism: int
    warnings: tuple[str, ...]

    def below(self, directory: Path) -> tuple[TrialTask, ...]:
        """The trials with their folders in a run directory."""
        return tuple(replace(task, folder=directory / task.folder) for task in self.tasks)


def make_plan(suites: Sequence[Suite], choices: Choices, host: Mapping[str, str], nursery: Nursery) -> Plan:
    """Cases × agents. What one agent cannot do becomes an obstacle of its trials; bad input is raised.

    Raises:
        InputError: an agent that cannot be used, or a trial root that lies below instructions.
    """
    base = trial_base(host)
    above = instructions_above(base)
    if above:
        hint = "agents would read it; set SKILLUP_TRIAL_ROOT to a folder without such files above it"
        raise InputError([Fault(str(base), 0, 0, "", f"{above[0]} lies above the trial root", hint)])
    agents_by_suite = agents_of(suites, choices.agents, choices.model, host)
    tasks: list[TrialTask] = []
    found: dict[str, Agent] = {}
    probed: dict[tuple[str, ...], tuple[str | None, Failure | None]] = {}
    versions: dict[str, str | None] = {}
    for suite, agents in zip(suites, agents_by_suite, strict=True):
        for agent in agents:
            found.setdefault(agent.name, agent)
            engine = ENGINES[agent.engine]
            argv = engine.version_argv(engine.settings.model_validate(agent.settings))
            if argv not in probed:
                probed[argv] = engine_version(engine, agent.settings, host, nursery)
            version, missing = probed[argv]
            obstacle = missing or _credential_obstacle(engine, agent, suite, host) or _skill_obstacle(suite, agent)
            fallback = choices.fallback or agent.fallback or suite.fallback
            versions[agent.name] = version
            for case in suite.cases:
                tasks.append(
                    TrialTask(
                        case=case,
                        suite_root=suite.root,
                        environment=suite.environment,
                        skills=suite.skills,
                        agent=agent,
                        engine_version=version,
                        variant="with_skill",
                        trial=1,
                        attempt=1,
                        folder=Path(case.id) / agent.name / "with_skill" / "trial-1",
                        trial_base=base,
                        keep=choices.keep,
                        obstacle=obstacle or _case_obstacle(case, agent, engine, fallback),
                        retry=suite.retry,
                        single_shot=len(case.turns) > 1 and not _resumes(engine, agent),
                    )
                )
    parallelism = choices.parallelism or max(suite.parallelism for suite in suites)
    warnings = [warning for suite in suites for warning in suite.warnings]
    for suite, agents in zip(suites, agents_by_suite, strict=True):
        warnings += _redirections(suite, agents)
    warnings += [_sharing(agent) for agent in found.values() if agent.shared_home]
    for place in sorted({place for agent in found.values() for place in ENGINES[agent.engine].host_policy}):
        if Path(place).exists():
            warnings.append(f"{place} is obeyed by its CLI whatever home it gets: trials are not free of this host")
    if any(not agent.model.scripted for agent in found.values()):
        warnings.append("agents run on this host with full permissions: run only cases that you trust")
    return Plan(tuple(tasks), tuple(found.values()), versions, parallelism, tuple(dict.fromkeys(warnings)))


def _redirections(suite: Suite, agents: Sequence[Agent]) -> Iterator[str]:
    """Warnings about agents whose requests, and with them a credential, the suite sends elsewhere."""
    for agent in agents:
        for name in ENGINES[agent.engine].address_variables:
            decided = agent.model.scripted or agent.model.base_url or name in agent.env
            if name in suite.environment.env and not decided:
                where = suite.environment.env[name]
                yield f"{shown(suite.source)}: environment.env sends the requests of {agent.name} to {where!r}"


def _credential_obstacle(engine: Engine, agent: Agent, suite: Suite, host: Mapping[str, str]) -> Failure | None:
    """What keeps this agent from reaching its model, as far as the variables can tell."""
    if agent.missing:
        names = ", ".join(dict.fromkeys(wanted for _, wanted in agent.missing))
        kind = "auth" if any(variable in engine.credentials for variable, _ in agent.missing) else "setup"
        message = f"the profile refers to {names}, which the host does not have"
        return _obstacle(kind, message, f"export {names}, or change {agent.source}")
    passed = {**suite.environment.env, **agent.env}
    if agent.model.scripted or agent.has_login or any(passed.get(name) for name in engine.credentials):
        return None
    scripted = "`--model scripted` plays the case's script without any"
    held = [name for name in engine.credentials if host.get(name)]
    if held:
        message = f"the host has {held[0]}, but the profile does not pass it"
        return _obstacle("auth", message, f"add `env: {{{held[0]}: null}}` to {agent.source}; {scripted}")
    message = f"no credential for {engine.name}: {' and '.join(engine.credentials)} {_are_not_set(engine.credentials)}"
    login = "log in with the CLI and write `login: copy` in the profile, " if engine.login_files else ""
    return _obstacle("auth", message, f"export {' or '.join(engine.credentials)}; {login}{scripted}")


def _are_not_set(names: Sequence[str]) -> str:
    return "is not set" if len(names) == 1 else "are not set"


def engine_version(
    engine: Engine, settings: Mapping[str, object], host: Mapping[str, str], nursery: Nursery
) -> tuple[str | None, Failure | None]:
    """What the CLI prints as its version, or why it cannot be started."""
    argv = engine.version_argv(engine.settings.model_validate(settings))
    with TemporaryDirectory(prefix="skillup-") as folder:
        place = Path(folder)
        output = place / "version"
        env = {"PATH": host.get("PATH", os.defpath), "HOME": folder, **engine.version_variables}
        command = Command(argv, env, place)
        try:
            ended = nursery.run(command, stdout=output, stderr=place / "errors", deadline_seconds=VERSION_SECONDS)
        except ExecutableNotFoundError as error:
            hint = (
                "install it, or name it in the profile's `settings: {binary: …}`; `skillup doctor` shows what is here"
            )
            return None, _obstacle("engine_missing", str(error), hint)
        except ProcessError as error:
            return None, _obstacle("environment", f"{argv[0]} cannot be started: {error}")
        text = output.read_text(encoding="utf-8", errors="replace").strip()
        if ended.exit_code != 0 or not text:
            return None, _obstacle("crash", f"`{' '.join(argv)}` ended with {ended.exit_code} and printed no version")
        return text.splitlines()[0][:100], None


def _obstacle(kind: str, message: str, hint: str = "") -> Failure:
    return Failure.model_validate({"kind": kind, "phase": "plan", "message": message, "hint": hint})


def _sharing(agent: Agent) -> str:
    return (
        f"all trials of {agent.name} share {agent.shared_home}: what it holds (instructions, skills, settings) is part "
        "of every trial, and results are comparable only with each other"
    )


def _skill_obstacle(suite: Suite, agent: Agent) -> Failure | None:
    """Nothing is ever installed into a home that is the user's own."""
    engine = ENGINES[agent.engine]
    inside = f"{engine.skills_folder}/".startswith(f"{engine.home_folder}/")
    if agent.shared_home is None or not suite.skills or not inside:
        return None
    message = f"{engine.name} finds skills in its home alone, and {agent.shared_home} is shared: nothing is put into it"
    hint = "use `login: copy` with `session_binding: isolated`, or run the cases without the suite's skills"
    return _obstacle("setup", message, hint)


def _resumes(engine: Engine, agent: Agent) -> bool:
    return engine.resumes(engine.settings.model_validate(agent.settings))


def _case_obstacle(case: Case, agent: Agent, engine: Engine, fallback: Fallback | None) -> Failure | None:
    if len(case.turns) > 1 and not _resumes(engine, agent):
        cannot = f"{agent.name} cannot resume a session"
        needs = needs_turns(case)
        if needs:
            more = f" (and {len(needs) - 1} more)" if len(needs) > 1 else ""
            hint = "choose an agent that resumes, or take out what depends on a single turn"
            return _obstacle("session", f"{cannot}, and the case {case.id} needs it for {needs[0]}{more}", hint)
        if fallback is None:
            hint = "`fallback: single_shot` in the suite or profile, or --fallback, sends all turns in one message"
            return _obstacle("session", f"{cannot}, and the case {case.id} has {len(case.turns)} turns", hint)
    if agent.model.scripted and case.script is None:
        message = f"the model is scripted, but the case {case.id} has no `script`"
        return _obstacle("setup", message, "add a script, or choose a real model with --model")
    for rule in case.success_rules:
        if isinstance(rule, ToolCalled) and set(rule.name) <= engine.hidden_tools:
            tools = ", ".join(rule.name)
            message = f"{engine.name} cannot show calls of {tools}, which a rule of {case.id} requires"
            return _obstacle("unobservable", message, "check the answer or the workspace instead")
    return None
