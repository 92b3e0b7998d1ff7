"""How workers find a trainable: by the name of its module and its own, as a study file says it.

Nothing is pickled into the study, so nothing is unpickled: a study that is resumed months later,
from another process, imports the same file again. A trainable of the script that is run is
therefore imported from that script under the script's own name.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from hpsearch.adapters.ray_tune.wrapped import WrappedTrainable, unwrapped
from hpsearch.bridges.ray_tune.space import is_plain
from hpsearch.errors import UserError

MAIN = "__main__"
TOP = "define it at the top level of a module"


@dataclass(frozen=True)
class Located:
    """A trainable as a study file names it: ``module:name``, and arguments beside its config."""

    kind: str
    base: Path
    noted: Mapping[str, Any]
    resources: Mapping[str, float]


def locate(trainable: Any, tuples: list[str]) -> Located:
    """Find a trainable, which may be wrapped, as its workers will; choices of the parameters
    `tuples` hold tuples. Raises UserError if workers could not import it or what it is given."""
    if isinstance(trainable, str) or not (
        callable(trainable) or isinstance(trainable, WrappedTrainable)
    ):
        what = f"tune.Tuner cannot train {trainable!r}"
        raise UserError(what, "give a function of one argument, or a subclass of tune.Trainable")
    wrapped = unwrapped(trainable)
    module = _module_of(wrapped.inner)
    name = _name_in(module, wrapped.inner)
    plain, by_name = _given(wrapped.parameters, module)
    noted = {"tuples": list(tuples), "parameters": plain, "globals": by_name}
    stated = {key: value for key, value in noted.items() if value}
    module_name, base = _importable(module)
    return Located(f"{module_name}:{name}", base, stated, wrapped.resources)


def _module_of(inner: Any) -> ModuleType:
    module = sys.modules.get(getattr(inner, "__module__", None) or "")
    if module is None:
        raise UserError(f"workers cannot find {inner!r}, which is in no module", TOP)
    return module


def _name_in(module: ModuleType, inner: Any) -> str:
    for name, value in vars(module).items():
        if value is inner:
            return name
    name = getattr(inner, "__qualname__", repr(inner))
    what = f"workers cannot import the trainable {name}, which is not a global of {module.__name__}"
    raise UserError(what, f"{TOP}; it may be wrapped by tune.with_parameters where it is used")


def _given(
    parameters: Mapping[str, Any], module: ModuleType
) -> tuple[dict[str, Any], dict[str, str]]:
    """Parameters that a study file can hold, and those that are globals of a module, by name."""
    plain, by_name = {}, {}
    for parameter, value in parameters.items():
        if is_plain(value):
            plain[parameter] = value
            continue
        names = [name for name, each in vars(module).items() if each is value]
        if not names:
            what = f"tune.with_parameters: workers cannot be given {parameter}, {value!r:.60}"
            where = f"define it as a global of {module.__name__}, outside of any function and of"
            raise UserError(what, f'{where} if __name__ == "{MAIN}", or load it in the trainable')
        by_name[parameter] = names[0]
    return plain, by_name


def _importable(module: ModuleType) -> tuple[str, Path]:
    """The name that workers import a module by, and the folder that they find it in."""
    name = module.__name__
    file = getattr(module, "__file__", None)
    if name != MAIN:
        depth = name.count(".") + (Path(file or "").name == "__init__.py")
        return name, Path.cwd() if file is None else Path(file).absolute().parents[depth]
    if file is None:
        what = "workers cannot import a trainable that was typed in, as in a notebook"
        raise UserError(what, "write it into a file beside the notebook, and import it from there")
    spec = getattr(module, "__spec__", None)
    if spec is not None:  # python -m package.module
        named = str(spec.name)
        return named, Path(file).absolute().parents[named.count(".")]
    path = Path(file).absolute()
    if path.stem.isidentifier() and path.suffix == ".py":
        return path.stem, path.parent
    what = f"workers cannot import the script {path.name}"
    raise UserError(what, "give it a name of letters, digits and '_' that ends in .py")
