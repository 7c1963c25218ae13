"""A container shows a process its own trial and nothing else, and ends and reports it as the host does."""

from __future__ import annotations

import ast
import os
import signal
import socket
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from skillup.environments.base import Missing, Site, TrialEnvironment
from skillup.environments.container import ContainerKind
from skillup.environments.container_engine import ENGINE_VARIABLE, find_engine
from skillup.environments.host import TrialRoot, open_trial_root
from skillup.environments.process import (
    SUPERVISOR,
    Command,
    Ended,
    ExecutableNotFoundError,
    Grace,
    Nursery,
    StartFailedError,
    SupervisorLostError,
)
from skillup.errors import TrialError
from skillup.spec.suite import Environment
from tests.containers import Containers
from tests.support import processes_mentioning

QUICK = Grace(interrupt=0.3, terminate=0.3)


class Box:
    """A container, and shell commands in it."""

    def __init__(self, containers: Containers, base: Path, stack: ExitStack, **wanted: object) -> None:
        self.nursery = stack.enter_context(Nursery())
        self.root: TrialRoot = stack.enter_context(open_trial_root(base))
        self.host = {**os.environ, **containers.variables, "USER": "somebody-else"}
        asked = Environment.model_validate({"type": "docker", "image": containers.image, **wanted})
        site = Site(asked, self.root, self.host, self.nursery, reads=(Path(__file__).parent,))
        opened = ContainerKind().open(site)
        self.environment: TrialEnvironment = stack.enter_context(opened)
        self.output, self.errors = self.root.scratch / "out", self.root.scratch / "err"

    def command(self, *argv: str, stdin: Path | None = None, env: Mapping[str, str] | None = None) -> Command:
        own = {"PATH": os.environ["PATH"], "HOME": str(self.root.home), "TMPDIR": str(self.root.tmp), **(env or {})}
        return self.environment.command(Command(argv, own, self.root.workspace, stdin))

    def run(
        self,
        *argv: str,
        seconds: float | None = 20,
        stdin: Path | None = None,
        env: Mapping[str, str] | None = None,
    ) -> Ended:
        return self.nursery.run(
            self.command(*argv, stdin=stdin, env=env),
            stdout=self.output,
            stderr=self.errors,
            deadline_seconds=seconds,
            grace=QUICK,
        )

    def shell(self, text: str, *, seconds: float | None = 20, env: Mapping[str, str] | None = None) -> Ended:
        return self.run("/bin/sh", "-c", text, seconds=seconds, env=env)

    def says(self, text: str, **env: str) -> str:
        ended = self.shell(text, env=env)
        assert ended.exit_code == 0, self.errors.read_text()
        return self.output.read_text().strip()


def base_of(name: str) -> Path:
    return Path("/var/tmp") / f"skillup-tests-{os.getpid()}-{name}"


@pytest.fixture(scope="module")
def box(containers: Containers) -> Iterator[Box]:
    """One container for most tests: to start it takes longer than they do."""
    base = base_of("box")
    with ExitStack() as stack:
        yield Box(containers, base, stack, network_policy="deny_all", limits={"file_size_mb": 5, "memory_mb": 300})
    assert processes_mentioning(str(base)) == []
    base.rmdir()


def test_only_the_trial_is_there(box: Box, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("canary")
    with open_trial_root(box.root.path.parent) as other:
        (other.workspace / "theirs").write_text("canary")
        for place in (secret, other.workspace / "theirs", Path.home(), "/var/run/docker.sock", "/run/podman"):
            assert box.shell(f"cat {place}").exit_code == 1, place
            assert "No such file" in box.errors.read_text()
        assert box.says(f"ls {box.root.path.parent}").split() == [box.root.path.name, box.root.scratch.name]


def test_only_the_trial_can_be_written(box: Box) -> None:
    for place in ("/", "/bin", "/etc", "/home", box.root.scratch, SUPERVISOR.parent, Path(__file__).parent):
        assert box.shell(f"echo x > {place}/new").exit_code != 0, place
    assert box.shell(f"echo x >> {box.root.scratch}/out; echo x >> {SUPERVISOR}").exit_code != 0
    assert box.says("echo a > here; echo b > ~/home; echo c > $TMPDIR/tmp; cat $TMPDIR/tmp") == "c"
    assert (box.root.workspace / "here").read_text() == "a\n"
    assert (box.root.home / "home").read_text() == "b\n"


def test_what_the_host_writes_can_be_changed_inside(box: Box) -> None:
    (box.root.workspace / "deep").mkdir(mode=0o700)
    written = box.root.workspace / "deep/file"
    written.write_text("host")
    written.chmod(0o600)
    outside = box.root.path.parent / "outside"
    outside.write_text("untouched")
    (box.root.workspace / "deep/link").symlink_to(outside)
    assert box.says("cat deep/file; echo inside > deep/file; rm deep/link") == "host"
    assert written.read_text() == "inside\n"
    assert outside.stat().st_uid == os.getuid()
    outside.unlink()


def test_folders_that_are_deeper_than_a_path_can_be_are_no_obstacle(box: Box) -> None:
    deep = "import os\nfor _ in range(700):\n    os.mkdir('d' * 20)\n    os.chdir('d' * 20)\nopen('end', 'w')"
    assert box.run(sys.executable, "-c", deep).exit_code == 0, box.errors.read_text()
    assert box.says("echo on") == "on"


def test_nobody_is_root_or_has_a_way_to_become_it(box: Box) -> None:
    said = box.says("id -u; grep -E 'Cap(Eff|Bnd)|NoNewPrivs' /proc/self/status").split()
    assert said[0] == str(os.getuid() or 1000)
    assert said[1:] == ["CapEff:", "0" * 16, "CapBnd:", "0" * 16, "NoNewPrivs:", "1"]


def test_a_turn_finds_what_an_earlier_one_has_left_anywhere(box: Box) -> None:
    box.says("echo kept > /tmp/note")
    assert box.says("cat /tmp/note") == "kept"


def test_its_first_process_cannot_be_ended_or_looked_into(box: Box) -> None:
    assert box.says("kill -9 1; kill -STOP 1; ls /proc | grep -c '^[0-9]'").isdigit()
    assert box.says("echo alive") == "alive"


def test_variables_are_the_images_and_the_commands_and_none_of_the_host(box: Box) -> None:
    said = box.says("env | cut -d= -f1 | sort | tr '\\n' ' '; echo; echo $PATH", A="b", USER="somebody-else")
    names, path = said.splitlines()
    assert set(names.split()) - {"container", "HOSTNAME", "TERM"} == {"A", "HOME", "PATH", "PWD", "TMPDIR"}
    assert path != os.environ["PATH"]
    assert box.says("echo $PATH", PATH="/only/mine:/bin") == "/only/mine:/bin"


@pytest.mark.parametrize(
    ("text", "code", "number"),
    [("exit 0", 0, None), ("exit 137", 137, None), ("kill -9 $$", None, 9), ("kill -TERM $$", None, 15)],
)
def test_exit_codes_and_signals_are_those_of_the_command(
    box: Box, text: str, code: int | None, number: int | None
) -> None:
    ended = box.shell(text)
    assert (ended.exit_code, ended.signal, ended.how, ended.leftovers) == (code, number, "exited", ())


def test_what_is_left_behind_is_ended_and_named(box: Box) -> None:
    ended = box.shell("sleep 4851 & (env -i setsid sleep 4852 &) ; exit 3")
    assert ended.exit_code == 3
    assert sorted(line.partition(": ")[2] for line in ended.leftovers) == ["sleep 4851", "sleep 4852"]
    assert processes_mentioning("sleep 4851") == processes_mentioning("sleep 4852") == []


def test_the_command_itself_is_interrupted_first(box: Box) -> None:
    ended = box.shell("trap 'echo interrupted; exit 7' INT; sleep 4853 & wait", seconds=0.5)
    assert (ended.exit_code, ended.how) == (7, "deadline")
    assert box.output.read_text() == "interrupted\n"


def test_what_ignores_every_signal_is_killed(box: Box) -> None:
    ended = box.shell("trap '' INT TERM; sleep 4854 & sleep 4854", seconds=0.3)
    assert (ended.signal, ended.how) == (9, "deadline")
    assert processes_mentioning("sleep 4854") == []


def test_standard_streams_are_files_of_the_host(box: Box) -> None:
    told = box.root.scratch / "told"
    told.write_bytes(b"\xff\x00 told\n")
    ended = box.run("/bin/sh", "-c", "cat; echo err >&2", stdin=told)
    assert ended.exit_code == 0
    assert (box.output.read_bytes(), box.errors.read_bytes()) == (b"\xff\x00 told\n", b"err\n")


def test_who_owns_its_processes_cannot_be_looked_into(box: Box) -> None:
    for text in ("cat /proc/1/environ", "ls -l /proc/1/fd/", "cat /proc/$PPID/maps", "exec 3< /proc/$PPID/mem"):
        assert box.shell(text).exit_code != 0, text
        assert "Permission denied" in box.errors.read_text()


def test_a_supervisor_that_the_agent_kills_leaves_nothing(box: Box) -> None:
    with pytest.raises(SupervisorLostError):
        box.shell("sleep 0.5; (env -i setsid sleep 4855 &); kill -9 $PPID; sleep 4855")
    assert box.says("cat /proc/[0-9]*/cmdline | tr '\\0' ' ' | grep -c 'sleep 485[5]' || true") == "0"


def test_it_reaches_nothing_without_a_way(box: Box) -> None:
    ask = (
        "import socket, sys\n"
        "for where in (('192.0.2.1', 80), ('127.0.0.1', int(sys.argv[1])), ('example.com', 80)):\n"
        "    try: socket.create_connection(where, 2); print('reached')\n"
        "    except OSError as error: print('denied')\n"
    )
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert box.run(sys.executable, "-c", ask, str(server.getsockname()[1])).exit_code == 0
    assert box.output.read_text().split() == ["denied"] * 3


def test_in_the_engines_network_a_server_of_the_hosts_loopback_has_a_way(containers: Containers) -> None:
    base = base_of("full")
    ask = "import sys, urllib.request as r; print(r.build_opener(r.ProxyHandler({})).open(sys.argv[1]).status)"
    with ExitStack() as stack, ThreadingHTTPServer(("127.0.0.1", 0), SimpleHTTPRequestHandler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        stack.callback(server.shutdown)
        try:
            box = Box(containers, base, stack)
        except TrialError as error:
            pytest.skip(f"there is no network for containers here: {error}")
        own, other = f"http://localhost:{server.server_port}/", "https://models.example.com/v1"
        assert box.run(sys.executable, "-c", ask, own).exit_code == 1
        with box.environment.reaching([own, other]) as (inside, found):
            assert found[other] == other
            command = inside.command(Command((sys.executable, "-c", ask, found[own]), {}, box.root.workspace))
            box.nursery.run(command, stdout=box.output, stderr=box.errors, deadline_seconds=20)
        assert (box.output.read_text(), box.errors.read_text()) == ("200\n", "")
        assert box.run(sys.executable, "-c", ask, found[own]).exit_code == 1
    base.rmdir()


def test_limits_of_a_process(box: Box) -> None:
    box.shell("head -c 9000000 /dev/zero > big")
    assert (box.root.workspace / "big").stat().st_size == 5 << 20
    assert box.run(sys.executable, "-c", "bytearray(600 << 20)").exit_code == 1
    assert "MemoryError" in box.errors.read_text()


def test_what_cannot_be_started_says_why(box: Box, tmp_path: Path) -> None:
    with pytest.raises(
        ExecutableNotFoundError, match="no-such-program: program not found in the container, on the PATH"
    ):
        box.run("no-such-program")
    with pytest.raises(ExecutableNotFoundError, match="/bin/no-such-program: program not found in the container"):
        box.run("/bin/no-such-program")
    with pytest.raises(StartFailedError, match="as stdout: No such file"):
        box.nursery.run(box.command("cat"), stdout=tmp_path / "no" / "f", stderr=box.errors, deadline_seconds=5)


def test_a_service_runs_beside_the_trial_and_its_end_is_told(containers: Containers) -> None:
    base = base_of("service")
    entrypoint = ["/bin/sh", "-c", "echo up > ready; while [ ! -e stop ]; do sleep 0.1; done; echo no more; exit 4"]
    with ExitStack() as stack:
        box = Box(containers, base, stack, entrypoint=entrypoint, workspace_mount="/workspace", network="none")
        until_up = "for i in 1 2 3 4 5 6 7 8 9; do [ -e ready ] && break; sleep 0.2; done; cat /workspace/ready"
        assert box.says(until_up) == "up"
        box.says("touch /workspace/stop; sleep 0.5")
        with pytest.raises(StartFailedError, match=r"environment\.entrypoint ended with exit code 4.*: no more"):
            box.says("true")
    base.rmdir()


def test_a_container_goes_when_its_engines_process_is_killed(containers: Containers) -> None:
    base = base_of("killed")
    with ExitStack() as stack:
        box = Box(containers, base, stack, network="none")
        running = box.nursery.start(
            box.command("sleep", "4856"), stdout=box.output, stderr=box.errors, deadline_seconds=None
        )
        for line in processes_mentioning(str(box.root.scratch / "door")):
            os.kill(int(line.partition(":")[0]), signal.SIGKILL)
        with pytest.raises(SupervisorLostError):
            running.wait(10)
        with pytest.raises(StartFailedError, match=r"the container is out of reach|gave no answer"):
            box.says("true")
    assert processes_mentioning("sleep 4856") == []
    assert containers.below(base) == []
    base.rmdir()


def test_an_image_without_python_says_so(containers: Containers) -> None:
    base = base_of("empty")
    with (
        ExitStack() as stack,
        pytest.raises(TrialError, match=f"a container of {containers.empty} does not start") as told,
    ):
        Box(containers, base, stack, image=containers.empty)
    assert "the image needs Python 3.9 or newer as `python3`" in told.value.hint
    base.rmdir()


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"PATH": "/nowhere"}, "there is no docker or podman on the PATH"),
        ({"PATH": "/bin", ENGINE_VARIABLE: "no-such-engine -x"}, "no-such-engine: program not found on the PATH"),
        ({"PATH": "/bin", ENGINE_VARIABLE: "docker 'x"}, "cannot be read: No closing quotation"),
        ({"PATH": "/bin", ENGINE_VARIABLE: "/bin/sh -c 'echo is off >&2; exit 1'"}, "/bin/sh does not work: is off"),
    ],
)
def test_why_there_is_no_engine(variables: dict[str, str], said: str) -> None:
    with Nursery() as nursery:
        found = find_engine(variables, nursery)
    assert isinstance(found, Missing)
    assert said in found.message
    assert ("install docker or podman" in found.hint) is (ENGINE_VARIABLE not in variables)


def test_the_first_process_can_be_read_by_the_oldest_python() -> None:
    ast.parse(SUPERVISOR.read_text(encoding="utf-8"), feature_version=(3, 9))
