"""JUnit XML, as CI systems read it: FAIL is a failure, ERROR an error, SKIP and UNCHECKED are skipped.

One `testsuite` an agent, and one for those of its trials that ran as single-shot fallback; one `testcase` a trial
(`classname` the suite, `name` the case). Scores and rates stand as properties of the test case, where viewers that know
nothing of them pass over them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from skillup.judging.totals import is_fallback
from skillup.reports.names import trial_names
from skillup.results import RunResult, TrialResult

_ILLEGAL = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML 1.0 cannot hold, in any form; answers of models hold it."""


def junit(run: RunResult) -> bytes:
    """The run as one XML document, UTF-8."""
    root = Element("testsuites", name=_legal(run.suite))
    for (agent, fallback), group in groupby(sorted(run.case_results, key=_group), key=_group):
        _suite(root, f"{run.suite} [{agent}{', single-shot fallback' if fallback else ''}]", list(group), run)
    indent(root)
    text = tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'.encode()


def _group(result: TrialResult) -> tuple[str, bool]:
    """Trials with the same answer are counted together."""
    return result.agent.name, is_fallback(result)


def _suite(root: Element, name: str, results: Sequence[TrialResult], run: RunResult) -> None:
    statuses = [result.status for result in results]
    suite = SubElement(
        root,
        "testsuite",
        name=_legal(name),
        tests=str(len(results)),
        failures=str(statuses.count("FAIL")),
        errors=str(statuses.count("ERROR")),
        skipped=str(statuses.count("SKIP") + statuses.count("UNCHECKED")),
        time=f"{sum(result.duration_ms for result in results) / 1000:.3f}",
        timestamp=run.start_time,
    )
    for trial, result in zip(trial_names(results), results, strict=True):
        _case(suite, trial, result, run)


def _case(suite: Element, name: str, result: TrialResult, run: RunResult) -> None:
    case = SubElement(
        suite,
        "testcase",
        classname=_legal(run.suite),
        name=_legal(name),
        time=f"{result.duration_ms / 1000:.3f}",
    )
    summary = result.grading.summary
    values = {"agent": result.agent.name, "engine": result.agent.engine, "continuity": result.continuity}
    values["execution_mode"] = result.execution_mode
    values |= {"checks.passed": str(summary.passed), "checks.total": str(summary.total)}
    values |= {"attempts": str(result.attempts)} if result.attempts > 1 else {}
    values |= {"best_of_n": str(result.best_of_n)} if result.best_of_n else {}
    properties = SubElement(case, "properties")
    for key, value in values.items():
        SubElement(properties, "property", name=key, value=_legal(value))
    grading = result.grading
    kind = {"FAIL": "failure", "ERROR": "error", "SKIP": "skipped", "UNCHECKED": "skipped"}.get(result.status)
    if kind is not None:
        found = SubElement(case, kind, message=_legal(grading.reason))
        if kind != "skipped":
            found.set("type", grading.code)
        found.text = _legal("\n".join(_details(result)))


def _details(result: TrialResult) -> list[str]:
    lines = []
    for check in result.grading.assertion_results:
        mark = "unknown" if check.skipped else "met" if check.passed else "NOT MET"
        lines.append(f"{mark}: {check.text}: {check.evidence}")
    if result.error is not None:
        lines += [f"{result.error.kind}: {result.error.message}", result.error.hint, result.error.tail]
    return [line for line in lines if line]


def _legal(text: str) -> str:
    return _ILLEGAL.sub("\ufffd", text)
