"""What a grader's program printed: scores, assertions, exit codes, and everything that is no answer."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from skillup.judging.judge import judge
from skillup.results import ProgramRecord, Verdict
from skillup.spec.case import Case
from tests.judging.story import Story

COMMAND = ("python3", "check.py")
ASSERTIONS = '[{"text": "a", "passed": true, "evidence": "seen"}, {"text": "b", "passed": false}]'

ANOTHER = "the trial holds no result of this program: it was run with another, or told something else"


def verdict(
    tmp_path: Path,
    *,
    story: Story | None = None,
    negate: bool = False,
    program: dict[str, Any] | None = None,
    **did: Any,
) -> Verdict:
    grader = {"name": "g", "program": program or {"command": list(COMMAND)}, "negate": negate}
    scoring = {"parts": [{"name": "turn-1", "turn": 1, "graders": [grader]}]}
    judged = {"type": "rule_based", "scoring": scoring}
    evidence = (story or Story(tmp_path).turn("hello")).evidence()
    record = {"timeout_seconds": 60.0, "exit_code": 0, "grader": "turn-1.g", "command": COMMAND, "files": {}, **did}
    programs = (ProgramRecord(**record),)
    evidence = replace(evidence, record=evidence.record.model_copy(update={"programs": programs}))
    return judge(Case.model_validate({"id": "a", "input": {"prompt": "x"}, "judge": judged}), evidence)


@pytest.mark.parametrize(
    ("did", "score"),
    [
        ({"output": '{"score": 0.25}'}, 0.25),
        ({"output": ' {"score": 1, "assertions": [], "details": {"x": 1}}\n'}, 1.0),
        ({"output": f'{{"assertions": {ASSERTIONS}}}'}, 0.5),
        ({"output": f'{{"score": 0.9, "assertions": {ASSERTIONS}}}', "errors": "a warning"}, 0.9),
        ({"output": "five pages"}, 1.0),
        ({"output": ""}, 1.0),
        ({"output": "[ok] five pages"}, 1.0),
        ({"output": "so many pages", "cut": True}, 1.0),
        ({"output": "[1/2] one page is missing", "exit_code": 1}, 0.0),
        ({"output": "two pages", "exit_code": 1}, 0.0),
    ],
)
def test_a_score(tmp_path: Path, did: dict[str, Any], score: float) -> None:
    found = verdict(tmp_path, **did)
    assert found.scores[0].score == score, found.reason
    assert found.status == ("PASS" if score >= 0.8 else "FAIL")
    (tmp_path / "b").mkdir()
    assert verdict(tmp_path / "b", negate=True, **did).scores[0].score == pytest.approx(1 - score)


@pytest.mark.parametrize(
    ("did", "why"),
    [
        ({"exit_code": 1, "errors": "Traceback: no such key"}, "the program ended with 1: Traceback: no such key"),
        ({"exit_code": 2, "output": '{"score": 1}'}, "the program ended with 2"),
        ({"exit_code": None, "signal": 11}, "the program was ended by signal 11"),
        ({"exit_code": 127, "errors": "not found"}, "the program was ended by exit code 127: not found"),
        ({"exit_code": None, "timed_out": True}, "the program did not end within 60 s"),
        (
            {"problem": "check.py has changed since the case was loaded"},
            "check.py has changed since the case was loaded",
        ),
        ({"output": '{"score": 1'}, "the program printed JSON that is not whole, or more than is kept"),
        ({"output": '[{"text": "a"', "cut": True}, "the program printed JSON that is not whole, or more than is kept"),
        ({"output": '["a"]'}, 'the program printed ["a"], and no object with a score'),
        ({"output": '{"score": 1.5}'}, "the program's score is 1.5, and no number from 0 to 1"),
        ({"output": '{"score": "1"}'}, 'the program\'s score is "1", and no number from 0 to 1'),
        ({"output": '{"score": true}'}, "the program's score is true, and no number from 0 to 1"),
        ({"output": '{"score": NaN}'}, "the program's score is NaN, and no number from 0 to 1"),
        ({"output": "{}"}, "the program gave neither a score nor assertions"),
        ({"output": '{"assertions": [{"text": "a", "passed": 1}]}'}, "`passed` of the program's assertions is true or"),
        ({"output": '{"assertions": ["a"]}'}, "the program's `assertions` are no list of objects"),
        ({"output": "0.3"}, "the program printed 0.3, and no object with a score"),
        ({"command": ("other",)}, ANOTHER),
        ({"config": {"least": 40}}, ANOTHER),
        ({"criteria": "be kind"}, ANOTHER),
        ({"expected_output": "42"}, ANOTHER),
        ({"cwd": "graders"}, ANOTHER),
    ],
)
def test_what_is_no_answer_is_an_error_and_never_0(tmp_path: Path, did: dict[str, Any], why: str) -> None:
    found = verdict(tmp_path, **did)
    assert (found.status, found.code, found.scores[0].score) == ("ERROR", "judge", None)
    assert why in found.reason
    assert found.error is not None
    assert "`programs` and `commands` in record.json have what was printed" in found.error.hint


def test_an_answer_holds_for_a_configuration_of_the_same_types_alone(tmp_path: Path) -> None:
    program = {"command": list(COMMAND), "config": {"least": 1, "names": ["a"]}}
    assert verdict(tmp_path, program=program, config={"least": 1, "names": ["a"]}).status == "PASS"
    (tmp_path / "b").mkdir()
    assert verdict(tmp_path / "b", program=program, config={"least": True, "names": ["a"]}).code == "judge"


def test_its_assertions_are_those_of_the_part(tmp_path: Path) -> None:
    (part,) = verdict(tmp_path, output=f'{{"score": 0.9, "assertions": {ASSERTIONS}}}').scores
    assert [(one.text, one.passed, one.evidence) for one in part.assertions] == [("a", True, "seen"), ("b", False, "")]
    assert part.scores[0].assertions == part.assertions
    assert part.scores[0].type == "program"


def test_a_no_on_a_turn_that_was_cut_is_not_certain(tmp_path: Path) -> None:
    cut = Story(tmp_path).turn("so far", status="timed_out")
    found = verdict(tmp_path, story=cut, output='{"score": 0}')
    assert found.assertion_results[0].cause == "incomplete"
