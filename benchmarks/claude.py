"""CPU of 16 two-turn trials on the real Claude Code, against a plain `xargs -P2` loop of the same calls.

Both drive the pinned CLI with fresh homes, the same flags and variables, and a loopback model; rounds are
interleaved. Ours counts everything (the model, the supervisors, judging, reports); the loop's model runs outside
the measured tree, so the ratio is, if anything, to our disadvantage.
"""

from __future__ import annotations

import os
import shlex
import statistics
from pathlib import Path

from benchmarks.measure import SKILLUP, measure, plain_variables, real_clis, spread
from skillup.engines.base import Endpoint, Session, TurnRequest
from skillup.engines.claude_code import ClaudeCode
from skillup.modelserver.scripted import ScriptedSource
from skillup.modelserver.server import ModelServer
from skillup.spec.script import ScriptEntry

TRIALS = 16
ROUNDS = 5
PARALLELISM = 2

_CASE = """\
input:
  turns:
    - {role: user, content: "say one"}
    - {role: user, content: "say two"}
judge: {type: rule_based, success: [{output_contains: {all: [two]}}]}
script:
  - {user: say one, say: one}
  - {user: say two, say: two}
"""


def main(folder: Path) -> None:
    """Prints the CPU time of both and their ratio, round by round."""
    env = plain_variables(folder, path=real_clis())
    cases = folder / "cases"
    cases.mkdir()
    for number in range(TRIALS):
        (cases / f"case-{number}.yaml").write_text(_CASE)
    ours, bare, ratios = [], [], []
    with ModelServer() as server:
        script = (ScriptEntry(user="say one", say="one"), ScriptEntry(user="say two", say="two"))
        for number in range(ROUNDS):
            loop = _loop(folder / f"loop-{number}", server, script, env)
            bare.append(measure(("/bin/sh", "-c", loop), cwd=folder, env=env).cpu)
            out = folder / f"run-{number}"
            options = ("--agent", "claude_code", "--model", "scripted", "--parallelism", str(PARALLELISM))
            ours.append(
                measure((*SKILLUP, "run", "cases", *options, "--output-dir", str(out)), cwd=folder, env=env).cpu
            )
            ratios.append(ours[-1] / bare[-1])
            print(f"claude: round {number + 1}: ours {ours[-1]:.2f} s, loop {bare[-1]:.2f} s, ratio {ratios[-1]:.3f}")
    print(f"claude: CPU, ours: {spread(ours, digits=2)}; loop: {spread(bare, digits=2)}")
    print(f"claude: ratio: median {statistics.median(ratios):.3f} (min {min(ratios):.3f}, max {max(ratios):.3f})")


def _loop(folder: Path, server: ModelServer, script: tuple[ScriptEntry, ...], env: dict[str, str]) -> str:
    """A shell command that runs the trials as one would by hand, two at a time."""
    engine = ClaudeCode()
    for number in range(TRIALS):
        place = folder / f"trial-{number}"
        workspace, home = place / "workspace", place / "home"
        for made in (workspace, home, place / "tmp"):
            made.mkdir(parents=True)
        route = server.open_route(ScriptedSource(script), workspace=workspace)
        lines = ["set -e", f"cd {shlex.quote(str(workspace))}"]
        for turn, text in enumerate(("say one", "say two")):
            request = TurnRequest(
                prompt=text,
                slash_command=False,
                session=Session(f"00000000-0000-4000-8000-{number:012d}", started=turn > 0),
                workspace=workspace,
                home=home,
                endpoint=Endpoint(None, route.base_url, scripted=True),
                settings=engine.settings(),
                as_root=os.geteuid() == 0,
            )
            call = engine.invocation(request)
            (place / f"in-{turn}").write_text(call.stdin)
            variables = {**env, "HOME": str(home), "TMPDIR": str(place / "tmp"), **call.env}
            words = ["env", "-i", *(f"{key}={value}" for key, value in variables.items()), *call.argv]
            lines.append(f"{shlex.join(words)} <{place}/in-{turn} >{place}/out-{turn} 2>{place}/err-{turn}")
        (place / "run.sh").write_text("\n".join(lines) + "\n")
    return f"ls -d {shlex.quote(str(folder))}/trial-*/run.sh | xargs -P{PARALLELISM} -n1 sh"
