"""The user's own training function as a task: ``kind: my_package.my_module:train``.

    def train(params, trial):
        model = build(params["width"], trial.seed)
        for epoch in range(trial.budget):
            ...
            trial.report(epoch + 1, {"accuracy": accuracy})

The function runs in a thread of its own, which takes turns with the code that iterates the run:
`trial.report` hands the report over and waits until the run is iterated further. In a stopped
trial, `trial.report` raises `TrialStopped`.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from trials.contract import Problem, Setting, Setup, TaskError
from trials.settings import nearest
from trials.tasks.function.run import Function, FunctionRun


class FunctionTask:
    """The task of a training function (a `contract.Task`).

    Args:
        task: The `task` part of a study file: `kind`, and `args` that every trial is given.
        base: The folder that its module may be in.

    Raises:
        TaskError: There is no such function, or it does not take `(params, trial)`.
    """

    def __init__(self, task: Mapping[str, Any], base: Path) -> None:
        self.metrics: frozenset[str] | None = None
        self.settings: Mapping[str, Setting] | None = None
        self._task, self._base = dict(task), base
        self._args: dict[str, Any] = dict(task.get("args") or {})
        self._function = find(task["kind"], base)

    def __reduce__(self) -> tuple[Any, ...]:
        return FunctionTask, (self._task, self._base)  # another process imports the function itself

    def data_key(self, params: Mapping[str, Any]) -> str:
        """One for all: a function reads its own data."""
        return "none"

    def prepare(self, params: Mapping[str, Any]) -> None:
        """Nothing: a function reads its own data."""

    def start(self, setup: Setup, data: Any) -> FunctionRun:
        """A call of the function, begun when it is first iterated."""
        return FunctionRun(self._function, {**self._args, **setup.params}, setup)

    def rehearse(self, setup: Setup, data: Any) -> dict[str, float]:
        """Nothing is known of a function before it runs."""
        return {}


def find(kind: str, base: Path) -> Function:
    """Import the function that ``package.module:function`` names, looking in `base` first.

    Raises:
        TaskError: There is no such module or function, it fails on import, or it cannot be called.
    """
    module_name, _, name = kind.partition(":")
    if str(base) not in sys.path:
        sys.path.insert(0, str(base))
    module = _imported(module_name, base)
    function = getattr(module, name, None)
    if function is None:
        hint = nearest(name, _functions_in(module))
        raise _mistake(f"{module_name} has no function {name!r}; {hint}")
    if not callable(function) or isinstance(function, type):
        raise _mistake(f"{kind} is not a function; write def {name}(params, trial)")
    signature = inspect.signature(function)
    try:
        signature.bind(None, None)
    except TypeError:
        what = f"{name}{signature} cannot be called with (params, trial)"
        raise _mistake(f"{what}; write def {name}(params, trial)") from None
    found: Function = function
    return found


def _imported(name: str, base: Path) -> ModuleType:
    """The module of a name.

    Raises:
        TaskError: There is no such module, or it fails on import.
    """
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        missing = error.name
        if missing is not None and f"{name}.".startswith(f"{missing}."):
            what = f"no module named {missing!r}; it must be in {base} or be installed"
            raise _mistake(what) from None
        what = f"importing {name} failed: {error}; install what it imports"
        raise _mistake(what) from error
    except Exception as error:
        what = f"importing {name} failed: {type(error).__name__}: {error}; fix the module"
        raise _mistake(what) from error


def _functions_in(module: ModuleType) -> list[str]:
    found = []
    for name, value in vars(module).items():
        if callable(value) and not name.startswith("_"):
            found.append(name)
    return found


def _mistake(what: str) -> TaskError:
    return TaskError([Problem("task.kind", what)])
