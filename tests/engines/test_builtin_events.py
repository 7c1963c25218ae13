"""What the built-in agent's output means, on its own recordings."""

from __future__ import annotations

import pytest

from tests.engines.recorded import folded


def test_tool_calls_have_paths_in_the_workspace_and_a_status() -> None:
    calls = [message.tool_call for message in folded("builtin", "tools").messages if message.tool_call]
    assert [(call.tool, call.arguments.get("path"), call.status) for call in calls] == [
        ("read", "note.txt", "ok"),
        ("edit", "note.txt", "ok"),
        ("write", "sub/new.txt", "ok"),
        ("bash", None, "error"),
        ("read", "missing.txt", "error"),
    ]
    assert folded("builtin", "tools").answer == "Done."


@pytest.mark.parametrize(
    ("name", "kind"), [("unauthorised", "auth"), ("malformed", "output"), ("interrupted", "crash")]
)
def test_what_went_wrong_has_a_kind(name: str, kind: str) -> None:
    fault = folded("builtin", name).fault
    assert fault is not None
    assert fault.kind == kind


def test_a_retry_is_noted_with_its_cause() -> None:
    assert folded("builtin", "retried").notes == ("retried: rate_limit ×1",)
    assert folded("builtin", "malformed").notes == ("retried: output ×1",)


def test_a_turn_that_ran_out_of_steps_met_a_limit() -> None:
    finished = folded("builtin", "steps").finished
    assert finished is not None
    assert (finished.limit, finished.fault) == ("steps", None)


def test_a_resumed_turn_has_its_own_tokens() -> None:
    first, second = folded("builtin", "plain").finished, folded("builtin", "resumed").finished
    assert first is not None
    assert second is not None
    assert (first.usage.output_tokens, second.usage.output_tokens) == (5, 3)
    assert folded("builtin", "plain").session_ids == folded("builtin", "resumed").session_ids


def test_reasoning_is_told_from_the_answer() -> None:
    roles = [message.role for message in folded("builtin", "plain").messages]
    assert roles == ["reasoning", "assistant"]
