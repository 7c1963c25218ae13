"""Agent profiles: found by name or file, checked, and resolved with the suite and the command line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path

from pydantic import ValidationError

from skillup.errors import Fault, InputError
from skillup.loading.faults import faults_from_validation
from skillup.loading.paths import shown
from skillup.loading.yamlfile import read_yaml
from skillup.spec.agent import REFERENCE, SCRIPTED, Agent, AgentProfile, ModelChoice, is_secret
from skillup.spec.suite import EngineChoice

_PACKAGE = Path(__file__).resolve().parents[1]


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
        for path in sorted(folder.glob("*.y*ml")):
            found.setdefault(path.stem, path)
    return found


def load_profile(named: str, folders: Sequence[Path], engines: Iterable[str]) -> tuple[str, AgentProfile, str]:
    """The agent's name, its profile, and where it came from.

    Raises:
        InputError: there is no such profile, or it is faulty.
    """
    profiles, known = known_profiles(folders), sorted(engines)
    if named in profiles:
        path = profiles[named]
    elif named in known:
        return named, AgentProfile(engine=named), "built in"
    elif "/" in named or named.endswith((".yaml", ".yml")):
        path = Path(named)
    else:
        names = sorted({*profiles, *known})
        close = get_close_matches(named, names, n=1)
        hint = f'did you mean "{close[0]}"?' if close else f"there are: {', '.join(names)}; or name a file"
        raise InputError([Fault("--agent", 0, 0, "", f'there is no agent "{named}"', hint)])
    document = read_yaml(path, shown(path))
    try:
        profile = AgentProfile.model_validate(document.data)
    except ValidationError as error:
        raise InputError(faults_from_validation(error, document, AgentProfile)) from None
    if profile.engine not in known:
        close = get_close_matches(profile.engine, known, n=1)
        hint = f'did you mean "{close[0]}"?' if close else f"there are: {', '.join(known)}"
        raise InputError([document.fault(("engine",), f'there is no engine "{profile.engine}"', hint=hint)])
    return path.stem, profile, shown(path)


def resolve_agent(
    name: str,
    profile: AgentProfile,
    source: str,
    *,
    suite_engine: EngineChoice | None,
    model: str | None,
    host: Mapping[str, str],
    withheld: Iterable[str],
) -> Agent:
    """The agent as it will be used.

    The model is the command line's, else the profile's, else the suite's where it is scripted or meant for the same
    engine. `${NAME}` must exist on the host; a name with null is passed if it does. `withheld` are the engine's
    credential variables: with a scripted model none of them is passed.
    """
    choice = profile.model or _suite_model(profile, suite_engine) or ModelChoice()
    if model is not None:
        choice = ModelChoice(
            provider=choice.provider, name=model, base_url=None if model == SCRIPTED else choice.base_url
        )
    values: dict[str, str] = {}
    secrets: list[str] = []
    missing: list[str] = []
    for variable, written in profile.env.items():
        if choice.scripted and variable in withheld:
            continue
        reference = REFERENCE.match(written) if written is not None else None
        if written is None or reference:
            wanted = reference.group(1) if reference else variable
            if wanted in host:
                values[variable] = host[wanted]
                if is_secret(variable, host[wanted]):
                    secrets.append(host[wanted])
            elif reference:
                missing.append(wanted)
        else:
            values[variable] = written
    return Agent(
        name=name,
        engine=profile.engine,
        model=choice,
        settings=profile.settings,
        env=values,
        secrets=tuple(secrets),
        missing=tuple(missing),
        login="none" if choice.scripted else profile.login,
        permissions=profile.permissions,
        turn_seconds=profile.limits.turn_seconds,
        source=source,
    )


def _suite_model(profile: AgentProfile, engine: EngineChoice | None) -> ModelChoice | None:
    if engine is None or engine.model is None:
        return None
    return engine.model if engine.model.scripted or engine.name == profile.engine else None
