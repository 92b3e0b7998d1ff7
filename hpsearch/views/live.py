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
from hpsearch.domain.numbers import count, duration, number, pairs
from hpsearch.domain.records import Trial
from hpsearch.errors import HpsearchError
from hpsearch.search.ranking.no_effect import MOST as FIRST
from hpsearch.search.ranking.no_effect import Course, no_effect
from hpsearch.search.ranking.selection import leading
from hpsearch.store.reading.queries import StudyHead, find_study
from hpsearch.store.reading.standing import StudyStatus, recent_decisions, study_status
from hpsearch.store.store import Store
from hpsearch.views.terminal.escapes import plain
from hpsearch.views.terminal.status import MOST_DECISIONS, TELLING, counted, panel
from hpsearch.views.words.requests import latest

if TYPE_CHECKING:
    from hpsearch.brain.study import Study

EVERY_S = 2.0
"""Seconds between two looks at the database."""
PLAIN_S = 30.0
"""Seconds between two lines of progress in plain output, beside the lines of trials that end."""

MOST_OF_AN_ERROR = 200
"""Letters of an error in the line of its trial; `hpsearch show` prints it whole."""


def panel_of(
    connection: Connection, study: StudyHead, status: StudyStatus | None = None
) -> RenderableType:
    """The panel of a study, as the database has it now; `status` where that was read already."""
    status = status or study_status(connection, study)
    decisions = recent_decisions(connection, study, TELLING, MOST_DECISIONS)
    decided = latest(decisions, status.requests)
    return panel(status, decided, time.time(), shutil.get_terminal_size().lines)


class Look:
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
        self._draw = draw
        self._quiet = quiet
        self._live: Live | None = None
        self._told_at = 0.0
        self._printed: dict[int, State] = {}
        self._first: tuple[float, int] | None = None
        self._has_warned = False

    def __enter__(self) -> LiveView:
        if self._console.is_terminal and not self._quiet:
            a_second, console = 1 / EVERY_S, self._console
            self._live = Live(
                get_renderable=self._draw, console=console, refresh_per_second=a_second
            )
            self._live.__enter__()
        return self

    def __exit__(self, *exc: object) -> None:
        if self._live is not None:
            self._live.__exit__(None, None, None)

    def watch(self, study: Study, changes: Changes, now: float) -> None:
        """Called after every tick, with what it wrote."""
        if self._first is None:
            self._first = (now, _ended(study))
        if self._quiet:
            return
        self._warn(study, changes)
        if self._live is not None:
            return
        self._print_ended(study, changes)
        if now - self._told_at >= PLAIN_S:
            self._told_at = now
            self._print(self._progress(study, now))

    def _warn(self, study: Study, changes: Changes) -> None:
        """Say once, while it can be mended at little cost, that parameters make no difference."""
        number = max((trial.number for trial in changes.trials), default=FIRST)
        if self._has_warned or number >= FIRST or not changes.reports:
            return
        objectives = [objective.metric for objective in study.spec.objectives]
        found = no_effect(_courses(study), objectives, study.spec.budget.per_trial.total)
        if found is not None:
            self._has_warned = True
            self._print(found.warning)

    def _print_ended(self, study: Study, changes: Changes) -> None:
        """Print a line for each trial that ended or paused in this tick, and one for all that
        ended because their study did."""
        left: Counter[State] = Counter()
        for trial in changes.trials:
            if trial.state in (State.QUEUED, State.RUNNING):
                continue
            printed = self._printed.get(trial.number)
            if printed is trial.state or self._stood_so(trial):
                continue
            self._printed[trial.number] = trial.state
            if trial.left_as is not None:
                left[trial.left_as] += 1
            else:
                self._print(_line(study, trial, is_known=printed is not None))
        if paused := left.pop(State.PAUSED, 0):
            trials = count(paused, "paused trial")
            self._print(f"{trials} not trained further: others looked better")
        if left:
            self._print(f"{count(left.total(), 'trial')} that waited not trained: the study ended")

    def _stood_so(self, trial: Trial) -> bool:
        """Whether it came to rest before this driver began, so that an earlier one has told it."""
        assert self._first is not None
        ended = trial.ended or (trial.attempts[-1].ended if trial.attempts else None)
        return ended is not None and ended < self._first[0]

    def _print(self, line: str) -> None:
        self._console.print(plain(line), soft_wrap=True)

    def _progress(self, study: Study, now: float) -> str:
        """The status of the study, on a line."""
        repeats = len(study.history.repeats)
        trials = counted(_counts(study))
        if trials and study.spec.budget.trials is not None:
            tried = len(study.history.trials) - repeats
            trials += f": {tried} of {study.spec.budget.trials}"
            trials += f" and {count(repeats, 'repeat')}" * bool(repeats)
        best = _leading(study)
        parts = [trials or f"workers {_workers(study)}"]
        if best is not None:
            parts.append(f"best {_values(study, best)} (trial {best.number})")
        parts += [_budget(study, now), _left(study, now) or self._pace(study, now)]
        return f"{study.history.study.name}: {'; '.join(parts)}"

    def _pace(self, study: Study, now: float) -> str:
        """Trials an hour since this driver began, and the time that the rest will take."""
        assert self._first is not None
        began, ended_before = self._first
        seconds = now - began
        ended = _ended(study) - ended_before
        parts = [f"{number(ended / seconds * 3600)} trials/hour"] if ended and seconds > 0 else []
        if left := _left(study, now):
            parts.append(left)
        return ", ".join(parts) or "too early to tell"


def _courses(study: Study) -> list[Course]:
    """The reports of the first trials, without repeats."""
    searched = [each for each in study.history.trials[:FIRST] if each.role is not Role.CONFIRM]
    courses = []
    for trial in searched:
        reports = {at: report.metrics for at, report in trial.reports.items()}
        courses.append(Course(trial.params, reports))
    return courses


def _left(study: Study, now: float) -> str:
    """The time that the rest will take; empty where that is not known."""
    seconds = study.seconds_left(now)
    return "" if seconds is None else f"about {duration(seconds)} left"


def _counts(study: Study) -> Counter[State]:
    return Counter(trial.state for trial in study.history.trials)


def _workers(study: Study) -> str:
    if not study.slots:
        return "starting"
    return f"{len(study.slots)} ready, {len(study.running)} busy"


def _line(study: Study, trial: Trial, *, is_known: bool) -> str:
    """The line on a trial that ended or paused; its parameters only once."""
    resource = f"{number(trial.resource)} {study.spec.budget.per_trial.unit.value}"
    line = f"trial {trial.number} {trial.state.value} at {resource}: {_values(study, trial)}"
    if not is_known:
        line += f", {pairs(trial.params)}"
    if trial.error_kind:
        text = shorten(trial.error_text or "", MOST_OF_AN_ERROR, placeholder=" ...")
        line += f" ({trial.error_kind}: {text})"
    if trial.state is State.COMPLETE and trial.attempts[-1].note:
        line += f" (after its last report: {trial.attempts[-1].note})"
    return line


def _ended(study: Study) -> int:
    """Trials that have had their first turn: ended, or paused at a rung."""
    return sum(trial.state not in (State.QUEUED, State.RUNNING) for trial in study.history.trials)


def _leading(study: Study) -> Trial | None:
    objective = study.spec.objective
    return leading(study.history.trials, objective.direction, objective.metric)


def _values(study: Study, trial: Trial) -> str:
    """The values of a trial's objectives, with their names."""
    values = [trial.value] if trial.values is None else trial.values
    named = zip(study.spec.objectives, values, strict=False)  # one value, before the first report
    return ", ".join(f"{objective.metric} {number(value)}" for objective, value in named)


def _budget(study: Study, now: float) -> str:
    """The spent part of the budget, and the rest."""
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
