"""Steps that print: bytes in any form, whole, cut, joined or mixed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from skillup.fakecli.output import complain, write_all
from skillup.fakecli.player import Player

_MEGABYTE = 1 << 20


class PrintingSteps(Player):
    """What goes to stdout and stderr."""

    def do_print(self, text: object) -> None:
        """A text as it is, without a newline."""
        self._output.write(self._text(text).encode(errors="surrogateescape"))

    def do_bytes(self, digits: str) -> None:
        """Bytes, written as hexadecimal digits."""
        self._output.write(bytes.fromhex(digits))

    def do_stderr(self, text: object) -> None:
        """A line on stderr."""
        complain(self._text(text))

    def do_half(self, steps: object) -> None:
        """The first half of what these steps print."""
        printed = self._held(steps)
        self._output.write(printed[: len(printed) // 2])

    def do_joined(self, steps: object) -> None:
        """What these steps print, all on one line."""
        self._output.write(self._held(steps).replace(b"\n", b"") + b"\n")

    def do_unended(self, steps: object) -> None:
        """What these steps print, without the newline at the end."""
        self._output.write(self._held(steps).removesuffix(b"\n"))

    def do_injected(self, both: Mapping[str, object]) -> None:
        """What the `inner` steps print in the middle of what the `outer` ones do."""
        outer = self._held(both["outer"])
        self._output.write(outer[: len(outer) // 2] + self._held(both["inner"]) + outer[len(outer) // 2 :])

    def do_flood(self, how: Mapping[str, Any]) -> None:
        """Megabytes, in lines: `thoughts` (events), `rubbish` (text) or `zeros` (bytes without any newline)."""
        megabytes, of = float(how["megabytes"]), how.get("of", "thoughts")
        line = int(float(how.get("line_kilobytes", 64)) * 1024)
        piece = b"\0" * line if of == "zeros" else b"rubbish " * (line // 8) + b"\n"
        if of == "thoughts":
            with self._output.held() as thought:
                self._dialect.say("x" * line, thought=True)
            piece = bytes(thought)
        for _ in range(math.ceil(megabytes * _MEGABYTE / len(piece))):
            write_all(2 if how.get("to") == "stderr" else 1, piece)
