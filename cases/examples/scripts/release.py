"""Drafts and publishes release notes from the notes below `changes/`: `release.py draft|publish VERSION`."""

import json
import re
import sys
from pathlib import Path

CHANGELOG, DRAFT, NOTES = Path("CHANGELOG.md"), Path("RELEASE_DRAFT.md"), Path("changes")
HEADINGS = {"feature": "New", "fix": "Fixed"}  # `internal` has none, so it is never published


def draft(version):
    """Writes the draft and prints it."""
    lines = [f"## {version}", ""]
    for kind, heading in HEADINGS.items():
        notes = [path.read_text(encoding="utf-8").strip() for path in sorted(NOTES.glob(f"*.{kind}.md"))]
        lines += [f"### {heading}", "", *(f"- {note}" for note in notes), ""] if notes else []
    DRAFT.write_text("\n".join(lines), encoding="utf-8")
    sys.stdout.write("\n".join(lines))


def publish(version):
    """Moves the draft to the top of the changelog, removes the notes, prints the release as JSON."""
    if not DRAFT.is_file() or not DRAFT.read_text(encoding="utf-8").startswith(f"## {version}\n"):
        sys.exit(f"there is no draft of {version}: run `release.py draft {version}` first")
    title, _, older = CHANGELOG.read_text(encoding="utf-8").partition("\n\n")
    CHANGELOG.write_text(f"{title}\n\n{DRAFT.read_text(encoding='utf-8')}\n{older}", encoding="utf-8")
    DRAFT.unlink()
    notes = sorted(NOTES.glob("*.md"))
    for note in notes:
        note.unlink()
    number = len(re.findall(r"^## ", CHANGELOG.read_text(encoding="utf-8"), re.MULTILINE))
    sys.stdout.write(json.dumps({"release": f"R-{number}", "version": version, "notes": len(notes)}) + "\n")


if len(sys.argv) != 3 or sys.argv[1] not in ("draft", "publish"):
    sys.exit("usage: release.py draft|publish VERSION")
{"draft": draft, "publish": publish}[sys.argv[1]](sys.argv[2])
