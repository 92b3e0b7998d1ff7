"""Past runs from a study in a storage of Optuna's: a database, or the file of a journal."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import create_engine, inspect
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from hpsearch.domain.lifecycle import State
from hpsearch.errors import UserError
from hpsearch.importing.columns import Mapped
from hpsearch.importing.runs import Measures, Misfits, PastRun, PastRuns, settle
from hpsearch.store.connecting.url import display
from trials.settings import nearest

if TYPE_CHECKING:
    import optuna
    from optuna.trial import FrozenTrial

_TABLES = ("studies", "study_directions", "trial_params", "version_info")
"""Some tables that Optuna's databases have, and those of other programs have not."""


def read(source: str, study: str | None, mapped: Mapped, misfits: Misfits) -> PastRuns:
    """Past runs from a study of Optuna's. Nothing is written to its storage.

    Args:
        source: A database URL, or the path of a journal.
        study: The study's name; not needed if it is the only one.
        mapped: Which parameters to keep, and what to call the objectives.
        misfits: Takes what does not fit.

    Raises:
        UserError: There is no such storage or study, or the options contradict it.
    """
    storage, shown = _storage(source)
    loaded = _study(storage, study, shown)
    measures = _measures(loaded, mapped)
    trials = loaded.get_trials(deepcopy=False)
    left_out = 0

    def leave_out() -> None:
        nonlocal left_out
        left_out += 1

    place = f"study {loaded.study_name}"
    runs = []
    for trial in trials:
        run = _run(trial, f"{place}, trial {trial.number}", measures, mapped.params, misfits)
        if settle(run, leave_out):
            runs.append(run)
    found = PastRuns("Optuna", f"{place} in {shown}", measures.objectives, runs)
    if left_out:
        found.notes.append(f"{left_out} unfinished trials without a report were left out")
    if any("constraints" in trial.system_attrs for trial in trials):
        found.notes.append("the trials have constraints, which are not imported")
    return found


def is_journal(path: Path) -> bool:
    """Whether a file is one of Optuna's journals: lines of JSON with an operation each."""
    try:
        with path.open(encoding="utf-8") as file:
            first = json.loads(file.readline(1_000_000))
    except (OSError, ValueError):
        return False
    return isinstance(first, dict) and "op_code" in first


def _storage(source: str) -> tuple[optuna.storages.BaseStorage, str]:
    """The storage, and what to call it."""
    from optuna.storages import JournalStorage, RDBStorage
    from optuna.storages.journal import JournalFileBackend

    if "://" not in source:
        return JournalStorage(JournalFileBackend(source)), source
    try:
        url = make_url(source)
        shown = display(url)
    except ArgumentError:
        raise UserError(f"{source.partition('@')[0]} is not the URL of a database") from None
    _refuse_others(url, shown)
    try:
        return RDBStorage(source, skip_table_creation=True), shown
    except (RuntimeError, SQLAlchemyError) as error:
        what = f"Optuna cannot read {shown}: {error}"
        raise UserError(what, "an older database needs: optuna storage upgrade") from None


def _refuse_others(url: URL, shown: str) -> None:
    """Refuse a database that Optuna did not make, which it would fill with its tables."""
    file = url.database
    if url.get_backend_name() == "sqlite" and (not file or not Path(file).is_file()):
        raise UserError(f"there is no database at {shown}", "check the path in the URL")
    try:
        engine = create_engine(url)
        names = inspect(engine).get_table_names()
        engine.dispose()
    except (SQLAlchemyError, ImportError) as error:
        first_line = str(error).partition("\n")[0]
        raise UserError(f"{shown} cannot be read: {first_line}") from None
    if not all(name in names for name in _TABLES):
        what = f"{shown} is not a database of Optuna's"
        if "attempts" in names:
            what += ": it is one of hpsearch, whose studies warm_start can name as they are"
        raise UserError(what)


def _study(
    storage: optuna.storages.BaseStorage, name: str | None, shown: str
) -> optuna.study.Study:
    import optuna

    names = optuna.get_all_study_names(storage)
    if not names:
        raise UserError(f"{shown} has no studies")
    if name is None and len(names) > 1:
        hint = f"name one with --study: {', '.join(names[:20])}"
        raise UserError(f"{shown} has {len(names)} studies", hint)
    if name is not None and name not in names:
        raise UserError(f"{shown} has no study {name}; {nearest(name, names)}")
    return optuna.load_study(study_name=name or names[0], storage=storage)


def _measures(study: optuna.study.Study, mapped: Mapped) -> Measures:
    """The objectives, by the names that are given, or that the study has, or usual ones."""
    directions = tuple(direction.name.lower() for direction in study.directions)
    several = len(directions) > 1
    usual = [f"value_{i}" for i in range(len(directions))] if several else ["value"]
    names = list(mapped.metric or study.metric_names or usual)
    if len(names) != len(directions):
        what = f"the study has {len(directions)} objectives, and {len(names)} are named"
        raise UserError(what, "give one --metric for each, in the study's order")
    if mapped.direction is not None and tuple(mapped.direction) != directions:
        raise UserError(
            f"the study's direction is {', '.join(directions)}", "leave --direction out"
        )
    return Measures({name: name for name in names}, directions)


def _run(
    trial: FrozenTrial,
    place: str,
    measures: Measures,
    wanted: Mapping[str, str] | None,
    misfits: Misfits,
) -> PastRun:
    names = _kept(trial, wanted)
    state = _STATES[trial.state.name]
    run = PastRun(place, {ours: trial.params[theirs] for ours, theirs in names.items()}, state)
    run.distributions = {ours: trial.distributions[theirs] for ours, theirs in names.items()}
    run.name = f"trial {trial.number}"
    first = next(iter(measures.metrics))
    steps = sorted(trial.intermediate_values.items())
    run.curve = {float(step): {first: float(value)} for step, value in steps}
    if trial.state.name == "COMPLETE":
        run.values = _finite_count(trial.values, place, len(measures.metrics), misfits)
    reason = trial.system_attrs.get("fail_reason")
    run.error_text = None if reason is None else str(reason)
    run.started = None if trial.datetime_start is None else trial.datetime_start.timestamp()
    ended = trial.datetime_complete
    run.ended = None if ended is None else ended.timestamp()
    return run


_STATES = {
    "COMPLETE": State.COMPLETE,
    "PRUNED": State.PRUNED,
    "FAIL": State.FAILED,
    "RUNNING": State.RUNNING,
    "WAITING": State.QUEUED,
}


def _kept(trial: FrozenTrial, wanted: Mapping[str, str] | None) -> dict[str, str]:
    """Optuna's names of the parameters that are kept, by ours."""
    if wanted is None:
        return {name: name for name in trial.params}
    return {ours: theirs for ours, theirs in wanted.items() if theirs in trial.params}


def _finite_count(
    values: Sequence[Any] | None, place: str, count: int, misfits: Misfits
) -> tuple[float, ...] | None:
    if values is None or len(values) != count:
        have = 0 if values is None else len(values)
        misfits.add(place, f"is complete with {have} values for {count} objectives")
        return None
    return tuple(map(float, values))
