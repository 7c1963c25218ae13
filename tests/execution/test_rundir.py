"""The run directory: one run gets it, its manifest comes first, and nothing in it is ever overwritten."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest

from skillup.errors import RunDirectoryError
from skillup.execution.directories import new_directory
from skillup.execution.inputs import Inputs
from skillup.execution.manifest import Started
from skillup.execution.plan import Plan
from skillup.execution.rundir import begin, read_manifest, saved_run, trial_folders
from skillup.execution.store import write_json
from skillup.execution.task import TrialTask
from skillup.masking import MASK
from skillup.results import RunManifest
from skillup.spec.agent import Agent, Limits, ModelChoice
from skillup.spec.case import Case
from skillup.spec.suite import Environment, InstalledSkill, Suite

SECRET = "correct-horse-battery"
STARTED = datetime(2026, 11, 22, 10, 0, 0, tzinfo=UTC)
CASE = Case.model_validate({"id": "a-case", "input": {"prompt": "go"}, "expect": {"must_contain": ["done"]}})


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


class TestIterations:
    def test_count_up(self) -> None:
        assert [str(new_directory("demo", None)) for _ in range(3)] == [
            "demo-workspace/iteration-1",
            "demo-workspace/iteration-2",
            "demo-workspace/iteration-3",
        ]

    def test_go_on_after_the_highest_and_ignore_what_is_none(self) -> None:
        for name in ("iteration-7", "iteration-x", "iteration-", "iteration-٣", "iteration-²", "notes"):
            Path("demo-workspace", name).mkdir(parents=True)
        assert new_directory("demo", None).name == "iteration-8"

    def test_runs_that_start_at_once_get_numbers_of_their_own(self) -> None:
        barrier = threading.Barrier(16)

        def start(_: int) -> Path:
            barrier.wait()
            return new_directory("demo", None)

        with ThreadPoolExecutor(16) as pool:
            made = list(pool.map(start, range(16)))
        assert sorted(int(path.name.rpartition("-")[2]) for path in made) == list(range(1, 17))

    @pytest.mark.parametrize(
        ("name", "folder"),
        [
            ("../../etc/passwd", "etc-passwd-workspace"),
            ("/abs", "abs-workspace"),
            ("..", "suite-workspace"),
            ("", "suite-workspace"),
            ("a b\nc\0d", "a-b-c-d-workspace"),
            (".hidden", "hidden-workspace"),
            ("漢字", "suite-workspace"),
            ("x" * 500, "x" * 60 + "-workspace"),
        ],
    )
    def test_a_suites_name_cannot_lead_anywhere_else(self, name: str, folder: str) -> None:
        """The name comes from a file that may be a stranger's."""
        assert new_directory(name, None) == Path(folder, "iteration-1")


class TestTheChosenDirectory:
    def test_is_made_with_its_parents(self) -> None:
        assert new_directory("demo", Path("a/b")) == Path("a/b")
        assert Path("a/b").is_dir()

    def test_may_be_there_when_it_is_empty(self) -> None:
        Path("a").mkdir()
        assert new_directory("demo", Path("a")) == Path("a")

    def test_is_never_overwritten(self) -> None:
        Path("a").mkdir()
        Path("a/notes.txt").write_text("mine")
        with pytest.raises(RunDirectoryError, match="a is not empty") as caught:
            new_directory("demo", Path("a"))
        assert "never overwritten" in caught.value.hint

    @pytest.mark.parametrize("chosen", ["file", "file/below", "x" * 300])
    def test_that_cannot_be_made_is_named(self, chosen: str) -> None:
        Path("file").write_text("")
        with pytest.raises(RunDirectoryError, match="no run directory can be made") as caught:
            new_directory("demo", Path(chosen))
        assert caught.value.hint == "use --output-dir DIR"

    def test_goes_to_one_of_two_runs_that_start_at_once(self) -> None:
        """Both find it empty; the manifest of one is there first, and the other one stops before it runs anything."""
        new_directory("demo", Path("a"))
        new_directory("demo", Path("a"))
        write(Path("a"))
        before = Path("a/run.json").read_bytes()
        with pytest.raises(RunDirectoryError, match="a is not empty"):
            write(Path("a"), case_id="other")
        assert Path("a/run.json").read_bytes() == before


def write(
    directory: Path, *, case_id: str = "a-case", title: str = "", skill: str = "---\nname: s\n---\n"
) -> RunManifest:
    folder = Path("skill")
    folder.mkdir(exist_ok=True)
    (folder / "SKILL.md").write_text(skill)
    agent = Agent(
        name="demo",
        engine="builtin",
        model=ModelChoice(name="m", base_url=f"https://{SECRET}.example"),
        settings={"header": SECRET},
        env={"TOKEN": SECRET, "B": "plain"},
        secrets=(SECRET,),
        missing=(),
        login="none",
        permissions="full",
        limits=Limits(),
        source="built in",
    )
    case = CASE.model_copy(update={"id": case_id, "title": title})
    suite = Suite("demo", Path(), Path("eval.yaml"), (case,), skills=(InstalledSkill("s", folder, ("SKILL.md",)),))
    task = TrialTask(
        case=case,
        suite_root=Path(),
        environment=Environment(),
        skills=suite.skills,
        agent=agent,
        engine_version="1.0",
        variant="with_skill",
        trial=1,
        attempt=1,
        folder=Path(case_id, "demo/with_skill/trial-1/attempt-1"),
        trial_base=Path("/var/tmp"),
        keep="none",
    )
    plan = Plan((task,), (agent,), {"demo": "1.0"}, 2, (), Inputs({}, ()))
    return begin(directory, (suite,), plan, Started(("skillup", "run", SECRET), STARTED))


class TestTheManifest:
    def test_says_what_will_be_run_with_what(self) -> None:
        directory = new_directory("demo", None)
        manifest = write(directory)
        assert manifest.run_id == "20261122T100000Z-iteration-1"
        assert manifest.trials == ("a-case/demo/with_skill/trial-1/attempt-1",)
        assert manifest.cases.keys() == {"a-case"}
        assert manifest.skills.keys() == {"s"}
        assert [(agent.name, agent.engine_version, agent.variables) for agent in manifest.agents] == [
            ("demo", "1.0", ("B", "TOKEN"))
        ]
        assert read_manifest(directory).trials == manifest.trials

    def test_holds_no_secret(self) -> None:
        write(new_directory("demo", Path("a")))
        text = Path("a/run.json").read_text()
        assert SECRET not in text
        assert text.count(MASK) == 3

    def test_tells_another_case_or_skill_by_its_content(self) -> None:
        first = write(new_directory("demo", None))
        again = write(new_directory("demo", None))
        other = write(new_directory("demo", None), skill="---\nname: other\n---\n", title="another")
        assert (again.cases, again.skills) == (first.cases, first.skills)
        assert other.cases["a-case"] != first.cases["a-case"]
        assert other.skills["s"] != first.skills["s"]

    @pytest.mark.parametrize(
        ("data", "said"),
        [
            (None, "a is not a run directory"),
            (b"", "a/run.json is damaged: Invalid JSON"),
            (b"[]", "a/run.json is damaged"),
            (b'{"schema_version": "skillup/2"}', "a/run.json was written by another version of skillup"),
        ],
    )
    def test_that_is_rubbish_is_named(self, data: bytes | None, said: str) -> None:
        Path("a").mkdir()
        if data is not None:
            Path("a/run.json").write_bytes(data)
        with pytest.raises(RunDirectoryError) as caught:
            read_manifest(Path("a"))
        assert said in caught.value.message
        assert caught.value.hint

    @pytest.mark.parametrize("outside", ["/etc", "../other", "a-case/../../other"])
    def test_may_not_name_a_trial_outside_of_the_run(self, outside: str) -> None:
        """Judging writes into the folders that the manifest names."""
        write(new_directory("demo", Path("a")))
        data = json.loads(Path("a/run.json").read_bytes())
        write_json(Path("a/run.json"), {**data, "trials": [outside]})
        for use in (read_manifest, trial_folders, saved_run):
            with pytest.raises(RunDirectoryError, match="outside"):
                use(Path("a"))


def test_a_run_without_a_trial_that_ended_says_so() -> None:
    write(new_directory("demo", Path("a")))
    assert not [folder for folder in trial_folders(Path("a")) if folder.exists()]
    with pytest.raises(RunDirectoryError, match="a holds no trial that ended"):
        saved_run(Path("a"))
