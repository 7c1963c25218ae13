"""Programs as graders in real trials: what they are told, where they run, and what they cannot do."""

from __future__ import annotations

import json
from typing import Any

from skillup.results import TrialRecord
from tests.support import Finished, Project

FILE = """
tests:
  - id: sums
    mode: conversation
    criteria: The sums are right.
    input: [{role: system, content: Be brief.}]
    turns:
      - input: What is 15 + 27?
        expected_output: "42"
        assertions:
          - {type: code-grader, command: [python3, check.py, turn-1], name: told, config: {least: 40}}
          - {type: code-grader, command: 'test "$(pwd)" != /', cwd: graders, name: shell}
      - input: The token is sk-ant-api03-Ab1Ab1Ab1Ab1Ab1Ab1Ab1Ab1Ab1Ab1
        assertions:
          - {type: llm-grader, prompt: "file://prompts/kind.md", weight: 0}
          - {type: contains, value: Noted}
    assertions:
      - {type: code_grader, command: [python3, check.py, whole]}
    script:
      - {user: "15 + 27", replies: [{calls: [{tool: bash, args: {command: "echo 42 > sum.txt"}}]}, {say: It is 42.}]}
      - {user: token, say: Noted.}
"""
CHECK = """
import json, os, pathlib, sys
told = json.load(sys.stdin)
mine = [message["content"] for message in told["input"]]
calls = [call["tool"] for message in told["messages"] for call in message.get("tool_calls", ())]
if sys.argv[1] == "turn-1":
    checks = {
        "input": mine == ["Be brief.", "What is 15 + 27?"],
        "output": told["output"] == "It is 42.",
        "reference": told["expected_output"] == [{"role": "assistant", "content": "42"}],
        "criteria": told["criteria"] == "The sums are right.",
        "config": told["config"] == {"least": 40},
        "calls": calls == ["bash"] and told["trace_summary"]["tool_calls"] == {"bash": 1},
        "no workspace yet": told["workspace_path"] is None,
    }
else:
    workspace = pathlib.Path(told["workspace_path"])
    checks = {
        "workspace": (workspace / "sum.txt").read_text() == "42\\n",
        "masked": "sk-ant" not in json.dumps(told),
        "output": told["output"] == "Noted.",
        "users": [one["content"][:4] for one in told["messages"] if one["role"] == "user"] == ["What", "The "],
    }
    (workspace / "sum.txt").unlink()
checks["no key"] = not any("API_KEY" in name for name in os.environ)
print(json.dumps({"assertions": [{"text": name, "passed": passed} for name, passed in checks.items()]}))
"""


def run(project: Project, check: str = CHECK, text: str = FILE) -> Finished:
    project.write("sums.yaml", text)
    project.write("check.py", check)
    project.write("graders/.keep", "")
    project.write("prompts/kind.md", "Is it kind, by {{ criteria }}")
    return project.run("sums.yaml", "--agent", "demo", "--no-model-judge", "--keep", "all")


def row(done: Finished) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((done.directory / "agentv.jsonl").read_text())
    return found


def test_it_is_told_what_happened_and_scores_it(project: Project) -> None:
    done = run(project)
    parts = {one["name"]: one for one in row(done)["scores"]}
    missed = [one for part in parts.values() for one in part["assertions"] if one["state"] == "not_met"]
    assert missed == [], done.stdout
    assert (parts["turn-1"]["score"], parts["assertions"]["score"]) == (1.0, 1.0)
    assert [(one["name"], one["type"], one["score"]) for one in parts["turn-1"]["scores"]] == [
        ("told", "code-grader", 1.0),
        ("shell", "code-grader", 1.0),
    ]
    assert (done.folder() / "workspace" / "sum.txt").read_text() == "42\n", "it had a copy"
    saved = TrialRecord.model_validate_json((done.folder() / "record.json").read_bytes())
    assert [one.grader for one in saved.programs] == ["turn-1.told", "turn-1.shell", "assertions.code-grader"]
    assert list(saved.programs[0].files) == ["check.py"]
    assert (saved.programs[0].config, saved.programs[0].expected_output) == ({"least": 40}, "42")
    assert not (project.root / "__pycache__").exists()
    case = json.loads((done.folder() / "case.json").read_bytes())
    assert case["judge"]["criteria"][0]["text"] == "Is it kind, by The sums are right."


def test_one_that_crashes_is_an_error_and_judging_again_starts_nothing(project: Project) -> None:
    text = FILE.replace('          - {type: llm-grader, prompt: "file://prompts/kind.md", weight: 0}\n', "")
    done = run(project, "raise KeyError('total')", text)
    result = done.trial()
    assert (done.code, result.status) == (3, "ERROR")
    assert result.error is not None
    assert result.error.kind == "judge"
    assert "KeyError: 'total'" in result.error.message
    assert row(done)["scores"][0]["score"] is None
    (project.root / "check.py").unlink()
    assert project.call("judge", done.directory).code == 3
