"""`agents:` of a suite: who runs it when the command line does not say, and every way to name one wrongly."""

from __future__ import annotations

import pytest

from tests.support import Project

SUITE = "schema_version: v1alpha1\ncases: {files: ['cases/*.yaml']}\n"
CASE = "input: {prompt: hi}\nexpect: {must_contain: [hello]}\nscript: [{say: hello}]\n"
PROFILE = "engine: builtin\nmodel: scripted\n"


def suite(project: Project, extra: str) -> Project:
    project.write("eval.yaml", SUITE + extra)
    project.write("cases/a.yaml", CASE)
    return project


def ran(project: Project, *arguments: str) -> list[tuple[str, str, str | None]]:
    done = project.run(*arguments)
    assert done.code == 0, done.stderr + done.stdout
    return [(result.agent.name, result.agent.engine, result.agent.model) for result in done.run.case_results]


def test_names_and_files_run_in_their_order(project: Project) -> None:
    suite(project, "agents: [demo, profiles/second.yaml, third]\n")
    project.write("profiles/second.yaml", PROFILE)
    project.write("agents/third.yaml", PROFILE)
    assert ran(project) == [(name, "builtin", "scripted") for name in ("demo", "second", "third")]


def test_files_are_relative_to_the_suite_and_not_to_the_working_folder(project: Project) -> None:
    project.write("skill/SKILL.md", "---\nname: s\ndescription: Does it.\n---\n")
    project.write("skill/evals/eval.yaml", SUITE.replace("cases/", "evals/") + "agents: [evals/mine.yml]\n")
    project.write("skill/evals/a.yaml", CASE)
    project.write("skill/evals/mine.yml", PROFILE)
    assert ran(project, "skill") == [("mine", "builtin", "scripted")]


def test_the_command_line_replaces_them(project: Project) -> None:
    suite(project, "agents: [no-such-agent]\n")
    assert ran(project, "--agent", "demo") == [("demo", "builtin", "scripted")]


def test_beside_engine_they_say_who_runs_and_its_model_stays_the_default(project: Project) -> None:
    suite(project, "agents: [plain, own]\nengine: {name: codex, model: scripted}\n")
    project.write("agents/plain.yaml", "engine: builtin\n")
    project.write("agents/own.yaml", PROFILE)
    assert ran(project) == [("plain", "builtin", "scripted"), ("own", "builtin", "scripted")]


@pytest.mark.parametrize(
    ("agents", "said"),
    [
        ("[demmo]", 'eval.yaml:3:10: agents[0]: there is no agent "demmo" (did you mean "demo"?)'),
        (
            "[demo, claude_cod]",
            'eval.yaml:3:16: agents[1]: there is no agent "claude_cod" (did you mean "claude_code"?)',
        ),
        ("[demo, demo]", "eval.yaml:3:16: agents[1]: the agent demo is named twice (name each agent once)"),
        ("[x, agents/x.yaml]", "eval.yaml:3:13: agents[1]: the agent x is named twice (name each agent once)"),
        (
            "[x, other/x.yaml]",
            "eval.yaml:3:13: agents[1]: two agents are named x: agents/x.yaml and other/x.yaml (name each agent once)",
        ),
        ("[agents/no.yaml]", "eval.yaml:3:10: agents[0]: there is no file agents/no.yaml (paths are relative to "),
        ("[../x.yaml]", "eval.yaml:3:10: agents[0]: ../x.yaml leaves the suite's folder "),
        ("[/etc/x.yaml]", "eval.yaml:3:10: agents[0]: /etc/x.yaml leaves the suite's folder "),
        ("[link.yaml]", "eval.yaml:3:10: agents[0]: link.yaml leaves the suite's folder "),
        ("[]", "eval.yaml:3:9: agents: must not be empty"),
        ("demo", "eval.yaml:3:9: agents: expected a list, got text"),
        ("[bad]", 'agents/bad.yaml:1:9: engine: there is no engine "builtn" (did you mean "builtin"?)'),
    ],
)
def test_faults_stand_at_their_place(project: Project, agents: str, said: str) -> None:
    suite(project, f"agents: {agents}\n")
    project.write("agents/x.yaml", PROFILE)
    project.write("other/x.yaml", PROFILE)
    project.write("agents/bad.yaml", "engine: builtn\n")
    project.write("../outside.yaml", PROFILE)
    (project.root / "link.yaml").symlink_to("../outside.yaml")
    for command in ("validate", "run"):
        done = project.call(command)
        assert done.code == 2
        assert [line for line in done.stderr.splitlines() if line.startswith(said)], done.stderr
        assert "1 fault; nothing was run." in done.stderr


def test_a_misspelt_engine_beside_them_is_a_fault_although_it_runs_nothing(project: Project) -> None:
    suite(project, "agents: [demo]\nengine: {name: claud_code, model: {name: m}}\n")
    done = project.call("validate")
    assert done.code == 2
    assert 'eval.yaml:4:16: engine.name: there is no agent "claud_code" (did you mean "claude_code"?)' in done.stderr
    suite(project, "agents: [demo]\nengine: {name: qwen_code, model: {name: m}}\n")
    assert project.call("validate").code == 0, "the public tool has it"


def test_every_fault_of_every_agent_comes_at_once(project: Project) -> None:
    suite(project, "agents: [demmo, demo, demo, x/y.yaml]\nrequires: {engines: [builtn]}\n")
    first = project.call("validate").stderr
    assert "agents[3]: there is no file x/y.yaml" in first
    project.write("x/y.yaml", PROFILE)
    said = project.call("validate").stderr
    assert said.count("eval.yaml:3:") == 2
    assert "requires.engines[0]" in said


def test_engine_is_another_name_of_agent(project: Project) -> None:
    suite(project, "agents: [no-such-agent]\n")
    assert ran(project, "--engine", "builtin", "--model", "scripted") == [("builtin", "builtin", "scripted")]
    assert project.call("validate", "--engine", "claude_cod").code == 2
