"""Folders that users' programs fill: listed, copied and removed, without following links.

A program may leave anything in its folder: links that lead nowhere, pipes that block whatever opens
them, folders that may not be written. Only files, folders and links count as its content.
"""

import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path


def entries(root: Path) -> Iterator[Path]:
    """Everything in a folder; a folder comes before its content. A folder that does not exist is
    empty. Raises OSError if a folder cannot be read."""
    for folder, folders, files in os.walk(root, onerror=_raise):
        for name in sorted([*folders, *files]):
            yield Path(folder, name)


def _raise(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):
        raise error


def files_in(root: Path) -> dict[str, Path]:
    """The files in a folder, without links, by their paths inside it."""
    files = [path for path in entries(root) if not path.is_symlink() and path.is_file()]
    return {path.relative_to(root).as_posix(): path for path in files}


def links_in(root: Path) -> dict[str, Path]:
    """The links in a folder, by their paths inside it."""
    links = [path for path in entries(root) if path.is_symlink()]
    return {path.relative_to(root).as_posix(): path for path in links}


def copy(source: Path, target: Path) -> None:
    """Copy a folder with its modes and times, and links as links. Links into the folder by its
    absolute path become relative. Pipes, sockets and devices are not copied. Raises OSError if the
    disk is full, or something cannot be read or written."""

    def special(folder: str, names: list[str]) -> list[str]:
        return [name for name in names if _is_special(Path(folder, name))]

    shutil.copytree(source, target, symlinks=True, ignore=special, dirs_exist_ok=True)
    for name, link in links_in(target).items():
        _keep_inside(link, source.absolute(), depth=name.count("/"))


def _is_special(path: Path) -> bool:
    mode = path.lstat().st_mode
    is_content = stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode)
    return not is_content


def _keep_inside(link: Path, source: Path, depth: int) -> None:
    """Make a copied link relative if it leads into `source` by an absolute path."""
    target = link.readlink()
    if not target.is_relative_to(source):
        return
    up = Path(*[".."] * depth)
    link.unlink()
    link.symlink_to(up / target.relative_to(source))


def remove(root: Path) -> OSError | None:
    """Remove a folder with all that is in it, whatever the modes of its folders. Returns the reason
    why something is left; None if nothing is. A link is left, and what it leads to as it is."""
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
    """Let the folders be listed and written, none of them through a link."""
    with suppress(OSError):
        _allow(root)
        for _, folders, _, here in os.fwalk(root):
            for name in folders:
                with suppress(OSError):
                    _allow(name, here)


def _allow(folder: Path | str, inside: int | None = None) -> None:
    """Let a folder be listed and written. A link is an OSError, also one that takes the folder's
    place meanwhile."""
    path_only = getattr(os, "O_PATH", None)  # of Linux: needs no permission to read it
    how = os.O_RDONLY if path_only is None else path_only
    handle = os.open(folder, how | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=inside)
    try:
        # Linux changes no mode by such a handle itself.
        os.chmod(handle if path_only is None else f"/proc/self/fd/{handle}", stat.S_IRWXU)  # noqa: PTH101
    finally:
        os.close(handle)
