"""Where one trial takes place, from its first set-up step to its last turn, and how a turn in it is asked for."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from skillup.engines import ENGINES
from skillup.engines.base import (
    Endpoint,
    Engine,
    EngineSettings,
    Session,
    Surroundings,
    TurnRequest,
)
from skillup.environments.base import Site, TrialEnvironment
from skillup.environments.host import TrialRoot, open_trial_root
from skillup.environments.kinds import ENVIRONMENTS
from skillup.environments.snapshot import Snapshot, take
from skillup.environments.snapshot_log import SnapshotLog
from skillup.environments.workspace import skills_below
from skillup.errors import TrialError
from skillup.execution.agents import model_address, provider_of, settings_of
from skillup.execution.mocks import MockedTools
from skillup.execution.setup import engine_home, prepare, skill_folder
from skillup.execution.store import TrialFolder
from skillup.execution.task import Services, TrialTask
from skillup.modelserver.route import Route
from skillup.modelserver.scripted import ScriptedSource


@dataclass(frozen=True)
class Place:
    """The same for all turns of a trial; `before` is the workspace as the first turn finds it.

    `environment` is where the turns run, from where the model can be reached.

    `home` is the CLI's own folder, `skills` are the SKILL.md files that the case's workspace brought along.
    """

    task: TrialTask
    services: Services
    folder: TrialFolder
    root: TrialRoot
    environment: TrialEnvironment
    home: Path
    engine: Engine
    settings: EngineSettings
    endpoint: Endpoint
    route: Route | None
    variables: Mapping[str, str]
    log: SnapshotLog
    before: Snapshot
    skills: tuple[Path, ...]
    around: Surroundings

    def request(self, content: str, session: Session, *, slash_command: bool) -> TurnRequest:
        """What the engine is asked for one turn."""
        return TurnRequest(
            prompt=content,
            slash_command=slash_command,
            session=session,
            workspace=self.root.workspace,
            home=self.home,
            endpoint=self.endpoint,
            settings=self.settings,
            as_root=running_as_root(),
            credential=_credential_of(self.task),
            shared=self.task.agent.shared_home is not None,
            workspace_skills=self.skills,
            around=self.around,
        )

    @property
    def variable_names(self) -> tuple[str, ...]:
        """The names of the agent's variables, for the record; never their values."""
        return tuple(sorted(self.variables))

    @property
    def skill_files(self) -> dict[str, str]:
        """Where the SKILL.md of each skill of the suite lies."""
        skills = (skill.name for skill in self.task.skills)
        return {name: str(skill_folder(self.engine, self.root, name) / "SKILL.md") for name in skills}


def open_place(task: TrialTask, services: Services, folder: TrialFolder, stack: ExitStack) -> Place:
    """Sets a trial up; `stack` takes it down.

    Raises:
        TrialError: `setup`, `auth` or `environment`.
        Cancelled: the user stopped the run.
    """
    engine = ENGINES[task.agent.engine]
    root = stack.enter_context(open_trial_root(task.trial_base))
    environment = stack.enter_context(_open_environment(task, services, root))
    variables = prepare(task, services, engine, root, environment)
    route = stack.enter_context(_open_route(task, services, root))
    around = stack.enter_context(_open_surroundings(task, services, engine, root))
    reached = stack.enter_context(_reach_model(environment, _endpoint_of(task, route), around, task))
    log = stack.enter_context(SnapshotLog(folder.path, folder.masker.data, _wanted_paths(task)))
    try:
        before = take(root.workspace, keep=log.keep, wanted=log.wanted)
    except OSError as error:
        raise TrialError("setup", f"the set-up left no workspace: {error}", phase="setup") from error
    log.save(0, before)
    return Place(
        task=task,
        services=services,
        folder=folder,
        root=root,
        environment=reached.environment,
        home=engine_home(task, engine, root),
        engine=engine,
        settings=settings_of(task.agent),
        endpoint=reached.endpoint,
        route=route,
        variables=variables,
        log=log,
        before=before,
        skills=skills_below(root.workspace, engine.workspace_skills),
        around=reached.around,
    )


def _open_environment(task: TrialTask, services: Services, root: TrialRoot) -> AbstractContextManager[TrialEnvironment]:
    """Where the agent's processes run; a home that it shares lies outside of the root.

    Raises:
        TrialError: `environment`, it cannot be had.
    """
    shared = (task.agent.shared_home,) if task.agent.shared_home else ()
    site = Site(task.environment, root, services.host, services.nursery, shared)
    return ENVIRONMENTS[task.environment.type].open(site)


@contextmanager
def _open_route(task: TrialTask, services: Services, root: TrialRoot) -> Iterator[Route | None]:
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
def _open_surroundings(task: TrialTask, services: Services, engine: Engine, root: TrialRoot) -> Iterator[Surroundings]:
    """The mocked tools of the case, where they are answered, what was said before its first turn, and instructions.

    Raises:
        TrialError: `environment`, nothing can be answered on 127.0.0.1.
    """
    case, history, system = task.case, None, None
    if case.input.history:
        history = root.scratch / "history.json"
        history.write_text(engine.history(case.input.history), encoding="utf-8")
    if case.input.system is not None:
        system = root.scratch / "system.txt"
        system.write_text(case.input.system, encoding="utf-8")
    around = Surroundings(history=history, system=case.input.system, system_file=system)
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


@dataclass(frozen=True)
class _Reached:
    """Where the turns run, and by what addresses they find the model and the mocked tools from there."""

    environment: TrialEnvironment
    endpoint: Endpoint
    around: Surroundings


@contextmanager
def _reach_model(
    environment: TrialEnvironment, endpoint: Endpoint, around: Surroundings, task: TrialTask
) -> Iterator[_Reached]:
    """The way from the environment to what the turns need.

    Raises:
        TrialError: `environment`, it cannot be opened.
    """
    model = endpoint.base_url or model_address(task.agent, task.environment.env)
    wanted = tuple(url for url in (model, around.tools_url) if url)
    with ExitStack() as stack:
        try:
            inside, found = stack.enter_context(environment.reaching(wanted))
        except OSError as error:
            raise TrialError("environment", f"no way to the model can be opened: {error}", phase="setup") from error
        if model and found[model] != model:
            endpoint = replace(endpoint, base_url=found[model])
        if around.tools_url:
            around = replace(around, tools_url=found[around.tools_url])
        yield _Reached(inside, endpoint, around)


def _endpoint_of(task: TrialTask, route: Route | None) -> Endpoint:
    """Which model at which address the CLI is told to use."""
    if route is not None:
        return Endpoint(model=None, base_url=route.base_url, scripted=True)
    return Endpoint(model=task.agent.model.name, base_url=task.agent.model.base_url)


def _credential_of(task: TrialTask) -> str | None:
    """The variable that holds the provider's key, if one is passed."""
    return next((name for name in provider_of(task.agent).credentials if name in task.agent.env), None)


def _wanted_paths(task: TrialTask) -> frozenset[str]:
    """Files whose content a rule reads: they are kept whatever their size."""
    return frozenset(path for rule in task.case.all_rules for path in rule.files_read)


def running_as_root() -> bool:
    """Whether the CLIs will run as root; some ask for a switch then."""
    return hasattr(os, "geteuid") and os.geteuid() == 0
