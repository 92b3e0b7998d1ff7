"""A study as it runs: one line of standing, drawn over and over on a terminal, and plain lines anywhere else."""

from __future__ import annotations

import sys
from collections import Counter

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from hpsearch.budget import gpu_share
from hpsearch.lifecycle import State
from hpsearch.records import Changes, Trial
from hpsearch.study import Study
from hpsearch.views.numbers import NOTHING, duration, number, pairs
from hpsearch.views.terminal import plain

REDRAW_S = 0.5
"""How often a terminal is redrawn."""

PLAIN_S = 30.0
"""How often plain output says where the study stands, beside the lines for trials that end."""


class LiveView:
    """Watches a study from inside its driver, between ticks.

    Args:
        quiet: Say nothing until the end.
    """

    def __init__(self, *, quiet: bool = False) -> None:
        self._console = Console(file=sys.stderr, highlight=False)
        self._quiet = quiet
        self._live: Live | None = None
        self._drawn = 0.0
        self._told: dict[int, State] = {}
        self._first: tuple[float, int] | None = None

    def __enter__(self) -> LiveView:
        if self._console.is_terminal and not self._quiet:
            self._live = Live(console=self._console, auto_refresh=False)
            self._live.__enter__()
        return self

    def __exit__(self, *exc: object) -> None:
        if self._live is not None:
            self._live.__exit__(None, None, None)

    def watch(self, study: Study, changes: Changes, now: float) -> None:
        """Called after every tick, with what it wrote."""
        if self._first is None:
            self._first = (now, _ended(study))
        if self._quiet or now - self._drawn < (REDRAW_S if self._live else 0.0):
            return
        if self._live is not None:
            self._drawn = now
            self._live.update(self._panel(study, now), refresh=True)
            return
        self._tell(study, changes)
        if now - self._drawn >= PLAIN_S:
            self._drawn = now
            said = ", ".join(f"{what} {text}" for what, text in self._standing(study, now))
            self._console.print(plain(said), soft_wrap=True)

    def _tell(self, study: Study, changes: Changes) -> None:
        """A line for each trial that came to rest in this tick."""
        for trial in changes.trials:
            if trial.state in (State.QUEUED, State.RUNNING) or self._told.get(trial.number) is trial.state:
                continue
            self._told[trial.number] = trial.state
            value = _values(study, trial)
            why = f" ({trial.error_kind}: {trial.error_text})" if trial.error_kind else ""
            where = f"at {number(trial.resource)} {study.spec.budget.per_trial.unit.value}"
            who = f"trial {trial.number} {trial.state.value}"
            self._console.print(plain(f"{who} {where}: {value}, {pairs(trial.params)}{why}"), soft_wrap=True)

    def _panel(self, study: Study, now: float) -> Table:
        table = Table.grid(padding=(0, 2))
        for what, said in self._standing(study, now):
            table.add_row(Text(what, style="bold"), plain(said))
        return table

    def _standing(self, study: Study, now: float) -> list[tuple[str, str]]:
        states = Counter(trial.state for trial in study.history.trials)
        by_state = ", ".join(f"{states[state]} {state.value}" for state in State if states[state])
        return [
            ("study", study.history.study.name),
            ("trials", by_state or "none yet"),
            ("workers", f"{len(study.slots)} ready, {len(study.live)} busy" if study.slots else "starting"),
            ("best", _best(study)),
            ("budget", _budget(study, now)),
            ("pace", self._pace(study, now)),
        ]

    def _pace(self, study: Study, now: float) -> str:
        """Trials an hour since this driver began, and the time that what is left will take."""
        assert self._first is not None
        seconds, ended = now - self._first[0], _ended(study) - self._first[1]
        if ended < 3 or seconds <= 0:
            return "too early to tell"
        left = _seconds_left(study, now)
        until_done = "" if left is None else f", about {duration(left)} to go"
        return f"{number(ended / seconds * 3600)} trials/hour{until_done}"


def _seconds_left(study: Study, now: float) -> float | None:
    """What is left, shared by the slots: trials to start at the mean cost so far, promotions in it, and what runs at
    its own speed. None where nothing bounds the number of trials, or nothing was seen."""
    wanted, spent = study.spec.budget.trials, [t.gpu_seconds for t in study.history.trials if t.gpu_seconds > 0]
    if wanted is None or not spent or not study.slots:
        return None
    slots = list(study.slots.values())
    to_start = max(0, wanted - len(study.history.trials)) * sum(spent) / len(spent) / gpu_share(slots[0].gpus)
    running = 0.0
    for live in study.live.values():
        speed = study.history.trials[live.attempt.trial].speed
        stretch = live.until - live.resource
        running += max(0.0, stretch / speed - (now - live.heard)) if speed else 0.0
    return (to_start + running) / len(slots)


def _ended(study: Study) -> int:
    """Trials that have had their first turn: ended, or paused at a rung."""
    return sum(trial.state not in (State.QUEUED, State.RUNNING) for trial in study.history.trials)


def _best(study: Study) -> str:
    sign = study.spec.objective.sign
    known = [trial for trial in study.history.trials if trial.value is not None]
    if not known:
        return NOTHING
    best = min(known, key=lambda trial: (trial.violation, sign * (trial.value or 0.0), trial.number))
    over = ", over a limit" if best.violation else ""
    return f"{_values(study, best)} (trial {best.number}, {best.state.value}{over})"


def _values(study: Study, trial: Trial) -> str:
    """What a trial stands by, with names."""
    values = [trial.value] if trial.values is None else trial.values
    named = zip(study.spec.objectives, values, strict=False)  # one value, before the first report
    return ", ".join(f"{objective.metric} {number(value)}" for objective, value in named)


def _budget(study: Study, now: float) -> str:
    budget, ledger = study.spec.budget, study.books.ledger
    said = [f"{duration(ledger.spent)} of trial time spent"]
    if budget.trials is not None:
        said.append(f"{len(study.history.trials)} of {budget.trials} trials started")
    if ledger.limit is not None:
        said.append(f"{duration(ledger.left)} free of {duration(ledger.limit)}")
    if budget.wall_clock_s is not None:
        said.append(f"{duration(max(0.0, budget.wall_clock_s - study.active_s(now)))} of wall clock left")
    return ", ".join(said)
