"""Past runs into the database: a study of their own, in one transaction."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from hpsearch.bridges.past_runs import PastRun, PastRuns
from hpsearch.domain.history import History
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import ReportRecord, StudyRecord, StudyState, Trial
from hpsearch.errors import UserError
from hpsearch.store.store import Store
from hpsearch.study_file import imported
from hpsearch.study_file.models import Parameter
from hpsearch.study_file.space import distribution_of
from trials.contract import Unit
from trials.running import report_grid


@dataclass(frozen=True, slots=True)
class Destination:
    """The study that past runs become.

    Attributes:
        name: Its name.
        space: The space that it searched.
        unit: The unit of its resources.
        task: The kind of its task, for `warm_start: auto`; None if it is not known.
    """

    name: str
    space: dict[str, Parameter]
    unit: Unit
    task: str | None = None


def write(store: Store, found: PastRuns, destination: Destination) -> None:
    """Write past runs as a finished study, all or nothing.

    A run without a curve has one report, at the end: at the full budget if it is complete.

    Args:
        store: The database.
        found: The runs, which fit `destination.space`.
        destination: The study.

    Raises:
        StudyExists: The name is taken.
    """
    now = time.time()
    total = max(found.resources, default=1.0)
    history = History(_record(found, destination, total, now))
    drawn_from = {name: distribution_of(each) for name, each in destination.space.items()}
    for number, run in enumerate(found.runs):
        named = {} if run.name is None else {"imported_as": run.name}
        trial = Trial(
            number=number,
            state=run.state,
            params=dict(run.params),
            distributions=run.distributions or {name: drawn_from[name] for name in run.params},
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
    place = Path(found.source)
    source = str(place.absolute()) if place.exists() else found.source
    origin: dict[str, Any] = {"from": found.kind, "source": source}
    if destination.task is not None:
        origin["task"] = destination.task
    budget = {"trials": len(found.runs), "per_trial": _per_trial(destination.unit, total)}
    spec = imported.text_of(destination.name, origin, destination.space, found.objectives, budget)
    return StudyRecord(
        id=0,
        name=destination.name,
        spec=spec,
        directions=tuple(objective.direction for objective in found.objectives),
        state=StudyState.FINISHED,
        reason=f"imported from {found.kind}: {found.source}",
        created=now,
        ended=now,
        step_scale=_step_scale(found),
    )


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


def unit_of(found: PastRuns, stated: Unit | None) -> Unit:
    """The unit of resources: as stated, else steps if all are whole numbers, else epochs.

    Raises:
        UserError: A resource is not whole, and the stated unit wants whole numbers.
    """
    fractions = [resource for resource in found.resources if not resource.is_integer()]
    if stated is None:
        return Unit.EPOCHS if fractions else Unit.STEPS
    if fractions and report_grid.is_whole(stated):
        what = f"a run has a report at {fractions[0]:g} {stated.value}, and these are whole numbers"
        raise UserError(what, "state another unit, such as --unit epochs")
    return stated
