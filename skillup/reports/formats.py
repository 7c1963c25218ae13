"""The reports that are written as files into a run directory, by the name that suites and `--format` use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from skillup.reports.junit import junit
from skillup.results import RunResult

REPORTS: Mapping[str, tuple[str, Callable[[RunResult], bytes]]] = MappingProxyType({"junit": ("report.xml", junit)})
"""File name and maker of each. `json` is not among them: `result.json` is always written."""
