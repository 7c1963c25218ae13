"""Mocked tools and conversations under way, through the whole pipeline: what the model sees, and what it cannot."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from skillup.engines import ENGINES
from skillup.execution.mocks import MockedTools
from skillup.modelserver.tool_service import ToolAnswer
from skillup.spec.mocks import MockTool
from tests.builtin_agent.model import Answer, Model, Request, calls, results, say, tool_use
from tests.support import Project


def mocked(*given: dict[str, Any]) -> MockedTools:
    written = {"name": "look", "description": "Look.", "results": list(given)}
    return MockedTools([MockTool.model_validate(written)])


def asked(tools: MockedTools, *arguments: dict[str, Any]) -> list[ToolAnswer]:
    return [tools.call("look", one) for one in arguments]


def test_the_first_result_that_fits_the_arguments_is_given() -> None:
    tools = mocked(
        {"args": {"path": {"matches": r"\.json$"}, "deep": {"a": 1}}, "result": {"port": 1}},
        {"args": {"path": "b"}, "error": "b is broken"},
        {"result": "any"},
    )
    assert asked(tools, {"path": "x.json", "deep": {"a": 1, "b": 2}, "more": True}) == [ToolAnswer('{"port": 1}')]
    assert asked(tools, {"path": "x.json", "deep": {"a": "1"}}) == [ToolAnswer("any")], "types count"
    assert asked(tools, {"path": "b"}, {}) == [ToolAnswer("b is broken", failed=True), ToolAnswer("any")]


def test_results_come_in_sequence_and_what_is_used_up_does_not_come_again() -> None:
    tools = mocked(
        {"args": {"path": "a"}, "error": "busy", "times": 2},
        {"result": "one", "times": 1},
        {"args": {"path": "a"}, "result": ["two"]},
    )
    given = asked(tools, *[{"path": "a"}] * 5, {"path": "b"})
    assert [answer.content for answer in given[:5]] == ["busy", "busy", "one", '["two"]', '["two"]']
    assert given[5] == ToolAnswer("look: nothing was found for these arguments", failed=True)


def test_two_trials_do_not_share_what_was_given() -> None:
    written = {"result": "once", "times": 1}
    assert asked(mocked(written), {}) == asked(mocked(written), {}) == [ToolAnswer("once")]


TOOLS = """
    mock_tools:
      - {name: look, description: Look at it., result: HIDDEN-RESULT}
      - {name: bash, description: A shell., parameters: {type: object, properties: {cmd: {type: string}}}, result: mine}
"""


def test_the_model_is_offered_the_mocked_tools_and_nothing_that_tells_them_apart(project: Project) -> None:
    project.write(
        "one.yaml",
        f"""
    input: {{turns: [{{role: user, content: look}}, {{role: user, content: again}}]}}
    {TOOLS.strip()}
    judge:
      type: rule_based
      success:
        - tool_called: {{name: look, turn: 1, status: ok}}
        - tool_called: {{name: bash, turn: 2, args: {{cmd: ls}}}}
        - workspace_changed: {{only: []}}
    script:
      - {{user: look, replies: [{{calls: [{{name: look}}]}}, {{say: "saw {{{{result}}}}"}}]}}
      - {{user: again, replies: [{{calls: [{{name: bash, args: {{cmd: ls}}}}]}}, {{say: "{{{{result}}}}"}}]}}
    """,
    )
    for agent in ("demo", "builtin_openai"):
        done = project.run("one.yaml", "--agent", agent, "--model", "scripted", "-v")
        assert done.trial().status == "PASS", done.stdout
        assert [turn.response for turn in done.trial().turn_results] == ["saw HIDDEN-RESULT", "mine"]
        assert [turn.tool_calls for turn in done.trial().turn_results] == [("look",), ("bash",)]
        assert "turn 1: look() [ok]" in done.trial().grading.assertion_results[0].evidence
        for request in done.requests():
            text = json.dumps(request["body"]).lower()
            assert len(request["body"]["tools"]) == 2
            assert "mock" not in text
            assert "working directory" not in text, "tools that do not work in it know of none"


def test_results_lie_nowhere_that_an_agent_with_a_shell_could_read(project: Project) -> None:
    project.write("agents/shell.yaml", "engine: builtin\nmodel: scripted\nsettings: {tools: [bash]}\n")
    places = '. "$HOME/../.." /proc/[0-9]*/environ /proc/[0-9]*/cmdline'
    project.write(
        "one.yaml",
        f"""
    input: {{prompt: search}}
    mock_tools: [{{name: look, description: Look at it., result: HIDDEN-RESULT}}]
    judge: {{type: rule_based, success: [{{tool_called: {{name: bash, count: 1}}}}]}}
    script:
      - replies:
          - calls:
              - tool: bash
                args: {{command: 'grep -rsac "HIDDEN[-]RESULT" {places} | grep -v :0; env | grep -i tools; echo end'}}
          - say: "{{{{result}}}}"
    """,
    )
    done = project.run("one.yaml", "--agent", "shell")
    assert done.trial().status == "PASS", done.stdout
    assert done.trial().turn_results[0].response == "end"
    (first, _) = done.requests()
    assert [tool["name"] for tool in first["body"]["tools"]] == ["bash", "look"]


def test_a_call_of_a_tool_that_nobody_declared_is_an_error_and_recorded(project: Project) -> None:
    def answer(request: Request) -> Answer:
        return say(results(request)[0]["content"]) if results(request) else calls(tool_use("read", path="secret"))

    with Model(answer) as model:
        project.write(
            "agents/real.yaml",
            f'engine: builtin\nmodel: {{name: m, base_url: "{model.url}"}}\nenv: {{ANTHROPIC_API_KEY: none}}\n',
        )
        project.write(
            "one.yaml",
            """
            input: {prompt: read it}
            mock_tools: [{name: look, description: Look at it., result: seen}]
            judge:
              type: rule_based
              success: [{tool_called: {name: read, status: error}}, {output_contains: {all: [there is no such tool]}}]
            """,
        )
        done = project.run("one.yaml", "--agent", "real", "-v")
    assert done.trial().status == "PASS", done.stdout
    assert done.trial().turn_results[0].response == "read: there is no such tool; there are look"


HISTORY = """
    input:
      messages:
        - {role: user, content: what is it}
        - role: assistant
          content: I look.
          calls: [{name: look, args: {at: it}, result: {port: 1}}, {name: look, error: gone}]
        - {role: assistant, calls: [{name: look, result: ""}]}
        - {role: assistant, content: It is one.}
        - {role: user, content: "and {{what}}"}
    vars: {what: now}
    judge: {type: rule_based, success: [{tool_not_called: look}, {output_contains: {all: [two]}}]}
    mock_tools: [{name: look, description: Look at it., result: seen}]
    script: [{user: and now, after: It is one, say: two}]
"""


def test_a_conversation_under_way_goes_on_where_it_was(project: Project) -> None:
    project.write("one.yaml", HISTORY)
    done = project.run("one.yaml", "--agent", "demo", "--agent", "builtin_openai", "--model", "scripted", "-v")
    assert done.code == 0, done.stdout
    (asked_messages,) = done.requests(agent="demo")
    told = asked_messages["body"]["messages"]
    assert [message["role"] for message in told] == ["user", *["assistant", "user"] * 2, "assistant", "user"]
    blocks = [block for message in told for block in message["content"]]
    assert [block["id"] for block in blocks if block["type"] == "tool_use"] == ["call_1", "call_2", "call_3"]
    given = [(block["content"], block.get("is_error", False)) for block in blocks if block["type"] == "tool_result"]
    assert given == [('{"port": 1}', False), ("gone", True), ("", False)]
    assert blocks[-1]["text"] == "and now"
    (chat,) = done.requests(agent="builtin_openai")
    roles = [message["role"] for message in chat["body"]["messages"]]
    assert roles == ["system", "user", "assistant", "tool", "tool", "assistant", "tool", "assistant", "user"]
    assert done.trial(agent="demo").turn_results[0].content == "and now"


def test_what_was_said_before_is_said_once_though_several_turns_follow(project: Project) -> None:
    project.write(
        "one.yaml",
        """
        input:
          messages: [{role: user, content: hello there}, {role: assistant, content: welcome}]
          turns: [{role: user, content: first}, {role: user, content: second}]
        judge: {type: rule_based, success: [{output_contains: {all: [fine]}}]}
        script: [{say: fine}]
        """,
    )
    done = project.run("one.yaml", "--agent", "demo")
    assert done.code == 0, done.stdout
    for request in done.requests():
        assert json.dumps(request["body"]).count("hello there") == 1


def test_a_system_message_takes_the_place_of_the_agents_instructions_in_every_turn(project: Project) -> None:
    project.write(
        "one.yaml",
        """
        vars: {name: Ann}
        input:
          system: "You are a pirate, {{name}}."
          turns: [{role: user, content: hello}, {role: user, content: again}]
        mock_tools: [{name: look, description: Look at it., result: x}]
        expect: {must_contain: [aye]}
        script: [{say: aye}]
        """,
    )
    done = project.run("one.yaml", "--agent", "demo", "--agent", "builtin_openai", "--model", "scripted")
    assert done.code == 0, done.stdout + done.stderr
    told = [request["body"]["system"] for request in done.requests(agent="demo")]
    assert told == ["You are a pirate, {{name}}."] * 2
    first = done.requests(agent="builtin_openai")[0]["body"]["messages"][0]
    assert first == {"role": "system", "content": "You are a pirate, {{name}}."}
    assert [turn.steps for turn in done.trial(agent="demo").turn_results] == [1, 1]


ENDLESS = """
    input: {prompt: go}
    constraints: {max_steps: 2%s}
    mock_tools: [{name: look, description: Look at it., result: again}]
    judge: {type: rule_based, success: [{tool_called: {name: look, count: {min: 2}}}]}
    script: [{replies: [{calls: [{name: look}]}, {calls: [{name: look}]}, {say: at last}]}]
"""


def test_the_steps_of_a_case_are_a_limit_that_is_seen_and_judged(project: Project) -> None:
    project.write("cases/fails.yaml", ENDLESS % "")
    project.write("cases/judged.yaml", ENDLESS % ", on_limit: judge")
    project.write("cases/enough.yaml", (ENDLESS % "").replace("max_steps: 2", "max_steps: 3"))
    done = project.run("cases", "--agent", "demo", "-v")
    codes = {trial.case_id: f"{trial.status} {trial.grading.code}" for trial in done.run.case_results}
    assert codes == {"fails": "FAIL limit/steps", "judged": "PASS all_met", "enough": "PASS all_met"}
    assert "constraints.max_steps raises it" in done.trial("fails").grading.reason
    assert [check.state for check in done.trial("fails").grading.assertion_results] == ["met"]


NEEDS = {
    "mock_tools": "{input: {prompt: x}, mock_tools: [{name: a, description: b, result: c}], %s}",
    "input.messages": "{input: {messages: [{role: user, content: a}, {role: assistant, content: b}], prompt: x}, %s}",
    "input.system": "{input: {prompt: x, system: Be brief.}, %s}",
    "constraints.max_steps": "{input: {prompt: x}, constraints: {max_steps: 3}, %s}",
}


def test_an_engine_that_cannot_do_it_is_refused_before_anything_starts(claude: Project) -> None:
    for number, text in enumerate(NEEDS.values()):
        claude.write(f"cases/c{number}.yaml", text % "expect: {must_contain: [x]}, script: [{say: x}]")
    done = claude.run("cases", "--agent", "claude_code", "--agent", "codex", "--model", "scripted")
    assert done.code == 3
    for number, key in enumerate(NEEDS):
        for agent in ("claude_code", "codex"):
            error = done.trial(f"c{number}", agent).error
            if key in ENGINES[agent].supports:
                assert (agent, error) == ("claude_code", None), key
                assert key in ("input.system", "constraints.max_steps")
                continue
            assert error is not None
            assert (error.kind, error.phase) == ("setup", "plan")
            assert error.message == f"{agent} cannot do what {key} of c{number} asks for"
            assert error.hint.startswith("run the case on builtin, ")


REFUSED = {
    "{name: 'a b', description: d, result: x}": 'mock_tools[0].name: "a b" cannot name a tool',
    "{name: a, description: d}": "what the tool gives back is not clear",
    "{name: a, description: d, result: x, error: y}": "what the tool gives back is not clear",
    "{name: a, description: d, results: [{result: x, error: y}]}": "a result is `result` or `error`",
    "{name: a, description: d, results: [{result: x}, {result: y}]}": "results[1]: the result never comes",
    "{name: a, description: d, results: [{args: {p: {matches: '('}}, result: x}]}": "not a valid RE2 pattern",
    "{name: a, description: d, results: [{result: x, times: 0}]}": "must be at least 1",
    "{name: a, description: d, parameters: {type: string}, result: x}": "no JSON Schema of an object",
    "{name: a, description: d, result: x}, {name: a, description: d, result: y}": 'the tool "a" is mocked twice',
    "{name: a, result: x}": "description",
}


@pytest.mark.parametrize(("tools", "said"), REFUSED.items())
def test_a_mocked_tool_that_can_mean_nothing_is_refused_at_its_place(project: Project, tools: str, said: str) -> None:
    project.write("one.yaml", f"{{input: {{prompt: x}}, judge: {{type: none}}, mock_tools: [{tools}]}}")
    done = project.call("validate", "one.yaml")
    assert done.code == 2
    assert said in done.stderr
    assert "one.yaml:1:" in done.stderr


USER, REPLY = "{role: user, content: a}", "{role: assistant, content: b}"
CALL = "{role: assistant, calls: [{name: t, result: x}]}"
NO_CONVERSATION = {
    f"messages: [{REPLY}, {USER}]": "a conversation begins with the user",
    f"messages: [{USER}, {USER}]": "the first was never answered",
    f"messages: [{USER}, {REPLY}, {REPLY}, {USER}]": "its turn ended with the first",
    f"messages: [{USER}, {REPLY}]": "nothing is said to the agent",
    f"messages: [{USER}], prompt: x": "the last message of the user was never answered",
    f"messages: [{USER}, {CALL}], prompt: x": "stops in the middle of the assistant's turn",
    f"messages: [{USER}, {{role: assistant}}], prompt: x": "the message says nothing",
    "messages: [{role: user, calls: [{name: t, result: x}]}]": "a user calls no tools",
    f"messages: [{USER}, {{role: assistant, calls: [{{name: t}}]}}, {USER}]": "exactly one of them",
    f"messages: [{{role: system, content: a}}, {USER}]": "role",
}


@pytest.mark.parametrize(("written", "said"), NO_CONVERSATION.items())
def test_messages_that_are_no_conversation_are_refused(project: Project, written: str, said: str) -> None:
    project.write("one.yaml", f"{{input: {{{written}}}, judge: {{type: none}}}}")
    done = project.call("validate", "one.yaml")
    assert done.code == 2
    assert said in done.stderr
    assert "one.yaml:1:" in done.stderr


def test_a_variable_in_the_message_that_is_sent_must_exist(project: Project) -> None:
    project.write(
        "one.yaml",
        f"{{input: {{messages: [{USER}, {REPLY}, {{role: user, content: 'x {{{{y}}}}'}}]}}, judge: {{type: none}}}}",
    )
    done = project.call("validate", "one.yaml")
    assert "input.messages[2].content: {{y}} is neither in `vars`" in done.stderr


def test_the_mocked_cases_that_ship_pass(project: Project, tmp_path: Path) -> None:
    shipped = Path(__file__).resolve().parents[2] / "cases" / "mocked"
    done = project.run(shipped)
    assert done.code == 0, done.stdout + done.stderr
    assert len(done.run.case_results) == 3
    assert not [path for path in tmp_path.rglob("*") if path.name == "history.json"]
