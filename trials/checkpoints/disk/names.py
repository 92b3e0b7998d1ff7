"""Names from outside, which become paths: of manifests, object stores, archives and databases.

Whoever wrote them may not have been this program, so each is one component of a path, or refused.
"""

import os
from pathlib import Path


class UnsafeName(ValueError):
    """A name that would lead out of the folder that it is in."""


def component(name: object) -> str:
    """The name, if it is one component of a path. Raises UnsafeName if it is not: it is empty, `.`
    or `..`, has a slash in it, or no file can have it."""
    if isinstance(name, str) and name not in ("", ".", "..") and not {"/", "\0"} & set(name):
        try:
            os.fsencode(name)
        except UnicodeEncodeError:
            pass
        else:
            return name
    raise UnsafeName(f"{str(name)[:100]!r} is not the name of a file")


def relative(name: object) -> str:
    """The name, if it is that of a file below a folder, with slashes. Raises UnsafeName."""
    if not isinstance(name, str):
        return component(name)
    return "/".join(map(component, name.split("/")))


def below(folder: Path, name: str) -> Path:
    """The path of a file below a folder, to be removed or written. Raises UnsafeName if it is not
    below it, or a link is on the way."""
    path = folder / relative(name)
    for parent in path.parents:
        if parent == folder:
            return path
        if parent.is_symlink():
            raise UnsafeName(f"{name[:100]!r} leads through a link")
    raise AssertionError("a relative name is below its folder")
