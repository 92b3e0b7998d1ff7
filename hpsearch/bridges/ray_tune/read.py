"""Past runs from the folder of a Ray Tune experiment: a folder for each trial, with `params.json`
and `result.json`.

How trials ended is in the newest `experiment_state-*.json` beside them. Of a trial that it does not
name, an `error.txt` or `error.pkl` says that it failed, and `done` in its last result that it was
complete. No pickled file is read: that could run code.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hpsearch.adapters.ray_tune.configs import flat
from hpsearch.bridges import cells
from hpsearch.bridges.past_runs import Mapped, Misfits, PastRun, PastRuns
from hpsearch.domain.lifecycle import State
from hpsearch.errors import UserError
from trials.settings import nearest

RESOURCE = "training_iteration"
"""Ray Tune's count of the reports of a trial."""
_OWN = frozenset(
    (
        *("timestamp", "time_this_iter_s", "time_total_s", "pid", "time_since_restore"),
        *("iterations_since_restore", "training_iteration", "done", "should_checkpoint"),
    )
)
"""Numbers in each result that Ray Tune adds itself."""
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_STATES = {"TERMINATED": State.COMPLETE, "ERROR": State.FAILED}

Results = list[tuple[str, dict[str, Any]]]
"""The results of a trial, each with its place."""


def is_experiment(folder: Path) -> bool:
    """True for a folder with trials of Ray Tune, or of one trial."""
    return bool(_trial_folders(folder))


def _trial_folders(folder: Path) -> list[Path]:
    if (folder / "params.json").is_file():
        return [folder]
    return sorted(path.parent for path in folder.glob("*/params.json"))


def read(source: str, mapped: Mapped, misfits: Misfits) -> PastRuns:
    """Past runs from an experiment, or from the folder of one trial. Raises UserError if the metric
    is not named, or no trial has it."""
    folder, objectives = Path(source), mapped.objectives
    experiment = _Experiment(mapped, misfits, _recorded(folder, misfits))
    runs = [experiment.run(trial) for trial in _trial_folders(folder)]
    found = PastRuns("Ray Tune", source, objectives, [run for run in runs if run])
    if not experiment.recorded:
        why = "there is no experiment_state-*.json, which says how trials ended"
        found.notes.append(f"{why}: those without an error and a last result count as pruned")
    _mark_stopped(found)
    if not mapped.params:
        _leave_constants_out(found)
    return found


def _mark_stopped(found: PastRuns) -> None:
    """Count trials that were terminated before the longest ones as pruned: Ray Tune records a trial
    that its scheduler stopped as it records one that has ended by itself."""
    longest = max(found.resources, default=0.0)
    stopped = 0
    for run in found.runs:
        is_finite = run.values is None or all(map(math.isfinite, run.values))
        is_short = bool(run.curve) and max(run.curve) < longest
        if run.state is State.COMPLETE and is_short and is_finite:
            run.state, run.values = State.PRUNED, None
            stopped += 1
    if stopped:
        what = f"{stopped} trials ended before the longest at {longest:g}, and count as pruned"
        found.notes.append(f"{what}: Ray Tune does not record whether it stopped them")


def _leave_constants_out(found: PastRuns) -> None:
    """Leave out parameters that are the same in all runs: a config holds much that nobody
    searched."""
    names = list(dict.fromkeys(name for run in found.runs for name in run.params))
    constant = []
    for name in names:
        values = [run.params.get(name) for run in found.runs]
        if all(value == values[0] for value in values):
            constant.append(name)
    if not constant or len(constant) == len(names):
        return
    for run in found.runs:
        for name in constant:
            del run.params[name]
    found.notes.append(f"the same in all runs, and left out: {', '.join(constant)}")


def _recorded(folder: Path, misfits: Misfits) -> dict[str, str]:
    """The status of each trial, by the name of its folder, as the experiment last recorded it."""
    states = sorted(folder.glob("experiment_state-*.json"))
    if not states:
        return {}
    recorded = {}
    try:
        document = json.loads(states[-1].read_text(encoding="utf-8"))
        for pair in document["trial_data"]:
            trial = json.loads(pair[0])
            place = trial.get("relative_logdir") or trial["trial_id"]
            recorded[str(place)] = str(trial["status"])
    except (OSError, ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
        misfits.add(states[-1].name, f"is not the state of an experiment ({error})")
    return recorded


@dataclass
class _Experiment:
    mapped: Mapped
    misfits: Misfits
    recorded: Mapping[str, str]

    def run(self, trial: Path) -> PastRun | None:
        """The run in a trial's folder; None if that is broken."""
        place = f"{trial.name}/params.json"
        try:
            written = flat(json.loads((trial / "params.json").read_text(encoding="utf-8")), ".")
            results = _json_lines(trial / "result.json")
        except (OSError, ValueError, AttributeError) as error:
            self.misfits.add(place, f"cannot be read: {error}")
            return None
        except UserError as error:
            self.misfits.add(trial.name, error.message)
            return None
        known = {name: _plain(value) for name, value in written.items() if value is not None}
        params = self.mapped.chosen(known, place, self.misfits)
        run = PastRun(trial.name, params, self._state(trial, results), name=trial.name)
        run.curve = self._curve(results)
        if run.state is State.COMPLETE and run.curve:
            run.values = self.mapped.values_in(run.curve[max(run.curve)])
        if run.state is State.FAILED:
            run.error_text = _error_in(trial)
        if results:
            _, last = results[-1]
            run.ended = cells.number(last.get("timestamp"))
            took = cells.number(last.get("time_total_s"))
            if run.ended is not None and took is not None:
                run.started = run.ended - took
        return run

    def _state(self, trial: Path, results: Results) -> State:
        named = [status for name, status in self.recorded.items() if trial.name.endswith(name)]
        status = named[0] if named else None
        if status in _STATES:
            return _STATES[status]
        if (trial / "error.txt").exists() or (trial / "error.pkl").exists():
            return State.FAILED
        if status is None and results and results[-1][1].get("done") in (True, "True"):
            return State.COMPLETE
        return State.RUNNING

    def _curve(self, results: Results) -> dict[float, dict[str, float]]:
        """The metrics of a trial by resource; a restored trial's later results replace those that
        it repeats."""
        curve: dict[float, dict[str, float]] = {}
        resource = self.mapped.resource or RESOURCE
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
        """The metrics of a result, with the objectives under our names."""
        found = {}
        for name, value in result.items():
            is_metric = name not in _OWN and not name.startswith("config/")
            if is_metric and isinstance(value, int | float) and not isinstance(value, bool):
                found[name] = float(value)
        trial = place.partition("/")[0]
        for ours, theirs in self.mapped.metric.items():
            if theirs in found:
                found[ours] = found.pop(theirs)
            elif not self.misfits.has(trial):
                what = f"{theirs} is {result.get(theirs)!r}, which is not a number"
                if result.get(theirs) is None:
                    what = f"has no metric {theirs}; {nearest(theirs, found)}"
                self.misfits.add(place, what)
        return found


def _plain(value: Any) -> Any:
    """A value as a parameter can have it: lists become their text."""
    return value if isinstance(value, bool | int | float | str) else str(value)


def _json_lines(file: Path) -> Results:
    """The objects of a file of JSON lines; none where there is no file."""
    results: Results = []
    if not file.is_file():
        return results
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1):
        if not line.strip():
            continue
        try:
            result = flat(json.loads(line), "/")
        except (ValueError, AttributeError) as error:
            raise UserError(f"{file.name}:{number}: is not JSON of a result: {error}") from None
        results.append((f"{file.parent.name}/{file.name}:{number}", result))
    return results


def _error_in(trial: Path) -> str | None:
    try:
        text = (trial / "error.txt").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    lines = [line for line in _COLOURS.sub("", text).splitlines() if line.strip()]
    return lines[-1].strip() if lines else None
