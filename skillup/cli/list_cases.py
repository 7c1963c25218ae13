"""`skillup list-cases`."""

from __future__ import annotations

import json
from pathlib import Path

import click

from skillup.cli.common import case_filters, expected_errors, suite_arguments


@click.command("list-cases")
@suite_arguments
@case_filters
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(
    paths: tuple[Path, ...],
    allowed: tuple[Path, ...],
    include: tuple[str, ...],
    exclude: tuple[str, ...],
    as_json: bool,
) -> None:
    """List the cases that a run would run: id, turns, checks, title."""
    with expected_errors():
        from skillup.loading.native import load_suites
        from skillup.loading.rendering import printable
        from skillup.loading.selection import select

        cases = [case for suite in select(load_suites(paths, allowed), include, exclude) for case in suite.cases]
    rows = [
        {
            "id": case.id,
            "title": case.title,
            "tags": [*([case.tag] if case.tag else []), *case.tags],
            "turns": len(case.turns),
            "checks": len(case.all_rules) + sum(turn.post_condition is not None for turn in case.turns),
        }
        for case in cases
    ]
    if as_json:
        click.echo(json.dumps(rows, indent=2, ensure_ascii=False))
        return
    width = max(len(str(row["id"])) for row in rows)
    for row in rows:
        numbers = f"{_count(row['turns'], 'turn'):>9}  {_count(row['checks'], 'check'):>9}"
        click.echo(f"{row['id']:<{width}}  {numbers}  {printable(str(row['title']))}".rstrip())


def _count(number: object, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
