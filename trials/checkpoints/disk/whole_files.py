"""A file that is written whole or not at all."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from trials.checkpoints.disk.whole_folders import flush_one


@contextmanager
def whole_file(to: Path) -> Iterator[Path]:
    """A path beside a file to write to, which becomes the file when the block ends well.

    The new file has the permissions of the one that it replaces. A pipe or a device cannot be
    replaced, and is written to directly. Raises OSError if the file cannot be written. An earlier
    one is unchanged."""
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
