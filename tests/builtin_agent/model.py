"""A Messages API on loopback, its answers a function of the request; and the agent as a child process."""

import json
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self
from uuid import uuid4

Request = dict[str, Any]
Block = dict[str, Any]

COMMAND = (sys.executable, "-P", "-m", "skillup.builtin_agent")
PREFIX = "/secret/run-1"
USAGE = {
    "input_tokens": 10,
    "output_tokens": 7,
    "cache_read_input_tokens": 3,
    "cache_creation_input_tokens": 2,
}


@dataclass(frozen=True, slots=True)
class Answer:
    """What the server sends: `body` as it is, else `blocks` as a stream or one JSON document."""

    blocks: tuple[Block, ...] = ()
    stop_reason: str = "end_turn"
    streamed: bool = True
    usage: dict[str, int] | None = field(default_factory=lambda: dict(USAGE))
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None
    content_type: str | None = "text/event-stream"
    events_sent: int | None = None  # None: all of them; a number: the connection is dropped after so many
    silent_seconds: float = 0.0  # before anything is sent
    pause_seconds: float = 0.0  # before every event


def say(*texts: str, **members: Any) -> Answer:
    return Answer(tuple({"type": "text", "text": text} for text in texts), **members)


def use(name: str, call: str = "call_1", /, **arguments: Any) -> Answer:
    return calls(tool_use(name, call, **arguments))


def calls(*blocks: Block, **members: Any) -> Answer:
    return Answer(blocks, "tool_use", **members)


def tool_use(name: str, call: str = "call_1", /, **arguments: Any) -> Block:
    return {"type": "tool_use", "id": call, "name": name, "input": arguments}


def refuse(status: int, message: str = "no", **headers: str) -> Answer:
    body = json.dumps({"type": "error", "error": {"type": "some_error", "message": message}}).encode()
    named = tuple((name.replace("_", "-"), value) for name, value in headers.items())
    return Answer(status=status, body=body, content_type="application/json", headers=named)


def send_bytes(body: bytes, content_type: str | None = "text/event-stream") -> Answer:
    return Answer(body=body, content_type=content_type)


def texts(request: Request) -> list[str]:
    """Every user text of the conversation, oldest first."""
    users = [message for message in request["messages"] if message["role"] == "user"]
    return [block["text"] for message in users for block in message["content"] if block["type"] == "text"]


def results(request: Request) -> list[Block]:
    """The tool results since the last reply."""
    return [block for block in request["messages"][-1]["content"] if block["type"] == "tool_result"]


def invalid(messages: list[dict[str, Any]]) -> str | None:
    """Why the Messages API would refuse this history; None when it would not."""
    open_calls: list[str] = []
    for number, message in enumerate(messages):
        role = ("user", "assistant")[number % 2]
        if message["role"] != role or not message["content"]:
            return f"messages[{number}] is not a message of the {role}"
        if any(block["type"] == "text" and not block["text"].strip() for block in message["content"]):
            return f"messages[{number}] holds a blank text"
        kinds = [block["type"] for block in message["content"]]
        if kinds != sorted(kinds, key=lambda kind: kind != "tool_result"):
            return f"messages[{number}] holds a tool result after something else"
        answered = [block["tool_use_id"] for block in message["content"] if block["type"] == "tool_result"]
        if sorted(answered) != sorted(open_calls):
            return f"messages[{number}] answers {answered}, open are {open_calls}"
        open_calls = [block["id"] for block in message["content"] if block["type"] == "tool_use"]
    return f"open calls at the end: {open_calls}" if open_calls else None


def stream_of(answer: Answer) -> Iterator[dict[str, Any]]:
    """The events of an answer, its texts and arguments in pieces, with a ping."""
    first = {name: count for name, count in (answer.usage or {}).items() if name != "output_tokens"}
    start = {**first, "output_tokens": 1} if answer.usage else None
    yield {"type": "message_start", "message": {"role": "assistant", "content": [], "usage": start}}
    yield {"type": "ping"}
    for index, block in enumerate(answer.blocks):
        empty: Block
        match block["type"]:
            case "text":
                empty, deltas = {"text": ""}, [("text_delta", "text", block["text"])]
            case "thinking":
                empty = {"thinking": "", "signature": ""}
                deltas = [("thinking_delta", "thinking", block["thinking"])]
                deltas.append(("signature_delta", "signature", block["signature"]))
            case "tool_use":
                raw = block["input"] if isinstance(block["input"], str) else json.dumps(block["input"])
                empty = {"id": block["id"], "name": block["name"], "input": {}}
                deltas = [("input_json_delta", "partial_json", raw)]
            case _:
                empty, deltas = {key: value for key, value in block.items() if key != "type"}, []
        yield {
            "type": "content_block_start",
            "index": index,
            "content_block": {"type": block["type"], **empty},
        }
        for kind, member, text in deltas:
            half = len(text) // 2
            for piece in (text[:half], text[half:]):
                yield {"type": "content_block_delta", "index": index, "delta": {"type": kind, member: piece}}
        yield {"type": "content_block_stop", "index": index}
    usage = {"output_tokens": answer.usage["output_tokens"]} if answer.usage else None
    yield {"type": "message_delta", "delta": {"stop_reason": answer.stop_reason}, "usage": usage}
    yield {"type": "message_stop"}


def encoded(events: Sequence[dict[str, Any]]) -> bytes:
    return b"".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events)


@dataclass(frozen=True, slots=True)
class Received:
    path: str
    headers: dict[str, str]
    body: Request
    time: float


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 32

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away is what some tests do; anything else is told."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class Model:
    """The server: `answer` looks at a request and says what comes back; an invalid history gets a 400.

    With `reads=False` it answers and closes without having read the request, as a front end with a limit may.
    `check` says why an API would refuse a history. With `tls` it speaks HTTPS.
    """

    def __init__(
        self,
        answer: Callable[[Request], Answer],
        *,
        reads: bool = True,
        check: Callable[[list[dict[str, Any]]], str | None] = invalid,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._answer = answer
        self._check = check
        self._reads = reads
        self._closing = threading.Event()
        self.received: list[Received] = []
        self._server = _Server(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        if tls is not None:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        self.port = int(self._server.server_address[1])
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}{PREFIX}"

    @property
    def requests(self) -> list[Request]:
        return [received.body for received in self.received]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self._closing.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        model = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                model._serve(self)

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
                pass

        return Handler

    def _serve(self, handler: BaseHTTPRequestHandler) -> None:
        length = int(handler.headers["content-length"])
        raw = handler.rfile.read(length) if self._reads else b'{"messages": []}'
        if self._reads and len(raw) < length:
            raise ConnectionAbortedError("the client went away while it sent its request")
        body = json.loads(raw)
        headers = {name.lower(): value for name, value in handler.headers.items()}
        self.received.append(Received(handler.path, headers, body, time.monotonic()))
        fault = self._check(body["messages"])
        answer = refuse(400, fault) if fault else self._answer(body)
        self._closing.wait(answer.silent_seconds)  # a test that is over does not wait for it
        payload = _payload(answer)
        handler.send_response(answer.status)
        if answer.content_type:
            handler.send_header("content-type", answer.content_type)
        for name, value in answer.headers:
            handler.send_header(name, value)
        handler.end_headers()
        for event in payload.split(b"\n\n") if answer.pause_seconds else ():
            self._closing.wait(answer.pause_seconds)
            handler.wfile.write(event + b"\n\n")
        if not answer.pause_seconds:
            handler.wfile.write(payload)


def _payload(answer: Answer) -> bytes:
    if answer.body is not None:
        return answer.body
    if answer.streamed:
        return encoded(list(stream_of(answer))[: answer.events_sent])
    message = {"type": "message", "role": "assistant", "content": answer.blocks}
    return json.dumps({**message, "stop_reason": answer.stop_reason, "usage": answer.usage}).encode()


@dataclass(frozen=True, slots=True)
class Finished:
    """What one process left behind."""

    code: int
    events: tuple[dict[str, Any], ...]
    stderr: str

    @property
    def end(self) -> dict[str, Any]:
        assert [event["type"] for event in self.events].index("end") == len(self.events) - 1
        return self.events[-1]

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [event for event in self.events if event["type"] == kind]

    @property
    def kinds(self) -> list[str]:
        return [event["type"] for event in self.events]


@dataclass(frozen=True, slots=True)
class Running:
    """A started process; `files` is the stem of its stdin, stdout and stderr."""

    process: subprocess.Popen[bytes]
    files: Path

    def events(self) -> tuple[dict[str, Any], ...]:
        """The events so far, all of them whole lines."""
        text = self.files.with_suffix(".out").read_bytes()
        assert not text or text.endswith(b"\n")
        return tuple(json.loads(line) for line in text.splitlines())

    def finish(self) -> Finished:
        """Wait for the end."""
        code = self.process.wait(60)
        return Finished(code, self.events(), self.files.with_suffix(".err").read_text())


@dataclass(frozen=True, slots=True)
class Agent:
    """The agent's command line with a home and a workspace of its own below `root`."""

    root: Path
    url: str
    key: str = "sk-test"

    @property
    def home(self) -> Path:
        return self.root / "home"

    @property
    def workspace(self) -> Path:
        path = self.root / "workspace"
        path.mkdir(exist_ok=True)
        return path

    def session_file(self, session: str) -> Path:
        return self.home / "sessions" / f"{session}.json"

    def skill(self, folder: str, text: str) -> Path:
        path = self.home / "skills" / folder / "SKILL.md"
        path.parent.mkdir(parents=True)
        path.write_text(text)
        return path

    def start(self, prompt: str | bytes, *flags: str, **environment: str) -> "Running":
        """Start a process; an environment variable that is empty is left out."""
        files = self.root / uuid4().hex
        files.with_suffix(".in").write_bytes(prompt if isinstance(prompt, bytes) else prompt.encode())
        base = {"PATH": "/usr/bin:/bin", "HOME": str(self.root), "ANTHROPIC_BASE_URL": self.url}
        variables = {**base, "ANTHROPIC_API_KEY": self.key, **environment}
        with (
            files.with_suffix(".in").open("rb") as stdin,
            files.with_suffix(".out").open("wb") as stdout,
            files.with_suffix(".err").open("wb") as stderr,
        ):
            process = subprocess.Popen(
                [*COMMAND, *flags],
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                cwd=self.workspace,
                env={name: value for name, value in variables.items() if value},
            )
        return Running(process, files)

    def run(self, prompt: str | bytes, *flags: str, **environment: str) -> Finished:
        """Run any command line to its end."""
        return self.start(prompt, *flags, **environment).finish()

    def flags(self, *, session: str | None = None, resume: str | None = None) -> tuple[str, ...]:
        which = ("--resume", resume) if resume else ("--session-id", session or str(uuid4()))
        return ("--home", str(self.home), "--model", "test-model", *which)

    def turn(self, prompt: str | bytes, *flags: str, session: str | None = None, resume: str | None = None) -> Finished:
        """Run one turn, in a new session unless told otherwise."""
        return self.run(prompt, *self.flags(session=session, resume=resume), *flags)


@contextmanager
def agent_with(root: Path, answer: Callable[[Request], Answer]) -> Iterator[tuple[Agent, Model]]:
    """An agent whose model answers by a function."""
    with Model(answer) as model:
        yield Agent(root, model.url), model


def until(condition: Callable[[], bool], what: str, seconds: float = 20.0) -> None:
    """Wait for something that another process does."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"waited {seconds} s for {what}"
        time.sleep(0.01)


def alive(pid: int) -> bool:
    """Whether a process runs; a zombie does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"
