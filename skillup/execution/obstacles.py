"""What keeps an agent from running a case, found before anything is spent; each becomes ERROR of its own trials."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from skillup.engines import ENGINES
from skillup.engines.base import Engine
from skillup.environments.address import Address
from skillup.environments.base import Site
from skillup.environments.host import passing_root
from skillup.environments.kinds import ENVIRONMENTS
from skillup.environments.process import Command, ExecutableNotFoundError, Nursery, ProcessError
from skillup.errors import TrialError
from skillup.execution.agents import model_address, provider_of, settings_of
from skillup.execution.single_shot import needs_turns
from skillup.loading.masks import masked_checks
from skillup.masking import Masker
from skillup.results import Failure
from skillup.spec.agent import Agent, Fallback
from skillup.spec.case import Case
from skillup.spec.problems import key_text
from skillup.spec.suite import Environment, Suite

VERSION_SECONDS = 20.0
"""A cold CLI on a busy machine takes some seconds to print its version; one that takes longer would hang turns, too."""


def credential_obstacle(engine: Engine, agent: Agent, suite: Suite, host: Mapping[str, str]) -> Failure | None:
    """What keeps this agent from reaching its model, as far as the variables can tell."""
    credentials = provider_of(agent).credentials
    if agent.missing:
        names = ", ".join(dict.fromkeys(wanted for _, wanted in agent.missing))
        kind = "auth" if any(variable in credentials for variable, _ in agent.missing) else "setup"
        message = f"the profile refers to {names}, which the host does not have"
        return _obstacle(kind, message, f"export {names}, or change {agent.source}")
    passed = {**suite.environment.env, **agent.env}
    if agent.model.scripted or agent.has_login or any(passed.get(name) for name in credentials):
        return None
    scripted = "`--model scripted` plays the case's script without any"
    held = [name for name in credentials if host.get(name)]
    if held:
        message = f"the host has {held[0]}, but the profile does not pass it"
        return _obstacle("auth", message, f"add `env: {{{held[0]}: null}}` to {agent.source}; {scripted}")
    message = f"no credential for {engine.name}: {' and '.join(credentials)} {_are_not_set(credentials)}"
    login = "log in with the CLI and write `login: copy` in the profile, " if engine.login_files else ""
    return _obstacle("auth", message, f"export {' or '.join(credentials)}; {login}{scripted}")


def _are_not_set(names: Sequence[str]) -> str:
    return "is not set" if len(names) == 1 else "are not set"


def environment_obstacle(wanted: Environment, host: Mapping[str, str], nursery: Nursery) -> Failure | None:
    """Why the environment that a suite asks for cannot be had on this machine; there is no other in its place."""
    missing = ENVIRONMENTS[wanted.type].missing(wanted, host, nursery)
    return _obstacle("environment", missing.message, missing.hint) if missing else None


def permission_obstacle(agent: Agent, wanted: Environment) -> Failure | None:
    """Whether what keeps an agent from writing elsewhere is missing, or is there twice."""
    confines_itself = ENGINES[agent.engine].confines_itself(settings_of(agent))
    if wanted.type != "none" and confines_itself:
        message = f"the sandbox of {agent.engine} itself cannot be made within `environment.type: {wanted.type}`"
        hint = "switch it off (Codex: `settings: {sandbox: danger-full-access}`): the environment confines it"
        return _obstacle("environment", message, hint)
    if agent.permissions == "full" or confines_itself:
        return None
    if agent.shared_home is not None:
        message = (
            f"{agent.name} asks for `permissions: workspace`, and it can write in {agent.shared_home}, its shared home"
        )
        hint = "use `session_binding: isolated`, with `login: copy` where it needs a login, or `permissions: full`"
        return _obstacle("environment", message, hint)
    if wanted.type != "none":
        return None
    message = f"{agent.name} asks for `permissions: workspace`, and on the host nothing keeps it from writing elsewhere"
    return _obstacle(
        "environment", message, "write `environment: {type: bubblewrap}` in the suite, or `permissions: full`"
    )


def network_obstacle(agent: Agent, wanted: Environment) -> Failure | None:
    """Whether an agent cannot reach its model through the network that its suite leaves it."""
    if wanted.reach == "full" or (wanted.reach == "model_only" and agent.model.scripted):
        return None
    if wanted.reach == "none":
        message = f"with `network: none` {agent.name} cannot reach its model"
        return _obstacle("environment", message, "write `network: model_only`: the model and nothing else is reached")
    if agent.has_login:
        message = (
            f"{agent.name} has a login, and that asks other servers than its model; `network: model_only` has none"
        )
        return _obstacle("environment", message, "pass a key by the profile's `env`, or write `network: full`")
    address = model_address(agent, wanted.env)
    try:
        Address.of(address or "")
    except ValueError:
        message = f"`network: model_only` needs the address of {agent.name}'s model, which is {address or 'not given'}"
        return _obstacle("environment", message, "write it in the profile: `model: {base_url: …}`")
    return None


def engine_version(
    engine: Engine, settings: Mapping[str, object], host: Mapping[str, str], nursery: Nursery, wanted: Environment
) -> tuple[str | None, Failure | None]:
    """What the CLI prints as its version where its turns would run, or why it cannot be started there."""
    argv = engine.version_argv(engine.settings.model_validate(settings))
    with passing_root() as root:
        output, errors = root.scratch / "version", root.scratch / "errors"
        env = {"PATH": host.get("PATH", os.defpath), "HOME": str(root.home), **engine.version_variables}
        try:
            with ENVIRONMENTS[wanted.type].open(Site(wanted, root, host, nursery)) as environment:
                command = environment.command(Command(argv, env, root.workspace))
                ended = nursery.run(command, stdout=output, stderr=errors, deadline_seconds=VERSION_SECONDS)
        except ExecutableNotFoundError as error:
            hint = (
                "install it, or name it in the profile's `settings: {binary: …}`; `skillup doctor` shows what is here"
            )
            return None, _obstacle("engine_missing", str(error), hint)
        except (ProcessError, TrialError) as error:
            return None, _obstacle("environment", f"{argv[0]} cannot be started: {error}")
        text = output.read_text(encoding="utf-8", errors="replace").strip()
        if ended.exit_code != 0 or not text:
            how = f"signal {ended.signal}" if ended.signal else f"exit code {ended.exit_code}"
            return None, _obstacle("crash", f"`{' '.join(argv)}` ended with {how} and printed no version")
        return text.splitlines()[0][:100], None


def _obstacle(kind: str, message: str, hint: str = "") -> Failure:
    return Failure.model_validate({"kind": kind, "phase": "plan", "message": message, "hint": hint})


def skill_obstacle(suite: Suite, agent: Agent) -> Failure | None:
    """Whether the suite's skills cannot be installed: nothing ever goes into a home that is the user's own."""
    engine = ENGINES[agent.engine]
    inside = f"{engine.skills_folder}/".startswith(f"{engine.home_folder}/")
    if agent.shared_home is None or not suite.skills or not inside:
        return None
    message = f"{engine.name} finds skills in its home alone, and {agent.shared_home} is shared: nothing is put into it"
    hint = "use `login: copy` with `session_binding: isolated`, or run the cases without the suite's skills"
    return _obstacle("setup", message, hint)


def _priced() -> str:
    """The engines that say what a turn costs."""
    return " or ".join(name for name, engine in ENGINES.items() if engine.reports_cost)


def resumes(engine: Engine, agent: Agent) -> bool:
    """Whether this agent can hold a conversation of several turns in one session."""
    return engine.resumes(settings_of(agent))


def case_obstacle(case: Case, agent: Agent, engine: Engine, fallback: Fallback | None) -> Failure | None:
    """What keeps this agent from running this case, however well it could run others."""
    if len(case.turns) > 1 and not resumes(engine, agent):
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
    unsupported = [key for key in case.needs if key not in engine.supports]
    if unsupported:
        able = ", ".join(name for name, other in ENGINES.items() if other.supports >= set(unsupported))
        message = f"{engine.name} cannot do what {' and '.join(unsupported)} of {case.id} asks for"
        return _obstacle("setup", message, f"run the case on {able}, or give the agent real tools and turns instead")
    if case.money_limits and not engine.reports_cost:
        message = (
            f"{engine.name} does not say what a turn costs, so {case.money_limits[0]} of {case.id} cannot be held to"
        )
        return _obstacle("setup", message, f"limit the tokens instead (`max_tokens`), or run the case on {_priced()}")
    for names in (names for rule in (*case.success_rules, *case.graded_rules) for names in rule.needed_calls):
        if set(names) <= engine.hidden_tools:
            tools = ", ".join(names)
            message = f"{engine.name} cannot show calls of {tools}, which a rule of {case.id} requires"
            return _obstacle("unobservable", message, "check the answer or the workspace instead")
    return None


def mask_obstacle(case: Case, secrets: Sequence[str]) -> Failure | None:
    """Whether a check looks for a credential of its own trial: masked, it would match any other one, too."""
    places = masked_checks(case, Masker(secrets))
    if not places:
        return None
    message = f"{key_text(places[0])} of {case.id} holds a credential of this trial, which is masked in what is judged"
    return _obstacle("setup", message, "write [masked], which stands for every secret, or check something else")
