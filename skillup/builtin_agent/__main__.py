"""`python -P -m skillup.builtin_agent`: one turn; the prompt on stdin, events on stdout, an exit code."""

import argparse
import gc
import sys
import traceback
from dataclasses import dataclass
from pathlib import Path

from skillup import __version__
from skillup.builtin_agent.access import (
    APIS,
    InvocationError,
    MissingKeyError,
    api_key,
    base_url,
    hint,
    remote_tools,
    without_keys,
)
from skillup.builtin_agent.arguments import NAME, parser
from skillup.builtin_agent.client import ModelClient
from skillup.builtin_agent.faults import ModelError
from skillup.builtin_agent.loop import (
    INSTRUCTIONS,
    OTHER_INSTRUCTIONS,
    Events,
    Interrupted,
    Interrupts,
    OutputError,
    Progress,
    Turn,
    system_prompt,
)
from skillup.builtin_agent.remote import RemoteToolError
from skillup.builtin_agent.sessions import (
    SessionError,
    SkillError,
    find_skills,
    read_history,
    resume_session,
    start_session,
)
from skillup.builtin_agent.tools import TOOLS, Toolbox


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
        ending = _ending(parser().parse_args(), interrupts, events, progress)
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
    status = retry_after = None
    try:
        return _Ending(0, _turn(arguments, interrupts, events, progress))
    except InvocationError as error:
        return _Ending(2, None, f"{error}\nSee `python -m skillup.builtin_agent --help`.")
    except OutputError as error:
        return _Ending(1, None, str(error))
    except (MissingKeyError, RemoteToolError, SessionError, SkillError) as error:
        kind, message = error.kind, str(error)
    except ModelError as error:
        kind, status, message = error.kind, error.status, f"{error}{hint(APIS[arguments.api], error.kind)}"
        retry_after = error.retry_after
    except Exception as error:  # noqa: BLE001 - a fault of ours is told as one, its traceback goes to stderr
        traceback.print_exc()
        kind, message = "internal", f"{type(error).__name__}: {error}"
    told: dict[str, object] = {"kind": kind, "status": status, "message": message, "retry_after": retry_after}
    return _Ending(1, "error", message, told)


def _turn(arguments: argparse.Namespace, interrupts: Interrupts, events: Events, progress: Progress) -> str:
    chosen = None if arguments.system_prompt_file is None else _text(arguments.system_prompt_file)
    api = APIS[arguments.api]
    address = base_url(api)
    cwd = _cwd()
    prompt = _prompt()
    key = api_key(api)
    home: Path = cwd / arguments.home
    skills = find_skills(home)
    resumed: str | None = arguments.resume
    if resumed:
        session = resume_session(home, resumed)
    else:
        before = read_history(cwd / arguments.history) if arguments.history else ()
        session = start_session(home, arguments.session_id, before)
    toolbox = _toolbox(arguments, cwd, interrupts)
    events.emit(
        "session",
        session_id=session.session_id,
        resumed=session.resumed,
        model=arguments.model,
        cwd=str(cwd),
        tools=[tool["name"] for tool in toolbox.offers],
        skills=[skill.name for skill in skills],
        version=__version__,
    )
    turn = Turn(
        session=session,
        client=ModelClient(api, address, key, arguments.timeout, f"{NAME}/{__version__}"),
        toolbox=toolbox,
        events=events,
        progress=progress,
        model=arguments.model,
        system=system_prompt(chosen or _instructions(toolbox), cwd if toolbox.own else None, skills),
        max_steps=arguments.max_steps,
        max_retries=arguments.max_retries,
    )
    return turn.run(prompt)


def _toolbox(arguments: argparse.Namespace, cwd: Path, interrupts: Interrupts) -> Toolbox:
    """Its own tools where nobody else answers any, else those that it is told to offer besides."""
    remote = remote_tools(arguments.timeout)
    every = () if remote else tuple(tool["name"] for tool in TOOLS)
    own = every if arguments.tools is None else arguments.tools
    return Toolbox(cwd, without_keys(), interrupts.held, own, remote)


def _instructions(toolbox: Toolbox) -> str:
    usual = [tool["name"] for tool in toolbox.offers] == [tool["name"] for tool in TOOLS] and toolbox.remote is None
    return INSTRUCTIONS if usual else OTHER_INSTRUCTIONS


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


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, ValueError) as error:
        raise InvocationError(f"the system prompt {path} cannot be read: {error}") from error


def _cwd() -> Path:
    try:
        return Path.cwd()
    except OSError as error:
        raise InvocationError(f"the working directory is gone: {error}") from error


def _prompt() -> str:
    try:
        prompt = sys.stdin.buffer.read().decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvocationError(f"the prompt on stdin is not UTF-8: {error}") from error
    if not prompt.strip():
        raise InvocationError("the prompt on stdin is blank")
    return prompt


if __name__ == "__main__":
    sys.exit(main())
