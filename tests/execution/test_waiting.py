"""A provider that is too busy is left alone by all trials that have not begun; what it costs is told.

The provider here is a server of the tests, for all trials of a run, as a real one is; the agent that asks it is the
built-in one, as a real process.
"""

from __future__ import annotations

import re
import signal
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from skillup.engines.events import EngineFault
from skillup.errors import ErrorKind
from skillup.execution.waiting import Paused, Pools, pool_of
from skillup.results import Failure
from skillup.spec.agent import Agent, Limits, ModelChoice
from tests.builtin_agent.model import Answer, Model, Request, refuse, say, until
from tests.support import Project

KEY = "dummy-value-of-no-use"

CASE = "{input: {prompt: go}, expect: {must_contain: [done]}}"

TOGETHER = 4


def write(project: Project, model: Model, cases: int, *agents: str, max_retries: int = 0) -> list[str]:
    """So many cases, and agents that ask the provider, each with a key of its own and retries of its CLI's own."""
    for name in agents:
        project.write(
            f"agents/{name}.yaml",
            f"""
            engine: builtin
            model: {{name: any, base_url: "{model.url}"}}
            env: {{ANTHROPIC_API_KEY: "${{{name.upper()}_KEY}}"}}
            settings: {{max_retries: {max_retries}}}
            """,
        )
        project.variables[f"{name.upper()}_KEY"] = f"{KEY}-{name}"
    for number in range(cases):
        project.write(f"cases/{number}.yaml", CASE)
    return ["cases", *(part for name in agents for part in ("--agent", name))]


class Provider:
    """Refuses one request, once all of the first wave have come, and answers every other.

    Those of the first wave are answered when `noticed` says that the refused trial has ended.
    """

    def __init__(self, refusal: Answer, together: int, noticed: Callable[[], bool]) -> None:
        self._barrier = threading.Barrier(together)
        self._refusal = refusal
        self._noticed = noticed
        self._lock = threading.Lock()
        self._begun = 0
        self.refused_at = 0.0

    def answer(self, _: Request) -> Answer:
        with self._lock:
            self._begun += 1
            number = self._begun
        if number <= self._barrier.parties:
            self._barrier.wait(60)
        if number == 1:
            self.refused_at = time.monotonic()
            return self._refusal
        if number <= self._barrier.parties:
            until(self._noticed, "the refused trial's end", 60)
        return say("done")


def ended(project: Project) -> list[Path]:
    """The attempts of the project's runs that have ended."""
    return list(project.root.glob("*/*/*/with_skill/trial-1/attempt-*/result.json"))


def test_a_limit_of_one_trial_keeps_the_others_from_starting_and_costs_none_of_them(project: Project) -> None:
    provider = Provider(refuse(429, retry_after="2"), TOGETHER, lambda: bool(ended(project)))
    with Model(provider.answer) as model:
        arguments = write(project, model, 8, "limited")
        done = project.run(*arguments, "--parallelism", str(TOGETHER), "--retries", "2")
        assert done.code == 0, done.stdout + done.stderr
    times = [received.time - provider.refused_at for received in model.received]
    assert len(times) == 9
    assert [seconds for seconds in times if 0 < seconds < 1.9] == []
    assert max(times) > 1.9
    assert [trial.status for trial in done.run.case_results] == ["PASS"] * 8
    (again,) = (trial for trial in done.run.case_results if trial.attempts > 1)
    first, second = again.attempt_results
    assert (first.status, first.code, second.status) == ("ERROR", "rate_limit", "PASS")
    assert (first.waited_ms, second.waited_ms >= 2000) == (0, True)
    assert len(re.findall(r"^paused until \d\d:\d\d:\d\d: rate_limit on limited; ", done.stderr, re.MULTILINE)) == 1
    costs = done.run.totals.retries
    assert (costs.trials, costs.attempts, costs.total_tokens, costs.cost_usd) == (1, 1, None, None)
    assert (costs.waited_ms, costs.duration_ms) == (second.waited_ms, first.duration_ms)
    assert done.run.totals_by_agent[0].totals.retries == costs
    told = f"tried again: 1 trial; given up for it: 1 attempt, {costs.duration_ms / 1000:.1f} s and "
    assert f"{told}{costs.waited_ms / 1000:.1f} s of waiting, tokens unknown, cost unknown" in done.stdout
    before = (done.directory / "result.json").read_bytes()
    assert project.call("judge", done.directory).code == 0
    assert (done.directory / "result.json").read_bytes() == before


def test_a_limit_that_the_cli_waits_for_itself_keeps_the_others_from_starting_too(project: Project) -> None:
    """It says so while its turn runs; the others of its wave end meanwhile."""
    asked: list[float] = []

    def answer(_: Request) -> Answer:
        asked.append(time.monotonic())
        return refuse(429, retry_after="4") if len(asked) == 1 else say("done", silent_seconds=1.0)

    with Model(answer) as model:
        arguments = write(project, model, 4, "limited", max_retries=1)
        done = project.run(*arguments, "--parallelism", "2")
    assert [trial.status for trial in done.run.case_results] == ["PASS"] * 4
    assert {trial.attempts for trial in done.run.case_results} == {1}
    assert len(asked) == 5
    refused, second, *later = asked
    assert second - refused < 3, "it had begun with the first"
    assert min(later) - refused > 3.9
    assert done.stderr.count("paused until") == 1
    assert done.run.totals.retries.attempts == 0


def test_without_retries_the_others_wait_all_the_same_and_other_accounts_do_not(project: Project) -> None:
    provider = Provider(refuse(529, retry_after="2"), 1, lambda: True)
    with Model(provider.answer) as model:
        arguments = write(project, model, 2, "limited", "other")
        done = project.run(*arguments, "--parallelism", "1")
    asked = [received.headers["x-api-key"].removeprefix(f"{KEY}-") for received in model.received]
    assert asked == ["limited", "other", "other", "limited"]
    assert model.received[-1].time - provider.refused_at > 1.9
    ended = {(trial.agent.name, trial.case_id): trial.grading.code for trial in done.run.case_results}
    assert ended.pop(("limited", "0")) == "overloaded"
    assert set(ended.values()) == {"all_met"}
    assert "tried again" not in done.stdout


def test_a_limit_that_ends_in_hours_is_told_and_not_waited_for(project: Project) -> None:
    provider = Provider(refuse(429, retry_after="7200"), 1, lambda: True)
    with Model(provider.answer) as model:
        arguments = write(project, model, 2, "limited", "other")
        done = project.run(*arguments, "--retries", "3", "--parallelism", "1", seconds=60)
    asked = [received.headers["x-api-key"].removeprefix(f"{KEY}-") for received in model.received]
    assert asked == ["limited", "other", "other"], "it keeps no other account waiting"
    assert "paused" not in done.stderr
    assert (done.code, done.run.status, len(done.run.case_results)) == (3, "stopped", 3)
    assert re.fullmatch(r"rate_limit on limited until \d{4}-\d\d-\d\d \d\d:\d\d", done.run.stopped_by)
    assert f"stopped by {done.run.stopped_by}; 1 of 4 trials were not run" in done.stderr
    assert f"`skillup run --resume {done.directory}` goes on then" in done.stderr
    (error,) = (trial.error for trial in done.run.case_results if trial.error is not None)
    assert (error.kind, error.retry_after) == ("rate_limit", 7200.0)
    when = re.search(r"it asks to wait 7200 s, until (.*) UTC$", error.message)
    assert when is not None
    until_then = datetime.strptime(when[1], "%Y-%m-%d %H:%M").replace(tzinfo=UTC) - datetime.now(UTC)
    assert timedelta(minutes=115) < until_then < timedelta(minutes=121)


def test_a_cli_that_says_it_waits_longer_than_its_turn_may_is_not_waited_for(project: Project) -> None:
    with Model(lambda _: refuse(429, retry_after="3600")) as model:
        arguments = write(project, model, 1, "limited", max_retries=1)
        project.write(
            "cases/0.yaml", CASE.replace("prompt: go", "turns: [{role: user, content: go, timeout_seconds: 29}]")
        )
        begun = time.monotonic()
        done = project.run(*arguments)
    assert time.monotonic() - begun < 25, "the agent itself waits 30 s"
    error = done.trial().error
    assert error is not None
    assert (error.kind, error.retry_after) == ("rate_limit", 3600.0)
    said = "turn 1 reached turn_seconds (29 s: the CLI had said that it waits longer); "
    assert error.message.startswith(f"{said}input.turns[0].timeout_seconds raises it; the CLI was retrying: ")
    assert "; it asks to wait 3600 s, until " in error.message


def test_a_wait_ends_with_the_seconds_of_the_run(project: Project) -> None:
    with Model(lambda _: refuse(429, retry_after="300")) as model:
        arguments = write(project, model, 2, "limited")
        done = project.run(*arguments, "--retries", "1", "--max-seconds", "3", seconds=60)
    assert done.code == 3
    assert len(model.received) == 1
    assert done.run.case_results == (), "the attempt that was waited for is still to be made"
    assert "stopped by max_seconds of the run: " in done.stderr


def test_an_interruption_ends_a_wait_at_once(project: Project) -> None:
    with Model(lambda _: refuse(429, retry_after="300")) as model:
        arguments = write(project, model, 2, "limited")
        directory = project.root / "stopped"
        process = project.start("run", *arguments, "--retries", "1", "--parallelism", "2", "--output-dir", directory)
        until(lambda: len(ended(project)) == 2, "two ends", 60)
        time.sleep(0.3)
        begun = time.monotonic()
        process.send_signal(signal.SIGINT)
        done = project.wait(process, directory)
    assert time.monotonic() - begun < 5
    assert done.code == 130
    assert "paused until" in done.stderr
    assert len(model.received) == 2


# The parts.


def agent(key: str = KEY, *, address: str | None = None, engine: str = "builtin", scripted: bool = False) -> Agent:
    """An agent with nothing in it but where it asks, and as whom."""
    return Agent(
        name=engine,
        engine=engine,
        model=ModelChoice(name="scripted" if scripted else "m", base_url=address),
        settings={},
        env={"ANTHROPIC_API_KEY": key} if key else {},
        secrets=(),
        missing=(),
        login="none",
        permissions="full",
        limits=Limits(),
        source="",
        shared_home=None if key else Path("/home/somebody/.claude"),
    )


def failure(kind: ErrorKind, retry_after: float | None = None) -> Failure:
    """A fault with nothing in it but what is waited for."""
    return Failure(kind=kind, phase="conversation", message="no", retry_after=retry_after)


def test_a_pool_is_an_account_at_an_address_whatever_engine_asks() -> None:
    assert pool_of(agent()) == pool_of(agent(engine="claude_code"))
    assert pool_of(agent()) != pool_of(agent("another"))
    assert pool_of(agent()) != pool_of(agent(address="https://gateway.example"))
    assert pool_of(agent("", engine="claude_code")) == pool_of(agent("", engine="claude_code"))
    assert pool_of(agent("", engine="claude_code")) != pool_of(agent("", engine="builtin"))
    assert pool_of(agent(scripted=True)) is None


class TestPools:
    def test_failures_of_one_wave_are_one_and_each_further_one_doubles_the_pause(self) -> None:
        told: list[Paused] = []
        pools = Pools(told.append)
        for _ in range(3):
            pools.heard(agent(), failure("overloaded"))
        assert 0.5 < pools.seconds_left(agent()) <= 1.0
        time.sleep(1.1)
        assert pools.seconds_left(agent()) == 0.0
        pools.heard(agent(), failure("rate_limit"))
        assert 1.5 < pools.seconds_left(agent()) <= 2.0
        assert told[-1].kind == "rate_limit"
        assert told[-1].until > datetime.now().astimezone()

    def test_an_answer_ends_the_row_of_failures_but_no_pause(self) -> None:
        pools = Pools(lambda _: None)
        pools.heard(agent(), failure("rate_limit", 30.0))
        pools.heard(agent(), None)
        assert 29 < pools.seconds_left(agent()) <= 30
        for shorter in (10.0, None):
            pools.heard(agent(), failure("rate_limit", shorter))
            assert pools.seconds_left(agent()) > 29, "a shorter pause shortens none"

    def test_what_a_cli_meets_while_it_runs_counts_at_once_and_is_told_once(self) -> None:
        told: list[Paused] = []
        pools = Pools(told.append)
        for _ in range(3):
            pools.warned(agent(), EngineFault("rate_limit", "429", retry_after=20.0))
        pools.warned(agent(), EngineFault("network", "reset", retry_after=90.0))
        assert 19 < pools.seconds_left(agent()) <= 20
        pools.warned(agent(), EngineFault("rate_limit", "limit", resets_at=time.time() + 60))
        assert 58 < pools.seconds_left(agent()) <= 60
        assert len(told) == 2

    def test_a_fault_of_the_same_wave_after_an_answer_is_the_first_of_a_new_row(self) -> None:
        pools = Pools(lambda _: None)
        pools.heard(agent(), failure("rate_limit", 30.0))
        pools.heard(agent(), None)
        pools.heard(agent(), failure("overloaded"))
        assert 29 < pools.seconds_left(agent()) <= 30

    @pytest.mark.parametrize("kind", ["network", "quota", "auth", "crash", "timeout", "internal"])
    def test_other_faults_pause_nobody(self, kind: ErrorKind) -> None:
        pools = Pools(lambda _: None)
        pools.heard(agent(), failure(kind, 30.0))
        assert pools.seconds_left(agent()) == 0.0

    def test_neither_does_a_scripted_model_or_a_limit_that_ends_in_hours(self) -> None:
        pools = Pools(lambda _: None)
        pools.heard(agent(scripted=True), failure("rate_limit", 30.0))
        pools.heard(agent(), failure("rate_limit", 3600.0))
        assert (pools.seconds_left(agent(scripted=True)), pools.seconds_left(agent())) == (0.0, 0.0)

    def test_a_limit_that_ends_in_hours_closes_one_account_for_the_run(self) -> None:
        pools = Pools(lambda _: None)
        pools.heard(agent(scripted=True), failure("rate_limit", 3600.0))
        pools.heard(agent(), failure("overloaded", 600.0))
        assert pools.closed == ""
        pools.heard(agent(), failure("rate_limit", 3600.0))
        assert (pools.is_closed(agent()), pools.is_closed(agent("another"))) == (True, False)
        assert not pools.is_closed(agent(scripted=True))
        assert pools.closed.startswith("rate_limit on builtin until 20")
