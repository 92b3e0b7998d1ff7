"""Trials in Optuna's terms: states, steps and `FrozenTrial`.

Optuna has no paused state. Until it continues, a paused trial is shown as pruned at its rung, where
its reports end. Optuna's steps are whole numbers and our resources are not: a study may state a
factor to multiply them by.
"""

from __future__ import annotations

import math
from datetime import datetime
from typing import Any

from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState

from hpsearch.domain.facts import FAILED
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import StudyRecord, Trial
from hpsearch.study_file.space import in_optuna

TO_OPTUNA = {
    State.QUEUED: TrialState.WAITING,
    State.RUNNING: TrialState.RUNNING,
    State.PAUSED: TrialState.PRUNED,
    State.COMPLETE: TrialState.COMPLETE,
    State.PRUNED: TrialState.PRUNED,
    State.FAILED: TrialState.FAIL,
}
FROM_OPTUNA = {theirs: ours for ours, theirs in TO_OPTUNA.items() if ours is not State.PAUSED}

_NUMBER_BITS = 28


def trial_id(study_id: int, number: int) -> int:
    """The id of a trial among all studies of a database: below 2**53, which dashboards in
    JavaScript can count to, for 2**25 studies of 2**28 trials each."""
    return study_id << _NUMBER_BITS | number


def study_and_number(an_id: int) -> tuple[int, int]:
    """The parts of a `trial_id`."""
    return an_id >> _NUMBER_BITS, an_id & (1 << _NUMBER_BITS) - 1


def step_of(study: StudyRecord, resource: float) -> int:
    """A resource as a step of Optuna's."""
    return round(resource * study.step_scale)


def directions_of(study: StudyRecord) -> list[StudyDirection]:
    """The directions of a study in Optuna's terms."""
    return [StudyDirection[direction.upper()] for direction in study.directions]


def freeze(study: StudyRecord, trial: Trial) -> FrozenTrial:
    """A copy of a trial as it is now, which does not change with it."""
    state, values = TO_OPTUNA[trial.state], _values(trial)
    if state is TrialState.COMPLETE and values is None:
        state = TrialState.FAIL  # samplers take no complete trial without a value
    has_result = state in (TrialState.COMPLETE, TrialState.PRUNED)
    ended = _ended(trial) if state.is_finished() else None
    return FrozenTrial(
        number=trial.number,
        state=state,
        value=None,
        values=values if has_result else None,
        datetime_start=_datetime(trial.started),
        datetime_complete=_datetime(ended),
        params={name: in_optuna(value) for name, value in trial.params.items()},
        distributions=dict(trial.distributions),
        user_attrs=dict(trial.user_attrs),
        system_attrs=_system_attrs(trial),
        intermediate_values=_curve(study, trial),
        trial_id=trial_id(study.id, trial.number),
    )


def _curve(study: StudyRecord, trial: Trial) -> dict[int, float]:
    curve = {}
    for resource, report in sorted(trial.reports.items()):
        step = step_of(study, resource)
        curve[step] = math.nan if report.value is None else report.value
    return curve


def _system_attrs(trial: Trial) -> dict[str, Any]:
    """The system attributes of a trial, with the failure that samplers must know."""
    if trial.error_kind is None or not trial.error_kind.of_configuration:
        return dict(trial.system_attrs)
    return {**trial.system_attrs, FAILED: trial.error_kind.value}


def _values(trial: Trial) -> list[float] | None:
    if trial.values is not None:
        return list(trial.values)
    return None if trial.value is None else [trial.value]


def _ended(trial: Trial) -> float | None:
    """The end of a finished trial; of a paused one, its last report."""
    if trial.ended is not None or not trial.reports:
        return trial.ended if trial.ended is not None else trial.started
    return trial.reports[max(trial.reports)].created


def _datetime(seconds: float | None) -> datetime | None:
    """Optuna's times: local, without a time zone."""
    return None if seconds is None else datetime.fromtimestamp(seconds)
