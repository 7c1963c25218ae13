"""What the two dialects have in common: a command line, a session, and words for what an agent says and does."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from skillup.fakecli.output import Output
from skillup.fakecli.store import SessionFile


class Refused(Exception):
    """The CLI does not even begin. `code` is its exit code, the message its stderr; stdout may hold something, too."""

    def __init__(self, message: str, code: int = 1) -> None:
        super().__init__(message)
        self.code = code


class Usage:
    """What the turn took, in tokens and US dollars; steps may say otherwise before the final word."""

    def __init__(self) -> None:
        self.input_tokens = 20
        self.output_tokens = 10
        self.cost_usd = 0.001


class Dialect(ABC):
    """One CLI's way to be called and to print. `arguments` are without the program's name."""

    def __init__(self, arguments: Sequence[str], environ: Mapping[str, str], output: Output) -> None:
        self.arguments = list(arguments)
        self.environ = environ
        self.output = output
        self.cwd = str(Path.cwd())
        self.session_id = ""
        self.turn = 1
        self.first_prompt = ""
        self.usage = Usage()
        self.calls = 0

    @abstractmethod
    def prompt(self) -> str:
        """What the user says: by an argument, by stdin, or both.

        Raises:
            Refused: in a way that is not played.
        """

    @abstractmethod
    def open(self, prompt: str) -> None:
        """Finds or makes the session, writes the prompt into it, and prints what comes before any word of the agent.

        Raises:
            Refused: the real CLI would not begin either.
        """

    @abstractmethod
    def home(self) -> Path:
        """The folder in which it keeps configuration and sessions."""

    @abstractmethod
    def file(self) -> SessionFile:
        """The file in which it keeps the session."""

    @abstractmethod
    def say(self, text: str, *, thought: bool = False) -> None:
        """The agent says, or thinks, something."""

    @abstractmethod
    def call(self, name: str, arguments: dict[str, Any]) -> str:
        """A tool call begins: `bash`, `write`, or `mcp__SERVER__TOOL`. Gives its id."""

    @abstractmethod
    def result(self, call_id: str, text: str, *, failed: bool = False) -> None:
        """The tool call with this id has ended."""

    @abstractmethod
    def deny(self, call_id: str) -> None:
        """The tool call is refused for lack of permission."""

    @abstractmethod
    def finish(self, text: str | None, changes: Mapping[str, Any]) -> None:
        """The final word of a turn that went well; `changes` replace fields of its event."""

    @abstractmethod
    def fail(self, status: int | None, message: str, changes: Mapping[str, Any]) -> None:
        """The provider refused for good: the error, and the final word; `changes` replace fields of that."""

    @abstractmethod
    def retry(self, status: int, attempt: int, seconds: float) -> None:
        """The provider failed, and the CLI tries again after so many seconds."""

    @abstractmethod
    def keep_alive(self) -> None:
        """A sign that the connection lives, and none of work."""

    @abstractmethod
    def compacted(self) -> None:
        """The CLI has shortened the conversation."""

    @abstractmethod
    def task(self, command: str, *, ended: bool) -> None:
        """A background task has begun; or the CLI has ended it, because the turn is over."""

    @abstractmethod
    def interrupted(self) -> int:
        """What it does on SIGINT; gives the exit code."""

    @abstractmethod
    def name_session(self, session_id: str) -> None:
        """From now on it is another session, with the same prompt in a file of its own."""

    @abstractmethod
    def add_neighbour(self) -> None:
        """Writes another session into the same home, newer than the own one."""

    def words(self, with_value: frozenset[str]) -> list[str]:
        """The arguments that are no options, nor values of options `with_value`; all that stand behind `--`."""
        words: list[str] = []
        arguments = iter(self.arguments)
        for argument in arguments:
            if argument == "--":
                words += arguments
            elif argument in with_value:
                next(arguments, None)
            elif argument == "-" or not argument.startswith("-"):
                words.append(argument)
        return words

    def may_write(self) -> bool:
        """Whether the policy that is in force lets tools write."""
        return True

    def new_call_id(self) -> str:
        """An id for a tool call, unique in the process."""
        self.calls += 1
        return f"call_{self.calls}"

    def value_of(self, *names: str) -> str | None:
        """The value of an option that is given as `--name value` or `--name=value`."""
        for index, argument in enumerate(self.arguments):
            name, equals, value = argument.partition("=")
            if name in names and equals:
                return value
            if argument in names and index + 1 < len(self.arguments):
                return self.arguments[index + 1]
        return None

    def has(self, *names: str) -> bool:
        """Whether one of these options is given."""
        return any(argument.partition("=")[0] in names for argument in self.arguments)
