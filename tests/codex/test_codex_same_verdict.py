"""A case means on Codex what it means on the other engines, or says that Codex cannot show it; never a pass instead."""

from __future__ import annotations

from tests.claude.test_same_verdict import CASES, outcome_of
from tests.support import Finished, Project

ON_TOOLS_THAT_CODEX_HAS_NOT = {"write-read-edit", "edit-misses", "several-calls-in-one-reply"}
"""They have a rule on `read`; Codex reads with the shell."""


def test_codex_gives_the_verdicts_that_the_other_engines_give(claude: Project) -> None:
    for name, (_, text) in CASES.items():
        claude.write(f"cases/{name}.yaml", text)
    options = ("--agent", "codex", "--agent", "builtin", "--model", "scripted", "--parallelism", "4")
    done = claude.run("cases", *options)
    for name, (expected, _) in CASES.items():
        hidden = name in ON_TOOLS_THAT_CODEX_HAS_NOT
        assert (name, outcome_of(done, name, "codex")) == (name, "ERROR unobservable" if hidden else expected)
        if not hidden:
            assert states(done, name, "codex") == states(done, name, "builtin"), name


def states(done: Finished, case: str, agent: str) -> list[tuple[str, str]]:
    """Each check with its state."""
    return [(check.id, check.state) for check in done.trial(case, agent).grading.assertion_results]
