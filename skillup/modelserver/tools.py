"""Canonical tool calls to each engine's own tools, by the names that a request offers.

A new engine adds rows to `OFFERED_TOOLS` and nothing else. Names are the engines' own, so a row serves every
engine that calls its tool so.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from skillup.modelserver.source import JsonObject, ToolCall, ToolOffer

Convert = Callable[[JsonObject, Path], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class OfferedTool:
    """One engine's tool: the canonical tool that it is, and how the canonical arguments become its own."""

    canonical: str
    convert: Convert


def _same(args: JsonObject, workspace: Path) -> dict[str, Any]:  # noqa: ARG001 - every row has one signature
    return dict(args)


def _renamed(**own_names: str) -> Convert:
    """Arguments under the engine's names; `file_path` is made absolute, as the tools that have it demand."""

    def convert(args: JsonObject, workspace: Path) -> dict[str, Any]:
        own = {own_names.get(name, name): value for name, value in args.items()}
        if "file_path" in own:
            own["file_path"] = str(workspace / str(own["file_path"]))
        return own

    return convert


def _subagent(args: JsonObject, workspace: Path) -> dict[str, Any]:  # noqa: ARG001 - every row has one signature
    return {
        "description": args.get("description", "scripted task"),
        "prompt": args["prompt"],
        "subagent_type": args.get("type", "general-purpose"),
    }


def _fetch(args: JsonObject, workspace: Path) -> dict[str, Any]:  # noqa: ARG001 - every row has one signature
    return {"url": args["url"], "prompt": args.get("prompt", "What does the page say?")}


def _todo_list(args: JsonObject, workspace: Path) -> dict[str, Any]:  # noqa: ARG001 - every row has one signature
    return {"todos": [{"content": args["text"], "activeForm": args["text"], "status": "pending"}]}


def _todo_item(args: JsonObject, workspace: Path) -> dict[str, Any]:  # noqa: ARG001 - every row has one signature
    return {"subject": args["text"], "description": args["text"]}


def _question(args: JsonObject, workspace: Path) -> dict[str, Any]:  # noqa: ARG001 - every row has one signature
    options = [{"label": label, "description": label} for label in args.get("options", ("yes", "no"))]
    question = {"question": args["question"], "header": "Question", "options": options, "multiSelect": False}
    return {"questions": [question]}


def _cat(args: JsonObject, workspace: Path) -> dict[str, Any]:  # noqa: ARG001 - every row has one signature
    return {"cmd": f"cat {shlex.quote(str(args['path']))}"}


def _patch_add(args: JsonObject, workspace: Path) -> dict[str, Any]:  # noqa: ARG001 - every row has one signature
    lines = str(args["content"]).removesuffix("\n").split("\n")
    return _patch(f"*** Add File: {args['path']}", [f"+{line}" for line in lines])


def _patch_update(args: JsonObject, workspace: Path) -> dict[str, Any]:
    """A patch replaces whole lines, so those around the text are read from the file, as a model would know them."""
    old, new = str(args["old"]), str(args["new"])
    try:
        text = (workspace / str(args["path"])).read_text(encoding="utf-8")
    except (OSError, ValueError):
        text = old
    at = max(text.find(old), 0)
    start = text.rfind("\n", 0, at) + 1
    end = text.find("\n", at + len(old))
    whole = text[start : len(text) if end < 0 else end] if old in text else old
    body = [
        *(f"-{line}" for line in whole.split("\n")),
        *(f"+{line}" for line in whole.replace(old, new, 1).split("\n")),
    ]
    return _patch(f"*** Update File: {args['path']}", ["@@", *body])


def _patch(header: str, body: Sequence[str]) -> dict[str, Any]:
    return {"input": "\n".join(["*** Begin Patch", header, *body, "*** End Patch"])}


OFFERED_TOOLS: Final[Mapping[str, tuple[OfferedTool, ...]]] = {
    # Claude Code
    "Bash": (OfferedTool("bash", _same),),
    "Read": (OfferedTool("read", _renamed(path="file_path")),),
    "Write": (OfferedTool("write", _renamed(path="file_path")),),
    "Edit": (OfferedTool("edit", _renamed(path="file_path", old="old_string", new="new_string")),),
    "Glob": (OfferedTool("glob", _same),),
    "Grep": (OfferedTool("grep", _same),),
    "LS": (OfferedTool("list", _same),),
    "WebFetch": (OfferedTool("web_fetch", _fetch),),
    "WebSearch": (OfferedTool("web_search", _same),),
    "Skill": (OfferedTool("skill", _renamed(name="skill")),),
    "Agent": (OfferedTool("subagent", _subagent),),
    "Task": (OfferedTool("subagent", _subagent),),
    "TodoWrite": (OfferedTool("todo", _todo_list),),
    "TaskCreate": (OfferedTool("todo", _todo_item),),
    "AskUserQuestion": (OfferedTool("ask_user", _question),),
    # the built-in agent
    "bash": (OfferedTool("bash", _same),),
    "read": (OfferedTool("read", _same),),
    "write": (OfferedTool("write", _same),),
    "edit": (OfferedTool("edit", _same),),
    # Codex: it has no tools for files but its patches, and reads with the shell
    "exec_command": (OfferedTool("bash", _renamed(command="cmd")), OfferedTool("read", _cat)),
    "apply_patch": (OfferedTool("write", _patch_add), OfferedTool("edit", _patch_update)),
}
"""Keyed by the name under which a request offers the tool."""


def own_call(tool: str, args: JsonObject, offers: Sequence[ToolOffer], workspace: Path) -> ToolCall | None:
    """The engine's own call for a canonical one, or None when the request offers no such tool.

    Args:
        tool: canonical name, or `mcp:<server>/<tool>`, whose arguments are passed as they are.
        args: canonical arguments; a relative `path` is relative to the workspace.
        offers: the tools of the request.
        workspace: absolute path of the agent's working folder.
    """
    if tool.startswith("mcp:"):
        server, _, name = tool.removeprefix("mcp:").partition("/")
        return raw_call(f"mcp__{server}__{name}", args, offers)
    for offer in offers:
        for row in OFFERED_TOOLS.get(offer.name, ()):
            if row.canonical == tool:
                return ToolCall(offer.name, row.convert(args, workspace))
    return None


def raw_call(name: str, args: JsonObject, offers: Sequence[ToolOffer]) -> ToolCall | None:
    """A call of an engine's tool by its own name, or None when the request does not offer it."""
    return ToolCall(name, args) if any(offer.name == name for offer in offers) else None
