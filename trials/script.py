"""The trial that a script runs in, if any.

    from trials.script import trial

    learning_rate = trial.get("learning_rate", 0.001)
    for epoch in range(1, trial.get("epochs", 3) + 1):
        ...
        trial.report(epoch, {"accuracy": accuracy})

In a study, `trial` is the running trial (`trials.tasks.function.trial.FunctionTrial`). By hand, it
records nothing, and every parameter has the value that the script gives it.
"""

from __future__ import annotations

import sys
import tempfile
from argparse import Action, ArgumentParser, Namespace
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

Value = TypeVar("Value")
_running: ContextVar[Any] = ContextVar("running_trial", default=None)
"""A `FunctionTrial`, which is in a room above this one; None outside of a study."""
_importing: ContextVar[str | None] = ContextVar("importing_module", default=None)


class ImportEnds(BaseException):
    """Ends the import of a user's module, which is used as it is by then."""

    def __init__(self, module: ModuleType) -> None:
        super().__init__(module)
        self.module = module


def running() -> Any:
    """The trial that this thread trains; None outside of a study. Raises RuntimeError if a module
    asks while it is imported for one of its functions."""
    name = _importing.get()
    if name is not None:
        what = f"it asks for its trial while it is imported: write kind: {name}:__main__"
        raise RuntimeError(f'{what}, or put what trains under if __name__ == "__main__"')
    return _running.get()


@contextmanager
def importing(name: str) -> Iterator[None]:
    """Import a user's module for its functions."""
    token = _importing.set(name)
    try:
        yield
    finally:
        _importing.reset(token)


def end_import() -> None:
    """End the import of a user's module here, if one is under way, by `ImportEnds`. Each worker of
    a study imports the script that began the search: it must not begin another."""
    name = _importing.get()
    if name is not None:
        raise ImportEnds(sys.modules[name])


def imported_now() -> str | None:
    """The name of the user's module that is imported here for its functions, if any."""
    return _importing.get()


@contextmanager
def in_trial(trial: Any) -> Iterator[None]:
    """Let the code of this thread find its trial."""
    token = _running.set(trial)
    try:
        yield
    finally:
        _running.reset(token)


@contextmanager
def parsed_arguments(read: dict[str, Any] | None = None) -> Iterator[None]:
    """Let `argparse` find the parameters of the running trial where a command line is empty. The
    values that it reads which are not defaults go into `read`."""
    parse = ArgumentParser.parse_known_args

    def parse_known_args(
        parser: ArgumentParser, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[Namespace, list[str]]:
        if args or running() is None:
            return parse(parser, args, namespace)
        with _values_of_trial(parser._actions):
            found = parse(parser, args, namespace)
        if read is not None:
            read.update(_stated(parser._actions, found[0]))
        return found

    ArgumentParser.parse_known_args = parse_known_args  # type: ignore[assignment] # no overloads
    try:
        yield
    finally:
        ArgumentParser.parse_known_args = parse  # type: ignore[method-assign] # as it was


@contextmanager
def _values_of_trial(arguments: Sequence[Action]) -> Iterator[None]:
    before = [(each, each.default, each.required) for each in arguments]
    unknown = object()
    for each in arguments:
        value = running().get(each.dest, unknown)
        if value is not unknown:
            each.default, each.required = value, False
    try:
        yield
    finally:
        for each, default, is_required in before:
            each.default, each.required = default, is_required


def _stated(arguments: Sequence[Action], found: Namespace) -> dict[str, Any]:
    stated = {}
    for each in arguments:
        value = getattr(found, each.dest, each.default)
        if value != each.default:
            is_plain = isinstance(value, bool | int | float | str | list)
            stated[each.dest] = value if is_plain else str(value)
    return stated


class ScriptTrial:
    """The running trial, or its stand-in for a script that is started by hand."""

    def __bool__(self) -> bool:
        return running() is not None

    def __getattr__(self, name: str) -> Any:
        of_trial = running()
        if of_trial is None and name in _BY_HAND:
            return _BY_HAND[name]
        if of_trial is None:
            what = f"there is no trial.{name} where a script is started by hand"
            raise AttributeError(f"{what}; write trial.get(name, default)")
        return getattr(of_trial, name)

    def get(self, name: str, default: Value) -> Value:
        """A parameter of the trial; the default if it has none of that name, and by hand."""
        of_trial = running()
        return default if of_trial is None else of_trial.get(name, default)

    def report(self, resource: float, metrics: Mapping[str, Any]) -> None:
        """Report as `FunctionTrial.report`. By hand, nothing is reported."""
        of_trial = running()
        if of_trial is not None:
            of_trial.report(resource, metrics)

    @contextmanager
    def save(self, state: Collection[str] = ()) -> Iterator[Path]:
        """Save as `FunctionTrial.save`. By hand, nothing is kept."""
        of_trial = running()
        with tempfile.TemporaryDirectory() if of_trial is None else of_trial.save(state) as folder:
            yield Path(folder)


_BY_HAND: Mapping[str, Any] = {"checkpoint": None, "saved": None, "best": None, "stopped": False}
trial = ScriptTrial()
