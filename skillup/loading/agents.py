"""Agent profiles: found by name or file, checked, and resolved with the suite and the command line."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import ValidationError

from skillup.errors import Fault, InputError
from skillup.loading.document import Document
from skillup.loading.faults import faults_from_validation
from skillup.loading.paths import Ground, shown
from skillup.loading.spelling import closest
from skillup.loading.yamlfile import read_yaml
from skillup.spec.agent import LATER_ENGINES, REFERENCE, SCRIPTED, Agent, AgentProfile, ModelChoice, is_secret
from skillup.spec.problems import quoted
from skillup.spec.suite import EngineChoice, NamedAgent

_PACKAGE = Path(__file__).resolve().parents[1]

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}\Z")


@dataclass(frozen=True)
class LoadedProfile:
    """A profile and where it came from; `document` is None for an engine that was named without a profile."""

    name: str
    profile: AgentProfile
    source: str
    path: Path | None = None
    document: Document | None = None


def shipped_folder() -> Path:
    """The profiles that ship: inside the installed package, or beside it in a checkout."""
    inside = _PACKAGE / "agents"
    return inside if inside.is_dir() else _PACKAGE.parent / "agents"


def profile_folders(suite_folders: Iterable[Path]) -> tuple[Path, ...]:
    """Where profiles are looked for, first wins: beside the suite, in the working folder, those that ship."""
    places = [*(folder / "agents" for folder in suite_folders), Path.cwd() / "agents", shipped_folder()]
    return tuple(dict.fromkeys(place for place in places if place.is_dir()))


def known_profiles(folders: Sequence[Path]) -> dict[str, Path]:
    """Profile files by name; the first folder wins."""
    found: dict[str, Path] = {}
    for folder in folders:
        for path in sorted(folder.iterdir()):
            if path.suffix in (".yaml", ".yml") and not path.name.startswith("."):
                found.setdefault(path.stem, path)
    return found


def is_profile_file(named: str) -> bool:
    """Whether an agent is named by its file and not by its name."""
    return "/" in named or named.endswith((".yaml", ".yml"))


def load_profile(named: str, folders: Sequence[Path], engines: Iterable[str], at: Fault) -> LoadedProfile:
    """The profile of that name or file; `at` is a fault at the place that names it, with message and hint to come.

    Raises:
        InputError: there is no such profile, or it is faulty.
    """
    profiles, known = known_profiles(folders), sorted(engines)
    if named in profiles:
        path = profiles[named]
    elif named in known:
        return LoadedProfile(named, AgentProfile(engine=named), "built in")
    elif is_profile_file(named):
        path = Path(named)
    elif named in LATER_ENGINES:
        message = f"the engine {named} is part of the format but not supported yet"
        raise InputError([replace(at, message=message, hint=f"there are: {', '.join(known)}")])
    else:
        raise InputError([_unknown("agent", named, sorted({*profiles, *known}), at, "; or name a profile's file")])
    document = read_yaml(path, shown(path.absolute()))
    try:
        profile = AgentProfile.model_validate(document.data)
    except ValidationError as error:
        raise InputError(faults_from_validation(error, document, AgentProfile)) from None
    if not _NAME.match(path.stem):
        message = f"the agent's name is the file's, and {quoted(path.stem)} cannot name a folder"
        raise InputError([document.fault((), message, hint="rename the file: letters, digits, `.`, `_` and `-`")])
    if profile.engine in LATER_ENGINES and profile.engine not in known:
        message = f"the engine {profile.engine} is part of the format but not supported yet"
        raise InputError([document.fault(("engine",), message, hint=f"there are: {', '.join(known)}")])
    if profile.engine not in known:
        raise InputError([_unknown("engine", profile.engine, known, document.fault(("engine",), ""))])
    return LoadedProfile(path.stem, profile, shown(path.absolute()), path.absolute(), document)


def _unknown(what: str, named: str, known: Sequence[str], at: Fault, more: str = "") -> Fault:
    meant = closest(named, known)
    hint = f"did you mean {quoted(meant)}?" if meant else f"there are: {', '.join(known)}{more}"
    return replace(at, message=f"there is no {what} {quoted(named)}", hint=hint)


def suite_agents(
    entries: Sequence[str], document: Document, ground: Ground, faults: list[Fault]
) -> tuple[NamedAgent, ...]:
    """The agents that a suite names, their files found; faults are added. Names are looked up by whoever runs them."""
    found: list[NamedAgent] = []
    for index, written in enumerate(entries):
        place = ("agents", index)
        if not is_profile_file(written):
            found.append(NamedAgent(written, document.fault(place, "")))
            continue
        message, hint = ground.complaint(written) or ("", f"paths are relative to {ground.root}")
        path = Path(os.path.normpath(ground.root / written))
        if not message and not path.is_file():
            message = f"there is no file {written}"
        if message:
            faults.append(document.fault(place, message, hint=hint))
        else:
            found.append(NamedAgent(str(path), document.fault(place, "")))
    return tuple(found)


def resolve_agent(
    loaded: LoadedProfile,
    *,
    suite_engine: EngineChoice | None,
    model: str | None,
    host: Mapping[str, str],
    credentials: Sequence[str],
    addresses: Sequence[str],
) -> Agent:
    """The agent as it will be used.

    The model is the command line's, else the profile's, else the suite's where it is scripted or meant for the same
    engine. `${NAME}` must exist on the host; a name with null is passed if it does. `credentials` and `addresses` are
    the engine's variables: with a scripted model none of them is passed, and without a profile all that the host has.
    """
    profile = loaded.profile
    choice = profile.model or _suite_model(profile, suite_engine) or ModelChoice()
    if model is not None:
        choice = ModelChoice(
            provider=choice.provider, name=model, base_url=None if model == SCRIPTED else choice.base_url
        )
    withheld = (*credentials, *addresses)
    written_env = profile.env if loaded.document else dict.fromkeys(withheld)
    values: dict[str, str] = {}
    secrets: list[str] = []
    missing: list[tuple[str, str]] = []
    for variable, written in written_env.items():
        if choice.scripted and variable in withheld:
            continue
        reference = REFERENCE.match(written) if written is not None else None
        if written is None or reference:
            wanted = reference.group(1) if reference else variable
            if wanted in host:
                values[variable] = host[wanted]
                if is_secret(variable, host[wanted]) or is_secret(wanted, host[wanted]):
                    secrets.append(host[wanted])
            elif reference:
                missing.append((variable, wanted))
        else:
            values[variable] = written
    return Agent(
        name=loaded.name,
        engine=profile.engine,
        model=choice,
        settings=profile.settings,
        env=values,
        secrets=tuple(secrets),
        missing=tuple(missing),
        login="none" if choice.scripted else profile.login,
        permissions=profile.permissions,
        limits=profile.limits,
        source=loaded.source,
        fallback=profile.fallback,
    )


def _suite_model(profile: AgentProfile, engine: EngineChoice | None) -> ModelChoice | None:
    if engine is None or engine.model is None:
        return None
    return engine.model if engine.model.scripted or engine.name == profile.engine else None
