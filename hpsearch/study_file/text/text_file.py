"""The text of a file, or what is wrong with it."""

from __future__ import annotations

from pathlib import Path

from hpsearch.errors import UserError
from trials.data import files


def text_of(path: Path, kind: str = "file", hint: str = "check the path") -> str:
    """The text of a file; errors name it by its kind, and give the hint if there is none.

    Raises:
        UserError: It cannot be read, is not text, or is too large.
    """
    try:
        return files.text_of(path)
    except FileNotFoundError:
        raise UserError(f"{path}: there is no such {kind}", hint) from None
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        what = f"{path}:{line}: is not UTF-8 text ({error.reason})"
        raise UserError(what, files.conversion(path, error)) from None
    except ValueError as error:
        raise UserError(f"{path} {error}", f"a {kind} is a text file") from None
    except OSError as error:
        what = f"{path} cannot be read: {error.strerror}"
        raise UserError(what, "check the path and its permissions") from None
