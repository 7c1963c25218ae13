"""An agent CLI as the judge: the same question as a model gets, as turns of an engine in a trial root of its own.

Its home is empty but for the judge's skills, its working folder is made from the saved trial, its settings let it look
and change nothing, and its variables are those that every child gets and its key. A second question goes on in the
same session. What it prints is kept, masked, in `judge-turns/N/` of the judge's folder.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Final

from skillup.engines import ENGINES
from skillup.engines.base import (
    Endpoint,
    Engine,
    EngineSettings,
    Session,
    TurnRequest,
)
from skillup.environments.base import OnHost
from skillup.environments.host import TrialRoot, child_variables, open_trial_root, trial_base
from skillup.environments.workspace import make_home, skills_below
from skillup.errors import ModelCallError, TrialError
from skillup.execution.ending import problem_of
from skillup.execution.place import running_as_root
from skillup.execution.raw_output import copy_masked
from skillup.execution.reading import TurnFiles
from skillup.execution.record import own_usage
from skillup.execution.task import Services
from skillup.execution.turn import Limit, TurnOutcome, run_turn
from skillup.judging.asking import Opened
from skillup.judging.folder import SavedFolder
from skillup.masking import Masker
from skillup.modelclient.client import ModelClient, ModelRef, Question, Reply
from skillup.spec.agent import Limits
from skillup.spec.criteria import JudgeSkill
from skillup.spec.judge import Judge
from skillup.transcript import Usage

_MAX_CHARACTERS: Final = 400_000
"""As for a model that is asked directly: half of what the smallest context of a current hosted model holds."""

TURNS: Final = "judge-turns"


def opener(ref: ModelRef, judge: Judge, services: Services, folder: Path | None, masker: Masker) -> Opened:
    """How the judge is opened for a sample; what a CLI prints is kept below `folder`, where there is one."""

    def opened(saved: SavedFolder | None) -> AbstractContextManager[ModelClient]:
        if saved is None:
            return nullcontext(services.clients.of(ref))
        return _open_agent(ref, judge, saved, services, _Streams(folder, masker))

    return opened


@contextmanager
def _open_agent(
    ref: ModelRef, judge: Judge, saved: SavedFolder, services: Services, streams: _Streams
) -> Iterator[ModelClient]:
    """The agent in a root of its own.

    Raises:
        ModelCallError: `environment` or `setup`, the root cannot be made or filled.
    """
    engine = ENGINES[ref.engine or ""]
    settings = engine.as_judge(ref.provider)
    if settings is None:
        raise ModelCallError("setup", f"{engine.name} asks no models of {ref.provider}")
    with ExitStack() as stack:
        try:
            root = stack.enter_context(open_trial_root(trial_base(services.host)))
            saved.write(root.workspace)
            _install(judge.skills, root.home / engine.skills_folder)
            make_home(root.home / engine.home_folder)
        except TrialError as error:
            raise ModelCallError(error.kind, error.message, hint=error.hint) from error
        except OSError as error:
            raise ModelCallError("environment", f"the judge's folder cannot be filled: {error}") from error
        session = Session(str(uuid.uuid4()) if engine.assigns_session_id else None)
        yield _AgentJudge(ref, engine, settings, root, services, streams, session)


def _install(skills: tuple[JudgeSkill, ...], folder: Path) -> None:
    """Gives each skill a folder of its own name; of two with one name the second gets a number."""
    for number, skill in enumerate(skills, start=1):
        name = PurePosixPath(skill.path).name or "skill"
        place = folder / (f"{name}-{number}" if (folder / name).exists() else name)
        place.mkdir(parents=True)
        (place / "SKILL.md").write_text(skill.text or "", encoding="utf-8")


@dataclass(frozen=True)
class _Streams:
    """Where what the CLI prints is kept, if anywhere."""

    folder: Path | None
    masker: Masker

    def keep(self, files: TurnFiles) -> str:
        """Keeps the streams of one turn, and gives their folder by its path below the judge's."""
        if self.folder is None:
            return ""
        taken = [int(path.name) for path in self.folder.glob(f"{TURNS}/*") if path.name.isdecimal()]
        name = f"{TURNS}/{max(taken, default=0) + 1}"
        (self.folder / name).mkdir(parents=True)
        for source, target in ((files.stdout, "stdout"), (files.stderr, "stderr")):
            copy_masked(source, self.folder / name / target, self.masker)
        return name


@dataclass
class _AgentJudge:
    """One conversation with an agent that judges; `counted` is what its session had used before a turn."""

    ref: ModelRef
    engine: Engine
    settings: EngineSettings
    root: TrialRoot
    services: Services
    streams: _Streams
    session: Session
    turns: int = 0
    counted: Usage = field(default_factory=Usage)
    max_characters: int = _MAX_CHARACTERS
    remembers: bool = True

    def ask(self, question: Question) -> Reply:
        """The agent's answer to the question; the instructions stand before the first one.

        Raises:
            ModelCallError: there is none.
            Cancelled: the user stopped the run.
        """
        self.turns += 1
        first = not self.session.started
        request = self._request(f"{question.system}\n\n{question.text}" if first else question.text)
        scratch = self.root.scratch
        files = TurnFiles(*(scratch / f"{self.turns}.{name}" for name in ("in", "out", "err")))
        key = (self.ref.credential, self.ref.api_key)
        given = {key[0]: key[1]} if key[0] and key[1] else {}
        limit = Limit(question.seconds, "judge_seconds", f"{question.seconds:g} s", "judge.timeout_seconds")
        try:
            outcome = run_turn(
                self.engine,
                request,
                number=self.turns,
                files=files,
                variables=child_variables(self.services.host, self.root, given),
                limit=limit,
                environment=OnHost(),
                limits=Limits(),
                route=None,
                nursery=self.services.nursery,
                cancelled=self.services.cancelled,
            )
        except TrialError as error:
            raise ModelCallError(error.kind, error.message, hint=error.hint) from error
        except OSError as error:
            raise ModelCallError("environment", f"the machine refused: {error}") from error
        return self._reply(outcome, self.streams.keep(files), question.seconds)

    def _request(self, prompt: str) -> TurnRequest:
        workspace = self.root.workspace
        return TurnRequest(
            prompt=prompt,
            slash_command=False,
            session=self.session,
            workspace=workspace,
            home=self.root.home / self.engine.home_folder,
            endpoint=Endpoint(model=self.ref.name, base_url=self.ref.base_url),
            settings=self.settings,
            as_root=running_as_root(),
            credential=self.ref.credential,
            workspace_skills=skills_below(workspace, self.engine.workspace_skills),
        )

    def _reply(self, outcome: TurnOutcome, streams: str, seconds: float) -> Reply:
        """What the turn came to.

        Raises:
            ModelCallError: it came to no answer.
        """
        if outcome.limit is not None:
            message, hint = f"it gave no answer within {seconds:g} s", "judge.timeout_seconds raises it"
            if outcome.limit.name != "judge_seconds":
                message, hint = f"it reached its own limit of {outcome.limit.name}", ""
            raise ModelCallError("timeout", message, hint=hint, streams=streams)
        problem = problem_of(outcome, self.session, self.turns)
        if problem is not None:
            raise ModelCallError(problem.kind, problem.message, hint=problem.hint, streams=streams)
        stream = outcome.stream
        self.session = Session(self.session.id or next(iter(stream.session_ids), None), started=True)
        usage = stream.finished.usage if stream.finished else Usage()
        before, self.counted = self.counted, usage
        model = stream.details.get("model")
        return Reply(
            text=stream.answer or "",
            usage=own_usage(usage, before),
            model=str(model) if model else None,
            structured=False,
            temperature=None,
            streams=streams,
        )
