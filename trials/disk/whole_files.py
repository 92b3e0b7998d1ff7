"""A file that is written whole or not at all."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from trials.disk.whole_folders import flush_one


@contextmanager
def whole_file(to: Path) -> Iterator[Path]:
    """A place beside a file to write to; it becomes the file when the block ends well.

    A file that is replaced hands on its permissions. What is not an ordinary file, such as a pipe,
    cannot be replaced: it is written as it is.

    Raises:
        OSError: It cannot be written. What was there before still is.
    """
    target = Path(os.path.realpath(to))
    if target.exists() and not target.is_file():
        yield target
        return
    unfinished = target.with_name(f".{os.getpid()}.{target.name[:100]}.unfinished")
    try:
        yield unfinished
        if target.exists():
            shutil.copymode(target, unfinished)
        flush_one(unfinished)
        unfinished.replace(target)
    finally:
        unfinished.unlink(missing_ok=True)
