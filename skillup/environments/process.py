"""Starting and ending processes: the only module of the package that does.

Every command runs under a supervisor of its own (`skillup.environments.supervisor`), which owns the whole
tree below it: when the command ends, is cancelled, reaches its deadline, or when this process dies, nothing
of it stays alive. Standard streams are files, so output is never lost, never blocks, and no grandchild that
holds a pipe open can make us wait.

Off Linux there is no subreaper: the same supervisor then ends the command's process group, and a daemon that
left the group survives, unseen.

The file is longer than others because the command, its handle and the nursery are one mechanism.
"""

import contextlib
import errno
import json
import os
import select
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

from skillup.environments.supervisor import LISTEN, START, NotStartedError, look_up, open_stdio

SUPERVISOR = Path(__file__).with_name("supervisor.py")
START_SECONDS = 30.0  # a start takes 3 ms; a machine that swaps may need seconds, and after this it is broken
CANCEL_LOOK_SECONDS = 0.05  # how late `run` may see that its event was set; an Event cannot be polled with a socket
CLOSE_SECONDS = 10.0  # the nursery ends within ms of its last supervisor; after this it is stuck
MAX_ANSWER = 4096  # bytes of the refusal of a port
# A Python that is linked to a private library cannot start without this. Nothing else of our environment is
# handed on: the nursery needs none, and an agent can read it in /proc.
NURSERY_ENVIRONMENT = ("LD_LIBRARY_PATH",)

Reason = Literal["cancelled", "deadline"]


class ProcessError(Exception):
    """A process could not be started or owned: a fault of the set-up, never of the agent."""


class ExecutableNotFoundError(ProcessError):
    """The command's program is not there. `argv0`: the name that was looked for."""

    def __init__(self, argv0: str, searched: str) -> None:
        super().__init__(f"{argv0}: program not found {searched}; install it, or give its full path")
        self.argv0 = argv0


class StartFailedError(ProcessError):
    """The program is there, but the system did not start it; the message says what, where and why."""


class SupervisorLostError(ProcessError):
    """The command's supervisor was killed: how the command ended is unknown, what was left is killed."""


@dataclass(frozen=True)
class Command:
    """One program call. `argv[0]` is looked up on the PATH in `env`; `env` is the whole environment.

    `stdin`: a file, or a FIFO that its writer has open already; None is /dev/null.
    `reads`: what it needs of the host beside its trial and itself, for an environment that does not show everything.
    `enclosure`: the call of a program that confines the command, and in which a supervisor of ours waits for it on
    descriptor 3 (`skillup.environments.inside`); empty on the host. Program and folder are named as they are in there.
    `control`: the control socket of a nursery in a container, which starts the command in there, and looks for its
    program there, too.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: Path
    stdin: Path | None = None
    enclosure: tuple[str, ...] = ()
    reads: tuple[Path, ...] = ()
    control: socket.socket | None = None


@dataclass(frozen=True)
class Grace:
    """Seconds that a tree is given to end by itself.

    interrupt: after SIGINT to the root alone. Claude Code needs that signal first: only then does it end its
        tool shells and close its session, and SIGKILL around its result line loses the session. It takes
        0.2 s, 0.5 s on a crowded machine.
    terminate: after SIGTERM to the whole tree. Servers and shells that end on it do so within milliseconds.
    """

    interrupt: float = 2.0
    terminate: float = 1.0


DEFAULT_GRACE = Grace()


@dataclass(frozen=True)
class Ended:
    """How a command ended; when this exists, nothing of its tree is alive.

    exit_code: of the root; None when a signal ended it (`signal` is then its number).
    how: `exited` by itself, or ended by us for its `deadline` or because it was `cancelled`.
    leftovers: one line (``pid N: command line``, agent's text) for each process that was still alive 50 ms
        after the root had ended, and had to be ended.
    cpu_seconds: user and system time of the whole tree.
    max_rss_kib: largest resident size of one process of the tree, in KiB; at least about 10 MiB, because the
        kernel counts the supervisor's own size before the program is loaded.
    duration_seconds: from the start to the end of the root.
    """

    exit_code: int | None
    signal: int | None
    how: Literal["exited", "deadline", "cancelled"]
    leftovers: tuple[str, ...]
    cpu_seconds: float
    max_rss_kib: int
    duration_seconds: float


def find_executable(command: Command) -> str:
    """Absolute path of the command's program, looked up as the system would do it for the child.

    Raises: ExecutableNotFoundError.
    """
    if not command.argv or not command.argv[0]:
        raise ExecutableNotFoundError("(empty)", "because the command names none")
    name, path = command.argv[0], command.env.get("PATH", os.defpath)
    if "/" in name:
        searched = f"in {command.cwd}" if not name.startswith("/") else "there"
    else:
        searched = f"on the PATH of the command ({path})"
    found = look_up(name, str(command.cwd), path)
    if found is None:
        raise ExecutableNotFoundError(name, searched)
    return found


class Running:
    """One started command. All methods may be called from any thread, also after it has ended."""

    def __init__(self, sock: socket.socket, name: str, forget: Callable[["Running"], None]) -> None:
        self._sock, self._name, self._forget = sock, name, forget
        self._received = bytearray()
        self._outcome: Ended | SupervisorLostError | None = None
        self._waiting = threading.Lock()  # one thread reads the socket; others queue for it
        self._sending = threading.Lock()  # the socket is not closed while someone writes to it
        self.pid = 0

    def wait(self, timeout: float | None) -> Ended | None:
        """How the command ended, at once when it has; None when it still runs after `timeout` seconds.

        Raises: SupervisorLostError.
        """
        until = None if timeout is None else time.monotonic() + timeout
        if not self._waiting.acquire(timeout=-1 if timeout is None else max(0.0, timeout)):
            return None
        try:
            if self._outcome is None:
                self._outcome = self._read_outcome(until)
                if self._outcome is None:
                    return None
                with self._sending:
                    self._sock.close()
                self._forget(self)
        finally:
            self._waiting.release()
        if isinstance(self._outcome, SupervisorLostError):
            raise self._outcome
        return self._outcome

    def end(self, reason: Reason = "cancelled") -> None:
        """Ask for SIGINT, then SIGTERM, then SIGKILL over the tree; returns at once, `wait` tells the end."""
        self._send(b"d" if reason == "deadline" else b"c")

    def kill(self) -> None:
        """Ask for SIGKILL over the whole tree; returns at once. Claude Code may lose its session by it."""
        self._send(b"k")

    def _send(self, order: bytes) -> None:
        with self._sending:
            if self._sock.fileno() >= 0:
                with contextlib.suppress(OSError):  # it has just ended; wait() tells
                    self._sock.sendall(order)

    def _start(self, request: bytes) -> None:
        """Hand the request to the supervisor and take its first answer. Raises: StartFailedError."""
        with self._waiting:  # whoever waits for the end must not take the first answer for it
            with self._sending:  # an order sent meanwhile would be taken for a part of the request
                self._sock.settimeout(START_SECONDS)
                with contextlib.suppress(OSError):  # when nobody reads it, the answer says why, or is missing
                    self._sock.sendall(len(request).to_bytes(4, "big") + request)
                self._sock.settimeout(None)
            line = self._read_line(time.monotonic() + START_SECONDS)
        if not line:
            raise StartFailedError(f"{self._name}: its supervisor process gave no answer")
        answer = json.loads(line)
        if answer.get("failed") == "program":
            raise ExecutableNotFoundError(answer["path"], answer["reason"])
        if "pid" not in answer:
            raise StartFailedError(f"{self._name}: {_explain(answer)}")
        self.pid = answer["pid"]

    def _give_up(self) -> None:
        """Let go of a command whose start failed; its supervisor, if any, takes it for our death."""
        with contextlib.suppress(OSError):
            self._sock.shutdown(socket.SHUT_RDWR)  # wakes a thread that waits on it
        with self._waiting, self._sending:
            self._outcome = self._outcome or SupervisorLostError(f"{self._name}: was not started")
            self._sock.close()
        self._forget(self)

    def _read_outcome(self, until: float | None) -> Ended | SupervisorLostError | None:
        line = self._read_line(until)
        if line is None:
            return None
        answer: dict[str, Any] = json.loads(line) if line else {}
        if "ended" not in answer:
            detail = _explain(answer) if answer else "it was killed from outside"
            return SupervisorLostError(f"{self._name}: lost its supervisor process: {detail}")
        fields = answer["ended"]
        return Ended(**(fields | {"leftovers": tuple(fields["leftovers"])}))

    def _read_line(self, until: float | None) -> bytes | None:
        """The next answer; empty when there will be none, None when there is none yet at the time `until`."""
        poll = select.poll()
        poll.register(self._sock, select.POLLIN)
        while b"\n" not in self._received:
            left = None if until is None else max(0.0, until - time.monotonic())
            if not poll.poll(None if left is None else min(left * 1000, 2**31 - 1)):
                return None
            try:
                part = self._sock.recv(65536)
            except OSError:
                part = b""
            if not part:
                return b""
            self._received += part
        line, _, rest = bytes(self._received).partition(b"\n")
        self._received = bytearray(rest)
        return line


def _explain(answer: dict[str, str]) -> str:
    """A supervisor's failure in words."""
    what, path, reason = answer["failed"], answer["path"], answer["reason"]
    match what:
        case "cwd":
            return f"cannot enter the working directory {path}: {reason}"
        case "stdin" | "stdout" | "stderr":
            return f"cannot open {path} as {what}: {reason}"
        case "exec" if reason == os.strerror(errno.E2BIG):
            return f"{path} was not started: {reason}; pass long text by stdin"
        case "exec":
            return f"{path} was not started: {reason}; is its interpreter installed, and is it for this machine?"
        case "enclosure":
            return f"{path} ended before the command did: {reason}"
        case _:
            return f"fault in {what} ({path}): {reason}"


class Nursery:
    """Starts commands and owns what they start, until it is closed. A context manager; safe from any thread.

    subreaper: whole trees are owned; without it (not Linux) process groups only.
    """

    def __init__(self, *, subreaper: bool = sys.platform == "linux") -> None:
        self._mode = "tree" if subreaper else "group"
        self._lock = threading.Lock()
        self._program: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._running: set[Running] = set()
        self._closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def start(
        self,
        command: Command,
        *,
        stdout: Path,
        stderr: Path,
        deadline_seconds: float | None,
        grace: Grace = DEFAULT_GRACE,
    ) -> Running:
        """Start `command`, its output going to the files named (made or emptied; they may be the same file).

        After `deadline_seconds` its tree is ended, whatever this process is doing then.
        Raises: ExecutableNotFoundError, StartFailedError.
        """
        request, streams = _encode(
            command,
            find_executable(command) if command.control is None else None,
            stdout=stdout,
            stderr=stderr,
            deadline_seconds=deadline_seconds,
            grace=grace,
        )
        ours, theirs = socket.socketpair()
        running = Running(ours, command.argv[0], self._forget)
        try:
            with theirs, self._lock, _opened(streams) as fds:
                socket.send_fds(command.control or self._open_control(), [START], [theirs.fileno(), *fds])
                self._running.add(running)
            running._start(request)  # noqa: SLF001 - the two classes are one mechanism
        except NotStartedError as error:
            what, path, reason = error.args
            running._give_up()  # noqa: SLF001 - as above
            raise StartFailedError(f"{command.argv[0]}: cannot open {path} as {what}: {reason}") from error
        except OSError as error:
            running._give_up()  # noqa: SLF001 - as above
            where = "process nursery" if command.control is None else "container"
            raise StartFailedError(f"{command.argv[0]}: the {where} is out of reach: {error}") from error
        except BaseException:
            running._give_up()  # noqa: SLF001 - as above
            raise
        return running

    def run(
        self,
        command: Command,
        *,
        stdout: Path,
        stderr: Path,
        deadline_seconds: float | None,
        grace: Grace = DEFAULT_GRACE,
        cancelled: threading.Event | None = None,
    ) -> Ended:
        """Start `command` and wait for its end; it is ended when `cancelled` is set.

        Raises: ExecutableNotFoundError, StartFailedError, SupervisorLostError.
        """
        running = self.start(command, stdout=stdout, stderr=stderr, deadline_seconds=deadline_seconds, grace=grace)
        try:
            while (ended := running.wait(None if cancelled is None else CANCEL_LOOK_SECONDS)) is None:
                if cancelled is not None and cancelled.is_set():
                    running.end()
                    cancelled = None
        except BaseException:  # ^C: the tree must not outlive the call that owns it
            running.kill()
            raise
        return ended

    def close(self) -> None:
        """End every command that still runs, and the nursery process. Nothing can be started afterwards."""
        with self._lock:
            self._closed = True
            still = list(self._running)
        try:
            for running in still:
                running.end()
            for running in still:
                _wait_for_end(running)
        except BaseException:  # a second ^C: no more grace
            for running in still:
                running.kill()
            raise
        finally:
            self._end_nursery()

    def kill(self) -> None:
        """Kill every command that still runs, without any grace; for a process that is about to leave.

        Takes no lock, as it is called by a signal handler that may have interrupted whoever holds it.
        """
        for running in tuple(self._running):
            running.kill()

    def _forget(self, running: Running) -> None:
        with self._lock:
            self._running.discard(running)

    def _open_control(self) -> socket.socket:
        """The control socket of a living nursery: started at the first use, and again if it was killed."""
        if self._closed:
            raise StartFailedError("nothing can be started: the process nursery is closed")
        if self._program is not None and self._control is not None:
            if self._program.poll() is None:
                return self._control
            self._control.close()
        self._control, theirs = socket.socketpair()
        with theirs:
            fd = theirs.fileno()
            self._program = subprocess.Popen(
                [sys.executable, "-I", "-S", "-B", str(SUPERVISOR), str(fd), self._mode],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={name: os.environ[name] for name in NURSERY_ENVIRONMENT if name in os.environ},
                pass_fds=[fd],
                start_new_session=True,  # ^C at the terminal reaches us alone
            )
        return self._control

    def _end_nursery(self) -> None:
        """Close the control socket and wait for the nursery, which ends when its supervisors have."""
        with self._lock:
            control, program = self._control, self._program
            self._control = self._program = None
        if control is not None:
            with control:
                control.shutdown(socket.SHUT_WR)
                poll = select.poll()
                poll.register(control, select.POLLIN)
                if not poll.poll(CLOSE_SECONDS * 1000) and program is not None:
                    program.kill()  # its end of the socket is still open: it is stuck
        if program is not None:
            program.wait()


def listen_in(control: socket.socket) -> socket.socket:
    """A socket that listens on 127.0.0.1 in the network of a container, whose nursery `control` leads to.

    Raises: OSError.
    """
    ours, theirs = socket.socketpair()
    with ours:
        with theirs:
            socket.send_fds(control, [LISTEN], [theirs.fileno()])
        ours.settimeout(START_SECONDS)
        said, fds, _, _ = socket.recv_fds(ours, MAX_ANSWER, 1, getattr(socket, "MSG_CMSG_CLOEXEC", 0))
    if not fds:
        raise OSError(_explain(json.loads(said)) if said else "the container has ended")
    return socket.socket(fileno=fds[0])


def _wait_for_end(running: Running) -> None:
    """Wait until `running` has ended, however it did."""
    with contextlib.suppress(SupervisorLostError):  # whoever owns it is told by its own wait()
        running.wait(None)


@contextlib.contextmanager
def _opened(streams: dict[str, bytes]) -> Iterator[list[int]]:
    """Descriptors of a command's standard streams, for a nursery that cannot open them. Raises: NotStartedError."""
    fds: list[int] = []
    try:
        fds.extend(open_stdio(streams) if streams else ())
        yield fds
    finally:
        for fd in fds:
            os.close(fd)


def _encode(
    command: Command,
    executable: str | None,
    *,
    stdout: Path,
    stderr: Path,
    deadline_seconds: float | None,
    grace: Grace,
) -> tuple[bytes, dict[str, bytes]]:
    """The request as the supervisor reads it, and the streams that it cannot open itself. Raises: StartFailedError."""
    if any("\0" in text for text in (*command.argv, *command.env, *command.env.values(), *command.enclosure)):
        raise StartFailedError(f"{command.argv[0]}: an argument or variable holds a NUL; pass it by a file")
    paths = {"cwd": str(command.cwd.absolute())}
    streams = {
        "stdin": str(command.stdin.absolute()) if command.stdin else os.devnull,
        "stdout": str(stdout.absolute()),
        "stderr": str(stderr.absolute()),
    }
    if executable is not None:
        paths |= {"executable": executable, **streams}
        streams = {}
    request = {
        "argv": [_image(item) for item in command.argv],
        "env": {_image(name): _image(value) for name, value in command.env.items()},
        "paths": {name: _image(path) for name, path in paths.items()},
        "deadline": deadline_seconds,
        "interrupt": grace.interrupt,
        "terminate": grace.terminate,
        "enclosure": [_image(item) for item in command.enclosure],
    }
    return json.dumps(request).encode(), {name: os.fsencode(path) for name, path in streams.items()}


def _image(text: str) -> str:
    """The bytes that the system would get for `text`, one character each."""
    return os.fsencode(text).decode("latin-1")
