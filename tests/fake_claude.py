"""Programs in place of Claude Code: they speak its stream-json and do what the real one does only on a bad day."""

from __future__ import annotations

import sys
import textwrap

from tests.support import Project

PRELUDE = """\
#!{python}
import json, os, signal, subprocess, sys, time

if "--version" in sys.argv:
    print("0.0.0 (fake)")
    sys.exit()
FLAG = "--resume" if "--resume" in sys.argv else "--session-id"
SESSION = sys.argv[sys.argv.index(FLAG) + 1]
PROMPT = sys.stdin.read()


def raw(data):
    view = memoryview(data)
    while view:
        view = view[os.write(1, view):]


def line(event):
    return json.dumps({{"session_id": SESSION, **event}}).encode()


def say(event):
    raw(line(event) + b"\\n")


def assistant(*blocks):
    return {{"type": "assistant", "message": {{"role": "assistant", "content": list(blocks)}}}}


def text(words):
    return {{"type": "text", "text": words}}


def call(command, identity="c1"):
    return {{"type": "tool_use", "id": identity, "name": "Bash", "input": {{"command": command}}}}


def returned(words, identity="c1"):
    block = {{"type": "tool_result", "tool_use_id": identity, "content": words}}
    return {{"type": "user", "message": {{"role": "user", "content": [block]}}}}


def result(words, cost=0.01, tokens=100):
    model = {{"inputTokens": tokens, "outputTokens": 10, "costUSD": cost}}
    return {{"type": "result", "subtype": "success", "is_error": False, "result": words,
            "total_cost_usd": cost, "modelUsage": {{"fake": model}}}}


say({{"type": "system", "subtype": "init", "model": "fake", "tools": ["Bash"]}})
"""


def fake_claude(project: Project, name: str, body: str, profile: str = "") -> str:
    """An agent whose CLI runs `body` (Python, after `PRELUDE`) in each turn; its name."""
    script = project.write(f"bin/{name}", PRELUDE.format(python=sys.executable) + textwrap.dedent(body))
    script.chmod(0o755)
    project.write(
        f"agents/{name}.yaml",
        f"engine: claude_code\nmodel: scripted\nsettings: {{binary: ../bin/{name}}}\n{textwrap.dedent(profile)}",
    )
    return name
