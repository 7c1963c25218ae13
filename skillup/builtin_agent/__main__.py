"""`python -P -m skillup.builtin_agent`: one turn; the prompt on stdin, events on stdout, an exit code."""

import argparse
import gc
import math
import os
import re
import sys
import traceback
import urllib.parse
from dataclasses import dataclass
from pathlib import Path

from skillup import __version__
from skillup.builtin_agent.anthropic import Messages
from skillup.builtin_agent.client import ModelApi, ModelClient
from skillup.builtin_agent.faults import ModelError
from skillup.builtin_agent.loop import (
    INSTRUCTIONS,
    Events,
    Interrupted,
    Interrupts,
    OutputError,
    Progress,
    Turn,
    system_prompt,
)
from skillup.builtin_agent.sessions import (
    SessionError,
    SkillError,
    find_skills,
    resume_session,
    start_session,
)
from skillup.builtin_agent.tools import TOOLS, Toolbox

NAME = "skillup-builtin-agent"
API: ModelApi = Messages()
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE | re.ASCII)


class _InvocationError(Exception):
    """The agent was called wrongly, nothing was done."""


class _KeyError(Exception):
    """There is no usable API key."""

    kind = "auth"


@dataclass(frozen=True, slots=True)
class _Ending:
    """How the turn ends: exit code, text for stderr, `reason` (None: no end event) and `error` of it."""

    code: int
    reason: str | None
    message: str | None = None
    error: dict[str, object] | None = None


def main() -> int:
    """Run one turn and return the exit code: 0 done, 1 error, 2 called wrongly, 128 + signal interrupted."""
    # A finalizer that the collector runs could swallow an interruption during a long wait; one turn is too short to
    # need it.
    gc.disable()
    interrupts = Interrupts()
    events = Events(sys.stdout.fileno(), interrupts.held)
    progress = Progress()
    try:
        interrupts.install()
        ending = _ending(_parser().parse_args(), interrupts, events, progress)
        interrupts.settle()
    except Interrupted as interruption:
        interrupts.settle()
        ending = _Ending(128 + interruption.number, "interrupted", str(interruption))
    try:
        if ending.reason is not None:
            _emit_end(events, progress, ending.reason, ending.error)
    except OutputError as error:
        ending = _Ending(1, None, str(error))
    if ending.message is not None:
        sys.stderr.write(f"{NAME}: {ending.message}\n")
    return ending.code


def _ending(arguments: argparse.Namespace, interrupts: Interrupts, events: Events, progress: Progress) -> _Ending:
    status = None
    try:
        return _Ending(0, _turn(arguments, interrupts, events, progress))
    except _InvocationError as error:
        return _Ending(2, None, f"{error}\nSee `python -m skillup.builtin_agent --help`.")
    except OutputError as error:
        return _Ending(1, None, str(error))
    except (_KeyError, SessionError, SkillError) as error:
        kind, message = error.kind, str(error)
    except ModelError as error:
        kind, status, message = error.kind, error.status, f"{error}{_hint(error.kind)}"
    except Exception as error:  # noqa: BLE001 - a fault of ours is told as one, its traceback goes to stderr
        traceback.print_exc()
        kind, message = "internal", f"{type(error).__name__}: {error}"
    return _Ending(1, "error", message, {"kind": kind, "status": status, "message": message})


def _hint(kind: str) -> str:
    """What to look at after a fault of the model."""
    match kind:
        case "auth":
            return f"; check {API.key_variable}"
        case "network":
            return f"; check {API.address_variable} and that the server is up"
        case "output":
            return f"; check that {API.address_variable} is the address of a {API.title}"
        case _:
            return ""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=NAME,
        description="Run one turn of a coding agent. The prompt is read from stdin; events go to stdout.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"{NAME} {__version__}")
    parser.add_argument("--home", type=Path, required=True, metavar="DIR", help="holds sessions/ and skills/")
    parser.add_argument("--model", required=True, metavar="NAME")
    session = parser.add_mutually_exclusive_group(required=True)
    session.add_argument("--session-id", type=_uuid, metavar="UUID", help="start a session under this id")
    session.add_argument("--resume", type=_uuid, metavar="UUID", help="go on with this session")
    parser.add_argument("--max-steps", type=_at_least_1, default=20, metavar="N", help="model replies (20)")
    parser.add_argument("--max-retries", type=_at_least_0, default=2, metavar="N", help="for each reply (2)")
    parser.add_argument("--system-prompt-file", type=Path, metavar="FILE", help="replaces the built-in instructions")
    parser.add_argument(
        "--timeout",
        type=_seconds,
        default=300.0,
        metavar="SECONDS",
        help="longest silence of the model (300)",
    )
    return parser


def _turn(arguments: argparse.Namespace, interrupts: Interrupts, events: Events, progress: Progress) -> str:
    instructions = INSTRUCTIONS if arguments.system_prompt_file is None else _text(arguments.system_prompt_file)
    base_url = _base_url()
    cwd = _cwd()
    prompt = _prompt()
    api_key = _api_key()
    home: Path = cwd / arguments.home
    skills = find_skills(home)
    resumed: str | None = arguments.resume
    session = resume_session(home, resumed) if resumed else start_session(home, arguments.session_id)
    events.emit(
        "session",
        session_id=session.session_id,
        resumed=session.resumed,
        model=arguments.model,
        cwd=str(cwd),
        tools=[tool["name"] for tool in TOOLS],
        skills=[skill.name for skill in skills],
        version=__version__,
    )
    # Commands do not get the key: what the model makes up, or is told by a file, cannot carry it away.
    environment = {name: value for name, value in os.environ.items() if name != API.key_variable}
    turn = Turn(
        session=session,
        client=ModelClient(API, base_url, api_key, arguments.timeout, f"{NAME}/{__version__}"),
        toolbox=Toolbox(cwd, environment, interrupts.held),
        events=events,
        progress=progress,
        model=arguments.model,
        system=system_prompt(instructions, cwd, skills),
        max_steps=arguments.max_steps,
        max_retries=arguments.max_retries,
    )
    return turn.run(prompt)


def _emit_end(events: Events, progress: Progress, reason: str, error: dict[str, object] | None) -> None:
    events.emit(
        "end",
        reason=reason,
        text=progress.text if reason in {"completed", "max_steps"} else None,
        stop_reason=progress.stop_reason,
        error=error,
        usage=progress.usage(),
        requests=progress.requests,
        steps=progress.steps,
    )


def _uuid(text: str) -> str:
    if not _UUID.fullmatch(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a UUID such as 00000000-0000-4000-8000-000000000000")
    return text.lower()


def _at_least_0(text: str) -> int:
    if not text.isascii() or not text.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of 0 or more")
    return int(text)


def _at_least_1(text: str) -> int:
    number = _at_least_0(text)
    if number == 0:
        raise argparse.ArgumentTypeError("at least 1 is needed")
    return number


def _seconds(text: str) -> float:
    seconds = float(text)
    if not math.isfinite(seconds) or seconds <= 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0")
    return seconds


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, ValueError) as error:
        raise _InvocationError(f"the system prompt {path} cannot be read: {error}") from error


def _base_url() -> str:
    url = os.environ.get(API.address_variable, "")
    try:
        parts = urllib.parse.urlsplit(url)
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is not a number, a broken IPv6 address
        usable = False
    # http.client would refuse blanks and control characters only when the request is sent.
    if not usable or not url.isascii() or not url.isprintable() or " " in url:
        raise _InvocationError(f"{API.address_variable} must be the http:// or https:// address of a {API.title}")
    return url


def _cwd() -> Path:
    try:
        return Path.cwd()
    except OSError as error:
        raise _InvocationError(f"the working directory is gone: {error}") from error


def _prompt() -> str:
    try:
        prompt = sys.stdin.buffer.read().decode("utf-8")
    except UnicodeDecodeError as error:
        raise _InvocationError(f"the prompt on stdin is not UTF-8: {error}") from error
    if not prompt.strip():
        raise _InvocationError("the prompt on stdin is blank")
    return prompt


def _api_key() -> str:
    key = os.environ.get(API.key_variable, "")
    if not key:
        raise _KeyError(f"{API.key_variable} is not set; give the key of the {API.title} in the environment")
    if not key.isascii() or not key.isprintable():
        raise _KeyError(f"{API.key_variable} holds a line break or another character that no key has; set it again")
    return key


if __name__ == "__main__":
    sys.exit(main())
