"""Tables of studies and trials for a terminal, from what `hpsearch.store` reads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from hpsearch.domain.lifecycle import State
from hpsearch.domain.numbers import NOTHING, cell, duration, moment, number, pairs
from hpsearch.domain.records import Trial
from hpsearch.search.ranking.selection import Ranked, expectation
from hpsearch.store.reading.queries import TrialRow
from hpsearch.store.reading.standing import StudySummary
from hpsearch.views.terminal.escapes import Sheet
from hpsearch.views.words.estimates import (
    expected,
    if_again,
    nearest_limit,
    score,
    values,
)

Width = int | None
"""Columns of the terminal; None if the output goes elsewhere."""
NUMERIC = "right"
Head = str | tuple[str, str]
"""The head of a column, alone or with its alignment."""
AGAIN: Head = "if trained again (90%)"
EXPECTED: Head = "expected end (90%)"
"""The head of what is expected of trials in full."""


_COLOURS = {
    State.COMPLETE: "green",
    State.RUNNING: "cyan",
    State.PAUSED: "blue",
    State.FAILED: "red",
    State.PRUNED: "dim",
    State.QUEUED: "dim",
}


def heading(text: str) -> Text:
    """The line above a table, in full even if it is wider than the table."""
    return Text(text, style="bold", no_wrap=True, overflow="ignore")


def table(*columns: Head, width: Width, title: str | None = None) -> Table:
    """An empty table under a title: with a rule under its head on a terminal, with plain columns
    where `width` is None."""
    made = Sheet(
        box=None if width is None else box.SIMPLE_HEAD,
        pad_edge=False,
        padding=(0, 2, 0, 0) if width is None else (0, 1, 0, 0),
        title=None if title is None else heading(title),
        title_justify="left",
    )
    for column in columns:
        head, justify = column if isinstance(column, tuple) else (column, "left")
        made.add_column(head, justify=justify, overflow="fold")
    return made


def state(of: State) -> Text:
    """A state in its colour."""
    return Text(of.value, style=_COLOURS[of])


def studies(summaries: Iterable[StudySummary], width: Width) -> Table:
    """Studies, one a line."""
    made = table(
        *("study", "state", ("trials", NUMERIC), ("best", NUMERIC)),
        *(("compute time", NUMERIC), "budget", "created"),
        width=width,
    )
    for each in summaries:
        made.add_row(
            each.head.name,
            each.state + (f" by {each.driver}" if each.driver else ""),
            f"{each.ended}/{sum(each.trials.values())}",
            best_value(each),
            duration(each.gpu_seconds),
            nearest_limit(each.budget),
            moment(each.head.created),
        )
    return made


def best(
    ranked: Sequence[Ranked[TrialRow]] | Sequence[Ranked[Trial]],
    width: Width,
    objectives: Sequence[str] = ("value",),
    seen_at: Mapping[int, float | None] | None = None,
) -> Table:
    """The best trials, best first.

    `=` marks those that cannot be told from the first one, or with several objectives are beaten by
    none; `?` those that have trained too little to tell; `over limit` those that break a limit.
    Where it is known what comes of trials when they are trained again, that stands beside the value
    that they have shown, and how far they had trained when they did: `seen_at`, by their numbers.
    """
    is_known = any(row.again is not None and row.again.low is not None for row in ranked)
    is_known |= any(row.confirmed is not None for row in ranked)
    at = seen_at or {}
    head: list[Head] = [("trial", NUMERIC), "state", *((name, NUMERIC) for name in objectives)]
    if is_known:
        head += [("seen at", NUMERIC), AGAIN]
    head.append("")
    head += [("resource", NUMERIC), ("compute time", NUMERIC)]

    def cells(row: Ranked[TrialRow] | Ranked[Trial]) -> list[str | Text]:
        trial = row.trial
        of_objectives = [row.value] if trial.values is None else trial.values
        own: list[str | Text] = [str(trial.number), state(trial.state)]
        own += map(number, of_objectives)
        if is_known:
            own += [number(at.get(trial.number)), if_again(row.again)]
        own.append(_mark(row))
        own.append(number(trial.resource))
        own.append(duration(trial.gpu_seconds))
        return own

    columns = Columns(head, cells, lambda row: row.trial.params)
    return with_named(ranked, columns, width)


def _mark(row: Ranked[TrialRow] | Ranked[Trial]) -> str | Text:
    if row.trial.violation > 0:
        return Text("over limit", style="red")
    return "=" if row.tied else "?" * row.unknown


def trials(rows: Sequence[TrialRow], width: Width) -> Table:
    """Trials, one a line."""
    is_expected = any(expectation(row) is not None for row in rows)
    head: list[Head] = [("trial", NUMERIC), "state", ("value", NUMERIC)]
    if is_expected:
        head.append(EXPECTED)
    head += [("resource", NUMERIC), ("compute time", NUMERIC)]
    separator = ": " if width is None else "\n"

    def cells(row: TrialRow) -> list[str | Text]:
        standing = state(row.state)
        if row.error_kind:
            standing.append(separator + row.error_kind)
        if row.violation > 0:
            standing.append(separator + "over limit")
        own: list[str | Text] = [str(row.number), standing, values(row)]
        if is_expected:
            own.append(expected(row))
        return [*own, number(row.resource), duration(row.gpu_seconds)]

    return with_named(rows, Columns(head, cells, lambda row: row.params), width)


@dataclass(frozen=True)
class Columns:
    """The columns of a table whose rows also have named values, such as parameters.

    Args:
        head: Heads of the first columns.
        cells: Cells of a row in those columns.
        named: A row's parameters or metrics by name.
    """

    head: Sequence[Head]
    cells: Callable[[Any], list[str | Text]]
    named: Callable[[Any], Mapping[str, Any]]


def with_named(
    rows: Sequence[Any], columns: Columns, width: Width, shared: str = "parameters"
) -> Table:
    """A table with a column for each named value, or a shared one where the terminal is too
    narrow."""
    wide = _wide(rows, columns, width)
    if width is None:
        return wide
    needed = Console(width=10_000).measure(wide).maximum
    if needed <= width:
        return wide
    narrow = table(*columns.head, shared, width=width)
    for row in rows:
        by_name = columns.named(row)
        narrow.add_row(*columns.cells(row), pairs(by_name))
    return narrow


def _wide(rows: Sequence[Any], columns: Columns, width: Width) -> Table:
    """A table with a column for each named value."""
    named = [columns.named(row) for row in rows]
    names = list(dict.fromkeys(chain.from_iterable(named)))
    named_heads = [(name, NUMERIC) for name in names]
    wide = table(*columns.head, *named_heads, width=width)
    for row, by_name in zip(rows, named, strict=True):
        named_cells = [cell(by_name.get(name)) for name in names]
        wide.add_row(*columns.cells(row), *named_cells)
    return wide


def best_value(summary: StudySummary) -> str:
    """The value of a study's best trial."""
    if summary.best is None:
        return NOTHING
    return score(summary.best, driven=summary.driver is not None)


def fact_table(named: Mapping[str, Any], width: Width, title: str | None = None) -> Table:
    """Facts by their names."""
    made = table(width=width, title=title)
    made.box, made.show_header, made.padding = None, False, (0, 2, 0, 0)
    made.add_column(style="dim" if width else None, no_wrap=True)
    made.add_column(overflow="fold")
    for name, value in named.items():
        made.add_row(name, str(value))
    return made
