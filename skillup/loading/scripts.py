"""The script of a judge, looked at when its case is loaded: can it be started, and what does it hold?"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from skillup.spec.script_judge import starter

MAX_BYTES = 64 * 1024 * 1024
"""Of one script; compiled programs are large, and each trial makes a copy."""

_WHOLE_MESSAGE = re.compile(rb"EVAL_FINAL_MESSAGE(?![A-Za-z0-9_])")
"""A variable of the public format that we never set."""


def script_hash(path: Path, written: str, root: Path) -> str | tuple[str, str]:
    """The SHA-256 of a script; message and hint when it could not be run, or would not judge what it means to."""
    if not path.is_file():
        what = f"{written} is no file" if path.exists() else f"there is no file {written}"
        return what, f"paths are relative to {root}"
    try:
        data = path.read_bytes() if path.stat().st_size <= MAX_BYTES else None
    except OSError as error:
        return f"{written} cannot be read: {error.strerror}", ""
    if data is None:
        return f"{written} has more than {MAX_BYTES:,} bytes", "let a small script start it"
    if not data.strip():
        return f"{written} is empty, so it would say yes to everything", ""
    if starter(data, path.name) is None:
        return f"nothing says how to start {written}", "begin it with a line such as `#!/usr/bin/env python3`"
    if _WHOLE_MESSAGE.search(data):
        hint = "read the file that EVAL_FINAL_MESSAGE_PATH names: a variable cannot hold every answer"
        return f"{written} reads EVAL_FINAL_MESSAGE, which is never set", hint
    return hashlib.sha256(data).hexdigest()
