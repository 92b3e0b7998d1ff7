"""Past runs from the folder of a Ray Tune experiment: a folder for each trial, with `params.json`
and `result.json` (or `progress.csv`).

How trials ended is in the newest `experiment_state-*.json` beside them. Of one that this file does
not know, an `error.txt` or `error.pkl` tells that it failed, and `done` in its last result that it
was complete. No pickled file is read: that could run code.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hpsearch.domain.lifecycle import State
from hpsearch.errors import UserError
from hpsearch.importing import cells, tables
from hpsearch.importing.columns import Mapped
from hpsearch.importing.runs import Measures, Misfits, PastRun, PastRuns, settle, without_constants
from trials.settings import nearest

RESOURCE = "training_iteration"
"""What Ray Tune counts the reports of a trial in."""
_OWN = frozenset(
    (
        *("timestamp", "time_this_iter_s", "time_total_s", "pid", "time_since_restore"),
        *("iterations_since_restore", "training_iteration", "done", "should_checkpoint"),
    )
)
"""Numbers in each result that Ray Tune adds itself."""
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_STATES = {"TERMINATED": State.COMPLETE, "ERROR": State.FAILED}


def is_experiment(folder: Path) -> bool:
    """Whether a folder holds trials of Ray Tune, or is one."""
    return bool(_trial_folders(folder))


def _trial_folders(folder: Path) -> list[Path]:
    if (folder / "params.json").is_file():
        return [folder]
    return sorted(path.parent for path in folder.glob("*/params.json"))


def read(folder: Path, mapped: Mapped, misfits: Misfits) -> PastRuns:
    """Past runs from an experiment, or from the folder of one trial.

    Args:
        folder: The folder.
        mapped: The metric, and which parameters to keep.
        misfits: Takes what does not fit.

    Raises:
        UserError: The metric is not named, or no trial has it.
    """
    measures = mapped.measures()
    reading = _Experiment(folder, mapped, measures, misfits, _recorded(folder, misfits))
    runs = []
    for trial in _trial_folders(folder):
        run = reading.run(trial)
        if run is not None and settle(run, reading.leave_out):
            runs.append(run)
    found = PastRuns("Ray Tune", str(folder), measures.objectives, runs)
    if not reading.recorded:
        why = "there is no experiment_state-*.json, which says how trials ended"
        found.notes.append(f"{why}: those without an error and a last result count as pruned")
    _tell_stopped(found)
    if mapped.params is None:
        without_constants(found)
    if reading.left_out:
        found.notes.append(f"{reading.left_out} unfinished trials without a report were left out")
    return found


def _tell_stopped(found: PastRuns) -> None:
    """Trials that were terminated before the longest ones are pruned: Ray Tune records a trial that
    its scheduler stopped as it records one that has ended by itself."""
    longest = max((at for run in found.runs for at in run.curve), default=0.0)
    stopped = 0
    for run in found.runs:
        if run.state is State.COMPLETE and run.curve and max(run.curve) < longest:
            run.state = State.PRUNED
            run.values = None
            stopped += 1
    if stopped:
        what = f"{stopped} trials ended before the longest at {longest:g}, and count as pruned"
        found.notes.append(f"{what}: Ray Tune does not record whether it stopped them")


def _recorded(folder: Path, misfits: Misfits) -> dict[str, str]:
    """The status of each trial, by the name of its folder, as the experiment last recorded it."""
    states = sorted(folder.glob("experiment_state-*.json"))
    if not states:
        return {}
    try:
        document = json.loads(states[-1].read_text(encoding="utf-8"))
        recorded = {}
        for pair in document["trial_data"]:
            trial = json.loads(pair[0])
            place = trial.get("relative_logdir") or trial["trial_id"]
            recorded[str(place)] = str(trial["status"])
    except (OSError, ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
        misfits.add(states[-1].name, f"is not the state of an experiment ({error})")
        return {}
    return recorded


@dataclass
class _Experiment:
    """One experiment being read."""

    folder: Path
    mapped: Mapped
    measures: Measures
    misfits: Misfits
    recorded: Mapping[str, str]
    left_out: int = field(default=0)

    def leave_out(self) -> None:
        """Count a trial that had not ended and has reported nothing."""
        self.left_out += 1

    def run(self, trial: Path) -> PastRun | None:
        """The run in a trial's folder; None if that is broken."""
        params = self._params(trial)
        results = self._results(trial)
        if params is None or results is None:
            return None
        run = PastRun(trial.name, params, self._state(trial, results))
        run.name = trial.name
        run.curve = self._curve(results)
        if run.state is State.COMPLETE and run.curve:
            run.values = self.measures.values_in(run.curve[max(run.curve)])
        if run.state is State.FAILED:
            run.error_text = _error_in(trial)
        if results:
            last = results[-1][1]
            run.ended = cells.seconds(last.get("timestamp"))
            took = cells.number(last.get("time_total_s"))
            if run.ended is not None and took is not None and math.isfinite(took):
                run.started = run.ended - took
        return run

    def _params(self, trial: Path) -> dict[str, Any] | None:
        file = trial / "params.json"
        place = f"{trial.name}/{file.name}"
        try:
            written = json.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            self.misfits.add(place, f"cannot be read: {error}")
            return None
        if not isinstance(written, dict):
            self.misfits.add(place, "is not an object of parameters")
            return None
        known = {name: value for name, value in cells.flat(written).items() if value is not None}
        params, lacking = cells.chosen(known, self.mapped.params)
        for name in lacking:
            self.misfits.add(place, f"has no parameter {name}; {nearest(name, known)}")
        return params

    def _results(self, trial: Path) -> list[tuple[str, dict[str, Any]]] | None:
        """The results with their places; None if the file is broken."""
        file = trial / "result.json"
        if file.is_file():
            return self._json_lines(file)
        if (trial / "progress.csv").is_file():
            return self._progress(trial)
        return []

    def _json_lines(self, file: Path) -> list[tuple[str, dict[str, Any]]] | None:
        results = []
        try:
            lines = file.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            self.misfits.add(f"{file.parent.name}/{file.name}", f"cannot be read: {error}")
            return None
        for number, line in enumerate(lines, start=1):
            place = f"{file.parent.name}/{file.name}:{number}"
            if not line.strip():
                continue
            try:
                result = json.loads(line)
            except ValueError as error:
                self.misfits.add(place, f"is not JSON: {error}")
                return None
            if not isinstance(result, dict):
                self.misfits.add(place, "is not an object")
                return None
            results.append((place, cells.flat(result, "/")))
        return results

    def _progress(self, trial: Path) -> list[tuple[str, dict[str, Any]]] | None:
        file = trial / "progress.csv"
        if not file.stat().st_size:
            return []
        try:
            table = tables.read(file)
        except UserError as error:
            self.misfits.add(f"{trial.name}/{file.name}", error.message)
            return None
        found = []
        for row in table.rows:
            result = {name: cells.scalar(cell) for name, cell in row.cells.items() if cell}
            found.append((f"{trial.name}/{row.place}", result))
        return found

    def _state(self, trial: Path, results: list[tuple[str, dict[str, Any]]]) -> State:
        status = self.recorded.get(trial.name)
        if status is None:
            found = [name for name in self.recorded if trial.name.endswith(name)]
            status = self.recorded[found[0]] if found else None
        if status in _STATES:
            return _STATES[status]
        if (trial / "error.txt").exists() or (trial / "error.pkl").exists():
            return State.FAILED
        if status is None and results and results[-1][1].get("done") in (True, "True"):
            return State.COMPLETE
        return State.RUNNING

    def _curve(self, results: list[tuple[str, dict[str, Any]]]) -> dict[float, dict[str, float]]:
        """The metrics of a trial by resource; what a restored trial did again replaces the
        first."""
        curve: dict[float, dict[str, float]] = {}
        resource = self.measures.resource or RESOURCE
        for place, result in results:
            at = cells.number(result.get(resource))
            if at is None:
                known = [name for name in result if cells.number(result[name]) is not None]
                self.misfits.add(place, f"has no number {resource}; {nearest(resource, known)}")
                continue
            if curve and not at > max(curve):
                if result.get("iterations_since_restore") != 1:
                    what = f"{resource} is {at:g} after {max(curve):g}; it must rise"
                    self.misfits.add(place, what)
                    continue
                curve = {before: each for before, each in curve.items() if before < at}
            curve[at] = self._metrics(place, result)
        return curve

    def _metrics(self, place: str, result: Mapping[str, Any]) -> dict[str, float]:
        found = {}
        for name, value in result.items():
            is_metric = name not in _OWN and not name.startswith("config/")
            if is_metric and isinstance(value, int | float) and not isinstance(value, bool):
                found[name] = float(value)
        trial = place.partition("/")[0]
        for theirs in self.measures.metrics.values():
            if theirs not in found and not self.misfits.has(trial):
                odd = result.get(theirs)
                what = f"{theirs} is {odd!r}, which is not a number"
                if odd is None:
                    what = f"has no metric {theirs}; {nearest(theirs, found)}"
                self.misfits.add(place, what)
        return self.measures.renamed(found)


def _error_in(trial: Path) -> str | None:
    """The last line of a trial's error."""
    try:
        text = (trial / "error.txt").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    lines = [line for line in _COLOURS.sub("", text).splitlines() if line.strip()]
    return lines[-1].strip() if lines else None
