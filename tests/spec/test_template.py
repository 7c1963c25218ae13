"""`{{name}}`: one form for messages and scripts, one pass, no name that silently stays."""

from __future__ import annotations

import re

import pytest

from skillup.errors import TrialError
from skillup.spec.script import TEMPLATE as SCRIPT_TEMPLATE
from skillup.spec.template import TEMPLATE, placeholders, render

RENDERED = {
    "a name": ("close {{ticket}}", "close T-1"),
    "blanks inside the braces": ("close {{ ticket }}", "close T-1"),
    "twice": ("{{ticket}} {{ticket}}", "T-1 T-1"),
    "two names": ("{{ticket}} in {{city}}", "T-1 in Oslo"),
    "a literal": ("write {{!ticket}}", "write {{ticket}}"),
    "a literal keeps its blanks": ("write {{! ticket }}", "write {{ ticket }}"),
    "a literal needs no value": ("write {{!nobody}}", "write {{nobody}}"),
    "single braces": ("{ticket} {", "{ticket} {"),
    "no name": ("{{}} {{ }} {{ .Values.x }} {{1}}", "{{}} {{ }} {{ .Values.x }} {{1}}"),
    "three braces": ("{{{ticket}}}", "{T-1}"),
    "across lines": ("{{\nticket\n}}", "T-1"),
    "an empty value": ("[{{empty}}]", "[]"),
    "a value is never expanded again": ("{{sly}}", "{{ticket}} {{!city}}"),
    "nothing to do": ("hello", "hello"),
}
VALUES = {"ticket": "T-1", "city": "Oslo", "empty": "", "sly": "{{ticket}} {{!city}}"}


@pytest.mark.parametrize(("text", "rendered"), RENDERED.values(), ids=RENDERED)
def test_names_are_replaced_in_one_pass(text: str, rendered: str) -> None:
    assert render(text, VALUES) == rendered


def test_the_names_of_a_text_are_listed_once_in_order_and_without_literals() -> None:
    assert placeholders("{{b}} {{a}} {{ b }} {{!c}} {{d-e}}") == ("b", "a", "d-e")


def test_a_name_that_no_variable_can_have_is_a_name_all_the_same() -> None:
    """So that `{{ticket-id}}` is a fault at planning, and not a text that the agent gets as it is."""
    assert placeholders("{{ticket-id}} {{user.name}}") == ("ticket-id", "user.name")


def test_a_name_without_a_value_is_an_error_of_the_template() -> None:
    with pytest.raises(TrialError, match=re.escape("uses {{tickt}}, which has no value")) as caught:
        render("{{tickt}}", {"ticket": "T-1", "city": "Oslo"})
    assert caught.value.kind == "template"
    assert caught.value.hint == "names with a value: city, ticket"


def test_scripts_and_messages_have_one_form() -> None:
    assert SCRIPT_TEMPLATE is TEMPLATE
