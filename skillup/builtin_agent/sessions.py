"""The agent's home on disk: `sessions/<uuid>.json`, each with one writer, and `skills/<name>/SKILL.md`."""

import fcntl
import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Message = dict[str, Any]

FORMAT = 1
# Front matter is a few lines; the rest of a skill is for the model to read.
FRONT_MATTER_BYTES = 64 * 1024
INTERRUPTED = "interrupted: the turn ended before this call had a result; what it had done until then stays"


class SessionError(Exception):
    """The session cannot be started, resumed or saved; the message says why and what to do."""

    kind = "session"


class SkillError(Exception):
    """A skill is there and cannot be read, so the model would not learn of it."""

    kind = "setup"


@dataclass(slots=True)
class Session:
    """A conversation, locked until this process ends. Every change is on disk before it is seen here.

    Attributes:
        session_id: a lower-case UUID.
        resumed: it was on disk before.
        messages: the history as the Messages API takes it: roles alternate, content is a list of blocks.
    """

    path: Path
    session_id: str
    resumed: bool
    messages: tuple[Message, ...]
    lock: int = field(repr=False)

    def prompt(self, text: str) -> None:
        """Add what the user says. After a turn that broke off it joins that turn's unanswered message.

        Raises:
            SessionError: the session cannot be saved.
        """
        self._append("user", [{"type": "text", "text": text}])

    def reply(self, content: tuple[Message, ...]) -> None:
        """Add a reply of the model; an empty one leaves the history as it is, since the API refuses it.

        Raises:
            SessionError: the session cannot be saved.
        """
        if content:
            self._append("assistant", list(content))

    def result(self, call_id: str, content: str, *, failed: bool) -> None:
        """Add the result of one tool call of the last reply.

        Raises:
            SessionError: the session cannot be saved.
        """
        self._append("user", [_result(call_id, content, failed=failed)])

    def _append(self, role: str, blocks: list[Message]) -> None:
        messages = _joined(self.messages, role, blocks)
        document = {"format": FORMAT, "session_id": self.session_id, "messages": messages}
        partial = self.path.with_suffix(".json.partial")  # one name is enough: there is one writer
        try:
            descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(descriptor, "w", encoding="ascii") as file:
                json.dump(document, file, separators=(",", ":"))
            partial.replace(self.path)
        except OSError as error:
            raise SessionError(f"the session cannot be saved: {error}") from error
        self.messages = messages


def start_session(home: Path, session_id: str, history: tuple[Message, ...] = ()) -> Session:
    """Begin a session under an id that the caller chose, after what was said before; its file comes with the prompt.

    Raises:
        SessionError: the id is already used, another process has the session, or the home cannot be written.
    """
    path = _path(home, session_id)
    lock = _locked(path)
    if path.exists():
        raise SessionError(f"session id {session_id} is already used; resume it with --resume or choose another id")
    return Session(path, session_id, resumed=False, messages=history, lock=lock)


def resume_session(home: Path, session_id: str) -> Session:
    """Take up a session. Tool calls that an interruption left without a result get one that says so.

    Raises:
        SessionError: there is no such session, another process has it, or its file cannot be understood.
    """
    path = _path(home, session_id)
    if not path.exists():  # asked before locking: an unknown id leaves nothing behind
        raise SessionError(f"there is no session {session_id} in {path.parent}; start it with --session-id")
    lock = _locked(path)
    return Session(path, session_id, resumed=True, messages=_closed(_load(path, session_id)), lock=lock)


def read_history(path: Path) -> tuple[Message, ...]:
    """What was said before a session: a JSON list of messages as a session keeps them.

    Raises:
        SessionError: it cannot be read, or is no such list.
    """
    try:
        messages = json.loads(path.read_text("utf-8"))
        fault = _messages_fault(messages) if isinstance(messages, list) else "it is no list"
    except (OSError, ValueError, RecursionError) as error:
        fault = str(error)
    if fault:
        raise SessionError(f"the history {path} cannot be understood: {fault}")
    return tuple(messages)


def _path(home: Path, session_id: str) -> Path:
    return home / "sessions" / f"{session_id}.json"


def _locked(path: Path) -> int:
    """A lock that the kernel drops when this process ends, however it ends. Children do not inherit it."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = os.open(path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise SessionError(
            f"session {path.stem} is in use by another process; wait until that turn has ended"
        ) from None
    except OSError as error:
        raise SessionError(f"the session cannot be kept in {path.parent}: {error}") from error
    return lock


def _load(path: Path, session_id: str) -> tuple[Message, ...]:
    try:
        document = json.loads(path.read_text("ascii"))
        fault = _fault(document, session_id)
    except (OSError, ValueError, RecursionError) as error:
        fault = str(error)
    if fault:
        raise SessionError(f"the session file {path} cannot be understood: {fault}; start a new session")
    return tuple(document["messages"])


def _fault(document: object, session_id: str) -> str | None:
    """What keeps a document from being a session, None if nothing does."""
    match document:
        case {"format": int(version)} if version != FORMAT:
            return f"it has format {version}, this version reads {FORMAT}"
        case {"format": int(), "session_id": str(written), "messages": [*messages]}:
            if written != session_id:
                return f"it is of session {written}"
        case _:
            return "it needs the members format, session_id and messages"
    return _messages_fault(messages)


def _messages_fault(messages: list[object]) -> str | None:
    for number, message in enumerate(messages):
        match message:
            case {"role": "user" | "assistant", "content": [*blocks]} if all(map(_is_block, blocks)):
                pass
            case _:
                return f"messages[{number}] is not a message"
    return None


def _is_block(block: object) -> bool:
    match block:
        case {"type": "text", "text": str()} | {"type": "thinking"} | {"type": "redacted_thinking"}:
            return True
        case {"type": "tool_use", "id": str(), "name": str(), "input": dict()}:
            return True
        case {"type": "tool_result", "tool_use_id": str(), "content": str()}:
            return True
    return False


def _closed(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """The history with a result for every call of its last reply; only that one can lack any."""
    last = next((n for n in reversed(range(len(messages))) if messages[n]["role"] == "assistant"), None)
    if last is None:
        return messages
    answered = {block.get("tool_use_id") for message in messages[last + 1 :] for block in message["content"]}
    missing = [
        _result(block["id"], INTERRUPTED, failed=True)
        for block in messages[last]["content"]
        if block["type"] == "tool_use" and block["id"] not in answered
    ]
    return _joined(messages, "user", missing) if missing else messages


def _joined(messages: tuple[Message, ...], role: str, blocks: list[Message]) -> tuple[Message, ...]:
    if messages and messages[-1]["role"] == role:
        return (*messages[:-1], {"role": role, "content": [*messages[-1]["content"], *blocks]})
    return (*messages, {"role": role, "content": blocks})


def _result(call_id: str, content: str, *, failed: bool) -> Message:
    block: Message = {"type": "tool_result", "tool_use_id": call_id, "content": content}
    return {**block, "is_error": True} if failed else block


@dataclass(frozen=True, slots=True)
class Skill:
    """A skill as it is advertised. `description` is None when its front matter gives none."""

    name: str
    description: str | None
    path: Path


def find_skills(home: Path) -> tuple[Skill, ...]:
    """The skills of the home, ordered by folder. Front matter without a name takes the folder's.

    Raises:
        SkillError: one is there and cannot be read.
    """
    found = sorted(path for path in (home / "skills").glob("*/SKILL.md") if path.is_file())
    return tuple(_skill(path) for path in found)


def _skill(path: Path) -> Skill:
    try:
        with path.open("rb") as file:
            keys = _front_matter(file.read(FRONT_MATTER_BYTES).decode("utf-8", "replace"))
    except OSError as error:
        raise SkillError(f"the skill {path} cannot be read: {error}") from error
    return Skill(keys.get("name") or path.parent.name, keys.get("description") or None, path)


def _front_matter(text: str) -> dict[str, str]:
    """Top-level `key: value` pairs between two `---` lines, each value on one line.

    It knows plain, quoted and block (`>`, `|`) values and their continuation lines; that is what skills use,
    and a YAML parser would cost more time than the rest of the start.
    """
    first, *lines = text.removeprefix("\ufeff").splitlines() or [""]
    if first.rstrip() != "---":
        return {}
    values: dict[str, list[str]] = {}
    parts: list[str] = []
    for line in lines:
        if line.rstrip() == "---":
            return {key: _scalar(" ".join(value)) for key, value in values.items()}
        key, colon, rest = line.partition(":")
        if line[:1].isspace() or not colon:
            parts.append(line.strip())
        elif not line.startswith("#"):
            parts = values.setdefault(key.strip(), [])
            parts.append("" if rest.strip() in {">", ">-", ">+", "|", "|-", "|+"} else rest.strip())
    return {}  # never closed: not front matter


def _scalar(text: str) -> str:
    value = " ".join(text.split())
    if len(value) >= 2 and value[0] == value[-1] == "'":
        return value[1:-1].replace("''", "'")
    if len(value) >= 2 and value[0] == value[-1] == '"':
        return value[1:-1].replace('\\"', '"').replace("\\\\", "\\")
    return value.partition(" #")[0].rstrip()
