"""A script that searches by Optuna, run in a process of its own: up to its search, then one trial.

Both are Optuna's own: nothing is searched or stored, and the trial is the first that the script
would have tried.
"""

from __future__ import annotations

import importlib
import inspect
import multiprocessing
import os
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import optuna
from optuna.pruners import BasePruner, NopPruner
from optuna.samplers import BaseSampler
from optuna.study import MaxTrialsCallback
from optuna.trial import TrialState

from hpsearch.errors import UserError
from hpsearch.executors import worker_process
from hpsearch.search.proposals import FIXED_PARAMS
from hpsearch.study_file.types import is_whole_number
from trials.contract import TaskError
from trials.foreign import in_words, plain

UNNAMED = "no-name-"
"""Begins the names that Optuna gives to studies without one."""


@dataclass(frozen=True)
class Stated:
    """A sampler or a pruner that a script has made, by its class, with the arguments it gave."""

    name: str
    module: str
    arguments: Mapping[str, Any]


@dataclass
class Recorded:
    """The search of a script, in plain values.

    Attributes:
        name: The study's; None without one.
        metrics: Of its objectives; None without names.
        sampler: The sampler that the script states, or None; `pruner` is the same.
        enqueued: The parameters of the trials that it has enqueued.
        arguments: Those of its command line that are not defaults.
        most: The number of trials of a `MaxTrialsCallback`, if any; `callbacks` are the others.
        lost: The parts that a study has no place for.
        line: The line of the script that calls `optimize`; None if another module does.
    """

    name: str | None
    directions: list[str]
    metrics: list[str] | None
    trials: int | None
    timeout: float | None
    jobs: int
    sampler: Stated | None
    pruner: Stated | None
    enqueued: list[dict[str, Any]]
    arguments: dict[str, Any]
    most: int | None
    callbacks: list[str]
    lost: list[str]
    line: int | None


@dataclass
class Tried:
    """The one trial that was run.

    Attributes:
        steps: The steps that it has reported.
        may_prune: It has asked whether it should be pruned.
        whole: Its whole numbers: their values, and the largest that they can have.
        seconds: Until it ended; None if it had not.
        error: The error that it ended with, if any.
    """

    steps: list[int] = field(default_factory=list)
    may_prune: bool = False
    whole: dict[str, tuple[int, int]] = field(default_factory=dict)
    seconds: float | None = None
    error: str | None = None


def recorded(words: list[str], limit_s: float) -> tuple[Recorded, Tried]:
    """The search of a script, by its path and its arguments, and its first trial, which is ended
    after so many seconds. Raises UserError if the script cannot be carried over."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs, words))
    process.start()
    theirs.close()
    tried = Tried()
    try:
        found = ours.recv()
        if isinstance(found, str):
            raise UserError(found)
        until = time.monotonic() + limit_s
        while ours.poll(max(0.0, until - time.monotonic())):
            news = ours.recv()
            if isinstance(news, Tried):
                return found, news
            tried.steps.append(news)
        return found, tried
    except EOFError:
        process.join()
        what = f"the process of {words[0]} ended by itself, with code {process.exitcode}"
        raise UserError(what, "run it by hand to see why") from None
    finally:
        process.kill()
        process.join()


# ------------------------------------------------------------------------ in the script's process

_stated: dict[int, tuple[Any, dict[str, Any]]] = {}
"""By their ids: the samplers and pruners that the script has made, with their arguments."""


def _serve(pipe: Connection, words: list[str]) -> None:
    worker_process.let_children_die_with_us()
    os.dup2(2, 1)  # what it prints is no result
    script = importlib.import_module("hpsearch.adapters.optuna_script")
    for module in (optuna.samplers, optuna.pruners):
        for each in map(module.__dict__.get, module.__all__):
            if isinstance(each, type):
                _remember(each)
    try:
        recorder = script.run_to_search(Path(words[0]), {}, *words[1:])
    except TaskError as error:
        pipe.send("; ".join(problem.what for problem in error.problems))
        return
    search = recorder.search
    sys.modules[script.MAIN] = search.module
    pipe.send(_plain(recorder))
    pipe.send(_tried(search, pipe))


def _remember(method: type[Any]) -> None:
    """Let a class of Optuna's remember what a script gave to it."""
    begin = method.__init__
    signature = inspect.signature(begin)

    def remembering(self: Any, *args: Any, **named: Any) -> None:
        caller = sys._getframe(1).f_globals.get("__name__", "")
        is_stated = type(self) is method and not caller.startswith("optuna.")
        if is_stated:
            _stated[id(self)] = self, signature.bind(self, *args, **named).arguments
        begin(self, *args, **named)

    remembering.__signature__ = signature  # type: ignore[attr-defined]
    method.__init__ = remembering


def _plain(recorder: Any) -> Recorded:
    search, asked = recorder.search, recorder.search.asked
    study: optuna.Study = search.study
    trials = study.get_trials(deepcopy=False)
    waiting = [trial for trial in trials if trial.state is TrialState.WAITING]
    enqueued = [trial.system_attrs.get(FIXED_PARAMS, {}) for trial in waiting]
    most, callbacks = None, []
    for each in asked["callbacks"] or ():
        if isinstance(each, MaxTrialsCallback):
            most = min(each._n_trials, most or each._n_trials)
        else:
            callbacks.append(plain(getattr(each, "__name__", type(each).__name__)))
    lost = []
    if any(trial.user_attrs for trial in waiting):
        lost.append("the user attributes of enqueued trials")
    if len(trials) > len(waiting):
        lost.append("the trials that it adds by add_trial (hpsearch import has a place for them)")
    if recorder.storages:
        lost.append("its storage: the study is in the database of hpsearch")
    if study.user_attrs:
        lost.append("the attributes of the study, except that trials read them")
    return Recorded(
        None if study.study_name.startswith(UNNAMED) else study.study_name,
        list(search.directions),
        study.metric_names,
        asked["n_trials"],
        asked["timeout"],
        asked["n_jobs"],
        _stated_as(study.sampler),
        _stated_as(study.pruner),
        [{name: _written(value) for name, value in each.items()} for each in enqueued],
        recorder.arguments,
        most,
        callbacks,
        lost,
        search.line,
    )


def _stated_as(method: Any) -> Stated | None:
    """A sampler or pruner of the script; None for Optuna's default."""
    kind = type(method)
    known = _stated.get(id(method))
    if known is None:
        is_own = not kind.__module__.startswith("optuna.")
        return Stated(kind.__name__, kind.__module__, {}) if is_own else None
    arguments = {name: _written(each) for name, each in known[1].items() if each is not method}
    return Stated(kind.__name__, kind.__module__, arguments)


def _written(value: Any) -> Any:
    """A value in plain values, as far as it can be: another method as `Stated`, a function or an
    object by its name in a tuple."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Mapping):
        return {str(name): _written(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_written(each) for each in value]
    if isinstance(value, BaseSampler | BasePruner):
        return _stated_as(value)
    return (plain(getattr(value, "__qualname__", type(value).__name__)),)


class _Asked(NopPruner):
    """Remembers whether it is asked."""

    def __init__(self) -> None:
        self.is_asked = False

    def prune(self, study: optuna.Study, trial: optuna.trial.FrozenTrial) -> bool:
        self.is_asked = True
        return False


def _tried(search: Any, pipe: Connection) -> Tried:
    study: optuna.Study = search.study
    study.pruner = pruner = _Asked()
    trial = study.ask()
    keep = study._storage.set_trial_intermediate_value

    def keep_and_send(trial_id: int, step: int, value: float) -> None:
        keep(trial_id, step, value)
        pipe.send(step)

    study._storage.set_trial_intermediate_value = keep_and_send  # type: ignore[assignment, method-assign]
    began = time.monotonic()
    error = None
    try:
        search.objective(trial)
    except optuna.TrialPruned:
        pass
    except Exception as raised:  # noqa: BLE001 - of any objective
        error = in_words(raised)
    frozen = study._storage.get_trial(trial._trial_id)
    whole = {}
    for name, value in frozen.params.items():
        largest = getattr(frozen.distributions[name], "high", value)
        if is_whole_number(value):
            whole[name] = int(value), int(largest)
    steps = list(frozen.intermediate_values)
    return Tried(steps, pruner.is_asked, whole, time.monotonic() - began, error)
