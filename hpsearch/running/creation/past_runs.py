"""Past runs of another program: the columns that they are read from, what does not fit, the space
that they searched, and how they are written as a study of their own.

The space is inferred from the values of the runs, which go into the database in one transaction.
"""

import math
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from hpsearch.domain.facts import ErrorKind
from hpsearch.domain.history import History
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import ReportRecord, StudyRecord, StudyState, Trial
from hpsearch.errors import UserError
from hpsearch.store.store import Store
from hpsearch.study_file.models import Objective
from hpsearch.study_file.parameters import Parameter
from hpsearch.study_file.reading import IMPORTED, space_in
from hpsearch.study_file.space import Space, distribution_of, from_optuna
from hpsearch.study_file.starters.draft import flow
from hpsearch.study_file.types import is_number, key_of
from trials.running.reported import MOST_RESOURCE

MOST_SHOWN = 10  # problems that are listed; the others are counted
WIDE = 100.0
"""Positive numbers are taken to have been searched on a logarithmic scale where the largest is more
than so many times the smallest."""
_HEAD = "# Past runs that were imported. Use them as evidence of a new study: search.warm_start\n"


@dataclass(slots=True)
class PastRun:
    """One run of a source."""

    place: str  # the row or trial that it is read from, for errors
    params: dict[str, Any]
    state: State  # its state; running or queued if it has not ended
    values: tuple[float, ...] | None = None
    """One value for each objective; None if it has no result."""
    curve: dict[float, dict[str, float]] = field(default_factory=dict)
    """The metrics by step, rising."""
    name: str | None = None
    error_kind: ErrorKind | None = None
    error_text: str | None = None
    started: float | None = None  # seconds since the epoch
    ended: float | None = None  # seconds since the epoch
    distributions: dict[str, BaseDistribution] | None = None
    """The distribution that each parameter was drawn from, where it is known."""


@dataclass(slots=True)
class PastRuns:
    """All runs of a source."""

    kind: str  # the kind of source, such as `Optuna`
    source: str  # the source, without passwords
    objectives: tuple[Objective, ...]  # the metrics that runs are compared by
    runs: list[PastRun]
    notes: list[str] = field(default_factory=list)
    """Remarks for a person, such as how many runs were left out."""

    @property
    def steps(self) -> float:
        """The steps that runs have trained at most; 1 where they have no curves."""
        return max((step for run in self.runs for step in run.curve), default=1.0)


Problems = dict[str, str]
"""Parts of a source that do not fit, by their places, and how to mend each. Reading goes on, so
that one error can list all of them."""


def _refuse(problems: Problems, source: str) -> None:
    if not problems:
        return
    lines = [f"  {place}: {what}" for place, what in problems.items()]
    if len(lines) > MOST_SHOWN:
        lines[MOST_SHOWN:] = [f"  and {len(lines) - MOST_SHOWN} more"]
    head = f"{len(problems)} problems in {source}; nothing was imported:"
    raise UserError("\n".join([head, *lines]))


@dataclass(frozen=True, slots=True)
class Mapped:
    """The columns of a source, each named by an option of the command line."""

    params: Mapping[str, str] = field(default_factory=dict)
    """The column of each parameter; empty for all."""
    metric: Mapping[str, str] = field(default_factory=dict)  # the column of each objective
    direction: tuple[str, ...] = ()  # `minimize` or `maximize`, for each objective
    run: str | None = None  # the column that names a run
    state: str | None = None  # the column with the state of a run
    study: str | None = None  # the study in a storage of Optuna's

    @property
    def objectives(self) -> tuple[Objective, ...]:
        """As a study file states them. Raises UserError if the metric or direction is wrong."""
        if not self.metric:
            what = "no metric is named to compare the runs by"
            raise UserError(what, "name the metric: --metric NAME, or --metric NAME=COLUMN")
        if len(self.direction) != len(self.metric):
            what = f"{len(self.metric)} metrics and {len(self.direction)} directions are given"
            hint = "--direction minimize or --direction maximize for each --metric, in its order"
            raise UserError(what, hint)
        for word in self.direction:
            if word not in ("minimize", "maximize"):
                raise UserError(f"--direction {word}: must be minimize or maximize")
        named = zip(self.metric, self.direction, strict=True)
        pairs = [{"metric": metric, "direction": direction} for metric, direction in named]
        return tuple(Objective.model_validate(pair) for pair in pairs)


def pairs(option: str, texts: Iterable[str]) -> dict[str, str]:
    """The names and columns of `lr=learning_rate,depth`, which may be given in several parts.
    Raises UserError if a part is not such a pair, or a name appears twice."""
    found: dict[str, str] = {}
    text = ",".join(texts)
    for part in text.split(",") if text else ():
        ours, equals, theirs = (piece.strip() for piece in part.partition("="))
        theirs = theirs if equals else ours
        if not ours or not theirs:
            raise UserError(f'{option} "{text}": write NAME=COLUMN, or NAME where both are alike')
        if ours in found:
            raise UserError(f'{option} "{text}": {ours} appears twice')
        found[ours] = theirs
    return found


def finish(found: PastRuns, problems: Problems) -> None:
    """Bring runs to an end, and check what every source must hold to.

    A run whose result is not finite, or its last report where it has no result, has failed. A run
    that has not ended is pruned, or left out if it has reported nothing. Raises UserError if
    something does not fit, or there is no run.
    """
    kept = [run for run in found.runs if run.state.terminal or run.curve]
    if len(kept) < len(found.runs):
        left_out = len(found.runs) - len(kept)
        found.notes.append(f"{left_out} unfinished runs without a report were left out")
    found.runs = kept
    if not kept:
        _refuse(problems, found.source)
        what = f"{found.source} holds no run that has ended or reported; nothing was imported"
        raise UserError(what, "check that it is the right source")
    places: dict[str, str] = {}
    for run in kept:
        for level in run.curve:
            if level > MOST_RESOURCE:
                problems.setdefault(run.place, f"reports at step {level:g}, above 2**53")
        _end(run)
        if run.state is State.COMPLETE and run.values is None:
            wanted = ", ".join(objective.metric for objective in found.objectives)
            problems.setdefault(run.place, f"is complete and has no {wanted}")
        if run.name is not None:
            first = places.setdefault(run.name, run.place)
            if first != run.place:
                what = f"{run.name} occurs twice, first at {first}; remove one"
                problems.setdefault(run.place, what)
    _refuse(problems, found.source)


def _end(run: PastRun) -> None:
    if not run.state.terminal:
        run.state = State.PRUNED
    if run.state is State.FAILED:
        run.error_kind = ErrorKind.ERROR
        run.values = None
    elif not all(map(math.isfinite, _last_values(run))):
        run.state = State.FAILED
        run.error_kind = ErrorKind.DIVERGED
        run.error_text = "its result is not a finite number"
        run.values = None


def _last_values(run: PastRun) -> Iterable[float]:
    if run.values is not None:
        return run.values
    return run.curve[max(run.curve)].values() if run.curve else ()


def inferred(runs: Sequence[PastRun]) -> dict[str, Parameter]:
    """The space that runs searched.

    A parameter has the distribution that all runs drew it from, where that is known. Else it is an
    int or a float between its smallest and largest value, or categorical if any value is not a
    number. Mixed whole and other numbers become floats, in the runs too. Raises UserError if a
    study cannot search a parameter.
    """
    names = dict.fromkeys(name for run in runs for name in run.params)
    if not names:
        raise UserError("the runs have no parameters", "name them: --params NAME=COLUMN,...")
    stated = {}
    for name in names:
        having = [run for run in runs if name in run.params]
        stated[name] = _drawn(name, having) or _seen(name, having)
        if stated[name]["type"] == "float":
            for run in having:
                run.params[name] = float(run.params[name])
    space, problems = space_in(stated)
    if problems:
        found = "; ".join(f"{problem.where}: {problem.what}" for problem in problems)
        hint = "leave the parameter out with --params"
        raise UserError(f"the parameters cannot be searched as they are: {found}", hint)
    return space


def _drawn(name: str, runs: Sequence[PastRun]) -> dict[str, Any] | None:
    """A parameter by its distribution; None if that is not known, or differs between runs."""
    drawn = [run.distributions[name] for run in runs if run.distributions]
    if not drawn or any(each != drawn[0] for each in drawn):
        return None
    return parameter_of(drawn[0])


def _seen(name: str, runs: Sequence[PastRun]) -> dict[str, Any]:
    values = [run.params[name] for run in runs]
    if not all(map(is_number, values)):
        choices = list({(type(value), key_of(value)): value for value in values}.values())
        if all(isinstance(each, str) for each in choices):
            choices = sorted(choices)
        return {"type": "categorical", "choices": choices}
    low, high = min(values), max(values)
    log = {"log": True} if low > 0 and high / low > WIDE else {}
    if all(isinstance(value, int) for value in values):
        return {"type": "int", "low": low, "high": high, **log}
    return {"type": "float", "low": float(low), "high": float(high), **log}


def parameter_of(distribution: BaseDistribution) -> dict[str, Any]:
    """A parameter of a study file from a distribution."""
    if isinstance(distribution, CategoricalDistribution):
        choices = list(map(from_optuna, distribution.choices))
        return {"type": "categorical", "choices": choices}
    assert isinstance(distribution, FloatDistribution | IntDistribution)
    is_whole = isinstance(distribution, IntDistribution)
    bounds = {"low": distribution.low, "high": distribution.high}
    stated = {"type": "int" if is_whole else "float", **bounds}
    if distribution.log:
        stated["log"] = True
    if distribution.step is not None and not (is_whole and distribution.step == 1):
        stated["step"] = distribution.step
    return stated


def lines(space: Mapping[str, Parameter], runs: Sequence[PastRun]) -> list[str]:
    """The space as a study file states it, for a person to check: a line for each parameter."""
    found = []
    for name, parameter in space.items():
        having = sum(name in run.params for run in runs)
        some = f"  # in {having} of {len(runs)} runs" if having < len(runs) else ""
        found.append(f"  {flow(name)}: {flow(_stated(parameter))}{some}")
    return found


def _stated(parameter: Parameter) -> dict[str, Any]:
    # As JSON, so that tuples are lists.
    stated = parameter.model_dump(mode="json", exclude_unset=True, exclude_defaults=True)
    return {"type": parameter.type, **stated}


def write(store: Store, found: PastRuns, name: str, space: Space) -> None:
    """Write past runs, which searched a space, as a finished study of a name, all or nothing. One
    without a curve has one report, at its end. Raises StudyExists if the name is taken."""
    now = time.time()
    record = StudyRecord(
        id=0,
        name=name,
        spec=_text(found, name, space),
        directions=tuple(objective.direction for objective in found.objectives),
        state=StudyState.FINISHED,
        reason=f"imported from {found.kind}: {found.source}",
        created=now,
        ended=now,
    )
    history = History(record)
    drawn = {parameter: distribution_of(each) for parameter, each in space.items()}
    for number, run in enumerate(found.runs):
        named = {} if run.name is None else {"imported_as": run.name}
        trial = Trial(
            number=number,
            state=run.state,
            params=dict(run.params),
            distributions=run.distributions or {each: drawn[each] for each in run.params},
            error_kind=run.error_kind,
            error_text=run.error_text,
            created=run.started or run.ended or now,
            started=run.started,
            ended=run.ended,
            user_attrs={**named, "imported_from": run.place},
        )
        _measure(trial, run, found)
        history.add_trial(trial)
    store.create_study(history.study, history.drain())


def _measure(trial: Trial, run: PastRun, found: PastRuns) -> None:
    metrics = [objective.metric for objective in found.objectives]
    curve = dict(run.curve)
    if not curve and run.values is not None:
        curve[found.steps] = dict(zip(metrics, run.values, strict=True))
    for step, measured in curve.items():
        finite = {name: value for name, value in measured.items() if math.isfinite(value)}
        value = finite.get(metrics[0])
        created = run.ended or trial.created
        report = ReportRecord(trial.number, step, value, finite, created=created)
        trial.reports[step] = report
    trial.resource = max(trial.reports, default=0.0)
    if run.values is not None:
        trial.value = run.values[0]
        trial.values = None if len(run.values) == 1 else list(run.values)
    elif run.state is State.PRUNED and len(metrics) == 1:
        known = [report.value for report in trial.reports.values() if report.value is not None]
        sign = found.objectives[0].sign
        trial.value = min(known, key=lambda value: sign * value, default=None)


def _text(found: PastRuns, name: str, space: Space) -> str:
    """The text that stands for the study file: no driver can resume it, as it has no task."""
    place = Path(found.source)
    source = str(place.absolute()) if place.exists() else found.source
    measured = [objective.model_dump() for objective in found.objectives]
    document = {
        "study": name,
        IMPORTED: {"from": found.kind, "source": source},
        "space": {each: _stated(parameter) for each, parameter in space.items()},
        "objective": measured[0] if len(measured) == 1 else measured,
        "budget": {"trials": len(found.runs), "per_trial": {"steps": int(found.steps)}},
    }
    return _HEAD + yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=10_000)
