"""Which agents a run uses: found, checked against their engines, resolved; faults of all of them in one pass."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from pydantic import ValidationError

from skillup.engines import ENGINES
from skillup.engines.base import Engine, EngineSettings, Provider
from skillup.errors import Fault, InputError
from skillup.execution.requirements import unknown_engines
from skillup.loading.agents import LoadedProfile, load_profile, profile_folders, resolve_agent
from skillup.loading.faults import faults_from_validation
from skillup.loading.paths import shown
from skillup.spec.agent import LATER_ENGINES, Agent
from skillup.spec.suite import Suite


def agents_of(
    suites: Sequence[Suite], named: Sequence[str], model: str | None, host: Mapping[str, str], *, required: bool = True
) -> tuple[tuple[Agent, ...], ...]:
    """The agents of each suite, in order: those that are named, else the suite's own `agents`, else its engine.

    A suite without any is a fault where one is `required`, else it has none.

    Raises:
        InputError: with the faults of all profiles and names, those in `requires` included.
    """
    faults = [*unknown_engines(suites)]
    found: list[tuple[Agent, ...]] = []
    for suite in suites:
        agents: list[Agent] = []
        for name, at in _named(suite, named, faults, required=required):
            try:
                agent = _agent(name, at, suite, model, host)
            except InputError as error:
                faults += error.faults
            else:
                repeated = suite.agents and not named and _repeated(agent, agents)
                if repeated:
                    faults.append(replace(at, message=repeated, hint="name each agent once"))
                elif agent not in agents:
                    agents.append(agent)
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
    if suite.agents:
        faults += _unknown_default(suite, place)
        return [(entry.named, entry.at) for entry in suite.agents]
    if suite.engine is not None:
        return [(suite.engine.name, place)]
    if required:
        hint = "pass --agent NAME (try --agent demo), or write `agents: [NAME]` in eval.yaml"
        faults.append(replace(place, key="", message="nothing says which agent is to run", hint=hint))
    return []


def _unknown_default(suite: Suite, place: Fault) -> tuple[Fault, ...]:
    """What is wrong with an engine that says beside `agents` whom the default model is meant for."""
    if suite.engine is None or suite.engine.name in LATER_ENGINES:
        return ()
    try:
        load_profile(suite.engine.name, profile_folders((suite.root, suite.source.parent)), ENGINES, place)
    except InputError as error:
        return error.faults
    return ()


def _repeated(agent: Agent, before: Sequence[Agent]) -> str:
    """What to say of an agent that a suite names again, by whatever words; empty for a new one."""
    other = next((other for other in before if other.name == agent.name), None)
    if other is None:
        return ""
    if other.source == agent.source:
        return f"the agent {agent.name} is named twice"
    return f"two agents are named {agent.name}: {other.source} and {agent.source}"


def _agent(name: str, at: Fault, suite: Suite, model: str | None, host: Mapping[str, str]) -> Agent:
    loaded = load_profile(name, profile_folders((suite.root, suite.source.parent)), ENGINES, at)
    engine = ENGINES[loaded.profile.engine]
    if loaded.profile.login == "copy" and loaded.document is not None and not engine.login_files:
        message, hint = f"{engine.name} keeps no login that could be copied", "pass a key by `env`"
        raise InputError([loaded.document.fault(("login",), message, hint=hint)])
    _refuse_limits(engine, loaded)
    settings = _settings(engine, loaded)
    shared_home = _shared_home(engine, loaded, host)
    provider = engine.provider(engine.settings.model_validate(settings))
    agent = resolve_agent(
        loaded,
        suite_engine=suite.engine,
        model=model,
        host=host,
        credentials=provider.credentials,
        addresses=provider.address_variables,
    )
    return replace(agent, settings=settings, shared_home=shared_home)


def settings_of(agent: Agent) -> EngineSettings:
    """An agent's settings as its engine reads them; they were checked when its profile was."""
    return ENGINES[agent.engine].settings.model_validate(agent.settings)


def provider_of(agent: Agent) -> Provider:
    """The model API that an agent speaks."""
    return ENGINES[agent.engine].provider(settings_of(agent))


def model_address(agent: Agent, variables: Mapping[str, str]) -> str | None:
    """Where an agent's requests go with these variables of its suite; None where that is not known, or scripted."""
    provider = provider_of(agent)
    passed = {**variables, **agent.env}
    named = (passed[name] for name in provider.address_variables if passed.get(name))
    return None if agent.model.scripted else agent.model.base_url or next(named, provider.address)


def host_home(engine: Engine, host: Mapping[str, str]) -> Path:
    """Where the user's own CLI keeps its configuration, login and sessions."""
    chosen = host.get(engine.home_variable) if engine.home_variable else None
    return Path(chosen) if chosen else Path(host.get("HOME", "/")) / engine.home_folder


def _shared_home(engine: Engine, loaded: LoadedProfile, host: Mapping[str, str]) -> Path | None:
    """The CLI's folder in the home that the profile shares, which must be there; None where each trial has its own.

    A folder of the CLI's own is made in a home that the profile names: there the CLI may never have been.

    Raises:
        InputError: there is no such home.
    """
    if loaded.profile.session_binding == "isolated" or loaded.document is None:
        return None
    written = loaded.profile.home
    if written is None or loaded.path is None:
        place = host_home(engine, host)
        if place.is_dir():
            return place
        message = f"there is no {place}, which all trials would share"
        hint = f"log in with {engine.name} first, or name another user's home by `home:`"
        raise InputError([loaded.document.fault(("session_binding",), message, hint=hint)])
    home = loaded.path.parent / Path(written).expanduser()
    if not home.is_dir():
        message = f"{written} is no folder" if home.exists() else f"there is no folder {written}"
        hint = f"make {home}, or name another; it plays the user's home: the CLI uses {engine.home_folder} in it"
        raise InputError([loaded.document.fault(("home",), message, hint=hint)])
    return Path(os.path.realpath(home)) / engine.home_folder


def _refuse_limits(engine: Engine, loaded: LoadedProfile) -> None:
    """Limits of a profile that its engine cannot hold to.

    Raises:
        InputError: there are such.
    """
    limits, document = loaded.profile.limits, loaded.document
    faults = []
    if document is not None and limits.max_cost_usd is not None and not engine.reports_cost:
        message = f"{engine.name} does not say what a turn costs, so this cannot be held to"
        faults.append(document.fault(("limits", "max_cost_usd"), message, hint="limit the tokens instead: max_tokens"))
    if document is not None and limits.max_steps is not None and "constraints.max_steps" not in engine.supports:
        message = f"{engine.name} cannot be told how many steps a turn may take"
        faults.append(document.fault(("limits", "max_steps"), message, hint="limit the time or the tokens instead"))
    if faults:
        raise InputError(faults)


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
