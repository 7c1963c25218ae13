"""`skillup doctor`."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from skillup.cli.common import expected_errors

if TYPE_CHECKING:
    from skillup.environments.process import Nursery


@click.command("doctor")
def command() -> None:
    """Show which engines are here and could log in, what could judge, and whether trials can be isolated."""
    with expected_errors():
        from skillup.engines import ENGINES
        from skillup.environments.host import ROOT_VARIABLE, instructions_above, trial_base
        from skillup.environments.process import Nursery
        from skillup.execution.agents import host_home
        from skillup.execution.judges import usable_judges
        from skillup.execution.obstacles import engine_version
        from skillup.spec.suite import Environment

        host = dict(os.environ)
        with Nursery() as nursery:
            for name, engine in ENGINES.items():
                version, failure = engine_version(engine, {}, host, nursery, Environment())
                if failure is None:
                    _line(name, str(version))
                elif failure.kind == "engine_missing":
                    _line(name, f"missing: there is no `{engine.version_argv(engine.settings())[0]}` on the PATH")
                    _line("", "install it, or name it in an agent profile: `settings: {binary: /path/to/it}`")
                else:
                    _line(name, f"unusable: {failure.message}")
                credentials = engine.provider(engine.settings()).credentials
                held = [f"${variable}" for variable in credentials if host.get(variable)]
                home = host_home(engine, host)
                logins = [str(home / name) for name in engine.login_files if (home / name).is_file()]
                if held:
                    _line("", f"credential: {', '.join(held)}")
                if logins:
                    _line("", f"login: {', '.join(logins)}; a profile with `login: copy` uses it")
                if not held and not logins:
                    _line("", f"no credential in {' or '.join(credentials)}; scripted models need none")
            left = _show_environments(host, nursery)
        for number, (judge, said) in enumerate(usable_judges(host)):
            _line("" if number else "judges", f"{judge}: {said}")
        git = shutil.which("git")
        _line("git", git or "missing: cases with `context: {git: {init: true}}` need it")
        base = trial_base(host)
        above = instructions_above(base)
        unusable = f"unusable: agents would read {above[0]}; set {ROOT_VARIABLE} to another folder" if above else "ok"
        _line("trial root", f"{base}: {unusable}")
        owned = (
            "whole process trees are ended" if sys.platform == "linux" else "process groups only (no subreaper here)"
        )
        _line("processes", owned)
        _show_left(base)
        for line in left:
            _line("left behind", line)


def _show_environments(host: Mapping[str, str], nursery: Nursery) -> tuple[str, ...]:
    """Where trials can be confined; a line for each container that a run left behind that died."""
    from skillup.environments.base import Missing
    from skillup.environments.container_engine import find_engine, left_containers
    from skillup.environments.host import trial_base
    from skillup.environments.kinds import ENVIRONMENTS
    from skillup.spec.suite import Environment

    sandbox = ENVIRONMENTS["bubblewrap"].missing(Environment(type="bubblewrap"), host, nursery)
    _line("bubblewrap", f"unusable: {sandbox.message}" if sandbox else "ok: a sandbox can be made")
    if sandbox:
        _line("", sandbox.hint)
    engine = find_engine(host, nursery)
    if isinstance(engine, Missing):
        _line("containers", f"unusable: {engine.message}")
        _line("", engine.hint)
        return ()
    _line("containers", f"ok: `{shlex.join(engine.argv)}` answers; `run --dry-run` tries the image of a suite")
    removes = "of a run that died; the next run of a suite in containers removes it"
    return tuple(
        f"the container {name} of {root}, {removes}" for name, root in left_containers(engine, trial_base(host))
    )


def _show_left(base: Path) -> None:
    """What runs left behind that died: the next start removes it."""
    from skillup.environments.host import left_roots
    from skillup.environments.survivors import survivors
    from skillup.masking import Masker
    from skillup.reports.plain import plain

    for root in left_roots(base):
        _line("left behind", f"{root}, of a run that died; the next run removes it")
    for one in survivors():
        command = Masker().text(plain(one.command))
        _line("left behind", f"process {one.pid} of the run that died as process {one.run}: {command}")
        _line("", "`skillup run --resume` of that run ends it")


def _line(name: str, text: str) -> None:
    click.echo(f"{name:<12} {text}")
