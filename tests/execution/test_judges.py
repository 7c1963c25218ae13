"""Which model judges: the command line before the variables before the case, and keys that go to their own place."""

from __future__ import annotations

import pytest

from skillup.errors import InputError
from skillup.execution.judges import JudgeChoice, judge_of
from skillup.modelclient.client import ModelRef
from tests.judging.judged import case

KEYS = {"ANTHROPIC_API_KEY": "key-of-anthropic", "OPENAI_API_KEY": "key-of-openai"}
OWN = {"SKILLUP_JUDGE_API_KEY": "key-of-the-judge"}
AT = "http://127.0.0.1:1/v1"


def resolved(model: str = "", line: str | None = None, /, **host: str) -> ModelRef | None:
    written = f"{{type: rubric, criteria: [a]{f', model: {model}' if model else ''}}}"
    variables = {f"SKILLUP_JUDGE_{name.upper()}" if name.islower() else name: value for name, value in host.items()}
    return judge_of(case(written), JudgeChoice(line), variables, "suite")


def complaint(model: str = "", line: str | None = None, /, **host: str) -> str:
    with pytest.raises(InputError) as caught:
        resolved(model, line, **host)
    (fault,) = caught.value.faults
    return f"{fault.message} ({fault.hint})"


@pytest.mark.parametrize(
    ("model", "line", "host", "wanted"),
    [
        ("claude-x", None, KEYS, ModelRef("anthropic", "claude-x", None, "key-of-anthropic")),
        ("gpt-x", None, KEYS, ModelRef("openai", "gpt-x", None, "key-of-openai")),
        ("claude-x", None, KEYS | OWN, ModelRef("anthropic", "claude-x", None, "key-of-the-judge")),
        ("claude-x", "openai/o9", KEYS, ModelRef("openai", "o9", None, "key-of-openai")),
        ("claude-x", "claude-y", KEYS, ModelRef("anthropic", "claude-y", None, "key-of-anthropic")),
        ("claude-x", "local", KEYS, ModelRef("local", None)),
        ("local", None, {}, ModelRef("local", None)),
        ("claude-x", "ollama/hf.co/a/b", {}, ModelRef("ollama", "hf.co/a/b")),
        ("claude-x", None, {"provider": "ollama", "model": "gpt-oss"}, ModelRef("ollama", "gpt-oss")),
        ("claude-x", None, {"model": "openai/y"} | KEYS, ModelRef("openai", "y", None, "key-of-openai")),
        ("", "claude-y", {"provider": "openai", "base_url": AT}, ModelRef("openai", "claude-y", AT)),
        (f"{{provider: openai, name: x, base_url: '{AT}'}}", None, {}, ModelRef("openai", "x", AT)),
        (f"{{name: x, base_url: '{AT}'}}", None, {}, ModelRef("openai", "x", AT)),
        (f"{{provider: openai, name: x, base_url: '{AT}'}}", "y", {}, ModelRef("openai", "y", AT)),
    ],
)
def test_the_first_place_that_says_it_decides(
    model: str, line: str | None, host: dict[str, str], wanted: ModelRef
) -> None:
    assert resolved(model, line, **host) == wanted


def test_the_providers_key_goes_to_the_providers_address_alone() -> None:
    ref = resolved(f"{{provider: openai, name: x, base_url: '{AT}'}}", **KEYS)
    assert ref is not None
    assert ref.api_key is None
    own = resolved("claude-x", base_url="http://127.0.0.1:1", **KEYS, **OWN)
    assert own is not None
    assert (own.base_url, own.api_key) == ("http://127.0.0.1:1", "key-of-the-judge")


def test_the_address_of_the_case_is_not_taken_for_another_provider() -> None:
    ref = resolved(f"{{provider: openai, name: x, base_url: '{AT}'}}", "claude-x", **KEYS)
    assert ref == ModelRef("anthropic", "claude-x", None, "key-of-anthropic")


def test_what_is_missing_is_told_with_what_to_do() -> None:
    assert "nothing says which model judges" in complaint()
    assert "--no-model-judge runs without" in complaint()
    assert "no key for the judge: neither SKILLUP_JUDGE_API_KEY nor ANTHROPIC_API_KEY is set" in complaint("claude-x")
    assert "whose model wonder-1 is cannot be told" in complaint("wonder-1")
    assert "nothing says which model of ollama" in complaint("{provider: ollama}")
    assert "SKILLUP_JUDGE_PROVIDER is 'acme' (one of anthropic, openai, ollama, local)" in complaint(
        "x", provider="acme"
    )
    assert "SKILLUP_JUDGE_BASE_URL holds a secret" in complaint("claude-x", base_url="https://me:pw@example.com")
    assert "SKILLUP_JUDGE_BASE_URL is no http(s) address" in complaint("claude-x", base_url="example.com")


def test_a_key_is_in_no_text_of_the_model() -> None:
    assert "key-of" not in repr(resolved("claude-x", **KEYS))


def test_without_a_model_or_without_criteria_none_is_needed() -> None:
    assert judge_of(case("{type: rubric, criteria: [a]}"), JudgeChoice(without=True), {}, "suite") is None
    assert judge_of(case("{type: none}"), JudgeChoice(), {}, "suite") is None
