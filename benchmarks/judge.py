"""How long `skillup judge` takes for 1,000 saved trials of three turns and fourteen rules, and how much memory."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.measure import SKILLUP, plain_variables, spread

TRIALS = 1000
ROUNDS = 3
MOST_SECONDS, MOST_MEGABYTES = 10, 300

_CASE = """\
input:
  turns:
    - {role: user, content: make a ticket, post_condition: {must_contain_any: ["T-"]}}
    - {role: user, content: work on it}
    - {role: user, content: close it}
context: {repo_fixture: app}
judge:
  type: rule_based
  success:
    - output_contains: {all: [closed]}
    - output_matches: {any: ['T-[0-9]+'], turn: 1}
    - tool_called: {name: bash, args: {command: {matches: 'echo T-'}}, count: {min: 1, max: 9}}
    - tool_order: [bash, [write, edit], bash]
    - tools_only: [bash, write, read]
    - no_repeated_calls: {max: 3}
    - file_contains: {path: tickets.txt, content: T-7}
    - file_matches: {path: src/m1.py, pattern: 'def f[0-9]+'}
    - json_path: {source: {file: out.json}, path: '$.rows[*].n', min: 3}
    - json_schema: {source: {file: out.json}, schema: {type: object, required: [rows]}}
    - workspace_changed: {created: [tickets.txt, out.json], unchanged: ['src/**']}
    - max_tokens: 1000000
  failure:
    - output_matches: {any: ['(?i)cannot']}
    - files_exist: ['**/*.log']
script:
  - user: make a ticket
    replies:
      - calls: [{tool: bash, args: {command: "echo T-7 > tickets.txt; seq 1 400"}}]
      - say: "Created T-7"
  - user: work on it
    replies:
      - calls:
          - {tool: write, args: {path: out.json, content: '{"rows": [{"n": 1}, {"n": 3}]}'}}
          - {tool: bash, args: {command: "echo more; cat out.json"}}
      - say: done
  - {user: close it, say: T-7 is closed}
"""


def main(folder: Path) -> None:
    """Runs one trial, saves it a thousand times, judges them all, and holds the figures against what is promised."""
    env = plain_variables(folder)
    (folder / "cases" / "app" / "src").mkdir(parents=True)
    for number in range(200):
        (folder / "cases" / "app" / "src" / f"m{number}.py").write_text(f"def f{number}():\n    return {number}\n" * 20)
    (folder / "cases" / "ticket.yaml").write_text(_CASE)
    run = folder / "run"
    argv = (*SKILLUP, "run", "cases", "--agent", "demo", "--output-dir", str(run), "--keep", "none")
    subprocess.run(argv, cwd=folder, env=env, check=True, capture_output=True)
    _multiply(run)
    costs = [_judge(run, folder, env) for _ in range(ROUNDS)]
    walls, memory = [seconds for seconds, _ in costs], max(megabytes for _, megabytes in costs)
    print(f"judge: {TRIALS} trials: {spread(walls, digits=2)}, {memory:.0f} MB at most")
    assert max(walls) < MOST_SECONDS, "slower than promised"
    assert memory < MOST_MEGABYTES, "larger than promised"


def _multiply(run: Path) -> None:
    """Makes a run of one trial one of a thousand, each with files of its own."""
    manifest = json.loads((run / "run.json").read_text())
    (first,) = manifest["trials"]
    names = [first.replace("trial-1", f"trial-{number}") for number in range(1, TRIALS + 1)]
    for name in names[1:]:
        (run / name).mkdir(parents=True)
        for source in (run / first).iterdir():
            if source.is_file():
                (run / name / source.name).write_bytes(source.read_bytes())
    (run / "run.json").write_text(json.dumps({**manifest, "trials": names}))


def _judge(run: Path, folder: Path, env: dict[str, str]) -> tuple[float, float]:
    """Wall seconds of judging a run, and the most memory that it took, in megabytes."""
    start = time.perf_counter()
    process = subprocess.Popen(
        (*SKILLUP, "judge", str(run)), cwd=folder, env=env, stdout=subprocess.DEVNULL, stderr=sys.stderr
    )
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"judging failed with {process.returncode}")
    scale = 1024 if sys.platform == "linux" else 1024 * 1024
    return wall, resource_size(usage) / scale


def resource_size(usage: resource.struct_rusage) -> int:
    """The most memory of a process, in kibibytes on Linux, in bytes elsewhere."""
    return usage.ru_maxrss
