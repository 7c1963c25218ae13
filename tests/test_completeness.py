"""Everything that has a list is complete: what is on it exists, is tested and is documented. All gaps come at once."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any, get_args

import pytest
from pydantic import BaseModel

from skillup.cli import main
from skillup.engines import ENGINES
from skillup.errors import ERROR_KINDS, Fault
from skillup.judging.rules import EVALUATORS
from skillup.loading.agents import load_profile, shipped_folder
from skillup.loading.yamlfile import parse_yaml
from skillup.results import (
    AgentTotals,
    Assertion,
    CheckRole,
    CheckState,
    Grading,
    RunResult,
    Scope,
    Status,
    Totals,
    TrialRecord,
    TrialResult,
    TurnResult,
    TurnStatus,
    UnknownCause,
)
from skillup.schemas import READ, WRITTEN
from skillup.spec.case import Case
from skillup.spec.rule_items import ExitCode, RuleItem
from skillup.spec.rules import Rule
from skillup.transcript import CANONICAL_TOOLS, CallStatus, Message, Role, Usage
from tests.support import REPOSITORY

DOCS = REPOSITORY / "docs"
PACKAGE = REPOSITORY / "skillup"

LATER_KINDS = {
    "simulator": "the simulated user is a later issue",
}
"""Kinds of ERROR that nothing can raise yet, with the reason."""


def page(name: str) -> str:
    return (DOCS / f"{name}.md").read_text(encoding="utf-8")


def everywhere() -> str:
    pages = [*DOCS.glob("*.md"), REPOSITORY / "README.md"]
    return "\n".join(path.read_text(encoding="utf-8") for path in pages)


def code_words(text: str) -> set[str]:
    """Every word that stands in code, inline or in a block."""
    code = re.findall(r"```.*?```|`[^`\n]+`", text, re.DOTALL)
    return set(re.findall(r"[A-Za-z_][\w]*", " ".join(code)))


class TestEngines:
    def test_each_has_recordings_of_its_real_output(self) -> None:
        folder = REPOSITORY / "tests" / "engines" / "recordings"
        assert [name for name in ENGINES if not list((folder / name).glob("*.jsonl"))] == []

    def test_each_is_held_to_the_contract(self) -> None:
        """The contract's tests run over `ENGINES` itself."""
        text = (REPOSITORY / "tests" / "engines" / "test_contract.py").read_text(encoding="utf-8")
        assert 'parametrize("name", sorted(ENGINES))' in text
        assert "for engine in sorted(ENGINES) for name in names(engine)" in text

    def test_each_is_registered_under_its_name_and_has_a_row_in_the_docs(self) -> None:
        assert [name for name, engine in ENGINES.items() if engine.name != name] == []
        assert [name for name in ENGINES if f"\n| `{name}` |" not in page("agents")] == []

    def test_each_hides_canonical_tools_only(self) -> None:
        assert [name for name, engine in ENGINES.items() if engine.hidden_tools - set(CANONICAL_TOOLS)] == []


MAKERS = frozenset({"TrialError", "ModelCallError", "EngineFault", "Failure", "_fault", "_obstacle", "_undecided"})
"""What makes an error out of a kind."""


def raised_kinds() -> Iterator[str]:
    """Every error kind that the code names where it makes an error, or in a table or function of an engine."""
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            parts: Iterable[ast.AST | None] = ()
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in MAKERS:
                parts = chain(node.args, (keyword.value for keyword in node.keywords if keyword.arg == "kind"))
            elif "engines" in path.parts and isinstance(node, ast.Dict):
                parts = node.values
            elif {"engines", "errors.py"} & set(path.parts) and isinstance(node, (ast.Return, ast.Assign)):
                parts = (node.value,)
            for part in parts:
                ends = (part.body, part.orelse) if isinstance(part, ast.IfExp) else (part,)
                yield from (end.value for end in ends if isinstance(end, ast.Constant) and end.value in ERROR_KINDS)


def test_every_kind_of_error_is_raised_somewhere_or_comes_later() -> None:
    assert sorted(set(ERROR_KINDS) - set(raised_kinds()) - LATER_KINDS.keys()) == []
    assert sorted(LATER_KINDS.keys() & set(raised_kinds())) == [], "no longer later: take it off the list"


class TestRules:
    NAMES = sorted(set(RuleItem.model_fields) - {"exit_code"})

    def test_each_has_an_evaluator(self) -> None:
        kinds = {kind.kind for kind in Rule.__subclasses__() if hasattr(kind, "kind")}
        kinds |= {
            below.kind for kind in Rule.__subclasses__() for below in kind.__subclasses__() if hasattr(below, "kind")
        }
        assert kinds == EVALUATORS.keys()
        assert RuleItem.model_fields["exit_code"].annotation == ExitCode | None

    def test_each_has_a_row_in_the_docs(self) -> None:
        rows = [line for line in page("rules").splitlines() if line.startswith("| `")]
        named = {name for row in rows for name in re.findall(r"`(\w+)", row.split(" | ")[0])}
        assert [name for name in self.NAMES if name not in named] == []

    def test_each_key_of_each_rule_is_in_the_docs(self) -> None:
        words = code_words(page("rules"))
        models = [get_args(RuleItem.model_fields[name].annotation)[0] for name in self.NAMES]
        keys = {field.alias or key for model in models for key, field in model.model_fields.items()}
        assert sorted(keys - words) == []

    def test_each_canonical_tool_and_status_is_in_the_docs(self) -> None:
        assert sorted({*CANONICAL_TOOLS, *get_args(CallStatus)} - {"unknown"} - code_words(page("rules"))) == []

    def test_each_that_comes_later_is_in_the_docs(self) -> None:
        assert sorted(RuleItem.later - code_words(page("rules"))) == []

    def test_the_examples_are_valid(self) -> None:
        blocks = re.findall(r"^```yaml\n# (.+?)\n(.*?)^```", page("rules"), re.DOTALL | re.MULTILINE)
        assert len(blocks) == page("rules").count("```yaml")
        for kind, text in blocks:
            data = parse_yaml(text, kind).data
            if kind == "rules":
                for item in data:
                    RuleItem.model_validate(item)
            else:
                Case.model_validate({"id": "example", **data})


def specs(kind: type[Any]) -> Iterator[type[Any]]:
    for below in kind.__subclasses__():
        yield below
        yield from specs(below)


def test_every_key_that_comes_later_is_documented() -> None:
    words = code_words(everywhere())
    later = {key for model in specs(BaseModel) for key in getattr(model, "later", ())}
    assert len(later) > 20
    assert sorted(later - words) == []


def test_every_command_is_documented() -> None:
    commands = main.list_commands(None)  # type: ignore[arg-type] # it looks at no context
    assert {"run", "validate", "list-cases", "judge", "report", "doctor"} <= set(commands)
    text = everywhere()
    assert [name for name in commands if f"skillup {name}" not in text] == []
    missing = [name for name in commands if not (PACKAGE / "cli" / f"{name.replace('-', '_')}.py").exists()]
    assert missing == []


@pytest.mark.parametrize("name", sorted(path.stem for path in shipped_folder().glob("*.y*ml")))
def test_every_agent_profile_that_ships_loads_and_is_documented(name: str) -> None:
    loaded = load_profile(name, [shipped_folder()], ENGINES, Fault("test", 0, 0, "", ""))
    assert loaded.profile.engine in ENGINES
    assert f"| `{name}` |" in page("agents")


def test_every_word_of_a_verdict_is_explained() -> None:
    words = code_words(page("verdicts"))
    kinds = {name for name in ERROR_KINDS if f"\n| `{name}` |" not in page("verdicts")}
    assert sorted(kinds) == []
    assert sorted({*get_args(Status), *get_args(TurnStatus), *get_args(CheckState)} - words) == []


def test_every_field_of_a_result_is_documented() -> None:
    words = code_words(page("results"))
    models = (RunResult, Totals, AgentTotals, TrialResult, TurnResult, Grading, Assertion, Message, TrialRecord)
    fields = {name for model in models for name in model.model_fields}
    ours = {"skills", "started_at", "setup_ms", "case_id"}  # of the record, and plain from their names
    assert sorted(fields - words - ours) == []
    assert sorted({*get_args(UnknownCause), *get_args(CheckRole), *get_args(Scope), *get_args(Role)} - words) == []
    assert sorted(set(Usage.model_fields) - code_words(page("cases"))) == []


def test_every_schema_is_published() -> None:
    published = {path.name.removesuffix(".schema.json") for path in (DOCS / "schemas").iterdir()}
    assert published == {*WRITTEN, *READ}


def test_every_page_of_the_docs_is_in_the_index_and_every_link_leads_somewhere() -> None:
    index = page("index")
    missing = [path.name for path in DOCS.glob("*.md") if path.name != "index.md" and f"]({path.name})" not in index]
    assert missing == []
    broken = [
        f"{path.name}: {target}"
        for path in (*DOCS.glob("*.md"), REPOSITORY / "README.md", REPOSITORY / "CONTRIBUTING.md")
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", path.read_text(encoding="utf-8"))
        if not target.startswith(("http://", "https://")) and not (path.parent / target).exists()
    ]
    assert broken == []
