"""What an engine is: the two pure halves of driving one agent CLI.

An engine turns a `TurnRequest` into an `Invocation` (argv, variables, stdin) and each line of the CLI's output into
events (`engines/events.py`). It starts no process, keeps no state and reads no clock: `execution/turn.py` does that
for every engine alike. The session is a value that goes in with the request and comes back as `SessionSeen`.

Adding an engine is one module beside `claude_code.py`: see CONTRIBUTING.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from pydantic import BaseModel

from skillup.engines.events import EngineFault, Event
from skillup.spec.mocks import HistoryMessage


@dataclass(frozen=True)
class Session:
    """The CLI's own conversation. `id` is None until it is known; `started` once a turn has been answered in it."""

    id: str | None
    started: bool = False


@dataclass(frozen=True)
class Endpoint:
    """Where the model is: None leaves each choice to the CLI. `scripted` is the loopback model."""

    model: str | None
    base_url: str | None
    scripted: bool = False


class EngineSettings(BaseModel, frozen=True, extra="forbid"):
    """The engine's own options, from the profile's `settings`; every engine extends this."""


@dataclass(frozen=True)
class Provider:
    """The model API that an agent asks, and the variables by which its CLI is led there.

    Attributes:
        protocol: the API, by the name that the loopback model gives it.
        credentials: variables of which one must hold the credential, unless the model is scripted or the login copied.
        address_variables: variables that name the address; with a scripted model none of the host's is passed.
        address: where the CLI goes when nothing names another; None where it goes nowhere.
    """

    protocol: str
    credentials: tuple[str, ...]
    address_variables: tuple[str, ...]
    address: str | None = None


@dataclass(frozen=True)
class Surroundings:
    """What a case gives beside messages and files, to an engine that `supports` it and to no other.

    Attributes:
        max_steps: replies of the model that a turn may take.
        max_cost_usd: money that the turn may cost; an engine that cannot bound itself passes over it.
        history: the file of what was said before the first turn, as `Engine.history` wrote it.
        system: the case's system message; like every option, the CLI is told it again in each turn.
        system_file: the file that holds it.
        tools_url: where the case's mocked tools are answered; a secret.
    """

    max_steps: int | None = None
    max_cost_usd: float | None = None
    history: Path | None = None
    system: str | None = None
    system_file: Path | None = None
    tools_url: str | None = None


@dataclass(frozen=True)
class TurnRequest:
    """One turn to be run: the message as rendered, the session that it belongs to, and the places.

    `home` is the CLI's own folder (configuration, sessions), `shared` whether other trials and the user have it, too.
    `credential` is the variable that holds the provider's key, None with a scripted model or the CLI's login.
    `workspace_skills` is every SKILL.md that the case's own workspace holds in the engine's folders of that name.
    """

    prompt: str
    slash_command: bool
    session: Session
    workspace: Path
    home: Path
    endpoint: Endpoint
    settings: EngineSettings
    as_root: bool
    credential: str | None = None
    shared: bool = False
    workspace_skills: tuple[Path, ...] = ()
    around: Surroundings = Surroundings()


@dataclass(frozen=True)
class Invocation:
    """How the CLI is started for one turn. `env` are the engine's own switches, added to the allow-list."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    stdin: str


# Events: what one line of a CLI's output means. Unknown lines mean nothing.


class Engine(Protocol):
    """One kind of agent CLI. All members are constants or pure functions."""

    @property
    def name(self) -> str:
        """The name that suites and profiles use."""

    @property
    def settings(self) -> type[EngineSettings]:
        """The model of its `settings:`."""

    @property
    def assigns_session_id(self) -> bool:
        """Whether we choose the id of a new session (else the CLI reports it)."""

    @property
    def shows_progress(self) -> bool:
        """Whether the stream tells a reply that is being written from one that never comes."""

    @property
    def reports_cost(self) -> bool:
        """Whether it says after each turn what that cost; without it no limit in money can be held to."""

    @property
    def hidden_tools(self) -> frozenset[str]:
        """Canonical tools whose calls the stream cannot show, so that a rule on them cannot be judged."""

    @property
    def version_variables(self) -> Mapping[str, str]:
        """What `version_argv` needs besides PATH and a HOME of its own."""

    @property
    def host_policy(self) -> tuple[str, ...]:
        """Places on the host that the CLI obeys whatever home it is given: an organisation's instructions."""

    @property
    def home_folder(self) -> str:
        """Where below a user's home the CLI keeps its configuration and sessions."""

    @property
    def home_variable(self) -> str | None:
        """The variable with which a user names another place for that folder."""

    @property
    def home_needs_lock(self) -> bool:
        """Whether two processes at once can damage such a folder, so that turns on a shared one take turns."""

    @property
    def login_files(self) -> tuple[str, ...]:
        """Credential files for `login: copy`, by path below that folder."""

    @property
    def skills_folder(self) -> str:
        """Where below HOME it discovers skills, as `<folder>/<skill>/SKILL.md`."""

    def resumes(self, settings: EngineSettings) -> bool:
        """Whether a later process can continue a session by its id."""

    def confines_itself(self, settings: EngineSettings) -> bool:
        """Whether it runs commands in a sandbox of its own, which cannot be made within another."""

    def provider(self, settings: EngineSettings) -> Provider:
        """The model API that it speaks with these settings."""

    def version_argv(self, settings: EngineSettings) -> tuple[str, ...]:
        """The command that prints the CLI's version."""

    def as_judge(self, provider: str) -> EngineSettings | None:
        """Settings under which it looks, changes nothing, and takes no instructions from where it looks.

        None where it cannot ask models of this provider.
        """

    @property
    def workspace_skills(self) -> tuple[str, ...]:
        """Folders of the workspace in which it discovers skills that no switch keeps off as a whole."""

    @property
    def supports(self) -> frozenset[str]:
        """Keys of a case that not every engine can honour and this one does: see `Case.needs`."""

    def history(self, messages: Sequence[HistoryMessage]) -> str:
        """What was said before the first turn, as the file that the CLI is given; only with `input.messages`."""

    def patience(self, settings: EngineSettings) -> float | None:
        """Seconds that the CLI may go on retrying without progress; None where it gives up by itself."""

    def invocation(self, request: TurnRequest) -> Invocation:
        """How to run this turn."""

    def events(self, line: bytes, workspace: Path) -> tuple[Event, ...]:
        """What one whole line of stdout means.

        Raises:
            ValueError: the line is not of the CLI's format; the caller notes it as damage.
        """

    def session_file(self, session_id: str) -> str | None:
        """A glob below the home for the file that the CLI keeps of this session; None where it is not needed."""

    def session_events(self, lines: Sequence[bytes], workspace: Path) -> tuple[Event, ...]:
        """What that file shows of the last turn and the stream does not."""

    def session_turns(self, lines: Sequence[bytes]) -> int:
        """How many messages of a user that file holds: more than were sent are somebody else's."""

    def explain(self, exit_code: int | None, signal: int | None, stdout: str, stderr: str) -> EngineFault:
        """Why a process that ended without a `Finished` did so; the texts are the ends of its output."""

    def policy(self, request: TurnRequest) -> dict[str, str]:
        """The permissions that are in force in this turn, for the record."""


class EngineDefaults:
    """What most engines need not say: sessions that resume, a CLI that gives up by itself, no prices."""

    reports_cost = False
    host_policy: tuple[str, ...] = ()
    home_variable: str | None = None
    home_needs_lock = True
    login_files: tuple[str, ...] = ()
    workspace_skills: tuple[str, ...] = ()
    supports: frozenset[str] = frozenset()

    def resumes(self, settings: EngineSettings) -> bool:
        """Always."""
        del settings
        return True

    def confines_itself(self, settings: EngineSettings) -> bool:
        """No."""
        del settings
        return False

    def history(self, messages: Sequence[HistoryMessage]) -> str:
        """Nothing: it cannot take up a conversation."""
        del messages
        return ""

    def patience(self, settings: EngineSettings) -> float | None:
        """None: the CLI gives up by itself."""
        del settings
        return None

    def session_file(self, session_id: str) -> str | None:
        """None: the stream shows everything."""
        del session_id
        return None

    def session_events(self, lines: Sequence[bytes], workspace: Path) -> tuple[Event, ...]:
        """Nothing: the stream shows everything."""
        del lines, workspace
        return ()

    def session_turns(self, lines: Sequence[bytes]) -> int:
        """None that could be anybody else's."""
        del lines
        return 0
