"""The folders and the name that libraries expect, where the machine of a process gives none:
a temporary folder whose sockets can be named, a home that can be written, and a name of the user.

They are given as environment variables, which the programs that it starts inherit.
"""

import getpass
import os
import stat
import tempfile
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

LONGEST = 38
"""Bytes of the longest path of a temporary folder. That of a socket has at most 107 (unix(7)), and
Ray puts its own 69 bytes below the folder."""
_SHORT = ("/tmp", "/var/tmp", "/dev/shm")  # noqa: S108 - a folder of the user's own is made there
_NAMES = ("LOGNAME", "USER", "LNAME", "USERNAME")  # as getpass looks for them


def settle() -> None:
    """Give this process what is missing, by environment variables."""
    for variable in ("TMPDIR", "RAY_TMPDIR"):
        _shorten(variable)
    tempfile.tempdir = None  # found again, by the new variable
    _name_user()
    _find_home()


def _shorten(variable: str) -> None:
    """Name a long temporary folder by a link that is short; where none can be made, it stays."""
    given = os.environ.get(variable, "")
    if len(os.fsencode(given)) <= LONGEST:
        return
    if not Path(given).is_dir():
        del os.environ[variable]  # as tempfile takes it
        return
    for short in _SHORT:
        with suppress(OSError):
            folder = _own_folder(Path(short))
            _remove_dangling(folder)
            os.environ[variable] = str(_link(folder, Path(given).resolve()))
            return


def _own_folder(place: Path, purpose: str = "") -> Path:
    """A folder that belongs to this user alone, in a place that others may write to."""
    folder = place / f"hpsearch-{os.getuid()}{purpose}"
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        return Path(tempfile.mkdtemp(prefix="hpsearch-", dir=place))  # somebody else's
    return folder


def _link(folder: Path, target: Path) -> Path:
    link = folder / sha256(os.fsencode(target)).hexdigest()[:8]
    with suppress(FileExistsError):
        link.symlink_to(target)
    return link


def _remove_dangling(folder: Path) -> None:
    """Remove links to folders that are gone, as those of jobs are after their end."""
    for each in folder.iterdir():
        if each.is_symlink() and not each.exists():
            each.unlink(missing_ok=True)


def _name_user() -> None:
    try:
        getpass.getuser()
    except (KeyError, OSError):  # an id without a name, as a container may be started with
        for name in _NAMES[:2]:
            os.environ[name] = str(os.getuid())


def _find_home() -> None:
    """Name a home that can be written, in which what is hidden in the former one is found, too."""
    given = Path(os.path.expanduser("~"))  # noqa: PTH111 - `Path` raises where there is none
    if given.is_absolute() and given.is_dir() and os.access(given, os.W_OK | os.X_OK):
        os.environ["HOME"] = str(given)
        return
    with suppress(OSError):  # there is no place for temporary files either
        home = _own_folder(Path(tempfile.gettempdir()), "-home")
        os.environ["HOME"] = str(home)
        if given.is_absolute():
            for each in given.glob(".*"):
                with suppress(FileExistsError):
                    (home / each.name).symlink_to(each)
