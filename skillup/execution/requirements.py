"""What cases require of an agent, held against what this one has. Nothing is started to find it out."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from skillup.engines import ENGINES
from skillup.engines.base import Engine
from skillup.errors import Fault
from skillup.loading.spelling import closest
from skillup.spec.agent import LATER_ENGINES, Agent
from skillup.spec.problems import quoted
from skillup.spec.requires import Requires
from skillup.spec.suite import Suite


def unknown_engines(suites: Sequence[Suite]) -> Iterator[Fault]:
    """Faults of names in `requires.engines` that no engine has; those of the format that are to come are known."""
    for suite in suites:
        for name, at in suite.required_engines:
            if name not in ENGINES and name not in LATER_ENGINES:
                known = sorted(ENGINES)
                meant = closest(name, known)
                hint = f"did you mean {quoted(meant)}?" if meant else f"there are: {', '.join(known)}"
                yield replace(at, message=f"there is no engine {quoted(name)}", hint=hint)


def unmet(requires: Requires | None, engine: Engine, path: str, *, resumes: bool) -> str:
    """What of `requires` an agent of this engine does not meet, with everything in one sentence; empty if it does.

    `path` is the PATH that the agent's processes will get; `resumes` is whether its sessions can be resumed.
    """
    missing = "; ".join(_missing(requires, engine, path, resumes=resumes))
    return f"`requires` is not met: {missing}" if missing else ""


def _missing(requires: Requires | None, engine: Engine, path: str, *, resumes: bool) -> Iterator[str]:
    if requires is None:
        return
    if requires.engines and engine.name not in requires.engines:
        yield f"the engine is {engine.name}, not {' or '.join(requires.engines)}"
    hidden = [tool for tool in requires.tools if tool in engine.hidden_tools]
    if hidden:
        yield f"{engine.name} cannot show calls of {', '.join(hidden)}"
    absent = [command for command in requires.commands if shutil.which(command, path=path) is None]
    if absent:
        yield f"{', '.join(absent)} {'is' if len(absent) == 1 else 'are'} not on the PATH"
    if requires.resume and not resumes:
        yield f"{engine.name} cannot resume a session"


def path_of(agent: Agent, suite: Suite, host: Mapping[str, str]) -> str:
    """The PATH of an agent's processes: the profile's, else the suite's, else the host's."""
    return agent.env.get("PATH") or suite.environment.env.get("PATH") or host.get("PATH", os.defpath)
