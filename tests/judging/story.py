"""Trials for tests of judging: real records and real snapshots of a real folder, told turn by turn."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from skillup.environments.snapshot import MAX_ENTRIES, Snapshot, diff, take
from skillup.environments.snapshot_log import SavedSnapshots, SnapshotLog
from skillup.judging.evidence import Evidence
from skillup.judging.outcome import Outcome
from skillup.judging.rules import evaluate
from skillup.loading.yamlfile import parse_yaml
from skillup.masking import Masker
from skillup.results import (
    AgentIdentity,
    Changes,
    CommandRecord,
    Ending,
    Failure,
    TrialRecord,
    TurnRecord,
    TurnStatus,
)
from skillup.spec.rule_items import RuleItem
from skillup.spec.rules import Rule
from skillup.transcript import CallStatus, Message, ToolCall, ToolResult, Usage

COMPLETED = Ending(how="completed")

AGENT = AgentIdentity(
    name="demo",
    engine="builtin",
    model=None,
    provider=None,
    base_url=None,
    engine_version="1.0",
    settings={},
    permissions="full",
    environment_names=(),
    source="built in",
)

Files = Mapping[str, str | bytes | None]
"""What to write: text, bytes, None for "delete it"; a path that ends with / is an empty folder."""


def rule(written: str) -> Rule:
    """A rule as users write it, in YAML."""
    return RuleItem.model_validate(read(written)).rule


def read(written: str) -> Any:
    """YAML as case files are read: `yes` and `1:30` are text."""
    return parse_yaml(written, "test").data


def call(
    tool: str,
    *,
    name: str | None = None,
    status: CallStatus = "ok",
    parent: str | None = None,
    raw: dict[str, Any] | None = None,
    more: dict[str, Any] | None = None,
    identity: str = "call-1",
    **arguments: Any,
) -> ToolCall:
    """A call of a tool by its canonical name, with canonical arguments; `more` are those that are no names."""
    arguments |= more or {}
    return ToolCall(
        id=identity,
        name=name or tool.capitalize(),
        tool=tool,
        arguments=arguments,
        raw_arguments=arguments if raw is None else raw,
        status=status,
        parent=parent,
    )


def record(**fields: Any) -> TrialRecord:
    """A record with whatever the test is not about filled in."""
    whole: dict[str, Any] = {
        "case_id": "a-case",
        "title": "",
        "configuration": "with_skill",
        "trial": 1,
        "attempt": 1,
        "agent": AGENT,
        "continuity": "resumed",
        "execution_mode": "multi_turn",
        "skills": (),
        "started_at": "2026-11-22T10:00:00Z",
        "duration_ms": 1000,
        "setup_ms": 10,
        "ending": COMPLETED,
        "turns": (),
        "turns_total": 1,
        "session_ids": (),
        "failures": (),
        **fields,
    }
    return TrialRecord(**whole)


class Story:
    """A trial, told turn by turn; `evidence` is what the judge gets of it."""

    def __init__(
        self,
        folder: Path,
        files: Files | None = None,
        *,
        wanted: Iterable[str] = (),
        mask: str = "",
        most: int = MAX_ENTRIES,
    ) -> None:
        self.folder = folder
        self.workspace = folder / "the-workspace"
        self.workspace.mkdir(parents=True)
        self._masker = Masker([mask] if mask else [])
        self._log = SnapshotLog(folder, self._masker.data, frozenset(wanted))
        self._most = most
        self._turns: list[TurnRecord] = []
        self._ending = COMPLETED
        self._failures: tuple[Failure, ...] = ()
        self._hidden: tuple[str, ...] = ()
        self._skills: dict[str, str] = {}
        self._commands: tuple[CommandRecord, ...] = ()
        self._total: int | None = None
        self._write(files or {})
        self._snapshot = self._look(0)

    def _write(self, files: Files) -> None:
        for name, content in files.items():
            path = self.workspace / name
            if name.endswith("/"):
                path.mkdir(parents=True)
            elif content is None:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
            else:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content if isinstance(content, bytes) else content.encode())

    def _look(self, number: int, previous: Snapshot | None = None) -> Snapshot:
        log = self._log
        snapshot = take(self.workspace, previous, keep=log.keep, wanted=log.wanted, max_entries=self._most)
        self._log.save(number, snapshot)
        return snapshot

    def turn(
        self,
        answer: str | None = "done",
        *,
        calls: Iterable[ToolCall] = (),
        files: Files | None = None,
        status: TurnStatus = "completed",
        snapshot: bool = True,
        outputs: Mapping[str, str] | None = None,
        content: str = "go on",
        usage: Usage | None = None,
        seconds: float = 0,
    ) -> Story:
        """A turn that took place; `outputs` is what calls gave back, by their ids."""
        number = len(self._turns) + 1
        self._write(files or {})
        changes = None
        if snapshot:
            now = self._look(number, self._snapshot)
            found = diff(self._snapshot, now)
            changes = Changes(created=found.created, changed=found.changed, deleted=found.deleted)
            self._snapshot = now
        asked = Message(role="user", turn=number, source="case", text=content)
        made = (Message(role="tool_call", turn=number, source="agent", tool_call=one) for one in calls)
        given = (
            Message(
                role="tool_result",
                turn=number,
                source="agent",
                tool_result=ToolResult(call_id=identity, status="ok", content=text),
            )
            for identity, text in (outputs or {}).items()
        )
        self._turns.append(
            TurnRecord(
                number=number,
                content=content,
                status=status,
                response=None if answer is None else self._masker.text(answer),
                messages=(asked, *made, *given),
                changes=changes,
                usage=usage or Usage(),
                duration_ms=round(seconds * 1000),
            )
        )
        return self

    def cut(
        self,
        answer: str | None = None,
        *,
        calls: Iterable[ToolCall] = (),
        files: Files | None = None,
        usage: Usage | None = None,
        seconds: float = 0,
    ) -> Story:
        """A turn that reached its limit; the case says `on_limit: judge`."""
        self._ending = Ending(
            how="limit",
            turn=len(self._turns) + 1,
            limit="turn_seconds",
            on_limit="judge",
            reason="the turn reached turn_seconds",
        )
        return self.turn(answer, calls=calls, files=files, status="timed_out", usage=usage, seconds=seconds)

    def skipped(self) -> Story:
        """A turn that did not take place because the gate of an earlier one said so."""
        if self._ending is COMPLETED:
            self._ending = Ending(how="gate_skipped", turn=len(self._turns), reason="the gate said no")
        return self._without()

    def not_reached(self) -> Story:
        """A turn that did not take place because the one before was cut, or failed."""
        return self._without()

    def _without(self) -> Story:
        self._turns.append(TurnRecord(number=len(self._turns) + 1, content="go on", status="skipped"))
        return self

    def broken(
        self, answer: str | None = None, *, kind: str = "network", began: bool = True, snapshot: bool = True
    ) -> Story:
        """A turn that a fault ended; `began` says whether the agent had been started."""
        number = len(self._turns) + 1
        if began:
            self.turn(answer, status="error", snapshot=snapshot)
        else:
            self._turns.append(TurnRecord(number=number, content="go on", status="error"))
        failure = Failure.model_validate({"kind": kind, "phase": "conversation", "message": "it broke", "turn": number})
        self._failures = (*self._failures, failure)
        self._ending = Ending(how="error", turn=number, reason="it broke")
        return self

    def hiding(self, *tools: str) -> Story:
        """The engine's stream cannot show calls of these tools."""
        self._hidden = tools
        return self

    def having(self, **skills: str) -> Story:
        """Skills that were installed, with the place of each one's SKILL.md."""
        self._skills = skills
        return self

    def ran(self, run: str, exit_code: int | None = 0, output: str = "", **more: Any) -> Story:
        """A command of a rule was run on a copy of the workspace."""
        made = CommandRecord(run=run, timeout_seconds=60.0, exit_code=exit_code, output=output, **more)
        self._commands = (*self._commands, made)
        return self

    def evidence(self, *, ignore_case: bool = False) -> Evidence:
        """What the judge gets."""
        self._log.__exit__(None, None, None)
        told = record(
            turns=tuple(self._turns),
            turns_total=max(len(self._turns), 1),
            ending=self._ending,
            failures=self._failures,
            hidden_tools=self._hidden,
            skills=tuple(self._skills),
            skill_files={name: path for name, path in self._skills.items() if path},
            commands=self._commands,
        )
        return Evidence(told, SavedSnapshots.load(self.folder), ignore_case=ignore_case)

    def judged(self, written: str, *, ignore_case: bool = False) -> Outcome:
        """The outcome of one rule on this story."""
        return evaluate(rule(written), self.evidence(ignore_case=ignore_case))
