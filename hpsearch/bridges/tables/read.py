"""Past runs from CSV and Parquet files: a row for each run, or a row for each report of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hpsearch.bridges import cells
from hpsearch.bridges.past_runs import Mapped, Misfits, PastRun, PastRuns
from hpsearch.domain.lifecycle import State
from hpsearch.errors import UserError
from hpsearch.study_file.types import same
from trials.contract import TaskError
from trials.settings import nearest

SUFFIXES = (".csv", ".tsv", ".parquet")


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a table: its place (the file, and its number below the header, from 1), and its
    cells by column; None for what is missing."""

    place: str
    cells: dict[str, Any]


def rows_of(path: Path) -> list[Row]:
    """The rows of a table, at least one. Raises UserError if the file cannot be read, or has no
    rows."""
    from trials.tasks.datasets import tables  # imported here: pandas takes a while

    try:
        frame = tables.read(path, "")
    except TaskError as error:
        raise UserError(error.problems[0].what) from None
    if frame.empty:
        raise UserError(f"{path} has no rows", "a header and a row for each run are needed")
    frame = frame.astype(object)
    records = frame.where(frame.notna(), None).to_dict("records")
    return [
        Row(f"{path.name} row {number}", {str(name): cell for name, cell in record.items()})
        for number, record in enumerate(records, start=1)
    ]


def read(source: str, mapped: Mapped, misfits: Misfits) -> PastRuns:
    """Past runs from a CSV or Parquet file. Raises UserError if the file cannot be read, a column
    is missing, or the mapping lacks something."""
    rows = rows_of(Path(source))
    table = _Table(source, rows, mapped, misfits)
    objectives = mapped.objectives
    table.check_columns()
    runs = [table.run(group) for group in table.groups()]
    found = PastRuns("a table", source, objectives, runs)
    named = mapped.params.values()
    unused = (name for name in table.columns if name not in named)
    stated = next((name for name in unused if name.lower() in ("state", "status")), None)
    if mapped.state is None and stated is not None:
        found.notes.append(f"all runs count as complete; --state {stated} reads how each has ended")
    return found


@dataclass
class _Table:
    source: str
    rows: list[Row]
    mapped: Mapped
    misfits: Misfits

    @property
    def columns(self) -> list[str]:
        return list(self.rows[0].cells)

    def check_columns(self) -> None:
        """Make sure that the mapping goes together and that its columns are there."""
        mapped = self.mapped
        if not mapped.params:
            what = f"it is not said which columns of {self.source} are parameters"
            known = f"columns are {', '.join(self.columns)}"
            raise UserError(what, f"name them: --params lr=learning_rate,...; {known}")
        if mapped.resource and not mapped.run:
            what = "--resource needs to know which rows are of the same run"
            raise UserError(what, "name the column with --run COLUMN")
        wanted = [*mapped.params.values(), mapped.run, mapped.state, mapped.resource]
        wanted += self.mapped.metric.values()
        missing = [name for name in dict.fromkeys(wanted) if name and name not in self.columns]
        if missing:
            hints = "; ".join(f"{name}: {nearest(name, self.columns)}" for name in missing)
            raise UserError(f"{self.source} lacks columns that are asked for: {hints}")

    def groups(self) -> list[list[Row]]:
        """The rows of each run."""
        if not self.mapped.resource:
            return [[row] for row in self.rows]
        groups: dict[str, list[Row]] = {}
        for row in self.rows:
            name = row.cells[self.mapped.run or ""]
            if name is None:
                self.misfits.add(row.place, f"{self.mapped.run} is empty: whose report is it?")
                continue
            groups.setdefault(str(name), []).append(row)
        return list(groups.values())

    def run(self, rows: Sequence[Row]) -> PastRun:
        """The run of some rows."""
        first = rows[0]
        name = first.cells[self.mapped.run] if self.mapped.run else None
        run = PastRun(first.place, self._params(rows), self._state(rows[-1]))
        run.name = None if name is None else str(name)
        if self.mapped.resource:
            run.curve = self._curve(rows, self.mapped.resource)
            if run.curve and run.state is State.COMPLETE:
                run.values = self.mapped.values_in(run.curve[max(run.curve)])
            return run
        metrics = self._metrics(first)
        run.values = self.mapped.values_in(metrics)
        if not run.state.terminal and run.values is not None:
            run.curve[1.0] = metrics
        return run

    def _state(self, row: Row) -> State:
        column = self.mapped.state
        if column is None:
            return State.COMPLETE
        try:
            return cells.state(row.cells[column] or "")
        except ValueError as error:
            self.misfits.add(row.place, f"{column}: {error}")
            return State.FAILED

    def _params(self, rows: Sequence[Row]) -> dict[str, Any]:
        """The parameters of a run, which are the same in all of its rows."""
        found: dict[str, Any] = {}
        for name, column in self.mapped.params.items():
            cell = rows[0].cells[column]
            if cells.is_empty(cell):
                continue
            found[name] = cells.scalar(cell)
            for row in rows[1:]:
                other = row.cells[column]
                if cells.is_empty(other) or not same(cells.scalar(other), found[name]):
                    what = f"{column} is {other!r}, and {cell!r} at {rows[0].place}"
                    self.misfits.add(row.place, f"{what}: a run has one value")
        return found

    def _metrics(self, row: Row) -> dict[str, float]:
        """The metrics of a row that are not empty."""
        found = {}
        for name, column in self.mapped.metric.items():
            value = self._number(row, column)
            if value is not None:
                found[name] = value
        return found

    def _number(self, row: Row, column: str) -> float | None:
        """The number in a cell; None if it is empty."""
        cell = row.cells.get(column)
        value = None if cells.is_empty(cell) else cells.number(cell)
        if value is None and not cells.is_empty(cell):
            self.misfits.add(row.place, f"{column} is {cell!r}, which is not a number")
        return value

    def _curve(self, rows: Sequence[Row], column: str) -> dict[float, dict[str, float]]:
        curve: dict[float, dict[str, float]] = {}
        for row in rows:
            at = self._number(row, column)
            if at is None:
                if cells.is_empty(row.cells[column]):
                    self.misfits.add(row.place, f"{column} is empty; give each report a number")
                continue
            before = max(curve, default=None)
            if before is not None and not at > before:
                what = f"{column} is {at:g} after {before:g}; within a run it must rise"
                self.misfits.add(row.place, what)
                continue
            curve[at] = self._metrics(row)
        return curve
