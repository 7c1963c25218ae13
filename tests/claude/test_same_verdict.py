"""One case file means the same on both engines: status, code, and the state of every check."""

from __future__ import annotations

import pytest

from tests.support import Finished, Project

CASES: dict[str, tuple[str, str]] = {
    "bash-holds": (
        "PASS all_met",
        """
        input: {prompt: count the files}
        judge:
          type: rule_based
          success:
            - tool_called: {name: bash, args: {command: {matches: '^ls'}}, status: ok, count: 1}
            - tool_not_called: {name: [write, edit]}
            - output_contains: {all: ["2 files"], any: [found, counted], not: [error]}
            - workspace_changed: {only: []}
          failure:
            - tool_called: {name: bash, args: {command: {matches: rm}}}
        context: {files: {a.txt: "a\\n", b.txt: "b\\n"}}
        script: [{replies: [{calls: [{tool: bash, args: {command: "ls | wc -l"}}]}, {say: "found {{result}} files"}]}]
        """,
    ),
    "bash-fails": (
        "FAIL failure_rule",
        """
        input: {prompt: try it}
        judge:
          type: rule_based
          success:
            - tool_called: {name: bash, status: error}
            - output_contains: {all: [gave up]}
          failure:
            - tool_called: {name: bash, args: {command: {matches: exit 3}}}
            - output_contains: {any: [succeeded]}
        script: [{replies: [{calls: [{tool: bash, args: {command: "echo out; exit 3"}}]}, {say: I gave up}]}]
        """,
    ),
    "write-read-edit": (
        "PASS all_met",
        """
        input: {prompt: fix the note}
        judge:
          type: rule_based
          success:
            - tool_called: {name: write, args: {path: sub/new.txt, content: "one\\n"}, status: ok}
            - tool_called: {name: read, args: {path: note.txt}, status: ok}
            - tool_called: {name: edit, args: {path: note.txt, old: alpha, new: beta}, status: ok}
            - tool_not_called: {name: bash}
            - files_exist: [note.txt, sub/new.txt]
            - files_not_exist: [alpha.txt]
            - file_contains: {path: note.txt, all: [beta], not: [alpha]}
            - workspace_changed: {created: [sub/new.txt], changed: [note.txt], only: ["sub/**", sub, note.txt]}
        context: {files: {note.txt: "alpha\\n"}}
        script:
          - replies:
              - calls: [{tool: write, args: {path: sub/new.txt, content: "one\\n"}}]
              - calls: [{tool: read, args: {path: note.txt}}]
              - calls: [{tool: edit, args: {path: note.txt, old: alpha, new: beta}}]
              - say: fixed
        """,
    ),
    "edit-misses": (
        "FAIL success",
        """
        input: {prompt: fix the note}
        judge:
          type: rule_based
          success:
            - tool_called: {name: read, args: {path: note.txt}}
            - tool_called: {name: edit, status: ok}
            - tool_called: {name: edit, status: error}
            - file_contains: {path: note.txt, content: beta}
        context: {files: {note.txt: "alpha\\n"}}
        script:
          - replies:
              - calls: [{tool: read, args: {path: note.txt}}]
              - calls: [{tool: edit, args: {path: note.txt, old: nowhere, new: beta}}]
              - say: fixed
        """,
    ),
    "several-calls-in-one-reply": (
        "PASS all_met",
        """
        input: {prompt: do both}
        judge:
          type: rule_based
          success:
            - tool_called: {name: bash, count: 2}
            - tool_called: {name: read, args: {path: missing.txt}, status: error}
            - files_exist: [one.txt, two.txt]
        script:
          - replies:
              - say: Both at once.
                calls:
                  - {tool: bash, args: {command: touch one.txt}}
                  - {tool: bash, args: {command: touch two.txt}}
                  - {tool: read, args: {path: missing.txt}}
              - say: done
        """,
    ),
    "expectation-not-met": (
        "FAIL expect",
        """
        input: {prompt: greet}
        expect: {must_contain: [hello, goodbye], must_not_contain: [curse], files_not_exist: [x.txt]}
        script: [{say: hello}]
        """,
    ),
    "gate-fails": (
        "FAIL gate",
        """
        input:
          turns:
            - {role: user, content: plan, post_condition: {must_contain_all: [step 1, step 2], must_not_match: 'TODO'}}
            - {role: user, content: build}
        judge: {type: rule_based, success: [{files_exist: [built.txt]}]}
        script: [{user: plan, say: step 1 only}, {user: build, say: built}]
        """,
    ),
    "gate-skips": (
        "SKIP gate",
        """
        input:
          turns:
            - role: user
              content: is there work
              post_condition: {must_contain_any: ["yes"], on_fail: skip_remaining}
            - {role: user, content: build}
        judge: {type: rule_based, success: [{tool_called: {name: bash, turn: 2}}]}
        script: [{user: work, say: there is none}, {user: build, say: built}]
        """,
    ),
    "gate-skips-but-turn-one-was-wrong": (
        "FAIL success",
        """
        input:
          turns:
            - role: user
              content: is there work
              post_condition: {must_contain_any: ["yes"], on_fail: skip_remaining}
            - {role: user, content: build}
        judge:
          type: rule_based
          success:
            - tool_called: {name: bash, turn: 1}
            - tool_called: {name: bash, turn: 2}
        script: [{user: work, say: there is none}, {user: build, say: built}]
        """,
    ),
    "captured-and-used": (
        "PASS all_met",
        """
        input:
          turns:
            - role: user
              content: create
              post_condition: {must_match: 'T-[0-9]+'}
              capture:
                - {variable: ticket, pattern: '(T-\\d+)'}
                - {variable: command, jsonpath: '$.transcript.tool_calls[0].arguments.command'}
            - {role: user, content: "close {{ticket}} of {{command}}"}
        judge: {type: rule_based, success: [{output_contains: {all: ["closed T-42 of echo T-42"]}}]}
        script:
          - {user: create, replies: [{calls: [{tool: bash, args: {command: echo T-42}}]}, {say: "made {{result}}"}]}
          - {user_matches: '^close (?P<what>.*)$', say: "closed {{what}}"}
        """,
    ),
    "capture-missing": (
        "ERROR capture",
        """
        input:
          turns:
            - {role: user, content: create, capture: [{variable: ticket, pattern: '(T-\\d+)'}]}
            - {role: user, content: "close {{ticket}}"}
        judge:
          type: rule_based
          success: [{output_contains: {all: [closed]}}]
          failure: [{output_contains: {any: [sorry], turn: any}}]
        script: [{user: create, say: "sorry, nothing was made"}, {user: close, say: closed}]
        """,
    ),
    "capture-missing-is-the-agents-fault": (
        "FAIL capture",
        """
        input:
          turns:
            - {role: user, content: create, capture: [{variable: t, pattern: '(T-\\d+)', on_missing: fail}]}
            - {role: user, content: "close {{t}}"}
        judge: {type: rule_based, success: [{output_contains: {all: [closed]}}]}
        script: [{user: create, say: nothing}, {user: close, say: closed}]
        """,
    ),
    "provider-refuses": (
        "ERROR request",
        """
        input: {turns: [{role: user, content: create}, {role: user, content: close}, {role: user, content: look}]}
        judge:
          type: rule_based
          success: [{output_contains: {all: [closed], turn: 2}}]
          failure: [{tool_called: {name: bash, turn: 1}}]
        script:
          - {user: create, replies: [{calls: [{tool: bash, args: {command: touch made.txt}}]}, {say: made}]}
          - {user: close, faults: [{status: 400, message: no such thing}]}
        """,
    ),
    "unchecked": (
        "UNCHECKED unchecked",
        """
        input: {prompt: hello}
        judge: {type: none}
        script: [{say: hello}]
        """,
    ),
}


@pytest.mark.claude
def test_both_engines_give_the_same_verdict(claude: Project) -> None:
    for name, (_, text) in CASES.items():
        claude.write(f"cases/{name}.yaml", text)
    agents = ("--agent", "builtin", "--agent", "claude_code")
    done = claude.run("cases", *agents, "--model", "scripted", "--parallelism", "4")
    assert done.code == 3, done.stderr
    expected = {name: outcome for name, (outcome, _) in CASES.items()}
    assert {name: outcome_of(done, name, "builtin") for name in CASES} == expected
    assert {name: outcome_of(done, name, "claude_code") for name in CASES} == expected
    assert states_of(done, "claude_code") == states_of(done, "builtin")


def outcome_of(done: Finished, case: str, agent: str) -> str:
    """Status and code."""
    grading = done.trial(case, agent).grading
    return f"{grading.status} {grading.code}"


def states_of(done: Finished, agent: str) -> dict[str, list[tuple[str, str]]]:
    """Each check of each case with its state, and what was violated before an error."""
    found: dict[str, list[tuple[str, str]]] = {}
    for case in CASES:
        trial = done.trial(case, agent)
        found[case] = [
            *((assertion.id, assertion.state) for assertion in trial.grading.assertion_results),
            *(("violated before the error", text.partition(":")[0]) for text in trial.grading.violations_before_error),
            *((f"turn {turn.turn_number}", turn.status) for turn in trial.turn_results),
        ]
    return found
