"""`requires`: what an agent has not makes the trial SKIP, for that agent alone, and nothing of it is started."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from skillup.engines.builtin import Builtin
from skillup.engines.codex import Codex
from skillup.execution.requirements import unmet
from skillup.spec.requires import Requires
from tests.support import Project

CASE = """
    input: {{prompt: hi}}
    expect: {{must_contain: [hello]}}
    script: [{{say: hello}}]
    requires: {requires}
    """
SUITE = "schema_version: v1alpha1\nengine: {name: builtin, model: scripted}\ncases: {files: ['cases/*.yaml']}\n"
BOTH = ("--agent", "builtin", "--agent", "codex")


@pytest.mark.parametrize(
    ("requires", "said"),
    [
        ({"engines": ["builtin", "codex"]}, ""),
        ({"engines": ["claude_code", "codex"]}, "the engine is builtin, not claude_code or codex"),
        ({"tools": ["read", "bash"]}, ""),
        ({"tools": ["read", "skill"]}, "builtin cannot show calls of skill"),
        ({"commands": ["tool"]}, ""),
        ({"commands": ["tool", "absent", "plain"]}, "absent, plain are not on the PATH"),
        ({"commands": ["plain"]}, "plain is not on the PATH"),
        ({"resume": True}, ""),
        (
            {"engines": ["codex"], "tools": ["skill"], "commands": ["absent"], "resume": True},
            "the engine is builtin, not codex; builtin cannot show calls of skill; absent is not on the PATH",
        ),
    ],
)
def test_each_requirement_met_and_unmet(tmp_path: Path, requires: dict[str, object], said: str) -> None:
    (tmp_path / "tool").write_text("#!/bin/sh\n")
    (tmp_path / "tool").chmod(0o755)
    (tmp_path / "plain").write_text("cannot be executed")
    wanted = f"`requires` is not met: {said}" if said else ""
    assert unmet(Requires.model_validate(requires), Builtin(), str(tmp_path), resumes=True) == wanted


def test_an_engine_that_cannot_resume_does_not_meet_resume() -> None:
    requires = Requires(resume=True)
    assert unmet(requires, Builtin(), "", resumes=False) == "`requires` is not met: builtin cannot resume a session"
    assert unmet(None, Builtin(), "", resumes=False) == ""
    assert unmet(Requires(commands=("sh",), resume=False), Codex(), "/bin", resumes=True) == ""


def test_an_agent_that_does_not_meet_it_is_skipped_and_the_others_run(project: Project) -> None:
    """Codex is not installed here: what is skipped needs no binary, what is not skipped is ERROR."""
    for name, requires in {
        "any": "{resume: true}",
        "codex-only": "{engines: [codex]}",
        "builtin-only": "{engines: [builtin]}",
        "reads": "{tools: [read]}",
        "nobody": "{commands: [no-such-command]}",
    }.items():
        project.write(f"cases/{name}.yaml", CASE.format(requires=requires))
    done = project.run("cases", *BOTH, "--model", "scripted")
    found = {(r.case_id, r.agent.name): f"{r.status} {r.grading.code}" for r in done.run.case_results}
    assert found == {
        ("any", "builtin"): "PASS all_met",
        ("any", "codex"): "ERROR engine_missing",
        ("codex-only", "builtin"): "SKIP requires",
        ("codex-only", "codex"): "ERROR engine_missing",
        ("builtin-only", "builtin"): "PASS all_met",
        ("builtin-only", "codex"): "SKIP requires",
        ("reads", "builtin"): "PASS all_met",
        ("reads", "codex"): "SKIP requires",
        ("nobody", "builtin"): "SKIP requires",
        ("nobody", "codex"): "SKIP requires",
    }
    assert done.code == 3
    assert "`requires` is not met: the engine is codex, not builtin" in done.stdout
    assert "`requires` is not met: codex cannot show calls of read" in done.stdout
    assert "SKIP       the agent has not what the case requires; nothing was run" in done.stdout
    assert "the conversation was meant to stop early" not in done.stdout


def test_on_the_real_clis_each_case_runs_where_it_is_meant_to(claude: Project) -> None:
    requires = {
        "all": "{engines: [builtin, claude_code, codex], tools: [bash], resume: true}",
        "reads": "{tools: [read, bash]}",
        "skills": "{tools: [skill]}",
        "claude-only": "{engines: [claude_code]}",
        "other-two": "{engines: [codex, builtin], commands: [sh]}",
    }
    for name, text in requires.items():
        claude.write(f"cases/{name}.yaml", CASE.format(requires=text))
    claude.write(
        "eval.yaml",
        """
        schema_version: v1alpha1
        agents: [builtin, claude_code, codex]
        engine: {name: builtin, model: scripted}
        cases: {files: ["cases/*.yaml"], parallelism: 3}
        """,
    )
    done = claude.run()
    assert done.code == 0, done.stdout
    ran = {(r.case_id, r.agent.name) for r in done.run.case_results if r.status == "PASS"}
    assert ran == {
        *(("all", name) for name in ("builtin", "claude_code", "codex")),
        *(("reads", name) for name in ("builtin", "claude_code")),
        ("skills", "claude_code"),
        ("claude-only", "claude_code"),
        *(("other-two", name) for name in ("builtin", "codex")),
    }
    skipped = {(r.case_id, r.agent.name): r.grading.code for r in done.run.case_results if r.status != "PASS"}
    assert set(skipped.values()) == {"requires"}
    assert len(skipped) == 6
    totals = {group.agent: (group.totals.passed, group.totals.skipped) for group in done.run.totals_by_agent}
    assert totals == {"builtin": (3, 2), "claude_code": (4, 1), "codex": (2, 3)}
    assert [line.split()[0] for line in done.stdout.splitlines() if line.startswith(("case", "all"))] == ["case", "all"]


def test_the_command_must_be_on_the_agents_own_path(project: Project) -> None:
    project.write("bin/special", "#!/bin/sh\n").chmod(0o755)
    project.write("cases/a.yaml", CASE.format(requires="{commands: [special]}"))
    project.write("agents/with.yaml", f'engine: builtin\nmodel: scripted\nenv: {{PATH: "{project.root}/bin:/bin"}}\n')
    project.write("agents/without.yaml", "engine: builtin\nmodel: scripted\n")
    done = project.run("cases", "--agent", "with", "--agent", "without")
    assert done.trial(agent="with").status == "PASS"
    assert done.trial(agent="without").grading.reason == "`requires` is not met: special is not on the PATH"
    assert done.code == 0


def test_what_suite_and_case_require_must_both_be_met(project: Project) -> None:
    project.write("eval.yaml", SUITE + "requires: {engines: [builtin, codex], commands: [sh]}\n")
    project.write("cases/a.yaml", CASE.format(requires="{engines: [codex, claude_code], tools: [bash]}"))
    project.write("cases/b.yaml", CASE.partition("requires")[0].format())
    done = project.run()
    assert done.trial("a").grading.reason == "`requires` is not met: the engine is builtin, not codex"
    assert done.trial("b").status == "PASS"


def test_a_run_in_which_everything_is_skipped_starts_nothing_and_is_no_measurement(project: Project) -> None:
    project.write("eval.yaml", SUITE + "requires: {commands: [no-such-command]}\n")
    project.write("cases/a.yaml", CASE.partition("requires")[0].format())
    done = project.run("eval.yaml", *BOTH, "--model", "scripted")
    assert done.code == 3
    assert {result.status for result in done.run.case_results} == {"SKIP"}
    assert not project.trials.exists() or not list(project.trials.iterdir())
    manifest = json.loads((done.directory / "run.json").read_text())
    assert [agent["engine_version"] for agent in manifest["agents"]] == [None, None], "no CLI was asked for its version"
    again = project.call("judge", done.directory)
    assert again.code == 3, "judging again gives the same"
    assert "no valid trial: nothing was measured" in again.stdout


def test_engines_that_do_not_exist_are_faults_at_their_place(project: Project) -> None:
    project.write("eval.yaml", SUITE + "requires: {engines: [claude_cod, qwen_code]}\n")
    project.write("cases/a.yaml", CASE.format(requires="{engines: [claude_cod, shell]}").replace("\n    ", "\n"))
    for command in ("validate", "run"):
        done = project.call(command)
        assert done.code == 2
        said = done.stderr.splitlines()
        meant = 'there is no engine "claude_cod" (did you mean "claude_code"?)'
        assert said[0] == f"cases/a.yaml:4:22: requires.engines[0]: {meant}"
        assert said[1].startswith(
            'cases/a.yaml:4:34: requires.engines[1]: there is no engine "shell" (there are: builtin, '
        )
        assert said[2] == f"eval.yaml:4:22: requires.engines[0]: {meant}"


@pytest.mark.parametrize(
    ("requires", "said"),
    [
        ("{tools: [raed]}", "4:20: requires.tools[0]: must be one of bash, read, write, edit, "),
        ("{tools: [raed]}", '(did you mean "read"?)'),
        ("{engine: [builtin]}", 'requires.engine: unknown key "engine" (did you mean "engines"?)'),
        ("{commands: [/bin/sh]}", 'requires.commands[0]: "/bin/sh" is a path (a command is a name'),
        ("{engines: []}", "requires.engines: must not be empty"),
        ("{resume: false}", "requires: this requires nothing (name engines, tools or commands, or write"),
        ("{resume: yes}", "requires.resume: expected true or false, got the text"),
        ("{engines: [codex]}", "requires.engines: the suite requires builtin: no agent could run this case"),
    ],
)
def test_faults(project: Project, requires: str, said: str) -> None:
    project.write("eval.yaml", SUITE + "requires: {engines: [builtin]}\n")
    project.write("cases/a.yaml", CASE.format(requires=requires).replace("\n    ", "\n"))
    done = project.call("validate")
    assert done.code == 2
    assert said in done.stderr
