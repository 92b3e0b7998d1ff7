"""Past runs from what W&B's Python API hands out, and from the folders of runs on this machine.

- JSON lines, an object for each run with `config` and `summary`, and perhaps `id` or `name`,
  `state`, `created_at` and `history` (a list of objects, one for each step), as
  `wandb.Api().runs(...)` has them; or the name of a file of such steps, as `history_file`.
- The CSV that W&B's guide to exports makes, with a column of each as Python writes mappings.
- The folder `wandb` of a training, with `run-*` or `offline-run-*`, whose `files` hold
  `config.yaml` and `wandb-summary.json`. The log of a run (`*.wandb`) is not read.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from hpsearch.domain.lifecycle import State
from hpsearch.errors import UserError
from hpsearch.importing import cells, tables
from hpsearch.importing.columns import Mapped
from hpsearch.importing.runs import Measures, Misfits, PastRun, PastRuns, settle, without_constants
from trials.settings import nearest

RESOURCE = "_step"
"""What W&B counts the rows of a run's history in, from 0."""
EXPORTED = ("summary", "config")
"""Columns of a table with mappings, as W&B's guide to exports writes it."""
_NAN = re.compile(r"\bnan\b(?=[,}\]])")
FOLDERS = ("run-*", "offline-run-*")


def is_wandb(folder: Path) -> bool:
    """Whether a folder holds runs as the W&B client writes them."""
    return bool(_run_folders(folder))


def _run_folders(folder: Path) -> list[Path]:
    return sorted(path for pattern in FOLDERS for path in folder.glob(pattern) if path.is_dir())


def read(source: Path, mapped: Mapped, misfits: Misfits) -> PastRuns:
    """Past runs from a file of JSON lines, or from a folder of runs.

    Raises:
        UserError: The source cannot be read, or the metric is not named.
    """
    measures = mapped.measures()
    reading = _Reading(mapped, measures, mapped.known_states(), misfits)
    documents = _documents(source, misfits)
    runs = []
    for place, document in documents:
        run = reading.run(place, document, source.parent)
        if run is not None and settle(run, reading.leave_out):
            runs.append(run)
    found = PastRuns("W&B", str(source), measures.objectives, runs)
    if reading.left_out:
        found.notes.append(f"{reading.left_out} unfinished runs without a report were left out")
    if mapped.params is None:
        without_constants(found)
    return found


# ------------------------------------------------------------------------------- what there is

Documents = list[tuple[str, dict[str, Any]]]
"""Runs with their places."""


def _documents(source: Path, misfits: Misfits) -> Documents:
    if source.is_dir():
        return _of_folder(source, misfits)
    if source.suffix.lower() in tables.SUFFIXES:
        return _of_export(source, misfits)
    return _of_lines(source, misfits)


def _of_export(path: Path, misfits: Misfits) -> Documents:
    """The runs of the table that W&B's guide to exports makes: mappings as Python writes them."""
    documents = []
    for row in tables.read(path).rows:
        document: dict[str, Any] = {key: cell for key, cell in row.cells.items() if cell}
        for key in EXPORTED:
            try:
                document[key] = ast.literal_eval(_NAN.sub("'NaN'", str(document.get(key, "{}"))))
            except (ValueError, SyntaxError, RecursionError):
                misfits.add(row.place, f"{key} is not a mapping as Python writes it")
                document[key] = {}
        documents.append((row.place, document))
    return documents


def _of_lines(path: Path, misfits: Misfits) -> Documents:
    try:
        lines = path.read_bytes().decode("utf-8-sig").splitlines()
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}", "check the path") from None
    except UnicodeDecodeError as error:
        broken = path.read_bytes().count(b"\n", 0, error.start) + 1
        what = f"{path}:{broken} is not UTF-8 text ({error.reason})"
        raise UserError(what, "save the file as UTF-8") from None
    documents = []
    for line_number, line in enumerate(lines, start=1):
        place = f"{path.name}:{line_number}"
        if not line.strip():
            continue
        try:
            document = json.loads(line)
        except ValueError as error:
            misfits.add(place, f"is not JSON ({error}); write an object for each run on a line")
            continue
        if not isinstance(document, dict) or "config" not in document:
            misfits.add(place, "is not an object with config and summary")
            continue
        documents.append((place, document))
    return documents


def _of_folder(folder: Path, misfits: Misfits) -> Documents:
    documents: Documents = []
    for run in _run_folders(folder):
        files = run / "files"
        try:
            config = yaml.safe_load((files / "config.yaml").read_text(encoding="utf-8"))
            summary = json.loads((files / "wandb-summary.json").read_text(encoding="utf-8"))
        except FileNotFoundError as error:
            lacking = Path(error.filename).name
            what = f"has no files/{lacking}; upload it (wandb sync), and export the runs"
            misfits.add(run.name, what)
            continue
        except (OSError, ValueError, yaml.YAMLError) as error:
            misfits.add(run.name, f"cannot be read: {error}")
            continue
        document = {"id": run.name.rpartition("-")[2], "config": config, "summary": summary}
        documents.append((run.name, document))
    return documents


# ------------------------------------------------------------------------------- one run


@dataclass
class _Reading:
    """One source being read."""

    mapped: Mapped
    measures: Measures
    states: Mapping[str, State]
    misfits: Misfits
    left_out: int = 0

    def leave_out(self) -> None:
        """Count a run that had not ended and has reported nothing."""
        self.left_out += 1

    def run(self, place: str, document: dict[str, Any], folder: Path) -> PastRun | None:
        """The run of a document; None if it is broken."""
        config = self._object(place, document, "config")
        summary = self._object(place, document, "summary")
        if config is None or summary is None:
            return None
        word = document.get("state")
        state = self._state(place, word)
        run = PastRun(place, self._params(place, config), state)
        name = document.get("id", document.get("name"))
        run.name = None if name is None else str(name)
        history = self._history(place, document, folder)
        run.curve = self._curve(place, history)
        metrics = self.measures.renamed(_numbers(cells.flat(summary)))
        if state is not State.FAILED:
            run.values = self.measures.values_in(metrics)
            self._explain(place, cells.flat(summary))
        if run.values is None and run.curve and state is State.COMPLETE:
            run.values = self.measures.values_in(run.curve[max(run.curve)])
        if not run.curve and run.values is not None:
            run.curve[1.0] = metrics
        run.started = cells.seconds(document.get("created_at"))
        took = cells.number(summary.get("_runtime"))
        if run.started is not None and took is not None:
            run.ended = run.started + took
        return run

    def _explain(self, place: str, summary: Mapping[str, Any]) -> None:
        """Note a metric that is there and not a number."""
        for theirs in self.measures.metrics.values():
            value = summary.get(theirs)
            if value is not None and cells.number(value) is None:
                self.misfits.add(place, f"{theirs} is {value!r}, which is not a number")

    def _object(self, place: str, document: dict[str, Any], key: str) -> dict[str, Any] | None:
        """A part of a document that is an object, or the text of one, as some exports have it."""
        part = document.get(key) or {}
        if isinstance(part, str):
            try:
                part = json.loads(part)
            except ValueError:
                part = None
        if not isinstance(part, dict):
            self.misfits.add(place, f"{key} is not an object")
            return None
        return part

    def _state(self, place: str, word: Any) -> State:
        if word is None:
            return State.COMPLETE
        try:
            return cells.state(word, self.states)
        except ValueError as error:
            self.misfits.add(place, f"state: {error}")
            return State.FAILED

    def _params(self, place: str, config: Mapping[str, Any]) -> dict[str, Any]:
        """The parameters of a run, without what W&B keeps for itself."""
        own = {name: _value(part) for name, part in config.items() if not name.startswith("_")}
        known = {name: value for name, value in cells.flat(own).items() if value is not None}
        params, lacking = cells.chosen(known, self.mapped.params)
        for name in lacking:
            if name not in cells.flat(own):
                self.misfits.add(place, f"config has no {name}; {nearest(name, known)}")
        return params

    def _history(
        self, place: str, document: Mapping[str, Any], folder: Path
    ) -> list[tuple[str, Any]]:
        """The rows of a run's history, with their places."""
        rows = document.get("history")
        if rows is None and isinstance(document.get("history_file"), str):
            file = folder / document["history_file"]
            try:
                lines = file.read_text(encoding="utf-8").splitlines()
                rows = [json.loads(line) for line in lines if line.strip()]
            except (OSError, ValueError) as error:
                self.misfits.add(place, f"history_file {file.name} cannot be read: {error}")
        rows = [] if rows is None else rows
        if not isinstance(rows, list):
            self.misfits.add(place, "history is not a list of objects")
            return []
        return [(f"{place}, history[{i}]", row) for i, row in enumerate(rows)]

    def _curve(self, place: str, history: list[tuple[str, Any]]) -> dict[float, dict[str, float]]:
        """The metrics by step, of those rows that have the metric."""
        curve: dict[float, dict[str, float]] = {}
        resource = self.measures.resource or RESOURCE
        before = -1.0
        for where, row in history:
            at = cells.number(row.get(resource)) if isinstance(row, dict) else None
            if at is None:
                self.misfits.add(where, f"has no number {resource}: give it with --resource")
                continue
            if not at > before:
                what = f"{resource} is {at:g} after {before:g}; within a run it must rise"
                self.misfits.add(where, what)
                continue
            before = at
            metrics = self.measures.renamed(_numbers(cells.flat(row)))
            metrics.pop(resource, None)
            if any(name in metrics for name in self.measures.metrics):
                curve[at] = metrics
        return curve


def _value(part: Any) -> Any:
    """A part of a config: W&B's files hold each value beside a description."""
    is_wrapped = isinstance(part, dict) and "value" in part and part.keys() <= {"value", "desc"}
    return part["value"] if is_wrapped else part


def _numbers(metrics: Mapping[str, Any]) -> dict[str, float]:
    """The numbers among metrics, without W&B's own; W&B writes one that is not finite as text."""
    found = {}
    for name, value in metrics.items():
        own = name.startswith("_") and name != RESOURCE
        if own or (isinstance(value, str) and value not in _NOT_FINITE):
            continue
        number = None if value is None else cells.number(value)
        if number is not None:
            found[name] = number
    return found


_NOT_FINITE = ("NaN", "Infinity", "-Infinity")
