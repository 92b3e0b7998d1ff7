"""Studies to report on, in a database: an ordinary one, one whose every text would like to be a
program, and one of each state that a study can be in."""

import math
from collections.abc import Sequence
from contextlib import closing
from typing import Any

import yaml

from hpsearch.domain.facts import ErrorKind, Role
from hpsearch.domain.history import Changes
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import (
    Attempt,
    Environment,
    Outcome,
    ReportRecord,
    StudyRecord,
    StudyState,
    Trial,
)
from hpsearch.store.store import Store
from trials.contract import Finding, Severity

EVIL = "<script>document.title='taken'</script><img src=x onerror=\"document.title='taken'\">"
NAME = "<img src=x onerror=\"document.title='taken'\">"
"""A hostile study's: without a slash, which no database may hold there."""
CLOSING = "</script></title></style></pre>"
MARKDOWN = "| a | b |\n# head `code` ``` [link](javascript:x) @someone **bold** $x$ <b>"
HOSTILE = (EVIL, CLOSING, MARKDOWN)

BEGAN = 1_790_000_000.0
EPOCHS = 9


def spec_of(name: str, space: dict[str, Any], **more: Any) -> str:
    """The text of a study file."""
    written = {
        "study": name,
        "seed": 1,
        "task": {"kind": "own_code:train"},
        "space": space,
        "objective": {"metric": "accuracy", "direction": "maximize"},
        "budget": {"trials": 40, "per_trial": {"epochs": EPOCHS}},
        **more,
    }
    return yaml.safe_dump(written, sort_keys=False, allow_unicode=True)


RATE = {"type": "float", "low": 1e-5, "high": 1e-1, "log": True}
SPACE: dict[str, Any] = {
    "learning_rate": RATE,
    "layers": {"type": "int", "low": 1, "high": 6},
    "optimizer": {"type": "categorical", "choices": ["adamw", "lion", "sgd"]},
}
PARAMS = [
    {
        "learning_rate": 10 ** (-5 + 4 * ((7 * n) % 40) / 40),
        "layers": 1 + n % 6,
        "optimizer": ("adamw", "lion", "sgd")[n % 3],
    }
    for n in range(40)
]


def a_trial(
    number: int, state: State, params: dict[str, Any], value: float | None, **more: Any
) -> Trial:
    """A trial with an attempt and reports, on one of two slots."""
    reached = {State.COMPLETE: 9, State.QUEUED: 0, State.RUNNING: 2}.get(state, 3)
    begin = BEGAN + 45.0 * (number // 2)
    seconds = 5.0 + 4.0 * reached
    made = Trial(number, state, params, value=value, resource=float(reached), created=begin)
    made.gpu_seconds = seconds
    if state is not State.QUEUED:
        is_live = state is State.RUNNING
        attempt = Attempt(number, 1, f"w{number % 2}", begin, start_up_seconds=4.0)
        attempt.ended = None if is_live else begin + seconds
        attempt.outcome = None if is_live else Outcome(state.value)
        attempt.gpu_seconds = 0.0 if is_live else seconds
        made.attempts = [attempt]
        made.started, made.ended = begin, attempt.ended
    for epoch in range(1, reached + 1):
        shown = None if value is None else value - 0.3 * (1 - epoch / reached)
        metrics = {"accuracy": math.nan if shown is None else shown}
        moment = begin + 5.0 + 4.0 * epoch
        made.reports[float(epoch)] = ReportRecord(
            number, float(epoch), shown, metrics, 1, epoch, 4.0 * epoch, moment
        )
    for name, content in more.items():
        setattr(made, name, content)
    return made


def ordinary_trials(amount: int = 40) -> list[Trial]:
    """Trials of which a third was trained in full, most were paused, and some failed."""
    trials = []
    for number, params in enumerate(PARAMS[:amount]):
        distance = abs(math.log10(params["learning_rate"]) + 3)
        value = 0.9 - 0.1 * distance - 0.01 * params["layers"]
        state = State.COMPLETE if number % 3 == 0 else State.PAUSED
        if number % 13 == 5:
            message = "Traceback (most recent call last):\n  x\nValueError: loss is nan"
            more = {"error_kind": ErrorKind.DIVERGED, "error_text": message}
            trials.append(a_trial(number, State.FAILED, params, None, **more))
            continue
        trials.append(a_trial(number, state, params, value))
    return trials


def repeats_of(best: Trial, first: int, values: Sequence[float]) -> list[Trial]:
    """Repeats of a trial with fresh seeds."""
    more = {"role": Role.CONFIRM, "repeats": best.number}
    return [
        a_trial(first + n, State.COMPLETE, best.params, value, **more)
        for n, value in enumerate(values)
    ]


def save(
    url: str,
    name: str,
    trials: Sequence[Trial],
    spec: str = "",
    directions: tuple[str, ...] = ("maximize",),
    state: StudyState = StudyState.FINISHED,
    **more: Any,
) -> str:
    """Write a study to a database; the study's name."""
    with closing(Store.open(url)) as store:
        reason = more.pop("reason", "all trials have ended")
        record = StudyRecord(0, name, spec, directions, state, reason, created=BEGAN)
        record.base = more.pop("base", None)
        record.checkpoints = more.pop("checkpoints", None)
        store.create_study(record)
        environment = Environment(
            BEGAN - 1.0, "abc", {"python": "3.11", **more.pop("packages", {})}, "CPU"
        )
        attempts = [attempt for trial in trials for attempt in trial.attempts]
        reports = [report for trial in trials for report in trial.reports.values()]
        changes = Changes(trials=list(trials), attempts=attempts, reports=reports)
        changes.environments.append(environment)
        store.commit(record.id, changes)
    return name


def ordinary(url: str, name: str = "flowers") -> str:
    """A study with a confirmed winner."""
    trials = ordinary_trials()
    best = max((t for t in trials if t.value is not None), key=lambda t: t.value or 0.0)
    trials += repeats_of(best, len(trials), [0.84, 0.85, 0.86])
    return save(url, name, trials, spec_of(name, SPACE))


def hostile(url: str) -> str:
    """A study whose every text is hostile: its name, parameters, categories, metric, errors,
    findings, slots, packages and study file."""
    space = {
        EVIL: {"type": "categorical", "choices": [EVIL, CLOSING, MARKDOWN]},
        MARKDOWN: RATE,
        CLOSING: {"type": "float", "low": 0.0, "high": 1.0},
        "javascript:alert(1)": {"type": "int", "low": 1, "high": 3},
    }
    trials = []
    for number in range(24):
        params = {
            EVIL: HOSTILE[number % 3],
            MARKDOWN: 10 ** (-4 + number / 12),
            CLOSING: number / 24,
            "javascript:alert(1)": 1 + number % 3,
        }
        failed = number % 8 == 7
        more: dict[str, Any] = {}
        if failed:
            more = {"error_kind": ErrorKind.ERROR, "error_text": HOSTILE[number % 3]}
        state = State.FAILED if failed else State.COMPLETE
        trial = a_trial(number, state, params, None if failed else number / 30, **more)
        trial.attempts[0].worker = f"{EVIL}{number % 2}"
        trial.findings = [Finding(EVIL, MARKDOWN, Severity.WARNING)]
        for report in trial.reports.values():
            report.metrics = {EVIL: report.value or 0.0}
        trials.append(trial)
    objective = {"metric": EVIL, "direction": "maximize"}
    spec = spec_of(NAME, space, objective=objective) + f"# {EVIL} {CLOSING}\n# ```\n"
    return save(url, NAME, trials, spec, reason=MARKDOWN, packages={EVIL: CLOSING})
