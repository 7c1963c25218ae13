"""A sandbox shows a process its own trial and nothing else, and ends and reports it as the host does."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from skillup.environments.base import Site
from skillup.environments.bubblewrap import BubblewrapKind
from skillup.environments.host import TrialRoot, open_trial_root
from skillup.environments.process import (
    Command,
    Ended,
    ExecutableNotFoundError,
    Grace,
    Nursery,
    StartFailedError,
    SupervisorLostError,
)
from skillup.environments.supervisor import children_of
from skillup.spec.suite import Environment
from tests.support import processes_mentioning

pytestmark = pytest.mark.usefixtures("bubblewrap")

QUICK = Grace(interrupt=0.3, terminate=0.3)


@pytest.fixture
def nursery() -> Iterator[Nursery]:
    with Nursery() as opened:
        yield opened


@pytest.fixture
def root(tmp_path: Path) -> Iterator[TrialRoot]:
    base = Path("/var/tmp") / f"skillup-tests-{os.getpid()}-{tmp_path.name}"
    with open_trial_root(base) as opened:
        yield opened
    assert processes_mentioning(str(base)) == []
    base.rmdir()


class Shell:
    """Runs shell commands in the sandboxes of one trial root."""

    def __init__(self, nursery: Nursery, root: TrialRoot, wanted: Environment | None = None) -> None:
        self.nursery, self.root = nursery, root
        self.wanted = wanted or Environment(type="bubblewrap")
        self.output, self.errors = root.scratch / "out", root.scratch / "err"

    def command(self, *argv: str, **variables: str) -> Command:
        with BubblewrapKind().open(Site(self.wanted, self.root, os.environ, self.nursery)) as environment:
            env = {"PATH": "/usr/bin:/bin", "HOME": str(self.root.home), "TMPDIR": str(self.root.tmp), **variables}
            return environment.command(Command(argv, env, self.root.workspace))

    def run(self, text: str, *, seconds: float | None = 20, **variables: str) -> Ended:
        return self.nursery.run(
            self.command("/bin/sh", "-c", text, **variables),
            stdout=self.output,
            stderr=self.errors,
            deadline_seconds=seconds,
            grace=QUICK,
        )

    def says(self, text: str, **variables: str) -> str:
        ended = self.run(text, seconds=20, **variables)
        assert ended.exit_code == 0, self.errors.read_text()
        return self.output.read_text().strip()


@pytest.fixture
def shell(nursery: Nursery, root: TrialRoot) -> Shell:
    return Shell(nursery, root)


def test_only_the_trial_and_the_system_are_there(shell: Shell, root: TrialRoot, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("canary")
    with open_trial_root(root.path.parent) as other:
        (other.workspace / "theirs").write_text("canary")
        places = (secret, other.workspace / "theirs", Path.home(), Path(__file__), Path("/etc/shadow"), Path("/sys"))
        for place in places:
            assert shell.run(f"cat {place}; ls -A {place}").exit_code == (0 if place == Path.home() else 2)
            assert "canary" not in shell.output.read_text()
        assert shell.says(f"ls {root.path.parent}").split() == [root.path.name, root.scratch.name]
    # Of the home only the way to the Python that runs us, where that is installed there.
    shown = shell.says(f"find {Path.home()} -maxdepth 1 -mindepth 1 2>/dev/null || true").split()
    assert all(Path(sys.executable).resolve().is_relative_to(place) for place in shown)


def test_only_the_trial_can_be_written(shell: Shell, root: TrialRoot) -> None:
    for place in ("/", "/usr", "/etc", "/etc/passwd", "/var/tmp", root.scratch, root.scratch / "out", Path(sys.prefix)):
        target = place if Path(place).is_file() else f"{place}/new"
        assert shell.run(f"echo x >> {target}").exit_code != 0, place
    assert shell.says("echo a > here; echo b > ~/home; echo c > /tmp/one; cat $TMPDIR/one") == "c"
    assert (root.workspace / "here").read_text() == "a\n"
    assert (root.home / "home").read_text() == "b\n"


def test_what_a_command_needs_of_the_host_is_shown_and_cannot_be_written(shell: Shell, tmp_path: Path) -> None:
    program = tmp_path / "suite" / "program"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\npwd; cat data; echo more >> data\n")
    program.chmod(0o755)
    (program.parent / "data").write_text("read\n")
    (tmp_path / "beside").write_text("canary")
    asked = Command(("./program",), {"PATH": "/usr/bin:/bin"}, program.parent, reads=(program.parent,))
    with BubblewrapKind().open(Site(shell.wanted, shell.root, os.environ, shell.nursery)) as environment:
        command = environment.command(asked)
    ended = shell.nursery.run(command, stdout=shell.output, stderr=shell.errors, deadline_seconds=20)
    assert ended.exit_code != 0
    assert shell.output.read_text() == f"{program.parent}\nread\n"
    assert "Read-only file system" in shell.errors.read_text()
    assert shell.run(f"ls {program.parent}").exit_code != 0


def test_a_program_in_a_home_starts_with_its_libraries_and_certificates(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "opt/bin").mkdir(parents=True)
    (tmp_path / "opt/lib").mkdir()
    shutil.copy("/bin/cat", tmp_path / "opt/bin/cat")
    (tmp_path / "opt/lib/real.pem").write_text("trusted\n")
    (tmp_path / "opt/lib/link.pem").symlink_to("real.pem")
    (tmp_path / "elsewhere.pem").write_text("trusted too\n")
    (tmp_path / "other.pem").symlink_to(tmp_path / "elsewhere.pem")
    (tmp_path / "secret").write_text("canary\n")
    files = [tmp_path / name for name in ("opt/lib/link.pem", "other.pem", "secret")]
    trusted = {"SSL_CERT_FILE": str(files[0]), "NODE_EXTRA_CA_CERTS": str(files[1])}
    command = shell.command(str(tmp_path / "opt/bin/cat"), *map(str, files), **trusted)
    ended = shell.nursery.run(command, stdout=shell.output, stderr=shell.errors, deadline_seconds=20)
    assert ended.exit_code == 1
    assert shell.output.read_text() == "trusted\ntrusted too\n"


def test_what_a_turn_leaves_in_tmp_is_there_in_the_next(shell: Shell) -> None:
    shell.says("echo kept > /tmp/note; echo gone > /dev/shm/note")
    assert shell.says("cat /tmp/note; cat /dev/shm/note 2>/dev/null || true") == "kept"


def test_it_has_processes_host_name_and_user_of_its_own(shell: Shell) -> None:
    shown = shell.says("ls /proc | grep -c '^[0-9]'; hostname; grep CapEff /proc/self/status; kill -9 1 || true")
    assert shown.splitlines()[1:] == ["localhost", "CapEff:\t0000000000000000"]
    assert int(shown.splitlines()[0]) < 8
    ipc = shell.says("readlink /proc/self/ns/ipc /proc/self/ns/uts /proc/self/ns/pid /proc/self/ns/user").split()
    assert not {os.readlink(f"/proc/self/ns/{name}") for name in ("ipc", "uts", "pid", "user")} & set(ipc)


def test_its_first_process_cannot_be_looked_into(shell: Shell) -> None:
    for text in ("cat /proc/1/environ", "ls -l /proc/1/fd/3", "cat /proc/1/mem", "kill -STOP 1; cat /proc/1/maps"):
        assert shell.run(text).exit_code != 0, text
    assert "Permission denied" in shell.errors.read_text()


def test_a_command_gets_its_variables_and_no_others(shell: Shell) -> None:
    assert shell.says("env | cut -d= -f1 | sort | tr '\\n' ' '", A="b") == "A HOME PATH PWD TMPDIR"


@pytest.mark.parametrize(
    ("text", "code", "number"),
    [
        ("exit 0", 0, None),
        ("exit 137", 137, None),
        ("kill -9 $$", None, 9),
        ("kill -TERM $$", None, 15),
        ("sh -c 'kill -9 $$'; exit $?", 137, None),
    ],
)
def test_exit_codes_and_signals_are_those_of_the_command(
    shell: Shell, text: str, code: int | None, number: int | None
) -> None:
    ended = shell.run(text)
    assert (ended.exit_code, ended.signal, ended.how, ended.leftovers) == (code, number, "exited", ())


def test_what_is_left_behind_is_ended_and_named(shell: Shell) -> None:
    ended = shell.run("sleep 4841 & (env -i setsid sleep 4842 &) ; exit 3")
    assert ended.exit_code == 3
    assert sorted(line.partition(": ")[2] for line in ended.leftovers) == ["sleep 4841", "sleep 4842"]
    assert processes_mentioning("sleep 484") == []


def test_the_command_itself_is_interrupted_first(shell: Shell) -> None:
    ended = shell.run("trap 'echo interrupted; exit 7' INT; sleep 4843 & wait", seconds=0.5)
    assert (ended.exit_code, ended.how) == (7, "deadline")
    assert shell.output.read_text() == "interrupted\n"
    assert processes_mentioning("sleep 4843") == []


def test_what_ignores_every_signal_is_killed(shell: Shell) -> None:
    ended = shell.run("trap '' INT TERM; sleep 4844 & sleep 4844", seconds=0.3)
    assert (ended.signal, ended.how) == (9, "deadline")
    assert processes_mentioning("sleep 4844") == []


def until(condition: Callable[[], object]) -> bool:
    end = time.monotonic() + 10
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)
    return bool(condition())


@pytest.mark.parametrize("victim", ["the sandbox", "its first process", "the supervisor"])
def test_nothing_survives_whoever_is_killed(shell: Shell, nursery: Nursery, victim: str) -> None:
    command = shell.command("/bin/sh", "-c", "echo up; setsid sleep 4845 & sleep 4845")
    running = nursery.start(command, stdout=shell.output, stderr=shell.errors, deadline_seconds=None)
    assert until(shell.output.read_text)
    pid = {
        "the sandbox": lambda: running.pid,
        "its first process": lambda: children_of(running.pid)[0],
        "the supervisor": lambda: int(Path(f"/proc/{running.pid}/stat").read_text().rpartition(")")[2].split()[1]),
    }[victim]()
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(SupervisorLostError):
        running.wait(10)
    assert until(lambda: processes_mentioning("sleep 4845") == [])


def test_it_can_be_killed_without_grace(shell: Shell, nursery: Nursery) -> None:
    command = shell.command("/bin/sh", "-c", "trap '' INT TERM; echo up; sleep 4846 & sleep 4846")
    running = nursery.start(command, stdout=shell.output, stderr=shell.errors, deadline_seconds=None)
    assert until(shell.output.read_text)
    running.kill()
    ended = running.wait(10)
    assert ended is not None
    assert (ended.signal, ended.how) == (9, "cancelled")
    assert processes_mentioning("sleep 4846") == []


def test_what_cannot_be_started_says_why(shell: Shell, root: TrialRoot) -> None:
    with pytest.raises(ExecutableNotFoundError, match="no-such-program: program not found on the PATH"):
        shell.command("no-such-program")
    broken = root.workspace / "broken"
    broken.write_text("#!/nowhere/python\n")
    broken.chmod(0o755)
    with pytest.raises(StartFailedError, match="broken was not started: No such file"):
        shell.nursery.run(
            shell.command(str(broken)), stdout=shell.output, stderr=shell.errors, deadline_seconds=5, grace=QUICK
        )


def test_a_sandbox_that_cannot_be_made_is_no_end_of_the_command(shell: Shell, root: TrialRoot) -> None:
    command = shell.command("/bin/sh", "-c", "exit 0")
    root.tmp.rmdir()
    with pytest.raises(StartFailedError, match=r"bwrap ended before the command did: bwrap: Can't find source path"):
        shell.nursery.run(command, stdout=shell.output, stderr=shell.errors, deadline_seconds=5)


def test_limits_of_a_process(nursery: Nursery, root: TrialRoot) -> None:
    wanted = Environment.model_validate({"type": "bubblewrap", "limits": {"file_size_mb": 1, "memory_mb": 200}})
    shell = Shell(nursery, root, wanted)
    assert shell.run("head -c 2000000 /dev/zero > big; exit $?").exit_code == 128 + signal.SIGXFSZ
    assert (root.workspace / "big").stat().st_size == 1 << 20
    python = str(Path(sys.executable).resolve())
    taken = shell.nursery.run(
        shell.command(python, "-c", "print(len(bytearray(100 << 20))); bytearray(300 << 20)"),
        stdout=shell.output,
        stderr=shell.errors,
        deadline_seconds=20,
    )
    assert taken.exit_code == 1
    assert shell.output.read_text() == f"{100 << 20}\n"
    assert "MemoryError" in shell.errors.read_text()


NETWORK = """
import socket, sys
kind, where = sys.argv[1:]
try:
    if kind == "tcp":
        host, _, port = where.rpartition(":")
        socket.create_connection((host, int(port)), 2)
    else:
        socket.socket(socket.AF_UNIX).connect(("\\0" if kind == "abstract" else "") + where)
    print("reached")
except OSError as error:
    print(error.strerror)
"""


@pytest.mark.parametrize(("network", "reached"), [("full", True), ("none", False), ("model_only", False)])
def test_how_much_of_the_hosts_network_is_there(
    nursery: Nursery, root: TrialRoot, tmp_path: Path, network: str, *, reached: bool
) -> None:
    shell = Shell(nursery, root, Environment.model_validate({"type": "bubblewrap", "network": network}))
    (root.workspace / "ask.py").write_text(NETWORK)
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.socket(socket.AF_UNIX) as named,
        socket.socket(socket.AF_UNIX) as abstract,
    ):
        named.bind(str(tmp_path / "socket"))
        abstract.bind(f"\0{root.path.name}")
        for unix in (named, abstract):
            unix.listen()
        port = server.getsockname()[1]
        python = Path(sys.executable).resolve()
        said = shell.says(
            f"{python} ask.py tcp 127.0.0.1:{port}; {python} ask.py unix {tmp_path}/socket; "
            f"{python} ask.py abstract {root.path.name}; {python} ask.py tcp 192.0.2.1:80"
        ).splitlines()
    expected = "reached" if reached else "Connection refused"
    assert said[:3] == [expected, "No such file or directory", expected]
    assert reached or said[3] == "Network is unreachable"
