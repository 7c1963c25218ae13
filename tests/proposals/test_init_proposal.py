"""`proposals/init-proposal.sh`: what it makes, what it refuses, and that it never harms what is there."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import pytest

from tests.proposals.reading import KEYS, assert_agreement, proposals, read, rows
from tests.support import REPOSITORY

BASH = shutil.which("bash") or "bash"
OWN_FILES = ("README.md", "CONTRIBUTING.md", "init-proposal.sh", "proposal-template.md.template")
LONG = "x" * 1500

Argument = str | bytes


class Desk:
    """A copy of the proposals folder in a path with blanks, and another folder to call it from."""

    def __init__(self, root: Path) -> None:
        self.folder = root / "a project" / "proposals"
        self.cwd = root / "some where"
        self.home = root / "home"
        for path in (self.cwd / "folder", self.home):
            path.mkdir(parents=True)
        shutil.copytree(REPOSITORY / "proposals", self.folder)
        (self.cwd / "full.md").write_text("mine\n")
        (self.cwd / "dangling.md").symlink_to("nowhere.md")
        (self.cwd / "linked.md").symlink_to("full.md")
        (self.home / ".gitconfig").write_text("[user]\n\tname = A. Author\n")

    def variables(self, more: Mapping[str, str] | None = None) -> dict[str, str]:
        """The environment of a call: nothing of ours but PATH."""
        own = {"PATH": os.environ["PATH"], "HOME": str(self.home), "GIT_CONFIG_NOSYSTEM": "1", "LANG": "C.UTF-8"}
        return {**own, **(more or {})}

    def start(self, *arguments: Argument, env: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
        """Starts the script, from the other folder."""
        return subprocess.Popen(
            [BASH, str(self.folder / "init-proposal.sh"), *arguments],
            cwd=self.cwd,
            env=self.variables(env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
        )

    def call(self, *arguments: Argument, env: Mapping[str, str] | None = None) -> tuple[int, str, str]:
        """Exit code, stdout and stderr of the script."""
        process = self.start(*arguments, env=env)
        stdout, stderr = process.communicate(timeout=60)
        return process.returncode, stdout, stderr

    def make(self, *arguments: Argument, env: Mapping[str, str] | None = None) -> Path:
        """The proposal that a call has made."""
        code, stdout, stderr = self.call(*arguments, env=env)
        assert (code, stderr) == (0, "")
        made = re.fullmatch(r"Created (.*)\n", stdout)
        assert made, stdout
        return (self.cwd / made[1]).resolve()

    def sign(self, owner: str) -> Path:
        """Makes the file by which another run says that it is at work."""
        path = self.folder / f".init-proposal.run.{owner}"
        path.touch()
        return path

    def clear(self) -> None:
        """Takes all proposals and rows away."""
        for proposal in proposals(self.folder):
            proposal.path.unlink()
        readme = self.folder / "README.md"
        lines = readme.read_text(encoding="utf-8").splitlines(keepends=True)
        readme.write_text("".join(line for line in lines if not line.startswith("| [SUP-")), encoding="utf-8")

    def state(self) -> dict[str, bytes]:
        """Every path below both folders, with its content or where it leads."""
        found = {}
        for path in sorted([*self.cwd.rglob("*"), *self.folder.parent.rglob("*")]):
            if path.is_symlink():
                found[str(path)] = b"-> " + os.fsencode(path.readlink())
            elif path.is_file():
                found[str(path)] = path.read_bytes()
        return found

    @property
    def next_number(self) -> int:
        """What a call without a number in `--output` has to take."""
        return max((int(row.id[4:]) for row in rows(self.folder)), default=0) + 1


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


@dataclass(frozen=True)
class Refused:
    """A call that must fail with one sentence on stderr, and change nothing."""

    arguments: tuple[Argument, ...]
    says: str
    code: int = 2


REFUSED = {
    "no title": Refused((), "the title is missing"),
    "empty title": Refused(("",), "the title is empty"),
    "blank title": Refused(("  ",), "the title is empty"),
    "ideographic blank": Refused(("\u3000",), "the title is empty"),
    "no-break blanks": Refused(("\u00a0\u2003\u200b",), "the title is empty"),
    "nothing after --": Refused(("--",), "the title is missing"),
    "two titles": Refused(("My", "title"), "more than one title: My and title"),
    "two titles after --": Refused(("--", "-h", "-h"), "more than one title: -h and -h"),
    "unknown long option": Refused(("--title", "T"), "unknown option --title"),
    "unknown short option": Refused(("-x", "T"), "unknown option -x"),
    "value glued to a short option": Refused(("-sdraft", "T"), "unknown option -sdraft"),
    "value for an option that takes none": Refused(("--help=yes",), "unknown option --help=yes"),
    "title that looks like an option": Refused(("-dash",), "`--` goes before a title"),
    "lone dash": Refused(("-",), "unknown option -"),
    "dangling -s": Refused(("T", "-s"), "option -s needs a value"),
    "dangling --status": Refused(("T", "--status"), "option --status needs a value"),
    "dangling -a": Refused(("T", "-a"), "option -a needs a value"),
    "dangling --author": Refused(("--author",), "option --author needs a value"),
    "dangling -o": Refused(("T", "-o"), "option -o needs a value"),
    "dangling --output": Refused(("--output",), "option --output needs a value"),
    "option as status": Refused(("-s", "-a", "T"), "-a looks like an option; if it is meant: --status=-a"),
    "option as author": Refused(("--author", "--output", "x", "T"), "if it is meant: --author=--output"),
    "end of options as output": Refused(("-o", "--", "T"), "option -o needs a value, but -- looks like an option"),
    "help as author": Refused(("-a", "-h", "T"), "-h looks like an option"),
    "unknown status": Refused(("-s", "done", "T"), "unknown status done; one of: draft, provisional, implementable"),
    "two statuses in one": Refused(("-s", "draft provisional", "T"), r"unknown status draft\ provisional"),
    "empty status": Refused(("-s", "", "T"), "the value of -s is empty"),
    "empty status by =": Refused(("--status=", "T"), "the value of --status is empty"),
    "empty author": Refused(("-a", "", "T"), "the value of -a is empty"),
    "blank author by =": Refused(("--author= ", "T"), "the value of --author is empty"),
    "empty output": Refused(("--output=", "T"), "the value of --output is empty"),
    "status twice": Refused(("-s", "draft", "--status=draft", "T"), "option --status=draft is given twice"),
    "author twice": Refused(("-a", "A", "-a", "B", "T"), "option -a is given twice"),
    "line break": Refused(("My\ntitle",), "the title holds a line break or another control character"),
    "line break at the end": Refused(("My title\n",), "the title holds a line break"),
    "tab": Refused(("My\ttitle",), "another control character"),
    "escape sequence": Refused(("\x1b[31mred",), "another control character"),
    "delete": Refused(("a\x7fb",), "another control character"),
    "C1 control character": Refused(("a\u0085b",), "another control character"),
    "line separator": Refused(("a\u2028b",), "another control character"),
    "no character": Refused(("a\uffffb",), "another control character"),
    "no UTF-8": Refused((b"caf\xe9",), "the title is not valid UTF-8"),
    "surrogate": Refused((b"\xed\xa0\x80",), "the title is not valid UTF-8"),
    "overlong bytes": Refused((b"\xc0\xaf",), "the title is not valid UTF-8"),
    "line break in the author": Refused(("-a", "A\nB", "T"), "the value of -a holds a line break"),
    "line break in the output": Refused(("--output=a\nb.md", "T"), "the value of --output holds a line break"),
    "too long a title": Refused(("x" * 2001,), "the title is too long: 2001 bytes, at most 2000"),
    "too long a number": Refused(("-o", "1234567890-x.md", "T"), "nine digits at most"),
    "existing file": Refused(("-o", "full.md", "T"), "full.md exists already; nothing was overwritten", 1),
    "link to a file": Refused(("-o", "linked.md", "T"), "linked.md exists already", 1),
    "dangling link": Refused(("-o", "dangling.md", "T"), "dangling.md is a symbolic link that leads nowhere", 1),
    "existing folder": Refused(("-o", "folder", "T"), "is a folder; to write into it: --output folder/", 1),
    "the working folder": Refused(("-o", ".", "T"), "is a folder", 1),
    "file as a folder": Refused(("-o", "full.md/x.md", "T"), "cannot make the folder full.md", 1),
    "file with a slash": Refused(("-o", "full.md/", "T"), "cannot make the folder full.md", 1),
    "dangling link as a folder": Refused(("-o", "dangling.md/x.md", "T"), "cannot make the folder dangling.md", 1),
    "name too long for the disk": Refused(("-o", LONG, "T"), "cannot write", 1),
    "taken number": Refused(("-o", "1-x.md", "T"), "SUP-0001 is taken: see ", 1),
    "taken number, padded": Refused(("-o", "folder/000001.md", "T"), "SUP-0001 is taken: see ", 1),
}


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED.keys())
def test_refuses_with_a_sentence_and_changes_nothing(desk: Desk, case: Refused) -> None:
    before = desk.state()
    code, stdout, stderr = desk.call(*case.arguments)
    assert (code, stdout) == (case.code, "")
    assert case.says in stderr
    assert "unbound" not in stderr
    assert ("Usage: init-proposal.sh [-s|--status S]" in stderr) == (code == 2)
    assert desk.state() == before


@dataclass(frozen=True)
class Made:
    """A call that must make a proposal: what its front matter says, and the slug or the path that it gets."""

    arguments: tuple[Argument, ...]
    title: str
    slug: str = ""
    path: str = ""
    status: str = "draft"
    author: str = "A. Author"
    number: int | None = None


def titled(title: str, slug: str, *arguments: str) -> Made:
    return Made((*arguments, title), title, slug)


MADE = {
    "plain": titled("A Plain Title", "a-plain-title"),
    "ampersand": titled("R&D & more", "r-d-more"),
    "double quotes": titled('The "right" way', "the-right-way"),
    "single quotes": titled("It's 'quoted'", "its-quoted"),
    "colon": titled("My: proposal: again", "my-proposal-again"),
    "backslashes": titled(r"a\b \& \n \\ \ ", "a-b-n"),
    "braces": titled("Use {{date}} and {{yaml_title}}", "use-date-and-yaml-title"),
    "open braces": titled("{{ {{{ }} {", "proposal"),
    "bars": titled(r"a|b \| c\\|d", "a-b-c-d"),
    "comment": titled("C # not a comment #", "c-not-a-comment"),
    "outer blanks": titled("  padded  ", "padded"),
    "shell": titled("$HOME `id` $(id) ${x} !! * ? ~", "home-id-id-x"),
    "format": titled("100%s %d%%", "100-s-d"),
    "flow list": titled("[a, b]: {c: d}", "a-b-c-d"),
    "anchor": titled("&anchor *alias !tag |", "anchor-alias-tag"),
    "null": titled("null", "null"),
    "number": titled("0010", "0010"),
    "date": titled("2026-01-01", "2026-01-01"),
    "boolean": titled("yes", "yes"),
    "document mark": titled("---", "proposal", "--"),
    "begins with a dash": titled("-dash first", "dash-first", "--"),
    "help after --": titled("-h", "h", "--"),
    "option after --": titled("--output=x.md", "output-x-md", "--"),
    "double dash twice": titled("--", "proposal", "--"),
    "list item": titled("- item", "item", "--"),
    "markdown": titled("*Bold* [link](x) <b> `code`", "bold-link-x-b-code"),
    "umlauts": titled("Größe & Maß", "größe-maß"),
    "Chinese": titled("多轮对话评估", "多轮对话评估"),
    "Cyrillic": titled("оценка диалога", "оценка-диалога"),
    "Arabic": titled("تقييم المحادثة", "تقييم-المحادثة"),
    "emoji": titled("🚀 launch 👩‍🚀", "launch"),
    "emoji alone": titled("🚀✨", "proposal"),
    "symbols alone": titled("&&& ???", "proposal"),
    "dots and slashes": titled("../../etc/passwd", "etc-passwd"),
    "long": titled(LONG, "x" * 60),
    "long and wide": titled("字" * 600, "字" * 60),
    "options after the title": Made(("T", "-s", "provisional"), "T", "t", status="provisional"),
    "status in capitals by =": Made(("--status=IMPLEMENTED", "T"), "T", "t", status="implemented"),
    "author": Made(("-a", 'O\'Neil: "R&D" {{title}} \\', "T"), "T", "t", author='O\'Neil: "R&D" {{title}} \\'),
    "author like an option, by =": Made(("--author=-a", "T"), "T", "t", author="-a"),
    "author in Greek": Made(("--author", "Σωκράτης", "T"), "T", "t", author="Σωκράτης"),
    "output without digits": Made(("-o", "foo.md", "T"), "T", path="foo.md"),
    "output with digits": Made(("-o", "42-foo.md", "T"), "T", path="42-foo.md", number=42),
    "output of digits alone": Made(("-o", "0099", "T"), "T", path="0099", number=99),
    "output with octal-like digits": Made(("-o", "0080-x.md", "T"), "T", path="0080-x.md", number=80),
    "output with five digits": Made(("-o", "12345_x.md", "T"), "T", path="12345_x.md", number=12345),
    "output that is no number": Made(("-o", "3d-view.md", "T"), "T", path="3d-view.md"),
    "digits of a folder do not count": Made(("-o", "77/x.md", "T"), "T", path="77/x.md"),
    "missing parents": Made(("--output", "a b/c (d)/e|f.md", "T"), "T", path="a b/c (d)/e|f.md"),
    "output like an option, by =": Made(("--output=-x.md", "T"), "T", path="-x.md"),
    "new folder": Made(("-o", "new/deep/", "T"), "T", "t", path="new/deep/"),
    "existing folder with a slash": Made(("-o", "folder/", "T"), "T", "t", path="folder/"),
    "umlauts in the output": Made(("-o", "größe/ü.md", "T"), "T", path="größe/ü.md"),
    "beside the others": Made(("-o", "../a project/proposals/0500-own.md", "T"), "T", number=500,
                              path="../a project/proposals/0500-own.md"),
}  # fmt: skip


@pytest.mark.parametrize("case", MADE.values(), ids=MADE.keys())
def test_makes_a_proposal_that_a_yaml_parser_reads_back_exactly(desk: Desk, case: Made) -> None:
    before, number, first_day = desk.state(), case.number or desk.next_number, date.today()  # noqa: DTZ011 - as `date`
    path = desk.make(*case.arguments)
    last_day = date.today()  # noqa: DTZ011 - the script says the local day, too

    made = read(path)
    assert list(made.meta) == KEYS
    assert made.meta["title"] == case.title
    assert made.meta["authors"] == [case.author]
    assert made.meta["status"] == case.status
    assert made.meta["number"] == number
    assert first_day <= made.meta["created"] == made.meta["last-updated"] <= last_day
    assert made.heading == f"# SUP-{number:04d}: {case.title}"

    where = desk.cwd / case.path if case.path else desk.folder
    assert path == ((where / f"{number:04d}-{case.slug}.md") if case.slug else where).resolve()
    row = next(row for row in rows(desk.folder) if row.id == made.id)
    assert (row.path, row.title, row.status, row.updated) == (
        path,
        case.title,
        case.status,
        str(made.meta["created"]),
    )
    after = desk.state()
    readme = str(desk.folder / "README.md")
    assert {name for name in after if after[name] != before.get(name)} == {str(path), readme}
    assert [line for line in after[readme].split(b"\n") if f"[{made.id}]".encode() not in line] == before[readme].split(
        b"\n"
    )
    assert before.keys() <= after.keys()


def test_fills_the_whole_template(desk: Desk) -> None:
    desk.clear()
    text = desk.make("-s", "provisional", "Whole").read_text(encoding="utf-8")
    assert "{{" not in text
    template = (desk.folder / "proposal-template.md.template").read_text(encoding="utf-8")
    assert re.findall(r"^## .*$", text, re.MULTILINE) == re.findall(r"^## .*$", template, re.MULTILINE)
    assert text.endswith(": provisional\n")


@pytest.mark.parametrize(
    ("there", "expected"),
    [
        ([], "0001"),
        (["0007-x.md"], "0008"),
        (["0008-x.md"], "0009"),
        (["0009-x.md"], "0010"),
        (["0007-x.md", "0010-y.md", "0009-z.md"], "0011"),
        (["0099-x.md"], "0100"),
        (["9999-x.md"], "10000"),
        (["10000-x.md", "9999-y.md"], "10001"),
        (["42-x.md"], "0043"),
        (["0005.md", "notes-0077.md", "0088-picture.png", "7up.md"], "0006"),
        (["12345678901-too-long.md"], "0001"),
    ],
)
def test_the_number_is_the_next_one_never_octal_and_counts_five_digits(
    desk: Desk, there: list[str], expected: str
) -> None:
    desk.clear()
    for name in there:
        (desk.folder / name).symlink_to("nowhere")  # a name is taken, whatever it leads to
    assert desk.make("T") == desk.folder / f"{expected}-t.md"


def test_a_number_that_only_the_index_knows_is_taken(desk: Desk) -> None:
    desk.clear()
    elsewhere = desk.make("-o", "0041-draft.md", "Elsewhere")
    elsewhere.unlink()
    assert desk.make("Next").name == "0042-next.md"
    code, _, stderr = desk.call("-o", "41.md", "Again")
    assert (code, "SUP-0041 is taken" in stderr) == (1, True)


def test_rows_stand_in_the_order_of_numbers_and_everything_else_stays(desk: Desk) -> None:
    desk.clear()
    before = (desk.folder / "README.md").read_text(encoding="utf-8")
    readme = desk.folder / "README.md"
    readme.write_text(before.rstrip("\n") + "\n\nText after the table, without a line end", encoding="utf-8")
    for number in (30, 4, 10000, 9999, 5):
        desk.make("-o", f"{desk.folder}/{number:04d}-x.md", f"Title {number}")
    assert [row.id for row in rows(desk.folder)] == ["SUP-0004", "SUP-0005", "SUP-0030", "SUP-9999", "SUP-10000"]
    text = readme.read_text(encoding="utf-8")
    assert "".join(line for line in text.splitlines(keepends=True) if "| [SUP-" not in line) == (
        before.rstrip("\n") + "\n\nText after the table, without a line end\n"
    )
    assert_agreement(desk.folder)


def test_ten_runs_at_once_give_ten_numbers_and_ten_rows(desk: Desk) -> None:
    desk.clear()
    running = [desk.start(f"Title {i}") for i in range(10)]
    ended = [(*process.communicate(timeout=60), process.returncode) for process in running]
    assert [(stderr, code) for _, stderr, code in ended] == [("", 0)] * 10
    assert [proposal.meta["number"] for proposal in proposals(desk.folder)] == list(range(1, 11))
    assert [row.id for row in rows(desk.folder)] == [f"SUP-{number:04d}" for number in range(1, 11)]
    assert {row.title for row in rows(desk.folder)} == {f"Title {i}" for i in range(10)}
    assert_agreement(desk.folder)
    assert not list(desk.folder.glob(".init-proposal*"))


@pytest.mark.parametrize("reaped", [True, False], ids=["gone", "zombie"])
def test_what_killed_runs_have_left_stands_in_nobodys_way(desk: Desk, *, reaped: bool) -> None:
    desk.clear()
    owner = subprocess.Popen([sys.executable, "-c", ""])
    os.waitid(os.P_PID, owner.pid, os.WEXITED | (0 if reaped else os.WNOWAIT))
    desk.sign(f"{owner.pid}@{socket.gethostname()}.1")
    desk.sign(f"{owner.pid}@{socket.gethostname()}.2")
    running = [desk.start(f"Title {i}", env={"INIT_PROPOSAL_WAIT": "20"}) for i in range(3)]
    ended = [(*process.communicate(timeout=60), process.returncode) for process in running]
    owner.wait()
    assert [(stderr, code) for _, stderr, code in ended] == [("", 0)] * 3
    assert len(rows(desk.folder)) == 3
    assert_agreement(desk.folder)
    assert not list(desk.folder.glob(".init-proposal*"))


def test_runs_that_are_killed_at_any_moment_harm_neither_index_nor_numbers_nor_the_runs_after_them(desk: Desk) -> None:
    desk.clear()
    for i in range(30):
        victim, bystander = desk.start(f"Victim {i}"), desk.start(f"Bystander {i}")
        with suppress(subprocess.TimeoutExpired):
            victim.wait(timeout=i * 0.003)
        victim.kill()
        victim.communicate()
        bystander.communicate(timeout=60)
        assert bystander.returncode == 0
    last = read(desk.make("Last"))
    titles = [row.title for row in rows(desk.folder)]
    assert titles[-1] == "Last"
    assert [title for title in titles if title.startswith("Bystander")] == [f"Bystander {i}" for i in range(30)]
    assert last.id == rows(desk.folder)[-1].id
    names = [path.name for path in desk.folder.glob("[0-9]*.md")]
    assert len({name[:4] for name in names}) == len(names)
    assert not list(desk.folder.glob(".init-proposal.run.*"))


@pytest.mark.parametrize("owner", ["{pid}@{host}.7", "1@another-machine.7", "nonsense"])
def test_a_run_that_may_be_at_work_is_waited_for_and_then_named(desk: Desk, owner: str) -> None:
    sign = desk.sign(owner.format(pid=os.getpid(), host=socket.gethostname()))
    before = desk.state()
    code, stdout, stderr = desk.call("T", env={"INIT_PROPOSAL_WAIT": "0"})
    assert (code, stdout) == (1, "")
    assert stderr == f"init-proposal.sh: another run is at work; if there is none, remove {sign}\n"
    assert desk.state() == before


def test_a_run_goes_on_when_the_one_before_it_is_through(desk: Desk) -> None:
    sign = desk.sign(f"{os.getpid()}@{socket.gethostname()}.7")
    process = desk.start("Waits")
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(timeout=1)
    sign.unlink()
    stdout, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert stdout.endswith("-waits.md\n")


def test_a_run_that_is_stopped_while_it_waits_leaves_everything_as_it_was(desk: Desk) -> None:
    desk.sign(f"{os.getpid()}@{socket.gethostname()}.7")
    before = desk.state()
    process = desk.start("Stopped")
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(timeout=1)
    process.terminate()
    process.communicate(timeout=60)
    assert process.returncode == 143
    assert desk.state() == before


def test_a_wait_that_is_no_number_is_refused(desk: Desk) -> None:
    code, _, stderr = desk.call("T", env={"INIT_PROPOSAL_WAIT": "soon"})
    assert code == 2
    assert "INIT_PROPOSAL_WAIT is not a number of seconds: soon" in stderr


@pytest.mark.parametrize("late", ["echo mine > late.md", "ln -s nowhere late.md"], ids=["file", "dangling link"])
def test_what_appears_at_the_last_moment_is_not_overwritten_either(desk: Desk, late: str) -> None:
    tools = desk.home / "bin"
    tools.mkdir()
    # The last tool that runs before the file is opened is the second `dirname late.md`.
    (tools / "dirname").write_text(
        f'#!/bin/sh\nif [ "$2" = late.md ]; then if [ -e asked ]; then {late}; fi; : > asked; fi\n'
        'PATH=/usr/bin:/bin exec dirname "$@"\n'
    )
    (tools / "dirname").chmod(0o755)
    before = desk.state()
    code, _, stderr = desk.call("-o", "late.md", "T", env={"PATH": f"{tools}:{os.environ['PATH']}"})
    assert (code, stderr) == (1, "init-proposal.sh: cannot write late.md\n")
    after = desk.state()
    assert after.pop(str(desk.cwd / "late.md")) in (b"mine\n", b"-> nowhere")
    del after[str(desk.cwd / "asked")]
    assert after == before


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("README.md", None, "the index .*README.md is missing"),
        ("README.md", "# Proposals\n", "has no table that begins with `| Proposal |`"),
        ("proposal-template.md.template", None, "the template .* is missing"),
        ("proposal-template.md.template", "# {{titel}}\n", "a placeholder that is not known: {{titel}}"),
    ],
)
def test_a_folder_in_disorder_is_said_and_left_as_it_is(desk: Desk, name: str, text: str | None, says: str) -> None:
    if text is None:
        (desk.folder / name).unlink()
    else:
        (desk.folder / name).write_text(text, encoding="utf-8")
    before = desk.state()
    code, stdout, stderr = desk.call("T")
    assert (code, stdout) == (1, "")
    assert re.search(says.replace("|", r"\|").replace("{", r"\{"), stderr), stderr
    assert desk.state() == before


def test_the_author_is_who_git_says_else_the_user_else_unknown(desk: Desk) -> None:
    config = desk.home / ".gitconfig"
    found = []
    for text, env in [
        ("[user]\nname = Git Name\nemail = me@example.org\n", {"USER": "login"}),
        ("[user]\nname = \" \"\nemail = me@example.org\n", {"USER": "login"}),
        ("", {"USER": "login"}),
        ("", {}),
    ]:  # fmt: skip
        config.write_text(text)
        found += read(desk.make("T", env=env)).meta["authors"]
    assert found == ["Git Name", "me@example.org", "login", "Unknown Author"]


def test_the_slug_is_the_same_in_every_locale(desk: Desk) -> None:
    names = [desk.make("Größe", env={"LC_ALL": name}).name[4:] for name in ("C", "POSIX", "C.UTF-8")]
    assert set(names) == {"-größe.md"}


def test_it_works_through_a_symbolic_link_and_from_its_own_folder(desk: Desk) -> None:
    (desk.cwd / "init").symlink_to("../a project/proposals/init-proposal.sh")
    for script, cwd in (("./init", desk.cwd), ("./init-proposal.sh", desk.folder)):
        subprocess.run([script, "T"], cwd=cwd, env=desk.variables(), check=True, stdout=subprocess.DEVNULL)
    assert len(rows(desk.folder)) == len(proposals(desk.folder))
    assert_agreement(desk.folder)


@pytest.mark.parametrize("option", ["-h", "--help"])
def test_help_names_every_option_and_makes_nothing(desk: Desk, option: str) -> None:
    before = desk.state()
    code, stdout, stderr = desk.call("-s", "draft", option, "T")
    assert (code, stderr) == (0, "")
    assert all(
        name in stdout for name in ("-s, --status", "-a, --author", "-o, --output", "-h, --help", "INIT_PROPOSAL")
    )
    assert desk.state() == before


def test_shellcheck_finds_nothing_in_it() -> None:
    shellcheck = Path(sys.executable).parent / "shellcheck"
    script = REPOSITORY / "proposals" / "init-proposal.sh"
    done = subprocess.run([shellcheck, "--norc", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")
