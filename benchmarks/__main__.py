"""Runs the benchmarks that are named, or all: `python -m benchmarks [NAME …]`."""

from __future__ import annotations

import argparse
import os
import platform
import tempfile
from pathlib import Path

from benchmarks import claude, journal, judge, sandbox, startup, turn, validate

BENCHMARKS = {
    "startup": startup.main,
    "validate": validate.main,
    "judge": judge.main,
    "turn": turn.main,
    "journal": journal.main,
    "claude": claude.main,
    "sandbox": sandbox.main,
}


def main() -> None:
    """Prints what machine this is, then a line or two for each benchmark."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks")
    parser.add_argument("names", nargs="*", choices=[*BENCHMARKS, []], metavar="NAME")
    chosen = parser.parse_args().names or list(BENCHMARKS)
    print(f"Python {platform.python_version()}, {platform.system()}, {os.cpu_count()} CPUs")
    for name in chosen:
        with tempfile.TemporaryDirectory(prefix="skillup-bench-", dir="/var/tmp") as folder:
            BENCHMARKS[name](Path(folder))


if __name__ == "__main__":
    main()
