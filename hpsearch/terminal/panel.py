"""A running study on a terminal: budgets and running trials as bars, the latest decisions.

The driver's own view and `hpsearch status --watch` draw the same.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from hpsearch.domain.facts import DecisionKind
from hpsearch.store.reading.standing import BudgetLine, StudyStatus
from hpsearch.terminal.escapes import plain
from hpsearch.terminal.status import best_so_far, counted, pace, remark
from hpsearch.words.estimates import BUDGET_WORDS, of_limit
from hpsearch.words.numbers import NOTHING, duration, number

BAR = 24
"""Columns of a bar."""
MOST_DECISIONS = 5
AROUND = 18
"""Lines of a panel beside its running trials, at the most."""

TELLING = frozenset(DecisionKind) - {DecisionKind.START, DecisionKind.CONTINUE, DecisionKind.DROP}
"""The decisions that change how a study stands."""


def panel(of: StudyStatus, decided: Sequence[str], now: float, height: int) -> RenderableType:
    """A running study, on a terminal of that many lines: with so many of its trials as there is
    room for.

    Args:
        decided: The latest decisions in words, the newest last.
        now: The time, in seconds since the epoch.
    """
    parts: list[RenderableType] = [_standing(of, now)]
    if of.running:
        parts += [Text(), _trials(of, now, max(1, height - AROUND))]
    if decided:
        parts += [Text(), Text("decided", style="bold")]
        parts += [_line(each) for each in decided[-MOST_DECISIONS:]]
    return Group(*parts)


def _line(text: str) -> Text:
    line = plain(text)
    line.no_wrap, line.overflow = True, "ellipsis"
    return line


def _standing(of: StudyStatus, now: float) -> Table:
    summary = of.summary
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True, style="bold")
    table.add_column(overflow="fold")
    table.add_row("study", plain(f"{summary.head.name}, {summary.state}{remark(summary)}"))
    table.add_row("trials", counted(summary.trials) or "none yet")
    for limit in of.budget:
        if limit.most is not None:
            table.add_row(BUDGET_WORDS[limit.name], _limit(limit))
    if all(limit.name != "gpu_seconds" or limit.most is None for limit in of.budget):
        spent = sum(limit.used for limit in of.budget if limit.name == "gpu_seconds")
        table.add_row(BUDGET_WORDS["gpu_seconds"], duration(spent))
    table.add_row("best", plain(best_so_far(summary)))
    table.add_row("pace", pace(of, now))
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


def _trials(of: StudyStatus, now: float, most: int) -> Table:
    """The running trials, each with a bar where their full budget is known."""
    budget = of.summary.head.budget
    per_trial = None if budget is None else budget.per_trial
    total = None if per_trial is None else per_trial.total
    unit = "resource" if per_trial is None else per_trial.unit.value
    any_gpu = any(each.gpu is not None for each in of.running)
    table = Table.grid(padding=(0, 2), expand=True)
    heads = ["trial", "worker", unit, "", "speed", "value", "time"]
    heads += ["GPU", "last decision"] if any_gpu else ["last decision"]
    for _ in heads[:-1]:
        table.add_column(no_wrap=True)
    table.add_column(no_wrap=True, overflow="ellipsis", ratio=1)  # it takes what is left
    table.add_row(*(Text(head, style="bold") for head in heads))
    for each in of.running[:most]:
        cells: list[RenderableType] = [
            str(each.trial),
            plain(each.worker),
            ProgressBar(total=total, completed=min(each.resource, total or 0.0), width=BAR),
            f"{number(each.resource)} of {number(total)}",
            NOTHING if each.speed is None else speed(each.speed),
            number(each.value),
            duration(max(0.0, now - each.started)),
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
