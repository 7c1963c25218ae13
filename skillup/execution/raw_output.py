"""What a CLI printed, copied into the run directory: masked, and bounded whatever it printed."""

from __future__ import annotations

import os
from pathlib import Path

from skillup.environments.untrusted import open_regular
from skillup.masking import Masker

WHOLE_BYTES = 10 << 20
"""A stream up to this size is kept whole; of a longer one the first and the last half of it."""

_MARGIN_BYTES = 1 << 20
"""What is masked beyond a cut, so that no part of a secret is left there; some come in pieces, over many lines."""


def copy_masked(source: Path, target: Path, masker: Masker) -> None:
    """Copies a stream, masked; of a long one the beginning and the end, and a line between that says what is gone.

    Nothing is copied where the agent has put something else in the place of our file.

    Raises:
        OSError: the copy cannot be written.
    """
    try:
        opened = open_regular(source)
    except OSError:
        return
    with opened as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(0)
        if size <= WHOLE_BYTES:
            target.write_bytes(masker.data(file.read(WHOLE_BYTES)))
            return
        half = WHOLE_BYTES // 2
        with target.open("wb") as copy:
            copy.write(masker.data(file.read(half + _MARGIN_BYTES))[:-_MARGIN_BYTES])
            copy.write(b"\n[skillup left out about %d bytes here]\n" % (size - WHOLE_BYTES))
            file.seek(size - half - _MARGIN_BYTES)
            end = file.read(half + _MARGIN_BYTES)
            begun = end.find(b"\n", 0, _MARGIN_BYTES) + 1  # a line without its beginning cannot be read
            copy.write(masker.data(end[begun:])[_MARGIN_BYTES - begun :])
