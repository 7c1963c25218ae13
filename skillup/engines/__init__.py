"""The engines by name. A new one is a module here and a line in `ENGINES`."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from skillup.engines.base import Engine
from skillup.engines.builtin import Builtin
from skillup.engines.claude_code import ClaudeCode

ENGINES: Mapping[str, Engine] = MappingProxyType({"builtin": Builtin(), "claude_code": ClaudeCode()})
