"""Data sets of the Agent Framework's harness: JSON lists of tasks, each of which becomes a case."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from skillup.errors import Fault
from skillup.loading.document import Document, KeyPath, Mark
from skillup.loading.faults import faults_from_validation
from skillup.loading.spelling import closest
from skillup.spec.case import Case, can_be_an_id
from skillup.spec.chat import conversation
from skillup.spec.dataset import Task
from skillup.spec.judge import TRAJECTORY_THRESHOLD
from skillup.spec.problems import quoted
from skillup.spec.template import BRACES, literal

_PLACES: Mapping[KeyPath, KeyPath] = {
    ("input", "messages"): ("data", "messages"),
    ("input", "prompt"): ("data", "prompt"),
    ("input",): ("data",),
    ("mock_tools",): ("data", "mock_tools"),
    ("constraints",): ("data", "config"),
    ("judge",): ("target",),
    ("script",): ("script",),
    ("id",): ("id",),
    (): (),
}
"""Where a part of a case stands in its task, the longest path first."""


@dataclass(frozen=True)
class Tasks:
    """The cases of a data set, each with its part of the document; and what is wrong with the others."""

    cases: tuple[tuple[Case, Document], ...]
    faults: tuple[Fault, ...]
    warnings: tuple[str, ...]


def tasks_of(document: Document, name: str) -> Tasks:
    """The cases of a data set; a task without an id gets the data set's `name` and its number."""
    listed = document.data if isinstance(document.data, list) else [document.data]
    cases: list[tuple[Case, Document]] = []
    faults: list[Fault] = []
    warnings: list[str] = []
    if not listed:
        faults.append(document.fault((), "the data set holds no task"))
    if not can_be_an_id(f"{name}-{len(listed)}"):
        name = "task"
    for index, written in enumerate(listed):
        at: KeyPath = (index,) if listed is document.data else ()
        try:
            task = Task.model_validate(written)
        except ValidationError as error:
            faults += faults_from_validation(error, document, Task, at=at)
            continue
        case = Case.model_validate(_case(task, f"{name}-{index + 1}"))
        warnings += _warnings(task, document, at)
        data = {"id": case.id, "judge": written["target"]}
        cases.append((case, Document(data, _TaskMarks(document.marks, at), document.display)))
    return Tasks(tuple(cases), tuple(faults), tuple(warnings))


@dataclass(frozen=True)
class _TaskMarks(Mapping[KeyPath, Mark]):
    """The marks of one task, under the paths of the case that it becomes."""

    whole: Mapping[KeyPath, Mark]
    at: KeyPath

    def __getitem__(self, path: KeyPath) -> Mark:
        own = next(own for own in _PLACES if path[: len(own)] == own)
        if path and not own:
            raise KeyError(path)
        return self.whole[(*self.at, *_PLACES[own], *path[len(own) :])]

    def __iter__(self) -> Iterator[KeyPath]:
        return (own for own in _PLACES if own in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _case(task: Task, default_id: str) -> dict[str, Any]:
    """The task as a case is written."""
    data, target = task.data, task.target
    talk = conversation(data.messages) if data.messages else None
    sent = talk.history[-1].content if talk else data.prompt
    history = [message.model_dump(exclude_defaults=True) for message in talk.history[:-1]] if talk else []
    said: dict[str, Any] = {"prompt": literal(sent or "")}
    if history:
        said["messages"] = [*history, {"role": "user", "content": said.pop("prompt")}]
    if talk and talk.system is not None:
        said["system"] = talk.system
    case: dict[str, Any] = {
        "id": task.id or default_id,
        "title": target.original_task or "",
        "description": str(task.metadata.get("description", "")),
        "tags": [target.category] if target.category else [],
        "vars": BRACES if literal(sent or "") != sent else {},
        "input": said,
        "mock_tools": [
            {
                "name": name,
                "description": tool.description,
                "parameters": tool.schema_of_parameters,
                "result": tool.mock_return,
            }
            for name, tool in data.mock_tools.items()
        ],
        "constraints": {"max_steps": data.config.max_steps},
        "judge": {
            "type": "rubric",
            "success": [
                {"tool_order_correct": {"expected": list(target.expected_tool_order)}},
                {"tools_avoided": {"forbidden": list(target.forbidden_tools)}},
            ],
            "criteria": [{"id": "output_quality", "text": _question(task, sent or ""), "scored": True}],
            "pass_threshold": TRAJECTORY_THRESHOLD,
        },
    }
    return case if task.script is None else {**case, "script": task.script}


def _question(task: Task, sent: str) -> str:
    """What the judge is asked: the harness's question, in our words."""
    parts = [
        "The final answer does what was asked, and uses what the tools gave back correctly.",
        "10: it does all of it; 7 to 9: mostly, with minor flaws; 4 to 6: in part; 1 to 3: mostly wrong or beside it.",
        f"What was asked: {task.target.original_task or sent}",
    ]
    if task.target.mock_tool_results:
        given = json.dumps(task.target.mock_tool_results, ensure_ascii=False)
        parts.append(f"What the tools give back: {given}")
    return "\n".join(parts).replace("\0", "")


def _warnings(task: Task, document: Document, at: KeyPath) -> Iterator[str]:
    """Tools that the target names and the model is not offered."""
    known = list(task.data.mock_tools)
    for key in ("expected_tool_order", "forbidden_tools"):
        for index, name in enumerate(getattr(task.target, key)):
            if name not in known:
                meant = closest(name, known)
                hint = f"; did you mean {quoted(meant)}?" if meant else ""
                message = f"{quoted(name)} is no tool of this task's `mock_tools`{hint}"
                yield document.note((*at, "target", key, index), message)
