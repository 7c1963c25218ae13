"""The reports that are written as files into a run directory, by the name that suites and `--format` use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from skillup.reports.agentv import evaluations
from skillup.reports.junit import junit
from skillup.reports.taskresult import RecordOf, taskresult, taskresult_flat
from skillup.results import RunResult


@dataclass(frozen=True)
class Report:
    """The name of a report's file, and what it holds; `make` gets the records of trials, which it need not read."""

    file: str
    make: Callable[[RunResult, RecordOf], bytes]


REPORTS: Mapping[str, Report] = MappingProxyType(
    {
        "junit": Report("report.xml", lambda run, _: junit(run)),
        "taskresult": Report("results.jsonl", taskresult),
        "taskresult_flat": Report("results-flat.jsonl", taskresult_flat),
        "agentv": Report("agentv.jsonl", lambda run, _: evaluations(run)),
    }
)
"""`json` is not among them: `result.json` is always written."""
