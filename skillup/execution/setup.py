"""Everything that a trial needs before its first turn: home, workspace, variables, model address."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from skillup.engines import ENGINES
from skillup.engines.base import Engine
from skillup.environments.base import TrialEnvironment
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
from skillup.execution.agents import host_home
from skillup.execution.inputs import refuse_changed
from skillup.execution.task import Services, TrialTask
from skillup.spec.agent import credentials_in, proxy_passwords

_TAIL_BYTES = 4000
"""As much of a set-up step's output as a report shows."""


def prepare(
    task: TrialTask, services: Services, engine: Engine, root: TrialRoot, environment: TrialEnvironment
) -> dict[str, str]:
    """Fills the trial root, and gives the variables of every process of the trial.

    Order, as the public format documents it: set-up steps in the empty workspace, then skills, then the fixture, its
    repository and branch, the files, and the patch.

    Raises:
        TrialError: `setup` or `auth`.
        Cancelled: the user stopped the run.
    """
    run = _runner(services, root, environment)
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
    refuse_changed(task.inputs)  # after it was copied: what changes while it is must be seen, too
    return variables


def skill_folder(engine: Engine, root: TrialRoot, name: str) -> Path:
    """Where a skill of the suite is installed."""
    return root.home / engine.skills_folder / name


def secrets_of(task: TrialTask, host: Mapping[str, str]) -> tuple[str, ...]:
    """The texts that nothing of this trial may show: the credentials of agent, suite, judge, login and proxies."""
    judges = (ref.api_key for ref in task.judges.values() if ref.api_key)
    proxies = (*proxy_passwords(host), *proxy_passwords(task.agent.env))
    secrets = (*task.agent.secrets, *credentials_in(task.environment.env), *judges, *proxies)
    if not task.agent.has_login:
        return secrets
    engine = ENGINES[task.agent.engine]
    home = task.agent.shared_home or host_home(engine, host)
    return (*secrets, *login_secrets(engine.login_files, home))


def engine_home(task: TrialTask, engine: Engine, root: TrialRoot) -> Path:
    """The CLI's own folder: the shared one, else one in the trial's private home."""
    return task.agent.shared_home or root.home / engine.home_folder


def _runner(services: Services, root: TrialRoot, environment: TrialEnvironment) -> Run:
    def run(command: Command, seconds: float) -> tuple[Ended, str]:
        output = root.scratch / "setup.log"
        ended = services.run(environment.command(command), stdout=output, stderr=output, seconds=seconds)
        with output.open("rb") as file:
            file.seek(max(0, output.stat().st_size - _TAIL_BYTES))
            return ended, file.read().decode("utf-8", errors="replace").strip()

    return run
