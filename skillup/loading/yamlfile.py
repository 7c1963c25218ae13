"""Strict, bounded YAML: the bytes of one file become a document, or faults.

Scalars follow the core schema of YAML 1.2: `yes`, `1:30` and dates are text. Several documents, duplicate keys, keys
that are not text, and tags are faults. `builder.py` turns the parser's events into data.
"""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path
from typing import Any

import yaml

from skillup.errors import Fault, InputError
from skillup.loading.builder import Builder
from skillup.loading.document import Document, Marks
from skillup.loading.syntax import syntax_fault

MAX_BYTES = 4_000_000
"""Far above any suite written by hand; a file of this size is still read, or refused, within two seconds."""

LIBYAML: bool = yaml.__with_libyaml__
EventLoader: type[Any] = yaml.CBaseLoader if LIBYAML else yaml.BaseLoader
"""Turns text into events: libyaml where PyYAML was built with it (ten times faster), else pure Python.

The pure one is stricter in one point: it refuses tabs between the tokens of a line.
"""


def read_yaml(path: Path, display: str) -> Document:
    """The YAML document in the file `path`, which faults call `display`.

    Raises:
        InputError: the file cannot be read, or is not one strict YAML document within the bounds.
    """
    return parse_yaml(read_text(path, display), display)


def read_text(path: Path, display: str, what: str = "YAML") -> str:
    """The text of a file that is to hold `what`, bounded.

    Raises:
        InputError: the file cannot be read, is too large, or is no text.
    """
    return _decode(_read(path, display, what), display, what)


def parse_yaml(text: str, display: str, *, loader: type[Any] = EventLoader) -> Document:
    """The YAML document in `text`; `loader` is the PyYAML class that gives the events.

    Raises:
        InputError: the text is not one strict YAML document within the bounds.
    """
    _refuse_control_characters(text, display)
    parser = loader(text)
    builder = Builder(parser.get_event, text, display)
    try:
        data, place = builder.document()
    except yaml.MarkedYAMLError as error:
        fault = syntax_fault(error, text, display)
        # A fault that is already known on the same line is the cause of what is broken after it.
        known = any(other.line == fault.line for other in builder.faults)
        raise InputError(builder.faults if known else [*builder.faults, fault]) from None
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        # The pure Python scanner hands every escape to chr() and every version to int(), whatever they hold.
        raise InputError([*builder.faults, Fault(display, 0, 0, "", f"not valid YAML: {error}")]) from None
    finally:
        parser.dispose()
    if builder.faults:
        raise InputError(builder.faults)
    return Document(data, Marks(place), display)


def _read(path: Path, display: str, what: str) -> bytes:
    """At most MAX_BYTES + 1 bytes of a regular file."""
    try:
        # Without O_NONBLOCK, opening a FIFO would wait for a writer; Path.open() takes no opener.
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
            if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return file.read(MAX_BYTES + 1)
            message = "not a regular file"
    except FileNotFoundError:
        message = "there is no such file"
    except IsADirectoryError:
        message = f"a folder, where a {what} file is expected"
    except OSError as error:
        message = f"cannot be read: {error.strerror}"
    except ValueError as error:  # the name holds a NUL
        message = f"cannot be read: {error}"
    raise InputError([Fault(display, 0, 0, "", message)])


def _decode(raw: bytes, display: str, what: str) -> str:
    """The file's text, without the byte order mark."""
    if len(raw) > MAX_BYTES:
        hint = "move large texts into files of their own"
        raise InputError([Fault(display, 0, 0, "", f"larger than {MAX_BYTES // 1_000_000} MB", hint)])
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise InputError([Fault(display, 1, 1, "", "the file is UTF-16", "save it as UTF-8")])
    raw = raw.removeprefix(b"\xef\xbb\xbf")
    message, hint = "a binary file: byte {number} is NUL", f"a {what} file holds text"
    index = raw.find(b"\0")
    if index < 0:
        try:
            return raw.decode()
        except UnicodeDecodeError as error:
            index = error.start
            message, hint = f"byte {{number}} (0x{raw[index]:02x}) is not UTF-8", "save the file as UTF-8"
    line_start = raw.rfind(b"\n", 0, index) + 1
    position = raw.count(b"\n", 0, index) + 1, len(raw[line_start:index].decode(errors="replace")) + 1
    raise InputError([Fault(display, *position, "", message.format(number=index + 1), hint)])


# The complement of what YAML allows, so that the search ends at the first character that it does not.
_NOT_ALLOWED = re.compile("[^\t\n\r -~\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def _refuse_control_characters(text: str, display: str) -> None:
    found = _NOT_ALLOWED.search(text)
    if found:
        position = text.count("\n", 0, found.start()) + 1, found.start() - text.rfind("\n", 0, found.start())
        code = f"{ord(found.group()):04x}"
        hint = f'write it as "\\u{code}", in double quotes'
        raise InputError([Fault(display, *position, "", f"the control character U+{code.upper()}", hint)])
