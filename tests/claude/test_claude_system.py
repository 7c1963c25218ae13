"""`input.system` on the real Claude Code: the model is told it in every turn, beside the CLI's own words."""

from __future__ import annotations

import json

from tests.support import Project


def test_the_system_message_of_a_case_reaches_the_model_in_every_turn(claude: Project) -> None:
    claude.write(
        "a.yaml",
        """
        input:
          system: You are a pirate of the seven seas.
          turns: [{content: first}, {content: second}]
        expect: {must_contain: [Arr]}
        script: [{user: first, say: Ahoy}, {user: second, say: Arr}]
        """,
    )
    done = claude.run("a.yaml", "--agent", "claude_code", "--model", "scripted")
    assert done.code == 0, done.stdout + done.stderr
    asked = [json.dumps(request["body"]) for request in done.requests() if "second" in json.dumps(request["body"])]
    first = [json.dumps(request["body"]) for request in done.requests()]
    assert asked
    assert "pirate of the seven seas" in first[0]
    assert all("pirate of the seven seas" in body for body in asked)


def test_codex_has_no_measured_way_and_says_so(claude: Project) -> None:
    claude.write("a.yaml", "{input: {system: s, prompt: x}, expect: {must_contain: [y]}, script: [{say: y}]}")
    done = claude.run("a.yaml", "--agent", "codex", "--model", "scripted")
    error = done.trial().error
    assert error is not None
    assert (error.kind, "codex cannot do what input.system of a asks for" in error.message) == ("setup", True)
