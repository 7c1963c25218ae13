"""The recordings of the engines' CLIs, and what they amount to when they are read as a turn's output is."""

from __future__ import annotations

import json
from pathlib import Path

from skillup.engines import ENGINES
from skillup.engines.events import Event
from skillup.execution.stream import TurnStream

RECORDINGS = Path(__file__).with_name("recordings")


def names(engine: str) -> list[str]:
    """The recordings of an engine."""
    return sorted(path.stem for path in (RECORDINGS / engine).glob("*.jsonl"))


def lines(engine: str, name: str) -> list[bytes]:
    """The lines of one recording."""
    return (RECORDINGS / engine / f"{name}.jsonl").read_bytes().splitlines()


def workspace_of(recorded: list[bytes]) -> Path:
    """The working folder that the CLI named when it was recorded."""
    known = [json.loads(line).get("cwd") for line in recorded]
    return Path(next(filter(None, known), "/eval"))


def events(engine: str, name: str) -> list[Event]:
    """All events of one recording."""
    recorded = lines(engine, name)
    return [event for line in recorded for event in ENGINES[engine].events(line, workspace_of(recorded))]


def folded(engine: str, name: str) -> TurnStream:
    """One recording as the turn that it was; an event a second."""
    stream = TurnStream(turn=1)
    for second, event in enumerate(events(engine, name)):
        stream.add(event, float(second))
    return stream
