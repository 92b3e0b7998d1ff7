"""Processes of our own do not import from the folder that the caller is in: a file of the user's
there, such as `random.py`, may have the name of a module that they need."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SAFE = "PYTHONSAFEPATH"
PLACES = "PYTHONPATH"
KEPT = "HPSEARCH_PYTHONPATH"
"""What the caller has in PYTHONPATH, for processes of the user's own that a worker starts."""
_OURS = "hpsearch"  # a value of SAFE


@contextmanager
def left_out(*, spawns: bool = False) -> Iterator[None]:
    """Leave the current folder out of the path of every Python that starts meanwhile. `spawns` is
    true for processes of `multiprocessing`, which would look in it first."""
    before = dict(os.environ)
    places = before.get(PLACES)
    if places:
        os.environ[KEPT] = places
        os.environ[PLACES] = os.pathsep.join(
            each for each in places.split(os.pathsep) if each and not _is_current(each)
        )
    if spawns:
        os.environ.setdefault(SAFE, _OURS)
    try:
        yield
    finally:
        for name in (KEPT, PLACES, SAFE):
            os.environ.pop(name, None)
            if name in before:
                os.environ[name] = before[name]


def restore() -> None:
    """In a process that has started so: let what it starts have the caller's environment."""
    if KEPT in os.environ:
        os.environ[PLACES] = os.environ.pop(KEPT)
    if os.environ.get(SAFE) == _OURS:
        del os.environ[SAFE]


def look_in_last() -> None:
    """Let this process look in the current folder after all that is installed."""
    sys.path.sort(key=_is_current)


def _is_current(folder: str) -> bool:
    try:
        return Path(folder).samefile(Path())
    except OSError:  # it is not there
        return False
