"""A running study on a terminal: budgets and running trials as bars, the latest decisions.

The driver's own view and `hpsearch status --watch` draw the same `Picture`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from hpsearch.domain.facts import DecisionKind
from hpsearch.domain.lifecycle import State
from hpsearch.store.reading.standing import BudgetLine, RunningAttempt
from hpsearch.terminal.escapes import plain
from hpsearch.words.estimates import BUDGET_WORDS, of_limit
from hpsearch.words.numbers import NOTHING, duration, number

BAR = 24
"""Columns of a bar."""
MOST_DECISIONS = 5
AROUND = 18
"""Lines of a panel beside its running trials, at the most."""

TELLING = frozenset(DecisionKind) - {DecisionKind.START, DecisionKind.CONTINUE, DecisionKind.DROP}
"""The decisions that change how a study stands."""


@dataclass(frozen=True)
class Picture:
    """A study at a moment.

    Args:
        title: Its name and state.
        counts: How many of its trials are in each state.
        workers: How many workers there are; None if that is not known.
        budget: What is used of each limit.
        best: The best so far, in words.
        pace: How fast it goes and how long the rest takes, in words.
        total: A trial's full budget.
        unit: Its unit.
        running: The trials that train, by worker.
        now: The time, in seconds since the epoch.
        decided: The latest decisions in words, the newest last.
    """

    title: str
    counts: Mapping[State, int]
    workers: str | None
    budget: Sequence[BudgetLine]
    best: str
    pace: str
    total: float
    unit: str
    running: Sequence[RunningAttempt]
    now: float
    decided: Sequence[str]


def panel(of: Picture, height: int) -> RenderableType:
    """The picture, on a terminal of that many lines: with so many of its trials as there is room
    for."""
    parts: list[RenderableType] = [_standing(of)]
    if of.running:
        parts += [Text(), _trials(of, max(1, height - AROUND))]
    if of.decided:
        told = of.decided[-MOST_DECISIONS:]
        parts += [Text(), Text("decided", style="bold")]
        parts += [_line(each) for each in told]
    return Group(*parts)


def counted(counts: Mapping[State, int]) -> str:
    """``2 running, 5 paused``; empty where there is no trial."""
    return ", ".join(f"{counts[state]} {state.value}" for state in State if counts.get(state))


def _line(text: str) -> Text:
    line = plain(text)
    line.no_wrap, line.overflow = True, "ellipsis"
    return line


def _standing(of: Picture) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True, style="bold")
    table.add_column(overflow="fold")
    table.add_row("study", plain(of.title))
    table.add_row("trials", counted(of.counts) or "none yet")
    if of.workers is not None:
        table.add_row("workers", of.workers)
    for limit in of.budget:
        if limit.most is not None:
            table.add_row(BUDGET_WORDS[limit.name], _limit(limit))
    if all(limit.name != "gpu_seconds" or limit.most is None for limit in of.budget):
        spent = sum(limit.used for limit in of.budget if limit.name == "gpu_seconds")
        table.add_row(BUDGET_WORDS["gpu_seconds"], duration(spent))
    table.add_row("best", plain(of.best))
    table.add_row("pace", of.pace)
    return table


def _limit(limit: BudgetLine) -> Table:
    """A limit of the budget as a bar."""
    row = Table.grid(padding=(0, 1))
    most = limit.most or 0.0
    row.add_row(
        ProgressBar(total=most, completed=min(limit.used, most), width=BAR),
        of_limit(limit),
    )
    return row


def _trials(of: Picture, most: int) -> Table:
    """The running trials, each with a bar."""
    any_gpu = any(each.gpu is not None for each in of.running)
    table = Table.grid(padding=(0, 2), expand=True)
    heads = ["trial", "worker", of.unit, "", "speed", "value", "time"]
    heads += ["GPU", "last decision"] if any_gpu else ["last decision"]
    for _ in heads[:-1]:
        table.add_column(no_wrap=True)
    table.add_column(no_wrap=True, overflow="ellipsis", ratio=1)  # it takes what is left
    table.add_row(*(Text(head, style="bold") for head in heads))
    for each in of.running[:most]:
        cells: list[RenderableType] = [
            str(each.trial),
            plain(each.worker),
            ProgressBar(total=of.total, completed=min(each.resource, of.total), width=BAR),
            f"{number(each.resource)} of {number(of.total)}",
            NOTHING if each.speed is None else speed(each.speed),
            number(each.value),
            duration(max(0.0, of.now - each.started)),
        ]
        if any_gpu:
            cells.append(NOTHING if each.gpu is None else f"{each.gpu:.0%}")
        table.add_row(*cells, plain(each.verdict or NOTHING))
    left_out = len(of.running) - most
    if left_out > 0:
        table.add_row(f"and {left_out} more")
    return table


def speed(per_second: float) -> str:
    """Resource per second, or per minute or hour where that is easier to read."""
    if per_second >= 1:
        return f"{number(per_second)}/s"
    if per_second * 60 >= 1:
        return f"{number(per_second * 60)}/min"
    return f"{number(per_second * 3600)}/h"
