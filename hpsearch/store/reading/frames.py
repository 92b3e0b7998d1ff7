"""A study as tables: trials, reports and attempts, with a column for each parameter and metric."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd
from sqlalchemy import Connection, select

from hpsearch.store.reading.names import METRIC_PREFIX, PARAMETER_PREFIX, SHOWN
from hpsearch.store.reading.queries import Rows, StudyHead, TrialRow, each_row, each_trial
from hpsearch.store.schema import ATTEMPT, REPORT, TRIAL, reports, trials

_TRIAL_COLUMNS = [*(name for name in SHOWN if name != "params"), "violation"]

Cells = tuple[Mapping[str, Any], Mapping[str, Any], Mapping[str, Any]]
"""A row's own cells by column, its parameters and its metrics."""


class StudyTable:
    """A table of a study, with a row for each trial, report or attempt.

    A parameter or metric with the name of a column before it is called ``params.NAME`` or
    ``metrics.NAME``. Goes through all rows to know the columns.

    Args:
        own: The columns that are neither parameters nor metrics.
        rows: Its rows.
        metrics_first: True if a parameter with the name of a metric is renamed, else the metric is.
    """

    def __init__(
        self, own: Sequence[str], rows: Rows[Cells], *, metrics_first: bool = False
    ) -> None:
        self._own, self._rows = own, rows
        params: dict[str, None] = {}
        metrics: dict[str, None] = {}
        for _, of_params, of_metrics in rows:
            params |= dict.fromkeys(of_params)
            metrics |= dict.fromkeys(of_metrics)
        taken = set(own)
        if metrics_first:
            self._metrics = _columns(metrics, taken, METRIC_PREFIX)
        self._params = _columns(params, taken, PARAMETER_PREFIX)
        if not metrics_first:
            self._metrics = _columns(metrics, taken, METRIC_PREFIX)

    def frame(self) -> pd.DataFrame:
        """The whole table."""
        return pd.DataFrame(self._cells(list(self._rows)))

    def frames(self) -> Iterator[pd.DataFrame]:
        """The table in parts, whose cells are objects, as they were read; one part at least."""
        is_empty = True
        for part in self._rows.parts():
            yield pd.DataFrame(self._cells(part), dtype=object)
            is_empty = False
        if is_empty:
            yield pd.DataFrame(self._cells([]), dtype=object)

    def _cells(self, rows: Sequence[Cells]) -> dict[str, list[Any]]:
        columns: dict[str, list[Any]] = {}
        for name in self._own:
            columns[name] = [own[name] for own, _, _ in rows]
        for name, column in self._params.items():
            columns[column] = [params.get(name) for _, params, _ in rows]
        for name, column in self._metrics.items():
            columns[column] = [metrics.get(name) for _, _, metrics in rows]
        return columns


def _columns(names: Mapping[str, None], taken: set[str], prefix: str) -> dict[str, str]:
    columns = {name: prefix + name if name in taken else name for name in names}
    taken.update(columns.values())
    return columns


def trials_table(connection: Connection, study: StudyHead, **choice: Any) -> StudyTable:
    """A row for each trial that `each_trial` finds, with the metrics of its latest report."""
    rows = each_trial(connection, study, **choice)
    return StudyTable(_TRIAL_COLUMNS, Rows(lambda: map(_cells_of, rows)))


def frame_of(rows: Sequence[TrialRow], more: Mapping[str, list[Any]] | None = None) -> pd.DataFrame:
    """Trials as `trials_table`, with more columns."""
    more = more or {}
    beside = [dict(zip(more, cells, strict=True)) for cells in zip(*more.values(), strict=True)]
    cells = []
    for place, (own, params, metrics) in enumerate(map(_cells_of, rows)):
        cells.append(({**own, **(beside[place] if more else {})}, params, metrics))
    return StudyTable([*_TRIAL_COLUMNS, *more], Rows(lambda: iter(cells))).frame()


def _cells_of(row: TrialRow) -> Cells:
    return row.as_plain(), row.params, row.metrics


def reports_table(connection: Connection, study: StudyHead) -> StudyTable:
    """A row for each report, by trial and resource: recorded curves."""
    plain = [column for column in REPORT if column.name not in ("study_id", "metrics")]
    joined = select(*plain, REPORT.metrics, TRIAL.params).join_from(reports, trials)
    statement = joined.where(REPORT.study_id == study.id)
    in_order = statement.order_by(REPORT.trial, REPORT.resource)

    def read() -> Iterator[Cells]:
        for row in each_row(connection, in_order):
            yield dict(row._mapping), row.params, row.metrics

    names = [column.name for column in plain]
    return StudyTable(names, Rows(read), metrics_first=True)


def attempts_table(connection: Connection, study: StudyHead) -> StudyTable:
    """A row for each attempt, by trial and number."""
    plain = [column for column in ATTEMPT if column.name != "study_id"]
    of_study = select(*plain).where(ATTEMPT.study_id == study.id)
    in_order = of_study.order_by(ATTEMPT.trial, ATTEMPT.number)

    def read() -> Iterator[Cells]:
        for row in each_row(connection, in_order):
            yield dict(row._mapping), {}, {}

    return StudyTable([column.name for column in plain], Rows(read))
