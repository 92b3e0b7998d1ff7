"""Turns a trainable of Ray Tune, a function or a class, into a training function.

A config ``{"model": {"width": uniform(1, 8)}}`` is searched as the parameter ``model.width``.
"""

import copy
import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from numbers import Number
from pathlib import Path
from typing import Any

from hpsearch.errors import UserError
from hpsearch.plugins.ray_tune import trainable as classes
from hpsearch.plugins.ray_tune.session import Ended, Session, running, working_in
from hpsearch.plugins.ray_tune.trainable import Trainable
from trials.contract import TaskError
from trials.tasks.function.run import Function
from trials.tasks.function.trial import FunctionTrial

DEFAULT_METRIC = "_metric"  # the name of a number that a trainable returns, as Ray Tune has it
IMPORT = "from hpsearch import tune"
OURS = "_tune"  # among the `args` of a task: what `hpsearch.tune` notes about its trainable


@dataclass(frozen=True)
class WrappedTrainable:
    """A trainable with more than its code."""

    inner: Any  # a function or a class
    parameters: Mapping[str, Any] = field(default_factory=dict)
    """Given to the function, or to the class's `setup`, by name."""
    resources: Mapping[str, float] = field(default_factory=dict)  # ``cpu`` and ``gpu`` of a trial


def unwrapped(trainable: Any) -> WrappedTrainable:
    return trainable if isinstance(trainable, WrappedTrainable) else WrappedTrainable(trainable)


def with_parameters(trainable: Any, **parameters: Any) -> WrappedTrainable:
    """A trainable that is given objects beside its config.

    Args:
        trainable: A function, which is called with them by name, or a class, whose `setup` is.
        parameters: Plain values, or objects that are global in the trainable's module.
    """
    before = unwrapped(trainable)
    together = {**before.parameters, **parameters}
    return WrappedTrainable(before.inner, together, before.resources)


def with_resources(trainable: Any, resources: Any) -> WrappedTrainable:
    """A trainable with what each trial takes: ``{"cpu": 2, "gpu": 0.5}``. Raises UserError."""
    before = unwrapped(trainable)
    return WrappedTrainable(before.inner, before.parameters, _plain_resources(resources))


def _plain_resources(resources: Any) -> dict[str, float]:
    if not isinstance(resources, Mapping):
        what = f"tune.with_resources cannot follow {resources!r}"
        raise UserError(what, "give numbers that are the same for all trials: {'cpu': 2}")
    found = {str(name).lower(): number for name, number in resources.items()}
    for name in found:
        if name not in ("cpu", "gpu"):
            what = f"tune.with_resources asks for {name}, and workers are given cpu and gpu only"
            raise UserError(what, "leave it out")
    return found


@dataclass(frozen=True)
class TrainableNotes:
    """Notes of `hpsearch.tune` about a trainable, among the `args` of its task."""

    tuples: tuple[str, ...] = ()  # parameters whose choices hold tuples
    parameters: Mapping[str, Any] | None = None  # plain values that are passed beside the config
    globals: Mapping[str, str] | None = None  # more of them: names of the module's globals


def adapt(found: Any, task: Mapping[str, Any]) -> Function:
    """The training function of a trainable. Raises TaskError if it cannot be trained here."""
    name = task["kind"]
    if isinstance(found, Path):
        what = "a script that searches by Ray Tune is started by hand, and searches by hpsearch"
        raise TaskError.at("task.kind", f"{what} with: from hpsearch import tune")
    noted = TrainableNotes(**(task.get("args") or {}).get(OURS, {}))
    wrapped = unwrapped(found)
    parameters = {**wrapped.parameters, **(noted.parameters or {}), **_globals(noted, name)}
    call = _call(wrapped.inner, name, parameters)
    tuples = frozenset(noted.tuples)

    def train(params: Mapping[str, Any], trial: FunctionTrial) -> None:
        session = Session(trial)
        config = config_of(params, tuples)
        with running(session), working_in(trial):
            try:
                call(config, session)
            except Ended:
                return
        if session.iteration == 0:
            what = f"{name} has ended without a report"
            raise UserError(what, f"call tune.report({{...}}), with tune from: {IMPORT}")

    return train


def _globals(noted: TrainableNotes, kind: str) -> dict[str, Any]:
    module = sys.modules[kind.partition(":")[0]]
    found = {}
    for parameter, name in (noted.globals or {}).items():
        if not hasattr(module, name):
            what = f"{module.__name__} has no {name}, which {kind} is given as {parameter}"
            raise TaskError.at("task.kind", f"{what}; define it at the module's top level")
        found[parameter] = getattr(module, name)
    return found


Call = Callable[[dict[str, Any], Session], None]


def _call(inner: Any, name: str, parameters: Mapping[str, Any]) -> Call:
    if isinstance(inner, type):
        return _call_of_class(inner, name, parameters)
    if not callable(inner):
        raise _refusal(f"{name} is not a trainable; name a function or a class")
    if not _takes(inner, {}, **parameters):
        given = "".join(f", {each}" for each in parameters)
        raise _refusal(f"{name} cannot be called with (config{given})")

    def call(config: dict[str, Any], session: Session) -> None:
        outcome = inner(config, **parameters)
        each = outcome if inspect.isgenerator(outcome) else [outcome]
        for returned in each:
            _report_returned(returned, name, session)

    return call


def _report_returned(returned: Any, name: str, session: Session) -> None:
    if returned is None or returned == {}:
        return
    if isinstance(returned, Number):
        session.report({DEFAULT_METRIC: returned})
    elif isinstance(returned, Mapping):
        session.report(returned)
    else:
        what = f"{name} returned {returned!r:.60}"
        raise UserError(what, "return or yield a dict of metrics, a number or nothing")


def _call_of_class(inner: type[Any], name: str, parameters: Mapping[str, Any]) -> Call:
    if not issubclass(inner, Trainable):
        bases = {base.__module__.partition(".")[0] for base in inner.__mro__}
        if "ray" in bases:
            raise _refusal(f"{name} is a Trainable of ray; change its import to: {IMPORT}")
        raise _refusal(f"{name} is a class, but not a tune.Trainable; import that with: {IMPORT}")
    if not _takes(inner.setup, None, {}, **parameters):
        given = "".join(f", {each}" for each in parameters)
        raise _refusal(f"{name}.setup cannot be called with (config{given})")

    def call(config: dict[str, Any], session: Session) -> None:
        classes.drive(inner, config, session, parameters)

    return call


def _takes(function: Any, *arguments: Any, **named: Any) -> bool:
    try:
        inspect.signature(function).bind(*arguments, **named)
    except TypeError:
        return False
    return True


def _refusal(what: str) -> TaskError:
    return TaskError.at("task.kind", what)


def config_of(params: Mapping[str, Any], tuples: frozenset[str] = frozenset()) -> dict[str, Any]:
    """The nested config of a trial, which its trainable may change, of its parameters by their
    dotted names, over constants; `tuples` are those whose lists were tuples."""
    config: dict[str, Any] = {}
    own = {name: value for name, value in params.items() if name != OURS}
    # Constants first: their names have no points, and parameters go inside.
    for name in sorted(own, key=lambda name: "." in name):
        value = copy.deepcopy(own[name])
        _put(config, name, _with_tuples(value) if name in tuples else value)
    return config


def _with_tuples(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(map(_with_tuples, value))
    if isinstance(value, dict):
        return {key: _with_tuples(each) for key, each in value.items()}
    return value


def _put(config: dict[str, Any], name: str, value: Any) -> None:
    *parents, last = str(name).split(".")
    inner = config
    for parent in parents:
        inner = inner.setdefault(parent, {})
    inner[last] = value
