"""Going on with a run that did not come to its end: whether it may be, which trials are left, and what is written.

What is left is decided by the trials' files alone. The journal says which processes the run had, so that what they left
behind can be ended.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from skillup.environments.survivors import end_survivors
from skillup.errors import RunDirectoryError
from skillup.execution import rundir
from skillup.execution.journal import Journal, SavedJournal, read_journal
from skillup.execution.manifest import Started, differences, make_manifest
from skillup.execution.plan import Plan
from skillup.execution.saved import attempts_in, finished_turns, reopen
from skillup.execution.store import partial_files, read_model, write_json
from skillup.results import RunManifest, Status, TrialResult
from skillup.spec.suite import Suite


@dataclass(frozen=True)
class Unfinished:
    """A run as it was left. `ended` are the results of its trials by their folders, as the manifest has them."""

    directory: Path
    manifest: RunManifest
    journal: SavedJournal
    ended: dict[str, TrialResult]

    @classmethod
    def load(cls, directory: Path) -> Unfinished:
        """Reads a run. The directory is locked by the caller.

        Raises:
            RunDirectoryError: it is not a run directory, or damaged.
        """
        manifest = rundir.read_manifest(directory)
        return cls(directory, manifest, read_journal(directory), rundir.saved_results(directory, manifest))

    @property
    def is_finished(self) -> bool:
        """Whether every trial has ended, and the run's own end was written, too."""
        if len(self.ended) < len(self.manifest.trials) or not (self.directory / "result.json").exists():
            return False
        return rundir.saved_run(self.directory).status == "finished"

    def left_of(self, plan: Plan, statuses: Collection[Status]) -> Plan:
        """Of what is planned now, the trials that would be run: those without an end, or with one of these statuses."""
        ended = {name for name, one in self.ended.items() if one.status not in statuses}
        return replace(plan, tasks=tuple(task for task in plan.tasks if str(task.folder) not in ended))

    @property
    def begun(self) -> int:
        """How many trials had begun and have no result."""
        return sum(bool(attempts_in(self.directory / name)) for name in self.manifest.trials if name not in self.ended)

    def open_again(self) -> None:
        """Takes the run for one that goes on: its end so far, made from the trials' results, is removed.

        So is what was being written when it died, and has no name yet.

        Raises:
            RunDirectoryError: it cannot be removed.
        """
        for path in (self.directory / "result.json", *partial_files(self.directory)):
            try:
                path.unlink(missing_ok=True)
            except OSError as error:
                raise RunDirectoryError(f"{path} cannot be removed: {error.strerror}") from error

    def catch_up(self, journal: Journal) -> None:
        """Writes down what is on disk and what the journal was not told any more, because skillup died in between.

        Raises:
            RunDirectoryError: it cannot be read, or written.
        """
        told = {(entry.event, entry.trial, entry.attempt, entry.turn) for entry in self.journal.entries}
        for name in self.manifest.trials:
            if name in self.ended and ("trial_ended", name, None, None) in told:
                continue  # then it was told all that came before
            folder = self.directory / name
            for attempt in attempts_in(folder):
                for turn in finished_turns(folder / f"attempt-{attempt}"):
                    if ("turn_ended", name, attempt, turn.number) not in told:
                        journal.turn_ended(folder / f"attempt-{attempt}", turn)
                result = folder / f"attempt-{attempt}" / "result.json"
                if result.exists() and ("attempt_ended", name, attempt, None) not in told:
                    journal.ended("attempt_ended", folder, read_model(result, TrialResult), attempt)
            if name in self.ended:
                journal.ended("trial_ended", folder, self.ended[name])

    def end_processes(self) -> tuple[str, ...]:
        """Ends what the processes of this run left behind; a line for each that was found, and what became of it.

        The lines hold command lines as they are: agents' texts, with whatever control sequences and keys are in them.
        """
        marks = {entry.mark for entry in self.journal.entries if entry.mark is not None}
        found, left = end_survivors(marks)
        still = {one.pid for one in left}
        return tuple(
            f"process {one.pid} of the run that died ({one.command}) "
            + ("cannot be ended" if one.pid in still else "was ended")
            for one in found
        )

    def checked(self, suites: Sequence[Suite], plan: Plan, started: Started, *, anyway: bool) -> Unfinished:
        """The run with what is planned now. With `anyway` differences are written into the manifest.

        Raises:
            RunDirectoryError: what would be run now is not what it was begun with, or it cannot be read or written.
        """
        try:
            now = make_manifest(self.directory, suites, plan, started)
        except OSError as error:
            raise RunDirectoryError(f"{error.filename} cannot be read: {error.strerror}") from error
        found = differences(self.manifest, now)
        if found and not anyway:
            listed = "".join(f"\n  {line}" for line in found)
            hint = (
                "put it back, begin a new run, or go on with what there is now by --resume-anyway: "
                "the run then says for good that it is of two kinds"
            )
            said = f"{self.directory} cannot be resumed: what would be run now is not what it was begun with{listed}"
            raise RunDirectoryError(said, hint=hint)
        if not found:
            return self
        gone = {name for name in self.manifest.trials if name not in now.trials and name not in self.ended}
        trials = (*(name for name in self.manifest.trials if name not in gone), *now.trials)
        update = {
            "resumed_anyway": tuple(dict.fromkeys((*self.manifest.resumed_anyway, *found))),
            "trials": tuple(dict.fromkeys(trials)),
        }
        manifest = self.manifest.model_copy(update=update)
        try:
            write_json(self.directory / "run.json", manifest)
        except OSError as error:
            raise RunDirectoryError(f"{self.directory}/run.json cannot be written: {error.strerror}") from error
        return replace(self, manifest=manifest)

    def reopened(self, statuses: Collection[Status], plan: Plan) -> tuple[Unfinished, tuple[str, ...]]:
        """The run with its trials of these statuses open again, and their folders. Their results so far are kept.

        Raises:
            RunDirectoryError: it cannot be written.
        """
        planned = {str(task.folder) for task in plan.tasks}
        again = tuple(name for name, one in self.ended.items() if one.status in statuses and name in planned)
        for name in again:
            try:
                reopen(self.directory / name)
            except OSError as error:
                raise RunDirectoryError(f"{self.directory / name} cannot be written: {error.strerror}") from error
        return replace(self, ended={name: one for name, one in self.ended.items() if name not in again}), again
