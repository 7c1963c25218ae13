"""What counts as a secret, and how it is found; what only looks like one stays, as it may decide a verdict."""

from __future__ import annotations

import json

import pytest

from skillup.execution.masked import masked
from skillup.masking import MASK, Masker
from skillup.spec.case import Case

SECRET = 'pa"ss\\wörd-4711'


@pytest.mark.parametrize(
    "key",
    [
        "sk-ant-api03-abcdefghijklmnop",
        "sk-proj-abcdefghijklmnopqrstuvwx4711",
        "sk-abcdefghijklmnopqrstuvwx4711",
        "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
        "github_pat_abcdefghijklmnopqrstuvwxyz0123456789",
        "AKIAABCDEFGHIJKLMNOP",
        "AIza" + "a" * 35,
        "xoxb-0123456789-abcdefghijk",
    ],
)
def test_a_key_is_recognised_by_its_shape(key: str) -> None:
    assert Masker().text(f"the key is {key}.") == f"the key is {MASK}."
    assert Masker().data(f"KEY={key}\n".encode()) == f"KEY={MASK}\n".encode()


@pytest.mark.parametrize(
    "text",
    [
        "task-list-for-the-next-release-2024.md",
        "disk-usage-report-of-the-whole-machine-4711",
        "sk-learn-based-classification-of-documents",
        "MAKIAABCDEFGHIJKLMNOP",
        "a1b2c3" * 20,
    ],
)
def test_what_only_looks_like_a_key_stays(text: str) -> None:
    assert Masker().text(text) == text
    assert Masker().data(text.encode()) == text.encode()


@pytest.mark.parametrize("depth", [0, 1, 2, 3])
def test_a_secret_is_found_in_json_within_json(depth: int) -> None:
    for ascii_only in (True, False):
        text = SECRET
        for _ in range(depth):
            text = json.dumps({"text": text}, ensure_ascii=ascii_only)
        assert "4711" not in Masker([SECRET]).text(text)
        assert b"4711" not in Masker([SECRET]).data(text.encode())


@pytest.mark.parametrize("kept", range(1, len(SECRET) + 1))
def test_of_a_secret_that_was_cut_less_than_half_is_left(kept: int) -> None:
    """Messages show the end of what a process said, or the beginning of a line."""
    masker, half = Masker([SECRET]), (len(SECRET) + 1) // 2
    whole = kept >= half
    assert masker.text(f"it said {SECRET[:kept]}") == f"it said {MASK if whole else SECRET[:kept]}"
    assert masker.text(f"line 'it said {SECRET[:kept]}…'") == f"line 'it said {MASK if whole else SECRET[:kept]}…'"
    assert masker.text(f"{SECRET[-kept:]} it said") == f"{MASK if whole else SECRET[-kept:]} it said"
    assert masker.text(SECRET[:kept] + " and more") == (MASK if kept == len(SECRET) else SECRET[:kept]) + " and more"


def test_a_secret_is_found_in_bytes_as_notes_quote_them() -> None:
    assert Masker([SECRET]).text(f"at byte 7: {SECRET.encode()!r}") == f"at byte 7: b'{MASK}'"


def lines(pieces: list[str]) -> bytes:
    """A streamed reply as a CLI prints it, with other lines between the pieces."""
    found = []
    for index, piece in enumerate(pieces):
        found.append(json.dumps({"type": "stream_event", "event": {"index": 0, "delta": {"text": piece}}}))
        found.append(json.dumps({"type": "status", "number": index}))
    return "\n".join([*found, "no JSON", ""]).encode()


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8, 13, 40])
def test_a_secret_in_pieces_is_masked_and_the_rest_stays(size: int) -> None:
    text = f"before {SECRET} between {SECRET}{SECRET} after"
    data = lines([text[at : at + size] for at in range(0, len(text), size)])
    masked = Masker([SECRET]).data(data)
    events = [json.loads(line) for line in masked.split(b"\n") if line.startswith(b"{")]
    joined = "".join(event["event"]["delta"]["text"] for event in events if "event" in event)
    assert joined == f"before {MASK} between {MASK}{MASK} after"
    assert len(masked.split(b"\n")) == len(data.split(b"\n"))


def test_lines_without_a_secret_stay_byte_by_byte() -> None:
    data = b'{ "a": "1",\t"b": [1.0, 2e3] }\n{"a":"2"}\n{damaged\n' + b'{"a":' * 5000 + b"\n\xff\xfe\n"
    assert Masker([SECRET]).data(data) == data


def test_a_word_is_no_secret() -> None:
    assert Masker(["short"]).text("a short word") == "a short word"


def test_names_of_branches_and_remotes_that_are_also_secrets_leave_a_case_that_can_be_read_back() -> None:
    """A credential may happen to be an ordinary word; a mask in its place would be no name."""
    url = "https://me:develop-token@example.com/a.git"
    git = {"init": True, "checkout": "develop", "remotes": [{"name": "develop", "url": url}]}
    given = {"id": "a", "input": {"prompt": "hi"}, "context": {"git": git}, "collect_artifacts": ["develop/**"]}
    saved = masked(Case.model_validate(given), Masker(["develop", "develop-token"]), only_set=True)
    case = Case.model_validate(saved)
    assert (case.context.git.checkout, case.context.git.remotes[0].name) == ("develop", "develop")
    assert case.context.git.remotes[0].url == "https://me:[masked]@example.com/a.git"
    assert case.collect_artifacts == ("[masked]/**",)
