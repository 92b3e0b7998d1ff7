"""A study as tables: trials, reports and attempts, with a column for each parameter and metric."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd
from sqlalchemy import Connection, Table, select

from hpsearch.store.reading.names import METRIC_PREFIX, PARAMETER_PREFIX, SHOWN
from hpsearch.store.reading.queries import Rows, StudyHead, TrialRow, each_row, each_trial
from hpsearch.store.schema import REPORT, TRIAL, attempts, reports, trials

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
    rows = each_trial(connection, study, **choice)
    return StudyTable(_TRIAL_COLUMNS, Rows(lambda: map(_cells_of, rows)))


def frame_of(rows: Sequence[TrialRow], more: Mapping[str, list[Any]] | None = None) -> pd.DataFrame:
    more = more or {}
    cells: list[Cells] = []
    for place, row in enumerate(rows):
        own, params, metrics = _cells_of(row)
        beside = {name: column[place] for name, column in more.items()}
        cells.append(({**own, **beside}, params, metrics))
    return StudyTable([*_TRIAL_COLUMNS, *more], Rows(lambda: iter(cells))).frame()


def _cells_of(row: TrialRow) -> Cells:
    return row.as_plain(), row.params, row.metrics


def reports_table(connection: Connection, study: StudyHead) -> StudyTable:
    beside = {"params": TRIAL.params, "metrics": REPORT.metrics}
    return _table_of(connection, study, reports, beside, metrics_first=True)


def attempts_table(connection: Connection, study: StudyHead) -> StudyTable:
    return _table_of(connection, study, attempts, {})


def _table_of(
    connection: Connection, study: StudyHead, table: Table, beside: Mapping[str, Any], **more: Any
) -> StudyTable:
    own = [column for column in table.c if column.name not in ("study_id", *beside)]
    joined = select(*own, *beside.values()).join_from(table, trials)
    in_order = joined.where(table.c.study_id == study.id).order_by(*table.primary_key)

    def read() -> Iterator[Cells]:
        for row in each_row(connection, in_order):
            cells = dict(row._mapping)
            yield cells, cells.get("params", {}), cells.get("metrics", {})

    return StudyTable([column.name for column in own], Rows(read), **more)
