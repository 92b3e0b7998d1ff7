"""Files that commands write: only where nothing is yet, and the whole file or nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hpsearch.errors import UserError
from trials.disk import whole_files


def refuse_taken(to: Path, *, force: bool) -> None:
    """Raise UserError for a file that exists, unless it is replaced by `force`, or cannot be."""
    try:
        exists = to.exists()
    except OSError as error:
        message = f"{to} cannot be written: {error.strerror}"
        raise UserError(message, "choose another name") from None
    if exists and not force:
        raise UserError(f"{to} already exists", "choose another name, or replace it with --force")


@contextmanager
def whole_file(to: Path) -> Iterator[Path]:
    """A place beside a file to write to; it becomes the file when the block ends well. Raises
    UserError if it cannot be written."""
    try:
        with whole_files.whole_file(to) as unfinished:
            yield unfinished
    except OSError as error:
        message = f"{to} cannot be written: {error.strerror or error}"
        hint = "check the folder, its permissions and the free space on its disk"
        raise UserError(message, hint) from error
