"""Past runs from a study in a database of Optuna's."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution
from optuna.exceptions import StorageInternalError
from optuna.storages import BaseStorage, RDBStorage
from optuna.trial import FrozenTrial
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from hpsearch.bridges.optuna.write import SOURCE
from hpsearch.bridges.past_runs import Mapped, PastRun, PastRuns
from hpsearch.domain.lifecycle import State
from hpsearch.errors import UserError
from hpsearch.optuna_storage.view import FROM_OPTUNA
from hpsearch.store.connecting.url import display
from hpsearch.study_file.expressions.meaning import nested_in
from hpsearch.study_file.space import in_optuna, value_of
from trials.settings import nearest

UNPOOLED = {"poolclass": NullPool}
"""For a storage of Optuna's, which cannot be closed: each connection is, after its use."""


def read(source: str, mapped: Mapped) -> PastRuns:
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


def objectives_of(study: optuna.study.Study) -> tuple[list[str], tuple[str, ...]]:
    """The names and directions of a study's objectives, with usual names for those without."""
    directions = tuple(direction.name.lower() for direction in study.directions)
    usual = ["value"] if len(directions) == 1 else [f"value_{i}" for i in range(len(directions))]
    return list(study.metric_names or usual), directions


def _measured(study: optuna.study.Study, mapped: Mapped) -> Mapped:
    """The mapping, with the study's objectives unless it names some."""
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
    """A study in the database of a URL, and the URL for people. Raises UserError if there is no
    such storage or study."""
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
        return RDBStorage(source, UNPOOLED, skip_table_creation=True), shown
    except (RuntimeError, SQLAlchemyError, StorageInternalError, ImportError) as error:
        first_line, _, _ = str(error.__cause__ or error).partition("\n")
        what = f"{shown} cannot be read as a database of Optuna's: {first_line}"
        raise UserError(what, "an older one needs: optuna storage upgrade") from None
