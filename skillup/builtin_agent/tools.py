"""The four tools: bash, read, write, edit. What goes wrong in one is a result, never a crash."""

import os
import select
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from pathlib import Path
from stat import S_ISREG
from typing import IO, Any

from skillup.builtin_agent.remote import RemoteTools

# What one tool may add to the history, in bytes: enough for a test log, small beside a model's context.
RESULT_BYTES = 100_000
BASH_SECONDS = 120.0
# How often a command is looked at whose output stays open (a server in the background holds it).
TICK_SECONDS = 0.05
CHUNK_BYTES = 65536
# The largest pipe that an unprivileged process can have on Linux: what a command that has ended left unread.
PIPE_BYTES = 1024 * 1024

_STRING = {"type": "string"}


def _tool(name: str, description: str, properties: Mapping[str, Any], optional: tuple[str, ...] = ()) -> dict[str, Any]:
    required = [key for key in properties if key not in optional]
    schema = {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }
    return {"name": name, "description": description, "input_schema": schema}


# As the Messages API takes them. The names and arguments are part of what scripts and rules refer to.
TOOLS: tuple[dict[str, Any], ...] = (
    _tool(
        "bash",
        "Run a command with bash in the working directory. Returns stdout and stderr together. Each call is "
        "a new shell without input; `timeout` is in seconds (default 120).",
        {"command": _STRING, "timeout": {"type": "number", "exclusiveMinimum": 0}},
        optional=("timeout",),
    ),
    _tool("read", "Read a text file.", {"path": _STRING}),
    _tool(
        "write",
        "Write a file: create it, with its folders, or replace all of its content.",
        {"path": _STRING, "content": _STRING},
    ),
    _tool(
        "edit",
        "Replace text in a file. `old` must occur in it exactly once.",
        {"path": _STRING, "old": _STRING, "new": _STRING},
    ),
)


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a call gave back; `failed` when it did not do what it was asked to."""

    content: str
    failed: bool = False


class _RefusedError(Exception):
    """The call cannot be done; the message goes to the model."""


@dataclass(frozen=True, slots=True)
class Toolbox:
    """Runs calls in one working directory, or lets them be answered elsewhere.

    Attributes:
        own: which of `TOOLS` are offered.
        remote: tools that somebody else answers; one of the same name takes the place of our own.
        cwd: where relative paths and commands start.
        environment: variables of commands.
        held: within it no interruption is raised, so that a process that was started is also known.
    """

    cwd: Path
    environment: Mapping[str, str]
    held: Callable[[], AbstractContextManager[None]]
    own: tuple[str, ...] = tuple(tool["name"] for tool in TOOLS)
    remote: RemoteTools | None = None

    @property
    def offers(self) -> tuple[Mapping[str, Any], ...]:
        """The tools that the model is told of."""
        remote = self.remote.offers if self.remote else ()
        taken = {tool["name"] for tool in remote}
        own = (tool for tool in TOOLS if tool["name"] in self.own and tool["name"] not in taken)
        return (*own, *remote)

    def run(self, name: str, arguments: Mapping[str, Any]) -> ToolResult:
        """Run one call; whatever goes wrong is a failed result that says what and why.

        A command that is interrupted is killed with its process group before the interruption goes on.

        Raises:
            RemoteToolError: nobody answered a tool that is answered elsewhere.
        """
        if self.remote and any(tool["name"] == name for tool in self.remote.offers):
            return ToolResult(*self.remote.call(name, arguments))
        try:
            _check(self.offers, name, arguments)
            if name == "bash":
                return self._bash(arguments["command"], float(arguments.get("timeout", BASH_SECONDS)))
            path = self.cwd / arguments["path"]
            with self.held():  # an interruption may not leave half a file
                match name:
                    case "read":
                        return _read(path)
                    case "write":
                        return _write(path, arguments["content"])
                    case _:
                        return _edit(path, arguments["old"], arguments["new"])
        # ValueError and OverflowError: a NUL in a path, a lone surrogate in a text, a timeout without bounds.
        except (_RefusedError, OSError, ValueError, OverflowError) as error:
            return ToolResult(f"{name}: {error}", failed=True)

    def _bash(self, command: str, seconds: float) -> ToolResult:
        output = _Excerpt()
        process: subprocess.Popen[bytes] | None = None
        try:
            with self.held():
                process = subprocess.Popen(
                    ["/bin/bash", "-c", command],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    bufsize=0,
                    cwd=self.cwd,
                    env=dict(self.environment),
                    start_new_session=True,
                )
            ended = _watch(process, seconds, output)
        finally:
            if process is not None and process.returncode is None:
                # Not reaped yet, so the group's id cannot have gone to anybody else.
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        if not ended:
            text = f"bash: not finished after {seconds:g} s, killed; a longer `timeout` may be given"
            return ToolResult(f"{text}\n{output.text()}", failed=True)
        code = process.returncode
        if code == 0:
            return ToolResult(output.text())
        shown = f"exit code {code}" if code > 0 else f"exit code {128 - code}, killed by signal {-code}"
        return ToolResult(f"{shown}\n{output.text()}", failed=True)


class _Excerpt:
    """The beginning and the end of an output, in bounded memory."""

    def __init__(self) -> None:
        self._half = RESULT_BYTES // 2
        self._head = bytearray()
        self._tail = bytearray()
        self._size = 0

    def add(self, chunk: bytes) -> None:
        self._size += len(chunk)
        room = self._half - len(self._head)
        self._head += chunk[:room]
        self._tail += chunk[room:]
        if len(self._tail) > 2 * self._half + CHUNK_BYTES:  # now and then, not with every chunk
            del self._tail[: -self._half]

    def text(self) -> str:
        tail = self._tail[-self._half :]
        left_out = self._size - len(self._head) - len(tail)
        note = f"\n[{left_out} bytes left out]\n".encode() if left_out else b""
        return (self._head + note + tail).decode("utf-8", "replace")


def _watch(process: subprocess.Popen[bytes], seconds: float, output: _Excerpt) -> bool:
    """Collect output until the command ends (True) or its time is over (False)."""
    pipe = process.stdout
    assert pipe is not None  # noqa: S101 - Popen was given PIPE; this tells the type checker
    os.set_blocking(pipe.fileno(), False)
    poller = select.poll()  # select() itself cannot take descriptors above 1023
    poller.register(pipe, select.POLLIN)
    deadline = time.monotonic() + seconds
    while (left := deadline - time.monotonic()) > 0:
        ready = poller.poll(min(left, TICK_SECONDS) * 1000)
        # Asked before reading: all that a command wrote before it ended is then in the pipe.
        ended = process.poll() is not None
        chunk = pipe.read(PIPE_BYTES if ended else CHUNK_BYTES) if ready or ended else None
        output.add(chunk or b"")
        if chunk == b"":
            pipe.close()
            with suppress(subprocess.TimeoutExpired):
                process.wait(max(0.0, deadline - time.monotonic()))
            return process.returncode is not None
        if ended:
            _keep_open(pipe)
            return True
    pipe.close()
    return False


def _keep_open(pipe: IO[bytes]) -> None:
    """Read and forget what the background goes on writing: a closed pipe would kill it at its next line."""

    def drain() -> None:
        with pipe:
            while pipe.read(CHUNK_BYTES):
                pass

    os.set_blocking(pipe.fileno(), True)
    threading.Thread(target=drain, daemon=True).start()


def _check(offers: Sequence[Mapping[str, Any]], name: str, arguments: Mapping[str, Any]) -> None:
    schema = next((tool["input_schema"] for tool in offers if tool["name"] == name), None)
    if schema is None:
        known = ", ".join(tool["name"] for tool in offers) or "none"
        raise _RefusedError(f"there is no such tool; there are {known}")
    for key in schema["required"]:
        if key not in arguments:
            raise _RefusedError(f"the argument `{key}` is missing")
    for key, value in arguments.items():
        if key not in schema["properties"]:
            raise _RefusedError(f"there is no argument `{key}`; there are {', '.join(schema['properties'])}")
        if schema["properties"][key] is _STRING:
            if not isinstance(value, str):
                raise _RefusedError(f"`{key}` must be text")
        elif isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
            raise _RefusedError(f"`{key}` must be a number above 0")


def _open_regular(path: Path, flags: int) -> int:
    """A descriptor of a regular file; a FIFO or a device would block, or never end.

    Raises:
        _RefusedError: it is something else.
        OSError: it cannot be opened.
    """
    descriptor = os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY, 0o666)
    if not S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise _RefusedError(f"{path} is not a regular file")
    return descriptor


def _read(path: Path) -> ToolResult:
    with os.fdopen(_open_regular(path, os.O_RDONLY), "rb") as file:
        data = file.read(RESULT_BYTES)
        left_out = os.fstat(file.fileno()).st_size - len(data)
    text = data.decode("utf-8", "replace")
    return ToolResult(f"{text}\n[{left_out} more bytes; use bash to read them]" if left_out > 0 else text)


def _write(path: Path, content: str) -> ToolResult:
    data = content.encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    # Opened without truncation: what is refused is left as it was.
    with os.fdopen(_open_regular(path, os.O_WRONLY | os.O_CREAT), "wb") as file:
        file.truncate(0)
        file.write(data)
    return ToolResult(f"wrote {len(data)} bytes to {path}")


def _edit(path: Path, old: str, new: str) -> ToolResult:
    with os.fdopen(_open_regular(path, os.O_RDONLY), "rb") as file:
        # Bytes that are no UTF-8 survive the way there and back.
        text = file.read().decode("utf-8", "surrogateescape")
    if not old:
        raise _RefusedError("`old` is empty; use write to create a file")
    first = text.find(old)
    if first < 0:
        raise _RefusedError(f"`old` does not occur in {path}; read the file and copy the text exactly")
    if text.rfind(old) != first:
        raise _RefusedError(f"`old` occurs more than once in {path}; add surrounding lines to make it unique")
    changed = (text[:first] + new + text[first + len(old) :]).encode("utf-8", "surrogateescape")
    with os.fdopen(_open_regular(path, os.O_WRONLY), "wb") as file:
        file.truncate(0)
        file.write(changed)
    return ToolResult(f"edited {path}")
