"""Everything that a trial needs before its first turn: home, workspace, variables, model address."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from skillup.engines import ENGINES
from skillup.engines.base import Endpoint, Engine, Provider, Surroundings
from skillup.environments.git import WorkspaceGit
from skillup.environments.host import TrialRoot, child_variables
from skillup.environments.process import Command, Ended
from skillup.environments.workspace import (
    Run,
    copy_fixture,
    copy_login,
    disarm_made,
    install_skill,
    login_secrets,
    make_home,
    set_up,
    write_files,
)
from skillup.errors import Cancelled, TrialError
from skillup.execution.agents import host_home
from skillup.execution.mocks import MockedTools
from skillup.execution.task import Services, TrialTask
from skillup.modelserver.route import Route
from skillup.modelserver.scripted import ScriptedSource

_TAIL_BYTES = 4000
"""As much of a set-up step's output as a report shows."""


def prepare(task: TrialTask, services: Services, engine: Engine, root: TrialRoot) -> dict[str, str]:
    """Fills the trial root, and gives the variables of every process of the trial.

    Order, as the public format documents it: set-up steps in the empty workspace, then skills, then the fixture, its
    repository and branch, the files, and the patch.

    Raises:
        TrialError: `setup` or `auth`.
        Cancelled: the user stopped the run.
    """
    run = _runner(services, root)
    variables = child_variables(services.host, root, task.environment.env, task.agent.env)
    for index, step in enumerate(task.environment.setup_steps):
        command = Command(("/bin/sh", "-c", step.run), variables, root.workspace)
        key, hint = f"environment.setup_steps[{index}]", "timeout_seconds of the step raises it"
        set_up(command, run, step.timeout_seconds, key=key, shown=step.run, slow_hint=hint)
    for skill in task.skills:
        install_skill(skill.folder, skill.files, skill_folder(engine, root, skill.name))
    home = engine_home(task, engine, root)
    make_home(home)
    if task.agent.login == "copy":
        copy_login(engine.login_files, host_home(engine, services.host), home)
    context, git = task.case.context, WorkspaceGit(task.case.context.git, root, variables, run)
    if context.repo_fixture is not None:
        copy_fixture(task.suite_root / context.repo_fixture, root.workspace)
    is_new = git.open()
    write_files(context.files, root.workspace)
    git.close(is_new=is_new, diff=task.suite_root / context.git.apply_diff if context.git.apply_diff else None)
    if context.files or context.git.apply_diff:
        disarm_made(root.workspace)
    return variables


def skill_folder(engine: Engine, root: TrialRoot, name: str) -> Path:
    """Where a skill of the suite is installed."""
    return root.home / engine.skills_folder / name


def secrets_of(task: TrialTask, host: Mapping[str, str]) -> tuple[str, ...]:
    """The texts that nothing of this trial may show: credentials in its variables, and those of the CLI's login."""
    if not task.agent.has_login:
        return task.agent.secrets
    engine = ENGINES[task.agent.engine]
    home = task.agent.shared_home or host_home(engine, host)
    return (*task.agent.secrets, *login_secrets(engine.login_files, home))


def engine_home(task: TrialTask, engine: Engine, root: TrialRoot) -> Path:
    """The CLI's own folder: the shared one, else one in the trial's private home."""
    return task.agent.shared_home or root.home / engine.home_folder


def _runner(services: Services, root: TrialRoot) -> Run:
    def run(command: Command, seconds: float) -> tuple[Ended, str]:
        output = root.scratch / "setup.log"
        ended = services.nursery.run(
            command, stdout=output, stderr=output, deadline_seconds=seconds, cancelled=services.cancelled
        )
        if ended.how == "cancelled":
            raise Cancelled
        with output.open("rb") as file:
            file.seek(max(0, output.stat().st_size - _TAIL_BYTES))
            return ended, file.read().decode("utf-8", errors="replace").strip()

    return run


@contextmanager
def open_route(task: TrialTask, services: Services, root: TrialRoot) -> Iterator[Route | None]:
    """The trial's own address at the loopback model; None when a real provider answers.

    Raises:
        TrialError: `environment`, the loopback model cannot be started.
    """
    if not task.agent.model.scripted:
        yield None
        return
    source = ScriptedSource(task.case.script or ())
    try:
        route = services.models().open_route(source, workspace=root.workspace)
    except OSError as error:
        message = f"the loopback model cannot be started on 127.0.0.1: {error}"
        raise TrialError("environment", message, phase="setup") from error
    try:
        yield route
    finally:
        services.models().close_route(route)


@contextmanager
def open_surroundings(task: TrialTask, services: Services, engine: Engine, root: TrialRoot) -> Iterator[Surroundings]:
    """The mocked tools of the case, where they are answered, and what was said before its first turn.

    Raises:
        TrialError: `environment`, nothing can be answered on 127.0.0.1.
    """
    case, history = task.case, None
    if case.input.history:
        history = root.scratch / "history.json"
        history.write_text(engine.history(case.input.history), encoding="utf-8")
    around = Surroundings(case.constraints.max_steps, history)
    if not case.mock_tools:
        yield around
        return
    try:
        route = services.models().open_tools(MockedTools(case.mock_tools), workspace=root.workspace)
    except OSError as error:
        raise TrialError("environment", f"mocked tools need a port of 127.0.0.1: {error}", phase="setup") from error
    try:
        yield replace(around, tools_url=route.base_url)
    finally:
        services.models().close_route(route)


def endpoint_of(task: TrialTask, route: Route | None) -> Endpoint:
    """Which model at which address the CLI is told to use."""
    if route is not None:
        return Endpoint(model=None, base_url=route.base_url, scripted=True)
    return Endpoint(model=task.agent.model.name, base_url=task.agent.model.base_url)


def credential_of(task: TrialTask, provider: Provider) -> str | None:
    """The variable that holds the provider's key, if one is passed."""
    return next((name for name in provider.credentials if name in task.agent.env), None)


def wanted_paths(task: TrialTask) -> frozenset[str]:
    """Files whose content a rule reads: they are kept whatever their size."""
    return frozenset(path for rule in task.case.all_rules for path in rule.files_read)


def running_as_root() -> bool:
    """Whether the CLIs will run as root; some ask for a switch then."""
    return hasattr(os, "geteuid") and os.geteuid() == 0


def environment_names(variables: Mapping[str, str]) -> tuple[str, ...]:
    """The names of the variables, for the record; never their values."""
    return tuple(sorted(variables))
