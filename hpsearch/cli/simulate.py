"""`hpsearch simulate`: what a study would have found on recorded curves, without training anything."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

from hpsearch import simulation, spec_file
from hpsearch.cli.output import TreeFormat, emit_json, emit_yaml, note, room, show
from hpsearch.errors import UserError
from hpsearch.executors.curve_file import Recorded, load_curves
from hpsearch.executors.recorded import RecordedCurves
from hpsearch.pareto import pareto_front
from hpsearch.records import History, StudyState, Trial
from hpsearch.selection import Ranked, rank
from hpsearch.spec import StudySpec
from hpsearch.views import tables
from hpsearch.views.numbers import count, duration


def simulate(
    study: Path, curves: Path, workers: int | str | None, seed: int | None, top: int, format_: TreeFormat
) -> None:
    """Run a study file's search on a table of curves, and print the best configurations and what they cost.

    Raises:
        UserError: Mistakes in the study file, the table or the arguments, or a study that finds nothing.
    """
    spec = spec_file.load(study, inspect_data=False)
    spec = spec if seed is None else spec.model_copy(update={"seed": seed})
    recorded = load_curves(curves, spec)
    side_by_side = _workers(spec, workers)
    for line in _remarks(recorded, spec):
        note(f"{curves}: {line}")
    gpus = 1.0 if spec.resources.gpu == "auto" else float(spec.resources.gpu)
    history = simulation.simulate(spec, recorded.curves, side_by_side, gpus=gpus)
    if history.study.state is StudyState.FAILED:
        raise UserError(f"the simulated study {spec.study} gave up: {history.study.reason}")
    if len(spec.objectives) > 1:
        ranked = pareto_front(history.trials, [objective.direction for objective in spec.objectives])
    else:
        ranked = rank(history.trials, spec.objective.direction)[:top]
    found = summary(spec, history, recorded.curves, side_by_side)
    if format_ is TreeFormat.TABLE:
        names = [objective.metric for objective in spec.objectives] if len(spec.objectives) > 1 else ["value"]
        show(tables.best(_as_recorded(ranked, recorded.curves), room(), names), *_lines(found, recorded))
        return
    plain = {**found, "best": [as_plain(each, recorded.curves) for each in ranked]}
    emit_yaml(plain) if format_ is TreeFormat.YAML else emit_json(plain)


def _workers(spec: StudySpec, asked_for: int | str | None) -> int:
    """How many slots there are: as asked for, or as the study file says; one where it leaves that open."""
    wanted = spec.resources.workers if asked_for is None else asked_for
    if isinstance(wanted, int):
        return wanted
    note("one worker, because the study file does not say how many: choose with --workers")
    return 1


def _remarks(recorded: Recorded, spec: StudySpec) -> list[str]:
    remarks = []
    if recorded.too_short:
        total, unit = spec.budget.per_trial.total, spec.budget.per_trial.unit.value
        remarks.append(
            f"{count(recorded.too_short, 'configuration')} left out, recorded for less than {total:g} {unit}"
        )
    if not recorded.timed:
        remarks.append(f"has no column seconds: each of the {spec.budget.per_trial.unit.value} takes one second")
    return remarks


def summary(spec: StudySpec, history: History, curves: RecordedCurves, workers: int) -> dict[str, Any]:
    """What the study did and what it cost.

    `saved_by_pruning` is the share of the time that all its trials would have taken in full and did not take.
    """
    spent = sum(trial.gpu_seconds for trial in history.trials)
    in_full = sum(curves.seconds(trial.params, spec.budget.per_trial.total) for trial in history.trials)
    trained = sum(_trained_s(trial) for trial in history.trials)
    return {
        "study": spec.study,
        "seed": spec.seed,
        "workers": workers,
        "ended": history.study.reason,
        "trials": {state.value: n for state, n in sorted(Counter(t.state for t in history.trials).items())},
        "configurations_used": curves.taken,
        "wall_clock_s": history.study.active_seconds,
        "gpu_hours": spent / 3600,
        "saved_by_pruning": 1 - trained / in_full if in_full else 0.0,
    }


def _trained_s(trial: Trial) -> float:
    """Seconds that a trial held a worker."""
    return sum(attempt.ended - attempt.started for attempt in trial.attempts if attempt.ended is not None)


def as_plain(ranked: Ranked[Trial], curves: RecordedCurves) -> dict[str, Any]:
    """A trial in its place, as plain values; `recorded` is the configuration that stood for what was proposed."""
    trial = ranked.trial
    return {
        "number": trial.number,
        "state": trial.state.value,
        "value": ranked.value,
        "values": trial.values,
        "violation": trial.violation,
        "recorded": dict(curves.recorded(trial.params)),
        "params": dict(trial.params),
        "resource": trial.resource,
        "gpu_seconds": trial.gpu_seconds,
        "confirmed": None if ranked.confirmed is None else asdict(ranked.confirmed),
        "tied": ranked.tied,
    }


def _as_recorded(ranked: list[Ranked[Trial]], curves: RecordedCurves) -> list[Ranked[Trial]]:
    """The trials under the configurations that were measured, for people to read."""
    for each in ranked:
        each.trial.params = dict(curves.recorded(each.trial.params))
    return ranked


def _lines(found: dict[str, Any], recorded: Recorded) -> list[str]:
    states = ", ".join(f"{n} {state}" for state, n in found["trials"].items())
    more = sum(found["trials"].values()) > recorded.configurations
    used = f"{found['configurations_used']} of {recorded.configurations} recorded configurations tried"
    used += "; the table has run out, so that trials share them" if more else ""
    time = f"{duration(found['wall_clock_s'])} on {count(found['workers'], 'worker')}"
    return [
        "",
        f"{count(sum(found['trials'].values()), 'trial')} ({states}); {used}",
        f"{time}, {found['gpu_hours']:.3g} GPU-hours; pruning saved {found['saved_by_pruning']:.0%} of full training",
        f"ended because: {found['ended']}",
    ]
