"""Every process has an owner: commands start as asked, end when asked, and leave nothing alive."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from skillup.environments.process import (
    SUPERVISOR,
    Command,
    Ended,
    ExecutableNotFoundError,
    Grace,
    Nursery,
    Running,
    StartFailedError,
    SupervisorLostError,
)
from skillup.environments.supervisor import children_by_parent, children_of, status_of

ENV = {"PATH": "/usr/local/bin:/usr/bin:/bin"}
QUICK = Grace(interrupt=0.2, terminate=0.2)
PYTHON = sys.executable


def alive(mark: str) -> list[int]:
    """Living processes with `mark` in their command line."""
    pids = [int(folder.name) for folder in Path("/proc").iterdir() if folder.name.isdigit()]
    return [pid for pid in pids if mark.encode() in command_line(pid)]


def command_line(pid: int) -> bytes:
    """The command line of a process; empty when it is gone or a zombie."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def until(condition: Callable[[], object], seconds: float = 5.0) -> bool:
    """Whether `condition` comes true within `seconds`."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.005)
    return True


def parent_of(pid: int) -> int:
    """Process id of a process's parent."""
    return status_of(pid)[1]


@pytest.fixture
def mark() -> Iterator[str]:
    """A duration for `sleep` that no other process has; nothing with it may be alive after the test."""
    text = f"{os.getpid()}.{time.monotonic_ns()}"
    yield text
    left = alive(text)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert left == []


@pytest.fixture
def nursery() -> Iterator[Nursery]:
    with Nursery() as opened:
        yield opened


class Shell:
    """Starts commands in a folder, its output files beside it."""

    def __init__(self, nursery: Nursery, folder: Path) -> None:
        self.nursery, self.folder = nursery, folder
        self.stdout, self.stderr = folder / "stdout", folder / "stderr"

    def start(
        self,
        *argv: str,
        deadline: float | None = 60,
        grace: Grace = QUICK,
        stdin: Path | None = None,
        env: dict[str, str] | None = None,
        stdout: Path | None = None,
    ) -> Running:
        command = Command(argv=argv, env=ENV if env is None else env, cwd=self.folder, stdin=stdin)
        return self.nursery.start(
            command, stdout=stdout or self.stdout, stderr=self.stderr, deadline_seconds=deadline, grace=grace
        )

    def run(
        self,
        *argv: str,
        deadline: float | None = 60,
        stdin: Path | None = None,
        env: dict[str, str] | None = None,
    ) -> Ended:
        ended = self.start(*argv, deadline=deadline, stdin=stdin, env=env).wait(None)
        assert ended is not None
        return ended

    def script(self, text: str) -> Ended:
        return self.run("sh", "-c", text)

    def printed(self) -> str:
        return self.stdout.read_text()


@pytest.fixture
def shell(nursery: Nursery, tmp_path: Path) -> Shell:
    return Shell(nursery, tmp_path)


def ended(running: Running, within: float = 10.0) -> Ended:
    """The end of a command that must come."""
    outcome = running.wait(within)
    assert outcome is not None, "still running"
    return outcome


# --- what a command gets and what is told of it


@pytest.mark.parametrize("code", [0, 1, 7, 255])
def test_exit_code_is_reported(shell: Shell, code: int) -> None:
    outcome = shell.script(f"exit {code}")
    assert (outcome.exit_code, outcome.signal, outcome.how, outcome.leftovers) == (code, None, "exited", ())


def test_a_signal_is_not_an_exit_code(shell: Shell) -> None:
    outcome = shell.script("kill -SEGV $$")
    assert (outcome.exit_code, outcome.signal, outcome.how) == (None, signal.SIGSEGV, "exited")


def test_output_goes_to_its_files_byte_for_byte(shell: Shell) -> None:
    shell.script(r"printf '\377\000\n\r\303'; printf 'err\376' >&2")
    assert shell.stdout.read_bytes() == b"\xff\x00\n\r\xc3"
    assert shell.stderr.read_bytes() == b"err\xfe"


def test_output_files_are_emptied_first_and_may_be_one_file(shell: Shell, nursery: Nursery) -> None:
    shell.stdout.write_text("old " * 100)
    command = Command(("sh", "-c", "for i in 1 2 3; do echo o$i; echo e$i >&2; done"), ENV, shell.folder)
    nursery.run(command, stdout=shell.stdout, stderr=shell.stdout, deadline_seconds=60)
    assert shell.printed().split() == ["o1", "e1", "o2", "e2", "o3", "e3"]


def test_stdin_file_of_five_megabytes_arrives_whole(shell: Shell, tmp_path: Path) -> None:
    content = os.urandom(5_000_000)
    (tmp_path / "prompt").write_bytes(content)
    assert shell.run("cat", stdin=tmp_path / "prompt").exit_code == 0
    assert shell.stdout.read_bytes() == content


def test_without_stdin_the_command_reads_nothing(shell: Shell) -> None:
    assert shell.script("wc -c; readlink /proc/self/fd/0").exit_code == 0
    assert shell.printed().split() == ["0", "/dev/null"]


def test_a_fifo_as_stdin_is_a_live_conversation(shell: Shell, tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    writer = os.open(fifo, os.O_RDWR)
    running = shell.start("cat", stdin=fifo)
    for line in (b"one\n", b"two\n"):
        os.write(writer, line)
        assert until(lambda line=line: shell.stdout.read_bytes().endswith(line))  # type: ignore[misc]  # bound here
    assert running.wait(0) is None
    os.close(writer)
    assert ended(running).exit_code == 0


def test_a_fifo_without_a_writer_is_at_its_end(shell: Shell, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    assert shell.run("cat", stdin=tmp_path / "fifo", deadline=5).how == "exited"


def test_the_environment_is_the_command_s_alone(shell: Shell) -> None:
    shell.run("env", env={**ENV, "ODD": "\udcff=ü\n"})
    assert shell.stdout.read_bytes() == b"PATH=/usr/local/bin:/usr/bin:/bin\nODD=\xff=\xc3\xbc\n\n"


def test_arguments_pass_unchanged(shell: Shell) -> None:
    odd = ["-n", "", "a b", "ü\udcfe", "$(id)", "x" * 100_000]
    join = "import os, sys; os.write(1, os.fsencode('|'.join(sys.argv[1:])))"
    shell.run(PYTHON, "-I", "-c", join, *odd)
    assert shell.stdout.read_bytes() == "|".join(odd).encode("utf-8", "surrogateescape")


LOOK_AROUND = """
import os, signal
status = dict(line.split(":\\t") for line in open("/proc/self/status").read().splitlines() if ":\\t" in line)
files = sorted(os.listdir("/proc/self/fd"))[:-1]
print(os.getsid(0) == os.getpid(), files, status["SigIgn"], status["SigBlk"])
"""


def test_a_command_has_a_session_three_files_and_default_signals(shell: Shell, tmp_path: Path) -> None:
    stray = os.open(tmp_path, os.O_RDONLY)
    os.set_inheritable(stray, True)  # noqa: FBT003 - it takes no keyword
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM, signal.SIGCHLD])
    try:
        with Nursery() as fresh:
            Shell(fresh, tmp_path).run(PYTHON, "-I", "-c", LOOK_AROUND)
    finally:
        os.close(stray)
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
    own_session, rest = shell.printed().split(" ", 1)
    files, ignored, masked = rest.rsplit(" ", 2)
    assert own_session == "True"
    assert files == "['0', '1', '2']"
    # The looking Python ignores two by itself; 32 and 33 are the C library's own and set by posix_spawn.
    allowed = sum(1 << (number - 1) for number in (signal.SIGPIPE, signal.SIGXFSZ, 32, 33))
    assert int(ignored, 16) & ~allowed == 0
    assert int(masked, 16) == 0


def test_sigpipe_ends_a_writer_as_in_a_shell(shell: Shell) -> None:
    shell.run("bash", "-c", "yes | head -n 1; echo ${PIPESTATUS[0]}")
    assert shell.printed().split() == ["y", str(128 + signal.SIGPIPE)]


def test_time_and_memory_of_the_whole_tree_are_counted(shell: Shell) -> None:
    burn = "import time\nx = b'x' * 80_000_000\nwhile time.process_time() < 0.3: pass"
    outcome = shell.run("sh", "-c", f'{PYTHON} -I -S -c "{burn}"; true')
    assert 0.3 <= outcome.cpu_seconds < 2
    assert 78_000 < outcome.max_rss_kib < 200_000
    assert 0.3 <= outcome.duration_seconds < 10


def test_output_can_be_read_while_the_command_runs(shell: Shell, mark: str) -> None:
    running = shell.start("sh", "-c", f"echo early; exec sleep {mark}")
    assert until(lambda: shell.printed() == "early\n")
    assert running.wait(0) is None
    running.end()
    ended(running)


# --- what cannot be started


def test_a_program_is_looked_up_on_the_command_s_own_path(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    tool = tmp_path / "bin" / "sh"
    tool.write_text("#!/bin/sh\necho ours\n")
    tool.chmod(0o755)
    shell.run("sh", env={"PATH": f"{tmp_path}/nowhere:bin:/bin"})
    assert shell.printed() == "ours\n"
    shell.run("./bin/sh", env={})
    assert shell.printed() == "ours\n"


@pytest.mark.parametrize("name", ["no-such-program", "/no/such/program", "./missing", ".", "", "plain"])
def test_a_missing_program_is_named(shell: Shell, tmp_path: Path, name: str) -> None:
    (tmp_path / "plain").write_text("not executable")
    with pytest.raises(ExecutableNotFoundError, match="not found") as caught:
        shell.run(name, env={"PATH": str(tmp_path)})
    assert caught.value.argv0 == (name or "(empty)")


def test_a_missing_working_directory_is_named(nursery: Nursery, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    with pytest.raises(StartFailedError, match=f"sh: cannot enter the working directory {gone}: No such file"):
        nursery.run(Command(("sh",), ENV, gone), stdout=tmp_path / "o", stderr=tmp_path / "e", deadline_seconds=1)


def test_files_that_cannot_be_opened_are_named(shell: Shell, tmp_path: Path) -> None:
    with pytest.raises(StartFailedError, match="as stdin: No such file"):
        shell.run("cat", stdin=tmp_path / "none")
    with pytest.raises(StartFailedError, match="as stdout: No such file"):
        shell.start("cat", stdout=tmp_path / "none" / "stdout")


def test_a_script_without_its_interpreter_says_so(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "tool").write_text("#!/no/such/interpreter\n")
    (tmp_path / "tool").chmod(0o755)
    with pytest.raises(StartFailedError, match="is its interpreter installed"):
        shell.run("./tool")


def test_too_long_arguments_point_to_stdin(shell: Shell) -> None:
    with pytest.raises(StartFailedError, match="Argument list too long; pass long text by stdin"):
        shell.run("echo", "x" * 200_000)
    with pytest.raises(StartFailedError, match="NUL"):
        shell.run("echo", "a\0b")


def test_after_a_failed_start_the_next_one_works(shell: Shell) -> None:
    with pytest.raises(StartFailedError):
        shell.run("echo", "x" * 200_000)
    assert shell.script("exit 3").exit_code == 3


# --- leftovers


@pytest.mark.parametrize(
    "daemon",
    [
        "env -i setsid -f sleep {}",
        "(setsid sh -c 'sleep {} & exit' &) ",
        "nohup sleep {} >/dev/null 2>&1 &",
        "sleep {} & echo done",
        "trap '' INT HUP; sleep {} & sleep 0.02",
    ],
    ids=["setsid without environment", "double fork", "nohup", "holds stdout open", "ignores INT and HUP"],
)
def test_what_outlives_the_root_is_ended_and_named(shell: Shell, mark: str, daemon: str) -> None:
    outcome = shell.script(daemon.format(mark) + "\nsleep 0.1")  # time to become what it is named after
    assert (outcome.exit_code, outcome.how) == (0, "exited")
    assert len(outcome.leftovers) == 1
    assert outcome.leftovers[0].startswith("pid ")
    assert outcome.leftovers[0].endswith(f": sleep {mark}")
    assert alive(mark) == []


def test_a_leftover_that_ignores_sigterm_is_killed_after_its_grace(shell: Shell, mark: str) -> None:
    begin = time.monotonic()
    outcome = shell.script(f"(trap '' TERM; exec setsid -f sleep {mark})")
    assert alive(mark) == []
    assert len(outcome.leftovers) == 1
    assert 0.25 <= time.monotonic() - begin < 2


def test_a_process_that_is_about_to_end_is_no_leftover(shell: Shell) -> None:
    # On a crowded machine one of them may be late, not all.
    assert () in [shell.script("sleep 0.02 & exit 0").leftovers for _ in range(5)]


def test_a_zombie_is_no_leftover(shell: Shell, mark: str) -> None:
    # `sleep` never waits for the child that the shell had started before it became `sleep`.
    outcome = shell.script(f"setsid sh -c 'true & exec sleep {mark}' & sleep 0.05")
    assert [line.partition(": ")[2] for line in outcome.leftovers] == [f"sleep {mark}"]


def test_many_leftovers_make_a_short_report(shell: Shell, mark: str) -> None:
    outcome = shell.script(f"for i in $(seq 60); do setsid sleep {mark} & done; sleep 0.1")
    assert len(outcome.leftovers) == 51
    assert outcome.leftovers[-1] == "and 10 more"


def test_a_process_that_forks_and_exits_without_end_is_caught(shell: Shell, mark: str) -> None:
    hop = "import os, time\nos.setsid()\nwhile True:\n    if os.fork(): os._exit(0)\n    time.sleep(0.001)"
    outcome = shell.run("sh", "-c", f'{PYTHON} -I -S -c "$0" {mark} & sleep 0.2', hop)
    assert outcome.exit_code == 0
    assert alive(mark) == []
    assert len(outcome.leftovers) <= 2


def test_orphans_that_end_while_the_root_runs_are_reaped(shell: Shell, mark: str) -> None:
    running = shell.start("sh", "-c", f"for i in 1 2 3; do (true &) ; done; echo up; exec sleep {mark}")
    assert until(lambda: shell.printed() == "up\n")
    owner = parent_of(running.pid)
    children = Path(f"/proc/{owner}/task/{owner}/children")
    assert until(lambda: children.read_text().split() == [str(running.pid)])
    running.kill()
    ended(running)


# --- ending


FAMILY = """
import os, signal, sys, time
root = os.fork()
name = "root" if root else "child"
def say(number, frame):
    print(name, signal.Signals(number).name, flush=True)
    os._exit(9)
signal.signal(signal.SIGINT, say)
signal.signal(signal.SIGTERM, say)
print(name, flush=True)
time.sleep(60)
"""


def test_ending_starts_with_sigint_to_the_root_alone(shell: Shell, mark: str) -> None:
    running = shell.start(PYTHON, "-I", "-S", "-c", FAMILY, mark, grace=Grace(1.0, 1.0))
    assert until(lambda: sorted(shell.printed().split()) == ["child", "root"])
    running.end()
    outcome = ended(running)
    assert (outcome.exit_code, outcome.how) == (9, "cancelled")
    assert shell.printed().splitlines()[2:] == ["root SIGINT", "child SIGTERM"]
    assert len(outcome.leftovers) == 1


def test_a_root_that_ends_its_own_tools_on_sigint_leaves_nothing(shell: Shell, mark: str) -> None:
    running = shell.start("bash", "-c", f"setsid sleep {mark} & trap 'kill $!; exit 0' INT; echo up; wait")
    assert until(lambda: shell.printed() == "up\n")
    running.end()
    outcome = ended(running)
    assert (outcome.exit_code, outcome.how, outcome.leftovers) == (0, "cancelled", ())
    assert outcome.duration_seconds < 5


def test_a_tree_that_ignores_sigint_gets_sigterm(shell: Shell, mark: str) -> None:
    running = shell.start("sh", "-c", f"trap '' INT; sleep {mark} & sleep {mark} & echo up; wait")
    assert until(lambda: shell.printed() == "up\n")
    running.end()
    outcome = ended(running)
    assert (outcome.signal, outcome.how, outcome.leftovers) == (signal.SIGTERM, "cancelled", ())
    assert 0.2 <= outcome.duration_seconds < 2


def test_a_tree_that_ignores_everything_is_killed_after_both_graces(shell: Shell, mark: str) -> None:
    running = shell.start(
        "sh", "-c", f"trap '' INT TERM HUP; setsid sleep {mark} & setsid sleep {mark} & echo up; sleep {mark}"
    )
    assert until(lambda: shell.printed() == "up\n")
    begin = time.monotonic()
    running.end()
    outcome = ended(running)
    assert alive(mark) == []
    assert (outcome.signal, outcome.how, outcome.leftovers) == (signal.SIGKILL, "cancelled", ())
    assert 0.4 <= time.monotonic() - begin < 2


def test_root_and_leftovers_share_one_grace_after_sigterm(shell: Shell, mark: str) -> None:
    text = f"trap '' INT; (trap '' TERM; exec sleep {mark}) & echo up; exec sleep {mark}"
    running = shell.start("sh", "-c", text, grace=Grace(0.1, 1.0))
    assert until(lambda: shell.printed() == "up\n")
    begin = time.monotonic()
    running.end()
    assert ended(running).signal == signal.SIGTERM
    assert 1.1 <= time.monotonic() - begin < 2.0


def test_a_stopped_process_is_ended_too(shell: Shell, mark: str) -> None:
    running = shell.start("sleep", mark)
    os.kill(running.pid, signal.SIGSTOP)
    running.end()
    assert ended(running).how == "cancelled"


def test_kill_gives_no_grace(shell: Shell, mark: str) -> None:
    grace = Grace(interrupt=30, terminate=30)
    running = shell.start("sh", "-c", f"trap '' INT TERM; setsid sleep {mark} & sleep {mark}", grace=grace)
    assert until(lambda: len(alive(mark)) == 3)
    running.end()
    assert running.wait(0.1) is None
    running.kill()
    outcome = ended(running, within=10)
    assert alive(mark) == []
    assert (outcome.signal, outcome.how) == (signal.SIGKILL, "cancelled")


def test_end_names_the_reason_it_was_given(shell: Shell, mark: str) -> None:
    running = shell.start("sleep", mark)
    running.end(reason="deadline")
    running.end()
    assert ended(running).how == "deadline"


def test_a_deadline_is_kept_though_nobody_waits(shell: Shell, mark: str) -> None:
    running = shell.start("sleep", mark, deadline=0.3)
    time.sleep(0.3)
    assert until(lambda: not alive(mark))
    outcome = ended(running)
    assert (outcome.signal, outcome.how) == (signal.SIGINT, "deadline")
    assert 0.3 <= outcome.duration_seconds < 3


def hanging(folder: Path, mark: str) -> Command:
    """A command in an enclosure that never gets as far as starting it."""
    return Command(("true",), ENV, folder, enclosure=("/bin/sleep", mark))


def test_an_enclosure_that_hangs_is_ended_at_the_deadline(shell: Shell, mark: str) -> None:
    started = time.monotonic()
    with pytest.raises(StartFailedError, match="/bin/sleep ended before the command did: it hung and was killed"):
        shell.nursery.start(
            hanging(shell.folder, mark), stdout=shell.stdout, stderr=shell.stderr, deadline_seconds=0.2, grace=QUICK
        )
    assert 0.5 < time.monotonic() - started < 3
    assert alive(mark) == []


@pytest.mark.parametrize("ending", [Nursery.close, Nursery.kill])
def test_an_enclosure_that_hangs_can_be_ended(tmp_path: Path, mark: str, ending: Callable[[Nursery], None]) -> None:
    faults: list[StartFailedError] = []

    def start(nursery: Nursery) -> None:
        out = tmp_path / "out"
        try:
            nursery.start(hanging(tmp_path, mark), stdout=out, stderr=out, deadline_seconds=None, grace=QUICK)
        except StartFailedError as error:
            faults.append(error)

    with Nursery() as nursery:
        thread = threading.Thread(target=start, args=(nursery,))
        thread.start()
        assert until(lambda: alive(mark))
        started = time.monotonic()
        ending(nursery)
        thread.join()
        assert time.monotonic() - started < 3
    assert len(faults) == 1
    assert alive(mark) == []


def test_what_ended_by_itself_was_not_cancelled(shell: Shell) -> None:
    running = shell.start("sh", "-c", "exit 4")
    time.sleep(0.1)
    running.end()
    running.kill()
    outcome = ended(running)
    assert (outcome.exit_code, outcome.how) == (4, "exited")
    running.end()
    assert running.wait(0) is outcome


def test_sixteen_trees_end_at_once(nursery: Nursery, tmp_path: Path, mark: str) -> None:
    text = f"trap '' INT; setsid sleep {mark} & env -i setsid -f sleep {mark}; while :; do sleep {mark}; done"
    shells = []
    for number in range(16):
        (tmp_path / str(number)).mkdir()
        shells.append(Shell(nursery, tmp_path / str(number)))
    running = [shell.start("sh", "-c", text) for shell in shells]
    assert until(lambda: len(alive(mark)) == 16 * 4)
    begin = time.monotonic()
    for one in running:
        one.end()
    outcomes = [ended(one) for one in running]
    assert alive(mark) == []
    assert {outcome.how for outcome in outcomes} == {"cancelled"}
    assert time.monotonic() - begin < 3


# --- waiting


def test_wait_with_a_timeout_returns_none_while_the_command_runs(shell: Shell, mark: str) -> None:
    running = shell.start("sleep", mark)
    begin = time.monotonic()
    assert running.wait(0.1) is None
    assert 0.1 <= time.monotonic() - begin < 1
    running.kill()
    ended(running)


def test_wait_wakes_when_the_command_ends(shell: Shell) -> None:
    delays = []
    for _ in range(5):
        running = shell.start("sh", "-c", "sleep 0.1; exec date +%s.%N")
        ended(running)
        delays.append(time.time() - float(shell.printed()))
    assert min(delays) < 0.01  # a polling wait would be up to 50 ms late


def test_every_waiting_thread_gets_the_end(shell: Shell) -> None:
    running = shell.start("sleep", "0.2")
    outcomes: list[Ended | None] = []
    threads = [threading.Thread(target=lambda: outcomes.append(running.wait(5))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(outcomes) == 8
    assert outcomes[0] is not None
    assert all(outcome is outcomes[0] for outcome in outcomes)


def test_run_is_ended_by_its_event(nursery: Nursery, tmp_path: Path, mark: str) -> None:
    cancelled = threading.Event()
    threading.Timer(0.2, cancelled.set).start()
    outcome = nursery.run(
        Command(("sleep", mark), ENV, tmp_path),
        stdout=tmp_path / "o",
        stderr=tmp_path / "e",
        deadline_seconds=60,
        cancelled=cancelled,
    )
    assert outcome.how == "cancelled"
    assert outcome.duration_seconds < 2


def test_thirty_two_threads_start_commands_at_once(nursery: Nursery, tmp_path: Path) -> None:
    codes: dict[int, int | None] = {}

    def work(number: int) -> None:
        command = Command(("sh", "-c", f"exit {number}"), ENV, tmp_path)
        files = (tmp_path / f"o{number}", tmp_path / f"e{number}")
        codes[number] = nursery.run(command, stdout=files[0], stderr=files[1], deadline_seconds=60).exit_code

    threads = [threading.Thread(target=work, args=[number]) for number in range(32)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert codes == {number: number for number in range(32)}


# --- closing, and deaths that nobody planned


def owners(harness: int) -> set[int]:
    """The nursery of a harness process and its supervisors."""
    nurseries = [pid for pid in children_of(harness) if str(SUPERVISOR).encode() in command_line(pid)]
    return {*nurseries, *(pid for nursery in nurseries for pid in children_of(nursery))}


def test_close_ends_everything_and_is_final(tmp_path: Path, mark: str) -> None:
    nursery = Nursery()
    shell = Shell(nursery, tmp_path)
    running = [shell.start("sh", "-c", f"env -i setsid -f sleep {mark}; sleep {mark}") for _ in range(3)]
    assert until(lambda: len(alive(mark)) == 9)
    assert len(owners(os.getpid())) == 4
    nursery.close()
    assert alive(mark) == []
    assert [ended(one).how for one in running] == ["cancelled"] * 3
    assert owners(os.getpid()) == set()
    nursery.close()
    with pytest.raises(StartFailedError, match="closed"):
        shell.script("true")


def test_an_unused_nursery_starts_no_process() -> None:
    with Nursery():
        assert owners(os.getpid()) == set()


HARNESS = """
import signal, sys, time
from pathlib import Path
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs begin with it ignored
from skillup.environments.process import Command, Grace, Nursery
folder, mark = Path(sys.argv[1]), sys.argv[2]
with Nursery() as nursery:
    for number in range(4):
        text = f"trap '' HUP; env -i setsid -f sleep {mark}; (setsid sleep {mark} &); sleep {mark}; :"
        nursery.start(Command(("sh", "-c", text), {"PATH": "/usr/bin:/bin"}, folder),
                      stdout=folder / f"o{number}", stderr=folder / f"e{number}",
                      deadline_seconds=None, grace=Grace(0.2, 0.2))
    try:
        time.sleep(60)
    except KeyboardInterrupt:
        print("interrupted")
"""


@contextlib.contextmanager
def harness(folder: Path, mark: str) -> "Iterator[subprocess.Popen[str]]":
    """A process that has started four trees and then does nothing; killed in the end."""
    with subprocess.Popen(
        [PYTHON, "-c", HARNESS, str(folder), mark],
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
        start_new_session=True,
    ) as process:
        try:
            assert until(lambda: len(alive(mark)) == 1 + 4 * 4)
            yield process
        finally:
            process.kill()


def test_when_the_harness_is_killed_its_trees_end(tmp_path: Path, mark: str) -> None:
    with harness(tmp_path, mark) as process:
        ours = owners(process.pid)
        assert len(ours) == 5
        process.kill()
    assert until(lambda: not alive(mark))
    assert until(lambda: not any(command_line(pid) for pid in ours))


def test_control_c_reaches_the_harness_and_not_the_commands(tmp_path: Path, mark: str) -> None:
    with harness(tmp_path, mark) as process:
        os.killpg(process.pid, signal.SIGINT)
        assert process.communicate(timeout=10)[0] == "interrupted\n"
        assert process.returncode == 0
    assert alive(mark) == []


def test_a_supervisor_ignores_polite_signals(shell: Shell, mark: str) -> None:
    running = shell.start("sleep", mark)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGQUIT):
        os.kill(parent_of(running.pid), number)
    assert running.wait(0.1) is None
    running.end()
    assert ended(running).how == "cancelled"


def test_when_a_supervisor_is_killed_its_tree_is_killed_and_the_caller_told(shell: Shell, mark: str) -> None:
    running = shell.start("sh", "-c", f"env -i setsid -f sleep {mark}; sleep {mark}")
    assert until(lambda: len(alive(mark)) == 3)
    os.kill(parent_of(running.pid), signal.SIGKILL)
    for _ in range(2):
        with pytest.raises(SupervisorLostError, match="killed from outside"):
            running.wait(5)
    assert until(lambda: not alive(mark))
    assert shell.script("exit 5").exit_code == 5


def test_a_killed_nursery_loses_no_command_and_is_replaced(shell: Shell, mark: str) -> None:
    running = shell.start("sh", "-c", f"echo up; sleep {mark}")
    supervisor = parent_of(running.pid)
    nursery = parent_of(supervisor)
    os.kill(nursery, signal.SIGKILL)
    assert until(lambda: status_of(nursery)[0] in "ZX")
    other = Shell(shell.nursery, shell.folder)
    other.stdout = shell.folder / "other"
    assert other.script("exit 6").exit_code == 6
    assert running.wait(0) is None
    running.end()
    assert ended(running).how == "cancelled"


def test_close_while_others_start_and_wait_ends_all(tmp_path: Path, mark: str) -> None:
    nursery = Nursery()
    outcomes: list[str] = []

    def work(number: int) -> None:
        command = Command(("sleep", mark), ENV, tmp_path)
        files = (tmp_path / f"o{number}", tmp_path / f"e{number}")
        try:
            while True:
                ended = nursery.run(command, stdout=files[0], stderr=files[1], deadline_seconds=0.05)
                outcomes.append(ended.how)
        except StartFailedError as error:
            outcomes.append(str(error).partition(": ")[0])

    threads = [threading.Thread(target=work, args=[number]) for number in range(8)]
    for thread in threads:
        thread.start()
    time.sleep(0.1)
    nursery.close()
    assert alive(mark) == []
    for thread in threads:
        thread.join(10)
    assert outcomes.count("nothing can be started") == 8
    assert set(outcomes) <= {"nothing can be started", "deadline", "cancelled"}


# --- other kernels


def test_children_are_found_where_the_kernel_does_not_list_them(shell: Shell, mark: str) -> None:
    running = shell.start("sleep", mark)
    owner = parent_of(running.pid)
    assert children_by_parent(owner) == children_of(owner) == [running.pid]
    running.kill()
    ended(running)


def test_without_a_subreaper_the_process_group_is_ended(tmp_path: Path, mark: str) -> None:
    with Nursery(subreaper=False) as nursery:
        shell = Shell(nursery, tmp_path)
        assert shell.script("exit 3").exit_code == 3
        outcome = shell.script(f"sleep {mark} & exit 0")
        assert outcome.leftovers[0].startswith("process group ")
        assert alive(mark) == []
        outcome = shell.run("sh", "-c", f"trap '' INT TERM; sleep {mark} & sleep {mark}", deadline=0.1)
        assert (outcome.how, outcome.signal) == ("deadline", signal.SIGKILL)
