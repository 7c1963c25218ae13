"""Which model judges a case: the command line, then the variables, then the case. Decided before anything is spent.

An agent that judges (`engine`) is the case's choice alone; its model is chosen like any other.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, get_args

from skillup.engines import ENGINES
from skillup.environments.host import ROOT_VARIABLE, instructions_above, trial_base
from skillup.errors import Fault, InputError
from skillup.loading.paths import shown
from skillup.modelclient.client import PROVIDERS, ModelRef, Provider
from skillup.modelclient.clients import missing
from skillup.spec.case import Case
from skillup.spec.judge import JudgeModel
from skillup.spec.suite import Suite

VARIABLES: Final = ("SKILLUP_JUDGE_PROVIDER", "SKILLUP_JUDGE_MODEL", "SKILLUP_JUDGE_BASE_URL", "SKILLUP_JUDGE_API_KEY")
"""The judge's own variables, apart from the agent's; no agent ever gets them."""

_PROVIDER, _MODEL, _BASE_URL, _KEY = VARIABLES

_KEYS: Final[Mapping[str, str]] = {
    "anthropic": "ANTHROPIC_API_KEY",
    "openai": "OPENAI_API_KEY",
    "ollama": "OLLAMA_API_KEY",
}
"""Where a provider's key is when the judge has none of its own."""

_NO_KEY: Final = "none"
"""What a CLI is given for an endpoint of the user's own that asks for no key: without one it does not start."""

_PREFIXES: Final[tuple[tuple[str, Provider], ...]] = (("claude", "anthropic"), ("gpt-", "openai"))
"""Names that say whose they are."""

_HINT: Final = (
    "write `judge: {model: {provider: …, name: …}}`, pass --judge-model PROVIDER/NAME, or export "
    f"{_PROVIDER} and {_MODEL}; --no-model-judge runs without"
)


@dataclass(frozen=True)
class JudgeChoice:
    """What the command line says about the judge: `PROVIDER/NAME`, a name, or nothing."""

    model: str | None = None
    without: bool = False


class _NoModelError(Exception):
    """(message, hint): no model can be had for a case."""


def judge_of(case: Case, choice: JudgeChoice, host: Mapping[str, str], where: str) -> ModelRef | None:
    """The model that judges a case; None when it has no criteria, or is to be run without.

    Raises:
        InputError: nothing says which model, its key is missing, or what it needs is not installed.
    """
    if choice.without or not case.criteria:
        return None
    try:
        return _resolved(case, choice, host)
    except _NoModelError as error:
        message, hint = error.args
        raise InputError([Fault(where, 0, 0, "judge.model", f"{case.id}: {message}", hint)]) from None


def models_of(case: Case, choice: JudgeChoice, host: Mapping[str, str], where: str) -> dict[str, ModelRef]:
    """The models that judge a case, by the ids of its judges; "" is the only one's.

    Raises:
        InputError: with the faults of all judges, as `judge_of`.
    """
    found: dict[str, ModelRef] = {}
    faults: list[Fault] = []
    alone = {member.id: case.judged_by(member) for member in case.judges} or {"": case}
    for name, judged in alone.items():
        try:
            ref = judge_of(judged, choice, host, where)
        except InputError as error:
            faults += error.faults
        else:
            found |= {name: ref} if ref else {}
    if faults:
        raise InputError(list(dict.fromkeys(faults)))
    return found


def usable_judges(host: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """What could judge here, models and agents, each with a sentence; of keys only the variables are named."""
    for provider in PROVIDERS:
        lacking = missing(ModelRef(provider, None if provider == "local" else "any"))
        names = (_KEY, _KEYS[provider]) if provider in ("anthropic", "openai") else ()
        held = [f"${name}" for name in names if host.get(name)]
        if lacking:
            yield provider, f"{lacking[0]} ({lacking[1]})"
        elif names:
            yield provider, f"usable by {held[0]}" if held else f"no key in {' or '.join(names)}"
        else:
            yield provider, "usable for trying out" if provider == "local" else "usable where it runs; no key is needed"
    for name in ENGINES:
        try:
            ref = _agent(name, _Said(), _Said(), _Said(), host)
        except _NoModelError as error:
            yield f"engine {name}", error.args[0]
        else:
            yield f"engine {name}", f"usable by ${_KEY if host.get(_KEY) else ref.credential}"


def judges_of(suites: Sequence[Suite], choice: JudgeChoice, host: Mapping[str, str]) -> dict[str, dict[str, ModelRef]]:
    """The models of every case that needs any, by the case's id and then the judge's.

    Raises:
        InputError: with the faults of all cases.
    """
    found: dict[str, dict[str, ModelRef]] = {}
    faults: list[Fault] = []
    for suite, case in _cases(suites):
        try:
            found[case.id] = models_of(case, choice, host, shown(suite.source))
        except InputError as error:
            faults += error.faults
    if faults:
        raise InputError(faults)
    return found


def _cases(suites: Sequence[Suite]) -> Iterator[tuple[Suite, Case]]:
    for suite in suites:
        for case in suite.cases:
            yield suite, case


@dataclass(frozen=True)
class _Said:
    """What one place says about the model."""

    name: str | None = None
    provider: Provider | None = None
    base_url: str | None = None


def _resolved(case: Case, choice: JudgeChoice, host: Mapping[str, str]) -> ModelRef:
    """The model as the command line, the variables and the case say together, the first of them that says it."""
    line, variables, written = _line(choice.model), _variables(host), _written(case)
    if case.judge is not None and case.judge.engine is not None:
        return _agent(case.judge.engine, line, variables, written, host)
    named = next((said for said in (line, variables, written) if said.name or said.provider), None)
    if named is None:
        raise _NoModelError("nothing says which model judges its criteria", _HINT)
    own = written.provider or ("openai" if written.base_url and not _by_name(written.name) else None)
    provider = line.provider or variables.provider or _by_name(named.name) or own
    if provider is None:
        raise _NoModelError(f"whose model {named.name} is cannot be told from its name", _HINT)
    if provider == "local":
        return _checked(ModelRef("local", named.name if named.provider == "local" else None))
    name = next((said.name for said in (line, variables, written) if said.name), None)
    if name is None:
        raise _NoModelError(f"nothing says which model of {provider} judges its criteria", _HINT)
    same = own in (None, provider)
    base_url = variables.base_url or (written.base_url if same else None)
    return _checked(ModelRef(provider, name, base_url, _key(provider, base_url, host)))


def _agent(engine_name: str, line: _Said, variables: _Said, written: _Said, host: Mapping[str, str]) -> ModelRef:
    """An agent's CLI with its model; who says none leaves the choice to the CLI.

    Raises:
        _NoModelError: the CLI is not there, cannot ask that model, or has no key; or no folder is fit for it.
    """
    engine = ENGINES[engine_name]
    able = [provider for provider in PROVIDERS if engine.as_judge(provider)]
    name = line.name or variables.name or written.name
    provider = line.provider or variables.provider or _by_name(name) or written.provider or able[0]
    settings = engine.as_judge(provider)
    if settings is None:
        hint = f"name a model of {' or '.join(able)}, or remove `engine`: a model is asked directly then"
        raise _NoModelError(f"the judge is {engine_name}, which asks no models of {provider}", hint)
    above = instructions_above(trial_base(host))
    if above:
        raise _NoModelError(f"{above[0]} lies above the folder of a judge", f"set {ROOT_VARIABLE} to another folder")
    binary = engine.version_argv(settings)[0]
    if shutil.which(binary, path=host.get("PATH", os.defpath)) is None:
        raise _NoModelError(f"the judge is {engine_name}, and there is no `{binary}` on the PATH", "install it")
    base_url = variables.base_url or (written.base_url if written.provider in (None, provider) else None)
    credentials = engine.provider(settings).credentials
    held = next((variable for variable in credentials if host.get(variable)), None) if base_url is None else None
    own = host.get(_KEY)
    if not own and held is None and base_url is None:
        raise _NoModelError(
            f"no key for the judge: none of {', '.join((_KEY, *credentials))} is set",
            f"export {_KEY}; --no-model-judge runs without",
        )
    return ModelRef(
        provider,
        name,
        base_url,
        own or (host[held] if held else _NO_KEY),
        engine=engine_name,
        credential=credentials[0] if own or held is None else held,
    )


def _checked(ref: ModelRef) -> ModelRef:
    lacking = missing(ref)
    if lacking:
        raise _NoModelError(*lacking)
    return ref


def _line(model: str | None) -> _Said:
    """`PROVIDER/NAME`, `local`, `local/FILE`, or a name; a name may hold `/` itself."""
    first, _, rest = (model or "").partition("/")
    provider = _provider(first)
    if provider is None or not (rest or provider == "local"):
        return _Said(model)
    return _Said(rest or None, provider)


def _variables(host: Mapping[str, str]) -> _Said:
    written = host.get(_PROVIDER)
    if written and _provider(written) is None:
        raise _NoModelError(f"{_PROVIDER} is {written!r}", f"one of {', '.join(PROVIDERS)}")
    base_url = host.get(_BASE_URL) or None
    if base_url and not base_url.startswith(("http://", "https://")):
        raise _NoModelError(f"{_BASE_URL} is no http(s) address", "begin it with https:// or http://")
    if base_url and "@" in base_url.split("/")[2]:
        raise _NoModelError(f"{_BASE_URL} holds a secret, and addresses are written down", f"export {_KEY} instead")
    said = _line(host.get(_MODEL) or None)
    provider = _provider(written)
    return _Said(host.get(_MODEL) or None, provider, base_url) if provider else replace(said, base_url=base_url)


def _written(case: Case) -> _Said:
    model = (case.judge.model if case.judge else None) or JudgeModel()
    return _Said(model.name, model.provider, model.base_url)


def _provider(name: str | None) -> Provider | None:
    return next((known for known in get_args(Provider) if known == name), None)


def _by_name(name: str | None) -> Provider | None:
    return next((provider for prefix, provider in _PREFIXES if (name or "").startswith(prefix)), None)


def _key(provider: Provider, base_url: str | None, host: Mapping[str, str]) -> str | None:
    """The judge's own key, else the provider's; that one is sent to the provider's own address alone.

    Raises:
        _NoModelError: the provider asks for one, and there is none.
    """
    if provider == "local":
        return None
    own = host.get(_KEY)
    if own:
        return own
    if base_url is None and host.get(_KEYS[provider]):
        return host[_KEYS[provider]]
    if base_url is None and provider != "ollama":
        raise _NoModelError(
            f"no key for the judge: neither {_KEY} nor {_KEYS[provider]} is set",
            f"export {_KEY}; --judge-model local needs none, and --no-model-judge runs without",
        )
    return None
