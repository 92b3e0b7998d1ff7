"""A study as one of Optuna's samplers reads it, in the process that drives.

Optuna's samplers skip failed trials, and some of what a study of ours records is more than they can read. They are
shown:

* A trial that diverged, ran out of memory or ran out of time as one that oversteps a limit, with the worst values
  there are: a fact about its region, for samplers that heed constraints.
* Under the Hyperband pruner, only the trials of the proposal's own bracket, as Falkner et al., "BOHB" (ICML 2018),
  compare like with like. (Optuna filters what `Study.get_trials` returns, and its samplers read past that.)
* With several objectives, no intermediate values: those are of the first objective alone.
"""

from __future__ import annotations

import copy
from collections.abc import Container, Iterable

import optuna
from optuna.pruners import BasePruner, HyperbandPruner, NopPruner
from optuna.samplers import BaseSampler
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState

from hpsearch.curve_gp import FAILED
from hpsearch.records import CONSTRAINT

FAILURE = f"{CONSTRAINT}failed"
"""The constraint that a failed trial oversteps; Optuna reads it from a trial's system attributes."""

OVER, WITHIN = 1.0, -1.0
"""Values of that constraint."""


class SamplerView(optuna.Study):
    """A study for one proposal; what it shows stays as it was when it was first read.

    Args:
        study: The study.
        number: The trial that is proposed.
        sampler: Who reads.
        limits: The metrics that the study limits.
        heeds: Whether the sampler heeds constraints.
    """

    def __init__(
        self, study: optuna.Study, number: int, sampler: BaseSampler, limits: Iterable[str], *, heeds: bool
    ) -> None:
        super().__init__(study.study_name, study._storage, sampler=sampler, pruner=NopPruner())
        self._whole = study
        self._number = number
        self._limits = tuple(limits)
        self._heeds = heeds
        self._shown: list[FrozenTrial] | None = None

    def _get_trials(
        self, deepcopy: bool = True, states: Container[TrialState] | None = None, use_cache: bool = False
    ) -> list[FrozenTrial]:
        """As Optuna's own, of what the sampler is shown."""
        if self._shown is None:
            self._shown = self._read()
        chosen = [trial for trial in self._shown if states is None or trial.state in states]
        return copy.deepcopy(chosen) if deepcopy else chosen

    def _read(self) -> list[FrozenTrial]:
        trials = self._storage.get_all_trials(self._study_id, deepcopy=False)
        trials = in_bracket(self._whole.pruner, self._whole, trials, self._number)
        if self._is_multi_objective():
            trials = [_without_curve(trial) for trial in trials]
        if not self._heeds or not any(FAILED in trial.system_attrs for trial in trials):
            return trials
        worst = _worst(trials, self.directions)
        return [self._with_failure(trial, worst) for trial in trials]

    def _with_failure(self, trial: FrozenTrial, worst: list[float] | None) -> FrozenTrial:
        """The trial with a constraint that says whether it failed, after those of the study, on every trial alike."""
        failed = FAILED in trial.system_attrs
        if not failed and trial.state not in (TrialState.COMPLETE, TrialState.PRUNED):
            return trial
        shown = copy.copy(trial)
        unknown = {CONSTRAINT + metric: 0.0 for metric in self._limits}
        shown.system_attrs = {**unknown, **trial.system_attrs, FAILURE: OVER if failed else WITHIN}
        if failed:
            shown.state = TrialState.PRUNED if worst is None else TrialState.COMPLETE
            shown.values = worst
        return shown


def in_bracket(pruner: BasePruner, study: optuna.Study, trials: list[FrozenTrial], number: int) -> list[FrozenTrial]:
    """The trials in the Hyperband bracket of trial `number`; all of them under any other pruner."""
    if not isinstance(pruner, HyperbandPruner):
        return trials
    if not pruner._pruners:
        pruner._try_initialization(study)
    brackets = {trial.number: pruner._get_bracket_id(study, trial) for trial in trials}
    return [trial for trial in trials if brackets[trial.number] == brackets[number]]


def _without_curve(trial: FrozenTrial) -> FrozenTrial:
    if not trial.intermediate_values:
        return trial
    shown = copy.copy(trial)
    shown.intermediate_values = {}
    return shown


def _worst(trials: list[FrozenTrial], directions: list[StudyDirection]) -> list[float] | None:
    """The worst value of each objective among complete trials; None before there is one."""
    known = [trial.values for trial in trials if trial.state is TrialState.COMPLETE]
    if not known:
        return None
    return [
        min(column) if direction == StudyDirection.MAXIMIZE else max(column)
        for column, direction in zip(zip(*known, strict=True), directions, strict=True)
    ]
