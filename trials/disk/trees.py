"""Folders that users' programs fill: what is in them, copied and removed, without following links.

A program may leave anything in its folder: links that lead nowhere, out of it or in a circle, pipes
that block whoever opens them, files that nobody may read. Only files, folders and links count as
its content. A link is never followed, and nothing but a file or a folder is ever opened.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

LeftOut = dict[str, str]
"""Why something is not copied, by its path inside the folder."""

OPENING = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
"""How a file or a folder is opened: what has taken its place meanwhile does not block."""
NAMED, LETTERS = 5, 120
"""How much of what was left out a message names, and with how many letters of each."""
MOST_LEVELS = 200
"""How deep folders may be nested, from the root of the file system: libraries of object stores call
themselves for each level."""
CHUNK_BYTES = 1 << 20
_OUT_OF_REACH = (errno.EACCES, errno.EPERM, errno.ENAMETOOLONG, errno.ELOOP, errno.ENXIO)
_GONE = (errno.ENOENT, errno.ENOTDIR)


@dataclass(frozen=True, slots=True)
class TreeEntry:
    """A file, a folder or a link.

    Args:
        path: Where it is.
        name: Its path inside the folder that was asked about, with slashes.
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

    @property
    def inode(self) -> tuple[int, int]:
        """The same for all names of one file."""
        return self.facts.st_dev, self.facts.st_ino


def entries(root: Path, left_out: LeftOut | None = None) -> Iterator[TreeEntry]:
    """All files, folders and links in a folder; a folder comes before what is in it.

    What vanishes meanwhile is not there, and neither is anything in a folder that does not exist.

    Raises:
        OSError: The disk cannot be read.
    """
    unreached: LeftOut = {} if left_out is None else left_out
    waiting = [("", _names_in(root, ".", unreached))]
    while waiting:
        folder, names = waiting.pop()
        for each in names:
            name = f"{folder}{each}"
            entry = _entry(root, name, unreached)
            if entry is None:
                continue
            if entry.is_folder:
                inside = _names_in(entry.path, name, unreached)
                if name in unreached:
                    continue
                waiting.append((f"{name}/", inside))
            yield entry


def _names_in(folder: Path, name: str, left_out: LeftOut) -> list[str]:
    try:
        return sorted(os.listdir(folder))  # noqa: PTH208 - a path for each costs more than a name
    except OSError as error:
        _leave_out(name, error, left_out)
        return []


def _entry(root: Path, name: str, left_out: LeftOut) -> TreeEntry | None:
    path = root / name
    try:
        entry = TreeEntry(path, name, path.lstat())
    except OSError as error:
        _leave_out(name, error, left_out)
        return None
    if entry.is_folder and len(path.parts) > MOST_LEVELS:
        left_out[name] = f"more than {MOST_LEVELS} folders deep"
        return None
    if entry.is_file or entry.is_folder or entry.is_link:
        return entry
    left_out[name] = _kind_of(entry.facts.st_mode)
    return None


def _kind_of(mode: int) -> str:
    if stat.S_ISFIFO(mode):
        return "a named pipe"
    return "a socket" if stat.S_ISSOCK(mode) else "a device"


def _leave_out(name: str, error: OSError, left_out: LeftOut) -> None:
    """Take note of what is out of reach; what has vanished needs no note."""
    if error.errno in _GONE:
        return
    if error.errno not in _OUT_OF_REACH:
        raise error
    left_out[name] = os.strerror(error.errno)


def told(left_out: Mapping[str, str]) -> str:
    """What was left out, for people: one line, whatever the names hold."""
    first = [f"{name!r:.{LETTERS}} ({why})" for name, why in sorted(left_out.items())[:NAMED]]
    more = len(left_out) - len(first)
    return ", ".join(first) + (f" and {more} more" if more else "")


# ------------------------------------------------------------------------------------- copying


def settle(root: Path) -> bool:
    """Make links relative that name something in a folder by its absolute path.

    Returns: Whether the folder may be moved as it is and needs no other names. False where
        something in it has to be left out, where a file has a name elsewhere too, through which it
        may be written, or where it may not be changed: then a copy has only what it should have.

    Raises:
        OSError: The disk cannot be read or written.
    """
    if root.is_symlink() or not os.access(root, os.W_OK):
        return False
    left_out: LeftOut = {}
    names_here: Counter[tuple[int, int]] = Counter()
    all_names: dict[tuple[int, int], int] = {}
    for entry in entries(root, left_out):
        if entry.is_link and not _is_settled(entry, root):
            return False
        if entry.is_file and not os.access(entry.path, os.R_OK):
            return False
        if entry.is_file and entry.facts.st_nlink > 1:
            names_here[entry.inode] += 1
            all_names[entry.inode] = entry.facts.st_nlink
    return not left_out and names_here == all_names


def _is_settled(link: TreeEntry, root: Path) -> bool:
    target = _target_of(link, root)
    if target == os.fspath(link.path.readlink()):
        return True
    draft = link.path.with_name(uuid.uuid4().hex)
    try:
        draft.symlink_to(target)
        draft.replace(link.path)
    except OSError as error:
        if error.errno not in _OUT_OF_REACH:
            raise
        return False
    return True


def _target_of(link: TreeEntry, root: Path) -> str:
    """The target of a link; relative if it names something in `root` by its absolute path."""
    target = os.fspath(link.path.readlink())
    for folder in (os.path.abspath(root), os.path.realpath(root)):  # noqa: PTH100 - keeps links
        if target == folder or target.startswith(f"{folder}/"):
            inside = target.removeprefix(folder).lstrip("/")
            up = "../" * link.name.count("/")
            return f"{up}{inside}" or "."
    return target


def copy(source: Path, target: Path) -> LeftOut:
    """Copy a folder with its modes and times: links as links, holes as holes, and the names of one
    file as names of one file. Links into the folder by its absolute path become relative.

    Returns: What could not be copied.

    Raises:
        OSError: The disk is full, or cannot be read or written.
    """
    target.mkdir(exist_ok=True)
    left_out: LeftOut = {}
    folders = {".": (source, target)}
    copies: dict[tuple[int, int], Path] = {}
    for entry in entries(source, left_out):
        place = target / entry.name
        try:
            if entry.is_folder:
                place.mkdir()
                folders[entry.name] = (entry.path, place)
            elif entry.is_link:
                place.symlink_to(_target_of(entry, source))
                _copy_facts(entry.path, place)
            else:
                _copy_file(entry, place, copies)
        except OSError as error:
            _leave_out(entry.name, error, left_out)
    for name, (folder, place) in reversed(folders.items()):
        if name not in left_out:
            _copy_facts(folder, place)
    return left_out


def _copy_facts(source: Path, target: Path) -> None:
    with suppress(FileNotFoundError):  # it has been removed since
        shutil.copystat(source, target, follow_symlinks=False)


def _copy_file(entry: TreeEntry, target: Path, copies: dict[tuple[int, int], Path]) -> None:
    first = copies.get(entry.inode)
    if first is not None:
        with suppress(OSError):  # a file system without such names: it is copied again
            target.hardlink_to(first)
            return
    source = os.open(entry.path, OPENING)
    try:
        if not stat.S_ISREG(os.fstat(source).st_mode):
            return  # something else has taken its place meanwhile
        with target.open("xb") as file:
            _copy_content(source, file.fileno())
    finally:
        os.close(source)
    _copy_facts(entry.path, target)
    if entry.facts.st_nlink > 1:
        copies[entry.inode] = target


def _copy_content(source: int, target: int) -> None:
    """Copy what a file holds now, without its holes; what is added meanwhile is left out."""
    size = os.fstat(source).st_size
    at = 0
    while at < size:
        try:
            at = os.lseek(source, at, os.SEEK_DATA)
            end = min(os.lseek(source, at, os.SEEK_HOLE), size)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
            break  # there is only a hole from here on
        while at < end:
            piece = os.pread(source, min(end - at, CHUNK_BYTES), at)
            if not piece:  # it was cut short meanwhile
                os.ftruncate(target, at)
                return
            at += os.pwrite(target, piece, at)
    os.ftruncate(target, size)


# ------------------------------------------------------------------------------------ removing


def remove(root: Path) -> OSError | None:
    """Remove a folder with all that is in it, whatever its modes, and however deep it is.

    Folders inside are moved up before they are emptied, so that no path is too long. What cannot be
    removed stays.

    Returns: Why something is left; None if nothing is.
    """
    errors: list[OSError] = []
    waiting = [root]
    while waiting:
        folder = waiting.pop()
        try:
            if not stat.S_ISDIR(folder.lstat().st_mode):
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(folder))
            waiting += _emptied(folder, root, errors)
            if folder != root:
                folder.rmdir()
        except FileNotFoundError:  # another process removes it too
            continue
        except OSError as error:
            errors.append(error)
    try:
        if not errors:
            root.rmdir()
    except FileNotFoundError:
        return None
    except OSError as error:
        errors.append(error)
    return errors[0] if errors else None


def _emptied(folder: Path, root: Path, errors: list[OSError]) -> list[Path]:
    """Remove all files in a folder, and move the folders in it to `root`; those are returned."""
    _open_up(folder)
    found = []
    for each in list(os.scandir(folder)):
        path = Path(each.path)
        try:
            if not each.is_dir(follow_symlinks=False):
                path.unlink()
                continue
            if folder != root:
                _open_up(path)  # a folder that may not be written cannot be moved either
                path = path.rename(root / uuid.uuid4().hex)
            found.append(path)
        except FileNotFoundError:
            continue
        except OSError as error:
            errors.append(error)
    return found


def _open_up(folder: Path) -> None:
    mode = folder.stat().st_mode
    if mode & stat.S_IRWXU != stat.S_IRWXU:
        folder.chmod(mode | stat.S_IRWXU)
