"""`skill_used` on the real CLIs: each way in which one uses a skill is seen, and its absence, too."""

from __future__ import annotations

import pytest

from tests.support import Finished, Project

SUITE = """
    schema_version: v1alpha1
    skills: [{path: .}]
    cases: {files: ["evals/cases/*.yaml"]}
"""

RULES = """
    judge:
      type: rule_based
      success: [{skill_used: heron}]
      failure: [{skill_used: {name: heron, used: false}}]
"""

READS = """
    input: {prompt: what do herons say}
    script:
      - replies:
          - calls: [{tool: bash, args: {command: "cat \\"$(find ~ -path '*skills/heron/SKILL.md')\\""}}]
          - say: heron
"""
"""A command whose path is made up while it runs names no path: nobody can tell what it read."""


def project_with_a_skill(project: Project) -> None:
    project.write("SKILL.md", "---\nname: heron\ndescription: what herons say\n---\nSay heron twice.\n")
    project.write("evals/eval.yaml", SUITE)


def case(project: Project, name: str, prompt: str, script: str) -> None:
    project.write(f"evals/cases/{name}.yaml", f"    input: {{prompt: {prompt}}}{RULES}    script: [{script}]\n")


def states(done: Finished, name: str, agent: str) -> list[tuple[str, str]]:
    return [(check.state, check.evidence) for check in done.trial(name, agent).grading.assertion_results]


@pytest.mark.claude
def test_the_use_of_a_skill_is_seen_on_every_engine_in_its_own_way(claude: Project) -> None:
    project_with_a_skill(claude)
    case(claude, "skill-call", "call it", "{replies: [{calls: [{tool: skill, args: {name: heron}}]}, {say: heron}]}")
    case(claude, "not-at-all", "hello", "{say: heron}")
    case(claude, "named", "$heron hello", "{say: heron}")
    done = claude.run("evals/eval.yaml", "--agent", "claude_code", "--agent", "codex", "--model", "scripted")
    (used, never) = states(done, "skill-call", "claude_code")
    assert (used[0], never[0]) == ("met", "not_met")
    assert "turn 1: skill('heron'), basis: call" in used[1]
    (used, never) = states(done, "named", "codex")
    assert (used[0], never[0]) == ("met", "not_met")
    assert "basis: session_file" in used[1]
    for agent in ("claude_code", "codex"):
        (used, never) = states(done, "not-at-all", agent)
        assert (used[0], never[0]) == ("not_met", "met")
        assert "no call that reads /" in used[1]
    assert done.trial("named", "codex").turn_results[0].response == "heron", "the script hears the user, not the skill"


@pytest.mark.claude
@pytest.mark.parametrize("agent", ["builtin", "codex", "claude_code"])
def test_a_command_that_reads_the_installed_file_is_a_use(claude: Project, agent: str) -> None:
    """The path is found by one command, as a model finds it in its prompt, and read by the next."""
    project_with_a_skill(claude)
    claude.write(
        "evals/cases/reads.yaml",
        """
    input: {turns: [{role: user, content: where}, {role: user, content: read it}, {role: user, content: thanks}]}
    judge:
      type: rule_based
      success:
        - skill_used: {name: heron, turn: 2}
        - skill_used: {name: heron, count: 1}
        - skill_used: {name: heron, used: false, turn: 3}
    script:
      - user: where
        replies: [{calls: [{tool: bash, args: {command: "find ~ -name SKILL.md"}}]}, {say: "there"}]
      - user: read
        find: {place: '(/\\S+/heron/SKILL\\.md)'}
        replies: [{calls: [{tool: bash, args: {command: "cat {{place}}"}}]}, {say: heron heron}]
      - {user: thanks, say: welcome}
        """,
    )
    done = claude.run("evals/eval.yaml", "--agent", agent, "--model", "scripted", "-v")
    assert done.trial().status == "PASS", done.stdout
    (first, *_) = states(done, "reads", agent)
    assert "and printed its text" in first[1]


def test_a_read_by_a_path_that_nobody_sees_is_unknown(project: Project) -> None:
    project_with_a_skill(project)
    project.write("evals/cases/hidden.yaml", READS + RULES)
    done = project.run("evals/eval.yaml", "--agent", "demo")
    assert (done.trial().status, done.trial().grading.code) == ("ERROR", "unobservable")
    assert {state for state, _ in states(done, "hidden", "demo")} == {"unknown"}
