"""Folders that users' programs fill: listed, copied and removed, without following links.

A program may leave anything in its folder: links that lead nowhere, pipes that block whoever opens
them, folders that may not be written. Only files, folders and links count as its content.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class TreeEntry:
    """Something in a folder.

    Args:
        path: Where it is.
        name: Its path inside the folder that was listed, with slashes.
        facts: Of itself, and not of a link's target.
    """

    path: Path
    name: str
    facts: os.stat_result

    @property
    def is_file(self) -> bool:
        """Whether it is a file."""
        return stat.S_ISREG(self.facts.st_mode)

    @property
    def is_folder(self) -> bool:
        """Whether it is a folder."""
        return stat.S_ISDIR(self.facts.st_mode)

    @property
    def is_link(self) -> bool:
        """Whether it is a symbolic link."""
        return stat.S_ISLNK(self.facts.st_mode)


def entries(root: Path) -> Iterator[TreeEntry]:
    """Everything in a folder; a folder comes before its content.

    What vanishes meanwhile is not there, and neither is anything in a folder that does not exist.

    Raises:
        OSError: A folder cannot be read.
    """
    for folder, folders, files in os.walk(root, onerror=_raise):
        for each in sorted([*folders, *files]):
            path = Path(folder, each)
            with suppress(FileNotFoundError):
                yield TreeEntry(path, path.relative_to(root).as_posix(), path.lstat())


def _raise(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):
        raise error


def copy(source: Path, target: Path) -> list[str]:
    """Copy a folder with its modes and times, and links as links. Links into the folder by its
    absolute path become relative.

    Returns: The names of what is not copied: pipes, sockets and devices.

    Raises:
        OSError: The disk is full, or something cannot be read or written.
    """
    left_out: list[str] = []

    def special(folder: str, names: list[str]) -> list[str]:
        found = [name for name in names if _is_special(Path(folder, name))]
        left_out.extend(found)
        return found

    shutil.copytree(source, target, symlinks=True, ignore=special, dirs_exist_ok=True)
    for entry in entries(target):
        if entry.is_link:
            _keep_inside(entry, source.absolute())
    return left_out


def _is_special(path: Path) -> bool:
    mode = path.lstat().st_mode
    is_content = stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode)
    return not is_content


def _keep_inside(link: TreeEntry, source: Path) -> None:
    """Make a copied link relative if it leads into `source` by an absolute path."""
    target = link.path.readlink()
    if not target.is_relative_to(source):
        return
    depth = link.name.count("/")
    up = Path(*[".."] * depth)
    link.path.unlink()
    link.path.symlink_to(up / target.relative_to(source))


def remove(root: Path) -> OSError | None:
    """Remove a folder with all that is in it, whatever the modes of its folders. What cannot be
    removed stays.

    Returns: Why something is left; None if nothing is.
    """
    failure: OSError | None = None
    for _ in range(2):
        try:
            shutil.rmtree(root)
            return None
        except FileNotFoundError:  # another process removes it too
            if not os.path.lexists(root):
                return None
        except OSError as error:
            failure = error
            _open_up(root)
    return failure


def _open_up(root: Path) -> None:
    """Let the folders be listed and written."""
    with suppress(OSError):
        root.chmod(stat.S_IRWXU)
        for entry in entries(root):
            if entry.is_folder:
                entry.path.chmod(stat.S_IRWXU)
