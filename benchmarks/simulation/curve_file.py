"""Recorded curves from a CSV or Parquet file such as `hpsearch export --what reports` writes.

A row is one report of one run. The columns are `trial`, the number of the run; `resource`, or the
unit of the trial budget; each parameter and each metric, whose names begin with `params.` and
`metrics.` where another column has that name; and, if times are known, `elapsed` or `seconds`, the
time since the run began. A column `seed` tells runs of one trial apart. Runs with equal parameters
are one configuration with several seeds.
"""

import math
import warnings
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hpsearch.errors import DataError
from hpsearch.study_file.models import StudySpec
from hpsearch.study_file.parameters import CategoricalParameter
from hpsearch.study_file.space import active, as_written
from hpsearch.study_file.types import same
from hpsearch.study_file.validation import shown
from trials.contract import Unit
from trials.data import files
from trials.descriptions.cells import column_of, nested_in, number_of, plain, truth_in
from trials.running.reported import MOST_RESOURCE
from trials.settings import in_full, nearest

from .curves import Curve, Floats, RecordedCurves

if TYPE_CHECKING:
    import pandas as pd

TRIAL, SEED = "trial", "seed"
PARAMETER, METRIC = "params.", "metrics."
TIMES = ("elapsed", "seconds")
NOT_METRICS = {"resource", "attempt", "step", "value", "created", TRIAL, SEED, *TIMES, *Unit}
"""Columns of an export that are not metrics."""
ROUNDING = 1e-9  # the share of the full budget by which a complete curve may miss it


@dataclass(frozen=True)
class CurveFile:
    """The part of a file that a study can use."""

    curves: RecordedCurves
    """Of all configurations that are recorded up to the trial budget, or diverged."""
    too_short: int  # the number of other configurations, which are left out
    timed: bool  # false if the file has no times: each unit of the resource takes one second then


def load_curves(path: Path, spec: StudySpec) -> CurveFile:
    """Read the curves that a study can be simulated on.

    Raises:
        DataError: The file cannot be read, lacks a column, or has values that cannot be used.
    """
    table = _Table(path, spec)
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
        configurations[key] = params
        if not curve.is_finite or last >= total * (1 - ROUNDING):
            usable.setdefault(key, []).append(curve)
    found = chain.from_iterable(usable.values())
    if not any(curve.is_finite for curve in found):
        unit = spec.budget.per_trial.unit.value
        budget = f"{in_full(total)} {unit}"
        what = f"{path}: no configuration is recorded up to the trial budget of {budget}"
        hint = f"the furthest curve ends at {in_full(furthest)}: lower budget.per_trial.{unit}"
        raise DataError(what, hint)
    known = [configurations[key] for key in usable]
    curves = RecordedCurves(spec.space, known, list(usable.values()))
    return CurveFile(curves, len(configurations) - len(usable), table.is_timed)


class _Table:
    def __init__(self, path: Path, spec: StudySpec) -> None:
        self._path = path
        self._spec = spec
        self._frame = _read(path)
        self._parameters = {name: self._column(PARAMETER + name, name) for name in spec.space}
        unit = spec.budget.per_trial.unit.value
        self._level = self._column("resource", unit)
        self._levels = self._numbers(self._level)
        if not ((self._levels > 0) & (self._levels <= MOST_RESOURCE)).all():
            what = f"{path}: {self._level} is not always above 0 and at most 2**53"
            raise DataError(what, "leave such rows out")
        wanted = [*(each.metric for each in spec.objectives), *spec.constraints]
        columns = {metric: self._column(METRIC + metric, metric) for metric in wanted}
        self._metrics = {metric: self._numbers(column) for metric, column in columns.items()}
        self._others = self._other_metrics({*columns.values(), *self._parameters.values()})
        present = [self._numbers(name) for name in TIMES if name in self._frame]
        times = [seconds for seconds in present if not np.isnan(seconds).all()]
        self.is_timed = bool(times)  # true if the file has times
        self._seconds = times[0] if times else self._levels
        if np.isinf(self._seconds).any():
            raise DataError(f"{path}: a time is not finite", "leave such rows out")

    def runs(self) -> list[Any]:
        """The rows of each run, in the order of their resources; lower seeds come first."""
        import pandas as pd

        by = [self._column(TRIAL)]
        if SEED in self._frame and SEED not in self._parameters:
            by.insert(0, SEED)
        told_apart = pd.DataFrame({name: self._keys(name) for name in by})
        if told_apart.assign(level=self._levels).duplicated().any():
            what = f"{self._path}: a run has two rows at the same {self._level}"
            raise DataError(what, f"tell runs apart by the columns {TRIAL} and {SEED}")
        found = told_apart.groupby(by, sort=SEED in by).indices.values()
        return [rows[np.argsort(self._levels[rows])] for rows in found]

    def curve(self, rows: Any) -> Curve:
        """The curve of a run; NaN from where it diverged on."""
        measured = {metric: values[rows] for metric, values in self._metrics.items()}
        finite = np.isfinite(list(measured.values())).all(axis=0)
        until_divergence = np.logical_and.accumulate(finite)
        metrics = {}
        for metric, values in measured.items():
            metrics[metric] = np.where(until_divergence, values, np.nan)
        seconds = np.maximum.accumulate(np.nan_to_num(self._seconds[rows]))
        others = {metric: values[rows] for metric, values in self._others.items()}
        return Curve(self._levels[rows], metrics, seconds, others)

    def configuration(self, rows: Any) -> dict[str, Any]:
        """The parameters of a run as the space has them; inactive ones are absent."""
        params = {}
        for name, column in self._parameters.items():
            cell = plain(self._frame[column].iloc[int(rows[0])])
            if cell is not None:
                params[name] = self._value(name, cell)
        space = self._spec.space
        params = as_written(space, params)
        needed = [name for name in active(space, params) if name in params]
        return {name: params[name] for name in needed}

    def _value(self, name: str, cell: Any) -> Any:
        """A cell as a value of a parameter; a choice is also found by its text."""
        parameter = self._spec.space[name]
        number = number_of(cell)
        if isinstance(parameter, CategoricalParameter):
            readings = [cell, number, nested_in(cell), truth_in(cell)]
            known = [each for each in readings if each is not None]
            exact = [choice for each in known for choice in parameter.choices if same(choice, each)]
            alike = [choice for choice in parameter.choices if str(choice) == str(cell)]
            return next(iter([*exact, *alike]), cell)
        if number is None or not math.isfinite(number):
            what = f"{self._path}: {name} is {shown(cell)}, not a number"
            raise DataError(what, "correct the cell")
        if parameter.type == "int" and number != int(number):
            what = f"{self._path}: {name} is {shown(cell)}, not a whole number"
            raise DataError(what, f"correct the cell, or write {{type: float}} for {name}")
        return int(number) if parameter.type == "int" else float(number)

    def _keys(self, name: str) -> list[Any]:
        keys = column_of(self._frame[name])
        return [str(key) if isinstance(key, list | dict) else key for key in keys]

    def _column(self, *names: str) -> str:
        for name in names:
            if name in self._frame:
                return name
        hint = nearest(names[-1], map(str, self._frame.columns))
        what = f"{self._path}: has no column {' or '.join(names)}"
        raise DataError(what, f"of its columns, {hint}")

    def _numbers(self, column: str) -> Floats:
        numbers = np.full(len(self._frame), math.nan)
        for row, cell in enumerate(self._frame[column]):
            number = number_of(cell)
            if number is not None:
                numbers[row] = number
            elif plain(cell) is not None:
                what = f"{self._path}: {column}: {shown(cell)} in row {row + 1} is not a number"
                raise DataError(what, "correct the cell")
        return numbers

    def _other_metrics(self, used: set[str]) -> dict[str, Floats]:
        """The columns of numbers that are not used otherwise, by metric."""
        found = {}
        for name in self._frame.columns:
            if name not in used | NOT_METRICS:
                with suppress(DataError):
                    found[name.removeprefix(METRIC)] = self._numbers(name)
        return found


def _read_csv(path: Path) -> "pd.DataFrame":
    """A table; raises ValueError if a row has more cells than the header."""
    import pandas as pd

    with warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)
        try:
            options: dict[str, Any] = {"index_col": False, "dtype": str}
            options |= files.table_format(path)
            table: pd.DataFrame = pd.read_csv(path, **options)
        except pd.errors.ParserWarning:
            raise ValueError("a row has more cells than the header") from None
    return table


def _read(path: Path) -> "pd.DataFrame":
    import pandas as pd  # imported here: it takes long, and most commands read no table

    try:
        files.refuse_odd(path)
        frame = pd.read_parquet(path) if path.suffix == ".parquet" else _read_csv(path)
    except FileNotFoundError:
        hint = "make one with: hpsearch export --what reports"
        raise DataError(f"{path}: there is no such file", hint) from None
    except (OSError, ValueError) as error:  # pandas' and Arrow's parsers raise kinds of ValueError
        hint = "it must be a .csv or .parquet file, as hpsearch export --what reports makes it"
        why = f": {error}"
        if isinstance(error, UnicodeDecodeError):
            why = f" as UTF-8 text; {files.conversion(path, error)}"
        raise DataError(f"{path}: cannot be read{why}", hint) from error
    if frame.empty:
        raise DataError(f"{path}: has no rows", "it needs one for each report of each run")
    return frame
