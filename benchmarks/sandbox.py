"""What a bubblewrap sandbox adds to a turn: to that of a trivial agent in milliseconds, to Claude Code's as a ratio.

A conversation of many turns less one of a single turn, divided by the turns between, is what a turn costs. The kinds of
environment take turns, so that a busy machine is busy for all of them.
"""

from __future__ import annotations

import statistics
from pathlib import Path

from benchmarks.measure import SKILLUP, Cost, measure, plain_variables, real_clis, spread
from benchmarks.turn import AGENT

ENVIRONMENTS = {
    "none": "type: none",
    "bubblewrap": "type: bubblewrap",
    "bubblewrap, model_only": "type: bubblewrap, network: model_only",
}
ROUNDS = 3
TURNS = {"trivial": 21, "claude_code": 4}


def main(folder: Path) -> None:
    """Prints what a turn costs in each environment, on the clock and of the processors, for both agents."""
    agent = folder / "agent.sh"
    agent.write_text(AGENT)
    agent.chmod(0o755)
    (folder / "agents").mkdir()
    (folder / "agents/trivial.yaml").write_text(f"engine: claude_code\nsettings: {{binary: {agent}}}\n")
    env = plain_variables(folder, path=real_clis())
    for name, turns in TURNS.items():
        costs: dict[str, list[Cost]] = {kind: [] for kind in ENVIRONMENTS}
        for number in range(ROUNDS):
            for place, (kind, written) in enumerate(ENVIRONMENTS.items()):
                one, many = (
                    _run(_written(folder / f"{name}-{place}-{count}", written, count), name, f"out-{number}", env)
                    for count in (1, turns)
                )
                between = turns - 1
                costs[kind].append(Cost((many.wall - one.wall) / between, (many.cpu - one.cpu) / between))
        for kind, found in costs.items():
            pairs = list(zip(found, costs["none"], strict=True))
            for what, mine, ratios in (
                ("wall", [cost.wall for cost in found], [cost.wall / host.wall for cost, host in pairs]),
                ("CPU", [cost.cpu for cost in found], [cost.cpu / host.cpu for cost, host in pairs]),
            ):
                ratio = f"{statistics.median(ratios):.2f} times the host's"
                print(f"sandbox: {what} of a turn of {name}, {kind}: {spread(mine, 'ms', 1000, 1)}; {ratio}")


def _run(suite: Path, agent: str, out: str, env: dict[str, str]) -> Cost:
    options = ("--agent", agent, "--model", "scripted", "--output-dir", str(suite / out))
    return measure((*SKILLUP, "run", str(suite), *options), cwd=suite.parent, env=env)


def _written(suite: Path, environment: str, turns: int) -> Path:
    """A suite of one case with so many turns."""
    suite.mkdir(exist_ok=True)
    lines = "".join("    - {role: user, content: go}\n" for _ in range(turns))
    checks = "judge: {type: rule_based, success: [{output_contains: {all: [ok]}}]}\nscript: [{say: ok}]\n"
    (suite / "case.yaml").write_text(f"input:\n  turns:\n{lines}{checks}")
    (suite / "eval.yaml").write_text(
        f"schema_version: v1alpha1\nenvironment: {{{environment}}}\ncases: {{files: [case.yaml]}}\n"
    )
    return suite
