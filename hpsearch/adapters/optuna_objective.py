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
`study.optimize` by itself is imported up to there. ``kind: my_script:__main__`` is what a script
calls `study.optimize` with, wherever its objective is from.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from optuna.exceptions import TrialPruned

from hpsearch.adapters import optuna_script
from hpsearch.adapters.optuna_script import ScriptSearch
from hpsearch.adapters.optuna_trial import ObjectiveTrial
from trials.contract import Problem, Pruned, TaskError
from trials.foreign import text_of
from trials.tasks.function.run import Function
from trials.tasks.function.task import SCRIPT, file_of
from trials.tasks.function.trial import FunctionTrial


def adapt(found: Any, task: Mapping[str, Any]) -> Function:
    """An objective, or that of a script, as a function that takes `(params, trial)`. Raises
    TaskError if it cannot be called with a trial alone."""
    module_name, _, name = task["kind"].partition(":")
    if isinstance(found, Path):
        recorder = optuna_script.run_to_search(found, task.get("args") or {})
        assert recorder.search is not None
        return _function(recorder.search.objective, recorder.search)
    if isinstance(found, type):
        example = f"{name.lower()} = {name}(...)"
        raise _mistake(f"{name} is a class; name an object of it that the module makes: {example}")
    if not callable(found):
        raise _mistake(f"{name} is not an objective; write def {name}(trial)")
    signature = inspect.signature(found)
    try:
        signature.bind(None)
    except TypeError:
        what = f"{name}{text_of(signature)} cannot be called with a trial alone"
        raise _mistake(f"{what}; write def {name}(trial)") from None
    return _function(found, optuna_script.imported(module_name))


def _function(objective: Callable[[ObjectiveTrial], Any], search: ScriptSearch | None) -> Function:
    stated = None if search is None else search.study
    measure = getattr(None if stated is None else stated.sampler, "_constraints_func", None)

    def train(params: Mapping[str, Any], trial: FunctionTrial) -> None:
        of_optuna = ObjectiveTrial(params, trial, stated)
        try:
            if search is None:
                returned = objective(of_optuna)
            else:
                with search.as_main():
                    returned = objective(of_optuna)
        except TrialPruned as verdict:
            if measure is not None:
                of_optuna.constrain(measure)
            why = text_of(verdict) or "the objective raised TrialPruned"
            raise Pruned(why) from verdict
        if measure is not None:
            of_optuna.constrain(measure)
        of_optuna.finish(returned)

    return train


def problems_with(task: Mapping[str, Any], base: Path, directions: Sequence[str]) -> list[Problem]:
    """The problem of a study file whose objectives have other directions than those of the script,
    where the script shows them."""
    stated = _directions(task, base)
    if stated is None or not directions or stated == tuple(directions):
        return []
    where = "objective.direction" if len(directions) == 1 else "objective"
    module_name = task["kind"].partition(":")[0]
    what = f"is {', '.join(directions)} here, and {', '.join(stated)} in {module_name}"
    return [Problem(where, f"{what}: make both the same")]


def _directions(task: Mapping[str, Any], base: Path) -> tuple[str, ...] | None:
    """The directions of an objective that has been adapted, as far as its script shows them."""
    module_name, _, name = task["kind"].partition(":")
    if name == SCRIPT:
        recorder = optuna_script.run_to_search(file_of(task["kind"], base), task.get("args") or {})
        search = recorder.search
    else:
        search = optuna_script.imported(module_name)
    if search is not None:
        return search.directions
    file = getattr(sys.modules[module_name], "__file__", None) or ""
    if not file.endswith(".py"):
        return None
    return optuna_script.directions_in(Path(file).read_text(encoding="utf-8"), name)


def _mistake(what: str) -> TaskError:
    return TaskError.at("task.kind", what)
