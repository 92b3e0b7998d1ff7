"""Reading recorded curves from a CSV or Parquet file, with a row for each report of each configuration.

A file has a column for each parameter, one for the resource (named as the trial budget's unit, or `resource`), one for
the metric, and perhaps `seconds` (or `elapsed`): the time since the configuration began. Rows are told apart by a
column `trial`, or else by their parameters. That is what `hpsearch export --what reports` writes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hpsearch.errors import DataError
from hpsearch.executors.recorded import Curve, RecordedCurves
from hpsearch.space import active
from hpsearch.spec import CategoricalParameter, Parameter, StudySpec
from hpsearch.spec_types import same, shown
from trials import files
from trials.settings import nearest

if TYPE_CHECKING:
    import pandas as pd

TRIAL = "trial"
SLACK = 1 - 1e-9
"""How near to the full budget a curve must come; a little less than 1, for rounding."""


@dataclass(frozen=True)
class Recorded:
    """What a file has for a study."""

    curves: RecordedCurves
    configurations: int
    """Recorded up to the trial budget, or until they diverged."""
    too_short: int
    """Left out, because their curves end before the trial budget."""
    timed: bool
    """Whether the file tells times; else each unit of the resource takes one second."""


def load_curves(path: Path, spec: StudySpec) -> Recorded:
    """Read the curves that a study can be simulated on.

    Raises:
        DataError: The file cannot be read, lacks a column, or has values that cannot be used.
    """
    frame = _frame(path)
    unit = spec.budget.per_trial.unit.value
    metrics = dict.fromkeys([*(objective.metric for objective in spec.objectives), *spec.constraints])
    columns = {name: _column(path, frame, (f"params.{name}", name), f"the parameter {name}") for name in spec.space}
    levels_in = ("resource",) if unit in spec.space else (unit, "resource")
    resource = _numbers(path, frame, _column(path, frame, levels_in, f"the resource ({unit})"))
    measured = {
        metric: _numbers(path, frame, _column(path, frame, (f"metrics.{metric}", metric), f"the metric {metric}"))
        for metric in metrics
    }
    finite_rows = np.all([np.isfinite(values) for values in measured.values()], axis=0)
    clock = next((name for name in ("seconds", "elapsed") if name in frame and frame[name].notna().any()), None)
    seconds = resource if clock is None else _numbers(path, frame, clock)
    if not (resource > 0).all():
        raise DataError(f"{path}: row {_first(~(resource > 0))}: {unit} must be above 0", "leave that row out")
    configurations, curves, too_short, furthest = [], [], 0, 0.0
    total, diverged = spec.budget.per_trial.total, 0
    for rows in _groups(frame, list(columns.values())):
        order = rows[np.argsort(resource[rows], kind="stable")]
        levels = resource[order]
        _refuse_repeats(path, levels, order, unit)
        finite = np.maximum.accumulate(~finite_rows[order]) == 0
        furthest = max(furthest, float(levels[-1]))
        if levels[-1] < total * SLACK and finite.all():
            too_short += 1
            continue
        diverged += not finite.all()
        times = np.maximum.accumulate(np.nan_to_num(seconds[order]))
        values = {metric: np.where(finite, column[order], np.nan) for metric, column in measured.items()}
        curves.append(Curve(levels, values, times))
        configurations.append(_configuration(path, spec, frame, columns, int(order[0])))
    if len(curves) == diverged:
        what = f"no configuration is recorded up to the trial budget of {total:g} {unit}"
        raise DataError(f"{path}: {what}", f"the furthest curve ends at {furthest:g}: lower budget.per_trial.{unit}")
    return Recorded(RecordedCurves(spec.space, configurations, curves), len(curves), too_short, clock is not None)


def _frame(path: Path) -> pd.DataFrame:
    import pandas as pd  # imported here: it takes long, and most commands read no table

    from trials.tasks import tables

    try:
        files.refuse_odd(path)
        if path.suffix == ".csv":
            files.refuse_binary(path)
            tables.refuse_repeated_names(path)
            frame = pd.read_csv(path, encoding="utf-8-sig")
            tables.refuse_shifted(frame)
        elif path.suffix == ".parquet":
            frame = pd.read_parquet(path)
        else:
            raise DataError(f"{path}: curves are read from .csv and .parquet files", "give the file such an ending")
    except FileNotFoundError:
        raise DataError(f"{path}: there is no such file", "make one with: hpsearch export --what reports") from None
    except (OSError, ValueError) as error:  # pandas' and Arrow's parsers raise kinds of ValueError
        why = " ".join(str(error).split())
        raise DataError(f"{path}: cannot be read: {why}", "mend it, or make one with: hpsearch export") from error
    if frame.empty:
        raise DataError(f"{path}: has no rows", "it needs one for each report of each configuration")
    return frame


def _column(path: Path, frame: pd.DataFrame, names: tuple[str, ...], what: str) -> str:
    found = next((name for name in names if name in frame), None)
    if found is None:
        hint = nearest(names[-1], map(str, frame.columns))
        raise DataError(f"{path}: has no column for {what}: {' or '.join(names)}", f"of its columns, {hint}")
    return found


def _numbers(path: Path, frame: pd.DataFrame, name: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    """A column as numbers; empty cells are not numbers."""
    import pandas as pd

    numbers = pd.to_numeric(frame[name], errors="coerce").to_numpy(dtype=float)
    wrong = np.isnan(numbers) & frame[name].notna().to_numpy()
    if wrong.any():
        value = frame[name].iloc[int(np.argmax(wrong))]
        raise DataError(f"{path}: row {_first(wrong)}: {name} is {shown(str(value))}, not a number", "correct the cell")
    return numbers


def _first(wrong: Any) -> int:
    """The number of the first such row, from 1, below the head."""
    return int(np.argmax(wrong)) + 1


def _groups(frame: pd.DataFrame, parameters: list[str]) -> list[Any]:
    """Places of the rows of each configuration."""
    by = [TRIAL] if TRIAL in frame else parameters
    return list(frame.reset_index(drop=True).groupby(by, sort=False, dropna=False).indices.values())


def _refuse_repeats(path: Path, levels: Any, order: Any, unit: str) -> None:
    repeated = np.flatnonzero(levels[1:] == levels[:-1])
    if not len(repeated):
        return
    first, second = sorted((int(order[repeated[0]]) + 1, int(order[repeated[0] + 1]) + 1))
    what = f"rows {first} and {second} are the same configuration at {levels[repeated[0]]:g} {unit}"
    raise DataError(f"{path}: {what}", f"tell repeated runs apart by a column {TRIAL}, or average them")


def _configuration(
    path: Path, spec: StudySpec, frame: pd.DataFrame, columns: dict[str, str], row: int
) -> dict[str, Any]:
    """A row's parameters as the space has them; inactive ones are absent."""
    cells = {name: frame[column].iloc[row] for name, column in columns.items()}
    params = {
        name: _value(path, name, spec.space[name], cell, row)
        for name, cell in cells.items()
        if cell is not None and cell == cell
    }
    return {name: params[name] for name in active(spec.space, params) if name in params}


def _value(path: Path, name: str, parameter: Parameter, cell: Any, row: int) -> Any:
    """A cell as a value of a parameter: a choice by itself or by how it is written, or a number."""
    cell = cell.item() if isinstance(cell, np.generic) else cell
    if isinstance(parameter, CategoricalParameter):
        by_text = (choice for choice in parameter.choices if shown(choice) == shown(cell) or str(choice) == str(cell))
        return next((choice for choice in parameter.choices if same(choice, cell)), next(by_text, cell))
    try:
        number = float(cell)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise DataError(f"{path}: row {row + 1}: {name} is {shown(cell)}, not a number", "correct the cell")
    return int(number) if number == int(number) and parameter.type == "int" else number
