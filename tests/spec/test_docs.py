"""The pages on cases, judges and agents name every key, and every example in them can be used as it stands."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
from pydantic import BaseModel

from skillup.engines import ENGINES
from skillup.loading.yamlfile import parse_yaml
from skillup.spec.agent import AgentProfile
from skillup.spec.case import Case, Turn
from skillup.spec.judge import ExpectedContent
from skillup.spec.rule_items import RuleItem
from skillup.spec.script import ScriptEntry
from skillup.spec.suite import SuiteFile
from skillup.spec.values import Spec
from tests.support import Project

DOCS = Path(__file__).resolve().parents[2] / "docs"
CASES = (DOCS / "cases.md").read_text(encoding="utf-8")
JUDGES = (DOCS / "judges.md").read_text(encoding="utf-8")
AGENTS = (DOCS / "agents.md").read_text(encoding="utf-8")
DEPARTURES = (DOCS / "departures.md").read_text(encoding="utf-8")


def blocks(text: str) -> list[tuple[str, str]]:
    """The YAML examples of a page, each with what its first line says that it is."""
    found = re.findall(r"^```yaml\n# ([^\n]+)\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    assert len(found) == text.count("```yaml"), "every example says in its first line what it is"
    return found


def validated(kind: str, text: str) -> Any:
    data = parse_yaml(text, kind).data
    if kind == "eval.yaml":
        return SuiteFile.model_validate(data)
    if kind == "a turn":
        return Turn.model_validate(data)
    if kind.startswith("agents/"):
        return AgentProfile.model_validate(data)
    return Case.model_validate({"id": "example", **data})


@pytest.mark.parametrize(("kind", "text"), [*blocks(CASES), *blocks(JUDGES), *blocks(AGENTS)])
def test_every_example_is_valid(kind: str, text: str) -> None:
    validated(kind, text)


def test_the_example_at_the_top_runs_as_it_stands(project: Project) -> None:
    for name, text in blocks(CASES)[:2]:
        project.write(name, text)
    project.write("SKILL.md", "---\nname: tickets\ndescription: Opens and closes tickets.\n---\n")
    project.write("fixtures/desk/README.md", "a desk")
    assert project.call("validate").stdout == "1 case in order\n"
    done = project.run()
    assert done.code == 0, done.stdout
    assert done.trial().status == "PASS"


def models_below(model: type[BaseModel]) -> Iterator[type[Spec]]:
    """The models of all mappings that a file of this kind may hold, without those that have pages of their own."""
    todo: list[Any] = [model]
    seen: set[Any] = {RuleItem, ScriptEntry}
    while todo:
        hint = todo.pop()
        if isinstance(hint, type) and issubclass(hint, Spec):
            if hint not in seen:
                seen.add(hint)
                yield hint
                todo += [field.annotation for field in hint.model_fields.values()]
        else:
            todo += get_args(hint)


def undocumented(model: type[BaseModel], text: str) -> list[str]:
    prose = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    words = set(re.findall(r"[A-Za-z_]\w*", " ".join(re.findall(r"`([^`\n]+)`", prose))))
    wanted: set[str] = set()
    for found in models_below(model):
        if found is not ExpectedContent:
            wanted |= {field.alias or name for name, field in found.model_fields.items()} | found.later
            wanted |= {value for values in found.later_values.values() for value in values}
    return sorted(wanted - words)


def test_every_key_of_suites_and_cases_is_documented() -> None:
    assert not undocumented(SuiteFile, CASES + JUDGES)
    assert not undocumented(Case, CASES + JUDGES)


def test_every_key_of_profiles_and_every_setting_is_documented() -> None:
    assert not undocumented(AgentProfile, AGENTS)
    for name, engine in ENGINES.items():
        table = AGENTS.partition(f"| `{name}` | meaning |")[2].partition("\n\n")[0]
        rows = re.findall(r"^\| `(\w+)`", table, re.MULTILINE)
        assert sorted(rows) == sorted(engine.settings.model_fields), name
        row = next(line for line in AGENTS.splitlines() if line.startswith(f"| `{name}` |") and line.count(" | ") == 3)
        assert [
            variable for variable in engine.provider(engine.settings()).credentials if f"`{variable}`" not in row
        ] == []


def test_every_departure_names_a_test_that_exists() -> None:
    rows = [line for line in DEPARTURES.splitlines() if line.startswith("| ") and "tests/" in line]
    assert len(rows) >= 15
    for row in rows:
        path, _, name = row.rstrip("| ").rpartition("`")[0].rpartition("`")[2].partition("::")
        source = (DOCS.parent / path).read_text(encoding="utf-8")
        assert f"def {name}(" in source, row


def test_every_row_of_departures_gives_what_the_format_does_what_we_do_and_why() -> None:
    rows = [line for line in DEPARTURES.splitlines() if line.startswith("| ") and "tests/" in line]
    assert {row.count(" | ") for row in rows} == {3}
