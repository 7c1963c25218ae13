"""How a turn ends when its CLI does not: it is stuck, it does not exit, or somebody holds on to its output."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from skillup.environments.process import Command, Nursery
from skillup.execution.turn import owned
from skillup.results import TrialResult
from tests.fake_claude import fake_claude
from tests.support import Project, processes_mentioning

TWO_TURNS = """
    input: {turns: [{role: user, content: one}, {role: user, content: two}]}
    judge:
      type: rule_based
      success: [{output_contains: {all: [done one], turn: 1}}, {output_contains: {all: [done two]}}]
    script: [{say: nothing}]
"""

STAYING = {
    "stays": """
        say(result("done " + PROMPT))
        time.sleep(600)
    """,
    "talks-when-interrupted": """
        signal.signal(signal.SIGINT, lambda *_: (say(result("something else")), sys.exit(1)))
        say(result("done " + PROMPT))
        time.sleep(600)
    """,
}
"""CLIs that answer and do not exit."""


def test_a_cli_that_answers_and_does_not_exit_is_ended_and_its_answer_judged(project: Project) -> None:
    project.write("case.yaml", TWO_TURNS)
    agents = []
    for name, body in STAYING.items():
        agents += ["--agent", fake_claude(project, name, body, "limits: {exit_seconds: 0.5}\n")]
    done = project.run("case.yaml", *agents, "--parallelism", "3")
    assert done.code == 0, done.stdout
    for name in STAYING:
        turns = done.trial(agent=name).turn_results
        assert [turn.response for turn in turns] == ["done one", "done two"]
        late = "late_exit: the CLI had answered, but did not exit in time, and was ended"
        assert [turn.notes for turn in turns] == [(late,), (late,)]
        assert all(turn.duration_ms < 500 + 1500 for turn in turns), "the time after the answer is not the agent's"


def test_whoever_holds_on_to_the_output_of_a_cli_that_has_exited_keeps_nobody_waiting(project: Project) -> None:
    project.write("case.yaml", WATCHED_CASE)
    body = "subprocess.Popen(['sleep', '4871'], start_new_session=True)\nsay(result('done'))"
    done = project.run("case.yaml", "--agent", fake_claude(project, "leaves", body))
    assert outcome_of(done.trial()) == "PASS all_met"
    (turn,) = done.trial().turn_results
    assert [line.partition(": ")[2] for line in turn.unfinished_background] == ["sleep 4871"]
    assert turn.duration_ms < 10_000


WATCHED = {
    "stuck": (
        "say(assistant(text('hm')))\ntime.sleep(600)",
        "ERROR timeout",
        "reached idle_seconds (2 s); limits.idle_seconds of the agent raises it; the agent showed no sign of work: the",
    ),
    "retrying": (
        """
        say({"type": "system", "subtype": "api_retry", "attempt": 1, "error": "rate_limit", "error_status": 429})
        time.sleep(600)
        """,
        "ERROR rate_limit",
        "the CLI was retrying: the provider answered 429",
    ),
    "runs-a-tool": (
        "say(assistant(call('make')))\ntime.sleep(4)\nsay(returned('made'))\nsay(result('done'))",
        "PASS all_met",
        "",
    ),
    "writes-its-session": (
        """
        place = os.path.join(os.environ["CLAUDE_CONFIG_DIR"], "projects", "somewhere")
        os.makedirs(place)
        for number in range(14):
            time.sleep(0.3)
            with open(os.path.join(place, SESSION + ".jsonl"), "a") as file:
                file.write("{}\\n")
        say(result("done"))
        """,
        "PASS all_met",
        "",
    ),
}
"""What a CLI does, the outcome, and a part of the reason."""

WATCHED_CASE = """
    input: {prompt: hello}
    judge: {type: rule_based, success: [{output_contains: {all: [done]}}]}
    script: [{say: nothing}]
"""

AT_THE_MODEL = {
    "silent": "[{say: done, faults: [{stall: true}]}]",
    "slow": "[{say: one two three four five six seven eight done, faults: [{slow: 0.7}]}]",
}
"""What the loopback model sends to the built-in agent, which shows no reply before it is whole."""


def test_a_cli_without_any_sign_of_life_is_ended_and_one_that_works_is_not(project: Project) -> None:
    limits = "limits: {idle_seconds: 2}\n"
    project.write("cases/watched.yaml", WATCHED_CASE)
    agents = []
    for name, (body, _, _) in WATCHED.items():
        agents += ["--agent", fake_claude(project, name, body, limits)]
    done = project.run("cases", *agents, "--parallelism", "4")
    for name, (_, outcome, reason) in WATCHED.items():
        trial = done.trial(agent=name)
        assert (name, outcome_of(trial)) == (name, outcome)
        assert reason in trial.grading.reason
    assert processes_mentioning(str(project.trials)) == []


def test_what_the_loopback_model_sees_tells_a_silent_model_from_a_slow_one(project: Project) -> None:
    project.write("agents/small.yaml", "engine: builtin\nmodel: scripted\nlimits: {idle_seconds: 2}\n")
    for name, script in AT_THE_MODEL.items():
        project.write(f"cases/{name}.yaml", WATCHED_CASE.replace("[{say: nothing}]", script))
    done = project.run("cases", "--agent", "small", "--parallelism", "2")
    assert outcome_of(done.trial("slow")) == "PASS all_met"
    assert done.trial("slow").duration_ms > 3000
    assert outcome_of(done.trial("silent")) == "ERROR timeout"
    assert "the model was silent: a request had been open for " in done.trial("silent").grading.reason


def test_on_limit_decides_about_a_cli_that_is_stuck_as_about_every_limit(project: Project) -> None:
    judged = WATCHED_CASE + "    constraints: {on_limit: judge}\n"
    project.write("case.yaml", judged.replace("output_contains: {all: [done]}", "tool_called: bash"))
    body = "say(assistant(call('ls')))\nsay(returned('a.txt'))\ntime.sleep(600)"
    done = project.run("case.yaml", "--agent", fake_claude(project, "stuck", body, "limits: {idle_seconds: 1}\n"))
    assert outcome_of(done.trial()) == "PASS all_met"
    assert done.trial().turn_results[0].status == "timed_out"


def outcome_of(trial: TrialResult) -> str:
    """Status and code."""
    return f"{trial.grading.status} {trial.grading.code}"


def test_whatever_goes_wrong_on_our_side_the_cli_does_not_outlive_the_turn(tmp_path: Path) -> None:
    """A fault of the machine or of ours while its output is read must not leave it at work, beside a retry at last."""
    with Nursery() as nursery:
        command = Command(("/bin/sleep", "600"), {}, tmp_path)
        running = nursery.start(command, stdout=tmp_path / "out", stderr=tmp_path / "err", deadline_seconds=None)
        with pytest.raises(OSError, match="too many"), owned(running):
            raise OSError("too many open files")
        ended = running.wait(0)
    assert ended is not None
    assert ended.signal == signal.SIGKILL
