"""A running study: a panel that is redrawn on a terminal, and plain lines anywhere else."""

from __future__ import annotations

import shutil
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from textwrap import shorten
from typing import TYPE_CHECKING

from rich.console import Console, RenderableType
from rich.live import Live
from sqlalchemy import Connection

from hpsearch.domain.facts import Role
from hpsearch.domain.history import Changes
from hpsearch.domain.lifecycle import State
from hpsearch.domain.numbers import count, duration, in_unit, number, pairs
from hpsearch.domain.records import Trial
from hpsearch.errors import HpsearchError
from hpsearch.search.ranking.no_effect import FIRST_TRIALS, TrialReports, no_effect
from hpsearch.search.ranking.selection import leading
from hpsearch.store.reading.queries import StudyHead, find_study
from hpsearch.store.reading.status import StudyStatus, recent_decisions, study_status
from hpsearch.store.store import Store
from hpsearch.views.terminal.escapes import plain
from hpsearch.views.terminal.status import CHANGING, MOST_DECISIONS, panel
from hpsearch.views.words import counted, latest, on_the_way

if TYPE_CHECKING:
    from hpsearch.brain.study import Study

EVERY_S = 2.0  # seconds between two looks at the database
PLAIN_S = 30.0
"""Seconds between two lines of progress in plain output, beside the lines of trials that end."""
MOST_OF_AN_ERROR = 200
"""Letters of an error in the line of its trial; `hpsearch show` prints it whole."""
GOING_ON = (State.QUEUED, State.RUNNING)


def panel_of(
    connection: Connection, study: StudyHead, status: StudyStatus | None = None
) -> RenderableType:
    status = status or study_status(connection, study)
    decisions = recent_decisions(connection, study, CHANGING, MOST_DECISIONS)
    decided = latest(decisions, status.requests)
    return panel(status, decided, time.time(), shutil.get_terminal_size().lines)


class StudyPanel:
    """Draws the panel of a study that a driver of this process owns, whenever it is called."""

    def __init__(self, store: Store, name: str) -> None:
        self._store, self._name = store, name
        self._last: RenderableType = "starting ..."

    def __call__(self) -> RenderableType:
        """The panel; the last one while the database does not answer, or has no such study yet."""
        with suppress(HpsearchError), self._store.reading() as connection:
            self._last = panel_of(connection, find_study(connection, self._name))
        return self._last


class LiveView:
    """Watches a study from inside its driver, between ticks; if quiet, it prints nothing. On a
    terminal, what `draw` returns is shown, again and again, by a thread of its own."""

    def __init__(self, draw: Callable[[], RenderableType], *, quiet: bool = False) -> None:
        self._console = Console(file=sys.stderr, highlight=False)
        self._quiet = quiet
        self._live: Live | None = None
        if self._console.is_terminal and not quiet:
            rate = 1 / EVERY_S
            self._live = Live(get_renderable=draw, console=self._console, refresh_per_second=rate)
        self._progress_at = 0.0
        self._printed: dict[int, State] = {}
        self._first: tuple[float, int] | None = None
        """The time of the first tick, and the trials that had ended before it."""
        self._has_warned = False

    def __enter__(self) -> LiveView:
        if self._live is not None:
            self._live.__enter__()
        return self

    def __exit__(self, *exc: object) -> None:
        if self._live is not None:
            self._live.__exit__(None, None, None)

    def watch(self, study: Study, changes: Changes, now: float) -> None:
        self._first = self._first or (now, _ended(study))
        if self._quiet:
            return
        self._warn(study, changes)
        if self._live is not None:
            return
        self._print_ended(study, changes, self._first[0])
        if now - self._progress_at >= PLAIN_S:
            self._progress_at = now
            self._print(_progress(study, now, *self._first))

    def _warn(self, study: Study, changes: Changes) -> None:
        """Say once, while it can be mended at little cost, that parameters make no difference."""
        number = max((trial.number for trial in changes.trials), default=FIRST_TRIALS)
        if self._has_warned or number >= FIRST_TRIALS or not changes.reports:
            return
        trainings = []
        for trial in study.history.trials[:FIRST_TRIALS]:
            if trial.role.of_search:
                reports = {at: report.metrics for at, report in trial.reports.items()}
                trainings.append(TrialReports(trial.params, reports))
        objectives = [objective.metric for objective in study.spec.objectives]
        found = no_effect(trainings, objectives, study.spec.budget.per_trial.total)
        if found is not None:
            self._has_warned = True
            self._print(found.warning)

    def _print_ended(self, study: Study, changes: Changes, began: float) -> None:
        """Print a line for each trial that ended or paused in this tick, and one for all that
        ended because their study did. An earlier driver has printed what was so before it began."""
        left: Counter[State] = Counter()
        for trial in changes.trials:
            before = self._printed.get(trial.number)
            if trial.state in GOING_ON or trial.state is before:
                continue
            ended = trial.ended or (trial.attempts[-1].ended if trial.attempts else None)
            if ended is not None and ended < began:
                continue
            self._printed[trial.number] = trial.state
            if trial.left_as is not None:
                left[trial.left_as] += 1
            else:
                self._print(_line(study, trial, is_known=before is not None))
        if paused := left.pop(State.PAUSED, 0):
            trials = count(paused, "paused trial")
            self._print(f"{trials} not trained further: others looked better")
        if left:
            self._print(f"{count(left.total(), 'trial')} that waited not trained: the study ended")

    def _print(self, line: str) -> None:
        self._console.print(plain(line), soft_wrap=True)


def _ended(study: Study) -> int:
    return sum(trial.state not in GOING_ON for trial in study.history.trials)


def _line(study: Study, trial: Trial, *, is_known: bool) -> str:
    at = in_unit(trial.ended_at, study.spec.budget.per_trial.unit.value)
    line = f"trial {trial.number} {trial.state.value} at {at}: {_values(study, trial)}"
    if not is_known:
        line += f", {pairs(trial.params)}"
    if trial.error_kind:
        text = shorten(trial.error_text or "", MOST_OF_AN_ERROR, placeholder=" ...")
        line += f" ({trial.error_kind}: {text})"
    if trial.state is State.COMPLETE and trial.attempts[-1].note:
        line += f" (after its last report: {trial.attempts[-1].note})"
    return line


def _values(study: Study, trial: Trial) -> str:
    if trial.values is None:
        unit = study.spec.budget.per_trial.unit.value
        value = on_the_way(trial.value, trial.seen_at, trial.last, unit)
        return f"{study.spec.objective.metric} {value}"
    named = zip(study.spec.objectives, trial.values, strict=True)
    return ", ".join(f"{objective.metric} {number(value)}" for objective, value in named)


def _progress(study: Study, now: float, began: float, ended_before: int) -> str:
    history, objective = study.history, study.spec.objective
    states = (trial.state for trial in history.trials if trial.role is not Role.REVISION)
    trials = counted(Counter(states))
    if not history.trials:
        busy = f"{len(study.slots)} ready, {len(study.running)} busy"
        trials = f"workers {busy if study.slots else 'starting'}"
    elif study.spec.budget.trials is not None:
        repeats, of_code = len(history.repeats), len(history.revision_runs)
        trials += f": {history.searched} of {study.spec.budget.trials}"
        trials += f" and {count(repeats, 'repeat')}" if repeats else ""
        trials += f" and {count(of_code, 'run')} of changed code" if of_code else ""
    parts = [trials]
    best = leading(history.trials, objective.direction, objective.metric)
    if best is not None:
        parts.append(f"best {_values(study, best)} (trial {best.number})")
    parts.append(_budget(study, now))
    left_s, ended = study.seconds_left(now), _ended(study) - ended_before
    if left_s is not None:
        parts.append(f"about {duration(left_s)} left")
    elif ended and now > began:
        parts.append(f"{number(ended / (now - began) * 3600)} trials/hour")
    else:
        parts.append("too early to tell")
    return f"{history.study.name}: {'; '.join(parts)}"


def _budget(study: Study, now: float) -> str:
    budget, ledger = study.spec.budget, study.spending.ledger
    parts = [f"{duration(ledger.spent)} spent"]
    if budget.gpu_hours is not None:
        free = duration(ledger.left(None))
        parts.append(f"{free} free of {duration(budget.gpu_hours * 3600)}")
    if budget.cost is not None:
        parts.append(f"cost {number(ledger.paid)} of {number(budget.cost)}")
    if budget.wall_clock_s is not None:
        left = max(0.0, budget.wall_clock_s - study.active_s(now))
        parts.append(f"{duration(left)} of wall clock left")
    return ", ".join(parts)
