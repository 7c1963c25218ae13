"""What a suite says of its environment: planned, recorded, and never replaced by another."""

from __future__ import annotations

import json
import os

import pytest

from tests.builtin_agent.model import Model, say
from tests.support import Project, certificate

CASE = "input: {prompt: hi}\nexpect: {must_contain: [hello]}\nscript: [{say: hello}]\n"
SUITE = "schema_version: v1alpha1\nenvironment: {%s}\ncases: {files: [one.yaml]}\n"
KEYED = """
    engine: builtin
    model: {base_url: "%s"}
    env: {ANTHROPIC_API_KEY: "${KEY}"}
"""


def write(project: Project, environment: str) -> None:
    project.write("eval.yaml", SUITE % environment)
    project.write("one.yaml", CASE)


def without_bwrap(project: Project) -> dict[str, str]:
    """A PATH with what is needed besides."""
    (project.root / "bin").mkdir()
    return {"PATH": str(project.root / "bin")}


def with_fake_bwrap(project: Project, text: str) -> dict[str, str]:
    """A PATH with a program in its place that ends as the real one does where it is not allowed to."""
    fake = project.write("bin/bwrap", f"#!/bin/sh\n{text}\n")
    fake.chmod(0o755)
    return {"PATH": f"{fake.parent}{os.pathsep}{project.variables['PATH']}"}


def test_without_bubblewrap_the_trial_is_an_error_and_nothing_runs(project: Project) -> None:
    write(project, "type: bubblewrap, setup_steps: [{run: 'touch /var/tmp/ran'}]")
    done = project.run(".", "--agent", "demo", env=without_bwrap(project))
    assert done.code == 3
    error = done.trial().error
    assert error is not None
    assert (error.kind, error.phase) == ("environment", "plan")
    assert error.message == "bubblewrap is not installed: there is no `bwrap` on the PATH"
    assert error.hint.startswith("install it (`apt-get install bubblewrap`")
    assert done.trial().turn_results == ()


def test_where_it_may_make_no_sandbox_it_says_so(project: Project) -> None:
    write(project, "type: bubblewrap")
    env = with_fake_bwrap(project, "echo 'bwrap: setting up uid map: Permission denied' >&2; exit 1")
    done = project.run(".", "--agent", "demo", env=env)
    error = done.trial().error
    assert error is not None
    assert error.kind == "environment"
    assert error.message.startswith("bubblewrap cannot make a sandbox here: /bin/sh: ")
    assert error.message.endswith("bwrap ended before the command did: bwrap: setting up uid map: Permission denied")
    assert "user namespaces" in error.hint
    doctor = project.call("doctor", env=env).stdout
    assert "bubblewrap   unusable: bubblewrap cannot make a sandbox here" in doctor
    assert error.hint in doctor


@pytest.mark.usefixtures("bubblewrap")
def test_an_agent_that_could_not_reach_its_model_is_not_started(project: Project) -> None:
    project.write("agents/keyed.yaml", KEYED.replace('model: {base_url: "%s"}', ""))
    project.write("agents/login.yaml", "engine: claude_code\nlogin: copy\nsettings: {binary: ./claude}\n")
    project.write("agents/claude", "#!/bin/sh\necho 1.0\n").chmod(0o755)
    expected = {
        "none": {"demo": ("with `network: none` demo cannot reach its model", "network: model_only")},
        "model_only": {
            "login": ("login has a login, and that asks other servers than its model", "pass a key"),
            "keyed": ("needs the address of keyed's model, which is not given", "base_url"),
        },
    }
    for network, agents in expected.items():
        write(project, f"type: bubblewrap, network: {network}")
        named = [word for agent in agents for word in ("--agent", agent)]
        done = project.run(".", *named, env={"KEY": "sk-test-of-nothing"})
        for agent, (said, hint) in agents.items():
            error = done.trial(agent=agent).error
            assert error is not None
            assert (error.kind, error.phase) == ("environment", "plan")
            assert said in error.message
            assert hint in error.hint


def test_the_host_has_no_network_or_limits_of_its_own(project: Project) -> None:
    write(project, "network: none, limits: {memory_mb: 1}, type: bubblewrapp")
    done = project.run(".", "--agent", "demo")
    assert done.code == 2
    assert 'environment.type: must be one of none, bubblewrap, docker (did you mean "bubblewrap"?)' in done.stderr
    write(project, "network: none")
    done = project.run(".", "--agent", "demo")
    assert "environment.network: `type: none` is the host, which has no network of its own" in done.stderr
    assert "write `type: bubblewrap` beside it" in done.stderr


@pytest.mark.usefixtures("bubblewrap")
def test_an_agent_that_may_write_in_its_trial_alone_needs_a_sandbox(project: Project) -> None:
    project.write("agents/careful.yaml", "engine: builtin\nmodel: scripted\npermissions: workspace\n")
    write(project, "type: none")
    error = project.run(".", "--agent", "careful").trial().error
    assert error is not None
    assert (error.kind, error.phase) == ("environment", "plan")
    assert "on the host nothing keeps it from writing elsewhere" in error.message
    assert "type: bubblewrap" in error.hint
    write(project, "type: bubblewrap")
    done = project.run(".", "--agent", "careful")
    assert (done.trial().status, done.trial().agent.permissions) == ("PASS", "workspace")


@pytest.mark.usefixtures("bubblewrap")
def test_a_shared_home_is_told_as_a_way_out_and_refused_to_an_agent_that_may_write_in_its_trial_alone(
    project: Project,
) -> None:
    (project.root / "home").mkdir()
    profile = "engine: builtin\nmodel: scripted\nsession_binding: shared\nhome: ../home\n"
    project.write("agents/loose.yaml", profile)
    project.write("agents/careful.yaml", f"{profile}permissions: workspace\n")
    write(project, "type: bubblewrap")
    done = project.run(".", "--agent", "careful", "--agent", "loose")
    assert done.trial(agent="loose").status == "PASS"
    assert "loose can write in" in done.stderr
    assert "from within `environment.type: bubblewrap`" in done.stderr
    error = done.trial(agent="careful").error
    assert error is not None
    assert (error.kind, error.phase) == ("environment", "plan")
    assert "it can write in" in error.message
    assert "session_binding: isolated" in error.hint


@pytest.mark.usefixtures("bubblewrap")
def test_a_cli_with_a_sandbox_of_its_own_is_refused_in_another_and_careful_on_the_host(project: Project) -> None:
    """Within another sandbox Codex runs no command and ends well: a case would blame the agent for it."""
    settings = "settings: {binary: ./codex, sandbox: workspace-write}\npermissions: workspace\n"
    project.write("agents/inner.yaml", f"engine: codex\nmodel: scripted\n{settings}")
    project.write("agents/codex", "#!/bin/sh\necho codex 1.0\n").chmod(0o755)
    write(project, "type: bubblewrap")
    error = project.run(".", "--agent", "inner").trial().error
    assert error is not None
    assert (error.kind, error.phase) == ("environment", "plan")
    assert "sandbox of codex itself cannot be made within `environment.type: bubblewrap`" in error.message
    assert "sandbox: danger-full-access" in error.hint
    write(project, "type: none")
    assert "inner  run" in project.call("run", ".", "--agent", "inner", "--dry-run").stdout


@pytest.mark.usefixtures("bubblewrap")
def test_where_it_ran_is_in_the_manifest_and_in_every_result(project: Project) -> None:
    write(project, "type: bubblewrap, limits: {file_size_mb: 5}")
    done = project.run(".", "--agent", "demo", "--agent", "builtin", "--model", "scripted")
    facts = {"type": "bubblewrap", "network": "full", "limits": {"file_size_mb": 5}, "image": None}
    assert done.code == 0, done.stdout
    assert [result.agent.environment.model_dump() for result in done.run.case_results] == [facts, facts]
    assert json.loads((done.directory / "run.json").read_text())["suites"][0]["environment"] == facts


@pytest.mark.usefixtures("bubblewrap")
def test_a_real_provider_is_reached_by_tls_and_nothing_but_it(project: Project) -> None:
    tls, trusted = certificate(project.root)
    write(project, "type: bubblewrap, network: model_only")
    with Model(lambda _request: say("hello"), tls=tls) as model:
        project.write("agents/keyed.yaml", KEYED % f"https://localhost:{model.port}/base")
        env = {"KEY": "sk-test-of-nothing"}
        done = project.run(".", "--agent", "keyed", env={**env, "SSL_CERT_FILE": str(trusted)})
        assert done.code == 0, done.stdout
        asked = model.received[0]
        assert (asked.path, asked.headers["host"]) == ("/base/v1/messages", f"localhost:{model.port}")
        refused = project.run(".", "--agent", "keyed", env=env).trial().error
    assert refused is not None
    assert f"localhost:{model.port} cannot be reached: [SSL: CERTIFICATE_VERIFY_FAILED]" in refused.message


@pytest.mark.usefixtures("bubblewrap")
def test_agents_on_the_host_are_warned_of_and_those_in_a_sandbox_are_not(project: Project) -> None:
    project.write("agents/keyed.yaml", KEYED % "http://127.0.0.1:9")
    for environment, warned in (("type: none", True), ("type: bubblewrap", False)):
        write(project, environment)
        done = project.call("run", ".", "--agent", "keyed", "--dry-run", env={"KEY": "sk-test-of-nothing"})
        assert ("`environment: {type: bubblewrap}` confines them" in done.stderr) is warned


@pytest.mark.usefixtures("bubblewrap")
def test_doctor_says_whether_a_sandbox_can_be_made(project: Project) -> None:
    assert "bubblewrap   ok: a sandbox can be made" in project.call("doctor").stdout
