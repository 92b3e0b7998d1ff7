"""One study's history in memory as an Optuna storage, for samplers, pruners and plots to read; and
its trials in Optuna's terms.

The storage knows neither a database nor a clock. Samplers may write parameters and system
attributes: that changes the history, which marks it as touched, and a driver commits it with its
next tick.

A trial that the study's space does not have any more is shown as failed: its distributions are
those of another space.

Optuna has no paused state. Until it continues, a paused trial is shown as pruned at its rung, where
its reports end. Optuna's steps are whole numbers and our resources are not: a study may state a
factor to multiply them by.
"""

import copy
import math
import threading
from collections.abc import Container, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any, NoReturn

from optuna.distributions import BaseDistribution, check_distribution_compatibility
from optuna.storages import BaseStorage
from optuna.study import StudyDirection
from optuna.study._frozen import FrozenStudy
from optuna.trial import FrozenTrial, TrialState

from hpsearch.domain.facts import FAILED
from hpsearch.domain.history import History
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import StudyRecord, Trial
from hpsearch.store import codec
from hpsearch.study_file.space import in_optuna, value_of

KEPT = 2_000  # the number of frozen trials that are kept where nothing reads all of them
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


def _refused(self: Any, *args: Any, **named: Any) -> NoReturn:
    raise NotImplementedError("this storage shows one study, which only its own search changes")


class HistoryStorage(BaseStorage):
    """An Optuna storage of one study. Safe to share between threads; a trial is frozen when it is
    read, and again only when it has changed. Methods that only a study of Optuna's own needs, such
    as those that create and end trials, raise NotImplementedError."""

    create_new_study = _refused
    delete_study = _refused
    set_study_user_attr = _refused
    create_new_trial = _refused
    set_trial_state_values = _refused
    set_trial_intermediate_value = _refused
    set_trial_user_attr = _refused

    def __init__(self, history: History) -> None:
        self.history = history
        self._lock = threading.RLock()
        self._frozen: dict[int, FrozenTrial] = {}  # by number, those read last, the latest one last
        self._kept = KEPT
        self._distributions: dict[str, BaseDistribution] = {}
        self._known: dict[tuple[tuple[str, int], ...], dict[str, BaseDistribution]] = {}
        self._seen = 0

    def set_study_system_attr(self, study_id: int, key: str, value: Any) -> None:
        stored = as_stored(value)
        with self._lock:
            self._study(study_id).system_attrs[key] = stored
            self.history.touch_study()

    def get_study_id_from_name(self, study_name: str) -> int:
        if study_name != self.history.study.name:
            raise KeyError(f"No study named {study_name}.")
        return self.history.study.id

    def get_study_name_from_id(self, study_id: int) -> str:
        return self._study(study_id).name

    def get_study_directions(self, study_id: int) -> list[StudyDirection]:
        return directions_of(self._study(study_id))

    def get_study_user_attrs(self, study_id: int) -> dict[str, Any]:
        with self._lock:
            return dict(self._study(study_id).user_attrs)

    def get_study_system_attrs(self, study_id: int) -> dict[str, Any]:
        with self._lock:
            return dict(self._study(study_id).system_attrs)

    def get_all_studies(self) -> list[FrozenStudy]:
        record = self.history.study
        return [
            FrozenStudy(
                study_name=record.name,
                direction=None,
                directions=directions_of(record),
                user_attrs=dict(record.user_attrs),
                system_attrs=dict(record.system_attrs),
                study_id=record.id,
            )
        ]

    def _study(self, study_id: int) -> StudyRecord:
        if study_id != self.history.study.id:
            raise KeyError(f"No study with the id {study_id}.")
        return self.history.study

    def set_trial_param(
        self,
        trial_id: int,
        param_name: str,
        param_value_internal: float,
        distribution: BaseDistribution,
    ) -> None:
        value = value_of(distribution, param_value_internal)
        as_stored(value)  # refuses what no database takes
        with self._editing(trial_id) as trial:
            self._refresh()  # brings the known distributions up to date
            known = self._distributions.get(param_name)
            if known is not None:
                check_distribution_compatibility(known, distribution)
            trial.params[param_name] = value
            # The very same object for all trials: there may be very many.
            of_all = known if known == distribution else distribution
            trial.distributions = self._shared({**trial.distributions, param_name: of_all})

    def set_trial_system_attr(self, trial_id: int, key: str, value: Any) -> None:
        stored = as_stored(value)
        with self._editing(trial_id) as trial:
            trial.system_attrs = {**trial.system_attrs, key: stored}

    def _shared(self, distributions: dict[str, BaseDistribution]) -> dict[str, BaseDistribution]:
        """The same distributions, in an object that is shared by trials and not changed."""
        key = tuple((name, id(each)) for name, each in distributions.items())
        return self._known.setdefault(key, distributions)

    def get_trial_id_from_study_id_trial_number(self, study_id: int, trial_number: int) -> int:
        an_id = trial_id(study_id, trial_number)
        self._trial(an_id)
        return an_id

    def get_trial(self, trial_id: int) -> FrozenTrial:
        with self._lock:
            number = self._trial(trial_id).number
            self._refresh()
            return self._read(number)

    def get_all_trials(
        self, study_id: int, deepcopy: bool = True, states: Container[TrialState] | None = None
    ) -> list[FrozenTrial]:
        with self._lock:
            self._study(study_id)
            self._refresh()
            self._kept = max(KEPT, len(self.history.trials))
            known = self._frozen
            numbers = range(len(self.history.trials))
            trials = [known.get(number) or self._read(number) for number in numbers]
            chosen = [trial for trial in trials if states is None or trial.state in states]
            if deepcopy:
                return copy.deepcopy(chosen)
            return chosen

    @contextmanager
    def _editing(self, an_id: int) -> Iterator[Trial]:
        """A trial that is not finished, to be changed; marks it as touched."""
        with self._lock:
            trial = self._trial(an_id)
            self.check_trial_is_updatable(an_id, TO_OPTUNA[trial.state])
            yield trial
            self.history.touch(trial)

    def _trial(self, an_id: int) -> Trial:
        study_id, number = study_and_number(an_id)
        study = self._study(study_id)
        if not 0 <= number < len(self.history.trials):
            raise KeyError(f"No trial {number} in the study {study.name}.")
        return self.history.trials[number]

    def _refresh(self) -> None:
        """Forget what has changed; the caller holds the lock."""
        self._seen, changed = self.history.changed_since(self._seen)
        for number in sorted(changed):
            self._frozen.pop(number, None)
            trial = self.history.trials[number]
            if not trial.out_of_space:
                self._distributions.update(trial.distributions)

    def _read(self, number: int) -> FrozenTrial:
        frozen = self._frozen.pop(number, None)
        if frozen is None:
            frozen = freeze(self.history.study, self.history.trials[number])
        self._frozen[number] = frozen
        if len(self._frozen) > self._kept:
            del self._frozen[next(iter(self._frozen))]
        return frozen


def as_stored(value: Any) -> Any:
    """A copy of a value as the database returns it. Raises TypeError if JSON does not have it."""
    return codec.decode(codec.encode(value))


def trial_id(study_id: int, number: int) -> int:
    """The id of a trial among all studies of a database: below 2**53, which dashboards in
    JavaScript can count to, for 2**25 studies of 2**28 trials each."""
    return study_id << _NUMBER_BITS | number


def study_and_number(an_id: int) -> tuple[int, int]:
    return an_id >> _NUMBER_BITS, an_id & (1 << _NUMBER_BITS) - 1


def step_of(study: StudyRecord, resource: float) -> int:
    return round(resource * study.step_scale)


def directions_of(study: StudyRecord) -> list[StudyDirection]:
    return [StudyDirection[direction.upper()] for direction in study.directions]


def freeze(study: StudyRecord, trial: Trial) -> FrozenTrial:
    """A copy of a trial as it is now, which does not change with it."""
    state, values = TO_OPTUNA[trial.state], _values(trial)
    if trial.out_of_space or (state is TrialState.COMPLETE and values is None):
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
    if trial.error_kind is None or not trial.error_kind.of_configuration:
        return dict(trial.system_attrs)
    return {**trial.system_attrs, FAILED: trial.error_kind.value}


def _values(trial: Trial) -> list[float] | None:
    if trial.values is not None:
        return list(trial.values)
    return None if trial.value is None else [trial.value]


def _ended(trial: Trial) -> float | None:
    if trial.ended is not None or not trial.reports:
        return trial.ended if trial.ended is not None else trial.started
    return trial.reports[max(trial.reports)].created


def _datetime(seconds: float | None) -> datetime | None:
    """Optuna's times: local, without a time zone."""
    return None if seconds is None else datetime.fromtimestamp(seconds)
