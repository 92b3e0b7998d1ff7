"""One study's history in memory as an Optuna storage, for samplers and pruners to read and
annotate.

It knows neither a database nor a clock. A write changes the history, which marks it as touched; the
owner of the history commits it (a driver with its next tick, or `hpsearch.bridges.optuna.storage`).
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

from optuna.distributions import BaseDistribution, check_distribution_compatibility
from optuna.exceptions import UpdateFinishedTrialError
from optuna.storages import BaseStorage
from optuna.study import StudyDirection
from optuna.study._frozen import FrozenStudy
from optuna.trial import FrozenTrial, TrialState

from hpsearch.domain.history import History
from hpsearch.domain.lifecycle import MOVES, State
from hpsearch.domain.records import StudyRecord, Trial
from hpsearch.optuna_storage.frozen import (
    FROM_OPTUNA,
    TO_OPTUNA,
    directions_of,
    freeze,
    report_of,
    set_values,
    study_and_number,
    thaw,
    trial_id,
)
from hpsearch.store import codec

Clock = Callable[[], float]  # says the time, in seconds since the epoch


class HistoryStorage(BaseStorage):
    """An Optuna storage of one study. Safe to share between threads; a trial is frozen again only
    when it has changed. `clock` dates the writes."""

    def __init__(self, history: History, clock: Clock) -> None:
        self.history = history
        self._clock = clock
        self._lock = threading.RLock()
        self._frozen: list[FrozenTrial] = []
        self._distributions: dict[str, BaseDistribution] = {}
        self._seen = 0

    # ------------------------------------------------------------------------------------ the study

    def create_new_study(
        self, directions: Sequence[StudyDirection], study_name: str | None = None
    ) -> NoReturn:
        raise NotImplementedError("this storage holds one study, and no other can be made in it")

    def delete_study(self, study_id: int) -> NoReturn:
        raise NotImplementedError("this storage holds one study, which cannot be deleted from it")

    def set_study_user_attr(self, study_id: int, key: str, value: Any) -> None:
        self._set_of_study(study_id, "user_attrs", key, value)

    def set_study_system_attr(self, study_id: int, key: str, value: Any) -> None:
        self._set_of_study(study_id, "system_attrs", key, value)

    def _set_of_study(self, study_id: int, attributes: str, key: str, value: Any) -> None:
        stored = as_stored(value)
        with self._lock:
            getattr(self._study(study_id), attributes)[key] = stored
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
        return [frozen_study(self.history.study)]

    def _study(self, study_id: int) -> StudyRecord:
        if study_id != self.history.study.id:
            raise KeyError(f"No study with the id {study_id}.")
        return self.history.study

    # --------------------------------------------------------------------------------------- trials

    def create_new_trial(self, study_id: int, template_trial: FrozenTrial | None = None) -> int:
        with self._lock:
            study = self._study(study_id)
            number = len(self.history.trials)
            now = self._clock()
            if template_trial is None:
                trial = Trial(number, State.RUNNING, {}, created=now, started=now)
            else:
                trial = thaw(study, number, template_trial, now)
                trial.user_attrs = as_stored(trial.user_attrs)
                trial.system_attrs = as_stored(trial.system_attrs)
            self.history.add_trial(trial)
            return trial_id(study_id, number)

    def set_trial_param(
        self,
        trial_id: int,
        param_name: str,
        param_value_internal: float,
        distribution: BaseDistribution,
    ) -> None:
        value = distribution.to_external_repr(param_value_internal)
        as_stored(value)  # refuses what no database takes
        with self._editing(trial_id) as trial:
            self._refresh()  # brings the known distributions up to date
            known = self._distributions.get(param_name)
            if known is not None:
                check_distribution_compatibility(known, distribution)
            trial.params[param_name] = value
            trial.distributions[param_name] = distribution

    def set_trial_state_values(
        self, trial_id: int, state: TrialState, values: Sequence[float] | None = None
    ) -> bool:
        with self._editing(trial_id) as trial:
            if state == TrialState.RUNNING and trial.state is not State.QUEUED:
                return False
            to = FROM_OPTUNA[state]
            if to is not trial.state:
                who = f"trial {trial.number}, ordered through Optuna"
                trial.state = MOVES.move(trial.state, to, who)
            if values is not None:
                set_values(trial, list(values))
            if state == TrialState.RUNNING:
                trial.started = self._clock()
            if state.is_finished():
                trial.ended = self._clock()
            return True

    def set_trial_intermediate_value(
        self, trial_id: int, step: int, intermediate_value: float
    ) -> None:
        with self._editing(trial_id) as trial:
            study = self.history.study
            report = report_of(study, trial.number, step, intermediate_value, self._clock())
            self.history.add_report(report)
            trial.resource = max(trial.resource, report.resource)

    def set_trial_user_attr(self, trial_id: int, key: str, value: Any) -> None:
        stored = as_stored(value)
        with self._editing(trial_id) as trial:
            trial.user_attrs[key] = stored

    def set_trial_system_attr(self, trial_id: int, key: str, value: Any) -> None:
        stored = as_stored(value)
        with self._editing(trial_id) as trial:
            trial.system_attrs[key] = stored

    def check_trial_is_updatable(self, trial_id: int, trial_state: TrialState) -> None:
        if trial_state.is_finished():
            _, number = study_and_number(trial_id)
            raise UpdateFinishedTrialError(
                f"Trial#{number} has already finished and can not be updated."
            )

    def get_trial_id_from_study_id_trial_number(self, study_id: int, trial_number: int) -> int:
        an_id = trial_id(study_id, trial_number)
        self._trial(an_id)
        return an_id

    def get_trial_number_from_id(self, trial_id: int) -> int:
        return self._trial(trial_id).number

    def get_trial(self, trial_id: int) -> FrozenTrial:
        with self._lock:
            number = self._trial(trial_id).number
            return self._refresh()[number]

    def get_all_trials(
        self, study_id: int, deepcopy: bool = True, states: Container[TrialState] | None = None
    ) -> list[FrozenTrial]:
        with self._lock:
            self._study(study_id)
            trials = self._refresh()
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

    def _refresh(self) -> list[FrozenTrial]:
        """All trials as they are now; the caller holds the lock, and changes none of them."""
        self._seen, changed = self.history.changed_since(self._seen)
        for number in sorted(changed):
            trial = self.history.trials[number]
            frozen = freeze(self.history.study, trial)
            self._frozen[number : number + 1] = [frozen]  # in its place, or at the end
            self._distributions.update(trial.distributions)
        return self._frozen


def frozen_study(record: StudyRecord) -> FrozenStudy:
    """A copy of a study's record in Optuna's terms."""
    return FrozenStudy(
        study_name=record.name,
        direction=None,
        directions=directions_of(record),
        user_attrs=dict(record.user_attrs),
        system_attrs=dict(record.system_attrs),
        study_id=record.id,
    )


def as_stored(value: Any) -> Any:
    """A copy of an attribute's value as the database returns it: tuples as lists, say. Raises
    TypeError if JSON does not have it."""
    return codec.decode(codec.encode(value))
