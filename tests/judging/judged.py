"""A judge's model for tests: the real loopback server over real HTTP, and the answers that a test wants from it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from skillup.judging.asking import Asked, ask
from skillup.judging.evidence import Evidence
from skillup.modelclient.client import ModelRef
from skillup.modelclient.clients import ModelClients
from skillup.modelserver.route import RecordedRequest, Route
from skillup.modelserver.server import ModelServer
from skillup.modelserver.source import Answer, Conversation, Fault, RouteView, ToolCall, make_reply
from skillup.results import CriterionResult
from skillup.spec.case import Case
from tests.judging.story import read

Wanted = str | Fault | ToolCall | Mapping[str, Any]
"""What the model writes: a text as it is, answers by the ids of criteria, a tool call, or a fault instead."""


@dataclass
class Judgements:
    """Answers in the order in which they are wanted; the last is given for ever."""

    answers: list[Wanted]
    given: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def answer(self, conversation: Conversation, route: RouteView) -> Answer:
        del route
        with self.lock:
            wanted = self.answers[min(self.given, len(self.answers) - 1)]
            self.given += 1
        if isinstance(wanted, Fault):
            return Answer(make_reply(conversation, text="."), fault=wanted)
        if isinstance(wanted, ToolCall):
            return Answer(make_reply(conversation, calls=(wanted,)), entry=1, step=1)
        text = wanted if isinstance(wanted, str) else json.dumps({"answers": dict(wanted)})
        return Answer(make_reply(conversation, text=text), entry=1, step=1)


@contextmanager
def judge_model(*answers: Wanted) -> Iterator[Route]:
    """A model at an address of its own that gives these answers; `requests` are what it was asked."""
    with ModelServer() as server:
        yield server.open_route(Judgements(list(answers)), workspace=Path("/nowhere"))


def given(verdict: str | int | float, *evidence: str, reason: str = "It follows.", **more: Any) -> dict[str, Any]:
    """One answer as a good judge writes it."""
    return {"evidence": list(evidence), "reason": reason, "verdict": verdict, **more}


def openai(route: Route, **more: Any) -> ModelRef:
    """The model behind a route, by OpenAI's protocol."""
    return ModelRef("openai", more.pop("name", "judge-1"), f"{route.base_url}/v1", "the-judges-key", **more)


def case(judge: str, turns: int = 1) -> Case:
    """A case with as many turns and this judge, in YAML."""
    said = [{"role": "user", "content": "go on"} for _ in range(turns)]
    return Case.model_validate({"id": "a-case", "input": {"turns": said}, "judge": read(judge)})


def asked(
    written: Case, evidence: Evidence, ref: ModelRef, known: Mapping[str, CriterionResult] | None = None
) -> Asked:
    """What the model says about the criteria of a story."""
    clients = ModelClients(threading.Event())
    return ask(
        written,
        evidence,
        ref,
        lambda _: nullcontext(clients.of(ref)),
        known=known or {},
        revision=1,
        now="2026-11-22T10:00:00Z",
    )


def texts(request: RecordedRequest) -> tuple[str, str]:
    """The instructions and the user's text of a request."""
    body = request.body or {}
    messages = {message["role"]: message["content"] for message in body["messages"]}
    return messages["system"], messages["user"]
