"""A trial's files: whole or not there, masked, and read back as what they were."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from skillup.environments.kept import keep_workspace
from skillup.errors import RunDirectoryError
from skillup.execution.grading import grade
from skillup.execution.store import TrialFolder, load_trial, read_model, write_atomically, write_json
from skillup.masking import MASK, Masker
from skillup.modelserver.route import RecordedRequest
from skillup.results import Failure, GateRecord, Grading, SavedTurn, Timing, TrialRecord, TrialResult, TurnRecord
from skillup.spec.case import Case
from skillup.transcript import MAX_DEPTH, Message, ToolCall
from tests.judging.story import record

SECRET = "correct-horse-battery"


def case(**more: Any) -> Case:
    return Case.model_validate(
        {"id": "a-case", "input": {"prompt": "go"}, "expect": {"must_contain": ["done"]}, **more}
    )


def turn(**more: Any) -> TurnRecord:
    return TurnRecord.model_validate({"number": 1, "content": "go", "status": "completed", "response": "done", **more})


def folder(tmp_path: Path, *secrets: str) -> TrialFolder:
    return TrialFolder(tmp_path / "c/a/with_skill/trial-1/attempt-1", Masker(secrets))


def everything(path: Path) -> str:
    """All that was written, as text."""
    return "\n".join(file.read_text(errors="replace") for file in sorted(path.rglob("*")) if file.is_file())


def names(path: Path) -> list[str]:
    return sorted(entry.name for entry in path.iterdir())


class TestWriting:
    def test_a_file_is_replaced_whole(self, tmp_path: Path) -> None:
        path = tmp_path / "a.json"
        write_atomically(path, b"old")
        write_atomically(path, b"new")
        assert path.read_bytes() == b"new"
        assert names(tmp_path) == ["a.json"]

    def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(self, tmp_path: Path) -> None:
        path = tmp_path / "a.json"
        path.mkdir()
        with pytest.raises(OSError, match="directory"):
            write_atomically(path, b"new")
        assert names(tmp_path) == ["a.json"]

    def test_readers_of_a_file_that_is_being_replaced_see_one_or_the_other(self, tmp_path: Path) -> None:
        path = tmp_path / "a.json"
        write_json(path, {"n": "0" * 100_000})
        before = path.open("rb")
        write_json(path, {"n": "1" * 100_000})
        with before:
            assert json.loads(before.read())["n"] == "0" * 100_000

    def test_text_that_no_encoding_has_is_written_all_the_same(self, tmp_path: Path) -> None:
        write_json(tmp_path / "a.json", {"text": "a\ud800b\0\u202e🧪"})
        assert json.loads((tmp_path / "a.json").read_bytes())["text"] == "a?b\0\u202e🧪"


HOSTILE = "\x00\x1b[2J\u202e\ufeff\u2028 \ud83d alone 🧪 \x7f\x85"


def test_hostile_answers_are_saved_and_judged(tmp_path: Path) -> None:
    """Half characters, NUL, control characters, endless nesting, numbers that JSON does not have."""
    deep: Any = "bottom"
    for _ in range(400):
        deep = {"a": [deep]}
    call = ToolCall(
        id=HOSTILE,
        name=HOSTILE,
        tool="other",
        arguments={HOSTILE: deep, "n": float("inf"), "big": 10**400},
        raw_arguments={"x": [float("nan"), HOSTILE]},
    )
    message = Message(role="tool_call", turn=1, source="agent", tool_call=call)
    told = turn(response=HOSTILE, messages=[message], notes=[HOSTILE], unfinished_background=[HOSTILE])
    place = folder(tmp_path)
    place.save_case(case())
    place.save_turn(told, (tmp_path / "out", tmp_path / "err"))
    place.save_record(record(turns=(told,)))
    assert grade(place.path).status == "FAIL"
    saved = read_model(place.path / "record.json", TrialRecord)
    assert saved.turns[0].response == HOSTILE.replace("\ud83d", "\N{REPLACEMENT CHARACTER}")
    kept = json.dumps(saved.model_dump())
    assert f"nested more than {MAX_DEPTH} deep" in kept
    assert "bottom" not in kept
    for file in place.path.rglob("*.json"):
        json.loads(file.read_bytes(), parse_constant=pytest.fail)


def test_requests_with_half_characters_are_saved(tmp_path: Path) -> None:
    place = folder(tmp_path, SECRET)
    body: dict[str, Any] = {"text": f"\ud800 {SECRET}", "n": 1}
    place.save_requests([RecordedRequest("POST", "/v1/messages", 1.0, body, "entry 1")])
    (line,) = (place.path / "requests.jsonl").read_bytes().splitlines()
    assert json.loads(line)["body"] == {"text": f"? {MASK}", "n": 1}


class TestMasking:
    def test_no_file_of_a_trial_holds_the_secret(self, tmp_path: Path) -> None:
        """Not the case, not a turn, not the streams, not the workspace, not the verdict."""
        place = folder(tmp_path, SECRET)
        streams = (tmp_path / "out", tmp_path / "err")
        for stream in streams:
            stream.write_text(f"… {SECRET} …\n{json.dumps(SECRET)}")
        workspace = tmp_path / "workspace"
        (workspace / "sub").mkdir(parents=True)
        (workspace / "sub/.env").write_text(f"KEY={SECRET}")
        call = ToolCall(
            id="c", name="Bash", tool="bash", arguments={SECRET: SECRET}, raw_arguments={"a": [{"b": SECRET}]}
        )
        told = turn(
            content=f"use {SECRET}",
            response=f"the key is {SECRET}",
            messages=[Message(role="tool_call", turn=1, source="agent", tool_call=call)],
            gate=GateRecord(state="met", on_fail="fail", evidence=SECRET),
            notes=[SECRET],
            policy={"mode": SECRET},
        )
        failure = Failure(kind="auth", phase="conversation", message=SECRET, hint=SECRET, tail=SECRET)
        written = case(
            input={"prompt": f"use {SECRET}"},
            vars={"key": SECRET},
            context={"files": {f"{SECRET}.txt": SECRET}},
            expect={"must_not_contain": [SECRET]},
            judge={"type": "rule_based", "success": [{"output_matches": {"not": [f"key is {SECRET}"]}}]},
        )
        place.save_case(written)
        place.save_turn(told, streams)
        place.save_record(record(turns=(told,), failures=(failure,), title=SECRET))
        grade(place.path)
        keep_workspace(workspace, place.path, place.masker)
        assert SECRET not in everything(tmp_path / "c")
        assert everything(tmp_path / "c").count(MASK) > 20

    def test_a_rule_on_the_secret_itself_still_finds_it(self, tmp_path: Path) -> None:
        """The case is masked like the answer, so that `must_not_contain` of a key that was told is no empty promise."""
        place = folder(tmp_path, SECRET)
        success = [{"output_contains": {"not": [SECRET]}}, {"output_matches": {"not": [f"is {SECRET}$"]}}]
        place.save_case(case(expect={}, judge={"type": "rule_based", "success": success}))
        place.save_record(record(turns=(turn(response=f"the key is {SECRET}"),)))
        verdict = grade(place.path).grading
        assert [one.state for one in verdict.assertion_results] == ["not_met", "not_met"]

    def test_in_a_pattern_the_mask_matches_itself_alone(self, tmp_path: Path) -> None:
        """Unescaped, `[masked]` would be one of six letters, and found in nearly every answer."""
        place = folder(tmp_path, SECRET)
        success = [
            {"output_matches": {"all": [SECRET]}},
            {"tool_called": {"name": "bash", "args": {"c": {"matches": SECRET}}}},
        ]
        place.save_case(case(expect={}, judge={"type": "rule_based", "success": success}))
        call = ToolCall(id="c", name="Bash", tool="bash", arguments={"c": "made"}, raw_arguments={})
        message = Message(role="tool_call", turn=1, source="agent", tool_call=call)
        place.save_record(record(turns=(turn(response="made", messages=[message]),)))
        assert [one.state for one in grade(place.path).grading.assertion_results] == ["not_met", "not_met"]

    @pytest.mark.parametrize(
        "word", ["default", "response", "completed", "session", "rule_based", "a-case", "variable"]
    )
    def test_a_credential_that_is_an_ordinary_word_damages_nothing(self, tmp_path: Path, word: str) -> None:
        """People put `default` or `not-needed` where a key is asked for."""
        place = folder(tmp_path, word)
        place.save_case(
            case(
                vars={"session": word, "default": "x"},
                input={
                    "turns": [
                        {
                            "content": f"{word} {{{{session}}}}",
                            "capture": [{"variable": "response", "pattern": "(x)", "default": word}],
                        }
                    ]
                },
                judge={"type": "rule_based", "success": [{"output_contains": {"all": ["done"]}}]},
            )
        )
        told = turn(captures=[{"variable": "x", "value": word, "defaulted": True}])
        place.save_turn(told, (tmp_path / "out", tmp_path / "err"))
        place.save_record(record(turns=(told,), session_ids=("s",)))
        assert grade(place.path).status == "PASS"
        assert MASK in everything(place.path)

    def test_a_case_without_secrets_is_saved_as_it_is(self, tmp_path: Path) -> None:
        place = folder(tmp_path, SECRET)
        written = case(
            vars={"a": "b"},
            judge={"type": "rule_based", "success": [{"tool_called": "bash"}, {"files_exist": ["a"]}]},
            script=[{"user": "go", "say": "done {{!x}}"}],
            turn_delay=1.5,
        )
        place.save_case(written)
        assert read_model(place.path / "case.json", Case) == written


class TestATurn:
    def test_is_saved_with_its_streams_first(self, tmp_path: Path) -> None:
        """`turn.json` is the sign that all of the turn is there, so it comes last."""
        place = folder(tmp_path)
        for name in ("out", "err"):
            (tmp_path / name).write_text(name)
        place.save_turn(turn(), (tmp_path / "out", tmp_path / "err"))
        saved = place.path / "turn-1"
        times = {path.name: path.stat().st_mtime_ns for path in saved.iterdir()}
        assert times.keys() == {"stdout", "stderr", "turn.json"}
        assert times["turn.json"] >= max(times["stdout"], times["stderr"])
        assert read_model(saved / "turn.json", SavedTurn).response == "done"

    def test_that_never_began_has_no_streams(self, tmp_path: Path) -> None:
        place = folder(tmp_path)
        place.save_turn(turn(status="error", response=None), (tmp_path / "never", tmp_path / "there"))
        assert [path.name for path in (place.path / "turn-1").iterdir()] == ["turn.json"]


class TestTheKeptWorkspace:
    def test_is_as_the_agent_left_it(self, tmp_path: Path) -> None:
        workspace = tmp_path / "workspace"
        (workspace / "sub/empty").mkdir(parents=True)
        (workspace / "sub/a.txt").write_text("a")
        (workspace / "link").symlink_to("/etc/passwd")
        (workspace / "dirlink").symlink_to("sub")
        place = folder(tmp_path)
        keep_workspace(workspace, place.path, place.masker)
        kept = place.path / "workspace"
        assert (kept / "sub/a.txt").read_text() == "a"
        assert (kept / "sub/empty").is_dir()
        assert os.readlink(kept / "link") == "/etc/passwd"
        assert os.readlink(kept / "dirlink") == "sub"
        assert not (place.path / "left-out.txt").exists()

    def test_leaves_out_what_cannot_be_copied_and_says_so(self, tmp_path: Path) -> None:
        workspace = tmp_path / "workspace"
        workspace.mkdir()
        os.mkfifo(workspace / "pipe\n2")
        (workspace / "a.txt").write_text("a")
        with (workspace / "huge").open("wb") as file:
            file.truncate(64 * 1024 * 1024 + 1)
        place = folder(tmp_path)
        keep_workspace(workspace, place.path, place.masker)
        assert (place.path / "left-out.txt").read_text() == "huge (67108865 bytes)\npipe\\n2 (not a regular file)\n"
        assert names(place.path / "workspace") == ["a.txt"]


class TestReadingBack:
    def test_a_trial(self, tmp_path: Path) -> None:
        place = folder(tmp_path)
        place.save_case(case(ignore_case=True))
        told = record(turns=(turn(),))
        place.save_record(told)
        written, evidence = load_trial(place.path)
        assert written == case(ignore_case=True)
        assert evidence.record == told
        assert evidence.ignore_case

    def test_what_a_later_version_added_is_left_out_but_for_a_case_where_each_key_has_a_meaning(
        self, tmp_path: Path
    ) -> None:
        place = folder(tmp_path)
        place.save_case(case())
        place.save_record(record(turns=(turn(),)))

        def add(name: str, *below: str | int) -> None:
            data = inner = json.loads((place.path / name).read_bytes())
            for key in below:
                inner = inner[key]
            inner["added_later"] = 1
            (place.path / name).write_text(json.dumps(data))

        add("record.json")
        add("record.json", "turns", 0)
        assert load_trial(place.path)[1].record == record(turns=(turn(),))
        add("case.json")
        with pytest.raises(RunDirectoryError, match="added_later"):
            load_trial(place.path)

    @pytest.mark.parametrize(
        ("name", "data", "said"),
        [
            ("record.json", b"", "record.json is damaged: Invalid JSON"),
            ("record.json", b"\xff\xfe\0", "record.json is damaged: Invalid JSON"),
            ("record.json", b"[" * 100_000, "record.json is damaged: Invalid JSON"),
            ("record.json", b"{}", "record.json is damaged: case_id: Field required"),
            ("record.json", b'{"schema_version": "skillup/99"}', "was written by another version of skillup"),
            ("case.json", b"{}", "case.json is damaged: id: Field required"),
            ("case.json", None, "case.json cannot be read: No such file or directory"),
            ("snapshots.jsonl", b'{"turn": 1}\n', "snapshots of"),
            ("snapshots.jsonl", b"[1]\n", "snapshots of"),
            ("snapshots.jsonl", b"\xff\n", "snapshots of"),
        ],
    )
    def test_rubbish_is_named(self, tmp_path: Path, name: str, data: bytes | None, said: str) -> None:
        place = folder(tmp_path)
        place.save_case(case())
        place.save_record(record(turns=(turn(),)))
        if data is None:
            (place.path / name).unlink()
        else:
            (place.path / name).write_bytes(data)
        with pytest.raises(RunDirectoryError) as caught:
            load_trial(place.path)
        assert said in caught.value.message
        assert "\n" not in caught.value.message
        assert caught.value.hint


def test_grading_writes_what_all_three_kinds_of_readers_know(tmp_path: Path) -> None:
    """`assertion_results` for one dialect, `expectations` for the other, `total_tokens` and `duration_ms` for both."""
    place = folder(tmp_path)
    place.save_case(case())
    place.save_record(record(turns=(turn(),)))
    result = grade(place.path)
    grading = json.loads((place.path / "grading.json").read_bytes())
    short = [{key: one[key] for key in ("text", "passed", "evidence")} for one in grading["assertion_results"]]
    assert grading["expectations"] == short
    assert short[0]["passed"] is True
    assert grading["summary"].items() >= {"passed": 1, "failed": 0, "total": 1, "pass_rate": 1.0}.items()
    assert read_model(place.path / "grading.json", Grading).status == "PASS"
    assert read_model(place.path / "timing.json", Timing).duration_ms == 1000
    assert read_model(place.path / "result.json", TrialResult) == result
    assert result.folder == "c/a/with_skill/trial-1/attempt-1"


def test_a_turn_that_never_began_takes_nothing_away_from_the_turns_before(tmp_path: Path) -> None:
    usage = {"input_tokens": 5, "output_tokens": 3}
    broken = turn(number=2, status="error", response=None)
    place = folder(tmp_path)
    place.save_case(case())
    failure = Failure(kind="template", phase="conversation", message="blank", turn=2)
    ending = {"how": "error", "turn": 2, "reason": "blank"}
    place.save_record(record(turns=(turn(usage=usage), broken), ending=ending, failures=(failure,)))
    result = grade(place.path)
    assert (result.turns, result.response, result.input_tokens, result.output_tokens) == (1, "done", 5, 3)
