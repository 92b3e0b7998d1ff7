"""Which modules of this package a module imports, found by reading their code: nothing is run."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from pathlib import Path

import trials

PACKAGE = "trials"
_ROOT = Path(trials.__file__).parent


@functools.cache
def imported_by(module: str) -> tuple[Path, ...]:
    """The files of a module and of all modules of `trials` that it imports, directly or through
    others, in order.

    Imports inside functions count. Those for type checking alone do not: nothing of them is run.

    Args:
        module: Its full name. One that is not of this package has no files here.
    """
    found: set[Path] = set()
    waiting = [module]
    while waiting:
        path = _file_of(waiting.pop())
        if path is None or path in found:
            continue
        found.add(path)
        tree = ast.parse(path.read_text(encoding="utf-8"))
        waiting += _names_in(tree)
    return tuple(sorted(found))


def _file_of(module: str) -> Path | None:
    """The file of a module of this package; None if there is none of that name."""
    first, *rest = module.split(".")
    if first != PACKAGE:
        return None
    place = _ROOT.joinpath(*rest)
    for path in (place.with_suffix(".py"), place / "__init__.py"):
        if path.is_file():
            return path
    return None


def _names_in(node: ast.AST) -> Iterator[str]:
    """The full names of the modules that the code below a node imports; of other packages, perhaps
    names in them."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            for alias in child.names:
                yield alias.name
        elif isinstance(child, ast.ImportFrom):
            yield from _names_from(child)
        elif not _for_types_alone(child):
            yield from _names_in(child)


def _names_from(statement: ast.ImportFrom) -> Iterator[str]:
    """The modules that a `from ... import ...` imports: each name that is one, else the package."""
    assert statement.level == 0, "imports of this package are absolute"
    module = statement.module
    assert module is not None
    for alias in statement.names:
        inner = f"{module}.{alias.name}"
        is_module = _file_of(inner) is not None
        yield inner if is_module else module


def _for_types_alone(node: ast.AST) -> bool:
    """Whether code runs while types are checked only."""
    if not isinstance(node, ast.If):
        return False
    test = node.test
    return isinstance(test, ast.Name) and test.id == "TYPE_CHECKING"
