"""Files of the suite that a case is held against (`golden_file`, `file_equals`, `json_schema`): read when it is loaded.

What they say goes into the case, so that a saved trial holds all that it is judged by; of a judge's script, its hash.
None of them may come into a workspace or a skill: the agent could read what is checked.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from skillup.errors import Fault
from skillup.loading.document import Document, KeyPath
from skillup.loading.paths import Ground
from skillup.loading.programs import folders_of, with_files
from skillup.loading.scripts import script_hash
from skillup.spec.case import Case
from skillup.spec.content_rules import SuiteText
from skillup.spec.json_rules import JsonSchema
from skillup.spec.jsonschemas import checked_schema
from skillup.spec.programs import Program
from skillup.spec.script_judge import ScriptFile
from skillup.spec.suite import InstalledSkill

MAX_BYTES = 1024 * 1024
"""Of one file: more than an expected answer can be, and it is copied into every trial."""


@dataclass
class References:
    """Reads the files that cases of one suite refer to, each once; `paths` are those that were read, as written.

    `folders` are those that programs are started with, and evaluators that are packages.
    """

    ground: Ground
    paths: dict[str, Path] = field(default_factory=dict)
    folders: set[Path] = field(default_factory=set)
    _texts: dict[str, str] = field(default_factory=dict)
    _hashes: dict[str, str] = field(default_factory=dict)

    def filled(self, case: Case, places: tuple[tuple[str, Document, KeyPath], ...]) -> tuple[Case, list[Fault]]:
        """The case with the texts of its files, and what is wrong with them.

        `places` says for `expect`, `judge` and `judges` which document, and where in it, holds them.
        """
        faults: list[Fault] = []
        update = {}
        for name, document, at in places:
            written = getattr(case, name)
            if written is not None:
                made = self._filled(written, document, at, faults)
                if made is not written:
                    update[name] = made
        return (case.model_copy(update=update) if update else case), faults

    def text_of(self, written: str) -> str | tuple[str, str]:
        """What a file of the suite holds; message and hint when it cannot be read."""
        complaint = self.ground.complaint(written)
        if complaint is None and written not in self._texts:
            complaint = self._load(written)
        return complaint or self._texts[written]

    def named_by(self, case: Case) -> list[Path]:
        """The files that a case with its texts filled in was given."""
        return [self.paths[written] for written in dict.fromkeys(_written_in(case)) if written in self.paths]

    def add(self, path: Path) -> None:
        """Takes a file of the suite in that something else has read, and that says what is checked."""
        self.paths[os.path.relpath(path, self.ground.root)] = Path(os.path.realpath(path))

    def add_evaluator(self, written: str) -> None:
        """Takes in the source of an evaluator, `MODULE:NAME`, where it lies in the suite; nothing is imported."""
        module, separator, _ = written.partition(":")
        parts = module.split(".")
        if not separator or not all(part.isidentifier() for part in parts):
            return
        for base in dict.fromkeys(Path(entry).absolute() for entry in (str(self.ground.root), *sys.path)):
            package = base.joinpath(*parts)
            file = package.with_name(f"{package.name}.py")
            if file.is_file() and self._in_root(file):
                self.add(file)
            elif (package / "__init__.py").is_file() and self._in_root(package):
                self.folders.add(Path(os.path.realpath(package)))

    def without_answers(self, skill: InstalledSkill) -> InstalledSkill:
        """The skill without what checks compare with or run; a folder that holds all of the skill is none of these."""
        answers = frozenset(self.paths.values())
        folders = [one for one in self.folders if one != skill.folder and one.is_relative_to(skill.folder)]

        def shown(name: str) -> bool:
            real = (skill.folder / name).resolve()
            return real not in answers and not any(real.is_relative_to(folder) for folder in folders)

        return replace(skill, files=tuple(name for name in skill.files if name == "SKILL.md" or shown(name)))

    def _in_root(self, path: Path) -> bool:
        return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(self.ground.root))

    def _filled(self, value: Any, document: Document, at: KeyPath, faults: list[Fault]) -> Any:
        if isinstance(value, SuiteText):
            return self._read(value, document, at, faults)
        if isinstance(value, ScriptFile):
            return self._script(value, document, at, faults)
        if isinstance(value, Program):
            return self._program(value, document, at, faults)
        if isinstance(value, JsonSchema) and value.file is not None:
            place = (*at, "schema") if (*at, "schema") in document.marks else (*at, "file")
            file = self._read(value.file, document, place, faults)
            if file.text is not None:
                faults += _schema_faults(file, document, place)
            return value.model_copy(update={"file": file})
        if isinstance(value, BaseModel):
            update = {}
            for name in type(value).model_fields:
                inner = getattr(value, name)
                alias = type(value).model_fields[name].alias or name
                made = self._filled(inner, document, (*at, alias), faults)
                if made is not inner:
                    update[name] = made
            return value.model_copy(update=update) if update else value
        if isinstance(value, tuple):
            items = [self._filled(inner, document, (*at, index), faults) for index, inner in enumerate(value)]
            changed = any(made is not inner for made, inner in zip(items, value, strict=True))
            return tuple(items) if changed else value
        return value

    def _read(self, reference: SuiteText, document: Document, at: KeyPath, faults: list[Fault]) -> SuiteText:
        if reference.path is None:
            return reference
        if reference.text is not None:
            message = "both a `path` and a `text` are given: which one counts is not clear"
            faults.append(document.fault(at, message, hint="keep one"))
            return reference
        written = reference.path
        found = self.text_of(written)
        if isinstance(found, tuple):
            faults.append(document.fault(at, found[0], hint=found[1]))
            return reference
        return SuiteText(path=written, text=found)

    def _script(self, script: ScriptFile, document: Document, at: KeyPath, faults: list[Fault]) -> ScriptFile:
        """The script with the hash of what its file holds now."""
        complaint = self.ground.complaint(script.path)
        if complaint is None and script.path not in self._hashes:
            found = script_hash(self.ground.root / script.path, script.path, self.ground.root)
            if isinstance(found, str):
                self._hashes[script.path] = found
                self.paths[script.path] = Path(os.path.realpath(self.ground.root / script.path))
            else:
                complaint = found
        if complaint is None and script.sha256 not in (None, self._hashes[script.path]):
            complaint = f"{script.path} is not the script with this sha256", "write the new one once you have read it"
        if complaint:
            faults.append(document.fault(at, complaint[0], hint=complaint[1]))
            return script
        return ScriptFile(path=script.path, sha256=self._hashes[script.path])

    def _program(self, program: Program, document: Document, at: KeyPath, faults: list[Fault]) -> Program:
        """The program with the hashes of the files that it is started with."""
        found = with_files(program, self.ground)
        if not isinstance(found, Program):
            faults.append(document.fault(at, found[0], hint=found[1]))
            return program
        self.paths.update({file.path: Path(os.path.realpath(self.ground.root / file.path)) for file in found.files})
        self.folders.update(folders_of(program, self.ground))
        return found

    def _load(self, written: str) -> tuple[str, str] | None:
        """Reads a file; message and hint when it cannot be compared with."""
        path = self.ground.root / written
        if not path.is_file():
            what = f"{written} is no file" if path.exists() else f"there is no file {written}"
            return what, f"paths are relative to {self.ground.root}"
        try:
            data = path.read_bytes()[: MAX_BYTES + 1] if path.stat().st_size <= MAX_BYTES else None
            text = data.decode("utf-8") if data is not None else None
        except OSError as error:
            return f"{written} cannot be read: {error.strerror}", ""
        except UnicodeDecodeError:
            return f"{written} is no UTF-8 text", "only texts can be compared with"
        if text is None:
            return f"{written} has more than {MAX_BYTES:,} bytes", "compare with a smaller text"
        if not text.strip():
            return f"{written} is empty, so it says nothing about an agent", ""
        self._texts[written] = text
        self.paths[written] = Path(os.path.realpath(path))
        return None


def _written_in(value: Any) -> Iterator[str]:
    """The paths of all references of a case, or of a part of one."""
    if isinstance(value, ScriptFile):
        yield value.path
    elif isinstance(value, Program):
        yield from (file.path for file in value.files)
    elif isinstance(value, SuiteText):
        yield from [value.path] if value.path is not None else []
    elif isinstance(value, Case):
        yield from (*_written_in(value.expect), *_written_in(value.judge), *_written_in(value.judges))
    elif isinstance(value, BaseModel):
        for name in type(value).model_fields:
            yield from _written_in(getattr(value, name))
    elif isinstance(value, tuple):
        for inner in value:
            yield from _written_in(inner)


def _schema_faults(file: SuiteText, document: Document, at: KeyPath) -> Iterator[Fault]:
    try:
        data = json.loads(file.content)
    except (ValueError, RecursionError) as error:
        yield document.fault(at, f"{file.path} is not JSON: {error}")
        return
    if not isinstance(data, dict):
        yield document.fault(at, f"{file.path} is no JSON Schema: it holds no mapping")
        return
    try:
        checked_schema(data)
    except ValueError as error:
        context = getattr(error, "context", None) or {}
        message = f"{file.path}: {context.get('problem', error)}"
        yield document.fault(at, message, hint=context.get("hint", ""))
