"""A bug while a trial is judged costs the verdict and nothing else: what happened is kept, and judged again later."""

from __future__ import annotations

from skillup.execution.grading import grade, grade_unjudged
from skillup.results import Failure
from tests.support import Project


def test_the_conversation_stays_and_can_be_judged_again(project: Project) -> None:
    project.write("a.yaml", "{input: {prompt: go}, expect: {must_contain: [done]}, script: [{say: done}]}")
    done = project.run("a.yaml", "--agent", "demo")
    folder = done.folder()
    record, before = (folder / "record.json").read_bytes(), (folder / "result.json").read_bytes()
    bug = Failure(kind="internal", phase="judging", message="a bug in skillup: KeyError: 'x'", tail="Traceback …")
    result = grade_unjudged(folder, bug)
    assert (result.status, result.grading.code, result.error) == ("ERROR", "internal", bug)
    assert [turn.response for turn in result.turn_results] == ["done"]
    assert (folder / "record.json").read_bytes() == record
    assert grade(folder).status == "PASS"
    assert (folder / "result.json").read_bytes() == before
