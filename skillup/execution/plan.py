"""What will be run, and what cannot be, decided before anything is spent."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from pydantic import ValidationError

from skillup.engines import ENGINES
from skillup.engines.base import Engine
from skillup.environments.host import instructions_above, trial_base
from skillup.environments.process import Command, ExecutableNotFoundError, Nursery, ProcessError
from skillup.errors import Fault, InputError
from skillup.execution.task import Keep, TrialTask
from skillup.loading.agents import load_profile, profile_folders, resolve_agent
from skillup.results import Failure
from skillup.spec.agent import Agent
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
    tasks: list[TrialTask] = []
    found: dict[str, Agent] = {}
    versions: dict[str, str | None] = {}
    for suite in suites:
        for agent in _agents(suite, choices, host):
            found.setdefault(agent.name, agent)
            engine = ENGINES[agent.engine]
            version, obstacle = _probe(engine, agent, host, nursery)
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
                        folder=Path(case.id) / agent.name / "with_skill" / "trial-1" / "attempt-1",
                        trial_base=base,
                        keep=choices.keep,
                        obstacle=obstacle or _case_obstacle(case, agent, engine),
                    )
                )
    parallelism = choices.parallelism or max(suite.parallelism for suite in suites)
    warnings = [warning for suite in suites for warning in suite.warnings]
    if any(not agent.model.scripted for agent in found.values()):
        warnings.append("agents run on this host with full permissions: run only cases that you trust")
    return Plan(tuple(tasks), tuple(found.values()), versions, parallelism, tuple(dict.fromkeys(warnings)))


def _agents(suite: Suite, choices: Choices, host: Mapping[str, str]) -> list[Agent]:
    names = choices.agents or ((suite.engine.name,) if suite.engine else ())
    if not names:
        hint = "pass --agent NAME (try --agent demo), or write `engine: {name: …}` in eval.yaml"
        raise InputError([Fault(str(suite.source), 0, 0, "engine", "no agent is named", hint)])
    folders = profile_folders(dict.fromkeys((suite.root, suite.source.parent)))
    agents = []
    for named in names:
        name, profile, source = load_profile(named, folders, ENGINES)
        engine = ENGINES[profile.engine]
        agent = resolve_agent(
            name,
            profile,
            source,
            suite_engine=suite.engine,
            model=choices.model,
            host=host,
            withheld=(*engine.credentials, *engine.address_variables),
        )
        agents.append(replace(agent, settings=_settings(engine, agent)))
    twice = [agent.name for agent in agents if [other.name for other in agents].count(agent.name) > 1]
    if twice:
        raise InputError([Fault("--agent", 0, 0, "", f"two agents are named {twice[0]}", "rename one of the files")])
    return agents


def _settings(engine: Engine, agent: Agent) -> dict[str, object]:
    """The settings as the engine reads them; a binary given by a path is taken relative to the profile."""
    try:
        engine.settings.model_validate(agent.settings)
    except ValidationError as error:
        known = ", ".join(engine.settings.model_fields)
        faults = [
            Fault(
                agent.source,
                0,
                0,
                ".".join(["settings", *map(str, details["loc"])]),
                "unknown setting" if details["type"] == "extra_forbidden" else details["msg"],
                f"{engine.name} knows: {known}",
            )
            for details in error.errors()
        ]
        raise InputError(faults) from None
    binary = agent.settings.get("binary")
    if isinstance(binary, str) and "/" in binary and not os.path.isabs(binary):
        return {**agent.settings, "binary": str((Path(agent.source).parent / binary).resolve())}
    return agent.settings


def _probe(
    engine: Engine, agent: Agent, host: Mapping[str, str], nursery: Nursery
) -> tuple[str | None, Failure | None]:
    """The CLI's version, or what keeps this agent from running at all."""
    version, failure = engine_version(engine, agent.settings, host, nursery)
    if failure is not None:
        return None, failure
    if agent.missing:
        names = ", ".join(agent.missing)
        kind = "auth" if set(agent.missing) & set(engine.credentials) else "setup"
        message = f"the profile refers to {names}, which the host does not have"
        return version, _obstacle(kind, message, f"export {names}, or change {agent.source}")
    if agent.model.scripted or agent.login == "copy":
        return version, None
    if not set(engine.credentials) & agent.env.keys():
        message = f"no credential for {agent.name}: none of {', '.join(engine.credentials)} is passed"
        hint = "export one and name it in the profile's `env`, use `login: copy`, or run with --model scripted"
        return version, _obstacle("auth", message, hint)
    return version, None


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


def _case_obstacle(case: Case, agent: Agent, engine: Engine) -> Failure | None:
    if agent.model.scripted and case.script is None:
        message = f"the model is scripted, but the case {case.id} has no `script`"
        return _obstacle("setup", message, "add a script, or choose a real model with --model")
    for rule in case.success_rules:
        hidden = sorted(set(rule.name) & engine.hidden_tools) if isinstance(rule, ToolCalled) else []
        if hidden:
            message = f"{engine.name} cannot show calls of {', '.join(hidden)}, which a rule of {case.id} requires"
            return _obstacle("unobservable", message, "check the answer or the workspace instead")
    return None
