"""Planned faults on the real Codex: each an ERROR of its kind, within a bound that is ours."""

from __future__ import annotations

import socket

import pytest

from tests.support import Project

CASE = """
    input: {{turns: [{{role: user, content: go, timeout_seconds: {limit}}}]}}
    judge: {{type: rule_based, success: [{{output_contains: {{all: [fine]}}}}]}}
    script:
      - user: go
        replies: {replies}
        faults: {faults}
"""

FAULTS = {
    "status-401": ("[{status: 401}]", "ERROR auth"),
    "status-429": ("[{status: 429}]", "ERROR rate_limit"),
    "status-429-later": ("[{status: 429, retry_after: 1}]", "ERROR rate_limit"),
    "status-500": ("[{status: 500}]", "ERROR overloaded"),
    "status-529": ("[{status: 529}]", "ERROR overloaded"),
    "status-400": ("[{status: 400}]", "ERROR request"),
    "status-404": ("[{status: 404}]", "ERROR request"),
    "dropped-always": ("[{drop: true}]", "ERROR network"),
    "dropped-once": ("[{drop: true, times: 1}]", "PASS all_met"),
    "late": ("[{status: 429, times: 1, retry_after: 1}]", "PASS all_met"),
    "stalled": ("[{stall: true}]", "ERROR timeout"),
}


def test_every_planned_fault_has_its_kind(claude: Project) -> None:
    claude.write("agents/quick.yaml", "engine: codex\nmodel: scripted\nsettings: {max_retries: 1}\n")
    for name, (faults, _) in FAULTS.items():
        limit = 5 if name == "stalled" else 60
        claude.write(f"cases/{name}.yaml", CASE.format(limit=limit, replies="[{say: fine}]", faults=faults))
    done = claude.run("cases", "--agent", "quick", "--parallelism", "4")
    found = {name: f"{done.trial(name).status} {done.trial(name).grading.code}" for name in FAULTS}
    assert found == {name: outcome for name, (_, outcome) in FAULTS.items()}
    for name in ("dropped-once", "late"):
        (turn,) = done.trial(name).turn_results
        assert any(note.startswith("retried: ") for note in turn.notes), "a retry must be marked"


def test_a_provider_that_refuses_the_connection_is_given_up_after_our_patience(claude: Project) -> None:
    """The CLI itself would reconnect for ever."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: every connection is refused
        address = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
        claude.write(
            "agents/away.yaml",
            f"""
            engine: codex
            model: {{name: gpt-5.5, base_url: "{address}"}}
            env: {{CODEX_API_KEY: "${{DUMMY_KEY}}"}}
            settings: {{max_retries: 1, patience_seconds: 3}}
            """,
        )
        claude.write("one.yaml", CASE.format(limit=100, replies="[{say: fine}]", faults="[]"))
        done = claude.run("one.yaml", "--agent", "away", env={"DUMMY_KEY": "dummy-value-of-no-use"}, seconds=40)
    trial = done.trial()
    assert (trial.status, trial.grading.code) == ("ERROR", "network")
    assert trial.duration_ms < 20_000


@pytest.mark.parametrize("limit", [3])
def test_a_turn_that_is_cut_while_a_command_runs_is_the_agents_failure(claude: Project, limit: int) -> None:
    replies = '[{calls: [{tool: bash, args: {command: "touch begun; sleep 731"}}]}, {say: fine}]'
    claude.write("slow.yaml", CASE.format(limit=limit, replies=replies, faults="[]"))
    done = claude.run("slow.yaml", "--agent", "codex", "--model", "scripted", "-v")
    trial = done.trial()
    assert (trial.status, trial.grading.code) == ("FAIL", "limit/turn_seconds"), done.stdout
    assert trial.turn_results[0].workspace is not None
    assert trial.turn_results[0].workspace.created == ("begun",)


def test_calls_that_the_stream_hides_are_found_in_the_file_of_the_thread(claude: Project) -> None:
    claude.write(
        "hidden.yaml",
        """
        input: {prompt: go}
        judge: {type: rule_based, success: [{tool_called: {name: edit, args: {path: nowhere.txt}, status: error}}]}
        script:
          - replies:
              - calls: [{tool: edit, args: {path: nowhere.txt, old: a, new: b}}]
              - say: it failed
        """,
    )
    done = claude.run("hidden.yaml", "--agent", "codex", "--model", "scripted", "-v")
    assert done.trial().status == "PASS", done.stdout


def test_a_rule_on_a_tool_that_the_stream_cannot_show_is_never_a_pass(claude: Project) -> None:
    judge = "{{type: rule_based, success: [{{{rule}: {{name: grep}}}}]}}"
    for rule in ("tool_called", "tool_not_called"):
        text = "input: {prompt: go}\njudge: " + judge.format(rule=rule) + "\nscript: [{say: fine}]\n"
        claude.write(f"cases/{rule}.yaml", text)
    done = claude.run("cases", "--agent", "codex", "--model", "scripted")
    assert done.code == 3
    for rule in ("tool_called", "tool_not_called"):
        assert (done.trial(rule).status, done.trial(rule).grading.code) == ("ERROR", "unobservable")
