"""The store as an Optuna storage, so that Optuna's samplers, pruners, plots and dashboards work on
our studies.

Each read first asks the database for news, and each write is a transaction of its own that keeps
other writers out. A study that another process drives can be read, but not written: that process
would overwrite it. `hpsearch.optuna_storage.view` answers for a study; here it is brought up to
date and written down.
"""

from __future__ import annotations

import functools
import threading
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from optuna.exceptions import DuplicatedStudyError
from optuna.storages import BaseStorage
from optuna.study import StudyDirection
from optuna.study._frozen import FrozenStudy

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
    def __init__(self, study_id: int) -> None:
        super().__init__(History(StudyRecord(id=study_id, name="", spec="")), time.time)
        self.revision = -1


def _forwarded(name: str) -> Any:
    """A method of a storage, answered by the study that its first argument is of.

    A method that sets or creates something is a transaction.
    """
    method = getattr(HistoryStorage, name)
    is_of_trial = name.startswith(("set_trial", "get_trial")) and not name.endswith("trial_number")
    is_write = name.startswith(("set_", "create_"))

    @functools.wraps(method)
    def forward(self: StudyStorage, *args: Any, **named: Any) -> Any:
        if is_of_trial:
            study_id, _ = study_and_number(args[0] if args else named["trial_id"])
        else:
            study_id = args[0] if args else named["study_id"]
        with self._writing(study_id) if is_write else self._reading(study_id) as study:
            return method(study, *args, **named)

    return forward


class StudyStorage(BaseStorage):
    """An Optuna storage over a store.

    Such as: `optuna.load_study(study_name=..., storage=StudyStorage(Store.open(url)))`. Safe to
    share between threads. A pickled one opens the database again where it is unpickled.
    """

    set_study_user_attr = _forwarded("set_study_user_attr")
    set_study_system_attr = _forwarded("set_study_system_attr")
    get_study_name_from_id = _forwarded("get_study_name_from_id")
    get_study_directions = _forwarded("get_study_directions")
    get_study_user_attrs = _forwarded("get_study_user_attrs")
    get_study_system_attrs = _forwarded("get_study_system_attrs")
    create_new_trial = _forwarded("create_new_trial")
    set_trial_param = _forwarded("set_trial_param")
    set_trial_state_values = _forwarded("set_trial_state_values")
    set_trial_intermediate_value = _forwarded("set_trial_intermediate_value")
    set_trial_user_attr = _forwarded("set_trial_user_attr")
    set_trial_system_attr = _forwarded("set_trial_system_attr")
    get_trial_id_from_study_id_trial_number = _forwarded("get_trial_id_from_study_id_trial_number")
    get_trial_number_from_id = _forwarded("get_trial_number_from_id")
    get_trial = _forwarded("get_trial")
    get_all_trials = _forwarded("get_all_trials")

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.RLock()
        self._loaded: dict[int, _Loaded] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return StudyStorage, (self._store,)

    def remove_session(self) -> None:
        """Let go of the database connection."""
        self._store.close()

    def _synced(self, study_id: int) -> _Loaded:
        """A study as it is now; the caller holds the lock."""
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
        """A study as it is now."""
        with self._lock:
            yield self._synced(study_id)

    @contextmanager
    def _writing(self, study_id: int) -> Iterator[HistoryStorage]:
        """A study as it is now, to be changed; the block checks before it changes anything."""
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

    def get_study_id_from_name(self, study_name: str) -> int:
        try:
            return self._store.find_study(study_name).id
        except StudyNotFound:
            raise KeyError(f"No study named {study_name}.") from None

    def get_all_studies(self) -> list[FrozenStudy]:
        return [frozen_study(record) for record in self._store.studies()]
