"""Timing of whole commands: wall time, and the CPU time of everything that they started and waited for."""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

SKILLUP = (sys.executable, "-m", "skillup")


@dataclass(frozen=True)
class Cost:
    """Seconds of one command: on the clock, and of the processors."""

    wall: float
    cpu: float


def plain_variables(root: Path, *, path: str = "") -> dict[str, str]:
    """Variables of a measured command: nothing of ours but a home and a trial root in the bench's own folder."""
    home = root / "home"
    home.mkdir(exist_ok=True)
    folders = [path, str(Path(sys.executable).parent), "/usr/local/bin", "/usr/bin", "/bin"]
    return {
        "PATH": os.pathsep.join(filter(None, folders)),
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "SKILLUP_TRIAL_ROOT": str(root / "trials"),
    }


def real_clis() -> str:
    """The folder of the pinned agent CLIs, installed if need be."""
    install = Path(__file__).resolve().parents[1] / "tests/tools/install.sh"
    return subprocess.run(["sh", str(install)], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def measure(argv: Sequence[str], *, cwd: Path, env: Mapping[str, str]) -> Cost:
    """Runs a command that must succeed, its output thrown away."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(argv, cwd=cwd, env=env, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    wall, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(argv)} failed:\n{done.stdout.decode()}\n{done.stderr.decode()}")
    return Cost(wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def spread(values: Sequence[float], unit: str = "s", scale: float = 1.0, digits: int = 3) -> str:
    """Median, minimum and maximum in words."""
    median, least, most = statistics.median(values) * scale, min(values) * scale, max(values) * scale
    return f"median {median:.{digits}f} {unit} (min {least:.{digits}f}, max {most:.{digits}f}, n={len(values)})"
