"""`hpsearch best`: the best configurations, to read or to train again."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from sqlalchemy import Connection

from hpsearch.cli.opening import chosen_study, reading
from hpsearch.cli.output import Format, emit, emit_yaml, note, room, show
from hpsearch.errors import UserError
from hpsearch.selection import Ranked
from hpsearch.store.queries import StudyHead, TrialRow, best_trials, trial_rows
from hpsearch.views import tables
from hpsearch.views.gain import gain

_DATA_SUFFIXES = frozenset({".csv", ".tsv", ".parquet", ".json", ".jsonl"})


def best(name: str | None, top: int | None, where: str | None, format_: Format, storage: str) -> None:
    """Print the best trials, best first; as YAML, the settings that train them.

    With several objectives these are the trials that no other one beats in all of them.

    Raises:
        UserError: The settings of the best were asked for, and no trial has a value.
    """
    with reading(storage) as connection:
        study = chosen_study(connection, name)
        ranked = best_trials(connection, study, top, where=where)
        gained = gained_by(connection, study)
    nothing = f"no trial of {study.name} has a value yet" + (" among those that --where selects" if where else "")
    if format_ is Format.YAML:
        if not ranked:
            raise UserError(nothing, f"see how it goes: hpsearch status {study.name}")
        emit_yaml(*(settings(study, each.trial) for each in ranked))
    elif format_ is not Format.TABLE:
        emit([as_plain(study.name, each) for each in ranked], format_)
    elif ranked:
        show(tables.best(ranked, room(), objectives(study)))
        if gained is not None and where is None:
            note(gained)
    else:
        note(nothing)


def gained_by(connection: Connection, study: StudyHead) -> str | None:
    """What the study gained over the default settings, in a sentence; None where nothing tells."""
    default = trial_rows(connection, study, where="role = 'default'", limit=1)
    first = best_trials(connection, study, 1) if default and study.has_best else []
    if not first:
        return None
    objective = study.written.get("objective")
    metric = objective.get("metric", "value") if isinstance(objective, dict) else "value"
    return gain(first[0], default[0], str(metric), study.direction)


def as_plain(study: str, ranked: Ranked[TrialRow]) -> dict[str, Any]:
    """A trial in its place, as plain values."""
    trial = ranked.trial
    return {
        "study": study,
        "number": trial.number,
        "state": trial.state.value,
        "value": ranked.value,
        "values": None if trial.values is None else list(trial.values),
        "violation": trial.violation,
        "params": dict(trial.params),
        "resource": trial.resource,
        "seed": trial.seed,
        "gpu_seconds": trial.gpu_seconds,
        "cost": trial.cost,
        "checkpoint": trial.checkpoint,
        "confirmed": None if ranked.confirmed is None else asdict(ranked.confirmed),
        "tied": ranked.tied,
    }


def objectives(study: StudyHead) -> list[str]:
    """The names of a study's objectives: their metrics, or numbers where no study file tells."""
    if len(study.directions) == 1:
        return ["value"]
    written = study.written.get("objective")
    if isinstance(written, list):
        return [str(each["metric"]) for each in written]
    return [f"value {i}" for i in range(len(study.directions))]


def settings(study: StudyHead, trial: TrialRow) -> dict[str, Any]:
    """What `python -m trials` needs to train a trial's configuration, from any folder.

    Raises:
        UserError: The study was not made from a study file.
    """
    spec = study.written
    if "task" not in spec:
        hint = "print the parameters with --format json"
        raise UserError(f"study {study.name} was not made from a study file, so it has no task to train", hint)
    return {
        "task": {key: _absolute(value, study.base) for key, value in spec["task"].items()},
        "settings": {**(spec.get("settings") or {}), **trial.params},
        "budget": {"per_trial": spec["budget"]["per_trial"]},
        "seed": trial.seed,
    }


def _absolute(value: Any, base: str | None) -> Any:
    """A task's path made absolute; whatever names no file in the study's folder stays as it is."""
    if base is None or not isinstance(value, str):
        return value
    path = Path(base) / value
    return str(path) if path.suffix in _DATA_SUFFIXES or path.exists() else value
