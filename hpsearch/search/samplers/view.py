"""A study as one of Optuna's samplers reads it, in the process that drives.

Samplers are shown:

* A trial that diverged, ran out of memory or ran out of time as one that exceeds a limit, with
  the worst values there are: Optuna's samplers skip failed trials.
* With several objectives, no intermediate values: those are of the first objective alone.
* A queued trial as one that runs, so that no other trial tries the same.

To TPE a large study is shown in part (`proposals`). Repeats of a trial are not shown to those that
count trials (`without_repeats`).
"""

import copy
import warnings
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, cast

import optuna
from optuna.pruners import NopPruner
from optuna.samplers import BaseSampler
from optuna.storages import BaseStorage
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState

from hpsearch.domain.facts import FAILED
from hpsearch.domain.history import History
from hpsearch.domain.records import CONSTRAINT, Trial

FAILURE = f"{CONSTRAINT}failed"
"""The constraint that a failed trial exceeds, as a system attribute of it."""
OVER, WITHIN = 1.0, -1.0  # values of that constraint


def sampler_view(
    name: str, storage: BaseStorage, sampler: BaseSampler, limits: Iterable[str] | None
) -> optuna.Study:
    """A study for one proposal, as it is when it is first read. The limits are the metrics that the
    study limits, for a sampler that takes constraints; None for any other."""
    directions = storage.get_study_directions(storage.get_study_id_from_name(name))
    unknown = None if limits is None else {CONSTRAINT + metric: 0.0 for metric in limits}

    def show(trials: list[FrozenTrial]) -> Iterable[FrozenTrial]:
        if len(directions) > 1:
            trials = list(map(_without_curve, trials))
        if unknown is None or not any(map(_has_failed, trials)):
            return trials
        worst = _worst(trials, directions)
        return [_with_failure(trial, worst, unknown) for trial in trials]

    shown = cast(BaseStorage, _Shown(underway(storage), show))
    return optuna.Study(name, shown, sampler=sampler, pruner=NopPruner())


class _Shown:
    def __init__(
        self,
        storage: BaseStorage,
        show: Callable[[list[FrozenTrial]], Iterable[FrozenTrial]] = list,
        numbers: Sequence[int] | None = None,
    ) -> None:
        self._storage, self._show, self._numbers = storage, show, numbers
        self._read: list[FrozenTrial] | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._storage, name)

    def get_all_trials(
        self, study_id: int, deepcopy: bool = True, states: Container[TrialState] | None = None
    ) -> list[FrozenTrial]:
        """As Optuna's own, as the trials are when they are first read."""
        if self._read is None:
            self._read = list(self._show(self._trials(study_id)))
        chosen = [each for each in self._read if states is None or each.state in states]
        return copy.deepcopy(chosen) if deepcopy else chosen

    get_best_trial = BaseStorage.get_best_trial

    def _trials(self, study_id: int) -> list[FrozenTrial]:
        storage = self._storage
        if self._numbers is None:
            return storage.get_all_trials(study_id, deepcopy=False)
        find = storage.get_trial_id_from_study_id_trial_number
        return [storage.get_trial(find(study_id, number)) for number in self._numbers]


@contextmanager
def unheard() -> Iterator[None]:
    """Let samplers and pruners say nothing: their remarks are on classes of Optuna and on lines of
    its code, and tell the user of a study file nothing that the study file's check has not."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        optuna.logging.set_verbosity(before)


def id_of(trial: Trial, storage: BaseStorage, history: History) -> int:
    """The id of a trial of this history in an Optuna storage."""
    return storage.get_trial_id_from_study_id_trial_number(history.study.id, trial.number)


def underway(storage: BaseStorage) -> BaseStorage:
    """A storage that shows queued trials as running, to samplers that read it directly."""
    waiting, running = TrialState.WAITING, TrialState.RUNNING

    def show(trials: list[FrozenTrial]) -> Iterable[FrozenTrial]:
        return [_changed(each, state=running) if each.state is waiting else each for each in trials]

    return cast(BaseStorage, _Shown(storage, show))


def without_repeats(storage: BaseStorage, history: History) -> BaseStorage:
    """A storage without repeats, for Optuna's pruners and most of its samplers, to which repeats of
    the leaders would be additional good configurations."""
    if history.searched == len(history.trials):
        return storage

    def show(trials: list[FrozenTrial]) -> Iterable[FrozenTrial]:
        records = history.trials
        return (trial for trial in trials if records[trial.number].role.of_search)

    return cast(BaseStorage, _Shown(storage, show))


def only(storage: BaseStorage, numbers: Sequence[int]) -> BaseStorage:
    """A storage with some of the trials."""
    return cast(BaseStorage, _Shown(storage, numbers=numbers))


def _without_curve(trial: FrozenTrial) -> FrozenTrial:
    return _changed(trial, intermediate_values={}) if trial.intermediate_values else trial


def _changed(trial: FrozenTrial, **changes: Any) -> FrozenTrial:
    shown = copy.copy(trial)
    for name, value in changes.items():
        setattr(shown, name, value)
    return shown


def _with_failure(
    trial: FrozenTrial, worst: list[float] | None, unknown: Mapping[str, float]
) -> FrozenTrial:
    """The trial with a constraint on its failure, which every ended trial has; if it failed, with
    the worst values that are known. `unknown` are values of constraints that are not on record."""
    failed = _has_failed(trial)
    if not failed and trial.state not in (TrialState.COMPLETE, TrialState.PRUNED):
        return trial
    system_attrs = {**unknown, **trial.system_attrs, FAILURE: OVER if failed else WITHIN}
    if not failed:
        return _changed(trial, system_attrs=system_attrs)
    state = TrialState.PRUNED if worst is None else TrialState.COMPLETE
    return _changed(trial, system_attrs=system_attrs, state=state, values=worst)


def _has_failed(trial: FrozenTrial) -> bool:
    return FAILED in trial.system_attrs


def _worst(trials: list[FrozenTrial], directions: list[StudyDirection]) -> list[float] | None:
    known = [trial.values for trial in trials if trial.state is TrialState.COMPLETE]
    if not known:
        return None
    worst_of = [min if each == StudyDirection.MAXIMIZE else max for each in directions]
    return [of(column) for of, column in zip(worst_of, zip(*known, strict=True), strict=True)]
