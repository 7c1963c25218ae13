"""Who may import whom. Everything that is wrong in all files is told at once.

Imports point down only: a package may use those in the rows below its own, never one above or beside it. Each thing of
the outside world has one owner, so that there is one place to look at when it changes.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.support import REPOSITORY

PACKAGE = REPOSITORY / "skillup"

ROWS: tuple[frozenset[str], ...] = (
    frozenset({"__main__"}),
    frozenset({"cli", "schemas"}),
    frozenset({"reports", "execution"}),
    frozenset({"judging", "simulation", "engines", "conformance"}),
    frozenset({"modelserver", "modelclient"}),
    frozenset({"environments"}),
    frozenset({"loading"}),
    frozenset({"spec"}),
    frozenset({"results"}),
    frozenset({"transcript"}),
    frozenset({"errors", "masking"}),
)
"""The contract's layout, the top first."""

ALONE = frozenset({"builtin_agent", "fakecli"})
"""Programs of their own that are started as processes: they use nothing of ours but the version, and nobody imports
them."""

OWNERS: Mapping[str, tuple[str, ...]] = {
    "subprocess": ("environments/process.py", "environments/supervisor.py", *(f"{name}/" for name in sorted(ALONE))),
    "multiprocessing": (),
    "pty": (),
    "yaml": ("loading/",),
    "click": ("cli/",),
    "rich": ("reports/", "cli/"),
    "jsonpath_ng": ("spec/jsonpath.py", "judging/records.py"),
    "jsonschema": ("spec/jsonschemas.py",),
    "referencing": ("spec/jsonschemas.py",),
    "re2": ("spec/values.py",),
    "wcmatch": ("spec/values.py",),
    "http.server": ("modelserver/",),
    "pydantic_core": ("spec/problems.py", "loading/", "execution/store.py"),
    "pydantic_ai": ("modelclient/remote.py",),
    "openai": ("modelclient/remote.py",),
    "anthropic": ("modelclient/remote.py",),
    "xllamacpp": ("modelclient/local.py",),
}
"""Who may import what; a name stands for what is below it, too."""


def imported(tree: ast.Module) -> Iterator[tuple[int, str, tuple[str, ...]]]:
    """Every import, wherever it stands: (line, module, names taken out of it). Relative ones begin with a dot."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name, ()) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            yield node.lineno, module, tuple(alias.name for alias in node.names)


def is_below(module: str, parent: str) -> bool:
    return module == parent or module.startswith(f"{parent}.")


def row_of(package: str) -> int | None:
    return next((number for number, row in enumerate(ROWS) if package in row), None)


def violations(name: str, text: str) -> Iterator[str]:
    """What a file of the package (by its path below it) imports and may not."""
    own = Path(name).parts[0].removesuffix(".py")
    for line, module, names in imported(ast.parse(text)):
        said = f"skillup/{name}:{line}: "
        if module.startswith("."):
            yield f"{said}write the whole name instead of {module}"
        for thing, owners in OWNERS.items():
            taken = is_below(module, thing) or any(is_below(f"{module}.{one}", thing) for one in names)
            if taken and not any(name == owner or (owner.endswith("/") and name.startswith(owner)) for owner in owners):
                yield f"{said}{thing} belongs to {' and '.join(owners) or 'nobody'}"
        if module == "skillup" and names != ("__version__",):
            yield f"{said}`from skillup import {', '.join(names)}` hides what is meant: name the module"
        elif is_below(module, "skillup"):
            yield from (said + why for why in _edge(own, module))
        elif own in ALONE and module.partition(".")[0] not in sys.stdlib_module_names:
            yield f"{said}{own} uses the standard library only, not {module}"


def _edge(own: str, module: str) -> Iterator[str]:
    parts = module.split(".")
    if len(parts) == 1 or parts[1] == own:
        return
    other = parts[1]
    programs = ALONE & {own, other}
    if programs:
        yield f"{' and '.join(sorted(programs))}: a program of its own, so no import of {module} in {own}"
        return
    above, below = row_of(own), row_of(other)
    if above is None or below is None:
        yield f"{own if above is None else other} stands in no row of the layout"
    elif below < above:
        yield f"{own} may not import {module}: {other} is above it"
    elif below == above:
        yield f"{own} may not import {module}: {other} is beside it"


def test_imports_point_down_and_outside_things_have_one_owner() -> None:
    files = {str(path.relative_to(PACKAGE)): path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py")}
    assert len(files) > 60
    found = [line for name, text in sorted(files.items()) if name != "__init__.py" for line in violations(name, text)]
    assert not found, "\n" + "\n".join(found)


def test_every_package_stands_in_a_row() -> None:
    there = {path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    rows = {name for row in ROWS for name in row}
    assert there - {"__init__", "__pycache__"} - rows == ALONE


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("spec/case.py", "from skillup.loading.native import x", "spec may not import skillup.loading.native"),
        ("judging/rules.py", "import skillup.engines.base", "engines is beside it"),
        ("results.py", "from skillup.spec.case import Case", "spec is above it"),
        ("cli/run.py", "def f():\n    from skillup.schemas import x", "skillup/cli/run.py:2: cli may not import"),
        ("spec/case.py", "from skillup import errors", "hides what is meant"),
        ("spec/case.py", "from .values import x", "write the whole name"),
        ("new.py", "from skillup.errors import x", "new stands in no row"),
        ("engines/base.py", "import subprocess", "subprocess belongs to"),
        ("cli/run.py", "from subprocess import run", "subprocess belongs to"),
        ("reports/x.py", "import click.core", "click belongs to cli/"),
        ("loading/x.py", "from http import server", "http.server belongs to modelserver/"),
        ("builtin_agent/x.py", "import pydantic", "uses the standard library only"),
        ("builtin_agent/x.py", "from skillup.errors import x", "a program of its own"),
        ("engines/x.py", "from skillup.builtin_agent.loop import x", "a program of its own"),
        ("conformance/x.py", "from skillup.fakecli.plan import x", "fakecli: a program of its own"),
        ("fakecli/x.py", "from skillup.builtin_agent.loop import x", "a program of its own"),
        ("conformance/x.py", "from skillup.execution.plan import x", "execution is above it"),
    ],
)
def test_each_kind_of_violation_is_found(name: str, text: str, said: str) -> None:
    assert said in "\n".join(violations(name, text))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "cli/run.py",
            "import click, rich.console\nfrom skillup.execution.plan import x\nfrom skillup import __version__",
        ),
        ("execution/trial.py", "from skillup.judging.gates import ask\nfrom skillup.masking import x\nimport os, json"),
        ("environments/process.py", "import subprocess"),
        ("modelserver/server.py", "from http.server import HTTPServer"),
        ("builtin_agent/loop.py", "import subprocess\nfrom skillup.builtin_agent.tools import x"),
        ("builtin_agent/__main__.py", "from skillup import __version__"),
    ],
)
def test_what_is_allowed_is_not_complained_about(name: str, text: str) -> None:
    assert list(violations(name, text)) == []
