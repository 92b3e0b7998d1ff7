"""A study as one of Optuna's samplers reads it, in the process that drives.

Samplers are shown:

* A trial that diverged, ran out of memory or ran out of time as one that exceeds a limit, with
  the worst values there are: Optuna's samplers skip failed trials.
* Under the Hyperband pruner, only the trials of the proposal's own bracket, as Falkner et al.,
  "BOHB" (ICML 2018), compare like with like. (Optuna's samplers read past its own filter.)
* With several objectives, no intermediate values: those are of the first objective alone.
* A queued trial as one that runs, so that no other trial tries the same.

Repeats of a trial are not shown to those that count trials (`without_repeats`).
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Container, Iterable, Mapping
from typing import Any, cast

import optuna
from optuna.pruners import BasePruner, HyperbandPruner, NopPruner
from optuna.samplers import BaseSampler
from optuna.storages import BaseStorage
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState

from hpsearch.domain.facts import FAILED, Role
from hpsearch.domain.history import History
from hpsearch.domain.records import CONSTRAINT, Trial
from hpsearch.search.optuna_private import brackets_of

FAILURE = f"{CONSTRAINT}failed"
"""The constraint that a failed trial exceeds; Optuna reads it from a trial's system
attributes."""

OVER, WITHIN = 1.0, -1.0
"""Values of that constraint."""


class SamplerView(optuna.Study):
    """A study for one proposal; what it shows stays as it was when it was first read. The limits
    are the metrics that the study limits, for a sampler that heeds constraints; None for one that
    does not."""

    def __init__(
        self,
        study: optuna.Study,
        storage: BaseStorage,
        number: int,
        sampler: BaseSampler,
        limits: Iterable[str] | None,
    ) -> None:
        super().__init__(study.study_name, underway(storage), sampler=sampler, pruner=NopPruner())
        self._whole = study
        self._number = number
        self._limits = None if limits is None else tuple(limits)
        self._shown: list[FrozenTrial] | None = None

    def _get_trials(
        self,
        deepcopy: bool = True,
        states: Container[TrialState] | None = None,
        use_cache: bool = False,
    ) -> list[FrozenTrial]:
        if self._shown is None:
            self._shown = self._read()
        return _selected(self._shown, deepcopy, states)

    def _read(self) -> list[FrozenTrial]:
        whole, limits = self._whole, self._limits
        trials = self._storage.get_all_trials(self._study_id, deepcopy=False)
        trials = in_bracket(whole.pruner, whole, trials, self._number)
        if self._is_multi_objective():
            trials = list(map(_without_curve, trials))
        some_failed = any(map(_has_failed, trials))
        if limits is None or not some_failed:
            return trials
        worst = _worst(trials, self.directions)
        names = [CONSTRAINT + metric for metric in limits]
        unknown = dict.fromkeys(names, 0.0)
        return [_with_failure(trial, worst, unknown) for trial in trials]


class _Shown:
    def __init__(
        self, storage: BaseStorage, show: Callable[[list[FrozenTrial]], Iterable[FrozenTrial]]
    ) -> None:
        self._storage = storage
        self._show = show

    def __getattr__(self, name: str) -> Any:
        return getattr(self._storage, name)

    def get_all_trials(
        self, study_id: int, deepcopy: bool = True, states: Container[TrialState] | None = None
    ) -> list[FrozenTrial]:
        """As Optuna's own."""
        trials = self._storage.get_all_trials(study_id, deepcopy=False)
        return _selected(self._show(trials), deepcopy, states)

    get_best_trial = BaseStorage.get_best_trial


def id_of(trial: Trial, storage: BaseStorage, history: History) -> int:
    """The number that an Optuna storage knows a trial of this history by."""
    return storage.get_trial_id_from_study_id_trial_number(history.study.id, trial.number)


def underway(storage: BaseStorage) -> BaseStorage:
    """A storage that shows queued trials as running, to samplers that read it directly."""
    return cast(BaseStorage, _Shown(storage, lambda trials: map(_underway, trials)))


def without_repeats(storage: BaseStorage, history: History) -> BaseStorage:
    """A storage without repeats, for Optuna's pruners and most of its samplers.

    A pruner compares with the median, the best or the share of other trials, and a sampler takes
    the best so many for the good ones: repeats of the leaders among them would count as additional
    good configurations.
    """

    def show(trials: list[FrozenTrial]) -> Iterable[FrozenTrial]:
        records = history.trials
        return (trial for trial in trials if records[trial.number].role is not Role.CONFIRM)

    return cast(BaseStorage, _Shown(storage, show))


def in_bracket(
    pruner: BasePruner, study: optuna.Study, trials: list[FrozenTrial], number: int
) -> list[FrozenTrial]:
    """The trials in the Hyperband bracket of trial `number`; all of them under any other pruner."""
    if not isinstance(pruner, HyperbandPruner):
        return trials
    brackets = brackets_of(pruner, study, trials)
    bracket = brackets[number]
    return [trial for trial in trials if brackets[trial.number] == bracket]


def _selected(
    trials: Iterable[FrozenTrial], deepcopy: bool, states: Container[TrialState] | None
) -> list[FrozenTrial]:
    chosen = list(trials)
    if states is not None:
        chosen = [trial for trial in chosen if trial.state in states]
    if deepcopy:
        return copy.deepcopy(chosen)
    return chosen


def _underway(trial: FrozenTrial) -> FrozenTrial:
    if trial.state is not TrialState.WAITING:
        return trial
    shown = copy.copy(trial)
    shown.state = TrialState.RUNNING
    return shown


def _without_curve(trial: FrozenTrial) -> FrozenTrial:
    if not trial.intermediate_values:
        return trial
    shown = copy.copy(trial)
    shown.intermediate_values = {}
    return shown


def _with_failure(
    trial: FrozenTrial, worst: list[float] | None, unknown: Mapping[str, float]
) -> FrozenTrial:
    """The trial with a constraint that says whether it failed, on every trial alike.

    Args:
        trial: The trial.
        worst: The values that a failed trial is shown with; None if none is known.
        unknown: The study's own constraints, for a trial that has none on record.
    """
    failed = _has_failed(trial)
    has_result = trial.state in (TrialState.COMPLETE, TrialState.PRUNED)
    if not failed and not has_result:
        return trial
    shown = copy.copy(trial)
    failure = OVER if failed else WITHIN
    shown.system_attrs = {**unknown, **trial.system_attrs, FAILURE: failure}
    if failed:
        shown.state = TrialState.PRUNED if worst is None else TrialState.COMPLETE
        shown.values = worst
    return shown


def _has_failed(trial: FrozenTrial) -> bool:
    return FAILED in trial.system_attrs


def _worst(trials: list[FrozenTrial], directions: list[StudyDirection]) -> list[float] | None:
    known = [trial.values for trial in trials if trial.state is TrialState.COMPLETE]
    if not known:
        return None
    worst = []
    columns = zip(*known, strict=True)
    for column, direction in zip(columns, directions, strict=True):
        worst_of = min if direction == StudyDirection.MAXIMIZE else max
        worst.append(worst_of(column))
    return worst
