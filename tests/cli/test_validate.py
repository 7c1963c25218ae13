"""Bad input through the real command line: one clear report, exit 2, at once, nothing started, nothing written."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import Finished, Project

CASE = "input: {prompt: hi}\nexpect: {must_contain: [x]}\n"
NO_JUDGE = "judge: {type: none}\n"

BAD = {
    "unknown-key": ("titel: x\n" + CASE, '1:1: titel: unknown key "titel" (did you mean "title"?)'),
    "two-rules": (
        (
            "input: {prompt: a}\njudge:\n  type: rule_based\n  success:\n"
            "    - output_contains: {all: [a]}\n      tool_called: {name: bash}\n"
        ),
        "5:7: judge.success[0]: two rules in one list item: output_contains, tool_called (give each rule its own `-`)",
    ),
    "turn-7-of-2": (
        (
            "input: {turns: [{content: a}, {content: b}]}\n"
            "judge: {type: rule_based, success: [{output_contains: {all: [a], turn: 7}}]}\n"
        ),
        "2:72: judge.success[0].output_contains.turn: turn 7 does not exist: the case has 2 turns (turns count from 1)",
    ),
    "bad-regex": (
        "input: {turns: [{content: a, post_condition: {must_match: '(a'}}]}\n",
        (
            "1:59: input.turns[0].post_condition.must_match: not a valid RE2 pattern: missing ): (a "
            "(write \\ in front of ( ) [ ] { } . * + ? | that are meant literally)"
        ),
    ),
    "capture-used-early": (
        NO_JUDGE + "input: {turns: [{content: 'go {{id}}'}, {content: b, capture: [{variable: id, pattern: (x)}]}]}\n",
        (
            "2:27: input.turns[0].content: {{id}} is used before it exists: turn 2 captures it later "
            "(known here: none; {{!id}} writes the braces out)"
        ),
    ),
    "unknown-name": (
        NO_JUDGE + "vars: {ticket: T}\ninput: {prompt: 'close {{tickt}}'}\n",
        (
            "3:17: input.prompt: {{tickt}} is neither in `vars` nor captured by an earlier turn "
            "(did you mean {{ticket}}?; {{!tickt}} writes the braces out)"
        ),
    ),
    "empty-gate": (
        "input: {turns: [{content: a, post_condition: {on_fail: fail}}]}\n",
        (
            "1:46: input.turns[0].post_condition: the gate checks nothing "
            "(give must_contain_any, must_contain_all, must_not_contain, must_match or must_not_match)"
        ),
    ),
    "not-in-failure": (
        "input: {prompt: a}\njudge: {type: rule_based, failure: [{output_contains: {not: [x]}}]}\n",
        (
            "2:55: judge.failure[0].output_contains: `not` in a failure rule would match when the texts are absent "
            "(to forbid texts write output_contains: {any: […]}; to require them write a success rule)"
        ),
    ),
    "no-check": (
        "input: {prompt: a}\n",
        (
            "1:1: the case checks nothing, so it could only pass "
            "(add `judge`, `expect` or a `post_condition`; or say so with judge: {type: none})"
        ),
    ),
    "judge-without-type": (
        "input: {prompt: a}\njudge: {success: [{output_contains: {all: [x]}}]}\n",
        (
            "2:8: judge: a judge needs a `type`; without it its rules would not count "
            "(write `type: rule_based`, or `type: none`)"
        ),
    ),
    "fixture-leaves": (
        NO_JUDGE + "input: {prompt: a}\ncontext: {repo_fixture: ../..}\n",
        (
            "3:25: context.repo_fixture: ../.. leaves the suite's folder {bad} "
            "(move it inside, or pass --allow-path DIR)"
        ),
    ),
    "fixture-leaves-by-a-link": (
        NO_JUDGE + "input: {prompt: a}\ncontext: {repo_fixture: etc}\n",
        (
            "3:25: context.repo_fixture: etc leaves the suite's folder {bad} (a link leads to /etc) "
            "(move it inside, or pass --allow-path DIR)"
        ),
    ),
    "fixture-missing": (
        NO_JUDGE + "input: {prompt: a}\ncontext: {repo_fixture: none}\n",
        "3:25: context.repo_fixture: there is no folder none (paths are relative to {bad})",
    ),
    "file-leaves": (
        NO_JUDGE + "input: {prompt: a}\ncontext: {files: {../x: y}}\n",
        '3:19: context.files["../x"]: the path "../x" leaves its folder (use a relative path with / and without ..)',
    ),
    "empty": ("", "1:1: the file is empty"),
    "binary": ("\x7fELF\x02\x01\x01\0\0", "1:8: a binary file: byte 8 is NUL (a YAML file holds text)"),
    "tabs": ("input:\n\tprompt: a\n", "2:1: a tab is used for indentation (use spaces)"),
    "exit-code": (
        "input: {prompt: a}\nexpect: {exit_code: 1}\n",
        (
            "2:21: expect.exit_code: `exit_code` can never differ on a built-in engine: "
            "a turn that ends with another code is ERROR (check the answer, the workspace or a tool call instead)"
        ),
    ),
    "count-0": (
        "input: {prompt: a}\njudge: {type: rule_based, success: [{tool_called: {name: bash, count: 0}}]}\n",
        "2:71: judge.success[0].tool_called.count: a count of 0 asks for absence (use tool_not_called)",
    ),
    "max-turns": (
        NO_JUDGE + "input: {turns: [{content: a}, {content: b}]}\nconstraints: {max_turns: 1}\n",
        (
            "2:16: input.turns: 2 turns, but max_turns is 1 "
            "(raise constraints.max_turns of the case, or cases.defaults.max_turns of the suite)"
        ),
    ),
    "blank-content": (
        NO_JUDGE + "input: {turns: [{content: ' '}]}\n",
        "2:27: input.turns[0].content: the text is blank (write something, or remove the key)",
    ),
    "prompt-and-turns": (
        NO_JUDGE + "input: {prompt: a, turns: [{content: b}]}\n",
        "2:8: input: both `prompt` and `turns` are given (a prompt is a conversation of one turn: keep one of the two)",
    ),
    "default-and-on-missing": (
        NO_JUDGE
        + "input: {turns: [{content: a, capture: [{variable: x, pattern: (a), default: '', on_missing: fail}]}]}\n",
        (
            "2:93: input.turns[0].capture[0].on_missing: `default` and `on_missing` contradict each other "
            "(keep one of them)"
        ),
    ),
    "two-groups": (
        NO_JUDGE + "input: {turns: [{content: a, capture: [{variable: x, pattern: (a)(b)}]}]}\n",
        (
            "2:63: input.turns[0].capture[0].pattern: the pattern has 2 groups, so what to take is not clear "
            "(put the part to take into (?P<value>…), or into the only group)"
        ),
    ),
    "later": (
        NO_JUDGE + "input: {prompt: a}\nmcp: {servers: []}\n",
        '3:1: mcp: "mcp" is part of the format but not supported yet (remove it for now)',
    ),
}
SAME_ID = "z-same-id"


@pytest.fixture
def traps(project: Project) -> Project:
    """A project whose agent CLI leaves a trace as soon as it is started."""
    tool = project.write("tools/claude", f"#!/bin/sh\ntouch {project.root}/started\n")
    tool.chmod(0o755)
    project.variables["PATH"] = f"{tool.parent}:{project.variables['PATH']}"
    return project


def everything(project: Project) -> dict[str, float]:
    return {str(path): path.lstat().st_mtime for path in project.root.rglob("*")}


def refused(project: Project, *arguments: str | Path, seconds: float = 6.0) -> Finished:
    """A call that must end with exit code 2 and leave nothing behind, within `seconds` of processor time."""
    before, used = everything(project), _processor_seconds()
    done = project.call(*arguments, own_python=True)
    assert done.code == 2, (done.stdout, done.stderr)
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    assert everything(project) == before, "nothing may be written"
    assert not project.trials.exists()
    assert _processor_seconds() - used < seconds
    return done


def _processor_seconds() -> float:
    """Of all children that have ended: unlike wall time it does not depend on what else the machine does."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@pytest.mark.parametrize("command", ["run", "validate"])
def test_every_fault_of_every_file_is_reported_in_one_pass(traps: Project, command: str) -> None:
    for name, (text, _) in BAD.items():
        traps.write(f"bad/{name}.yaml", "").write_text(text, encoding="utf-8")
    (traps.root / "bad" / "etc").symlink_to("/etc")
    traps.write(f"bad/{SAME_ID}.yaml", "").write_text("id: good\n" + CASE)
    traps.write("bad/good.yaml", "").write_text(CASE)
    done = refused(traps, command, "bad", "--agent", "claude_code")
    lines = [f"bad/{name}.yaml:{line}" for name, (_, line) in BAD.items()]
    lines.append(f"bad/{SAME_ID}.yaml:1:5: id: the id good is taken by bad/good.yaml")
    expected = sorted(line.replace("{bad}", str(traps.root / "bad")) for line in lines)
    *reported, blank, summary = done.stderr.splitlines()
    assert sorted(reported) == expected
    assert (blank, summary) == ("", f"{len(expected)} faults; nothing was run.")


def deep() -> str:
    return "input: " + "[" * 100_000


def bomb() -> str:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    return "\n".join(lines)


HOSTILE = {
    "100,000 deep": (deep(), "bad.yaml:1:71: nested more than 64 levels deep"),
    "100,000 deep in blocks": (
        "\n".join(" " * n + "a:" for n in range(2_500)),
        "nested more than 64 levels deep",
    ),
    "an alias bomb": (bomb(), "aliases repeat more than 20,000 values"),
    "five megabytes": ("a: " + "x" * 5_000_000, "bad.yaml: larger than 4 MB"),
    "a million keys": ("\n".join(f"k{n}: 1" for n in range(300_000)), "more than 100,000 keys and values"),
    "ten thousand unknown keys": ("\n".join(f"k{n}: 1" for n in range(10_000)), 'unknown key "k0"'),
    "a regular expression of a megabyte": (
        "input: {prompt: a}\nexpect: {must_contain: [a]}\njudge: {type: rule_based, success: "
        "[{output_matches: {all: ['" + "(" * 500_000 + "']}}]}\n",
        "not a valid RE2 pattern",
    ),
}


@pytest.mark.parametrize(("text", "report"), HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_file_is_refused_within_seconds(traps: Project, text: str, report: str) -> None:
    (traps.root / "bad.yaml").write_text(text, encoding="utf-8")
    done = refused(traps, "run", "bad.yaml", "--agent", "claude_code")
    assert report in done.stderr
    assert len(done.stderr) < 20_000


NOTHING = {
    "a path that is not there": ("none.yaml", "none.yaml: there is no such file"),
    "an empty folder": ("empty", "empty: the folder holds no eval.yaml and no case files"),
    "a glob without a match": ("glob", "glob/eval.yaml:2:17: cases.files[0]: no case file matches cases/*.yaml"),
    "a suite that leaves its folder": (
        "out",
        "out/eval.yaml:2:17: cases.files[0]: ../good.yaml leaves the suite's folder",
    ),
    "a skill that leaves its suite": ("skill", "skill/eval.yaml:3:17: skills[0].path: .. leaves the suite's folder"),
    "a named pipe": ("pipe.yaml", "pipe.yaml: not a regular file"),
}


@pytest.mark.parametrize(("path", "report"), NOTHING.values(), ids=NOTHING)
def test_what_names_nothing_that_could_be_run_is_refused(traps: Project, path: str, report: str) -> None:
    (traps.root / "empty").mkdir()
    os.mkfifo(traps.root / "pipe.yaml")
    suite = "schema_version: v1alpha1\ncases: {files: ['%s']}\n"
    traps.write("good.yaml", CASE)
    traps.write("glob/eval.yaml", suite % "cases/*.yaml")
    traps.write("out/eval.yaml", suite % "../good.yaml")
    traps.write("skill/eval.yaml", suite % "a.yaml" + "skills: [{path: ..}]\n")
    traps.write("skill/a.yaml", CASE)
    assert report in refused(traps, "run", path, "--agent", "claude_code").stderr


def test_a_fault_in_the_last_of_several_agents_starts_none_of_them(traps: Project) -> None:
    traps.write("a.yaml", CASE)
    traps.write("agents/odd.yaml", "engine: claude_code\nsettings:\n  binry: x\n")
    done = refused(traps, "run", "a.yaml", "--agent", "claude_code", "--agent", "odd", "--agent", "nobody")
    assert done.stderr.splitlines()[:2] == [
        (
            '--agent: there is no agent "nobody" (there are: builtin, builtin_openai, claude_code, '
            "claude_code_login, codex, demo, odd; or name a profile's file)"
        ),
        'agents/odd.yaml:3:3: settings.binry: unknown key "binry" (did you mean "binary"?)',
    ]


def test_what_is_in_order_is_said_in_one_line_and_warnings_go_to_stderr(project: Project) -> None:
    gate = "post_condition: {must_contain_any: [x], on_fail: skip_remaining}"
    project.write("cases/a.yaml", f"input: {{turns: [{{content: hi, {gate}}}]}}\n")
    project.write("cases/b.yaml", CASE)
    done = project.call("validate")
    assert (done.code, done.stdout) == (0, "2 cases in order\n")
    assert done.stderr == (
        "warning: cases/a.yaml:1:71: input.turns[0].post_condition.on_fail: "
        "skip_remaining on the last turn makes the case SKIP, as nothing remains\n"
    )


def test_the_engine_and_the_profiles_are_checked_as_well(project: Project) -> None:
    project.write("a.yaml", CASE)
    project.write("eval.yaml", "schema_version: v1alpha1\nengine: {name: claud_code}\ncases: {files: [a.yaml]}\n")
    done = refused(project, "validate")
    assert 'eval.yaml:2:16: engine.name: there is no agent "claud_code" (did you mean "claude_code"?)' in done.stderr
    assert project.call("validate", "--agent", "demo").code == 0
    assert "--agent: there is no agent" in refused(project, "validate", "--agent", "dmeo").stderr


def test_a_report_holds_no_control_characters_of_the_file(project: Project) -> None:
    project.write("a.yaml", '"\\e[31mred\\r": 1\n' + CASE)
    assert "\x1b" not in refused(project, "validate", "a.yaml").stderr


def test_a_thousand_cases_are_checked_within_seconds(project: Project) -> None:
    text = (Path(__file__).parent / "case.yaml").read_text(encoding="utf-8")
    project.write("eval.yaml", "schema_version: v1alpha1\ncases: {files: ['cases/*.yaml']}\n")
    for number in range(1000):
        project.write(f"cases/{number:04}.yaml", text)
    used = _processor_seconds()
    done = project.call("validate", own_python=True)
    assert done.stdout == "1000 cases in order\n", done.stderr
    assert _processor_seconds() - used < 6


def test_the_version_is_printed_without_what_the_commands_need(project: Project) -> None:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "skillup", "--version"],
        env=project.variables,
        cwd=project.root,
        check=True,
        capture_output=True,
        text=True,
    )
    assert done.stdout.startswith("skillup ")
    imported = {line.rpartition("|")[2].strip().partition(".")[0] for line in done.stderr.splitlines()}
    assert "click" in imported, "the list of imports could not be read"
    assert not imported & {"pydantic", "pydantic_core", "yaml", "rich", "re2", "jsonpath_ng", "http"}
