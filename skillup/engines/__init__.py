"""The engines by name. A new one is a module here and a line in `ENGINES`."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from skillup.engines.base import Engine
from skillup.engines.builtin import Builtin
from skillup.engines.claude_code import ClaudeCode
from skillup.engines.codex import Codex

ENGINES: Mapping[str, Engine] = MappingProxyType({engine.name: engine for engine in (Builtin(), ClaudeCode(), Codex())})
