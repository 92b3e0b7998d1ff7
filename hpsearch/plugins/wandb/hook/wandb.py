"""The module that the script of a W&B sweep finds as `wandb`: the real one, whose logs are reports.

It replaces itself by the real `wandb` of the script's own Python. That runs offline and has its
configuration from W&B's own sweep variables; what is changed is that

- each step with the objective is a line of the file of reports, with the newest value of every
  metric, and the summary at the end of the run is written into a file of its own,
- `wandb.agent` calls its function once, for this trial; `wandb.sweep` and `wandb.login` ask nobody.

It imports nothing of this package: the script may have another Python.
"""

from __future__ import annotations

import atexit
import functools
import importlib
import json
import os
import sys
from typing import Any

TOLD = "HPSEARCH_WANDB"
"""The variable with what this module is to know, as JSON: the files `reports` and `summary`, the
`goals` as pairs of a name and whether more is better, and `total`, the level of the run's end."""
RESOURCE = "_resource"
AGGREGATES = ("min", "max", "mean", "best", "first", "last")
"""The aggregates of a metric that `define_metric` can keep in the summary."""
NOT_FINITE = ("NaN", "Infinity", "-Infinity")
LONGEST_NAME = 500  # letters of the name of a metric


class Reports:
    """The reports of the runs of this process."""

    def __init__(self, told: dict[str, Any], log: Any) -> None:
        self._told, self._log = told, log
        self._names = [name for name, _ in told["goals"]]
        self._run: Any = None
        self._row: dict[str, float] = {}
        """The numbers logged in the current step."""
        self._newest: dict[str, float] = {}
        self._step = self._count = 0
        self._is_owner = False

    def begin(self, run: Any) -> None:
        """Follow a run that was begun, unless it is followed already."""
        if run is self._run:
            return
        self._commit()
        self._run, self._step = run, 0

    def log(self, run: Any, data: Any, step: Any, commit: Any) -> None:
        """Take what is logged, in the steps that W&B makes of it."""
        if run is not self._run:
            return
        if step is not None:
            if step < self._step:
                return  # W&B leaves it out, too
            if step > self._step:
                self._commit()
                self._step = step
        self._row.update(numbers_in(data))
        if commit or (commit is None and step is None):
            self._commit()
            self._step += 1

    def _commit(self) -> None:
        row, self._row = self._row, {}
        self._newest.update(row)
        is_report = set(self._names[:1]) <= set(row) if self._names else bool(row)
        if not is_report or not set(self._names) <= set(self._newest):
            return
        self._count += 1
        if self._count < self._told["total"]:  # the level of the end is that of the summary
            self._write(json.dumps({RESOURCE: self._count, **self._newest}))

    def _write(self, line: str) -> None:
        """Add a report. Of several processes that begin runs, those of the first count."""
        if not self._is_owner:
            try:
                os.close(os.open(self._told["reports"], os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                self._told["total"] = 0
                return
            self._is_owner = True
        with open(self._told["reports"], "a") as file:  # noqa: PTH123 - as short as can be
            file.write(line + "\n")

    def end(self, run: Any, exit_code: int | None = None) -> None:
        """Write the summary of a run that ends well, or where the process does."""
        if run is not self._run:
            return
        if self._row:
            self._log(run, {}, commit=True)  # W&B's summary lacks a step that is not complete
        self._commit()
        self._run = None
        if exit_code or not self._told["total"]:
            return
        summary = plain(run.summary)
        values = {**self._newest, **numbers_in(summary)}
        directions = dict(self._told["goals"])
        for name, value in summary.items():
            number = aggregate_of(value, maximize=directions.get(name, False))
            if number is not None:
                values[name] = number
        draft = self._told["summary"] + ".new"
        with open(draft, "w") as file:  # noqa: PTH123 - as short as can be
            json.dump({"values": values, "logged": self._count}, file)
        os.replace(draft, self._told["summary"])  # noqa: PTH105 - as short as can be


def aggregate_of(value: Any, *, maximize: bool) -> float | None:
    """The number that `define_metric` keeps of a metric in the summary; None for other values."""
    if not isinstance(value, dict):
        return None
    better = "max" if maximize else "min"
    for key in (better, *AGGREGATES):
        number = number_of(value.get(key))
        if number is not None:
            return number
    return None


def number_of(value: Any) -> float | None:
    """A number, of any library, or as W&B writes those that are not finite; None for others."""
    if isinstance(value, str):
        return float(value) if value in NOT_FINITE else None
    if not hasattr(value, "__float__"):
        return None
    try:
        return float(value)
    except (TypeError, ValueError, RuntimeError):  # an array of several
        return None


def numbers_in(data: Any, before: str = "") -> dict[str, float]:
    """The numbers in what is logged by their names, those inside of mappings joined by points."""
    found: dict[str, float] = {}
    for name, value in data.items() if hasattr(data, "items") else ():
        full = f"{before}{name}"
        number = number_of(value)
        if isinstance(value, dict):
            found.update(numbers_in(value, f"{full}."))
        elif number is not None and is_name(full):
            found[full] = number
    return found


def is_name(name: str) -> bool:
    """True for a name that a metric can have; false for W&B's own, too."""
    return not name.startswith(("_", "$")) and name.isprintable() and len(name) <= LONGEST_NAME


def plain(summary: Any) -> dict[str, Any]:
    """W&B's summary as a dict of dicts."""
    found = {}
    for name in summary.keys():  # noqa: SIM118 - it is not a mapping
        value = summary[name]
        found[name] = plain(value) if hasattr(value, "_as_dict") else value
    return found


def real_wandb() -> Any:
    """The `wandb` that is found without this folder, which children still look into."""
    here = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 - as sys.path has it
    before = list(sys.path)
    sys.path[:] = [each for each in before if os.path.abspath(each) != here]  # noqa: PTH100
    del sys.modules["wandb"]
    try:
        return importlib.import_module("wandb")
    except ModuleNotFoundError as error:
        if error.name != "wandb":
            raise
        what = f"the script of a W&B sweep needs wandb in its own Python ({sys.executable})"
        raise ModuleNotFoundError(f"{what}: pip install wandb", name="wandb") from None
    finally:
        sys.path[:] = before


def follow(wandb: Any, told: dict[str, Any]) -> None:
    """Let a trial have the reports of this process's runs."""
    from wandb.sdk.wandb_run import Run

    init, log, finish, leave = wandb.init, Run.log, Run.finish, Run.__exit__
    reports = Reports(told, log)

    @functools.wraps(init)
    def begin(*args: Any, **named: Any) -> Any:
        run = init(*args, **{**named, "mode": "offline"})
        reports.begin(run)
        atexit.register(reports.end, run)  # after W&B's own, and so called before
        return run

    @functools.wraps(log)
    def note(run: Any, data: Any, step: Any = None, commit: Any = None, **others: Any) -> None:
        log(run, data, step=step, commit=commit, **others)
        reports.log(run, data, step, commit)

    @functools.wraps(finish)
    def end(run: Any, exit_code: Any = None, **others: Any) -> None:
        reports.end(run, exit_code)
        finish(run, exit_code, **others)

    @functools.wraps(leave)
    def left(run: Any, error: Any, *others: Any) -> None:
        reports.end(run, 0 if error is None else 1)
        leave(run, error, *others)

    def agent(sweep_id: Any = None, function: Any = None, *args: Any, **named: Any) -> None:
        if function is None:
            what = "wandb.agent without a function starts other programs"
            raise RuntimeError(f"{what}: name the program itself as run in the study file")
        function()
        if wandb.run is not None:
            wandb.run.finish()

    wandb.init, Run.log, Run.finish, Run.__exit__ = begin, note, end, left
    wandb.agent = agent
    wandb.sweep = lambda *args, **named: "hpsearch"


def _replace() -> None:
    told = json.loads(os.environ.get(TOLD, "{}"))
    wandb = real_wandb()
    if told:
        wandb.login = lambda *args, **named: True
        follow(wandb, told)


if __name__ == "wandb":
    _replace()
