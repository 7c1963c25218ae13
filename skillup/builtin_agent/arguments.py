"""The agent's command line."""

import argparse
import math
import re
from pathlib import Path

from skillup import __version__
from skillup.builtin_agent.access import APIS
from skillup.builtin_agent.tools import TOOLS

NAME = "skillup-builtin-agent"
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE | re.ASCII)


def parser() -> argparse.ArgumentParser:
    """What the agent can be told; a fault in it ends the process with 2."""
    known = argparse.ArgumentParser(
        prog=NAME,
        description="Run one turn of a coding agent. The prompt is read from stdin; events go to stdout.",
        allow_abbrev=False,
    )
    known.add_argument("--version", action="version", version=f"{NAME} {__version__}")
    known.add_argument("--home", type=Path, required=True, metavar="DIR", help="holds sessions/ and skills/")
    known.add_argument("--model", required=True, metavar="NAME")
    known.add_argument("--api", choices=sorted(APIS), default="anthropic", help="what the model speaks (anthropic)")
    session = known.add_mutually_exclusive_group(required=True)
    session.add_argument("--session-id", type=_uuid, metavar="UUID", help="start a session under this id")
    session.add_argument("--resume", type=_uuid, metavar="UUID", help="go on with this session")
    known.add_argument("--max-steps", type=_at_least_1, default=20, metavar="N", help="model replies (20)")
    known.add_argument("--max-retries", type=_at_least_0, default=2, metavar="N", help="for each reply (2)")
    known.add_argument(
        "--tools", type=_own_tools, metavar="NAMES", help="which of its own tools, as bash,read; empty for none (all)"
    )
    known.add_argument("--history", type=Path, metavar="FILE", help="what was said before a new session begins")
    known.add_argument("--system-prompt-file", type=Path, metavar="FILE", help="replaces the built-in instructions")
    known.add_argument(
        "--timeout",
        type=_seconds,
        default=300.0,
        metavar="SECONDS",
        help="longest silence of the model (300)",
    )
    return known


def _own_tools(text: str) -> tuple[str, ...]:
    known = [tool["name"] for tool in TOOLS]
    names = tuple(name for name in text.split(",") if name)
    for name in names:
        if name not in known:
            raise argparse.ArgumentTypeError(f"there is no tool {name!r}; there are {', '.join(known)}")
    return names


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
