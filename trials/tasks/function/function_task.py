"""The user's own training function as a task: ``kind: my_package.my_module:train``.

    def train(params, trial):
        model = build(params["width"], trial.seed)
        for epoch in range(trial.budget):
            ...
            trial.report(epoch + 1, {"accuracy": accuracy})

The function runs in the main thread of a process of its own, where its module is imported, and
alternates with the code that iterates the run: `trial.report` hands the report over and waits until
the run is iterated further. In a stopped trial, `trial.report` raises `TrialStopped`.

A script that knows its trial from `trials.script` runs as if started by hand:
``my_module:__main__`` is the whole file.
"""

import importlib.util
import inspect
import os
import pickle
import runpy
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any

from trials.contract import Setting, Setup, TaskError
from trials.descriptions.builtin import stays_warm
from trials.foreign import in_words, text_of
from trials.script import ImportEnds, parsed_arguments
from trials.settings import nearest
from trials.tasks.function import own
from trials.tasks.function.messages import Begin
from trials.tasks.function.process import Processes
from trials.tasks.function.run import Function, FunctionRun
from trials.tasks.function.trial import FunctionTrial

SCRIPT = "__main__"  # in place of a function's name: its whole file

Adapt = Callable[[Any, Mapping[str, Any]], Function]
"""From an object of another library, or the path of a script that makes one, and the `task` part to
a function of `(params, trial)`. Raises
a `TaskError` for an object that it cannot adapt. It pickles by its name: another process imports
it."""


class FunctionTask:
    """The task of a training function (a `contract.Task`). `adapt`: for code of the `library` of
    the part; None for a function of `(params, trial)`.

    Attributes:
        stays: Whether the process that has imported it trains one attempt after another. That of
            a script does not, unless the study file says so: by hand it is started anew, too.
        connects: Whether several ranks are connected before it is called; a script does so itself.
    """

    def __init__(self, task: Mapping[str, Any], base: Path, adapt: Adapt | None = None) -> None:
        self.metrics: frozenset[str] | None = None
        self.settings: Mapping[str, Setting] | None = None
        self._task, self.base, self._adapt = dict(task), base, adapt
        self.args: dict[str, Any] = dict(task.get("args") or {})
        is_script = task["kind"].endswith(f":{SCRIPT}")
        self.connects = not is_script
        self.stays = stays_warm(task)
        self._processes = Processes()
        if adapt is None and "library" in task:
            what = f"code that is written for {task['library']} trains in a study alone"
            raise TaskError.at("task.library", f"{what}; use hpsearch run")

    @cached_property
    def function(self) -> Function:
        """The function, imported into this process. Raises TaskError if there is none, it does not
        take `(params, trial)`, or `adapt` refuses it."""
        kind = self._task["kind"]
        if self._adapt is None:
            return find(kind, self.base)
        is_script = kind.endswith(f":{SCRIPT}")
        found = file_of(kind, self.base) if is_script else named(kind, self.base)
        return self._adapt(found, self._task)

    def __reduce__(self) -> tuple[Any, ...]:
        # Another process imports the function itself.
        return FunctionTask, (self._task, self.base, self._adapt)

    def data_key(self, params: Mapping[str, Any]) -> str:
        return "none"

    def prepare(self, params: Mapping[str, Any]) -> None:
        """Do nothing: a function reads its own data."""

    def start(self, setup: Setup, data: Any) -> FunctionRun:
        order = Begin(
            task=pickle.dumps(self),
            setup=pickle.dumps(setup),
            environment=dict(os.environ),
            has_ranks=setup.ranks is not None,
            stays=self.stays,
        )
        return FunctionRun(self._processes, order)


def named(kind: str, base: Path) -> Any:
    """Import what ``package.module:name`` names, looking in `base` first. Raises TaskError if there
    is no such module or name, or the module fails on import."""
    module_name, _, name = kind.partition(":")
    module = _imported(module_name, base)
    found = getattr(module, name, None)
    if found is None:
        functions = [each for each, value in vars(module).items() if callable(value)]
        hint = nearest(name, functions)
        raise _mistake(f"{module_name} has no function {name!r}; {hint}")
    return found


def find(kind: str, base: Path) -> Function:
    """Import the function that ``package.module:function`` names, looking in `base` first. Raises
    TaskError if there is no such module or function, it fails on import, or it cannot be called."""
    name = kind.partition(":")[2]
    if name == SCRIPT:
        return _whole_file(file_of(kind, base))
    function = named(kind, base)
    if not callable(function) or isinstance(function, type):
        raise _mistake(f"{kind} is not a function; write def {name}(params, trial)")
    signature = inspect.signature(function)
    try:
        signature.bind(None, None)
    except TypeError:
        what = f"{name}{text_of(signature)} cannot be called with (params, trial)"
        hint = f"write def {name}(params, trial)"
        if len(signature.parameters) == 1:  # as other libraries call them
            hint = f"{hint}, or name its library, such as optuna"
        raise _mistake(f"{what}; {hint}") from None
    found: Function = function
    return found


def file_of(kind: str, base: Path) -> Path:
    """The file of the script that ``module:__main__`` names; modules beside it are found from then
    on. Raises TaskError if there is none."""
    module_name = kind.partition(":")[0]
    own.look_in(base)
    file = own.file_in(base, module_name)
    if file is None:
        try:
            spec = importlib.util.find_spec(module_name)
        except ModuleNotFoundError:  # the package that it would be in
            spec = None
        if spec is None or spec.origin is None:
            raise _mistake(f"no module named {module_name!r}; it must be in {base} or be installed")
        file = Path(spec.origin)
    own.look_in(file.parent)
    return file


def remarks(kind: str, base: Path) -> list[str]:
    """Sentences on what the module of a function imports that may not be what it means."""
    file = own.file_in(base, kind.partition(":")[0])
    shadowed = [] if file is None else own.shadowed(file, base)
    found = "finds the installed module, not the one beside it: rename that one if it is meant"
    return [f"{file}: import {name} {found}" for name in shadowed]


def _whole_file(file: Path) -> Function:
    def train(params: Mapping[str, Any], trial: FunctionTrial) -> None:
        with _as_script(str(file), trial):
            runpy.run_path(str(file), run_name=SCRIPT)

    return train


@contextmanager
def _as_script(file: str, trial: FunctionTrial) -> Iterator[None]:
    trial.unread = set(trial.params)
    before, sys.argv = sys.argv, [file]
    try:
        with parsed_arguments():
            yield
    finally:
        sys.argv = before


def _imported(name: str, base: Path) -> ModuleType:
    try:
        return own.load(name, base)
    except ImportEnds as end:
        sys.modules[end.module.__name__] = end.module
        return end.module
    except Exception as error:
        missing = error.name if isinstance(error, ImportError) else None
        top = (missing or "").partition(".")[0]
        if top and own.file_in(base, top) is not None and own.is_installed(top, base):
            what = f"importing {name} failed: {in_words(error)}; {top} is the name of an installed"
            raise _mistake(f"{what} module, too: rename {top} in {base}") from error
        is_missing = isinstance(error, ModuleNotFoundError)
        if is_missing and missing is not None and f"{name}.".startswith(f"{missing}."):
            what = f"no module named {missing!r}; it must be in {base} or be installed"
            raise _mistake(what) from None
        what = f"importing {name} failed: {in_words(error)}; fix the module"
        raise _mistake(what) from error


def _mistake(what: str) -> TaskError:
    return TaskError.at("task.kind", what)
