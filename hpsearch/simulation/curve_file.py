"""Reading recorded curves from a CSV or Parquet file, with a row for each report of each
configuration.

A file has a column for each parameter, one for the resource (named as the trial budget's unit, or
`resource`), one for each metric, and perhaps `seconds` (or `elapsed`): the time since the run
began. Runs are told apart by a column `trial`, or else by their parameters, and by a column `seed`
if there is one. Runs with equal parameters are one configuration with several seeds. `hpsearch
export --what reports` writes such a file.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpsearch.errors import DataError
from hpsearch.simulation.curves import Curve, Floats, RecordedCurves
from hpsearch.study_file.models import StudySpec
from hpsearch.study_file.parameters import CategoricalParameter, Parameter
from hpsearch.study_file.space import active
from hpsearch.study_file.types import same
from hpsearch.study_file.validation import shown
from trials.contract import Unit
from trials.data import files
from trials.settings import nearest

if TYPE_CHECKING:
    import pandas as pd

TRIAL, SEED = "trial", "seed"
PARAMETER, METRIC = "params.", "metrics."
"""Begin the names of columns whose parameter or metric has the name of another column."""
NOT_METRICS = frozenset({"resource", "attempt", "step", "value", "created", *Unit})
"""Other columns that a table, such as an export, may have."""
SECONDS = ("seconds", "elapsed")
SLACK = 1 - 1e-9
"""The share of the full budget that a curve must reach; a little less than 1, for rounding."""

Rows = NDArray[np.intp]  # places of rows in the table, from 0


@dataclass(frozen=True)
class CurveFile:
    """The part of a file that a study can use."""

    curves: RecordedCurves
    configurations: int  # how many are recorded up to the trial budget, or until they diverged
    too_short: int  # how many are left out, because their curves end before the trial budget
    repeats: int  # how many runs are repeats of a configuration, with another seed
    repeated: int  # how many configurations have such runs
    timed: bool  # true if the file has times; otherwise each unit of the resource takes one second


def load_curves(path: Path, spec: StudySpec) -> CurveFile:
    """Read the curves that a study can be simulated on. Raises DataError if the file cannot be
    read, lacks a column, or has values that cannot be used."""
    table = _Table.of(path, spec)
    total = spec.budget.per_trial.total
    configurations: dict[str, dict[str, Any]] = {}
    usable: dict[str, list[Curve]] = {}
    furthest = 0.0
    for rows in table.runs():
        curve = table.curve(rows)
        last = float(curve.levels[-1])
        furthest = max(furthest, last)
        params = table.configuration(rows)
        key = repr(sorted(params.items()))
        configurations.setdefault(key, params)
        if not curve.is_finite or last >= total * SLACK:
            usable.setdefault(key, []).append(curve)
    runs = [curve for curves in usable.values() for curve in curves]
    if not any(curve.is_finite for curve in runs):
        unit = spec.budget.per_trial.unit.value
        raise DataError(
            f"{path}: no configuration is recorded up to the trial budget of {total:g} {unit}",
            f"the furthest curve ends at {furthest:g}: lower budget.per_trial.{unit}",
        )
    found = RecordedCurves(
        spec.space,
        [configurations[key] for key in usable],
        [curves[0] for curves in usable.values()],
        [curves[1:] for curves in usable.values()],
    )
    return CurveFile(
        curves=found,
        configurations=len(usable),
        too_short=len(configurations) - len(usable),
        repeats=len(runs) - len(usable),
        repeated=sum(len(curves) > 1 for curves in usable.values()),
        timed=table.is_timed,
    )


@dataclass(frozen=True)
class _Table:
    """The columns of a file that a study needs."""

    path: Path  # of the file, for messages
    spec: StudySpec
    frame: pd.DataFrame  # the whole table
    parameters: Mapping[str, str]  # for each parameter, its column's name
    resource: Floats  # of each row
    metrics: Mapping[str, Floats]  # of each row, for each metric that the study needs
    others: Mapping[str, Floats]  # of each row, for each other metric
    seconds: Floats  # of each row
    is_timed: bool  # true if the seconds are recorded
    seeds: Floats | None  # of each row; None where the file does not tell seeds apart

    @classmethod
    def of(cls, path: Path, spec: StudySpec) -> _Table:
        """Read a file. Raises DataError if it cannot be read, lacks a column, or has values that
        cannot be used."""
        frame = _frame(path)
        unit = spec.budget.per_trial.unit.value
        parameters = {}
        for name in spec.space:
            names = [PARAMETER + name, name]
            parameters[name] = _column(path, frame, names, f"the parameter {name}")
        names = ["resource"] if unit in spec.space else [unit, "resource"]
        column = _column(path, frame, names, f"the resource ({unit})")
        resource = _numbers(path, frame, column)
        used = [*parameters.values(), column, TRIAL]
        metrics = {}
        for metric in [*(each.metric for each in spec.objectives), *spec.constraints]:
            names = [METRIC + metric, metric]
            column = _column(path, frame, names, f"the metric {metric}")
            metrics[metric] = _numbers(path, frame, column)
            used.append(column)
        clock = _clock(frame)
        seconds = resource if clock is None else _numbers(path, frame, clock)
        seeds = None
        if SEED in frame and SEED not in used:
            seeds = _numbers(path, frame, SEED)
            used.append(SEED)
        others = _other_metrics(frame, [*used, *metrics])
        not_positive = ~(resource > 0)
        if not_positive.any():
            what = f"{path}: row {_first(not_positive)}: {unit} must be above 0"
            raise DataError(what, "leave that row out")
        timed = clock is not None
        return cls(path, spec, frame, parameters, resource, metrics, others, seconds, timed, seeds)

    def runs(self) -> list[Rows]:
        """The rows of each run, in the order of their resources; runs of lower seeds come first.
        Raises DataError if a run has two rows for one resource."""
        by = [TRIAL] if TRIAL in self.frame else list(self.parameters.values())
        if self.seeds is not None:
            by.append(SEED)
        numbered = self.frame.reset_index(drop=True)
        groups = []
        found = numbered.groupby(by, sort=False, dropna=False)
        for rows in found.indices.values():
            places = np.argsort(self.resource[rows], kind="stable")
            order: Rows = np.asarray(rows)[places]
            self._refuse_repeats(order)
            groups.append(order)
        seeds = self.seeds
        if seeds is not None:
            groups.sort(key=lambda rows: seeds[rows[0]])
        return groups

    def curve(self, rows: Rows) -> Curve:
        """The curve of a run; not a number from where it diverged on."""
        columns = [values[rows] for values in self.metrics.values()]
        finite = np.all([np.isfinite(values) for values in columns], axis=0)
        until_divergence = np.logical_and.accumulate(finite)
        metrics = {}
        for metric, values in self.metrics.items():
            metrics[metric] = np.where(until_divergence, values[rows], np.nan)
        seconds = np.maximum.accumulate(np.nan_to_num(self.seconds[rows]))
        others = {metric: values[rows] for metric, values in self.others.items()}
        return Curve(self.resource[rows], metrics, seconds, others)

    def configuration(self, rows: Rows) -> dict[str, Any]:
        """The parameters of a configuration as the space has them; inactive ones are absent."""
        row = int(rows[0])
        params = {}
        for name, column in self.parameters.items():
            cell = self.frame[column].iloc[row]
            if cell is not None and cell == cell:  # an empty cell is not equal to itself
                params[name] = self._value(name, cell, row)
        return {name: params[name] for name in active(self.spec.space, params) if name in params}

    def _value(self, name: str, cell: Any, row: int) -> Any:
        """A cell as a value of a parameter."""
        parameter: Parameter = self.spec.space[name]
        cell = cell.item() if isinstance(cell, np.generic) else cell
        if isinstance(parameter, CategoricalParameter):
            return _choice(parameter, cell)
        try:
            number = float(cell)
        except ValueError:
            number = math.nan
        if not math.isfinite(number):
            what = f"{self.path}: row {row + 1}: {name} is {shown(cell)}, not a number"
            raise DataError(what, "correct the cell")
        if parameter.type == "int" and number == int(number):
            return int(number)
        return number

    def _refuse_repeats(self, rows: Rows) -> None:
        levels = self.resource[rows]
        repeated = np.flatnonzero(levels[1:] == levels[:-1])
        if not len(repeated):
            return
        place = int(repeated[0])
        first, second = sorted((int(rows[place]) + 1, int(rows[place + 1]) + 1))
        level = f"{levels[place]:g} {self.spec.budget.per_trial.unit.value}"
        raise DataError(
            f"{self.path}: rows {first} and {second} are the same configuration at {level}",
            f"tell repeated runs apart by a column {SEED} or {TRIAL}",
        )


def _frame(path: Path) -> pd.DataFrame:
    try:
        frame = _read(path)
    except FileNotFoundError:
        raise DataError(
            f"{path}: there is no such file", "make one with: hpsearch export --what reports"
        ) from None
    except (OSError, ValueError) as error:  # pandas' and Arrow's parsers raise kinds of ValueError
        why = " ".join(str(error).split())
        raise DataError(
            f"{path}: cannot be read: {why}", "correct it, or make one with: hpsearch export"
        ) from error
    if frame.empty:
        raise DataError(
            f"{path}: has no rows", "it needs one for each report of each configuration"
        )
    return frame


def _read(path: Path) -> pd.DataFrame:
    import pandas as pd  # imported here: it takes long, and most commands read no table

    from trials.tasks.datasets import tables

    files.refuse_odd(path)
    if path.suffix == ".parquet":
        return pd.read_parquet(path)
    if path.suffix != ".csv":
        raise DataError(
            f"{path}: curves are read from .csv and .parquet files",
            "use a file with one of these endings",
        )
    files.refuse_binary(path)
    tables.refuse_repeated_names(path)
    frame = pd.read_csv(path, encoding="utf-8-sig")
    tables.refuse_shifted(frame)
    return frame


def _column(path: Path, frame: pd.DataFrame, names: list[str], what: str) -> str:
    """The first of some names that a table has a column of."""
    for name in names:
        if name in frame:
            return name
    hint = nearest(names[-1], map(str, frame.columns))
    raise DataError(
        f"{path}: has no column for {what}: {' or '.join(names)}", f"of its columns, {hint}"
    )


def _other_metrics(frame: pd.DataFrame, used: Collection[str]) -> dict[str, Floats]:
    """The numbers of the columns that are metrics and not used otherwise, by metric."""
    from pandas.api.types import is_bool_dtype, is_numeric_dtype

    found: dict[str, Floats] = {}
    for name in map(str, frame.columns):
        known = name in used or name in NOT_METRICS or name in SECONDS
        if known or name.startswith(PARAMETER):
            continue
        column = frame[name]
        if is_numeric_dtype(column) and not is_bool_dtype(column):
            found[name.removeprefix(METRIC)] = column.to_numpy(dtype=float, na_value=math.nan)
    return found


def _clock(frame: pd.DataFrame) -> str | None:
    """The column with the times; None if there is none, or it is empty."""
    for name in SECONDS:
        if name in frame and frame[name].notna().any():
            return name
    return None


def _numbers(path: Path, frame: pd.DataFrame, name: str) -> Floats:
    """A column as numbers; empty cells are not numbers."""
    import pandas as pd

    column = frame[name]
    numbers: Floats = pd.to_numeric(column, errors="coerce").to_numpy(dtype=float)
    wrong = np.isnan(numbers) & column.notna().to_numpy()
    if wrong.any():
        row = _first(wrong)
        value = shown(str(column.iloc[row - 1]))
        what = f"{path}: row {row}: {name} is {value}, not a number"
        raise DataError(what, "correct the cell")
    return numbers


def _first(wrong: Any) -> int:
    """The number of the first such row, from 1, below the head."""
    return int(np.argmax(wrong)) + 1


def _choice(parameter: CategoricalParameter, cell: Any) -> Any:
    """The choice that a cell stands for, by its value or by how it is written; else the cell."""
    for choice in parameter.choices:
        if same(choice, cell):
            return choice
    for choice in parameter.choices:
        if shown(choice) == shown(cell) or str(choice) == str(cell):
            return choice
    return cell
