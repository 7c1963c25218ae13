"""`run.json`: what a run is made of, and in what two runs differ."""

from __future__ import annotations

import json
import platform
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from skillup import __version__
from skillup.execution.inputs import named_files, skill_digest, text_digest, tree_digest
from skillup.execution.masked import masked
from skillup.execution.plan import Plan
from skillup.execution.record import facts_of, stamp
from skillup.masking import Masker
from skillup.results import AgentFacts, HostFacts, JudgeFacts, ModelFacts, RunManifest, SuiteFacts
from skillup.spec.agent import Agent, credentials_in, proxy_passwords
from skillup.spec.suite import Suite


@dataclass(frozen=True)
class Started:
    """How a run was started: the command line, when, and its place in `--iteration N`."""

    command: tuple[str, ...]
    at: datetime
    iteration: int = 1
    iterations: int = 1


def make_manifest(directory: Path, suites: Sequence[Suite], plan: Plan, started: Started) -> RunManifest:
    """What is going to be run, with what, where; nothing of it is a secret.

    Raises:
        OSError: a file that a case names cannot be read.
    """
    manifest = RunManifest(
        run_id=f"{started.at.astimezone(UTC):%Y%m%dT%H%M%SZ}-{directory.resolve().name}",
        suite=suites[0].name,
        skillup_version=__version__,
        start_time=stamp(started.at),
        command=started.command,
        host=HostFacts(python=platform.python_version(), system=platform.system(), release=platform.release()),
        parallelism=plan.parallelism,
        suites=tuple(_suite(suite) for suite in suites),
        agents=tuple(_agent(agent, plan.versions[agent.name]) for agent in plan.agents),
        judges=tuple(
            JudgeFacts(provider=ref.provider, name=ref.name, base_url=ref.base_url, engine=ref.engine)
            for ref in dict.fromkeys(ref for task in plan.tasks for ref in task.judges.values())
        ),
        cases={task.case.id: text_digest(task.case.model_dump_json(by_alias=True)) for task in plan.tasks},
        skills={skill.name: skill_digest(skill) for suite in suites for skill in suite.skills},
        files=_files(suites),
        trials=tuple(str(task.folder) for task in plan.tasks),
        cwd=str(Path.cwd()),
        iteration=started.iteration,
        iterations=started.iterations,
    )
    return RunManifest.model_validate(masked(manifest, masker_of(plan)))


def masker_of(plan: Plan) -> Masker:
    """Masks the credentials of all agents of a run, of its suites, of its judges, and of the proxies."""
    agents = (secret for agent in plan.agents for secret in (*agent.secrets, *proxy_passwords(agent.env)))
    suites = (secret for task in plan.tasks for secret in credentials_in(task.environment.env))
    judges = (ref.api_key for task in plan.tasks for ref in task.judges.values() if ref.api_key)
    return Masker((*agents, *suites, *judges, *plan.proxy_passwords))


def _suite(suite: Suite) -> SuiteFacts:
    decided = (suite.environment.model_dump_json(), suite.retry.model_dump_json(), str(suite.fallback))
    return SuiteFacts(
        name=suite.name,
        source=str(suite.source),
        environment=facts_of(suite.environment),
        sha256=text_digest("\n".join(decided)),
    )


def _agent(agent: Agent, version: str | None) -> AgentFacts:
    return AgentFacts(
        name=agent.name,
        engine=agent.engine,
        engine_version=version,
        model=ModelFacts(provider=agent.model.provider, name=agent.model.name, base_url=agent.model.base_url),
        settings=agent.settings,
        variables=tuple(sorted(agent.env)),
        permissions=agent.permissions,
        login=agent.login,
        source=agent.source,
        session_binding=agent.session_binding,
        limits=agent.limits.model_dump(),
        fallback=agent.fallback,
    )


def _files(suites: Sequence[Suite]) -> dict[str, str]:
    """The digests of what cases name; of a name that means two things in two suites, that of both."""
    found: dict[str, str] = {}
    for suite in suites:
        for name in sorted({name for case in suite.cases for name in named_files(case)}):
            digest = tree_digest(suite.root / name)
            found[name] = text_digest(found[name] + digest) if name in found else digest
    return found


def differences(before: RunManifest, now: RunManifest) -> tuple[str, ...]:
    """What is different between two runs of the same, field by field; where the files lie does not count."""
    return (
        *_fields("", {"skillup_version": before.skillup_version}, {"skillup_version": now.skillup_version}),
        *_items("suites", _suites(before), _suites(now)),
        *_items("agents", _agents(before), _agents(now)),
        *_fields("", {"judges": _plain(before.judges)}, {"judges": _plain(now.judges)}),
        *_items("cases", before.cases, now.cases),
        *_items("skills", before.skills, now.skills),
        *_items("files", before.files, now.files),
        *_items("trials", dict.fromkeys(before.trials, ""), dict.fromkeys(now.trials, "")),
    )


def _suites(run: RunManifest) -> dict[str, str]:
    """What is decided by the suites of each name, for several may have one."""
    found: dict[str, str] = {}
    for suite in run.suites:
        found[suite.name] = found.get(suite.name, "") + suite.sha256
    return found


def _agents(run: RunManifest) -> dict[str, dict[str, Any]]:
    return {
        agent.name: agent.model_dump(exclude={"name", "source", "limits"})
        | {f"limits.{name}": value for name, value in agent.limits.items()}
        for agent in run.agents
    }


def _plain(judges: Sequence[JudgeFacts]) -> list[dict[str, Any]]:
    return [judge.model_dump(exclude_none=True) for judge in judges]


def _items(what: str, before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    for name in dict.fromkeys((*before, *now)):
        place = f"{what}.{name}"
        if name not in now:
            yield f"{place}: is not there any more"
        elif name not in before:
            yield f"{place}: was not there"
        elif isinstance(before[name], dict):
            yield from _fields(f"{place}.", before[name], now[name])
        elif before[name] != now[name]:
            yield f"{place}: was changed"


def _fields(prefix: str, before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    for name, was in before.items():
        if was != now.get(name):
            yield f"{prefix}{name}: was {_shown(was)}, is {_shown(now.get(name))}"


def _shown(value: Any) -> str:
    return "none" if value is None else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
