"""`skillup list-cases`: what a run would run, for people and for machines."""

from __future__ import annotations

import json

from tests.support import Project

CASES = {
    "close.yaml": """
        title: closes a ticket
        tag: functional_test
        tags: [tickets]
        input:
          turns:
            - {content: close it, post_condition: {must_contain_any: [sure]}}
            - {content: "yes"}
        expect: {must_contain: [closed]}
        """,
    "no-title.yaml": "input: {prompt: hi}\njudge: {type: none}\n",
}


def written(project: Project) -> Project:
    for name, text in CASES.items():
        project.write(f"cases/{name}", text)
    return project


def test_each_case_is_a_line_with_its_turns_and_checks(project: Project) -> None:
    done = written(project).call("list-cases")
    assert done.code == 0
    assert done.stdout.splitlines() == [
        "close       2 turns   2 checks  closes a ticket",
        "no-title     1 turn   0 checks",
    ]


def test_json_holds_the_tags_as_well(project: Project) -> None:
    done = written(project).call("list-cases", "--json")
    assert json.loads(done.stdout)[0] == {
        "id": "close",
        "title": "closes a ticket",
        "tags": ["functional_test", "tickets"],
        "turns": 2,
        "checks": 2,
    }


def test_a_title_cannot_write_to_the_terminal(project: Project) -> None:
    project.write("a.yaml", 'title: "\\e[2J gone"\ninput: {prompt: hi}\njudge: {type: none}\n')
    done = project.call("list-cases", "a.yaml")
    assert "\x1b" not in done.stdout
    assert "\\x1b[2J gone" in done.stdout


def test_faulty_cases_are_reported_and_not_listed(project: Project) -> None:
    written(project).write("cases/bad.yaml", "input: {promt: hi}\n")
    done = project.call("list-cases")
    assert (done.code, done.stdout) == (2, "")
    assert 'cases/bad.yaml:1:9: input.promt: unknown key "promt" (did you mean "prompt"?)' in done.stderr
