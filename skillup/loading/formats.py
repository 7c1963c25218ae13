"""Which format a file of cases is in, told by its content. What reads those of other tools is elsewhere."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

from skillup.loading.document import Document
from skillup.loading.yamlfile import MAX_BYTES

_TASK_KEYS: Final = tuple(re.compile(rb'"%s"\s*:' % key) for key in (b"data", b"target", b"mock_tools"))
_EVAL_CASES: Final = re.compile(rb'"eval_cases"\s*:')


def is_agentv(document: Document) -> bool:
    """Whether a file is one of AgentV's: no file of the native format has `tests`."""
    return isinstance(document.data, dict) and "tests" in document.data and "cases" not in document.data


def is_eval_set(document: Document) -> bool:
    """Whether a file is one of ADK's, in today's form or the older one."""
    return (isinstance(document.data, dict) and "eval_cases" in document.data) or is_old_eval_set(document.data)


def is_old_eval_set(data: Any) -> bool:
    """Whether a file is of the form that ADK had before eval sets: a list of queries."""
    first = data[0] if isinstance(data, list) and data else None
    return isinstance(first, dict) and "query" in first and "data" not in first


def is_dataset(document: Document, path: Path) -> bool:
    """Whether a file holds tasks of the Agent Framework, or one task, and is no case."""
    data = document.data
    return path.suffix == ".json" and (isinstance(data, list) or (isinstance(data, dict) and "data" in data))


def looks_like_tasks(path: Path) -> bool:
    """Whether a JSON file somewhere in a folder is a data set, or an eval set of ADK's.

    A fault in it must not make it one file of many.
    """
    try:
        if path.stat().st_size > MAX_BYTES:
            return False
        content = path.read_bytes()
    except OSError:
        return False
    return all(key.search(content) for key in _TASK_KEYS) or _EVAL_CASES.search(content) is not None
