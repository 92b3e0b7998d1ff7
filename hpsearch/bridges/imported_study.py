"""Past runs as a study of their own: the space that they searched, and how they are written.

The space is stated by a study file, or inferred from the values of the runs. The runs go into the
database in one transaction.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import yaml
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from hpsearch.bridges.draft import flow
from hpsearch.bridges.past_runs import Misfits, PastRun, PastRuns
from hpsearch.domain.history import History
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import ReportRecord, StudyRecord, StudyState, Trial
from hpsearch.errors import UserError
from hpsearch.store.store import Store
from hpsearch.study_file.parameters import CategoricalParameter, IntParameter, Parameter
from hpsearch.study_file.reading import IMPORTED, space_in
from hpsearch.study_file.space import Space, distribution_of, problems_with
from hpsearch.study_file.types import is_number, same
from trials.contract import Unit
from trials.running import report_grid

WIDE = 100.0
"""Positive numbers are taken to have been searched on a logarithmic scale where the largest is more
than so many times the smallest."""
_HEAD = "# Past runs that were imported. Use them as evidence of a new study: search.warm_start\n"


@dataclass(frozen=True, slots=True)
class Destination:
    """The study that past runs become. The kind of its task is for `warm_start: auto`; it is None
    if it is not known."""

    name: str
    space: Mapping[str, Parameter]
    unit: Unit
    task: str | None = None


# -------------------------------------------------------------------------------------- its space


def fit(runs: Sequence[PastRun], space: Space, misfits: Misfits) -> None:
    """Give the parameters of runs the types of a stated space, and note those that lie outside."""
    for run in runs:
        for name, value in run.params.items():
            if name in space:
                run.params[name] = _typed(space[name], value)
        for problem in problems_with(space, run.params):
            misfits.add(run.place, f"{problem.where}: {problem.what}")


def _typed(parameter: Parameter, value: Any) -> Any:
    """A value as the parameter has it: 32 for 32.0, and a choice for its text."""
    if isinstance(parameter, CategoricalParameter):
        if any(same(value, choice) for choice in parameter.choices):
            return value
        by_text = {str(choice).lower(): choice for choice in parameter.choices}
        return by_text.get(str(value).lower(), value)
    if isinstance(parameter, IntParameter) and isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def inferred(runs: Sequence[PastRun]) -> dict[str, Parameter]:
    """The space that runs searched.

    A parameter is what its distributions say, where the source knows them. Else it is an int or a
    float between its smallest and largest value, or categorical if any value is not a number. Mixed
    whole and other numbers become floats, in the runs too. Raises UserError if a study cannot
    search a parameter.
    """
    names = dict.fromkeys(name for run in runs for name in run.params)
    if not names:
        raise UserError("the runs have no parameters", "name them: --params NAME=COLUMN,...")
    written: dict[str, Any] = {}
    for name in names:
        having = [run for run in runs if name in run.params]
        drawn = [run.distributions[name] for run in having if run.distributions]
        written[name] = drawn_from(name, drawn) if drawn else _seen(name, having)
        if written[name]["type"] == "float":
            for run in having:
                run.params[name] = float(run.params[name])
    space, problems = space_in(written)
    if problems:
        lines = "; ".join(f"{problem.where}: {problem.what}" for problem in problems)
        hint = "leave the parameter out with --params, or state the space with --space"
        raise UserError(f"the parameters cannot be searched as they are: {lines}", hint)
    return space


def _seen(name: str, runs: Sequence[PastRun]) -> dict[str, Any]:
    values = [run.params[name] for run in runs]
    if not all(map(is_number, values)):
        choices = _different(values)
        if all(isinstance(each, str) for each in choices):
            choices = sorted(choices)
        return {"type": "categorical", "choices": choices}
    low, high = min(values), max(values)
    log = {"log": True} if low > 0 and high / low > WIDE else {}
    if all(isinstance(value, int) for value in values):
        return {"type": "int", "low": low, "high": high, **log}
    return {"type": "float", "low": float(low), "high": float(high), **log}


def _different(values: Iterable[Any]) -> list[Any]:
    different: list[Any] = []
    for value in values:
        if not any(same(value, each) for each in different):
            different.append(value)
    return different


def drawn_from(name: str, drawn: Sequence[BaseDistribution]) -> dict[str, Any]:
    """A parameter, as a study file writes it, that holds all distributions that it was drawn from.
    Raises UserError if it is categorical in some and a number in others."""
    categorical = [each for each in drawn if isinstance(each, CategoricalDistribution)]
    ranges = [each for each in drawn if isinstance(each, FloatDistribution | IntDistribution)]
    if categorical and ranges:
        what = f"{name} is categorical in some runs and a number in others"
        raise UserError(what, "leave it out: --params names those to keep")
    if categorical:
        choices = _different(choice for each in categorical for choice in each.choices)
        return {"type": "categorical", "choices": choices}
    low, high = min(each.low for each in ranges), max(each.high for each in ranges)
    whole = all(isinstance(each, IntDistribution) for each in ranges)
    written: dict[str, Any] = {"type": "int" if whole else "float", "low": low, "high": high}
    if all(each.log for each in ranges):
        written["log"] = True
    step = ranges[0].step
    is_same = all(each == ranges[0] for each in ranges)
    if is_same and step is not None and not (whole and step == 1):
        written["step"] = step
    return written


def lines(space: Mapping[str, Parameter], runs: Sequence[PastRun]) -> list[str]:
    """The space as a study file states it, for a person to check: a line for each parameter."""
    found = []
    for name, parameter in space.items():
        having = sum(name in run.params for run in runs)
        some = f"  # in {having} of {len(runs)} runs" if having < len(runs) else ""
        found.append(f"  {flow(name)}: {flow(_as_written(parameter))}{some}")
    return found


def _as_written(parameter: Parameter) -> dict[str, Any]:
    """A parameter as a study file has it, without what is the default."""
    # As JSON, so that tuples are lists.
    written = parameter.model_dump(mode="json", exclude_unset=True, exclude_defaults=True)
    return {"type": parameter.type, **written}


def unit_of(found: PastRuns, stated: Unit | None) -> Unit:
    """The unit of resources: as stated, else steps if all are whole numbers, else epochs. Raises
    UserError if a resource is not whole, and the stated unit wants whole numbers."""
    fractions = [resource for resource in found.resources if not resource.is_integer()]
    if stated is None:
        return Unit.EPOCHS if fractions else Unit.STEPS
    if fractions and report_grid.is_whole(stated):
        what = f"a run has a report at {fractions[0]:g} {stated.value}, and these are whole numbers"
        raise UserError(what, "state another unit, such as --unit epochs")
    return stated


# -------------------------------------------------------------------------------------- its records


def write(store: Store, found: PastRuns, destination: Destination) -> None:
    """Write past runs, which fit the space of their destination, as a finished study, all or
    nothing.

    A run without a curve has one report, at the end: at the full budget if it is complete. Raises
    StudyExists if the name is taken.
    """
    now = time.time()
    total = max(found.resources, default=1.0)
    history = History(_record(found, destination, total, now))
    drawn = {name: distribution_of(each) for name, each in destination.space.items()}
    for number, run in enumerate(found.runs):
        named = {} if run.name is None else {"imported_as": run.name}
        trial = Trial(
            number=number,
            state=run.state,
            params=dict(run.params),
            distributions=run.distributions or {name: drawn[name] for name in run.params},
            error_kind=run.error_kind,
            error_text=run.error_text,
            created=run.started or run.ended or now,
            started=run.started,
            ended=run.ended,
            user_attrs={**named, "imported_from": run.place},
        )
        _measure(trial, run, found, total)
        history.add_trial(trial)
    store.create_study(history.study, history.drain())


def _measure(trial: Trial, run: PastRun, found: PastRuns, total: float) -> None:
    metrics = [objective.metric for objective in found.objectives]
    curve = dict(run.curve)
    if not curve and run.values is not None:
        curve[total] = dict(zip(metrics, run.values, strict=True))
    for resource, measured in curve.items():
        finite = {name: value for name, value in measured.items() if math.isfinite(value)}
        value = finite.get(metrics[0])
        created = run.ended or trial.created
        report = ReportRecord(trial.number, resource, value, finite, created=created)
        trial.reports[resource] = report
    trial.resource = max(trial.reports, default=0.0)
    if run.values is not None:
        trial.value = run.values[0]
        trial.values = None if len(run.values) == 1 else list(run.values)
    elif run.state is State.PRUNED and len(metrics) == 1:
        known = [report.value for report in trial.reports.values() if report.value is not None]
        best = min if found.objectives[0].direction == "minimize" else max
        trial.value = best(known, default=None)


def _record(found: PastRuns, destination: Destination, total: float, now: float) -> StudyRecord:
    return StudyRecord(
        id=0,
        name=destination.name,
        spec=_text(found, destination, total),
        directions=tuple(objective.direction for objective in found.objectives),
        state=StudyState.FINISHED,
        reason=f"imported from {found.kind}: {found.source}",
        created=now,
        ended=now,
        step_scale=_step_scale(found),
    )


def _text(found: PastRuns, destination: Destination, total: float) -> str:
    """The text that stands for the study file: no driver can resume it, as it has no task."""
    place = Path(found.source)
    source = str(place.absolute()) if place.exists() else found.source
    origin = {"from": found.kind, "source": source}
    if destination.task is not None:
        origin["task"] = destination.task
    measured = [objective.model_dump() for objective in found.objectives]
    per_trial = _per_trial(destination.unit, total)
    document = {
        "study": destination.name,
        IMPORTED: origin,
        "space": {name: _as_written(each) for name, each in destination.space.items()},
        "objective": measured[0] if len(measured) == 1 else measured,
        "budget": {"trials": len(found.runs), "per_trial": per_trial},
    }
    return _HEAD + yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=10_000)


def _step_scale(found: PastRuns) -> float:
    """The power of ten by which resources are multiplied, so that Optuna's whole steps tell them
    apart."""
    resources = sorted({0.0, *found.resources})
    smallest = min((above - below for below, above in pairwise(resources)), default=1.0)
    digits = math.ceil(-math.log10(smallest))
    return float(10 ** min(max(digits, 0), report_grid.DIGITS))


def _per_trial(unit: Unit, total: float) -> dict[str, float]:
    length = int(total) if report_grid.is_whole(unit) else total
    usual = report_grid.usual_interval(unit, total)
    if report_grid.problem_with_interval(unit, total, usual) is None:
        return {unit.value: length}
    return {unit.value: length, "report_every": total / 10}
