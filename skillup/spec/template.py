"""`{{name}}` in texts of the user's: one form for messages and for scripts.

One pass, and values are never expanded again, because they are text of the agent's. `{{!name}}` is written out as
`{{name}}`. A name may hold `.` and `-`, which no variable does: so `{{ticket-id}}` is an unknown name, and a fault,
and not a text that silently stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from skillup.errors import TrialError

TEMPLATE: Final = re.compile(r"\{\{(!?)(\s*([A-Za-z_][A-Za-z0-9_.-]*)\s*)\}\}")
"""`{{name}}` and `{{!name}}`; groups: the `!`, all after it up to the braces, the name."""


BRACES: Final[Mapping[str, str]] = MappingProxyType({"braces": "{{"})
"""The variable that `literal` puts into texts."""


def literal(text: str) -> str:
    """A text of a format without variables as a template that renders as it stands, where `BRACES` is given."""
    return TEMPLATE.sub(lambda match: f"{{{{{next(iter(BRACES))}}}}}{match[0][2:]}", text)


def placeholders(text: str) -> tuple[str, ...]:
    """The names that a text uses, each once, in order; `{{!name}}` is a literal and uses none."""
    return tuple(dict.fromkeys(name for literal, _, name in TEMPLATE.findall(text) if not literal))


def render(text: str, values: Mapping[str, str]) -> str:
    """The text with every `{{name}}` replaced, and every `{{!name}}` written out as `{{name}}`.

    Raises:
        TrialError: `template`, a name that has no value (a capture that was never made).
    """

    def replaced(match: re.Match[str]) -> str:
        literal, inner, name = match.groups()
        if literal:
            return f"{{{{{inner}}}}}"
        if name not in values:
            known = ", ".join(sorted(values)) or "none"
            raise TrialError(
                "template",
                f"the message uses {{{{{name}}}}}, which has no value",
                hint=f"names with a value: {known}",
            )
        return values[name]

    return TEMPLATE.sub(replaced, text)
