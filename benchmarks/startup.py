"""How long `skillup --version` takes, warm."""

from __future__ import annotations

from pathlib import Path

from benchmarks.measure import SKILLUP, measure, plain_variables, spread

ROUNDS = 20


def main(folder: Path) -> None:
    """Prints the spread beside that of an interpreter that does nothing."""
    env = plain_variables(folder)
    for argv in ((*SKILLUP, "--version"), (SKILLUP[0], "-c", "pass")):
        measure(argv, cwd=folder, env=env)
        walls = [measure(argv, cwd=folder, env=env).wall for _ in range(ROUNDS)]
        print(f"startup: {' '.join(argv[1:])}: {spread(walls, 'ms', 1000, 0)}")
