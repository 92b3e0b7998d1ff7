"""A copy of a study in a stock Optuna storage, for whatever reads Optuna's tables.

The study is written through Optuna's public interface, one transaction a trial. An attribute says
of which study it is a copy, so that a copy can be replaced and nothing else ever is.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import optuna
from optuna.exceptions import ExperimentalWarning, StorageInternalError
from optuna.storages import RDBStorage
from optuna.trial import FrozenTrial, TrialState
from sqlalchemy import URL, create_engine, inspect
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import NullPool

from hpsearch.domain.records import StudyRecord, Trial
from hpsearch.errors import StoreUnreachable, StudyExists, UserError
from hpsearch.optuna_storage.view import directions_of, freeze
from hpsearch.store.connecting.url import display, parse_url, refuse_in_memory
from hpsearch.store.contents import FETCHED
from hpsearch.store.study_texts import metrics_in

OURS = "hpsearch:"
"""Begins the names of attributes for what Optuna has no place for."""
SOURCE = f"{OURS}source"
"""An attribute of a copy: the study that it is a copy of."""
EXAMPLE = "--to sqlite:///optuna.db"


def write(record: StudyRecord, trials: Iterable[Trial], to: str, *, replace: bool) -> int:
    """Copy a study into an Optuna storage, under its own name. `to` is the URL of an SQLite or
    PostgreSQL database, new or with an Optuna storage in it. Returns the number of its trials.

    Raises:
        StudyExists: The storage has a study of that name that is not to be replaced, or is not a
            copy of this one.
        UserError: `to` is not such a URL, or Optuna refuses a trial.
        StoreUnreachable: The database cannot be used.
    """
    url = parse_url(to)
    refuse_in_memory(url, EXAMPLE)
    with _optuna_quiet(url):
        _refuse_place(url)
        storage = RDBStorage(url.render_as_string(hide_password=False))
        try:
            _remove_earlier(storage, record, url, replace=replace)
            return _copy(storage, record, trials)
        finally:
            storage.remove_session()
            storage.engine.dispose()


def _refuse_place(url: URL) -> None:
    """Refuse databases that no Optuna storage may be in."""
    tables = inspect(create_engine(url, poolclass=NullPool)).get_table_names()
    if "attempts" in tables:
        what = f"{display(url)} is a database of hpsearch, and Optuna needs one of its own"
        raise UserError(what, f"name another one: {EXAMPLE}")


def _remove_earlier(storage: RDBStorage, study: StudyRecord, url: URL, *, replace: bool) -> None:
    """Remove an earlier copy of the study."""
    name, shown = study.name, display(url)
    if name not in optuna.get_all_study_names(storage):
        return
    attributes = optuna.load_study(study_name=name, storage=storage).user_attrs
    if attributes.get(SOURCE) != _source(study):
        what = f"{shown} already has a study {name}, which is not a copy of this one"
        remove = f"optuna delete-study --study-name {name} --storage {shown}"
        raise StudyExists(what, f"name another database, or remove it: {remove}")
    if not replace:
        what = f"{shown} already has a copy of the study {name}"
        raise StudyExists(what, "bring it up to date with --force, which replaces it")
    optuna.delete_study(study_name=name, storage=storage)


def _source(study: StudyRecord) -> str:
    return study.uid or f"{study.name} of {study.created:.3f}"


def _copy(storage: RDBStorage, record: StudyRecord, trials: Iterable[Trial]) -> int:
    study = optuna.create_study(
        study_name=record.name, storage=storage, directions=directions_of(record)
    )
    study_file = {f"{OURS}study_file": record.spec} if record.spec else {}
    for key, value in {SOURCE: _source(record), **record.user_attrs, **study_file}.items():
        study.set_user_attr(key, value)
    metrics = metrics_in(record.spec)
    if len(metrics) == len(record.directions):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ExperimentalWarning)
            study.set_metric_names(metrics)
    number = 0
    for number, trial in enumerate(trials, start=1):
        if number % FETCHED == 0:  # a study of Optuna keeps all that is added through it
            study = optuna.load_study(study_name=record.name, storage=storage)
        try:
            study.add_trial(copy_of(record, trial))
        except ValueError as error:
            what = f"Optuna does not take trial {trial.number}: {error}"
            hint = "CSV and Parquet files hold all trials: hpsearch export --to trials.parquet"
            raise UserError(what, hint) from error
    return number


def copy_of(study: StudyRecord, trial: Trial) -> FrozenTrial:
    """A trial as a stock Optuna storage keeps it, with what Optuna has no place for as attributes.

    The constraints of a trial are where Optuna looks for them. Samplers' notes that are made for
    this program's storage are left out.
    """
    frozen = freeze(study, trial)
    frozen.user_attrs = {**trial.user_attrs, **_facts(trial)}
    attributes = frozen.system_attrs.items()
    frozen.system_attrs = {key: each for key, each in attributes if not key.startswith(OURS)}
    # Optuna asks for dates even of a trial that never began.
    if frozen.state is not TrialState.WAITING and frozen.datetime_start is None:
        frozen.datetime_start = datetime.fromtimestamp(trial.created)
    if frozen.state.is_finished() and frozen.datetime_complete is None:
        frozen.datetime_complete = frozen.datetime_start
    return frozen


def _facts(trial: Trial) -> dict[str, Any]:
    """Facts of a trial that Optuna's tables have no columns for."""
    error = None if trial.error_kind is None else f"{trial.error_kind}: {trial.error_text}"
    facts = {
        "state": trial.state.value,
        "role": trial.role.value,
        "seed": trial.seed,
        "gpu_seconds": round(trial.gpu_seconds, 3),
        "attempts": len(trial.attempts),
        "repeats": trial.repeats,
        "error": error,
    }
    return {OURS + name: value for name, value in facts.items() if value is not None}


@contextmanager
def _optuna_quiet(url: URL) -> Iterator[None]:
    """Optuna says nothing itself, and what it refuses is said in the words of this program."""
    shown = display(url)
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        yield
    except RuntimeError as error:  # another version of Optuna made its tables
        what = f"{shown} cannot be used by this version of Optuna: {error}"
        raise StoreUnreachable(what, f"optuna storage upgrade --storage {shown}") from error
    except (SQLAlchemyError, StorageInternalError) as error:
        reason = str(error.__cause__ or error).splitlines()[0]
        what = f"{shown} cannot be used as an Optuna storage: {reason}"
        raise StoreUnreachable(what, f"name a new file, such as {EXAMPLE}") from error
    finally:
        optuna.logging.set_verbosity(before)
