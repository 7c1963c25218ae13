"""The programs that own every child process: one nursery a run, one supervisor a command.

`skillup.environments.process` starts this file as ``python -I -S -B supervisor.py FD MODE`` and talks to it
over the Unix socket FD. It is a program, not a module to import: it imports nothing of skillup and little of
the standard library, because it is forked for every command, and each imported module makes that fork dearer.
That is also why it is one file, and longer than others.

Protocol. The control socket carries one byte and one socket for each command. The nursery forks a supervisor,
which reads its request from that command socket (4 bytes of length, then JSON) and answers in JSON lines:
``{"pid": N}`` or ``{"failed": what, "path": …, "reason": …}``, later ``{"ended": …}``. While the command runs
the harness may write ``c`` (cancel), ``d`` (the same, reason: deadline) or ``k`` (kill). End of file there
means that the harness is dead: the tree is ended. Strings travel as Latin-1 images of their bytes, so that no
locale matters.

Who reaps. A supervisor is the subreaper of its tree: daemons, double forks and processes that left the
session and cleared their environment become its children, and "no child is left" (ECHILD) proves that all are
gone. The nursery is a subreaper too: should a supervisor be killed by SIGKILL, what it owned falls to the
nursery, which kills it. Out of reach is only what asks a service outside the tree to start something
(systemd, cron, a container daemon).

Enclosures. A command may be asked for inside another program that confines it (`enclosure` in the request):
that one is started with the standard streams of the command and a socket as descriptor 3, and in it a second
supervisor owns the command (`skillup.environments.inside`), by this same protocol: only from there can the
command's end be seen as it was. The supervisor outside hands orders in and answers out, and kills the whole
enclosure when the one inside is lost.

MODE is ``tree``, or ``group`` where the kernel has no subreaper: then only the command's process group is
ended, and what has left that group survives.

Containers. The first process of a container is a nursery, too: there FD is the path of a Unix socket on which the
harness waits for it, and over which it says what variables the image gives its programs. With each command come
its standard streams, opened outside; its program is looked for here. When the harness is gone the nursery goes, and
with it, as it is the first process, all of the container. The Python is the image's: this file must be readable
to 3.9.
"""
# pathlib takes longer to import than all of the modules below:
# ruff: noqa: PTH100, PTH110, PTH113, PTH118, PTH123, PTH208

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Callable, Collection, Iterator

PR_SET_DUMPABLE = 4
PR_SET_NAME = 15
PR_SET_CHILD_SUBREAPER = 36
PROCESS_NAME = b"skillup-owner"  # shown by ps; an agent's `killall -9 python3` does not match it
# An agent's `pkill -f python` must not reach us either: only the sockets and SIGKILL end these programs.
IGNORED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
# What a command gets back at its default: the ones above, and those that Python ignores for itself.
RESTORED = (*IGNORED, signal.SIGPIPE, signal.SIGXFSZ)
SETTLE_SECONDS = 0.05  # what exits together with its parent is seen alive for some ms; that is not a leftover
KILL_PATIENCE_SECONDS = 5.0  # a process in uninterruptible sleep, or of another user, may never go: say so, go on
KILL_RESCAN_SECONDS = 0.02  # what is forked while we kill is found by the next look
GROUP_POLL_SECONDS = 0.02  # without a subreaper nothing tells when a group has become empty
LONGEST_POLL_SECONDS = 3600.0  # poll() takes its milliseconds in a C int
MAX_LEFTOVERS = 50  # a fork bomb must not make a report of megabytes
MAX_COMMAND_LINE = 300  # characters of a leftover's command line: enough to recognise it
MAX_REASON = 1000  # bytes of what an enclosure that failed has printed: its own message is one line
INSIDE_FD = 3  # where the supervisor inside an enclosure finds its socket
START, LISTEN = b"+", b"l"  # what the harness wants with the socket that it sends
STREAMS = 3  # descriptors that may come with it
LISTEN_BACKLOG = 128
HAS_CHILDREN_FILES = os.path.exists(f"/proc/self/task/{os.getpid()}/children")  # CONFIG_PROC_CHILDREN


class NotStartedError(Exception):
    """The command could not be started. `args`: what failed (program, cwd, stdin, …, exec), the path, the reason."""


class Request:
    """What the harness asks for: the command, its files, and the times it is given (seconds).

    `enclosure` is the program call that confines it, if any, `inside` what the supervisor in there is asked for.
    Without `executable` among its paths the program is looked for here.
    """

    def __init__(self, text: bytes) -> None:
        fields = json.loads(text)
        self.enclosure: list[bytes] = [item.encode("latin-1") for item in fields.pop("enclosure", [])]
        named = {name: path for name, path in fields["paths"].items() if name in ("executable", "cwd")}
        self.inside = {**fields, "paths": named}
        self.argv: list[bytes] = [item.encode("latin-1") for item in fields["argv"]]
        self.env: dict[bytes, bytes] = {
            name.encode("latin-1"): value.encode("latin-1") for name, value in fields["env"].items()
        }
        self.paths: dict[str, bytes] = {name: path.encode("latin-1") for name, path in fields["paths"].items()}
        self.deadline: float | None = fields["deadline"]
        self.interrupt: float = fields["interrupt"]
        self.terminate: float = fields["terminate"]


# --- what /proc says ----------------------------------------------------------------------------------------


def status_of(pid: int) -> tuple[str, int]:
    """State letter and parent of a process; ``("X", 0)`` when it is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()  # the name before it may hold blanks and brackets
        return fields[0].decode(), int(fields[1])
    except (OSError, IndexError):
        return "X", 0


def children_by_parent(pid: int) -> list[int]:
    """The children of a process, found by looking at every process: for kernels that do not list them."""
    return [other for other in map(int, filter(str.isdigit, os.listdir("/proc"))) if status_of(other)[1] == pid]


def children_of(pid: int) -> list[int]:
    """The children of all threads of a process, as they are now; empty when it is gone."""
    if not HAS_CHILDREN_FILES:
        return children_by_parent(pid)
    found: list[int] = []
    # It may end while we look: its children are ours then, and found at the next look.
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children", "rb") as file:
                found.extend(map(int, file.read().split()))
    return found


def descendants(spared: Collection[int] = ()) -> Iterator[int]:
    """Living processes below this one, parents first, without the `spared` children and what is below those.

    A process's children are read before it is handed out, so that it can be signalled at once. A number may
    have gone to a stranger since it was listed: it counts only while its parent is one of ours (an orphan's
    is us).
    """
    ours = {os.getpid()}
    waiting = [pid for pid in children_of(os.getpid()) if pid not in spared]
    while waiting:
        pid = waiting.pop()
        state, parent = status_of(pid)
        if parent in ours and pid not in ours:
            ours.add(pid)
            waiting += children_of(pid)
            if state not in "ZX":
                yield pid


def describe(pid: int) -> str:
    """``pid N: command line`` of a process, bounded; its bare name when it has no command line."""
    text = ""
    for name in ("cmdline", "comm"):
        try:
            with open(f"/proc/{pid}/{name}", "rb") as file:
                text = text or file.read(4 * MAX_COMMAND_LINE).replace(b"\0", b" ").decode(errors="replace").strip()
        except OSError:
            pass  # it has just ended
    return f"pid {pid}: {text[:MAX_COMMAND_LINE]}"


def send_signal(pid: int, number: int) -> None:
    """Signal one process; one that is gone, or that belongs to another user, is left as it is."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


# --- waiting for children and talking with the harness ------------------------------------------------------


def listen_for_children() -> int:
    """A descriptor that becomes readable whenever a child of this process ends."""
    readable, writable = os.pipe()
    os.set_blocking(readable, False)
    os.set_blocking(writable, False)
    signal.set_wakeup_fd(writable, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)  # without a handler Python writes nothing to the pipe
    return readable


def drain(readable: int) -> None:
    """Empty the descriptor of `listen_for_children`."""
    try:
        while os.read(readable, 4096):
            pass
    except BlockingIOError:
        pass


def adopt_orphans() -> None:
    """Make orphans among our descendants our children, and name this process; a fork inherits neither."""
    libc = ctypes.CDLL(None)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    libc.prctl(PR_SET_NAME, PROCESS_NAME, 0, 0, 0)


def lock_out() -> None:
    """Let no process of the same user look into this one or take its sockets; forks inherit it, programs do not."""
    ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)


def read_exactly(sock: socket.socket, count: int) -> bytes:
    """The next `count` bytes. Raises: EOFError when the harness went away before."""
    parts = bytearray()
    while len(parts) < count:
        part = sock.recv(count - len(parts))
        if not part:
            raise EOFError
        parts += part
    return bytes(parts)


def read_request(sock: socket.socket) -> Request:
    """The request that arrives on a socket. Raises: EOFError when the harness went away before."""
    return Request(read_exactly(sock, int.from_bytes(read_exactly(sock, 4), "big")))


def answer(sock: socket.socket, value: dict[str, object]) -> None:
    """One JSON line to the harness, which may be dead already."""
    with contextlib.suppress(OSError):  # nobody may be there to read it; the tree is ended all the same
        sock.sendall(json.dumps(value).encode() + b"\n")


# --- one command --------------------------------------------------------------------------------------------


def look_up(name: str, cwd: str, path: str) -> str | None:
    """Absolute path of a program as the system would find it for a child in `cwd`, with this PATH."""
    for folder in [""] if "/" in name else path.split(os.pathsep):
        candidate = os.path.join(os.path.abspath(cwd), folder, name)
        if os.path.isfile(candidate) and os.access(candidate, os.X_OK):
            return candidate
    return None


def program_of(request: Request) -> bytes:
    """The program of a command, looked for if whoever asks could not. Raises: NotStartedError."""
    if "executable" in request.paths:
        return request.paths["executable"]
    name, path = os.fsdecode(request.argv[0]), os.fsdecode(request.env.get(b"PATH", os.defpath.encode()))
    found = look_up(name, os.fsdecode(request.paths["cwd"]), path)
    if found is None:
        raise NotStartedError("program", name, "in the container" + ("" if "/" in name else f", on the PATH ({path})"))
    return os.fsencode(found)


def open_stdio(paths: dict[str, bytes]) -> Iterator[int]:
    """Descriptors for the command's stdin, stdout and stderr.

    Outputs are opened for appending: two that name the same file do not overwrite each other. A FIFO as stdin
    is opened without waiting for its writer, who must have it open already.
    """
    output = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND
    for name, flags in (("stdin", os.O_RDONLY | os.O_NONBLOCK), ("stdout", output), ("stderr", output)):
        try:
            fd = os.open(paths[name], flags, 0o600)
        except OSError as error:
            raise NotStartedError(name, os.fsdecode(paths[name]), error.strerror) from error
        os.set_blocking(fd, True)
        yield fd


def spawn(request: Request) -> int:
    """Start the command in a session of its own; its process id.

    Its standard streams are the files of the request, or without them those of this process. Every other descriptor
    of this process is close-on-exec. Raises: NotStartedError.
    """
    fds = list(open_stdio(request.paths)) if "stdin" in request.paths else []
    try:
        os.chdir(request.paths["cwd"])
    except OSError as error:
        raise NotStartedError("cwd", os.fsdecode(request.paths["cwd"]), error.strerror) from error
    try:
        return start(program_of(request), request.argv, request.env, fds or [0, 1, 2])
    finally:
        os.chdir("/")  # a supervisor must not keep the workspace's file system busy
        for fd in fds:
            os.close(fd)


def spawn_enclosure(request: Request, inside: socket.socket) -> int:
    """Start the program that confines the command, `inside` its descriptor 3; its process id. Raises: NotStartedError.

    It gets no variables: what the command is to have is in the request.
    """
    fds = list(open_stdio(request.paths))
    try:
        return start(request.enclosure[0], request.enclosure, {}, [*fds, inside.fileno()])
    finally:
        for fd in fds:
            os.close(fd)


def start(program: bytes, argv: list[bytes], env: dict[bytes, bytes], fds: list[int]) -> int:
    """A new process with `fds` as its descriptors 0, 1, … Raises: NotStartedError."""
    try:
        return os.posix_spawn(
            program,
            argv,
            env,
            file_actions=[(os.POSIX_SPAWN_DUP2, fd, number) for number, fd in enumerate(fds)],
            setsid=True,
            setsigmask=[],
            setsigdef=RESTORED,
        )
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise NotStartedError("exec", os.fsdecode(program), reason) from error


class Tree:
    """One started command and everything below it, seen from its supervisor.

    `status` is the root's wait status (None while it runs), `order` and `killing` what the harness has asked
    for, `empty` whether nothing is left.
    """

    def __init__(
        self, request: Request, sock: socket.socket, *, subreaper: bool, spawn: Callable[[Request], int] = spawn
    ) -> None:
        self.request, self.sock, self.subreaper = request, sock, subreaper
        self.status: int | None = None
        self.order: str | None = None
        self.killing = self.empty = False
        self.cpu_seconds, self.max_rss, self.duration = 0.0, 0, 0.0
        self.terminate_until: float | None = None
        self.terminated: set[int] = set()
        self.wake = listen_for_children()
        self.poll = select.poll()
        self.poll.register(self.wake, select.POLLIN)
        self.poll.register(sock, select.POLLIN)
        self.started = time.monotonic()
        self.root = spawn(request)

    def reap(self) -> None:
        """Take in every child that has ended, the root and adopted orphans alike."""
        try:
            while (ended := os.wait4(-1, os.WNOHANG))[0]:
                pid, status, usage = ended
                self.cpu_seconds += usage.ru_utime + usage.ru_stime
                self.max_rss = max(self.max_rss, usage.ru_maxrss)
                if pid == self.root:
                    self.status, self.duration = status, time.monotonic() - self.started
        except ChildProcessError:
            self.empty = self.subreaper or not self.group_lives()

    def group_lives(self) -> bool:
        """Whether the command's process group has members."""
        try:
            os.killpg(self.root, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            pass
        return True

    def hear(self) -> None:
        """Take in what the harness asks for; its death is an order to cancel."""
        try:
            orders = self.sock.recv(64)
        except OSError:
            orders = b""
        if not orders:
            self.poll.unregister(self.sock)
        self.killing = self.killing or b"k" in orders
        self.order = self.order or ("deadline" if orders[:1] == b"d" else "cancelled")

    def pump(self, seconds: float) -> None:
        """Wait until a child ends, the harness says something or the time is up, and take it in."""
        if not self.subreaper and self.status is not None:
            seconds = min(seconds, GROUP_POLL_SECONDS)
        for fd, _ in self.poll.poll(1 + int(min(max(seconds, 0.0), LONGEST_POLL_SECONDS) * 1000)):
            self.take(fd)
        self.reap()

    def take(self, fd: int) -> None:
        """Take in what a descriptor has to say."""
        if fd == self.wake:
            drain(self.wake)
        else:
            self.hear()

    def pump_until(self, done: Callable[[], bool], until: float) -> None:
        """Pump until `done()`, the monotonic time `until`, or the order to kill."""
        while not done() and not self.killing and (left := until - time.monotonic()) > 0:
            self.pump(left)

    def signal_all(self, number: int, skip: Collection[int] = ()) -> set[int]:
        """Signal every living member that is not in `skip`; those that were signalled."""
        if not self.subreaper:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.root, number)
            return set()
        signalled = set()
        for pid in descendants():
            if pid not in skip:
                send_signal(pid, number)
                signalled.add(pid)
        return signalled

    def terminate(self) -> None:
        """SIGTERM to every member, new ones included, until none is left or the grace is over."""
        if self.terminate_until is None:  # one grace for the whole ending, whoever uses it up
            self.terminate_until = time.monotonic() + self.request.terminate
        while not self.empty and not self.killing and (left := self.terminate_until - time.monotonic()) > 0:
            self.terminated |= self.signal_all(signal.SIGTERM, self.terminated)
            self.pump(left)

    def kill(self) -> None:
        """SIGKILL to every member until none is left, or patience is."""
        until = time.monotonic() + KILL_PATIENCE_SECONDS
        while not self.empty and time.monotonic() < until:
            self.signal_all(signal.SIGKILL)
            self.pump(KILL_RESCAN_SECONDS)

    def list_members(self) -> list[str]:
        """One line for each living member, bounded."""
        if not self.subreaper:
            return [f"process group {self.root}"]
        lines = [describe(pid) for pid in descendants()]
        more = len(lines) - MAX_LEFTOVERS
        return [*lines[:MAX_LEFTOVERS], f"and {more} more"] if more > 0 else lines

    def see_to_the_end(self) -> dict[str, object]:
        """Wait for the command and end what has to be ended; the report for the harness."""
        answer(self.sock, {"pid": self.root})
        deadline = float("inf") if self.request.deadline is None else self.started + self.request.deadline
        self.pump_until(lambda: self.status is not None or self.order is not None, deadline)
        how = "exited" if self.status is not None else self.order or "deadline"
        if self.status is None and not self.killing:
            # To the root alone: a CLI that handles it ends its own tools, and writes down how the turn ended.
            send_signal(self.root, signal.SIGINT)
            self.pump_until(lambda: self.status is not None, time.monotonic() + self.request.interrupt)
        if self.status is None:
            self.terminate()
        if self.status is None:
            self.kill()
        leftovers: list[str] = []
        self.pump_until(lambda: self.empty, time.monotonic() + SETTLE_SECONDS)
        if not self.empty:
            leftovers = self.list_members()
            self.terminate()
            self.kill()
        if not self.empty:
            leftovers += [f"could not be ended: {line}" for line in self.list_members()]
        signalled = self.status is not None and os.WIFSIGNALED(self.status)
        ended = {
            "exit_code": None if self.status is None or signalled else os.WEXITSTATUS(self.status),
            "signal": os.WTERMSIG(self.status) if self.status is not None and signalled else None,
            "how": how,
            "leftovers": leftovers,
            "cpu_seconds": self.cpu_seconds,
            "max_rss_kib": self.max_rss // (1 if sys.platform == "linux" else 1024),  # macOS counts bytes
            "duration_seconds": self.duration or time.monotonic() - self.started,
        }
        return {"ended": ended}


class Enclosed(Tree):
    """A command in an enclosure, seen from outside: its root is the program that confines it.

    `inside` leads to the supervisor in there, `said` is what that one has answered so far, `ordered` what it has been
    told, `begun` whether it has started the command, `killed_at` when the patience with all of them is over.
    """

    def __init__(self, request: Request, sock: socket.socket, *, subreaper: bool) -> None:
        self.inside, theirs = socket.socketpair()
        with theirs:
            super().__init__(request, sock, subreaper=subreaper, spawn=lambda asked: spawn_enclosure(asked, theirs))
        text = json.dumps(request.inside).encode()
        with contextlib.suppress(OSError):  # it has ended already; what it has printed says why
            self.inside.sendall(len(text).to_bytes(4, "big") + text)
        self.inside.settimeout(0)
        self.poll.register(self.inside, select.POLLIN)
        self.said = bytearray()
        self.ordered = b""
        self.begun = False
        self.killed_at = float("inf")

    def take(self, fd: int) -> None:
        """Take in what the supervisor inside answers; what it says last is kept until all have ended."""
        if fd != self.inside.fileno():
            super().take(fd)
            return
        try:
            part = self.inside.recv(65536)
        except BlockingIOError:
            return
        except OSError:
            part = b""
        if not part:
            with contextlib.suppress(KeyError):  # it had closed its end before
                self.poll.unregister(self.inside)
        self.said += part
        first, newline, rest = self.said.partition(b"\n")
        if newline and b'"pid"' in first:
            answer(self.sock, {"pid": self.root})
            self.said, self.begun = rest, True
            self.killed_at = float("inf")  # now there is something in it that takes its time to end

    def hand_in(self) -> None:
        """Tell the supervisor inside what the harness has asked for since."""
        order = b"k" if self.killing else {None: b"", "deadline": b"d"}.get(self.order, b"c")
        if order != self.ordered:
            self.ordered = order
            with contextlib.suppress(OSError):  # it is gone; the end of its process tells
                self.inside.sendall(order)

    def see_to_the_end(self) -> dict[str, object]:
        """Hand orders in until the enclosure has ended; the last word of the one inside, or why there is none."""
        deadline = float("inf") if self.request.deadline is None else self.started + self.request.deadline
        while self.status is None:
            self.pump((self.killed_at if self.order else min(deadline, self.killed_at)) - time.monotonic())
            if self.order is None and time.monotonic() > deadline:  # the one inside may hang, or not be there yet
                self.order = "deadline"
            self.hand_in()
            self.killed_at = min(self.killed_at, time.monotonic() + self.patience())
            if time.monotonic() > self.killed_at:
                break
        self.kill()  # with its first process everything in an enclosure has ended; this is for one that was broken
        self.take(self.inside.fileno())
        if b"\n" in self.said:
            last: dict[str, object] = json.loads(self.said)
            return last
        return {"failed": "enclosure", "path": os.fsdecode(self.request.enclosure[0]), "reason": self.reason()}

    def patience(self) -> float:
        """Seconds that the enclosure has from now to end by itself; infinite while nobody wants its end."""
        if b"\n" in self.said:  # what cannot be killed keeps the enclosure from ending
            return KILL_PATIENCE_SECONDS
        if self.order is None:
            return float("inf")
        grace = self.request.interrupt + self.request.terminate
        if not self.begun:  # nothing is in it yet that would have to be killed
            return grace
        return KILL_PATIENCE_SECONDS if self.killing else grace + 2 * KILL_PATIENCE_SECONDS

    def reason(self) -> str:
        """The last line that it has printed as an error, else how it ended."""
        try:
            with open(self.request.paths["stderr"], "rb") as file:
                file.seek(max(0, file.seek(0, os.SEEK_END) - MAX_REASON))
                lines = file.read().decode(errors="replace").strip().splitlines()
        except OSError:
            lines = []
        if lines:
            return lines[-1]
        hung = self.order is not None and not self.begun
        return "it hung and was killed" if hung else f"it ended with wait status {self.status}"


def supervise(sock: socket.socket, *, subreaper: bool) -> int:
    """Own one command from its start to the end of its tree; 1 when something may be left of it, else 0."""
    if subreaper:
        adopt_orphans()
    return own(read_request(sock), sock, subreaper=subreaper)


def own(request: Request, sock: socket.socket, *, subreaper: bool) -> int:
    """The same, for a process that has become what it has to be."""
    try:
        tree = (Enclosed if request.enclosure else Tree)(request, sock, subreaper=subreaper)
    except NotStartedError as error:
        what, path, reason = error.args
        answer(sock, {"failed": what, "path": path, "reason": reason})
        return 0
    answer(sock, tree.see_to_the_end())
    return 0 if tree.empty else 1


# --- the nursery --------------------------------------------------------------------------------------------


def listen(sock: socket.socket) -> None:
    """Listen on a free port of 127.0.0.1, and hand the listening socket to the harness.

    It stays a part of this network when a process of another one accepts what comes.
    """
    try:
        with socket.create_server(("127.0.0.1", 0), backlog=LISTEN_BACKLOG) as server:
            socket.send_fds(sock, [LISTEN], [server.fileno()])
    except OSError as error:
        answer(sock, {"failed": "listen", "path": "127.0.0.1", "reason": str(error)})


class Nursery:
    """Forks a supervisor for each socket that arrives on `control`, until the harness closes it."""

    def __init__(self, control: socket.socket, *, subreaper: bool) -> None:
        self.control, self.subreaper = control, subreaper
        self.supervisors: set[int] = set()
        self.wake = listen_for_children()

    def fork(self) -> bool:
        """Take one command's socket and fork its supervisor; False when the harness has closed `control`."""
        # Only on Linux can the flag be set on arrival; elsewhere set_inheritable does it below.
        data, fds, _, _ = socket.recv_fds(self.control, 1, 1 + STREAMS, getattr(socket, "MSG_CMSG_CLOEXEC", 0))
        if not data:
            return False
        for fd in fds:
            os.set_inheritable(fd, False)  # noqa: FBT003 - it takes no keyword
        try:
            return self.take_in(data, fds[0], fds[1:])
        finally:
            for fd in fds[1:]:
                os.close(fd)

    def take_in(self, order: bytes, fd: int, streams: list[int]) -> bool:
        """Do what was asked for with a socket: fork a supervisor, or listen on a port. Always True."""
        with socket.socket(fileno=fd) as sock:
            if order == LISTEN:
                listen(sock)
                return True
            try:
                pid = os.fork()
            except OSError as error:
                answer(sock, {"failed": "fork", "path": sys.executable, "reason": error.strerror})
                return True
            if pid == 0:
                self.control.close()
                for number, stream in enumerate(streams):
                    os.dup2(stream, number)
                os._exit(self.supervise_and_exit(sock))
            self.supervisors.add(pid)
        return True

    def supervise_and_exit(self, sock: socket.socket) -> int:
        """The supervisor's whole life; its exit code. Nothing may be raised into the nursery's own loop."""
        try:
            return supervise(sock, subreaper=self.subreaper)
        except EOFError:
            return 0  # the harness died before it had said what to start
        except BaseException as error:  # noqa: BLE001 - a fault of ours is told to the harness, and the tree falls to the nursery
            answer(sock, {"failed": "supervisor", "path": __file__, "reason": repr(error)})
            return 1

    def reap(self) -> None:
        """Take in what has ended; when that was not a supervisor, or one that failed, kill what nobody owns.

        Every stray that dies wakes us again, so what it forked meanwhile is found without polling.
        """
        strays = False
        try:
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                pid, status = ended
                strays = strays or status != 0 or pid not in self.supervisors
                self.supervisors.discard(pid)
        except ChildProcessError:
            return  # no child is left
        if strays and self.subreaper:
            for pid in descendants(self.supervisors):
                send_signal(pid, signal.SIGKILL)

    def run(self) -> None:
        """Serve until the harness is gone and every supervisor has ended."""
        poll = select.poll()
        poll.register(self.wake, select.POLLIN)
        poll.register(self.control, select.POLLIN)
        serving = True
        while serving or self.supervisors:
            readable = [fd for fd, _ in poll.poll()]
            if self.wake in readable:
                drain(self.wake)
                self.reap()
            if self.control.fileno() in readable and not self.fork():
                poll.unregister(self.control)
                serving = False


def meet(path: str) -> socket.socket:
    """The control socket of a container's nursery: the harness waits for it at `path`, and is told our variables."""
    control = socket.socket(socket.AF_UNIX)
    control.connect(path)
    variables = {name.decode("latin-1"): value.decode("latin-1") for name, value in os.environb.items()}
    answer(control, {"python": list(sys.version_info[:2]), "variables": variables})
    return control


def main(place: str, mode: str) -> None:
    """Run the nursery on an inherited socket, or, in a container, on the one that waits for it at a path."""
    if place.startswith("/"):
        lock_out()
    signal.pthread_sigmask(signal.SIG_SETMASK, [])  # the thread that started us may block SIGCHLD
    for number in IGNORED:
        signal.signal(number, signal.SIG_IGN)
    os.chdir("/")
    if mode == "tree":
        adopt_orphans()
    with meet(place) if place.startswith("/") else socket.socket(fileno=int(place)) as control:
        control.set_inheritable(False)
        Nursery(control, subreaper=mode == "tree").run()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
