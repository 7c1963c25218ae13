"""Sessions on disk, in the folders and forms of the real CLIs, for whoever reads those files."""

from __future__ import annotations

import json
import os
import re
import time
from pathlib import Path
from typing import Any


class SessionFile:
    """The file of one session: a line an entry, appended at once."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def add(self, *entries: dict[str, Any]) -> None:
        """Appends entries; the first makes the file."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as file:
            file.writelines(json.dumps(entry) + "\n" for entry in entries)

    @property
    def entries(self) -> list[dict[str, Any]]:
        """Everything that it holds; nothing when it is not there."""
        try:
            text = self.path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return []
        return [json.loads(line) for line in text.splitlines()]


def claude_file(home: Path, cwd: str, session_id: str) -> SessionFile:
    """Where Claude Code keeps a session: below a folder named for the working folder, hence found only from there."""
    return SessionFile(home / "projects" / re.sub(r"[^A-Za-z0-9]", "-", cwd) / f"{session_id}.jsonl")


def claude_prompt(session_id: str, cwd: str, prompt: str) -> dict[str, Any]:
    """The entry of a user's message."""
    message = {"role": "user", "content": prompt}
    return {"type": "user", "promptSource": "sdk", "message": message, "sessionId": session_id, "cwd": cwd}


def codex_file(home: Path, session_id: str) -> SessionFile:
    """Where Codex keeps a thread: by the day on which it began."""
    found = sorted((home / "sessions").glob(f"*/*/*/rollout-*-{session_id}.jsonl"))
    stamp = time.strftime("%Y/%m/%d/rollout-%Y-%m-%dT%H-%M-%S")
    return SessionFile(found[0] if found else home / "sessions" / f"{stamp}-{session_id}.jsonl")


def newest_codex_thread(home: Path) -> str | None:
    """The thread that was written last, whoever wrote it: what `resume --last` takes."""
    found = sorted((home / "sessions").glob("*/*/*/rollout-*.jsonl"), key=lambda path: path.stat().st_mtime_ns)
    return found[-1].stem[-len("00000000-0000-0000-0000-000000000000") :] if found else None


def codex_prompt(prompt: str) -> tuple[dict[str, Any], ...]:
    """The entries with which a turn begins."""
    content = [{"type": "input_text", "text": prompt}]
    return (
        {"type": "event_msg", "payload": {"type": "task_started"}},
        {"type": "turn_context", "payload": {"cwd": os.getcwd()}},  # noqa: PTH109 - the text, not a path to work with
        {"type": "response_item", "payload": {"type": "message", "role": "user", "content": content}},
    )
