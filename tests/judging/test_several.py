"""Several judges: each decides for itself, the precedence between them, and the scores that they reach together."""

from __future__ import annotations

from pathlib import Path

import pytest

from skillup.environments.snapshot_log import SavedSnapshots
from skillup.judging.evidence import Evidence
from skillup.judging.several import judge_all
from skillup.loading.yamlfile import parse_yaml
from skillup.results import Criteria, CriterionResult, Ending, Failure, Status, TurnRecord, Verdict
from skillup.spec.case import Case
from skillup.transcript import Message, Usage
from tests.judging.judged import given, judge_model
from tests.judging.story import COMPLETED, read, record
from tests.support import Project

YES = "{id: %s, type: rule_based, success: [{output_contains: {all: [done]}}]%s}"
NO = "{id: %s, type: rule_based, success: [{output_contains: {all: [perfect]}}]%s}"
LATER = "{id: %s, type: rule_based, success: [{output_contains: {all: [x], turn: 2}}]%s}"
HOLE = "{id: %s, type: script, script_path: {path: a.sh}%s}"
"""The trial holds no result of this script: it cannot judge."""
ASKS = "{id: %s, type: rubric, criteria: [{id: one, text: a}, {id: two, text: b}]%s}"

SKIPPED = Ending(how="gate_skipped", turn=1, reason="the gate said no")
FAULT = Failure(kind="network", phase="conversation", message="the line is cut")


def verdict(
    *judges: str, more: str = "", said: dict[str, Criteria | None] | None = None, ending: Ending = COMPLETED
) -> Verdict:
    written = "".join(f"- {one}\n" for one in judges)
    text = f"id: x\ninput: {{turns: [{{content: go}}, {{content: on}}]}}\n{more}\njudges:\n{written}"
    whole = ending is COMPLETED
    turns = tuple(
        TurnRecord(
            number=number,
            content="go",
            status="completed" if whole or number == 1 else "skipped",
            response="all done" if whole or number == 1 else None,
            messages=(Message(role="user", turn=number, source="case", text="go"),),
        )
        for number in (1, 2)
    )
    failures = (FAULT,) if ending.how == "error" else ()
    made = record(turns=turns, turns_total=2, ending=ending, failures=failures)
    case = Case.model_validate(read(text))
    return judge_all(case, Evidence(made, SavedSnapshots(Path(), {}, {})), said or {})


def criteria(*scores: float) -> Criteria:
    results = tuple(
        CriterionResult(id=name, verdict="met" if score else "not_met", score=score, evidence=("done",), reason="r")
        for name, score in zip(("one", "two"), scores, strict=True)
    )
    return Criteria(revision=1, asked_at="", judge=None, results=results, calls=1, usage=Usage())


@pytest.mark.parametrize(
    ("judges", "ending", "status", "code"),
    [
        ((YES % ("a", ""), YES % ("b", "")), COMPLETED, "PASS", "all_met"),
        ((YES % ("a", ""), NO % ("b", "")), COMPLETED, "FAIL", "success"),
        ((NO % ("a", ""), HOLE % ("b", "")), COMPLETED, "ERROR", "judge"),
        ((HOLE % ("a", ""), YES % ("b", "")), COMPLETED, "ERROR", "judge"),
        ((YES % ("a", ", failure: [{output_contains: {all: [done]}}]"), YES % ("b", "")), COMPLETED, "FAIL", None),
        ((YES % ("a", ""), ASKS % ("b", "")), COMPLETED, "UNCHECKED", "partial"),
        ((NO % ("a", ""), ASKS % ("b", "")), COMPLETED, "FAIL", "success"),
        ((YES % ("a", ""), LATER % ("b", "")), SKIPPED, "SKIP", "gate"),
        ((NO % ("a", ", failure: [{tool_called: bash}]"), LATER % ("b", "")), SKIPPED, "FAIL", "success"),
        ((YES % ("a", ""), NO % ("b", "")), Ending(how="error", turn=2, reason="x"), "ERROR", "network"),
    ],
)
def test_error_outranks_fail_outranks_skip_outranks_pass(
    judges: tuple[str, ...], ending: Ending, status: Status, code: str | None
) -> None:
    found = verdict(*judges, ending=ending)
    assert (found.status, found.code) == (status, code or found.code), found.reason


def test_every_judge_is_reported_and_the_denominator_stays_whatever_happens() -> None:
    judges = (YES % ("a", ""), HOLE % ("b", ""), ASKS % ("c", ""))
    endings = (COMPLETED, SKIPPED, Ending(how="error", turn=2, reason="x"))
    found = [verdict(*judges, more="expect: {must_contain: [done]}", ending=ending) for ending in endings]
    ids = [[one.id for one in each.assertion_results] for each in found]
    assert ids[0] == [
        *("expect.must_contain[0]", "judges.a.success[0]", "judges.b.script"),
        *("judges.c.criteria.one", "judges.c.criteria.two"),
    ]
    assert ids[1] == ids[2] == ids[0]
    assert [one.summary.total for one in found] == [5, 5, 5]
    assert [[part.id for part in one.judges] for one in found[:1]] == [["a", "b", "c"]]


def test_what_fails_without_a_judge_is_fail_before_a_judge_that_cannot_judge() -> None:
    found = verdict(HOLE % ("a", ""), more="expect: {must_contain: [perfect]}")
    assert (found.status, found.code) == ("FAIL", "expect")


@pytest.mark.parametrize(
    ("combine", "judges", "status", "score"),
    [
        ("mean", (YES % ("a", ""), NO % ("b", ""), YES % ("c", "")), "FAIL", 2 / 3),
        ("mean", (YES % ("a", ", weight: 3"), NO % ("b", "")), "PASS", 0.75),
        ("{by: mean, pass_threshold: 0.5}", (YES % ("a", ""), NO % ("b", "")), "PASS", 0.5),
        ("{by: mean, pass_threshold: 0.5}", (YES % ("a", ""), NO % ("b", ", required: true")), "FAIL", 0.5),
        ("mean", (YES % ("a", ""), ASKS % ("asks", ", pass_threshold: 0.9")), "PASS", 0.75),
        ("min", (YES % ("a", ""), ASKS % ("asks", "")), "FAIL", 0.5),
        ("{by: min, pass_threshold: 0.5}", (YES % ("a", ""), ASKS % ("asks", "")), "PASS", 0.5),
        ("mean", (YES % ("a", ", weight: 99"), HOLE % ("b", "")), "ERROR", None),
    ],
)
def test_scores_are_combined(combine: str, judges: tuple[str, ...], status: Status, score: float | None) -> None:
    found = verdict(*judges, more=f"combine: {combine}", said={"asks": criteria(1, 0)})
    assert found.status == status, found.reason
    assert found.score == (None if score is None else pytest.approx(score))


def test_rules_that_say_no_are_0_whatever_the_criteria_reach() -> None:
    asks = ASKS % ("asks", ", success: [{output_contains: {all: [perfect]}}]")
    found = verdict(asks, more="combine: mean", said={"asks": criteria(1, 1)})
    assert (found.status, found.judges[0].score) == ("FAIL", 0.0)


def test_a_score_that_cannot_be_reached_any_more_is_fail() -> None:
    found = verdict(NO % ("a", ""), NO % ("b", ""), ASKS % ("asks", ""), more="combine: mean")
    assert (found.status, found.code, found.score) == ("FAIL", "score", None)
    assert found.reason == "the weighted mean of the judges, 0.33, is under 0.7: a 0.00, b 0.00, asks ?"


@pytest.mark.parametrize(
    ("written", "message"),
    [
        (f"judges: [{YES % ('a', '')}, {NO % ('a', '')}]", "judges[1].id: the id a is taken by judge 1"),
        (f"judge: {{type: none}}\njudges: [{YES % ('a', '')}]", "judges: `judge` and `judges` together"),
        ("judges: [{id: a, type: none}]", "judges[0].type: one of several judges that checks nothing"),
        (f"judges: [{YES % ('a', ', weight: 2')}]", "judges[0].weight: `weight` changes nothing where"),
        (f"combine: mean\njudges: [{YES % ('a', ', weight: 0')}]", "judges: the weights sum to 0"),
        (f"combine: median\njudges: [{YES % ('a', '')}]", "must be one of all_required, mean, min"),
        (f"combine: {{pass_threshold: 0.5}}\njudges: [{YES % ('a', '')}]", "combine.pass_threshold: where all must"),
        ("judges: [{id: a, type: rubric, criteria: [{text: x, turn: 3}]}]", "judges[0].criteria[0].turn: turn 3 does"),
        ("judges: [{id: a, type: rubric, criteria: [x], context: {attachments: [no.md]}}]", "attachments[0]: no.md"),
        ("judges: [{id: a, type: script, script_path: no.sh}]", "judges[0].script_path: there is no file no.sh"),
        (f"judges: [{YES.replace('type', 'tpye') % ('a', '')}]", 'judges[0].tpye: unknown key "tpye"'),
    ],
)
def test_what_is_not_clear_is_a_fault_at_its_place(project: Project, written: str, message: str) -> None:
    project.write("a.yaml", "input: {prompt: x}\n" + written)
    checked = project.call("validate", "a.yaml")
    assert checked.code == 2
    assert message in checked.stderr, checked.stderr


def test_a_list_of_the_case_replaces_the_suites_judge_and_a_judge_its_list(project: Project) -> None:
    suite = "{schema_version: v1alpha1, judges: [%s], cases: {files: [cases/*.yaml]}}" % (NO % ("of-the-suite", ""))
    project.write("eval.yaml", suite)
    script = "script: [{say: done}]"
    project.write("cases/none.yaml", f"{{input: {{prompt: x}}, {script}}}")
    project.write("cases/list.yaml", f"{{input: {{prompt: x}}, judges: [{YES % ('own', '')}], {script}}}")
    one = "judge: {type: rule_based, success: [{output_contains: {all: [done]}}]}"
    project.write("cases/one.yaml", f"{{input: {{prompt: x}}, {one}, {script}}}")
    done = project.run("eval.yaml", "--agent", "demo", "-v")
    said = {
        result.case_id: (result.status, [part.id for part in result.grading.judges]) for result in done.run.case_results
    }
    assert said == {"none": ("FAIL", ["of-the-suite"]), "list": ("PASS", ["own"]), "one": ("PASS", [])}
    assert "of-the-suite: FAIL, score 0.00: check not met" in " ".join(done.stdout.split())


def test_each_script_has_a_copy_of_its_own_and_each_model_its_own_answers(project: Project) -> None:
    project.write("one.sh", "rm a.txt; echo first")
    project.write("two.sh", "test -f a.txt; echo second")
    project.write(
        "a.yaml",
        """
        input: {prompt: x}
        context: {files: {a.txt: x}}
        judges:
          - {id: one, type: script, script_path: one.sh}
          - {id: two, type: script, script_path: two.sh}
          - {id: kind, type: rubric, criteria: [{id: c, text: kind}]}
          - {id: strict, type: rubric, model: other, criteria: [{id: c, text: strict}]}
        script: [{say: done}]
        """,
    )
    with judge_model({"c": given("met", "done")}) as route:
        variables = {"SKILLUP_JUDGE_MODEL": "openai/judge-1", "SKILLUP_JUDGE_BASE_URL": route.base_url}
        done = project.run("a.yaml", "--agent", "demo", env=variables)
        assert done.trial().status == "PASS", done.stdout + done.stderr
        assert len(route.requests) == 2
        before = {path: path.read_bytes() for path in done.directory.rglob("*") if path.is_file()}
        assert project.call("judge", done.directory).code == 0
        assert len(route.requests) == 2
    assert {path: path.read_bytes() for path in done.directory.rglob("*") if path.is_file()} == before
    assert [part.reasoning for part in done.trial().grading.judges[:2]] == ["first", "second"]
    assert (done.folder() / "judges" / "kind" / "criteria.json").exists()
    assert parse_yaml((done.folder() / "case.json").read_text(), "").data["judges"][3]["id"] == "strict"
