"""`{{name}}` in the texts of a case: one pass, values never expanded again, because they are agent text."""

from __future__ import annotations

import re
from collections.abc import Mapping

from skillup.errors import TrialError

_PLACEHOLDER = re.compile(r"\{\{(!?)\s*([A-Za-z_][A-Za-z0-9_]*)\s*\}\}")


def placeholders(text: str) -> tuple[str, ...]:
    """The names that a text uses, each once, in order; `{{!name}}` is a literal and uses none."""
    return tuple(dict.fromkeys(name for escaped, name in _PLACEHOLDER.findall(text) if not escaped))


def render(text: str, values: Mapping[str, str]) -> str:
    """The text with every `{{name}}` replaced, and every `{{!name}}` written out as `{{name}}`.

    Raises:
        TrialError: `template`, a name that has no value (a capture that was never made).
    """

    def replaced(match: re.Match[str]) -> str:
        escaped, name = match.groups()
        if escaped:
            return match.group(0).replace("!", "", 1)
        if name not in values:
            known = ", ".join(sorted(values)) or "none"
            raise TrialError(
                "template",
                f"the message uses {{{{{name}}}}}, which has no value",
                hint=f"known names: {known}",
            )
        return values[name]

    return _PLACEHOLDER.sub(replaced, text)
