"""A study in Python: `hpsearch.open(url, name)`, for notebooks and scripts."""

from __future__ import annotations

from contextlib import AbstractContextManager
from types import TracebackType
from typing import TYPE_CHECKING

import pandas as pd
from sqlalchemy import Connection

from hpsearch.store.reading.frames import frame_of, reports_frame, trials_frame
from hpsearch.store.reading.queries import StudyHead, best_trials, find_study, seen_at
from hpsearch.store.store import Store

if TYPE_CHECKING:
    import optuna


class StudyReader:
    """A study to read: each call sees it as it is at that moment. A context manager that closes its
    connection."""

    def __init__(self, store: Store, name: str) -> None:
        self.name = name
        self._store = store
        with store.reading() as connection:
            find_study(connection, name)

    def best(self, top: int = 1) -> pd.DataFrame:
        """The best trials, best first: as `trials`, with `confirmed`, `low`, `high`, `runs`,
        `tied` and `seen_at`.

        `confirmed` is the mean of the trial's repeats with other seeds and `low` to `high` its 90%
        interval; they are absent where it was not repeated. `value` is the best value that it has
        shown, after as much training as `seen_at` says; `expected`, with the standard deviation
        `expected_deviation`, is the value that is expected of it if it is trained in full.

        Raises:
            UserError: The study has no single direction.
        """
        with self._reading() as connection:
            study = self._study(connection)
            ranked = best_trials(connection, study, top)
            at = seen_at(connection, study, ranked)
        confirmed = [each.confirmed for each in ranked]
        fields = {"confirmed": "mean", "low": "low", "high": "high", "runs": "runs"}
        more = {}
        for name, field in fields.items():
            more[name] = [getattr(each, field, None) for each in confirmed]
        more["tied"] = [each.tied for each in ranked]
        more["seen_at"] = [at.get(each.trial.number) for each in ranked]
        rows = [each.trial for each in ranked]
        return frame_of(rows, more)

    def trials(
        self, where: str | None = None, sort: str | None = None, limit: int | None = None
    ) -> pd.DataFrame:
        """A row for each trial, with a column for each parameter and for each metric of its latest
        report.

        Args:
            where: Which, such as ``learning_rate < 1e-4 and state = 'complete'``; None for all.
            sort: In which order, such as ``value desc, learning_rate``; None for that of their
                numbers.
            limit: At most so many.

        Raises:
            FilterError: An expression does not parse or names something unknown.
        """
        with self._reading() as connection:
            return trials_frame(
                connection, self._study(connection), where=where, sort=sort, limit=limit
            )

    def reports(self) -> pd.DataFrame:
        """A row for each report, by trial and resource, with a column for each metric."""
        with self._reading() as connection:
            return reports_frame(connection, self._study(connection))

    def optuna(self) -> optuna.Study:
        """The study as Optuna's, for its plots, importances and samplers."""
        import optuna

        from hpsearch.optuna_storage.storage import StudyStorage

        return optuna.load_study(study_name=self.name, storage=StudyStorage(self._store))

    def close(self) -> None:
        """Let go of the connection; the next call would open a new one."""
        self._store.close()

    def __enter__(self) -> StudyReader:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<study {self.name} in {self._store.display_url}>"

    def _reading(self) -> AbstractContextManager[Connection]:
        return self._store.reading()

    def _study(self, connection: Connection) -> StudyHead:
        return find_study(connection, self.name)


def open_study(url: str, name: str) -> StudyReader:
    """Open a study for reading; see `hpsearch.open`."""
    store = Store.open(url, create=False)
    try:
        return StudyReader(store, name)
    except BaseException:
        store.close()
        raise
