"""Steps about what is around a turn: its session, its home, and conditions on what the CLI was given."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Mapping
from typing import Any

from skillup.fakecli.dialect import Refused
from skillup.fakecli.plan import PlanError
from skillup.fakecli.player import Player

_WRITING_SECONDS = 0.1


class PlaceSteps(Player):
    """Sessions, homes and conditions."""

    def do_session(self, session_id: str) -> None:
        """From now on events name another session; `new` makes an id."""
        self._dialect.name_session(str(uuid.uuid4()) if session_id == "new" else self._text(session_id))

    def do_forget_session(self, _nothing: None) -> None:
        """The session is no longer on the disk."""
        self._dialect.file().path.unlink(missing_ok=True)

    def do_journal(self, seconds: float) -> None:
        """Writes into the file of its session for so many seconds, and prints nothing."""
        until = time.monotonic() + float(seconds)
        while time.monotonic() < until:
            self._dialect.file().add({"type": "fake_note", "payload": {}})
            time.sleep(_WRITING_SECONDS)

    def do_neighbour(self, _nothing: None) -> None:
        """Another session lies in the same home, newer than this one."""
        self._dialect.add_neighbour()

    def do_usage(self, taken: Mapping[str, float]) -> None:
        """What the final word says that this turn took."""
        usage = self._dialect.usage
        usage.input_tokens = int(taken.get("input_tokens", usage.input_tokens))
        usage.output_tokens = int(taken.get("output_tokens", usage.output_tokens))
        usage.cost_usd = float(taken.get("cost_usd", usage.cost_usd))

    def do_race(self, seconds: float) -> None:
        """Writes its configuration and reads it again later; whoever has written meanwhile has damaged it."""
        path = self._dialect.home() / "config.json"
        own = f'{{"writer": {os.getpid()}}}'
        path.write_text(own, encoding="utf-8")
        time.sleep(float(seconds))
        if path.read_text(encoding="utf-8") != own:
            raise Refused("Error: the configuration was written by another process meanwhile")

    def do_if_given(self, how: Mapping[str, Any]) -> None:
        """Steps that are done when `any` of these arguments or variables is given."""
        if any(self._is_given(one) for one in how["any"]):
            self._inner(how["do"])

    def do_unless_given(self, how: Mapping[str, Any]) -> None:
        """Steps that are done unless `all` of these arguments and variables are given."""
        if not all(self._is_given(one) for one in how["all"]):
            self._inner(how["do"])

    def do_first(self, how: Mapping[str, Any]) -> None:
        """Steps that are done the first `times` times that the plan comes here, over all processes and homes."""
        if self._plan.memory is None:
            raise PlanError("the step `first` counts in the plan's `memory`, and there is none")
        self._plan.memory.mkdir(parents=True, exist_ok=True)
        for number in range(int(how.get("times", 1))):
            try:
                (self._plan.memory / f"first-{number}").open("x").close()
            except FileExistsError:
                continue
            self._inner(how["do"])
            return

    def _is_given(self, one: str) -> bool:
        if one.startswith("-"):
            return self._dialect.has(one)
        name, equals, value = one.partition("=")
        held = self._dialect.environ.get(name)
        return held is not None and (not equals or held == value)
