"""A suite's skill is installed where the engine discovers it, alone, and changes nothing but what it brings itself."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support import Finished, Project

SKILL = """
    ---
    name: ticketing
    description: Makes and closes tickets in tickets.txt.
    ---
    Run `sh scripts/make.sh` in this skill's folder.
"""

SUITE = """
    schema_version: v1alpha1
    skills: [{path: .%s}]
    cases: {files: [evals/cases/*.yaml]}
"""

CASE = """
    input:
      turns:
        - {role: user, content: make a ticket by the skill}
    context: {files: {tickets.txt: "T-1"}, git: {init: true}}
    judge:
      type: rule_based
      success:
        - file_contains: {path: tickets.txt, content: T-42}
    script:
      - user: make a ticket by the skill
        find: {base: 'Base directory for this skill: (\\S+)'}
        replies:
          - calls: [{tool: skill, args: {name: ticketing}}]
          - calls: [{tool: bash, args: {command: "sh {{base}}/scripts/make.sh"}}]
          - calls: [{tool: bash, args: {command: "cd {{base}} && find . -type f | sort > ~-/installed"}}]
          - say: done
"""

BUILTIN_CASE = """
    input: {prompt: make a ticket by the skill}
    judge:
      type: rule_based
      success:
        - output_contains: {all: [Makes and closes tickets]}
        - file_contains: {path: tickets.txt, content: T-42}
    script:
      - user: make a ticket by the skill
        replies:
          - calls: [{tool: bash, args: {command: "S=~/.skillup-agent/skills/*; sh $S/*/make.sh; cat $S/*.md"}}]
          - say: "{{result}}"
"""


LISTING_CASE = """
    input: {prompt: list}
    judge: {type: none}
    script:
      - user: list
        replies:
          - calls: [{tool: bash, args: {command: "cd ~/.skillup-agent/skills/ticketing && find . -type f | sort"}}]
          - say: "{{result}}"
"""

WITHOUT_SKILL = "{schema_version: v1alpha1, cases: {files: [evals/cases/*.yaml]}}"
OTHERS = ("./references/drafts/old.md", "./references/guide.md", "./scripts/make.sh")


def write_skill(project: Project, choice: str = "") -> None:
    """A skill folder with scripts, references and its own evals."""
    project.write("SKILL.md", SKILL)
    project.write("scripts/make.sh", 'echo T-42 >> tickets.txt; cat "$(dirname "$0")/../references/guide.md"')
    project.write("references/guide.md", "close what you open")
    project.write("references/drafts/old.md", "a draft")
    project.write("notes.txt", "for its authors")
    project.write("evals/eval.yaml", SUITE % choice)
    project.write("evals/answers.md", "answer keys are not for the agent")


def details_of_init(done: Finished) -> dict[str, Any]:
    """What Claude Code said of itself when the session began."""
    lines = (done.folder() / "turn-1" / "stdout").read_text().splitlines()
    return next(event for event in map(json.loads, lines) if event.get("subtype") == "init")


OF_ONE_TRIAL = (
    (r"/var/tmp/[\w-]+/[0-9a-f]{16}/", "ROOT/"),
    (r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "UUID"),
    (r'(device_id":")[0-9a-f]{64}', r"\1DEVICE"),
    (r"Today's date is [\d-]+", "Today's date is DATE"),
)
"""What differs from trial to trial in any case, as (pattern, what stands for it)."""


def normal_form(body: Any) -> list[str]:
    """A request's body, a line for each line of its texts, without what belongs to its trial alone."""
    lines = []
    for place, text in _leaves(body, ""):
        common = text
        for pattern, replacement in OF_ONE_TRIAL:
            common = re.sub(pattern, replacement, common)
        lines += [f"{place}: {line}" for line in common.split("\n")]
    return lines


def _leaves(value: Any, place: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key in sorted(value):
            yield from _leaves(value[key], f"{place}.{key}".lstrip("."))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _leaves(inner, f"{place}[{index}]")
    else:
        yield place, value if isinstance(value, str) else json.dumps(value)


def difference(without: Finished, with_skill: Finished) -> list[str]:
    """The lines by which the first model requests of two runs differ."""
    first, second = (normal_form(done.requests()[0]["body"]) for done in (without, with_skill))
    return [
        line for line in difflib.unified_diff(first, second, n=0, lineterm="") if line[:2] not in ("@@", "--", "++")
    ]


@pytest.mark.claude
def test_claude_code_runs_the_skill_and_its_first_request_differs_by_the_skill_alone(claude: Project) -> None:
    write_skill(claude)
    claude.write("evals/cases/ticket.yaml", CASE)
    with_skill = claude.run("evals", "--agent", "claude_code", "--model", "scripted", "--keep", "all")
    assert with_skill.trial().status == "PASS", with_skill.stdout
    assert details_of_init(with_skill)["skills"] == ["ticketing"]
    assert "close what you open" in json.dumps(with_skill.requests()), "the script did not reach its reference"
    installed = (with_skill.folder() / "workspace" / "installed").read_text().split()
    assert installed == ["./SKILL.md", "./notes.txt", *OTHERS]
    claude.write("evals/eval.yaml", WITHOUT_SKILL)
    without = claude.run("evals", "--agent", "claude_code", "--model", "scripted")
    assert details_of_init(without)["skills"] == []
    assert difference(without, with_skill) == [
        "+messages[1].content: ",
        "+messages[1].content: The following skills are available for use with the Skill tool:",
        "+messages[1].content: ",
        "+messages[1].content: - ticketing: Makes and closes tickets in tickets.txt.",
        "+system[2].text: ",
        "+system[2].text: # Session-specific guidance",
        (
            "+system[2].text:  - When the user types `/<skill-name>`, invoke it via Skill. Only use skills listed in "
            "the user-invocable skills section — don't guess."
        ),
    ]


def test_the_builtin_agent_runs_the_skill_and_its_first_request_differs_by_the_skill_alone(project: Project) -> None:
    write_skill(project)
    project.write("evals/cases/ticket.yaml", BUILTIN_CASE)
    with_skill = project.run("evals", "--agent", "demo", "--keep", "all")
    assert with_skill.trial().status == "PASS", with_skill.stdout
    project.write("evals/eval.yaml", WITHOUT_SKILL)
    without = project.run("evals", "--agent", "demo")
    assert difference(without, with_skill) == [
        "+system: ",
        (
            "+system: Skills are instructions for particular tasks. When a task fits the description of a skill, read "
            "its file first"
        ),
        "+system: and follow it. The skills that you have:",
        (
            "+system: - ticketing: Makes and closes tickets in tickets.txt. "
            "(file: ROOT/home/.skillup-agent/skills/ticketing/SKILL.md)"
        ),
    ]


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ("", ["./SKILL.md", "./notes.txt", *OTHERS]),
        (", include: [SKILL.md, 'references/**', 'evals/**']", ["./SKILL.md", *OTHERS[:2]]),
        (", exclude: [notes.txt, '**/drafts/**']", ["./SKILL.md", *OTHERS[1:]]),
    ],
)
def test_the_chosen_files_are_installed_and_evals_never(project: Project, choice: str, expected: list[str]) -> None:
    write_skill(project, choice)
    project.write("evals/cases/list.yaml", LISTING_CASE)
    done = project.run("evals", "--agent", "demo")
    assert (done.trial().response or "").split() == expected, done.stderr
