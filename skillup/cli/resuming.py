"""`skillup run --resume`: the run that is taken up again, the options that it was started with, and what is left."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click
from click.core import ParameterSource

from skillup.cli.runs import BROKEN_OFF, Work, carry_out, conclude

if TYPE_CHECKING:
    from skillup.execution.resume import Unfinished
    from skillup.results import RunManifest

_OWN = ("resume", "resume_anyway", "only_status", "dry_run")
_FREE = ("parallelism", "formats", "expected", "as_json", "verbose", "max_cost_usd", "max_tokens", "max_seconds")
"""Options that may be given anew: nothing that is measured depends on them."""
_PLACE = ("output_dir", "iteration")
"""Options of the first start that say where to run it, which is decided."""


class Statuses(click.ParamType[tuple[str, ...]]):
    """`ERROR,FAIL`: one or more statuses of trials."""

    name = "statuses"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, ...]:
        """The statuses, or a fault with those that there are."""
        from skillup.results import Status

        if isinstance(value, tuple):
            return value
        found = tuple(dict.fromkeys(word.strip().upper() for word in str(value).split(",")))
        for word in found:
            if word not in get_args(Status):
                self.fail(f"{word!r} is no status; there are {', '.join(get_args(Status))}", param, ctx)
        return found


def check_usage(options: Mapping[str, Any]) -> None:
    """Refuses options that mean something with `--resume` alone.

    Raises:
        click.UsageError: one is given without it.
    """
    for name in ("resume_anyway", "only_status"):
        if options[name] and options["resume"] is None:
            raise click.UsageError(f"--{name.replace('_', '-')} says nothing without --resume RUN")


def take_up(
    paths: tuple[Path, ...], allowed: tuple[Path, ...], options: Mapping[str, Any], stack: ExitStack
) -> tuple[Unfinished, tuple[Path, ...], tuple[Path, ...], Mapping[str, Any]]:
    """The run that `--resume` names, locked until `stack` ends, with the paths and options to plan it by.

    What its processes left behind is ended first: it may be writing where others work. Paths and options are those of
    its first start, but for what may be given anew; a PATH is where the suite lies now. Relative paths of the first
    start are taken from its folder, which becomes the working folder; only with a PATH it need not be there any more.

    Raises:
        RunDirectoryError: it is no run directory, is damaged, in use, or cannot be planned again.
        click.UsageError: an option cannot be given again.
    """
    from skillup.execution import rundir
    from skillup.execution.directories import held
    from skillup.execution.resume import Unfinished
    from skillup.masking import Masker
    from skillup.reports.plain import plain

    directory = Path(os.path.abspath(options["resume"]))  # noqa: PTH100 - links in it are the user's own
    _refuse_others(options)
    rundir.read_manifest(directory)  # no lock is left in a folder that is none of ours
    stack.enter_context(held(directory, "skillup run --resume", hint="resume a copy of the run"))
    unfinished = Unfinished.load(directory)
    for line in () if options["dry_run"] else unfinished.end_processes():
        click.echo(f"warning: {Masker().text(plain(line))}", err=True)
    if unfinished.journal.torn_bytes:
        number = len(unfinished.journal.entries) + 1
        click.echo(f"warning: {directory}/journal.jsonl:{number}: the last line was torn, and is left out", err=True)
    first = _first_start(unfinished.manifest, directory)
    given = {name: options[name] for name in _FREE if _is_given(name)}
    merged = {**options, **first, **given, **{name: options[name] for name in _OWN}}
    if given.get("expected") is not None:
        merged["expected"] = given["expected"].absolute()
    paths, allowed = (tuple(path.absolute() for path in given) for given in (paths, allowed))
    _enter(unfinished.manifest, directory, needed=not paths)
    return unfinished, paths or first["paths"], allowed or first["allowed"], merged


def resume(work: Work, unfinished: Unfinished) -> int:
    """Runs what is left of a run, whose directory the caller has locked, and gives the exit code of the whole.

    Raises:
        RunDirectoryError: what is there is not what is planned, is damaged, or cannot be written; nothing was run.
    """
    from skillup.execution import rundir
    from skillup.execution.journal import JournalFile
    from skillup.execution.manifest import Started, masker_of

    options, before = work.options, unfinished
    started = Started(tuple(rundir.command_line()), datetime.now(UTC))
    unfinished = unfinished.checked(work.suites, work.plan, started, anyway=options["resume_anyway"])
    unfinished, again = unfinished.reopened(options["only_status"] or (), work.plan)
    click.echo(_what_is_left(before, unfinished, again), err=True)
    if unfinished.is_finished:
        return conclude(work, unfinished.directory, rundir.saved_run(unfinished.directory))
    torn = unfinished.journal.torn_bytes
    with JournalFile(unfinished.directory, masker_of(work.plan), torn_bytes=torn) as journal:
        journal.write(
            "run_resumed",
            pid=os.getpid(),
            mark=work.mark,
            command=started.command,
            trials_left=len(unfinished.manifest.trials) - len(unfinished.ended),
            torn_bytes=torn or None,
            differences=unfinished.manifest.resumed_anyway or None,
        )
        before.catch_up(journal)
        unfinished.open_again()
        for name in again:
            journal.write("trial_reopened", unfinished.directory / name, status=before.ended[name].status)
        run = carry_out(work, unfinished.directory, unfinished.manifest, journal, unfinished.ended)
    return BROKEN_OFF if run is None else conclude(work, unfinished.directory, run)


def _refuse_others(options: Mapping[str, Any]) -> None:
    known = (*_OWN, *_FREE, "paths", "allowed")
    for name in options:
        if name not in known and _is_given(name):
            parameter = next(one for one in click.get_current_context().command.params if one.name == name)
            said = f"{parameter.opts[0]} is decided by the run that is resumed: leave it out, or begin a new run"
            raise click.UsageError(said)


def _is_given(name: str) -> bool:
    return click.get_current_context().get_parameter_source(name) is ParameterSource.COMMANDLINE


def _first_start(manifest: RunManifest, directory: Path) -> dict[str, Any]:
    """The parameters that the run was started with.

    Raises:
        RunDirectoryError: this version does not know them.
    """
    from skillup.errors import RunDirectoryError

    hint = "resume it by the version that began it, or begin a new run"
    if not manifest.cwd or manifest.command[1:2] != ("run",):
        raise RunDirectoryError(f"{directory}/run.json does not say how the run was started", hint=hint)
    try:
        context = click.get_current_context().command.make_context("run", list(manifest.command[2:]))
    except click.ClickException as error:
        said = f"{directory}/run.json: the run was started in a way that is not known: {error.format_message()}"
        raise RunDirectoryError(said, hint=hint) from error
    return {name: value for name, value in context.params.items() if name not in _PLACE}


def _enter(manifest: RunManifest, directory: Path, *, needed: bool) -> None:
    from skillup.errors import RunDirectoryError

    try:
        os.chdir(manifest.cwd)
    except OSError as error:
        if not needed:
            return
        said = f"the run was started in {manifest.cwd}, which cannot be entered: {error.strerror}"
        hint = f"say where the suite lies now: `skillup run PATH --resume {directory}`"
        raise RunDirectoryError(said, hint=hint) from error


def _what_is_left(before: Unfinished, now: Unfinished, again: Sequence[str]) -> str:
    trials, iteration = len(now.manifest.trials), now.manifest.iteration
    parts = [f"{len(now.ended)} of {trials} trials had ended"]
    parts += [f"{before.begun} had begun and start anew"] if before.begun else []
    parts += [f"{len(again)} are run once more"] if again else []
    parts += ["nothing is left to run"] if len(now.ended) == trials else []
    if now.manifest.iterations > 1:
        parts.append(f"this is iteration {iteration} of {now.manifest.iterations}, and no other is touched")
    return f"resuming {now.directory}: {'; '.join(parts)}"
