"""A study for each way that a page on it can look: hardly begun, large, with very long names, and
so on. They are records in a database; nothing is trained."""

import random
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Any

from hpsearch.domain.facts import ErrorKind
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import StudyState, Trial
from hpsearch.store.store import Store
from support.studies.reported import (
    PARAMS,
    RATE,
    SPACE,
    a_trial,
    ordinary,
    ordinary_trials,
    save,
    spec_of,
)
from trials.contract import Finding, Severity

LONG = "an_unbroken_name_of_a_thing_that_somebody_generated_" * 3
RIGHT_TO_LEFT = "معدل التعلم الأولي للنموذج اللغوي"
EMOJI = "🔥🦙 dropout 👩‍👩‍👧‍👦"
LEASE_S = 1e5


def nothing_yet(url: str) -> str:
    """A study whose first trial has not begun."""
    spec = spec_of("nothing-yet", SPACE)
    return save(url, "nothing-yet", [], spec, state=StudyState.RUNNING, reason=None)


def failures_only(url: str) -> str:
    """A study in which every trial failed, for one of two causes."""
    causes = [
        {"error_kind": ErrorKind.OUT_OF_MEMORY, "error_text": "CUDA out of memory: 2.00 GiB"},
        {"error_kind": ErrorKind.ERROR, "error_text": "Traceback:\n  x\nKeyError: 'label'"},
    ]
    trials = [a_trial(n, State.FAILED, PARAMS[n], None, **causes[n % 2]) for n in range(6)]
    reason = "6 trials failed one after another"
    spec = spec_of("failures-only", SPACE)
    return save(url, "failures-only", trials, spec, state=StudyState.FAILED, reason=reason)


def one_trial(url: str) -> str:
    """A study of a single trial."""
    trials = [a_trial(0, State.COMPLETE, PARAMS[0], 0.7)]
    return save(url, "one-trial", trials, spec_of("one-trial", SPACE))


def running(url: str) -> str:
    """A study that a driver works on: some trials are complete, most are paused, two run."""
    trials = ordinary_trials(24)
    trials += [a_trial(n, State.RUNNING, PARAMS[n], 0.5) for n in (24, 25)]
    trials.append(a_trial(26, State.QUEUED, PARAMS[26], None))
    _move(trials, time.time() - 60 - max(trial.created for trial in trials))
    spec = spec_of("running", SPACE)
    save(url, "running", trials, spec, state=StudyState.RUNNING, reason=None)
    with closing(Store.open(url)) as store:
        store.acquire(store.load("running").study.id, "driver", LEASE_S)
    return "running"


def long_names(url: str) -> str:
    """A study whose names and texts are long, without spaces, from right to left, and of emoji."""
    metric = f"{LONG}metric"
    space: dict[str, Any] = {
        f"{LONG}rate": RATE,
        RIGHT_TO_LEFT: {"type": "float", "low": 0.0, "high": 1.0},
        EMOJI: {"type": "categorical", "choices": [f"{LONG}{end}" for end in "abc"]},
        "optimizer.parameters.groups.0.betas.1": {"type": "int", "low": 1, "high": 3},
    }
    trials = []
    for number in range(20):
        params = {
            f"{LONG}rate": 10 ** (-4 + number / 12),
            RIGHT_TO_LEFT: number / 20,
            EMOJI: f"{LONG}{'abc'[number % 3]}",
            "optimizer.parameters.groups.0.betas.1": 1 + number % 3,
        }
        if number % 6 == 5:
            more = {"error_kind": ErrorKind.ERROR, "error_text": f"RuntimeError: {LONG * 3}"}
            trials.append(a_trial(number, State.FAILED, params, None, **more))
            continue
        trial = a_trial(number, State.COMPLETE, params, number / 30)
        trial.attempts[0].worker = f"{LONG}{number % 2}"
        trial.findings = [Finding(LONG, RIGHT_TO_LEFT * 4, Severity.WARNING)]
        _rename(trial, {"accuracy": metric})
        trials.append(trial)
    name = f"{LONG}{EMOJI}"
    objective = {"metric": metric, "direction": "maximize"}
    spec = spec_of(name, space, objective=objective)
    return save(url, name, trials, spec, reason=f"{LONG} {RIGHT_TO_LEFT}", packages={LONG: LONG})


def many_parameters(url: str) -> str:
    """A study of forty parameters."""
    names = [f"block_{n // 8}.layer_{n % 8}.rate" for n in range(40)]
    chance = random.Random(1)
    trials = []
    for number in range(60):
        params = {name: 10 ** chance.uniform(-4, -1) for name in names}
        value = 0.8 - abs(params[names[3]] - 0.01) - 2 * abs(params[names[11]] - 0.02)
        trials.append(a_trial(number, State.COMPLETE, params, value))
    spec = spec_of("many-parameters", dict.fromkeys(names, RATE))
    return save(url, "many-parameters", trials, spec)


def several_objectives(url: str) -> str:
    """A study of three objectives."""
    chance = random.Random(2)
    directions = ("maximize", "minimize", "minimize")
    metrics = ("accuracy", "latency", "memory_gb")
    trials = []
    for number in range(40):
        large = chance.random()
        values = [0.5 + 0.4 * large - 0.1 * chance.random(), 5 + 60 * large, 1 + 9 * large]
        trial = a_trial(number, State.COMPLETE, PARAMS[number], values[0], values=values)
        for report in trial.reports.values():
            report.metrics = dict(zip(metrics, values, strict=True))
        trials.append(trial)
    goals = [
        {"metric": metric, "direction": direction}
        for metric, direction in zip(metrics, directions, strict=True)
    ]
    search = {"sampler": "random", "pruner": "none"}
    spec = spec_of("several-objectives", SPACE, objective=goals, search=search)
    return save(url, "several-objectives", trials, spec, directions=directions)


def confirmed(url: str) -> str:
    """A study with a confirmed winner."""
    return ordinary(url, "confirmed")


LOOKS: dict[str, Callable[[str], str]] = {
    "nothing": nothing_yet,
    "failures": failures_only,
    "one": one_trial,
    "running": running,
    "long": long_names,
    "many": many_parameters,
    "several": several_objectives,
    "confirmed": confirmed,
}
"""What writes each of them to a database, and gives its name."""


def save_all(url: str, looks: Sequence[str] = tuple(LOOKS)) -> dict[str, str]:
    """Write studies to a database; the name of each."""
    return {look: LOOKS[look](url) for look in looks}


def _move(trials: Sequence[Trial], seconds: float) -> None:
    """Move all that happened to trials in time."""
    for trial in trials:
        trial.created += seconds
        trial.started = None if trial.started is None else trial.started + seconds
        trial.ended = None if trial.ended is None else trial.ended + seconds
        for attempt in trial.attempts:
            attempt.started += seconds
            attempt.ended = None if attempt.ended is None else attempt.ended + seconds
        for report in trial.reports.values():
            report.created += seconds


def _rename(trial: Trial, names: dict[str, str]) -> None:
    """Give the metrics of a trial's reports other names."""
    for report in trial.reports.values():
        report.metrics = {names.get(key, key): value for key, value in report.metrics.items()}
