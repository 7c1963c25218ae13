"""The command line, started within milliseconds: a server that has imported it forks a process for each call.

What runs is the real command in a process of its own, which can be killed like any other. Only the second that Python
needs to import everything is paid once, so that a test can afford a hundred calls.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import IO, TYPE_CHECKING, Self

if TYPE_CHECKING:
    from tests.support import Project

_REPOSITORY = Path(__file__).resolve().parents[1]

SERVER = """
import importlib, json, os, sys
from skillup.cli import main
for name in sys.argv[1:]:
    importlib.import_module(name)
for line in sys.stdin:
    call = json.loads(line)
    pid = os.fork()
    if pid == 0:
        sys.stdin = open(os.devnull)
        os.setpgid(0, 0)
        for number, name in enumerate((os.devnull, call["stdout"], call["stderr"])):
            os.dup2(os.open(name, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600), number)
        os.chdir(call["folder"])
        os.environ.clear()
        os.environ.update(call["env"])
        sys.argv = ["skillup", *call["arguments"]]
        code = 1
        try:
            main()
        except SystemExit as end:
            code = end.code or 0
        except BaseException:
            sys.excepthook(*sys.exc_info())
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    print(pid, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
"""

MODULES = (
    "skillup.cli.doctor",
    "skillup.cli.judge",
    "skillup.cli.progress",
    "skillup.cli.report",
    "skillup.cli.run",
    "skillup.execution.again",
    "skillup.execution.agreement",
    "skillup.execution.resume",
    "skillup.execution.runner",
    "skillup.execution.services",
    "skillup.loading.native",
    "skillup.reports.console",
    "skillup.reports.formats",
)


@dataclass(frozen=True)
class Ended:
    """A call that is over; `code` is negative when a signal ended it."""

    code: int
    stdout: str
    stderr: str


class Forked:
    """Calls, one at a time. A context manager."""

    def __init__(self) -> None:
        self._server = subprocess.Popen(
            [sys.executable, "-c", SERVER, *MODULES],
            cwd=_REPOSITORY,
            env={"PYTHONPATH": os.pathsep.join(sys.path)},  # it is no process of the project's, and looks like none
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,  # what is read ahead no select would show
            process_group=0,
        )
        self._folder = TemporaryDirectory(prefix="forked-")
        self._outputs = (Path(self._folder.name) / "stdout", Path(self._folder.name) / "stderr")
        self.pid = 0
        self.free = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._server as server:
            self.end()
            _pipe(server.stdin).close()
            server.wait(30)
        self._folder.cleanup()

    def end(self) -> None:
        """Kills a call that a test which failed has left behind."""
        if self.pid:
            with suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
            self.wait()

    def start(
        self,
        project: Project,
        *arguments: str | Path,
        folder: Path | None = None,
        env: Mapping[str, str] | None = None,
    ) -> int:
        """Starts `skillup ARGUMENTS` in a project; its process id."""
        self.end()
        for path in self._outputs:
            path.unlink(missing_ok=True)
        call = {
            "arguments": [str(argument) for argument in arguments],
            "folder": str(folder or project.root),
            "env": {**project.variables, **(env or {})},
            "stdout": str(self._outputs[0]),
            "stderr": str(self._outputs[1]),
        }
        pipe = _pipe(self._server.stdin)
        pipe.write(json.dumps(call).encode() + b"\n")
        self.pid = int(_pipe(self._server.stdout).readline())
        return self.pid

    def wait(self, seconds: float | None = None) -> Ended:
        """How the started call ended; one that does not within `seconds` is ended, and the test fails."""
        said = _pipe(self._server.stdout)
        late = seconds is not None and not select.select([said], [], [], seconds)[0]
        if late:
            os.killpg(self.pid, signal.SIGTERM)
            if not select.select([said], [], [], 5)[0]:
                os.killpg(self.pid, signal.SIGKILL)
        code = int(said.readline())
        self.pid = 0
        ended = Ended(code, *(path.read_text(encoding="utf-8", errors="replace") for path in self._outputs))
        assert not late, f"did not end within {seconds} s:\n{ended.stdout}\n{ended.stderr}"
        return ended

    def call(self, project: Project, *arguments: str | Path, folder: Path | None = None) -> Ended:
        """Runs `skillup ARGUMENTS` in a project to its end."""
        self.start(project, *arguments, folder=folder)
        return self.wait()

    def cut(
        self, project: Project, arguments: Sequence[str | Path], number: signal.Signals, when: Callable[[], bool]
    ) -> tuple[Ended, float]:
        """Starts a call and signals it `when` it is time, unless it has ended; how it ended, and how soon after."""
        process = os.pidfd_open(self.start(project, *arguments))
        try:
            while not when() and not select.select([process], [], [], 0.005)[0]:
                pass
            before = time.monotonic()
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(process, number)
            return self.wait(), time.monotonic() - before
        finally:
            os.close(process)


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe is not None
    return pipe
