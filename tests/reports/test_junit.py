"""JUnit XML of a real run: one test case a trial, each status in its own element, and nothing that XML cannot hold."""

from __future__ import annotations

from xml.etree.ElementTree import fromstring

from skillup.reports.junit import junit
from tests.support import Project

CASE = """
    input: {{prompt: go}}
    judge: {{type: rule_based, success: [{{output_contains: {{all: [fine]}}}}]}}
    script: [{{user: go, {script}}}]
"""


def test_each_status_has_its_element_and_the_counts_agree(project: Project) -> None:
    project.write("cases/good.yaml", CASE.format(script="say: fine"))
    project.write("cases/bad.yaml", CASE.format(script='say: "no \\x0b \\u0001 <tag> & more"'))
    project.write("cases/broken.yaml", CASE.format(script="say: fine, faults: [{status: 401}]"))
    done = project.run("cases", "--agent", "demo")
    suite = fromstring(junit(done.run)).find("testsuite")
    assert suite is not None
    assert [suite.get(key) for key in ("tests", "failures", "errors", "skipped")] == ["3", "1", "1", "0"]
    found = {case.get("name"): [child.tag for child in case if child.tag != "properties"] for case in suite}
    assert found == {"good": [], "bad": ["failure"], "broken": ["error"]}
    error = suite.find("testcase[@name='broken']/error")
    assert error is not None
    assert error.get("type") == "auth"


def test_a_run_writes_it_where_the_suite_or_the_command_line_asks(project: Project) -> None:
    project.write("cases/good.yaml", CASE.format(script="say: fine"))
    project.write(
        "eval.yaml",
        """
        schema_version: v1alpha1
        cases: {files: ["cases/*.yaml"]}
        report: {formats: [json, junit]}
        """,
    )
    asked = project.run("eval.yaml", "--agent", "demo")
    assert f"report: {asked.directory / 'report.xml'}" in asked.stdout
    (asked.directory / "report.xml").unlink()
    again = project.call("report", asked.directory, "--format", "junit")
    assert again.code == 0
    assert (asked.directory / "report.xml").read_bytes().startswith(b"<?xml")
