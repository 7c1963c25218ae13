"""`skillup run --resume RUN`: only what is left is run, on what it was begun with, and the report is of the whole."""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from skillup.execution.journal import read_journal
from skillup.masking import MASK
from skillup.results import JournalEntry, RunManifest, RunResult
from tests.forked import Ended, Forked
from tests.support import Project, processes_mentioning

ENDS = """
    input: {prompt: hello}
    judge: {type: rule_based, success: [{output_contains: {all: [hi]}}]}
    script: [{say: hi}]
"""

WAITS = """
    input: {{turns: [{{role: user, content: first}}, {{role: user, content: second}}]}}
    judge: {{type: rule_based, success: [{{output_contains: {{all: [done]}}}}]}}
    script:
      - {{user: first, say: the answer to the first}}
      - user: second
        replies:
          - calls: [{{tool: bash, args: {{command: "sh {root}/wait.sh"}}}}]
          - say: done
"""
"""Its second turn ends when somebody makes the file `go`."""

BREAKS = """
    input: {prompt: go}
    expect: {must_contain: [done]}
    script: [{user: go, say: done, faults: [{status: 401}]}]
"""

RUN = ("run", "eval.yaml", "--agent", "demo")


@pytest.fixture
def suite(project: Project) -> Project:
    project.write("eval.yaml", "{schema_version: v1alpha1, cases: {files: [cases/*.yaml]}}")
    project.write("cases/a-ends.yaml", ENDS)
    project.write("wait.sh", f"touch {project.root}/waits; while [ ! -e {project.root}/go ]; do sleep 0.02; done")
    project.write("cases/b-waits.yaml", WAITS.format(root=project.root))
    project.write("cases/c-ends.yaml", ENDS)
    return project


@pytest.fixture
def cut(suite: Project, forked: Forked) -> Iterator[Path]:
    """A run that was killed in the second turn of its second trial."""
    kill_when_it_waits(suite, forked, *RUN, "--output-dir", "run")
    yield suite.root / "run"
    shutil.rmtree(suite.trials)  # not every test goes on with it, and nobody else removes what it left


def kill_when_it_waits(suite: Project, forked: Forked, *arguments: str | Path) -> None:
    (suite.root / "waits").unlink(missing_ok=True)
    ended, _ = forked.cut(suite, arguments, signal.SIGKILL, (suite.root / "waits").exists)
    assert ended.code == -signal.SIGKILL, ended.stderr
    until(lambda: not processes_mentioning(str(suite.trials)))


def go_on(suite: Project, forked: Forked, directory: Path, *options: str) -> Ended:
    (suite.root / "go").touch()
    return forked.call(suite, "run", "--resume", directory, *options)


def events(directory: Path, event: str) -> list[JournalEntry]:
    return [entry for entry in read_journal(directory).entries if entry.event == event]


def result_of(directory: Path) -> RunResult:
    return RunResult.model_validate_json((directory / "result.json").read_bytes())


class TestWhatIsLeft:
    def test_is_run_and_what_ended_is_not(self, suite: Project, forked: Forked, cut: Path) -> None:
        before = (cut / "a-ends/demo/with_skill/trial-1/attempt-1/result.json").stat()
        shutil.rmtree(suite.root / "user-home")
        done = go_on(suite, forked, cut)
        assert done.code == 0, done.stderr
        assert f"resuming {cut}: 1 of 3 trials had ended; 1 had begun and start anew" in done.stderr
        assert (cut / "a-ends/demo/with_skill/trial-1/attempt-1/result.json").stat() == before
        run = result_of(cut)
        assert (run.status, run.trials_planned, run.totals.passed) == ("finished", 3, 3)
        assert [result.case_id for result in run.case_results] == ["a-ends", "b-waits", "c-ends"]
        assert "3 passed; 3 of 3 valid trials passed" in done.stdout
        started = [(entry.trial or "").split("/")[0] for entry in events(cut, "attempt_started")]
        assert started == ["a-ends", "b-waits", "b-waits", "c-ends"]

    def test_begins_at_the_first_turn_and_the_torn_attempt_is_kept(
        self, suite: Project, forked: Forked, cut: Path
    ) -> None:
        torn = cut / "b-waits/demo/with_skill/trial-1/attempt-1"
        before = {path: path.read_bytes() for path in torn.rglob("*") if path.is_file()}
        assert torn / "turn-1/turn.json" in before
        assert go_on(suite, forked, cut).code == 0
        assert {path: path.read_bytes() for path in torn.rglob("*") if path.is_file()} == before
        found = next(result for result in result_of(cut).case_results if result.case_id == "b-waits")
        assert (found.attempts, found.turns, found.folder) == (1, 2, "b-waits/demo/with_skill/trial-1/attempt-2")
        (kept,) = found.torn_attempts
        assert (kept.attempt, kept.turns, kept.folder) == (1, 1, "b-waits/demo/with_skill/trial-1/attempt-1")
        saved = json.loads((torn / "turn-1/turn.json").read_bytes())
        assert kept.usage.input_tokens == saved["usage"]["input_tokens"] > 0
        assert result_of(cut).total_tokens is None, "what the torn turn took nobody knows"

    def test_is_nothing_when_the_run_is_finished(self, suite: Project, forked: Forked, cut: Path) -> None:
        go_on(suite, forked, cut)
        before = {path: path.read_bytes() for path in cut.rglob("*") if path.is_file()}
        again = go_on(suite, forked, cut)
        assert again.code == 0
        assert "3 of 3 trials had ended; nothing is left to run" in again.stderr
        assert "3 passed" in again.stdout
        assert {path: path.read_bytes() for path in cut.rglob("*") if path.is_file()} == before

    def test_is_judged_and_not_run_again_where_the_conversation_had_ended(
        self, suite: Project, forked: Forked, cut: Path
    ) -> None:
        go_on(suite, forked, cut)
        trial = cut / "c-ends/demo/with_skill/trial-1"
        for name in ("result.json", "attempt-1/result.json", "attempt-1/grading.json"):
            (trial / name).unlink()
        (cut / "result.json").unlink()
        assert go_on(suite, forked, cut).code == 0
        assert [path.name for path in trial.glob("attempt-*")] == ["attempt-1"]
        assert result_of(cut).totals.passed == 3
        assert len([entry for entry in events(cut, "attempt_started") if "c-ends" in (entry.trial or "")]) == 1

    def test_is_shown_by_a_dry_run(self, suite: Project, forked: Forked, cut: Path) -> None:
        done = forked.call(suite, "run", "--resume", cut, "--dry-run", "--json")
        assert [trial["case_id"] for trial in json.loads(done.stdout)["trials"]] == ["b-waits", "c-ends"]
        assert events(cut, "run_resumed") == []

    def test_is_not_begun_when_torn_attempts_have_taken_the_budget(self, suite: Project, forked: Forked) -> None:
        suite.write(
            "eval.yaml", "{schema_version: v1alpha1, budget: {max_tokens: 1}, cases: {files: [cases/b-*.yaml]}}"
        )
        directory = suite.root / "run"
        kill_when_it_waits(suite, forked, *RUN, "--output-dir", "run")
        done = go_on(suite, forked, directory)
        assert done.code == 3, done.stderr
        assert "stopped by max_tokens of the run: " in done.stderr
        assert [path.name for path in directory.glob("b-waits/demo/with_skill/trial-1/*")] == ["attempt-1"]
        assert forked.call(suite, "run", "--resume", directory, "--max-tokens", "99999").code == 0

    def test_counts_the_attempts_from_before(self, suite: Project, forked: Forked) -> None:
        """Two of three attempts were made when it was killed: one is left."""
        suite.write(
            "eval.yaml",
            """
            schema_version: v1alpha1
            cases: {files: [cases/d-*.yaml], retry_policy: {max_retries: 2, retry_on: [error]}}
            """,
        )
        suite.write("cases/d-breaks.yaml", BREAKS.replace("status: 401", "status: 503, times: 99"))
        directory = suite.root / "run"
        made = directory / "d-breaks/demo/with_skill/trial-1/attempt-2/result.json"
        forked.cut(suite, (*RUN, "--output-dir", "run"), signal.SIGKILL, made.exists)
        done = go_on(suite, forked, directory)
        assert done.code == 3, done.stderr
        found = result_of(directory).case_results[0]
        assert [tried.attempt for tried in found.attempt_results] == [1, 2, 3]
        assert [entry.attempt for entry in events(directory, "attempt_ended")] == [1, 2, 3]
        assert len(events(directory, "retry_wait")) >= 2


class TestWhatWouldBeRunNow:
    def change(self, suite: Project) -> None:
        suite.write("cases/c-ends.yaml", ENDS.replace("hello", "good day"))

    def test_must_be_what_it_was_begun_with(self, suite: Project, forked: Forked, cut: Path) -> None:
        self.change(suite)
        (suite.root / "cases/a-ends.yaml").unlink()
        suite.write("cases/d-more.yaml", ENDS)
        before = {path: path.read_bytes() for path in cut.rglob("*") if path.is_file()}
        done = go_on(suite, forked, cut)
        assert done.code == 2
        assert done.stderr.splitlines()[:6] == [
            f"{cut} cannot be resumed: what would be run now is not what it was begun with",
            "  cases.a-ends: is not there any more",
            "  cases.c-ends: was changed",
            "  cases.d-more: was not there",
            "  trials.a-ends/demo/with_skill/trial-1: is not there any more",
            "  trials.d-more/demo/with_skill/trial-1: was not there",
        ]
        assert "--resume-anyway" in done.stderr
        after = {path: path.read_bytes() for path in cut.rglob("*") if path.is_file()}
        assert {name: data for name, data in after.items() if before.get(name) != data} == {}

    def test_may_be_something_else_when_that_is_written_down(self, suite: Project, forked: Forked, cut: Path) -> None:
        self.change(suite)
        (suite.root / "cases/a-ends.yaml").unlink()
        suite.write("cases/d-more.yaml", ENDS)
        done = go_on(suite, forked, cut, "--resume-anyway")
        assert done.code == 0, done.stderr
        run = result_of(cut)
        assert [result.case_id for result in run.case_results] == ["a-ends", "b-waits", "c-ends", "d-more"]
        assert "cases.c-ends: was changed" in run.resumed_anyway
        assert RunManifest.model_validate_json((cut / "run.json").read_bytes()).resumed_anyway == run.resumed_anyway
        assert events(cut, "run_resumed")[0].differences == run.resumed_anyway
        assert "resumed anyway: cases.c-ends: was changed" in done.stdout
        assert "resumed anyway: cases.c-ends: was changed" in forked.call(suite, "report", cut).stdout

    def test_is_told_from_before_by_each_thing_that_counts(self, suite: Project, forked: Forked) -> None:
        suite.write("fixture/a.txt", "a")
        suite.write("skill/SKILL.md", "---\nname: s\ndescription: d\n---\n")
        suite.write("cli", "#!/bin/sh\necho 1.0 '(Claude Code)'\n").chmod(0o755)
        suite.write("agents/own.yaml", "{engine: claude_code, model: scripted, settings: {binary: ../cli}}")
        suite.write("agents/two.yaml", "{engine: builtin, model: scripted}")
        suite.write("cases/a-ends.yaml", ENDS.replace("input: {", "context: {repo_fixture: fixture}\n    input: {"))
        head = "schema_version: v1alpha1\nskills: [{path: skill}]\n"
        suite.write("eval.yaml", head + "name: eval\ncases: {files: [cases/b-*.yaml, cases/a-*.yaml]}")
        run = ("run", "eval.yaml", "--agent", "two", "--agent", "own", "--output-dir", "run")
        kill_when_it_waits(suite, forked, *run)
        suite.write("fixture/a.txt", "b")
        suite.write("skill/SKILL.md", "---\nname: s\ndescription: other\n---\n")
        suite.write("cli", "#!/bin/sh\necho 2.0 '(Claude Code)'\n")
        suite.write("agents/two.yaml", "{engine: builtin, model: scripted, limits: {turn_seconds: 9}}")
        policy = "retry_policy: {max_retries: 1, retry_on: [error]}"
        suite.write("eval.yaml", f"{head}name: eval\ncases: {{files: [cases/b-*.yaml, cases/a-*.yaml], {policy}}}")
        done = go_on(suite, forked, suite.root / "run")
        assert done.code == 2, done.stderr
        told = [line.strip() for line in done.stderr.splitlines() if line.startswith("  ")]
        for line in (
            "agents.two.limits.turn_seconds: was none, is 9.0",
            "agents.own.engine_version: was 1.0 (Claude Code), is 2.0 (Claude Code)",
            "skills.s: was changed",
            "files.fixture: was changed",
        ):
            assert line in told, done.stderr
        assert "suites.eval: was changed" in told, done.stderr
        assert not any(line.startswith(("cases.", "trials.")) for line in told), done.stderr

    def test_of_another_suite_is_refused(self, suite: Project, forked: Forked, cut: Path) -> None:
        suite.write("other/eval.yaml", "{schema_version: v1alpha1, name: other, cases: {files: [x.yaml]}}")
        suite.write("other/x.yaml", ENDS)
        done = forked.call(suite, "run", "other/eval.yaml", "--resume", cut)
        assert done.code == 2
        assert "  suites.other: was not there" in done.stderr
        assert "  cases.x: was not there" in done.stderr

    def test_is_found_where_the_run_was_started_or_where_it_is_said_to_be(
        self, suite: Project, forked: Forked, cut: Path
    ) -> None:
        """The folder that it was started in is the one that paths are taken from; if that is gone, PATH helps."""
        elsewhere = suite.root.parent / "elsewhere"
        elsewhere.mkdir()
        (suite.root / "go").touch()
        done = forked.call(suite, "run", "--resume", cut, "--dry-run", folder=elsewhere)
        assert done.code == 0, done.stderr
        manifest = json.loads((cut / "run.json").read_bytes())
        (cut / "run.json").write_text(json.dumps({**manifest, "cwd": "/nowhere"}))
        lost = forked.call(suite, "run", "--resume", cut, folder=elsewhere)
        assert lost.code == 2
        assert "the run was started in /nowhere, which cannot be entered: No such file or directory" in lost.stderr
        assert f"skillup run PATH --resume {cut}" in lost.stderr
        found = forked.call(suite, "run", "../project/eval.yaml", "--resume", cut, folder=elsewhere)
        assert found.code == 0, found.stderr

    @pytest.mark.parametrize(
        ("changes", "said"),
        [
            ({"cwd": ""}, "run/run.json does not say how the run was started"),
            ({"command": ["skillup", "judge", "x"]}, "run/run.json does not say how the run was started"),
            ({"command": ["skillup", "run", "--later"]}, "was started in a way that is not known: No such option"),
        ],
    )
    def test_has_to_be_known(
        self, suite: Project, forked: Forked, cut: Path, changes: dict[str, object], said: str
    ) -> None:
        manifest = json.loads((cut / "run.json").read_bytes())
        (cut / "run.json").write_text(json.dumps({**manifest, **changes}))
        done = forked.call(suite, "run", "--resume", cut)
        assert done.code == 2
        assert said in done.stderr
        assert "resume it by the version that began it, or begin a new run" in done.stderr


class TestOnlyStatus:
    def test_runs_a_part_of_a_finished_run_again_and_keeps_the_results(self, suite: Project, forked: Forked) -> None:
        """An error that became a pass is a pass; a failure that became one still counts as a failure."""
        flag = suite.root / "fixed"
        flaky = ENDS.replace("script: [{say: hi}]", "script: [{user: hello, replies: [%s, {say: '{{result}}'}]}]")
        call = f"{{calls: [{{tool: bash, args: {{command: 'test -e {flag} && echo hi || echo no'}}}}]}}"
        suite.write("cases/b-fails.yaml", flaky % call)
        suite.write("cases/b-waits.yaml", BREAKS)
        directory = suite.root / "run"
        first = forked.call(suite, *RUN, "--output-dir", "run")
        assert first.code == 3, first.stderr
        assert [one.status for one in result_of(directory).case_results] == ["PASS", "FAIL", "ERROR", "PASS"]
        flag.touch()
        (suite.root / "cases/b-waits.yaml").write_text((suite.root / "cases/b-waits.yaml").read_text())
        done = forked.call(suite, "run", "--resume", directory, "--only-status", "error,FAIL")
        assert "2 of 4 trials had ended; 2 are run once more" in done.stderr, done.stderr
        run = result_of(directory)
        fails, breaks = run.case_results[1:3]
        assert (fails.status, fails.best_of_n, fails.first_valid_status, fails.attempts) == ("PASS", 2, "FAIL", 2)
        assert (breaks.status, breaks.attempts) == ("ERROR", 2)
        assert (run.totals.passed, run.totals.passed_first, run.totals.errors) == (3, 2, 1)
        earlier = directory / "b-fails/demo/with_skill/trial-1/earlier/result-1.json"
        assert json.loads(earlier.read_bytes())["status"] == "FAIL"
        assert [entry.status for entry in events(directory, "trial_reopened")] == ["FAIL", "ERROR"]
        again = forked.call(suite, "judge", directory)
        assert (again.code, result_of(directory).case_results) == (3, run.case_results)

    def test_goes_on_when_it_was_cut(self, suite: Project, forked: Forked) -> None:
        """What was to be run once more is run by the next plain --resume, too."""
        directory = suite.root / "run"
        (suite.root / "go").touch()
        assert forked.call(suite, *RUN, "--output-dir", "run").code == 0
        (suite.root / "go").unlink()
        kill_when_it_waits(suite, forked, "run", "--resume", directory, "--only-status", "PASS")
        report = forked.call(suite, "report", directory, "--json")
        assert (json.loads(report.stdout)["status"], len(json.loads(report.stdout)["case_results"])) == ("running", 1)
        done = go_on(suite, forked, directory)
        assert "1 of 3 trials had ended; 2 had begun and start anew" in done.stderr
        assert [result.attempts for result in result_of(directory).case_results] == [2, 2, 2]

    @pytest.mark.parametrize(
        ("options", "said"),
        [
            (("--only-status", "FAIL"), "--only-status says nothing without --resume RUN"),
            (("--resume-anyway",), "--resume-anyway says nothing without --resume RUN"),
            (("--resume", "x", "--only-status", "FAILED"), "'FAILED' is no status; there are PASS, FAIL, ERROR"),
            (("--resume", "x", "--agent", "demo"), "--agent is decided by the run that is resumed"),
            (("--resume", "x", "--iteration", "2"), "--iteration is decided by the run that is resumed"),
        ],
    )
    def test_options_that_make_no_sense_are_refused(
        self, project: Project, forked: Forked, options: tuple[str, ...], said: str
    ) -> None:
        (project.root / "x").mkdir()
        done = forked.call(project, "run", *options)
        assert done.code == 2
        assert said in done.stderr
        assert list((project.root / "x").iterdir()) == []


def test_one_iteration_is_resumed_and_the_others_are_named(suite: Project, forked: Forked) -> None:
    kill_when_it_waits(suite, forked, *RUN, "--iteration", "3", "--output-dir", "base")
    refused = forked.call(suite, "run", "--resume", "base")
    assert refused.code == 2
    assert "base is not a run directory\nit holds several: name one of iteration-1" in refused.stderr
    done = go_on(suite, forked, suite.root / "base/iteration-1")
    assert done.code == 0, done.stderr
    assert "this is iteration 1 of 3, and no other is touched" in done.stderr
    assert [path.name for path in (suite.root / "base").iterdir()] == ["iteration-1"]


class TestTheLock:
    def test_of_a_living_run_keeps_others_out_and_names_it(self, suite: Project, forked: Forked) -> None:
        process = suite.start(*RUN, "--output-dir", "run")
        until((suite.root / "waits").exists)
        for command in (("run", "--resume", "run"), ("judge", "run"), ("report", "run", "--format", "junit")):
            done = forked.call(suite, *command)
            assert done.code == 2, done.stderr
            assert f"run is in use by process {process.pid} (skillup run, since 20" in done.stderr
        assert forked.call(suite, "report", "run").code == 0, "to read is always possible"
        (suite.root / "go").touch()
        assert suite.wait(process, suite.root / "run").code == 0
        assert forked.call(suite, "judge", "run").code == 0

    def test_of_a_dead_process_is_free(self, suite: Project, forked: Forked, cut: Path) -> None:
        """Also when its id belongs to a process that lives."""
        holder = json.loads((cut / ".skillup.holder").read_bytes())
        (cut / ".skillup.holder").write_text(json.dumps({**holder, "pid": os.getpid()}))
        assert go_on(suite, forked, cut).code == 0


class TestTheJournal:
    def test_says_what_happened_in_order(self, suite: Project, forked: Forked, cut: Path) -> None:
        assert go_on(suite, forked, cut).code == 0
        told = [
            ":".join(
                map(str, filter(None, ((entry.trial or "").split("/")[0], entry.event, entry.attempt, entry.turn)))
            )
            for entry in read_journal(cut).entries
        ]
        assert told == [
            "run_started",
            *(f"a-ends:{what}" for what in ("trial_started", "attempt_started:1", "turn_ended:1:1")),
            *(f"a-ends:{what}" for what in ("attempt_ended:1", "trial_ended")),
            *(f"b-waits:{what}" for what in ("trial_started", "attempt_started:1", "turn_ended:1:1")),
            "run_resumed",
            *(f"b-waits:{what}" for what in ("trial_started", "attempt_started:2", "turn_ended:2:1", "turn_ended:2:2")),
            *(f"b-waits:{what}" for what in ("attempt_ended:2", "trial_ended")),
            *(f"c-ends:{what}" for what in ("trial_started", "attempt_started:1", "turn_ended:1:1")),
            *(f"c-ends:{what}" for what in ("attempt_ended:1", "trial_ended")),
            "run_ended",
        ]

    def test_may_be_torn_at_its_end(self, suite: Project, forked: Forked, cut: Path) -> None:
        path = cut / "journal.jsonl"
        whole = path.read_bytes()
        path.write_bytes(whole + b'{"schema_version": "skillup/1", "time": "2026-1')
        number = whole.count(b"\n") + 1
        done = go_on(suite, forked, cut)
        assert done.code == 0, done.stderr
        assert f"warning: {path}:{number}: the last line was torn, and is left out" in done.stderr
        assert path.read_bytes().startswith(whole)
        assert events(cut, "run_resumed")[0].torn_bytes == 47

    @pytest.mark.parametrize(
        ("damage", "said"),
        [
            (b'{"schema_version": "skillup/1", "ti', "Invalid JSON"),
            (b"\xff\xfe\x00", "Invalid JSON"),
            (b"", "Invalid JSON"),
            (b'{"schema_version": "skillup/1", "time": "", "event": "gone"}', "event: "),
            (b'{"schema_version": "skillup/9", "time": "", "event": "run_ended"}', "schema_version: "),
        ],
    )
    def test_is_refused_with_damage_anywhere_else(
        self, suite: Project, forked: Forked, cut: Path, damage: bytes, said: str
    ) -> None:
        path = cut / "journal.jsonl"
        lines = path.read_bytes().split(b"\n")
        path.write_bytes(b"\n".join([*lines[:2], damage, *lines[3:]]))
        done = go_on(suite, forked, cut)
        assert done.code == 2
        assert done.stderr.startswith(f"{path}:3: the journal is damaged: {said}"), done.stderr
        assert "a crash tears the last line alone" in done.stderr

    def test_that_is_not_there_is_begun(self, suite: Project, forked: Forked, cut: Path) -> None:
        (cut / "journal.jsonl").unlink()
        assert go_on(suite, forked, cut).code == 0
        assert read_journal(cut).entries[0].event == "run_resumed"


def test_what_is_no_run_directory_is_named_and_left_alone(project: Project, forked: Forked) -> None:
    (project.root / "empty").mkdir()
    for name in ("empty", "missing"):
        done = forked.call(project, "run", "--resume", name)
        assert done.code == 2
        assert f"{name} is not a run directory" in done.stderr
    assert list((project.root / "empty").iterdir()) == []


def test_what_a_killed_run_left_is_listed_and_then_ended(suite: Project, forked: Forked) -> None:
    """Skillup and everything that owns its processes are killed: a daemon without a name or a folder is left."""
    mark = f"left-by.{os.getpid()}"
    odd = '"\x1b[2J sk-ant-0123456789abcdef0123"'
    command = f"tail -f /dev/null {mark}"
    daemon = f"env -i setsid -f sh -c 'trap \"\" TERM; cd /; exec {command} {odd}' > /dev/null 2>&1 < /dev/null"
    (suite.root / "wait.sh").write_text(
        f"[ -e {suite.root}/waits ] || {daemon}; {(suite.root / 'wait.sh').read_text()}"
    )
    pid = forked.start(suite, *RUN, "--output-dir", "run")
    until((suite.root / "waits").exists)
    kill_with_its_owners(pid)
    assert forked.wait().code == -signal.SIGKILL
    (alive,) = processes_mentioning(f"null\0{mark}")
    stranger = suite.start("run", "cases/a-ends.yaml", "--agent", "demo", "--output-dir", "other")
    assert suite.wait(stranger, suite.root / "other").code == 0, "another run ends nothing of this one"
    number = alive.partition(":")[0]
    told = forked.call(suite, "doctor").stdout
    assert f"process {number} of the run that died as process {pid}: {command} [2J {MASK}\n" in told
    before = time.monotonic()
    (suite.root / "go").touch()
    forked.start(suite, "run", "--resume", "run")
    until(lambda: not processes_mentioning(mark))
    assert time.monotonic() - before < 5
    done = forked.wait()
    assert done.code == 0, done.stderr
    assert f"warning: process {number} of the run that died ({command} [2J {MASK}) was ended" in done.stderr
    assert f"process {number}" not in forked.call(suite, "doctor").stdout


def test_a_trial_root_that_a_killed_run_left_is_listed(suite: Project, forked: Forked, cut: Path) -> None:
    (root,) = [path for path in suite.trials.iterdir() if path.is_dir() and not path.suffix]
    assert f"{root}, of a run that died; the next run removes it" in forked.call(suite, "doctor").stdout
    assert go_on(suite, forked, cut).code == 0
    assert not root.exists()


def kill_with_its_owners(pid: int) -> None:
    """SIGKILL to a run, and before it can notice, to all processes that own what it started."""
    below = [pid]
    for one in below:
        below += children(one)
    owners = [one for one in below if Path(f"/proc/{one}/comm").read_text().strip() == "skillup-owner"]
    assert len(owners) > 1
    for one in (pid, *owners):  # all stand still before the first of them dies
        os.kill(one, signal.SIGSTOP)
    for one in (*owners, pid):
        os.kill(one, signal.SIGKILL)


def children(pid: int) -> list[int]:
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        found += map(int, (task / "children").read_text().split())
    return found


def until(seen: Callable[[], object], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not seen():
        assert time.monotonic() < end, "it was never seen"
        time.sleep(0.02)
