"""Which agents a run uses: found, checked against their engines, resolved; faults of all of them in one pass."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from pydantic import ValidationError

from skillup.engines import ENGINES
from skillup.engines.base import Engine
from skillup.errors import Fault, InputError
from skillup.loading.agents import LoadedProfile, load_profile, profile_folders, resolve_agent
from skillup.loading.faults import faults_from_validation
from skillup.loading.paths import shown
from skillup.spec.agent import Agent
from skillup.spec.suite import Suite


def agents_of(
    suites: Sequence[Suite], named: Sequence[str], model: str | None, host: Mapping[str, str], *, required: bool = True
) -> tuple[tuple[Agent, ...], ...]:
    """The agents of each suite, in order: those that are named, else the suite's own engine.

    A suite without any is a fault where one is `required`, else it has none.

    Raises:
        InputError: with the faults of all profiles and names.
    """
    faults: list[Fault] = []
    found: list[tuple[Agent, ...]] = []
    for suite in suites:
        agents: list[Agent] = []
        for name, at in _named(suite, named, faults, required=required):
            try:
                agent = _agent(name, at, suite, model, host)
            except InputError as error:
                faults += error.faults
            else:
                agents += [] if agent in agents else [agent]
        found.append(tuple(agents))
    faults += _same_names([agent for agents in found for agent in agents])
    if faults:
        raise InputError(faults)
    return tuple(found)


def _named(suite: Suite, named: Sequence[str], faults: list[Fault], *, required: bool) -> list[tuple[str, Fault]]:
    """The names to look up, each with the place that says it."""
    if named:
        return [(name, Fault("--agent", 0, 0, "", "")) for name in dict.fromkeys(named)]
    place = Fault(shown(suite.source), *suite.engine_place, "engine.name", "")
    if suite.engine is not None:
        return [(suite.engine.name, place)]
    if required:
        hint = "pass --agent NAME (try --agent demo), or write `engine: {name: …}` in eval.yaml"
        faults.append(replace(place, key="", message="nothing says which agent is to run", hint=hint))
    return []


def _agent(name: str, at: Fault, suite: Suite, model: str | None, host: Mapping[str, str]) -> Agent:
    loaded = load_profile(name, profile_folders((suite.root, suite.source.parent)), ENGINES, at)
    engine = ENGINES[loaded.profile.engine]
    if loaded.profile.login == "copy" and loaded.document is not None and not engine.login_files:
        message, hint = f"{engine.name} keeps no login that could be copied", "pass a key by `env`"
        raise InputError([loaded.document.fault(("login",), message, hint=hint)])
    settings = _settings(engine, loaded)
    agent = resolve_agent(
        loaded,
        suite_engine=suite.engine,
        model=model,
        host=host,
        credentials=engine.credentials,
        addresses=engine.address_variables,
    )
    return replace(agent, settings=settings)


def _settings(engine: Engine, loaded: LoadedProfile) -> dict[str, object]:
    """The settings as the engine reads them; a binary given by a path is taken relative to the profile.

    Raises:
        InputError: the engine does not know a setting, or a value is wrong.
    """
    settings = loaded.profile.settings
    try:
        engine.settings.model_validate(settings)
    except ValidationError as error:
        if loaded.document is None:
            raise  # an engine that is named without a profile has no settings that could be wrong
        raise InputError(faults_from_validation(error, loaded.document, engine.settings, at=("settings",))) from None
    binary = settings.get("binary")
    if isinstance(binary, str) and "/" in binary and loaded.path is not None:
        return {**settings, "binary": os.path.normpath(loaded.path.parent / Path(binary).expanduser())}
    return settings


def _same_names(agents: Sequence[Agent]) -> list[Fault]:
    """One name must mean one profile in the whole run; only the model may be the suite's own."""
    sources: dict[str, set[str]] = {}
    for agent in agents:
        sources.setdefault(agent.name, set()).add(agent.source)
    hint = "results are kept by the agent's name: rename one of the files, or run the suites one by one"
    return [
        Fault("--agent", 0, 0, "", f"{len(places)} profiles are named {name}: {', '.join(sorted(places))}", hint)
        for name, places in sorted(sources.items())
        if len(places) > 1
    ]
