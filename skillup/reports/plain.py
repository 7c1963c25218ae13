"""Texts of agents and users made safe for a terminal or a log: they may hold anything."""

from __future__ import annotations


def plain(text: str, limit: int | None = None) -> str:
    """A text on one line, blanks run together, without control characters, cut to a limit.

    Left out are, besides those that move a cursor, characters that turn the direction of a line around.
    """
    if limit is not None:
        text = text[: 10 * limit]  # enough to fill the limit; looking at megabytes to show a line takes a while
    line = " ".join("".join(character if character.isprintable() else " " for character in text).split())
    return line if limit is None or len(line) <= limit else line[: limit - 1] + "…"
