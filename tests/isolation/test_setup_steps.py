"""Set-up steps, and the order of all that comes before the first turn."""

from __future__ import annotations

import json
import os
import time

import pytest

from tests.support import Project, processes_mentioning

LOG = "$HOME/order"
"""Where the steps write down what they find; the home is empty at first, and no part of the workspace."""

FIND = "find . -type f -not -path './.git/*' | sort"


def write_suite(project: Project, *steps: dict[str, object], skill: bool = False) -> None:
    """A suite with these steps."""
    suite = {
        "schema_version": "v1alpha1",
        "environment": {"setup_steps": steps},
        "skills": [{"path": "skill"}] if skill else [],
        "cases": {"files": ["cases/*.yaml"]},
    }
    project.write("eval.yaml", json.dumps(suite))
    project.write("skill/SKILL.md", "---\nname: kept\ndescription: Keeps notes.\n---\n")


def write_case(project: Project, command: str = "true", context: object = None) -> None:
    """A case whose agent answers with what a command prints."""
    replies = [{"calls": [{"tool": "bash", "args": {"command": command}}]}, {"say": "{{result}}"}]
    case = {"input": {"prompt": "go"}, "context": context or {}, "judge": {"type": "none"}}
    project.write("cases/a.yaml", json.dumps({**case, "script": [{"replies": replies}]}))


def test_everything_comes_in_the_documented_order_and_finds_what_came_before(project: Project) -> None:
    project.write("fixture/made", "by the fixture\n")
    project.write("fixture/x", "by the fixture\n")
    patch = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-by the files\n+by the patch\n"
    project.write("fix.diff", patch)
    write_suite(
        project,
        {"run": f"pwd > {LOG}; {FIND} >> {LOG}; echo by step 1 | tee one made"},
        {"run": f"cat one made >> {LOG}; find $HOME -name SKILL.md >> {LOG}; echo by step 2 > one"},
        skill=True,
    )
    context = {
        "repo_fixture": "fixture",
        "files": {"x": "by the files\n"},
        "git": {"init": True, "checkout": "dev", "apply_diff": "fix.diff"},
    }
    show = (
        f"cat {LOG}; echo ---; cat one made x; echo ---; git show --format= HEAD:one HEAD:made HEAD:x; "
        "git branch; find $HOME -name SKILL.md | sed 's|.*/\\(skills\\)|\\1|'"
    )
    write_case(project, show, context)
    done = project.run("eval.yaml", "--agent", "demo")
    said = (done.trial().response or "").split("---\n")
    folder, *found = said[0].splitlines()
    assert folder.endswith("/workspace")
    assert found == ["by step 1", "by step 1"], "the workspace was empty, and there was no skill yet"
    assert said[1].splitlines() == ["by step 2", "by the fixture", "by the patch"]
    assert said[2].splitlines() == ["by step 2", "by the fixture", "by the files", "* dev", "skills/kept/SKILL.md"]


@pytest.mark.parametrize(
    ("step", "message", "tail"),
    [
        ("echo why; echo because >&2; exit 3", "failed with exit code 3", "why\nbecause"),
        ("kill -9 $$", "failed with signal 9", ""),
        ("no-such-command-here", "failed with exit code 127", "no-such-command-here: not found"),
    ],
)
def test_a_step_that_fails_is_an_error_that_names_it_and_the_next_is_not_run(
    project: Project, step: str, message: str, tail: str
) -> None:
    mark = project.root / "mark"
    write_suite(project, {"run": "true"}, {"run": step}, {"run": f"touch {mark}"})
    write_case(project)
    error = project.run("eval.yaml", "--agent", "demo").trial().error
    assert error is not None
    assert (error.kind, error.phase, error.turn) == ("setup", "setup", None)
    assert error.message == f"environment.setup_steps[1]: `{step}` {message}"
    assert tail in error.tail
    assert not mark.exists()


def test_a_step_that_exceeds_its_limit_is_ended_with_all_that_it_started(project: Project) -> None:
    """The daemon leaves its parent, its process group, its session and its environment behind."""
    sleep = f"sleep 86400.{os.getpid()}77"
    daemon = f"setsid env -i /bin/sh -c '{sleep} & exec {sleep}' >/dev/null 2>&1 &"
    write_suite(project, {"run": f"{daemon} echo waiting; {sleep}", "timeout_seconds": 1}, {"run": "touch never"})
    write_case(project)
    started = time.monotonic()
    done = project.run("eval.yaml", "--agent", "demo")
    assert time.monotonic() - started < 20
    error = done.trial().error
    assert error is not None
    assert (error.kind, error.phase) == ("setup", "setup")
    assert error.message.startswith("environment.setup_steps[0]: `")
    assert error.message.endswith("did not end within 1 s")
    assert error.hint == "timeout_seconds of the step raises it"
    assert "waiting" in error.tail
    assert processes_mentioning(sleep) == []


def test_what_a_step_leaves_running_is_gone_before_the_first_turn(project: Project) -> None:
    sleep = f"sleep 86400.{os.getpid()}78"
    look = f"grep -lsa '86400.{os.getpid()}7[8]' /proc/[0-9]*/cmdline >/dev/null"  # grep does not find itself
    write_suite(project, {"run": f"setsid {sleep} >/dev/null 2>&1 & sleep 0.2; {look} && echo runs > started"})
    write_case(project, f"cat started; {look} || echo gone")
    done = project.run("eval.yaml", "--agent", "demo")
    assert (done.trial().response or "").split() == ["runs", "gone"]


def test_each_step_has_a_limit_of_its_own(project: Project) -> None:
    write_suite(project, *({"run": "sleep 0.7; echo done >> steps", "timeout_seconds": 5} for _ in range(3)))
    write_case(project, "cat steps")
    done = project.run("eval.yaml", "--agent", "demo")
    assert (done.trial().response or "").split() == ["done"] * 3
