"""A home that all trials share: sessions stay apart in it, turns take turns, and nothing of ours is left there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.claude.test_sessions import CASE, NUMBERS, TREES
from tests.environments.test_locks import HOLDS
from tests.support import Project

ENGINES = ("claude_code", "codex", "builtin")

TWO_TURNS = """
    input: {turns: [{role: user, content: one}, {role: user, content: two}]}
    expect: {must_contain: [answer two]}
    script: [{user: one, say: answer one}, {user: two, say: answer two}]
"""


def shared(project: Project, engine: str, name: str = "", **more: str) -> str:
    """A profile whose trials share `home/`; its name."""
    name = name or f"{engine}-shared"
    (project.root / "home").mkdir(exist_ok=True)
    lines = ["model: scripted", "session_binding: shared", "home: ../home"]
    lines += [f"{key}: {value}" for key, value in more.items()]
    project.write(f"agents/{name}.yaml", "\n".join([f"engine: {engine}", *lines, ""]))
    return name


@pytest.mark.claude
def test_eight_conversations_of_both_clis_stay_apart_on_one_home(claude: Project) -> None:
    agents = [shared(claude, "claude_code"), shared(claude, "codex")]
    trees = TREES[:4]
    for tree in trees:
        claude.write(f"cases/{tree}.yaml", CASE.format(tree=tree))
    done = claude.run("cases", "--agent", agents[0], "--agent", agents[1], "--parallelism", "8")
    assert done.code == 0, done.stdout
    trials = [(tree, agent, done.trial(tree, agent)) for tree in trees for agent in agents]
    assert len({trial.session_ids for _, _, trial in trials}) == len(trials) == 8
    for tree, agent, trial in trials:
        words = [f"SECRET-{tree}-{number}" for number in NUMBERS]
        assert [t.response for t in trial.turn_results] == [f"I know {', '.join(words[:n])}" for n in range(1, 5)]
        assert {turn.session_id for turn in trial.turn_results} == set(trial.session_ids)
        assert (trial.agent.session_binding, trial.agent.home) == (
            "shared",
            str(claude.root / "home" / (".claude" if agent.startswith("claude") else ".codex")),
        )
        seen = (done.folder(tree, agent) / "requests.jsonl").read_text(encoding="utf-8")
        assert [other for other in TREES if other != tree and f"SECRET-{other}" in seen] == []
    kept = [*claude.root.glob("home/.claude/projects/*/*.jsonl"), *claude.root.glob("home/.codex/sessions/*/*/*/*")]
    assert len(kept) == 8, "every session is in the home, as the user's own are"
    assert not list(claude.root.glob("home/*/.skillup.holder*"))
    assert "share" in done.stderr


@pytest.mark.claude
@pytest.mark.parametrize("engine", ENGINES)
def test_what_we_need_is_not_written_into_the_home(claude: Project, engine: str) -> None:
    """Neither policy nor skills: the home is somebody's own."""
    claude.write("two.yaml", TWO_TURNS)
    done = claude.run("two.yaml", "--agent", shared(claude, engine))
    assert done.trial().status == "PASS", done.stdout
    written = {str(path.relative_to(claude.root / "home")) for path in claude.root.glob("home/*/*")}
    assert not {path for path in written if path.endswith(("config.toml", "settings.json", "/skills/ours"))}


@pytest.mark.claude
def test_the_hooks_of_a_shared_home_do_not_run(claude: Project) -> None:
    agent = shared(claude, "claude_code")
    command = f"touch {claude.root}/hooked"
    hooks = {"UserPromptSubmit": [{"hooks": [{"type": "command", "command": command}]}]}
    claude.write("home/.claude/settings.json", json.dumps({"hooks": hooks}))
    claude.write("two.yaml", TWO_TURNS)
    assert claude.run("two.yaml", "--agent", agent).code == 0
    assert not (claude.root / "hooked").exists()


@pytest.mark.claude
def test_the_policy_holds_whatever_the_config_of_a_shared_home_says(claude: Project) -> None:
    agent = shared(claude, "codex", settings="{sandbox: read-only}")
    claude.write("home/.codex/config.toml", 'sandbox_mode = "danger-full-access"\nmodel_provider = "elsewhere"\n')
    claude.write(
        "writes.yaml",
        """
        input: {turns: [{role: user, content: one}, {role: user, content: two}]}
        judge: {type: rule_based, success: [{workspace_changed: {only: []}}, {tool_called: {name: bash, turn: 2}}]}
        script:
          - {user: one, say: ready}
          - {user: two, replies: [{calls: [{tool: bash, args: {command: "echo x > made.txt"}}]}, {say: tried}]}
        """,
    )
    done = claude.run("writes.yaml", "--agent", agent)
    assert done.trial().status == "PASS", done.stdout


def test_the_hosts_own_home_is_shared_where_no_other_is_named(claude: Project) -> None:
    claude.write("agents/mine.yaml", "engine: codex\nmodel: scripted\nsession_binding: shared\n")
    claude.write("two.yaml", TWO_TURNS)
    missing = claude.run("two.yaml", "--agent", "mine")
    assert (missing.code, missing.stdout) == (2, "")
    where = f"there is no {claude.home}/.codex, which all trials would share"
    assert f"agents/mine.yaml:3:18: session_binding: {where}" in missing.stderr
    assert "log in with codex first" in missing.stderr
    (claude.home / ".codex").mkdir()
    assert claude.run("two.yaml", "--agent", "mine").code == 0
    assert list(claude.home.glob(".codex/sessions/*/*/*/*.jsonl"))
    elsewhere = claude.root / "elsewhere"
    elsewhere.mkdir()
    assert claude.run("two.yaml", "--agent", "mine", env={"CODEX_HOME": str(elsewhere)}).code == 0
    assert list(elsewhere.glob("sessions/*/*/*/*.jsonl"))


def test_a_home_that_does_not_exist_is_told_before_anything_runs(project: Project) -> None:
    agent = shared(project, "builtin")
    (project.root / "home").rmdir()
    project.write("two.yaml", TWO_TURNS)
    done = project.run("two.yaml", "--agent", agent)
    assert (done.code, done.stdout) == (2, "")
    assert "agents/builtin-shared.yaml:4:7: home: there is no folder ../home" in done.stderr
    assert f"make {project.root}/agents/../home, or name another" in done.stderr


SKILL = "---\nname: ours\ndescription: Counts herons.\n---\nCount them.\n"
SUITE = "schema_version: v1alpha1\nskills: [{path: .}]\ncases: {files: [two.yaml]}\n"


@pytest.mark.claude
def test_a_skill_comes_beside_a_shared_home_or_not_at_all(claude: Project) -> None:
    """Codex looks for skills beside its home, too; the others would have to get it into a home that is not theirs."""
    for name, text in (("SKILL.md", SKILL), ("eval.yaml", SUITE), ("two.yaml", TWO_TURNS)):
        claude.write(name, text)
    agents = [shared(claude, engine) for engine in ENGINES]
    done = claude.run("eval.yaml", *(part for agent in agents for part in ("--agent", agent)))
    assert done.trial(agent="codex-shared").status == "PASS"
    assert "Counts herons." in json.dumps(done.requests(agent="codex-shared"))
    for agent in ("claude_code-shared", "builtin-shared"):
        error = done.trial(agent=agent).error
        assert error is not None
        assert (error.kind, error.phase) == ("setup", "plan")
        assert "is shared: nothing is put into it" in error.message
        assert "login: copy" in error.hint


@pytest.mark.claude
def test_a_home_that_somebody_else_holds_is_an_error_that_names_them(claude: Project) -> None:
    agent = shared(claude, "codex", limits="{home_wait_seconds: 0.5}")
    (claude.root / "home" / ".codex").mkdir()
    claude.write("two.yaml", TWO_TURNS)
    other = subprocess.Popen(
        [sys.executable, "-c", HOLDS, str(claude.root / "home" / ".codex")], stdout=subprocess.PIPE, text=True
    )
    try:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        error = claude.run("two.yaml", "--agent", agent).trial().error
    finally:
        other.kill()
        other.communicate()
    assert error is not None
    assert (error.kind, error.turn) == ("environment", 1)
    assert f"is in use by process {other.pid} (skillup run evals, since" in error.message
    assert "waited 0.5 s" in error.message
    assert "limits.home_wait_seconds" in error.hint
    done = claude.run("two.yaml", "--agent", agent)
    assert done.trial().status == "PASS", "the lock of a process that died is free"


SWAP = """
    case "$*" in *resume*) ;; *) {cli} "$@" | tee "{root}/first-$$"; exit ;; esac
    other=$(cat {root}/first-* | grep -o '"{key}":"[0-9a-f-]*"' | cut -d'"' -f4 | grep -v "$(echo "$*" |
        grep -o '[0-9a-f]\\{{8\\}}-[0-9a-f-]\\{{27\\}}' | head -n 1)" | head -n 1)
    for argument; do
        shift
        case $argument in ????????-????-????-????-????????????) argument=$other ;; esac
        set -- "$@" "$argument"
    done
    exec {cli} "$@"
"""


@pytest.mark.claude
@pytest.mark.parametrize(
    ("engine", "cli", "key"), [("codex", "codex", "thread_id"), ("claude_code", "claude", "session_id")]
)
def test_a_resume_of_another_trials_session_is_an_error(claude: Project, engine: str, cli: str, key: str) -> None:
    """On a shared home the other session is there to be resumed, so only the ids can tell."""
    script = claude.write("swap", "#!/bin/sh\n" + SWAP.format(cli=cli, root=claude.root, key=key))
    script.chmod(0o755)
    agent = shared(claude, engine, settings="{binary: ../swap}")
    for name in ("a", "b"):
        claude.write(f"cases/{name}.yaml", TWO_TURNS)
    done = claude.run("cases", "--agent", agent, "--parallelism", "1")
    first, second = done.trial("a"), done.trial("b")
    assert first.session_ids != second.session_ids
    assert (second.status, second.grading.code) == ("ERROR", "session"), done.stdout
    assert second.error is not None
    assert (second.error.turn, second.turn_results[1].response) == (2, None)
    assert first.session_ids[0] in second.error.message


TWICE = """
    case "$*" in *resume*) ;; *) exec {cli} "$@" ;; esac
    cat > "{root}/prompt"
    {cli} "$@" < "{root}/prompt" > "{root}/other.out" 2> "{root}/other.err" &
    {cli} "$@" < "{root}/prompt"
    status=$?
    wait
    exit $status
"""


@pytest.mark.claude
def test_two_resumes_of_one_session_at_once_are_an_error_on_claude_code(claude: Project) -> None:
    """Both succeed there, and later turns would know of one only."""
    script = claude.write("twice", "#!/bin/sh\n" + TWICE.format(cli="claude", root=claude.root))
    script.chmod(0o755)
    claude.write("agents/twice.yaml", "engine: claude_code\nmodel: scripted\nsettings: {binary: ../twice}\n")
    claude.write("two.yaml", TWO_TURNS)
    trial = claude.run("two.yaml", "--agent", "twice").trial()
    assert (trial.status, trial.grading.code) == ("ERROR", "session")
    assert trial.error is not None
    assert "holds 3 messages of a user, but this trial has sent 2" in trial.error.message


FIRST_WINS = """
    case "$*" in *resume*) ;; *) exec codex "$@" ;; esac
    cat > "{root}/prompt"
    codex "$@" < "{root}/prompt" > "{root}/other.out" 2> "{root}/other.err" &
    while ! grep -q turn.started "{root}/other.out"; do sleep 0.05; done
    codex "$@" < "{root}/prompt"
    status=$?
    wait
    exit $status
"""


@pytest.mark.claude
def test_two_resumes_of_one_thread_at_once_are_an_error_on_codex_and_no_new_one_is_started(claude: Project) -> None:
    """It lets one writer in: the second is refused, and nothing is started in its place."""
    script = claude.write("twice", "#!/bin/sh\n" + FIRST_WINS.format(root=claude.root))
    script.chmod(0o755)
    agent = shared(claude, "codex", settings="{binary: ../twice}")
    claude.write(
        "two.yaml",
        """
        input: {turns: [{role: user, content: one}, {role: user, content: two}]}
        expect: {must_contain: [answer two]}
        script:
          - {user: one, say: answer one}
          - {user: two, replies: [{calls: [{tool: bash, args: {command: sleep 3}}]}, {say: answer two}]}
        """,
    )
    trial = claude.run("two.yaml", "--agent", agent).trial()
    assert (trial.status, trial.grading.code) == ("ERROR", "session"), trial.grading.reason
    assert len(list(claude.root.glob("home/.codex/sessions/*/*/*/*.jsonl"))) == 1


def test_a_tangled_profile_is_told(project: Project) -> None:
    (project.root / "home").mkdir()
    project.write("agents/a.yaml", "engine: codex\nhome: ../home\n")
    project.write("agents/b.yaml", "engine: codex\nhome: ../home\nsession_binding: shared\nlogin: copy\n")
    project.write("two.yaml", TWO_TURNS)
    done = project.run("two.yaml", "--agent", "a", "--agent", "b")
    assert done.code == 2
    assert "agents/a.yaml:2:7: home: a home is given, but trials do not share one" in done.stderr
    assert "agents/b.yaml:4:8: login: a login cannot be copied into a home that is shared" in done.stderr


@pytest.mark.claude
def test_nobody_waits_at_a_pipe_in_the_place_of_the_login(claude: Project) -> None:
    agent = shared(claude, "codex")
    (claude.root / "home" / ".codex").mkdir()
    os.mkfifo(claude.root / "home" / ".codex" / "auth.json")
    claude.write("bad.yaml", "{input: {prompt: go}, expect: {must_contain: [hi]}, script: [{say: hi}]}")
    done = claude.run("bad.yaml", "--agent", agent, "--dry-run", seconds=30)
    assert done.code == 0, done.stderr
    ended = claude.run("bad.yaml", "--agent", agent, env={"PATH": "/usr/bin:/bin"}, seconds=30).trial()
    assert ended.error is not None, "the CLI is missing, and that is all that is wrong"
    assert ended.error.kind == "engine_missing"


def test_the_login_in_a_shared_home_needs_no_key_and_is_masked(claude: Project) -> None:
    secret = "shared-login-of-the-user-0123456789"
    agent = shared(claude, "builtin")
    profile = Path(claude.root / f"agents/{agent}.yaml")
    text = profile.read_text().replace("engine: builtin", "engine: codex")
    profile.write_text(text)
    claude.write("home/.codex/auth.json", json.dumps({"OPENAI_API_KEY": secret}))
    claude.write(
        "tells.yaml",
        f"""
        input: {{prompt: go}}
        expect: {{must_contain: ["masked"]}}
        script: [{{say: "the key is {secret}"}}]
        """,
    )
    done = claude.run("tells.yaml", "--agent", agent)
    assert done.trial().response == "the key is [masked]"
    everything = b"".join(path.read_bytes() for path in done.directory.rglob("*") if path.is_file())
    assert secret.encode() not in everything
