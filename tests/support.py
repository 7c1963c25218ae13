"""What the tests share: a project of cases in a temporary folder, run by the real command line as a real process."""

from __future__ import annotations

import json
import os
import shutil
import signal
import ssl
import subprocess
import sys
import textwrap
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skillup.results import RunResult, TrialResult
from tests.forked import Forked

REPOSITORY = Path(__file__).resolve().parents[1]

OF_THE_INTERPRETER = ("PYTHON", "LC_", "LANG", "LD_")
"""Variables that a Python which already runs would not hear of."""


@dataclass(frozen=True)
class Finished:
    """One call of the command line that has ended."""

    code: int
    stdout: str
    stderr: str
    directory: Path

    @property
    def run(self) -> RunResult:
        """The run's saved result."""
        return RunResult.model_validate_json((self.directory / "result.json").read_bytes())

    def trial(self, case: str = "", agent: str = "") -> TrialResult:
        """The one result of a case (and agent)."""
        found = [r for r in self.run.case_results if case in ("", r.case_id) and agent in ("", r.agent.name)]
        assert len(found) == 1, (case, agent, self.stderr)
        return found[0]

    def folder(self, case: str = "", agent: str = "") -> Path:
        """The attempt's folder of that result."""
        return self.directory / self.trial(case, agent).folder

    def requests(self, case: str = "", agent: str = "") -> list[dict[str, Any]]:
        """What the loopback model was asked in that trial: the requests that had a body."""
        lines = (self.folder(case, agent) / "requests.jsonl").read_text(encoding="utf-8").splitlines()
        return [request for request in map(json.loads, lines) if request["body"] is not None]


class Project:
    """A folder of cases and the command line, in an environment of its own.

    What is waited for is started by `forked` within milliseconds; what a test looks at while it runs is a Python of its
    own (`start`, or `own_python`).
    """

    def __init__(self, root: Path, tools: Path | None = None, forked: Forked | None = None) -> None:
        self.root = root
        self._forked = forked
        self.home = root / "user-home"
        self.home.mkdir(parents=True)
        self.trials = Path("/var/tmp") / f"skillup-tests-{os.getpid()}-{root.name}"
        folders = [str(tools)] if tools else []
        path = os.pathsep.join([*folders, str(Path(sys.executable).parent), "/usr/local/bin", "/usr/bin", "/bin"])
        self.variables = {
            "PATH": path,
            "HOME": str(self.home),
            "LANG": "C.UTF-8",
            "SKILLUP_TRIAL_ROOT": str(self.trials),
            "COLUMNS": "200",
        }
        self._count = 0

    def write(self, name: str, text: str) -> Path:
        """A file of the project, dedented."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text).lstrip("\n"), encoding="utf-8")
        return path

    def start(self, *arguments: str | Path, env: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
        """Starts `skillup ARGUMENTS` in the project, in a process group of its own."""
        return subprocess.Popen(
            [sys.executable, "-m", "skillup", *map(str, arguments)],
            cwd=self.root,
            env={**self.variables, **(env or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            process_group=0,
        )

    def call(
        self,
        *arguments: str | Path,
        env: Mapping[str, str] | None = None,
        seconds: float = 150,
        own_python: bool = False,
    ) -> Finished:
        """Runs `skillup ARGUMENTS` to its end."""
        return self._finished(arguments, env, self.root / "none", seconds, own_python=own_python)

    def _finished(
        self,
        arguments: Sequence[str | Path],
        env: Mapping[str, str] | None,
        directory: Path,
        seconds: float,
        *,
        own_python: bool,
    ) -> Finished:
        own_python = own_python or any(name.startswith(OF_THE_INTERPRETER) for name in env or ())
        if self._forked is None or own_python or not self._forked.free.acquire(blocking=False):
            return self.wait(self.start(*arguments, env=env), directory, seconds)
        try:
            self._forked.start(self, *arguments, env=env)
            ended = self._forked.wait(seconds)
        finally:
            self._forked.free.release()
        return Finished(ended.code, ended.stdout, ended.stderr, directory)

    def wait(self, process: subprocess.Popen[str], directory: Path, seconds: float = 150) -> Finished:
        """Waits for a started call; a call that does not end is ended, and the test fails."""
        try:
            stdout, stderr = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGTERM)
            time.sleep(5)
            os.killpg(process.pid, signal.SIGKILL)
            stdout, stderr = process.communicate()
            raise AssertionError(f"did not end within {seconds} s:\n{stdout}\n{stderr}") from None
        return Finished(process.returncode, stdout, stderr, directory)

    def run(
        self,
        *arguments: str | Path,
        env: Mapping[str, str] | None = None,
        seconds: float = 150,
        own_python: bool = False,
    ) -> Finished:
        """Runs `skillup run ARGUMENTS` with a run directory of its own."""
        self._count += 1
        directory = self.root / f"run-{self._count}"
        arguments = ("run", *arguments, "--output-dir", directory)
        return self._finished(arguments, env, directory, seconds, own_python=own_python)

    def close(self) -> None:
        """Nothing of a trial may be left: neither files nor processes."""
        left = [path for path in self.trials.glob("*") if path.is_dir()] if self.trials.exists() else []
        alive = processes_mentioning(str(self.trials))
        shutil.rmtree(self.trials, ignore_errors=True)
        assert not alive, f"processes survived: {alive}"
        assert not left, f"trial roots survived: {left}"


def processes_mentioning(text: str) -> list[str]:
    """Living processes whose command line, environment or working folder mentions a text."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        if folder.name == str(os.getpid()):
            continue
        try:
            state = (folder / "stat").read_text().rpartition(")")[2].split()[0]
            command = (folder / "cmdline").read_bytes()
            mentions = text.encode() in command + (folder / "environ").read_bytes() or text in os.readlink(
                folder / "cwd"
            )
        except OSError:
            continue
        if state != "Z" and mentions:
            found.append(f"{folder.name}: {command.replace(bytes(1), b' ').decode(errors='replace')[:200]}")
    return found


def certificate(folder: Path) -> tuple[ssl.SSLContext, Path]:
    """A server that is called localhost, and the file of who vouches for it."""
    key, cert = folder / "key.pem", folder / "cert.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-nodes", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"),
            *("-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"),
            *("-keyout", str(key), "-out", str(cert)),
        ],
        check=True,
        capture_output=True,
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    return context, cert
