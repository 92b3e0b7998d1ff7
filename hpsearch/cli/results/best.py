"""`hpsearch best`: the best configurations, to read or to train again."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import RenderableType
from sqlalchemy import Connection

from hpsearch.cli.opening import chosen_study, viewing
from hpsearch.cli.output import Format, emit, emit_yaml, note, show, terminal_width
from hpsearch.cli.results.watching import Watched, watch
from hpsearch.errors import UserError
from hpsearch.ranking.selection import Ranked
from hpsearch.store.reading.provenance import recorded_arithmetic
from hpsearch.store.reading.queries import (
    StudyHead,
    TrialRow,
    best_trials,
    seen_at,
)
from hpsearch.store.reading.trust import StudyTrust, study_trust
from hpsearch.study_file import space as spaces
from hpsearch.study_file.reading import space_in
from hpsearch.terminal import tables
from hpsearch.terminal.answer import luck, others
from hpsearch.words import trust
from hpsearch.words.answer import gained_by
from hpsearch.words.estimates import continued
from trials.checkpoints.folders import is_there
from trials.descriptions.builtin import BUILT_IN
from trials.descriptions.command import COMMAND
from trials.running.arithmetic import Arithmetic

RIVALS = 20
"""Trials that are looked at for those that cannot be told from the best."""

_DATA_SUFFIXES = frozenset({".csv", ".tsv", ".parquet", ".json", ".jsonl"})


def print_best(
    name: str | None,
    top: int | None,
    where: str | None,
    format_: Format,
    storage: str,
    *,
    why: bool = False,
) -> None:
    """Print the best trials, best first; as YAML, the settings that train them.

    With several objectives these are the trials that no other trial beats in all of them.

    Args:
        name: The study; None for the only one.
        top: How many; None for one, or the whole front.
        where: A --where expression.
        format_: How they are written.
        storage: The database's URL.
        why: Whether to say below the table how sure it is that the first one is the best.

    Raises:
        UserError: The settings of the best were asked for, and no trial has a value.
    """
    with viewing(storage) as connection:
        study = chosen_study(connection, name)
        ranked = best_trials(connection, study, top, where=where)
        at = seen_at(connection, study, ranked)
        gained = gained_by(connection, study)
        rungs = study_trust(connection, study)
        rivals = best_trials(connection, study, RIVALS) if why and study.has_best else []
        documents = []
        if format_ is Format.YAML:
            documents = [_training(connection, study, each.trial) for each in ranked]
    if format_ is Format.YAML:
        if not ranked:
            hint = f"see its progress: hpsearch status {study.name}"
            raise UserError(_nothing(study, where), hint)
        emit_yaml(*documents)
        return
    if format_ is not Format.TABLE:
        found = [as_plain(study.name, each, at.get(each.trial.number), rungs) for each in ranked]
        emit(found, format_)
        return
    if not ranked:
        note(_nothing(study, where))
        return
    show(tables.best(ranked, terminal_width(), objectives(study), at))
    if gained is not None and where is None:
        note(gained)
    caution = trust.caveat(rungs, in_full=why)
    if caution is not None:
        note(caution)
    for line in (luck(rivals[0]), others(rivals)) if rivals else ():
        note(line)
    if ranked[0].trial.continues is not None:
        note(_not_alone(ranked[0].trial))


def _not_alone(trial: TrialRow) -> str:
    """What to know of a trial that continues another one."""
    told = f"trial {trial.number} {continued(trial)}, under other parameters"
    return f"{told}: its parameters alone do not give its value, and it is not repeated"


def watch_best(
    name: str | None, top: int | None, where: str | None, format_: Format, storage: str
) -> None:
    """Print the best trials again whenever they change.

    Raises:
        UserError: They cannot be watched in this format.
    """

    def rows(connection: Connection, study: StudyHead) -> list[dict[str, Any]]:
        ranked = best_trials(connection, study, top, where=where)
        at = seen_at(connection, study, ranked)
        rungs = study_trust(connection, study)
        return [as_plain(study.name, each, at.get(each.trial.number), rungs) for each in ranked]

    def parts(connection: Connection, study: StudyHead) -> list[RenderableType]:
        ranked = best_trials(connection, study, top, where=where)
        at = seen_at(connection, study, ranked)
        return [tables.best(ranked, terminal_width(), objectives(study), at)]

    watch(Watched(rows, parts), name, format_, storage)


def _nothing(study: StudyHead, where: str | None) -> str:
    selected = " among those that --where selects" if where else ""
    return f"no trial of {study.name} has a value yet{selected}"


def as_plain(
    study: str, ranked: Ranked[TrialRow], at: float | None, rungs: StudyTrust
) -> dict[str, Any]:
    """A ranked trial as plain values, with the verdict on the least trusted rung of its study.

    Args:
        study: The study's name.
        ranked: The trial in its place.
        at: How far it had trained when it showed its value; None if that is not known.
        rungs: How far the rungs of its study can be trusted.
    """
    trial = ranked.trial
    weakest = rungs.weakest
    return {
        "study": study,
        "number": trial.number,
        "state": trial.state.value,
        "value": ranked.value,
        "seen_at": at,
        "expected": trial.expected,
        "expected_deviation": trial.expected_deviation,
        "expected_low": trial.expected_low,
        "expected_high": trial.expected_high,
        "values": None if trial.values is None else list(trial.values),
        "violation": trial.violation,
        "params": dict(trial.params),
        "resource": trial.resource,
        "continues": trial.continues,
        "continues_at": trial.continues_at,
        "seed": trial.seed,
        "gpu_seconds": trial.gpu_seconds,
        "cost": trial.cost,
        "checkpoint": trial.best_checkpoint or trial.checkpoint,
        "confirmed": None if ranked.confirmed is None else asdict(ranked.confirmed),
        "tied": ranked.tied,
        "unknown": ranked.unknown,
        "rung_verdict": None if weakest is None else weakest.verdict,
    }


def objectives(study: StudyHead) -> list[str]:
    """The names of a study's objectives: their metrics, or numbers where there is no study file."""
    if len(study.directions) == 1:
        return ["value"]
    written = study.written.get("objective")
    if isinstance(written, list):
        return [str(each["metric"]) for each in written]
    return [f"value {i}" for i in range(len(study.directions))]


def _training(connection: Connection, study: StudyHead, trial: TrialRow) -> dict[str, Any]:
    return settings(study, trial, recorded_arithmetic(connection, study, trial.number))


def settings(study: StudyHead, trial: TrialRow, recorded: Arithmetic | None) -> dict[str, Any]:
    """What `python -m trials` needs to train a trial's configuration, from any folder.

    Args:
        study: The study.
        trial: One of its trials.
        recorded: How the trial computed; None if that is not recorded.

    Raises:
        UserError: The study was not made from a study file.
    """
    spec = study.written
    if "task" not in spec:
        message = f"study {study.name} was not made from a study file, so it has no task to train"
        raise UserError(message, "print the parameters with --format json")
    fixed = spec.get("settings") or {}
    space, _ = space_in(spec.get("space"))
    # A training alone is measured in the same way as all trials of the study.
    known = BUILT_IN.get(spec["task"]["kind"])
    table = None if known is None else known.settings
    shared = spaces.largest(space, fixed, table)
    task = _from_any_folder(spec["task"], study.base)
    written = {
        "task": task,
        "settings": {**shared, **fixed, **trial.params},
        "objective": spec["objective"],
        "budget": {"per_trial": spec["budget"]["per_trial"]},
        "seed": trial.seed,
    }
    if trial.continues is not None:
        written["continues"] = {"trial": trial.continues, "at": trial.continues_at}
    if recorded is not None:
        written["arithmetic"] = recorded.as_plain()
    return written


def _from_any_folder(task: dict[str, Any], base: str | None) -> dict[str, Any]:
    """A task whose relative paths are found from any folder."""
    if base is not None and task["kind"] == COMMAND.kind:
        return {**task, "cwd": str(Path(base) / task.get("cwd", "."))}
    return {key: _absolute(value, base) for key, value in task.items()}


def _absolute(value: Any, base: str | None) -> Any:
    """A task's path made absolute; any other value stays as it is."""
    if base is None or not isinstance(value, str):
        return value
    path = Path(base) / value
    return str(path) if path.suffix in _DATA_SUFFIXES or is_there(path) else value
