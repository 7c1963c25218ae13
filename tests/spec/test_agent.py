"""What an agent profile may say: references instead of secrets, a model, what is not supported yet."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from skillup.spec.agent import AgentProfile, ModelChoice, credentials_in, is_secret


def problem_of(profile: dict[str, Any]) -> str:
    """The words of the only error in a profile."""
    with pytest.raises(ValidationError) as caught:
        AgentProfile.model_validate({"engine": "claude_code", **profile})
    (error,) = caught.value.errors()
    return str(error.get("ctx", {}).get("problem", error["msg"]))


NAMES = {
    "ANTHROPIC_API_KEY": True,
    "ANTHROPIC_AUTH_TOKEN": True,
    "CLAUDE_CODE_OAUTH_TOKEN": True,
    "OPENAI_APIKEY": True,
    "AWS_SECRET_ACCESS_KEY": True,
    "AWS_BEARER_TOKEN_BEDROCK": True,
    "DB_PASSWORD": True,
    "GITHUB_PAT": True,
    "CLAUDE_CODE_MAX_OUTPUT_TOKENS": False,
    "GIT_AUTHOR_NAME": False,
    "KEYBOARD_LAYOUT": False,
    "ANTHROPIC_BASE_URL": False,
    "PATH": False,
}


@pytest.mark.parametrize(("name", "secret"), NAMES.items(), ids=NAMES)
def test_a_secret_is_known_by_the_words_of_its_name(name: str, *, secret: bool) -> None:
    assert is_secret(name, "some value of length") is secret


def test_a_secret_is_known_by_the_shape_of_its_value() -> None:
    assert is_secret("HARMLESS", "sk-ant-api03-abcdefgh")
    assert is_secret("HARMLESS", "ghp_abcdefghijkl")
    assert is_secret("HARMLESS", "Bearer sk-abcdefghijkl")


@pytest.mark.parametrize("value", ["/runs/task-lists-and-more", "disk_usage_by_folder", "desk-abcdefghijkl"])
def test_a_key_begins_where_a_word_begins(value: str) -> None:
    assert not is_secret("HARMLESS", value)


@pytest.mark.parametrize(
    ("name", "value", "found"),
    [
        (
            "https_proxy",
            "http://me:p%40ss-word@proxy:3128",
            ("p%40ss-word", "p@ss-word", "me:p%40ss-word", "me:p@ss-word"),
        ),
        ("ALL_PROXY", "me:in/the@clear@proxy:3128/", ("in/the@clear", "me:in/the@clear")),
        ("http_proxy", "http://me@proxy:3128", ()),
        ("http_proxy", "http://proxy:3128", ()),
        ("no_proxy", "a:b@c", ()),
    ],
)
def test_the_password_of_a_proxy_is_a_secret(name: str, value: str, found: tuple[str, ...]) -> None:
    assert credentials_in({name: value}) == found


@pytest.mark.parametrize("value", ["4096", "true", "", "off"])
def test_switches_and_numbers_are_no_secrets_whatever_their_name(value: str) -> None:
    """To mask them would mask half of every report."""
    assert not is_secret("MAX_TOKEN", value)


def test_a_reference_a_name_and_a_plain_value_are_fine() -> None:
    env = {"ANTHROPIC_API_KEY": "${MY_KEY}", "ANTHROPIC_BASE_URL": None, "CLAUDE_CODE_MAX_OUTPUT_TOKENS": "8000"}
    assert AgentProfile.model_validate({"engine": "claude_code", "env": env}).env == env


REFUSED_VARIABLES = {
    "a secret by name": ({"ANTHROPIC_API_KEY": "abc"}, "a secret may not stand in a profile"),
    "a secret by shape": ({"HARMLESS": "sk-ant-api03-abcdefgh"}, "a secret may not stand in a profile"),
    "a part of a value": ({"AUTH_HEADER": "Bearer ${KEY}"}, "a reference to a variable must be the whole value"),
    "a reference without braces": ({"BASE": "$HOME/x"}, "a reference to a variable must be the whole value"),
    "no name": ({"A-B": "x"}, '"A-B" cannot name an environment variable'),
    "HOME": ({"HOME": "/root"}, "HOME is set by every trial itself, so that it sees nothing of the host"),
    "NUL": ({"A": "x\0y"}, "no process can be given a text that holds NUL (U+0000)"),
}


@pytest.mark.parametrize(("env", "problem"), REFUSED_VARIABLES.values(), ids=REFUSED_VARIABLES)
def test_a_variable_that_cannot_be_passed_is_refused(env: dict[str, str], problem: str) -> None:
    assert problem_of({"env": env}) == problem


def test_the_word_scripted_alone_is_a_model() -> None:
    profile = AgentProfile.model_validate({"engine": "builtin", "model": "scripted"})
    assert profile.model is not None
    assert profile.model.scripted


MODELS = {
    "an address of a scripted model": ({"name": "scripted", "base_url": "http://x"}, "an address of its own"),
    "no address": ({"base_url": "localhost:80"}, "not an http(s) address"),
    "a secret in an address": ({"base_url": "https://me:pass@host/v1"}, "a secret may not stand in an address"),
}


@pytest.mark.parametrize(("model", "problem"), MODELS.values(), ids=MODELS)
def test_a_model_that_cannot_be_reached_is_refused(model: dict[str, str], problem: str) -> None:
    assert problem in problem_of({"model": model})


def test_parameters_that_nobody_honours_are_not_kept() -> None:
    assert "params" not in ModelChoice(name="x", params={"temperature": 0}).model_dump()
