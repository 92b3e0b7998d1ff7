"""A study in Python: `hpsearch.open(url, name)`, for notebooks and scripts."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pandas as pd
from sqlalchemy import Connection

from hpsearch.errors import UserError
from hpsearch.store.connecting.hints import suggesting_for
from hpsearch.store.reading.best import write_again
from hpsearch.store.reading.frames import frame_of, reports_table, trials_table
from hpsearch.store.reading.queries import LARGEST_NUMBER, StudyHead, find_study, study_requests
from hpsearch.store.store import Store
from hpsearch.study_file.types import is_whole_number
from hpsearch.views.result import study_result

if TYPE_CHECKING:
    import optuna
    import plotly.graph_objects as go

    from hpsearch.views.report.data import ReportData


REQUEST_COLUMNS = (
    *("id", "created", "origin", "kind", "content", "asked", "answer"),
    *("handled", "refused", "trial"),
)


class StudyReader:
    """A study to read, as it is at the moment of each call. A context manager."""

    def __init__(self, store: Store, name: str) -> None:
        self.name = name
        self._store = store
        with self._reading():
            pass  # there is such a study

    def best(self, top: int = 1) -> pd.DataFrame:
        """The best trials, best first: as `trials`, with `confirmed`, `low`, `high`, `runs`,
        `tied`, `unknown` (trained too little to tell it from the best) and `seen_at`.

        `confirmed` is the mean of the trial's repeats with other seeds and `low` to `high` its 90%
        interval; they are absent where it was not repeated. `value` is the best value that it has
        shown, after as much training as `seen_at` says; `expected`, between `expected_low` and
        `expected_high` nine times in ten, is what comes of it when it is trained again, as in
        `hpsearch best`, where `trials` has the end that is expected of this training.

        Raises:
            UserError: The study has no single direction.
        """
        _refuse_unfit("top", top, least=1)
        with self._reading() as (connection, study):
            result = study_result(connection, study, top)
        ranked = result.shown(top)
        fields = {"confirmed": "mean", "low": "low", "high": "high", "runs": "runs"}
        more = {}
        for name, field in fields.items():
            more[name] = [getattr(each.confirmed, field, None) for each in ranked]
        for name in ("tied", "unknown"):
            more[name] = [getattr(each, name) for each in ranked]
        more["seen_at"] = [result.seen_at.get(each.trial.number) for each in ranked]
        for each in ranked:
            write_again(each.trial, each.again)
        return frame_of([each.trial for each in ranked], more)

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
        for name, text in (("where", where), ("sort", sort)):
            if not isinstance(text, str | None):
                raise UserError(f"{name} must be text, such as 'value desc', not {text!r:.60}")
        if limit is not None:
            _refuse_unfit("limit", limit, least=0)
        with self._reading() as (connection, study):
            return trials_table(connection, study, where=where, sort=sort, limit=limit).frame()

    def reports(self) -> pd.DataFrame:
        """A row for each report, by trial and resource, with a column for each metric."""
        with self._reading() as (connection, study):
            return reports_table(connection, study).frame()

    def requests(self) -> pd.DataFrame:
        """A row for each thing that was asked of the study while it ran, the oldest first: `asked`
        and `answer` in words, who (`origin`) and when (`created`, and `handled` for the answer, in
        seconds since the epoch), and its `kind`, `content`, `trial` and why it was `refused`."""
        from hpsearch.views.documents import request_document

        with self._reading() as (connection, study):
            found = study_requests(connection, study)
        return pd.DataFrame(
            [request_document(each) for each in found], columns=list(REQUEST_COLUMNS)
        )

    def optuna(self) -> optuna.Study:
        """The study as it is now as Optuna's, for its plots and importances."""
        import optuna

        from hpsearch.store.optuna_storage.view import HistoryStorage

        storage = HistoryStorage(self._store.load(self.name))
        return optuna.load_study(study_name=self.name, storage=storage)

    def plot_best_so_far(self) -> go.Figure:
        """The best value so far against compute time.

        This and all that follow are Plotly figures, the same as those of `hpsearch report`. With
        several objectives they show the first one.

        Raises:
            UserError: There is nothing to draw yet.
        """
        return self._drawn("best_so_far")

    def plot_curves(self) -> go.Figure:
        """The learning curves; those of paused trials are dimmed, and the winner's is marked."""
        return self._drawn("curves")

    def plot_parallel_coordinates(self) -> go.Figure:
        """A line for each trial through its most important parameters to its objective."""
        return self._drawn("parallel_coordinates")

    def plot_slices(self) -> go.Figure:
        """The worth of trials against each of the most important parameters."""
        return self._drawn("slices")

    def plot_importances(self) -> go.Figure:
        """The share of the differences between trials that each parameter explains."""
        return self._drawn("importances")

    def close(self) -> None:
        """Let go of the connection; the next call would open a new one."""
        self._store.close()

    def __enter__(self) -> StudyReader:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<study {self.name} in {self._store.display_url}>"

    def _repr_html_(self) -> str:
        from hpsearch.views.report.page import summary

        return summary(self._report_data())

    def _report_data(self) -> ReportData:
        from hpsearch.views.report.data import report_data

        with self._reading() as (connection, study):
            return report_data(connection, study, time.time(), self._store.command)

    def _drawn(self, name: str) -> go.Figure:
        from hpsearch.views.report.charts import parameters, progress

        data = self._report_data()
        if name in ("best_so_far", "curves"):
            chart = getattr(progress, name)(data, data.goal)
        else:
            found = parameters.configurations(data, data.goal)
            chart = getattr(parameters, name)(found)
        if chart is None:
            message = f"study {self.name} has nothing to draw there yet"
            see = self._store.command(f"status {self.name}")
            raise UserError(message, f"see its progress: {see}")
        figure: go.Figure = chart.figure
        return figure

    @contextmanager
    def _reading(self) -> Iterator[tuple[Connection, StudyHead]]:
        with suggesting_for(self._store.url), self._store.reading() as connection:
            yield connection, find_study(connection, self.name)


def _refuse_unfit(name: str, count: Any, least: int) -> None:
    if not is_whole_number(count) or not least <= count <= LARGEST_NUMBER:
        wanted = f"a whole number from {least} to {LARGEST_NUMBER}"
        raise UserError(f"{name} must be {wanted}, not {count!r:.60}")


def open_study(url: str, name: str) -> StudyReader:
    """Open a study for reading; see `hpsearch.open`."""
    with suggesting_for(url):
        store = Store.open(url, create=False)
    try:
        return StudyReader(store, name)
    except BaseException:
        store.close()
        raise
