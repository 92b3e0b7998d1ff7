"""Studies in storages of Optuna's: past runs from one, and a copy of a study into a stock storage,
for whatever reads Optuna's tables.

A copy is written through Optuna's public interface, one transaction a trial. An attribute says of
which study it is a copy, so that a copy can be replaced and nothing else ever is.
"""

import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution
from optuna.exceptions import ExperimentalWarning, StorageInternalError
from optuna.storages import BaseStorage, RDBStorage
from optuna.trial import FrozenTrial, TrialState
from sqlalchemy import URL, create_engine, inspect
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import StudyRecord, Trial
from hpsearch.errors import StoreUnreachable, StoreUnusable, StudyExists, UserError
from hpsearch.running.creation.past_runs import Mapped, PastRun, PastRuns, Problems
from hpsearch.store.connecting.url import connect_args, display, parse_url, refuse_in_memory
from hpsearch.store.contents import FETCHED
from hpsearch.store.optuna_storage.view import FROM_OPTUNA, directions_of, freeze
from hpsearch.store.study_texts import metrics_in
from hpsearch.study_file.space import in_optuna, value_of
from trials.descriptions.cells import nested_in
from trials.settings import nearest

OURS = "hpsearch:"  # begins the names of attributes for what Optuna has no place for
SOURCE = f"{OURS}source"  # an attribute of a copy: the study that it is a copy of
USUAL = "sqlite:///optuna.db"
EXAMPLE = f"--to {USUAL}"
UNPOOLED = {"poolclass": NullPool}
"""For a storage of Optuna's, which cannot be closed: each connection is, after its use."""


def past_runs(source: str, mapped: Mapped, problems: Problems) -> PastRuns:
    """Past runs from a study of Optuna's. Nothing is written to its storage. Raises UserError if
    there is no such storage or study, or the options contradict it."""
    study, shown = opened_study(source, mapped.study)
    mapped = _measured(study, mapped)
    trials = study.get_trials(deepcopy=False)
    is_copy = SOURCE in study.user_attrs
    runs = [_run(trial, study.study_name, mapped, is_copy=is_copy) for trial in trials]
    found = PastRuns("Optuna", f"study {study.study_name} in {shown}", mapped.objectives, runs)
    if any(0.0 in run.curve for run in runs):
        for run in runs:
            run.curve = {step + 1: metrics for step, metrics in run.curve.items()}
        found.notes.append("steps are counted from 0 there, and from 1 here")
    if any("constraints" in trial.system_attrs for trial in trials):
        found.notes.append("the trials have constraints, which are not imported")
    return found


def copy_study(
    record: StudyRecord, trials: Iterable[Trial], to: str, *, replace: bool
) -> tuple[int, str]:
    """As `write`, also into the usual place (`optuna`); the number of trials, and the place."""
    to = USUAL if to == "optuna" else to
    return write(record, trials, to, replace=replace), display(parse_url(to))


def objectives_of(study: optuna.study.Study) -> tuple[list[str], tuple[str, ...]]:
    """The names and directions of a study's objectives, with usual names for those without."""
    directions = tuple(direction.name.lower() for direction in study.directions)
    usual = ["value"] if len(directions) == 1 else [f"value_{i}" for i in range(len(directions))]
    return list(study.metric_names or usual), directions


def _measured(study: optuna.study.Study, mapped: Mapped) -> Mapped:
    names, directions = objectives_of(study)
    names = list(mapped.metric or names)
    if len(names) != len(directions):
        what = f"the study has {len(directions)} objectives, and {len(names)} are named"
        raise UserError(what, "give one --metric for each, in the study's order")
    if mapped.direction and mapped.direction != directions:
        what = f"the study's direction is {', '.join(directions)}"
        raise UserError(what, "leave --direction out")
    return replace(mapped, metric={name: name for name in names}, direction=directions)


def ours(distribution: BaseDistribution, *, is_copy: bool) -> BaseDistribution:
    """A distribution whose choices are in Optuna's terms. In a copy of a study of ours, texts that
    are lists or mappings stand for them."""
    if not isinstance(distribution, CategoricalDistribution):
        return distribution
    choices = list(distribution.choices)
    if is_copy:
        nested = list(map(nested_in, choices))
        choices = [a if b is None else b for a, b in zip(choices, nested, strict=True)]
    return CategoricalDistribution(list(map(in_optuna, choices)))


def _run(trial: FrozenTrial, study: str, mapped: Mapped, *, is_copy: bool) -> PastRun:
    drawn = {name: ours(each, is_copy=is_copy) for name, each in trial.distributions.items()}
    params = {}
    for name, value in trial.params.items():
        internal = trial.distributions[name].to_internal_repr(value)
        params[name] = value_of(drawn[name], internal)
    run = PastRun(
        f"study {study}, trial {trial.number}",
        _chosen(params, mapped),
        FROM_OPTUNA[trial.state],
        name=f"trial {trial.number}",
        distributions=_chosen(drawn, mapped),
    )
    first = next(iter(mapped.metric))
    steps = sorted(trial.intermediate_values.items())
    run.curve = {float(step): {first: float(value)} for step, value in steps}
    if run.state is State.COMPLETE:
        run.values = tuple(map(float, trial.values))
    run.error_text = trial.system_attrs.get("fail_reason")
    if trial.datetime_start is not None:
        run.started = trial.datetime_start.timestamp()
    if trial.datetime_complete is not None:
        run.ended = trial.datetime_complete.timestamp()
    return run


def _chosen(params: dict[str, Any], mapped: Mapped) -> dict[str, Any]:
    """The parameters that are kept, by our names: all if none are named."""
    if not mapped.params:
        return dict(params)
    return {ours: params[theirs] for ours, theirs in mapped.params.items() if theirs in params}


def opened_study(source: str, name: str | None) -> tuple[optuna.study.Study, str]:
    """A study in a database, and the URL for people. Raises UserError if there is none."""
    storage, shown = _storage(source)
    names = optuna.get_all_study_names(storage)
    if not names:
        raise UserError(f"{shown} has no studies")
    if name is None and len(names) > 1:
        raise UserError(f"{shown} has {len(names)} studies", f"name one: {', '.join(names[:20])}")
    if name is not None and name not in names:
        raise UserError(f"{shown} has no study {name}; {nearest(name, names)}")
    return optuna.load_study(study_name=name or names[0], storage=storage), shown


def _storage(source: str) -> tuple[BaseStorage, str]:
    try:
        url = make_url(source)
    except ArgumentError:
        raise UserError(f"{source.partition('@')[0]} is not the URL of a database") from None
    shown = display(url)
    if url.get_backend_name() == "sqlite" and not Path(url.database or "").is_file():
        raise UserError(f"there is no database at {shown}", "check the path in the URL")
    try:
        options = {**UNPOOLED, "connect_args": connect_args(url)}
        return RDBStorage(source, options, skip_table_creation=True), shown
    except (RuntimeError, SQLAlchemyError, StorageInternalError, ImportError) as error:
        first_line, _, _ = str(error.__cause__ or error).partition("\n")
        what = f"{shown} cannot be read as a database of Optuna's: {first_line}"
        raise UserError(what, "an older one needs: optuna storage upgrade") from None


def write(record: StudyRecord, trials: Iterable[Trial], to: str, *, replace: bool) -> int:
    """Copy a study into an Optuna storage, new or not, at the URL of an SQLite or PostgreSQL
    database, under its own name. Returns the number of its trials. Raises StudyExists for one of
    that name that is not to be replaced, or is no copy of this one, UserError if Optuna refuses a
    trial, and StoreUnreachable."""
    url = parse_url(to)
    refuse_in_memory(url, EXAMPLE)
    with _optuna_quiet(url):
        _refuse_place(url)
        options = {"connect_args": connect_args(url)}
        storage = RDBStorage(url.render_as_string(hide_password=False), options)
        try:
            _remove_earlier(storage, record, url, replace=replace)
            return _copy(storage, record, trials)
        finally:
            storage.remove_session()
            storage.engine.dispose()


def _refuse_place(url: URL) -> None:
    engine = create_engine(url, poolclass=NullPool, connect_args=connect_args(url))
    tables = inspect(engine).get_table_names()
    if "attempts" in tables:
        what = f"{display(url)} is a database of hpsearch, and Optuna needs one of its own"
        raise UserError(what, f"name another one: {EXAMPLE}")


def _remove_earlier(storage: RDBStorage, study: StudyRecord, url: URL, *, replace: bool) -> None:
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
    """A trial as a stock Optuna storage keeps it, its constraints where Optuna looks for them, and
    what it has no place for as attributes; without samplers' notes that are for this program
    alone."""
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
    shown = display(url)
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        yield
    except RuntimeError as error:  # another version of Optuna made its tables
        what = f"{shown} cannot be used by this version of Optuna: {error}"
        raise StoreUnusable(what, f"optuna storage upgrade --storage {shown}") from error
    except (SQLAlchemyError, StorageInternalError) as error:
        reason = str(error.__cause__ or error).splitlines()[0]
        what = f"{shown} cannot be used as an Optuna storage: {reason}"
        raise StoreUnreachable(what, f"name a new file, such as {EXAMPLE}") from error
    finally:
        optuna.logging.set_verbosity(before)
