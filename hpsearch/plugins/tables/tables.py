"""Past runs from CSV and Parquet files."""

from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from hpsearch.domain.lifecycle import State
from hpsearch.errors import UserError
from hpsearch.running.creation.past_runs import Mapped, PastRun, PastRuns, Problems
from trials.contract import TaskError
from trials.descriptions.cells import column_of, number_of, plain
from trials.settings import nearest

SUFFIXES = (".csv", ".tsv", ".parquet")


def is_table(source: str) -> bool:
    """True for a file of one of these kinds."""
    return "://" not in source and Path(source).suffix.lower() in SUFFIXES


STATES = {
    **dict.fromkeys(("complete", "completed", "finished", "done", "terminated"), State.COMPLETE),
    **dict.fromkeys(("success", "succeeded", "ok"), State.COMPLETE),
    **dict.fromkeys(("pruned", "stopped", "killed", "canceled", "cancelled"), State.PRUNED),
    **dict.fromkeys(("preempted", "paused", "running"), State.RUNNING),
    **dict.fromkeys(("waiting", "queued", "pending", "scheduled"), State.QUEUED),
    **dict.fromkeys(("failed", "fail", "error", "crashed"), State.FAILED),
}
"""States in the words of Optuna, Ray Tune, W&B and MLflow; queued and running runs go on."""


def read(source: str, mapped: Mapped, problems: Problems) -> PastRuns:
    """Past runs from a CSV or Parquet file. Raises UserError for it, or what it lacks."""
    path = Path(source)
    frame = _frame(path)
    objectives = mapped.objectives
    columns = list(frame.columns)
    _check_columns(source, columns, mapped)
    params = {name: column_of(frame[column]) for name, column in mapped.params.items()}
    runs = []
    for row, cells in enumerate(frame.to_dict("records")):
        run = PastRun(f"{path.name} row {row + 1}", {}, State.COMPLETE)
        known = {name: column[row] for name, column in params.items()}
        run.params = {name: value for name, value in known.items() if value is not None}
        _add_result(run, cells, mapped, problems)
        runs.append(run)
    found = PastRuns("a table", source, objectives, runs)
    stated = [name for name in columns if name.lower() in ("state", "status")]
    if mapped.state is None and stated:
        what = "all runs count as complete"
        found.notes.append(f"{what}; --state {stated[0]} reads how each has ended")
    return found


def _frame(path: Path) -> pd.DataFrame:
    from trials.tasks.datasets import tables  # imported here: its package imports torch

    try:
        frame = tables.read(path, "")
    except TaskError as error:
        raise UserError(error.problems[0].what) from None
    if frame.empty:
        raise UserError(f"{path} has no rows", "a header and a row for each run are needed")
    return frame


def _check_columns(source: str, columns: Sequence[str], mapped: Mapped) -> None:
    if not mapped.params:
        what = f"it is not said which columns of {source} are parameters"
        known = f"columns are {', '.join(columns)}"
        raise UserError(what, f"name them: --params lr=learning_rate,...; {known}")
    if mapped.study is not None:
        raise UserError("--study is for a storage of Optuna's", "leave it out")
    wanted = [*mapped.params.values(), mapped.run, mapped.state]
    wanted += mapped.metric.values()
    missing = [name for name in dict.fromkeys(wanted) if name and name not in columns]
    if missing:
        hints = "; ".join(f"{name}: {nearest(name, columns)}" for name in missing)
        raise UserError(f"{source} lacks columns that are asked for: {hints}")


def _add_result(
    run: PastRun, cells: Mapping[Hashable, Any], mapped: Mapped, problems: Problems
) -> None:
    if mapped.run is not None:
        run.name = str(cells[mapped.run])
    if mapped.state is not None:
        word = str(cells[mapped.state]).strip()
        run.state = STATES.get(word.lower(), State.FAILED)
        if word.lower() not in STATES:
            what = f"{mapped.state}: {word!r} is not a known state; {nearest(word, STATES)}"
            problems.setdefault(run.place, what)
    metrics = {}
    for name, column in mapped.metric.items():
        measured = number_of(cells[column])
        if measured is not None:
            metrics[name] = float(measured)
        elif plain(cells[column]) is not None:
            what = f"{column} is {cells[column]!r}, which is not a number"
            problems[run.place] = "; ".join([*filter(None, [problems.get(run.place)]), what])
    if len(metrics) < len(mapped.metric):
        return
    run.values = tuple(metrics.values())
    if not run.state.terminal:
        run.curve[1.0] = metrics
