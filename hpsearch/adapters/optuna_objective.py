"""Objectives of Optuna as training functions: ``task: {kind: my_module:objective, library:
optuna}``.

    def objective(trial):
        x = trial.suggest_float("x", 0.0, 1.0)
        for step in range(10):
            ...
            trial.report(accuracy, step)
            if trial.should_prune():
                raise optuna.TrialPruned
        return accuracy

The objective is called as Optuna calls it, with a trial (`ObjectiveTrial`) that talks to the study
which runs it. Its return value is the report at the full budget. A script that calls
`study.optimize` by itself is imported up to there.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from optuna.exceptions import TrialPruned
from optuna.study import Study

from hpsearch.adapters.optuna_trial import ObjectiveTrial
from trials.contract import Pruned, TaskError
from trials.foreign import text_of
from trials.script import end_import
from trials.tasks.function.run import Function
from trials.tasks.function.trial import FunctionTrial


def adapt(objective: Any, task: Mapping[str, Any]) -> Function:
    """An objective as a function that takes `(params, trial)`. Raises TaskError if it cannot be
    called with a trial alone."""
    name = task["kind"].partition(":")[2]
    if isinstance(objective, type):
        example = f"{name.lower()} = {name}(...)"
        raise _mistake(f"{name} is a class; name an object of it that the module makes: {example}")
    if not callable(objective):
        raise _mistake(f"{name} is not an objective; write def {name}(trial)")
    signature = inspect.signature(objective)
    try:
        signature.bind(None)
    except TypeError:
        what = f"{name}{text_of(signature)} cannot be called with a trial alone"
        raise _mistake(f"{what}; write def {name}(trial)") from None
    return _function(objective)


def _function(objective: Callable[[ObjectiveTrial], Any]) -> Function:
    def train(params: Mapping[str, Any], trial: FunctionTrial) -> None:
        of_optuna = ObjectiveTrial(params, trial)
        try:
            returned = objective(of_optuna)
        except TrialPruned as verdict:
            why = text_of(verdict) or "the objective raised TrialPruned"
            raise Pruned(why) from verdict
        of_optuna.finish(returned)

    return train


def _after_imports(optimize: Callable[..., None]) -> Callable[..., None]:
    """`Study.optimize`, which ends the import of a module that workers import for its objective."""

    @functools.wraps(optimize)
    def begin(*args: Any, **named: Any) -> None:
        end_import()
        optimize(*args, **named)

    return begin


Study.optimize = _after_imports(Study.optimize)  # type: ignore[method-assign] # scripts call it


def _mistake(what: str) -> TaskError:
    return TaskError.at("task.kind", what)
