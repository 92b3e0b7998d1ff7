"""The store as an Optuna storage, so that Optuna's samplers, pruners, plots and dashboards work on our studies.

A study is served in one of two ways:

* *attached*: this process drives it. Reads come from its live history, without a query; writes (a sampler's notes, say)
  change the history and are committed with the driver's next tick.
* *standalone*, every other: each read first asks the database for news, and each write is a transaction of its own
  that keeps other writers out. A study that another process drives can be read, and not written: that process would
  overwrite it.
"""

from __future__ import annotations

import copy
import threading
import time
import uuid
from collections.abc import Container, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from optuna.distributions import BaseDistribution, check_distribution_compatibility
from optuna.exceptions import DuplicatedStudyError, UpdateFinishedTrialError
from optuna.storages import BaseStorage
from optuna.study import StudyDirection
from optuna.study._frozen import FrozenStudy
from optuna.trial import FrozenTrial, TrialState

from hpsearch.errors import StudyExists, StudyHeld, StudyNotFound
from hpsearch.frozen import (
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
from hpsearch.lifecycle import State
from hpsearch.records import History, StudyRecord, Trial
from hpsearch.store import codec
from hpsearch.store.store import Store

NAME_PREFIX = "no-name-"
"""How Optuna begins the names of studies that were given none."""


@dataclass
class _Live:
    """A study in memory, with what was made of it for Optuna; a trial is frozen anew only when it has changed."""

    history: History
    revision: int | None
    """The database's, when it was read; None where the study is attached."""
    trials: list[FrozenTrial] = field(default_factory=list)
    waiting: set[int] = field(default_factory=set)
    distributions: dict[str, BaseDistribution] = field(default_factory=dict)
    clock: int = 0

    def frozen(self) -> list[FrozenTrial]:
        """All trials as they are now; not to be changed by the caller."""
        self.clock, changed = self.history.changed_since(self.clock)
        for number in sorted(changed):
            trial = self.history.trials[number]
            self.trials[number : number + 1] = [freeze(self.history.study, trial)]
            self.distributions.update(trial.distributions)
            (self.waiting.add if trial.state is State.QUEUED else self.waiting.discard)(number)
        return self.trials

    def trial(self, number: int) -> Trial:
        """The record of a trial.

        Raises:
            KeyError: There is none of that number.
        """
        if not 0 <= number < len(self.history.trials):
            raise KeyError(f"No trial {number} in the study {self.history.study.name}.")
        return self.history.trials[number]


class StudyStorage(BaseStorage):
    """An Optuna storage over a store: `optuna.load_study(study_name=..., storage=StudyStorage(Store.open(url)))`.

    Safe to share by threads. A pickled one opens the database anew elsewhere; what was attached is not there.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.RLock()
        self._live: dict[int, _Live] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return StudyStorage, (self._store,)

    def attach(self, history: History) -> None:
        """Serve a study from the history that this process drives; see the module's text."""
        with self._lock:
            self._live[history.study.id] = _Live(history, revision=None)

    def remove_session(self) -> None:
        """Let go of the database connection."""
        self._store.close()

    # ------------------------------------------------------------------------------------------ live studies

    def _synced(self, study_id: int) -> _Live:
        """A study as it is now; the caller holds the lock.

        Raises:
            KeyError: There is none of that id.
        """
        live = self._live.get(study_id)
        if live is None:
            live = _Live(History(StudyRecord(id=study_id, name="", spec="")), revision=-1)
        if live.revision is None:
            return live
        try:
            live.revision = self._store.refresh(live.history, live.revision)
        except StudyNotFound:
            self._live.pop(study_id, None)
            raise KeyError(f"No study with the id {study_id}.") from None
        self._live[study_id] = live
        return live

    @contextmanager
    def _editing(self, study_id: int) -> Iterator[_Live]:
        """A study as it is now, to be changed; the block checks before it changes anything.

        Raises:
            KeyError: There is none of that id.
            StudyHeld: Another process drives it.
        """
        with self._lock:
            live = self._live.get(study_id) or self._synced(study_id)
            if live.revision is None:
                yield live
                return
            try:
                with self._store.editing(live.history, live.revision, time.time()) as revision:
                    yield live
            except BaseException as error:
                del self._live[study_id]  # it may hold what was not written
                if isinstance(error, StudyNotFound):
                    raise KeyError(f"No study with the id {study_id}.") from None
                raise
            live.revision = revision

    @contextmanager
    def _editing_trial(self, an_id: int) -> Iterator[tuple[_Live, Trial]]:
        """A trial that is not finished, to be changed; it is marked as touched.

        Raises:
            KeyError: There is none of that id.
            UpdateFinishedTrialError: It is finished, or paused.
        """
        study_id, number = study_and_number(an_id)
        with self._editing(study_id) as live:
            trial = live.trial(number)
            self.check_trial_is_updatable(an_id, TO_OPTUNA[trial.state])
            yield live, trial
            live.history.touch(trial)

    # ---------------------------------------------------------------------------------------------- studies

    def create_new_study(self, directions: Sequence[StudyDirection], study_name: str | None = None) -> int:
        name = NAME_PREFIX + str(uuid.uuid4()) if study_name is None else study_name
        stated = tuple(direction.name.lower() for direction in directions)
        record = StudyRecord(id=0, name=name, spec="", directions=stated, created=time.time())
        try:
            return self._store.create_study(record).id
        except StudyExists as error:
            raise DuplicatedStudyError(error.message) from error

    def delete_study(self, study_id: int) -> None:
        with self._lock:
            name = self._synced(study_id).history.study.name
            lease = self._store.holder(name)
            if lease is not None and lease.live(time.time()):
                raise StudyHeld(f"the study {name} is driven by {lease.owner}", f"stop it first: hpsearch stop {name}")
            self._store.delete_study(study_id)
            del self._live[study_id]

    def set_study_user_attr(self, study_id: int, key: str, value: Any) -> None:
        stored = _as_stored(value)
        with self._editing(study_id) as live:
            live.history.study.user_attrs[key] = stored
            live.history.touch_study()

    def set_study_system_attr(self, study_id: int, key: str, value: Any) -> None:
        stored = _as_stored(value)
        with self._editing(study_id) as live:
            live.history.study.system_attrs[key] = stored
            live.history.touch_study()

    def get_study_id_from_name(self, study_name: str) -> int:
        with self._lock:
            attached = (live.history.study for live in self._live.values() if live.revision is None)
            for study in attached:
                if study.name == study_name:
                    return study.id
        try:
            return self._store.find_study(study_name).id
        except StudyNotFound:
            raise KeyError(f"No study named {study_name}.") from None

    def get_study_name_from_id(self, study_id: int) -> str:
        with self._lock:
            return self._synced(study_id).history.study.name

    def get_study_directions(self, study_id: int) -> list[StudyDirection]:
        with self._lock:
            return directions_of(self._synced(study_id).history.study)

    def get_study_user_attrs(self, study_id: int) -> dict[str, Any]:
        with self._lock:
            return dict(self._synced(study_id).history.study.user_attrs)

    def get_study_system_attrs(self, study_id: int) -> dict[str, Any]:
        with self._lock:
            return dict(self._synced(study_id).history.study.system_attrs)

    def get_all_studies(self) -> list[FrozenStudy]:
        with self._lock:
            attached = {id_: live.history.study for id_, live in self._live.items() if live.revision is None}
            records = [attached.get(record.id, record) for record in self._store.studies()]
            return [_frozen_study(record) for record in records]

    # ----------------------------------------------------------------------------------------------- trials

    def create_new_trial(self, study_id: int, template_trial: FrozenTrial | None = None) -> int:
        now = time.time()
        with self._editing(study_id) as live:
            history = live.history
            number = len(history.trials)
            if template_trial is None:
                trial = Trial(number=number, state=State.RUNNING, params={}, created=now, started=now)
            else:
                trial = thaw(history.study, number, template_trial, now)
                trial.user_attrs, trial.system_attrs = map(_as_stored, (trial.user_attrs, trial.system_attrs))
            history.add_trial(trial)
        return trial_id(study_id, number)

    def set_trial_param(
        self, trial_id: int, param_name: str, param_value_internal: float, distribution: BaseDistribution
    ) -> None:
        with self._editing_trial(trial_id) as (live, trial):
            live.frozen()  # brings the known distributions up to date
            if param_name in live.distributions:
                check_distribution_compatibility(live.distributions[param_name], distribution)
            trial.params[param_name] = distribution.to_external_repr(param_value_internal)
            trial.distributions[param_name] = distribution

    def set_trial_state_values(self, trial_id: int, state: TrialState, values: Sequence[float] | None = None) -> bool:
        with self._editing_trial(trial_id) as (_, trial):
            if state == TrialState.RUNNING and trial.state is not State.QUEUED:
                return False
            # Not a move of `hpsearch.lifecycle`: what Optuna's users do with their own studies is theirs to order.
            trial.state = FROM_OPTUNA[state]
            if values is not None:
                set_values(trial, list(values))
            if state == TrialState.RUNNING:
                trial.started = time.time()
            if state.is_finished():
                trial.ended = time.time()
            return True

    def set_trial_intermediate_value(self, trial_id: int, step: int, intermediate_value: float) -> None:
        with self._editing_trial(trial_id) as (live, trial):
            report = report_of(live.history.study, trial.number, step, intermediate_value, time.time())
            live.history.add_report(report)
            trial.resource = max(trial.resource, report.resource)

    def set_trial_user_attr(self, trial_id: int, key: str, value: Any) -> None:
        stored = _as_stored(value)
        with self._editing_trial(trial_id) as (_, trial):
            trial.user_attrs[key] = stored

    def set_trial_system_attr(self, trial_id: int, key: str, value: Any) -> None:
        stored = _as_stored(value)
        with self._editing_trial(trial_id) as (_, trial):
            trial.system_attrs[key] = stored

    def check_trial_is_updatable(self, trial_id: int, trial_state: TrialState) -> None:
        if trial_state.is_finished():
            _, number = study_and_number(trial_id)
            raise UpdateFinishedTrialError(f"Trial#{number} has already finished and can not be updated.")

    def get_trial_id_from_study_id_trial_number(self, study_id: int, trial_number: int) -> int:
        with self._lock:
            self._synced(study_id).trial(trial_number)
        return trial_id(study_id, trial_number)

    def get_trial_number_from_id(self, trial_id: int) -> int:
        study_id, number = study_and_number(trial_id)
        with self._lock:
            return self._synced(study_id).trial(number).number

    def get_trial(self, trial_id: int) -> FrozenTrial:
        study_id, number = study_and_number(trial_id)
        with self._lock:
            live = self._synced(study_id)
            live.trial(number)
            return live.frozen()[number]

    def get_all_trials(
        self, study_id: int, deepcopy: bool = True, states: Container[TrialState] | None = None
    ) -> list[FrozenTrial]:
        with self._lock:
            live = self._synced(study_id)
            trials = live.frozen()
            if states == (TrialState.WAITING,):
                chosen = [trials[number] for number in sorted(live.waiting)]
            elif states is None:
                chosen = list(trials)
            else:
                chosen = [trial for trial in trials if trial.state in states]
            return copy.deepcopy(chosen) if deepcopy else chosen


def _frozen_study(record: StudyRecord) -> FrozenStudy:
    return FrozenStudy(
        study_name=record.name,
        direction=None,
        directions=directions_of(record),
        user_attrs=dict(record.user_attrs),
        system_attrs=dict(record.system_attrs),
        study_id=record.id,
    )


def _as_stored(value: Any) -> Any:
    """A copy of an attribute's value as it will come back from the database: tuples as lists, say.

    Raises:
        TypeError: It cannot be written as JSON.
    """
    return codec.decode(codec.encode(value))
