"""The store as an Optuna storage, so that Optuna's samplers, pruners, plots and dashboards work on
our studies.

Each read first asks the database for news, and each write is a transaction of its own that keeps
other writers out. A study that another process drives can be read, but not written: that process
would overwrite it. What a study is to Optuna is said in `hpsearch.optuna_storage.view`; here it is
brought up to date and written down.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Container, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from optuna.distributions import BaseDistribution
from optuna.exceptions import DuplicatedStudyError
from optuna.storages import BaseStorage
from optuna.study import StudyDirection
from optuna.study._frozen import FrozenStudy
from optuna.trial import FrozenTrial, TrialState

from hpsearch.domain.history import History
from hpsearch.domain.records import StudyRecord
from hpsearch.errors import StudyExists, StudyHeld, StudyNotFound
from hpsearch.optuna_storage.frozen import study_and_number
from hpsearch.optuna_storage.view import HistoryStorage, frozen_study
from hpsearch.store.owners import shown
from hpsearch.store.reading.queries import LARGEST_NUMBER
from hpsearch.store.store import Store

NAME_PREFIX = "no-name-"
"""How Optuna begins the names of studies that were given none."""


class _Loaded(HistoryStorage):
    """A study in memory, as it was at a revision."""

    def __init__(self, study_id: int) -> None:
        super().__init__(History(StudyRecord(id=study_id, name="", spec="")), time.time)
        self.revision = -1


class StudyStorage(BaseStorage):
    """An Optuna storage over a store.

    Such as: `optuna.load_study(study_name=..., storage=StudyStorage(Store.open(url)))`. Safe to
    share between threads. A pickled one opens the database again where it is unpickled.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.RLock()
        self._loaded: dict[int, _Loaded] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return StudyStorage, (self._store,)

    def remove_session(self) -> None:
        """Let go of the database connection."""
        self._store.close()

    # -------------------------------------------------------------------------- reading and writing

    def _synced(self, study_id: int) -> _Loaded:
        """A study as it is now; the caller holds the lock.

        Raises:
            KeyError: No object has this id.
        """
        if not 0 <= study_id <= LARGEST_NUMBER:
            raise KeyError(f"No study with the id {study_id}.")
        loaded = self._loaded.get(study_id) or _Loaded(study_id)
        try:
            loaded.revision = self._store.refresh(loaded.history, loaded.revision)
        except StudyNotFound:
            self._loaded.pop(study_id, None)
            raise KeyError(f"No study with the id {study_id}.") from None
        self._loaded[study_id] = loaded
        return loaded

    @contextmanager
    def _reading(self, study_id: int) -> Iterator[HistoryStorage]:
        """A study as it is now.

        Raises:
            KeyError: No object has this id.
        """
        with self._lock:
            yield self._synced(study_id)

    @contextmanager
    def _writing(self, study_id: int) -> Iterator[HistoryStorage]:
        """A study as it is now, to be changed; the block checks before it changes anything.

        Raises:
            KeyError: No object has this id.
            StudyHeld: Another process drives it.
        """
        with self._lock:
            loaded = self._loaded.get(study_id) or self._synced(study_id)
            try:
                with self._store.editing(loaded.history, loaded.revision) as revision:
                    yield loaded
            except BaseException as error:
                del self._loaded[study_id]  # it may hold what was not written
                if isinstance(error, StudyNotFound):
                    raise KeyError(f"No study with the id {study_id}.") from None
                raise
            loaded.revision = revision

    # -------------------------------------------------------------------------------------- studies

    def create_new_study(
        self, directions: Sequence[StudyDirection], study_name: str | None = None
    ) -> int:
        name = study_name
        if name is None:
            name = NAME_PREFIX + str(uuid.uuid4())
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
            if lease is not None and lease.live:
                what = f"the study {name} is driven by {shown(lease.owner)}"
                raise StudyHeld(what, f"stop it first: hpsearch stop {name}")
            self._store.delete_study(study_id)
            del self._loaded[study_id]

    def set_study_user_attr(self, study_id: int, key: str, value: Any) -> None:
        with self._writing(study_id) as study:
            study.set_study_user_attr(study_id, key, value)

    def set_study_system_attr(self, study_id: int, key: str, value: Any) -> None:
        with self._writing(study_id) as study:
            study.set_study_system_attr(study_id, key, value)

    def get_study_id_from_name(self, study_name: str) -> int:
        try:
            return self._store.find_study(study_name).id
        except StudyNotFound:
            raise KeyError(f"No study named {study_name}.") from None

    def get_study_name_from_id(self, study_id: int) -> str:
        with self._reading(study_id) as study:
            return study.get_study_name_from_id(study_id)

    def get_study_directions(self, study_id: int) -> list[StudyDirection]:
        with self._reading(study_id) as study:
            return study.get_study_directions(study_id)

    def get_study_user_attrs(self, study_id: int) -> dict[str, Any]:
        with self._reading(study_id) as study:
            return study.get_study_user_attrs(study_id)

    def get_study_system_attrs(self, study_id: int) -> dict[str, Any]:
        with self._reading(study_id) as study:
            return study.get_study_system_attrs(study_id)

    def get_all_studies(self) -> list[FrozenStudy]:
        return [frozen_study(record) for record in self._store.studies()]

    # --------------------------------------------------------------------------------------- trials

    def create_new_trial(self, study_id: int, template_trial: FrozenTrial | None = None) -> int:
        with self._writing(study_id) as study:
            return study.create_new_trial(study_id, template_trial)

    def set_trial_param(
        self,
        trial_id: int,
        param_name: str,
        param_value_internal: float,
        distribution: BaseDistribution,
    ) -> None:
        with self._writing(study_of(trial_id)) as study:
            study.set_trial_param(trial_id, param_name, param_value_internal, distribution)

    def set_trial_state_values(
        self, trial_id: int, state: TrialState, values: Sequence[float] | None = None
    ) -> bool:
        with self._writing(study_of(trial_id)) as study:
            return study.set_trial_state_values(trial_id, state, values)

    def set_trial_intermediate_value(
        self, trial_id: int, step: int, intermediate_value: float
    ) -> None:
        with self._writing(study_of(trial_id)) as study:
            study.set_trial_intermediate_value(trial_id, step, intermediate_value)

    def set_trial_user_attr(self, trial_id: int, key: str, value: Any) -> None:
        with self._writing(study_of(trial_id)) as study:
            study.set_trial_user_attr(trial_id, key, value)

    def set_trial_system_attr(self, trial_id: int, key: str, value: Any) -> None:
        with self._writing(study_of(trial_id)) as study:
            study.set_trial_system_attr(trial_id, key, value)

    def get_trial_id_from_study_id_trial_number(self, study_id: int, trial_number: int) -> int:
        with self._reading(study_id) as study:
            return study.get_trial_id_from_study_id_trial_number(study_id, trial_number)

    def get_trial_number_from_id(self, trial_id: int) -> int:
        with self._reading(study_of(trial_id)) as study:
            return study.get_trial_number_from_id(trial_id)

    def get_trial(self, trial_id: int) -> FrozenTrial:
        with self._reading(study_of(trial_id)) as study:
            return study.get_trial(trial_id)

    def get_all_trials(
        self, study_id: int, deepcopy: bool = True, states: Container[TrialState] | None = None
    ) -> list[FrozenTrial]:
        with self._reading(study_id) as study:
            return study.get_all_trials(study_id, deepcopy, states)


def study_of(trial_id: int) -> int:
    """The id of a trial's study."""
    study_id, _ = study_and_number(trial_id)
    return study_id
