"""The failures that an orchestrator of agent CLIs must survive. Every one of them has a scenario; a test holds that."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

FIELD: Mapping[str, str] = MappingProxyType(
    {
        "inherited-stdin": "waits on the standard input that it got, though its prompt is there",
        "stdin-end": "does not begin before its standard input has ended",
        "never-exits": "has said its final word, and does not exit",
        "stalls": "stops in the middle of its stream, without a final word",
        "silent-work": "prints nothing for long while it works",
        "several-results": "prints several final words, of which the first is not its own",
        "background-lost": "reports success, and ends background tasks that were to go on",
        "orphans": "leaves processes behind, some of them in sessions of their own",
        "held-output": "leaves a process behind that keeps its output open",
        "new-id": "names another session when it resumes one",
        "lost-session": "has given an id, and has no conversation under it later",
        "both-session-flags": "refuses to be given a new id together with a session to resume",
        "neighbour-session": "has a newer session of somebody else in the same home",
        "resume-policy": "does not take its sandbox along when it resumes",
        "failure-as-success": "reports that the provider refused as a success, with exit code 0",
        "success-as-failure": "exits with 1 though its answer is fine",
        "empty-result": "has an empty final word though the agent spoke",
        "usage-limit": "waits in silence for hours until a usage limit is lifted",
        "long-lines": "prints lines of many megabytes",
        "mixed-lines": "prints two events on a line, or one inside of another",
        "cut-line": "is ended in the middle of a line",
        "trust-question": "asks whether the folder is trusted, and nobody answers",
        "no-repository": "refuses to work outside of a repository",
        "mcp-cancelled": "cancels the calls of MCP tools that nobody approves",
        "mcp-late": "asks the model before its MCP tools are there",
        "denied-tool": "ends well though a tool was refused",
        "self-update": "replaces itself by another version during a run",
        "shared-state": "damages its configuration when several of it run at once",
        "parent-variables": "behaves otherwise when it is started by an agent",
        "memory": "remembers or shortens conversations of its own accord",
    }
)
"""Failures that many people have met who drive agent CLIs without a terminal: their names, and what the CLI does."""

MORE: Mapping[str, str] = MappingProxyType(
    {
        "crash": "ends before it has said its final word",
        "no-answer": "exits in good order and has said nothing",
        "rubbish": "prints what is no event",
        "odd-bytes": "prints what is no text, or steers terminals",
        "flood": "prints more than fits into memory",
        "retries": "retries until the provider answers, or until it does not",
        "provider-refusal": "gives up because the provider refuses",
        "innocent-words": "answers with words that sound like a failure",
        "deaf": "ignores the signals that are to end it",
        "stranger": "answers in a session that is not the one that was asked for",
        "cumulative-usage": "counts the tokens of the whole conversation in every turn",
        "over-budget": "takes more money or tokens than it may, or does not say how much",
    }
)
"""Failures that were met or feared while this orchestrator was built."""

ROWS: Mapping[str, str] = MappingProxyType({**FIELD, **MORE})
"""All of them."""
