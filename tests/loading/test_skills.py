"""Which files of a skill are installed, and what a skill that no agent could use is told."""

from __future__ import annotations

import os
import textwrap
from pathlib import Path

import pytest

from skillup.errors import InputError
from skillup.loading.native import load_suites
from skillup.loading.rendering import render_faults
from skillup.spec.suite import InstalledSkill

MANIFEST = "---\nname: tickets\ndescription: Opens and closes tickets.\n---\nDo it.\n"
CASE = "input: {prompt: hi}\njudge: {type: none}\n"


@pytest.fixture(autouse=True)
def _place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A working folder with a suite of one case and a skill."""
    monkeypatch.chdir(tmp_path)
    write("skill/SKILL.md", MANIFEST)
    write("cases/a.yaml", CASE)


def write(name: str, text: str) -> None:
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(text), encoding="utf-8")


def skills(written: str = "{path: skill}") -> tuple[InstalledSkill, ...]:
    text = f"schema_version: v1alpha1\nskills: [{written}]\ncases: {{files: ['cases/*.yaml']}}\n"
    Path("eval.yaml").write_text(text, encoding="utf-8")
    return load_suites([Path("eval.yaml")])[0].skills


def report_on(written: str = "{path: skill}") -> str:
    with pytest.raises(InputError) as caught:
        skills(written)
    return render_faults(caught.value.faults)


def test_a_skill_is_named_by_its_front_matter_and_brings_all_its_files() -> None:
    write("skill/scripts/close.py", "pass")
    write("skill/reference/evals/notes.md", "a folder of this name further down is the skill's own")
    write("skill/node_modules/m/index.js", "what its scripts need")
    write("skill/.hidden", "x")
    (skill,) = skills()
    assert skill.name == "tickets"
    assert skill.files == (
        ".hidden",
        "SKILL.md",
        "node_modules/m/index.js",
        "reference/evals/notes.md",
        "scripts/close.py",
    )


def test_without_a_name_the_folder_names_the_skill() -> None:
    write("skill/SKILL.md", "---\ndescription: d\n---\n")
    assert skills()[0].name == "skill"


def test_answer_keys_histories_and_run_directories_are_never_installed() -> None:
    for name in ("evals/eval.yaml", ".git/HEAD", "lib/__pycache__/x.pyc", "skill-workspace/iteration-1/run.json"):
        write(f"skill/{name}", "x")
    assert skills()[0].files == ("SKILL.md",)


def test_a_skill_around_its_own_suite_is_installed_without_suite_and_cases() -> None:
    """The agent can read what is installed; it must not find there what is checked."""
    write("SKILL.md", MANIFEST)
    write("scripts/close.py", "pass")
    (skill,) = skills("{path: ., exclude: [skill/**]}")
    assert skill.files == ("SKILL.md", "scripts/close.py")


def test_include_chooses_and_exclude_wins() -> None:
    for name in ("scripts/a.py", "scripts/b.py", "notes.md", "big.bin"):
        write(f"skill/{name}", "x")
    (skill,) = skills("{path: skill, include: ['**/*.py', '*.md'], exclude: ['**/b.py']}")
    assert skill.files == ("SKILL.md", "notes.md", "scripts/a.py")


def test_a_link_inside_the_suite_is_installed_as_the_file_that_it_leads_to() -> None:
    write("shared/text.md", "x")
    Path("skill/text.md").symlink_to(Path("shared/text.md").absolute())
    assert "text.md" in skills()[0].files


FAULTS = {
    "no folder": ("{path: none}", "skills[0].path: there is no folder none (paths are relative to {here})"),
    "no SKILL.md": ("{path: cases}", "skills[0].path: cases holds no SKILL.md (paths are relative to {here})"),
    "outside": (
        "{path: ..}",
        "skills[0].path: .. leaves the suite's folder {here} (move it inside, or pass --allow-path DIR)",
    ),
    "SKILL.md left out": (
        "{path: skill, include: ['*.py']}",
        "skills[0].path: include and exclude leave SKILL.md itself out (add it to `include`)",
    ),
    "a glob that leaves": (
        "{path: skill, include: ['../**']}",
        'skills[0].include[0]: the path "../**" leaves its folder (use a relative path with / and without ..)',
    ),
    "twice": ("{path: skill}, {path: skill}", "skills[1]: another skill has the name tickets, too"),
}


@pytest.mark.parametrize(("written", "report"), FAULTS.values(), ids=FAULTS)
def test_a_faulty_skill_is_one_line_at_its_place(written: str, report: str) -> None:
    line = report_on(written)
    assert line.partition(": ")[2] == report.replace("{here}", str(Path.cwd()))
    assert line.startswith("eval.yaml:2:")


MANIFESTS = {
    "no front matter": (
        "# A skill\n",
        (
            "skill/SKILL.md:1:1: no front matter, so no agent would load the skill "
            "(begin the file with ---, name: and description:, ---)"
        ),
    ),
    "no description": (
        "---\nname: a\n---\n",
        (
            "skill/SKILL.md:2:1: description: the skill has no description, so no agent would ever choose it "
            "(say in `description:` when it is to be used)"
        ),
    ),
    "a name that is a path": (
        "---\nname: a/b\ndescription: d\n---\n",
        'skill/SKILL.md:2:7: name: "a/b" cannot name a skill (use letters, digits, `.`, `_` and `-`, at most 64)',
    ),
    "broken YAML": (
        "---\nname: a\ndescription: Use when: asked\n---\n",
        'skill/SKILL.md:3:22: a second ": " in one value (quote a text that holds a colon and a blank)',
    ),
    "no mapping": (
        "---\n- a\n---\n",
        "skill/SKILL.md:2:1: the front matter is not a mapping (write name: and description:)",
    ),
}


@pytest.mark.parametrize(("text", "report"), MANIFESTS.values(), ids=MANIFESTS)
def test_a_faulty_manifest_is_told_with_the_line_that_it_has_in_the_file(text: str, report: str) -> None:
    write("skill/SKILL.md", text)
    assert report_on() == report


def test_a_link_out_of_the_suite_is_refused() -> None:
    Path("skill/secret").symlink_to("/etc/passwd")
    assert "secret of the skill is a link that leaves the suite's folder" in report_on()
    assert skills("{path: skill, exclude: [secret]}")[0].files == ("SKILL.md",)


def test_a_manifest_that_is_a_link_out_of_the_suite_is_not_even_read() -> None:
    Path("skill/SKILL.md").unlink()
    Path("skill/SKILL.md").symlink_to("/etc/passwd")
    assert "SKILL.md of the skill is a link that leaves the suite's folder" in report_on()


def test_a_link_to_a_folder_is_refused_and_not_lost() -> None:
    Path("shared").mkdir()
    Path("skill/shared").symlink_to(Path("shared").absolute())
    assert "shared of the skill is a link to a folder, and links are not followed" in report_on()


def test_a_special_file_is_refused_and_not_opened() -> None:
    os.mkfifo("skill/pipe")
    assert "pipe of the skill is no regular file" in report_on()


USES = "input: {prompt: hi}\njudge: {type: rule_based, success: [{skill_used: %s}]}\n"


def test_a_rule_on_a_skill_that_the_suite_does_not_install_is_a_fault_at_its_place() -> None:
    write("cases/a.yaml", USES % "tickets")
    assert skills()[0].name == "tickets"
    write("cases/a.yaml", USES % "{name: ticket, used: false}")
    assert report_on() == (
        'cases/a.yaml:2:50: judge.success[0].skill_used: the suite installs no skill "ticket" (did you mean "tickets"?)'
    )
    write("cases/a.yaml", USES % "heron")
    assert report_on().endswith('no skill "heron" (it installs tickets)')


def test_a_rule_on_a_skill_of_a_bare_case_says_that_skills_belong_to_a_suite() -> None:
    write("alone/b.yaml", USES % "tickets")
    with pytest.raises(InputError) as caught:
        load_suites([Path("alone/b.yaml")])
    assert render_faults(caught.value.faults).endswith('no skill "tickets" (name it in `skills` of eval.yaml)')


def test_a_skill_that_cannot_be_read_is_one_fault_and_not_two() -> None:
    write("cases/a.yaml", USES % "tickets")
    assert report_on("{path: nowhere}").count("\n") == 0
