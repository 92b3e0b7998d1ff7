"""Past runs from the rows of a table: a row for each run, or a row for each report of a run."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hpsearch.domain.lifecycle import State
from hpsearch.errors import UserError
from hpsearch.importing import cells, tables, wandb_runs
from hpsearch.importing.columns import CURVE, Mapped
from hpsearch.importing.runs import Measures, Misfits, PastRun, PastRuns, settle
from hpsearch.importing.tables import Row, Table
from hpsearch.study_file.types import same

WANDB_COLUMNS = ("Name", "State", "Created", "Runtime")
"""Columns by which the CSV of a W&B project's table of runs is known."""


def read(path: Path, mapped: Mapped, misfits: Misfits) -> PastRuns:
    """Past runs from a CSV or Parquet file.

    Args:
        path: The file.
        mapped: Which column is what.
        misfits: Takes what does not fit.

    Raises:
        UserError: The file cannot be read, a column is missing, or the mapping lacks something.
    """
    table = tables.read(path)
    if all(name in table.columns for name in wandb_runs.EXPORTED):
        return wandb_runs.read(path, mapped, misfits)
    kind = "a table"
    if all(name in table.columns for name in WANDB_COLUMNS):
        kind = "W&B"
        mapped = _as_wandb_exports(table, mapped)
    measures = mapped.measures()
    reading = _Reading(table, mapped, measures, mapped.known_states(), misfits)
    reading.check_columns()
    found = PastRuns(kind, str(path), measures.objectives, reading.runs())
    if reading.left_out:
        found.notes.append(f"{reading.left_out} unfinished runs without a report were left out")
    named = (mapped.params or {}).values()
    unused = (name for name in table.columns if name not in named)
    stated = next((name for name in unused if name.lower() in ("state", "status")), None)
    if mapped.state is None and stated is not None:
        found.notes.append(f"all runs count as complete; --state {stated} reads how each has ended")
    return found


def _as_wandb_exports(table: Table, mapped: Mapped) -> Mapped:
    """The mapping with the columns that W&B's web page always exports.

    Names of runs need not be unique there, and `ID` is only there if the table showed it.
    """
    usual: dict[str, Any] = {"state": mapped.state or "State"}
    if mapped.run is None and "ID" in table.columns:
        usual["run"] = "ID"
    return mapped.model_copy(update=usual)


@dataclass
class _Reading:
    """One table being read.

    Attributes:
        table: The table.
        mapped: Which column is what.
        measures: What runs are compared by.
        states: The words for states.
        misfits: Takes what does not fit.
        left_out: Runs that had not ended and have reported nothing.
    """

    table: Table
    mapped: Mapped
    measures: Measures
    states: Mapping[str, State]
    misfits: Misfits
    left_out: int = 0

    def check_columns(self) -> None:
        """Make sure that the mapping goes together and that its columns are there.

        Raises:
            UserError: They are not.
        """
        mapped = self.mapped
        if not mapped.params:
            known = ", ".join(self.table.columns)
            what = f"it is not said which columns of {self.table.path} are parameters"
            raise UserError(what, f"name them: --params lr=learning_rate,...; columns are {known}")
        if mapped.resource and mapped.curve:
            raise UserError("--resource and --curve are two forms of a curve", "give one of them")
        if mapped.resource and not mapped.run:
            what = "--resource needs to know which rows are of the same run"
            raise UserError(what, "name the column with --run COLUMN")
        if mapped.curve is not None and CURVE not in mapped.curve:
            what = f"--curve {mapped.curve}: must have {CURVE} where the number is"
            raise UserError(what, f"for example: --curve accuracy_{CURVE}")
        columns = [*mapped.params.values()]
        columns += [each for each in (mapped.run, mapped.state, mapped.resource) if each]
        columns += [] if mapped.curve else self.measures.metrics.values()
        self.table.require(columns)
        if mapped.curve is not None and not self._curve_columns():
            what = f"{self.table.path} has no column that is {mapped.curve}"
            raise UserError(what, f"columns are {', '.join(self.table.columns)}")

    def runs(self) -> list[PastRun]:
        """The runs, in the order of the table."""
        groups = self._groups()
        found = [self._run(rows) for rows in groups]
        return [run for run in found if settle(run, self._leave_out)]

    def _leave_out(self) -> None:
        self.left_out += 1

    def _groups(self) -> list[list[Row]]:
        """The rows of each run."""
        if not self.mapped.resource:
            return [[row] for row in self.table.rows]
        groups: dict[str, list[Row]] = {}
        for row in self.table.rows:
            name = row.cells[self.mapped.run or ""]
            if name is None:
                self.misfits.add(row.place, f"{self.mapped.run} is empty: whose report is it?")
                continue
            groups.setdefault(str(name), []).append(row)
        return list(groups.values())

    def _run(self, rows: Sequence[Row]) -> PastRun:
        first, last = rows[0], rows[-1]
        name = first.cells[self.mapped.run] if self.mapped.run else None
        state = self._state(last)
        run = PastRun(first.place, self._params(rows), state or State.COMPLETE)
        run.name = None if name is None else str(name)
        if self.mapped.resource:
            run.curve = self._long_curve(rows, self.mapped.resource)
            self._take_last(run)
            return run
        if self.mapped.curve:
            run.curve = self._wide_curve(first)
        metrics = self._metrics(first)
        run.values = self.measures.values_in(metrics)
        if run.values is None and self.mapped.curve:
            self._take_last(run)
        if not run.state.terminal and not run.curve and run.values is not None:
            run.curve[1.0] = metrics
        return run

    def _take_last(self, run: PastRun) -> None:
        """The last report is the result of a run that is complete."""
        if run.curve and run.state is State.COMPLETE:
            run.values = self.measures.values_in(run.curve[max(run.curve)])

    def _state(self, row: Row) -> State | None:
        column = self.mapped.state
        if column is None:
            return None
        try:
            return cells.state(row.cells[column] or "", self.states)
        except ValueError as error:
            self.misfits.add(row.place, f"{column}: {error}")
            return State.FAILED

    def _params(self, rows: Sequence[Row]) -> dict[str, Any]:
        """The parameters of a run, which are the same in all of its rows."""
        found: dict[str, Any] = {}
        for name, column in (self.mapped.params or {}).items():
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
        for name, column in self.measures.metrics.items():
            cell = row.cells.get(column)
            if cells.is_empty(cell):
                continue
            value = self._number(row, column, cell)
            if value is not None:
                found[name] = value
        return found

    def _number(self, row: Row, column: str, cell: Any) -> float | None:
        value = cells.number(cell)
        if value is None:
            self.misfits.add(row.place, f"{column} is {cell!r}, which is not a number")
        return value

    def _long_curve(self, rows: Sequence[Row], column: str) -> dict[float, dict[str, float]]:
        curve: dict[float, dict[str, float]] = {}
        for row in rows:
            cell = row.cells[column]
            at = self._number(row, column, "" if cell is None else cell)
            if at is None:
                continue
            before = max(curve, default=None)
            if before is not None and not at > before:
                what = f"{column} is {at:g} after {before:g}; within a run it must rise"
                self.misfits.add(row.place, what)
                continue
            curve[at] = self._metrics(row)
        return curve

    def _wide_curve(self, row: Row) -> dict[float, dict[str, float]]:
        """The points of a curve in a row; a run that stopped early lacks the last ones."""
        metric = next(iter(self.measures.metrics))
        curve = {}
        for at, column in sorted(self._curve_columns().items()):
            cell = row.cells[column]
            if cells.is_empty(cell):
                continue
            value = self._number(row, column, cell)
            if value is not None:
                curve[at] = {metric: value}
        return curve

    def _curve_columns(self) -> dict[float, str]:
        """The columns of a curve by resource."""
        before, _, after = (self.mapped.curve or "").partition(CURVE)
        number = r"(\d+(?:\.\d+)?)"
        pattern = re.compile(re.escape(before) + number + re.escape(after))
        found = {}
        for column in self.table.columns:
            match = pattern.fullmatch(column)
            if match:
                found[float(match[1])] = column
        return found
