"""Tables of studies and trials for a terminal, from what `hpsearch.store` reads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from hpsearch.lifecycle import State
from hpsearch.records import Trial
from hpsearch.repeats import Confirmed
from hpsearch.selection import Ranked
from hpsearch.store.queries import TrialRow
from hpsearch.store.standing import StudySummary
from hpsearch.views.numbers import NOTHING, cell, duration, moment, number, pairs
from hpsearch.views.terminal import Sheet

NUMERIC = "right"
Head = str | tuple[str, str]
"""The head of a column; a pair gives the alignment with it."""
_COLOURS = {
    State.COMPLETE: "green",
    State.RUNNING: "cyan",
    State.PAUSED: "blue",
    State.FAILED: "red",
    State.PRUNED: "dim",
    State.QUEUED: "dim",
}


def table(*columns: Head, width: int | None, title: str | None = None) -> Table:
    """An empty table: with a rule under its head on a terminal, with plain columns where `width` is None.

    Args:
        columns: Their heads.
        width: Columns of the terminal; None where the table goes elsewhere.
        title: A line above it.
    """
    made = Sheet(
        box=None if width is None else box.SIMPLE_HEAD,
        pad_edge=False,
        padding=(0, 2, 0, 0) if width is None else (0, 1, 0, 0),
        title=title,
        title_justify="left",
        title_style="bold",
    )
    for column in columns:
        head, justify = column if isinstance(column, tuple) else (column, "left")
        made.add_column(head, justify=justify, overflow="fold")
    return made


def state(of: State) -> Text:
    """A state in its colour."""
    return Text(of.value, style=_COLOURS[of])


def studies(summaries: Iterable[StudySummary], width: int | None) -> Table:
    """Studies, one a line."""
    made = table(
        "study", "state", ("trials", NUMERIC), ("best", NUMERIC), ("GPU time", NUMERIC), "created", width=width
    )
    for each in summaries:
        standing = each.state + (f" by {each.driver}" if each.driver else "")
        best = NOTHING if each.best is None else score(each.best)
        trials = f"{ended(each.trials)}/{sum(each.trials.values())}"
        made.add_row(each.head.name, standing, trials, best, duration(each.gpu_seconds), moment(each.head.created))
    return made


def best(
    ranked: Sequence[Ranked[TrialRow]] | Sequence[Ranked[Trial]],
    width: int | None,
    objectives: Sequence[str] = ("value",),
) -> Table:
    """The best trials, best first.

    `=` marks those that cannot be told from the first one, or with several objectives are beaten by none; `over limit`
    those that break a limit.
    """
    confirmed = any(r.confirmed for r in ranked)
    head: list[Head] = [("trial", NUMERIC), "state", *((name, NUMERIC) for name in objectives), ""]
    if confirmed:
        head.append("confirmed (90%)")
    head += [("resource", NUMERIC), ("GPU time", NUMERIC)]

    def cells(row: Ranked[TrialRow] | Ranked[Trial]) -> list[str | Text]:
        values = [row.value] if row.trial.values is None else row.trial.values
        own: list[str | Text] = [str(row.trial.number), state(row.trial.state), *map(number, values)]
        own.append(Text("over limit", style="red") if row.trial.violation > 0 else "=" if row.tied else "")
        if confirmed:
            own.append(interval(row.confirmed))
        return [*own, number(row.trial.resource), duration(row.trial.gpu_seconds)]

    return with_named(ranked, head, cells, lambda r: r.trial.params, "parameters", width)


def trials(rows: Sequence[TrialRow], width: int | None) -> Table:
    """Trials, one a line."""
    head: list[Head] = [("trial", NUMERIC), "state", ("value", NUMERIC), ("resource", NUMERIC)]
    head.append(("GPU time", NUMERIC))

    def cells(row: TrialRow) -> list[str | Text]:
        standing = state(row.state)
        if row.error_kind:
            standing.append((": " if width is None else "\n") + row.error_kind)
        if row.violation > 0:
            standing.append((": " if width is None else "\n") + "over limit")
        return [str(row.number), standing, values(row), number(row.resource), duration(row.gpu_seconds)]

    return with_named(rows, head, cells, lambda r: r.params, "parameters", width)


def with_named(
    rows: Sequence[Any],
    head: Sequence[Head],
    cells: Callable[[Any], list[str | Text]],
    named: Callable[[Any], Mapping[str, Any]],
    shared: str,
    width: int | None,
) -> Table:
    """A table with a column for each named value of its rows, or one for all where the terminal is too narrow.

    Args:
        rows: What stands in the table, a line each.
        head: Heads of the columns before.
        cells: Cells of a row in those columns.
        named: A row's parameters or metrics by name.
        shared: Head of the column that they share where they must.
        width: Columns of the terminal; None where the table goes elsewhere.
    """
    names = list(dict.fromkeys(name for row in rows for name in named(row)))
    wide = table(*head, *((name, NUMERIC) for name in names), width=width)
    for row in rows:
        wide.add_row(*cells(row), *(_text(named(row), name) for name in names))
    if width is None or Console(width=10_000).measure(wide).maximum <= width:
        return wide
    narrow = table(*head, shared, width=width)
    for row in rows:
        narrow.add_row(*cells(row), pairs(named(row)))
    return narrow


def score(row: Ranked[TrialRow]) -> str:
    """The number a trial stands by: the mean of its repeats, or its own value; its state where it is not complete."""
    if row.confirmed is not None:
        return interval(row.confirmed)
    shown = number(row.value)
    return shown if row.trial.state is State.COMPLETE else f"{shown} ({row.trial.state.value})"


def interval(confirmed: Confirmed | None) -> str:
    """A confirmed mean with half of its interval's width: ``0.8123 ± 0.004 (3 runs)``."""
    if confirmed is None:
        return ""
    if confirmed.low is None or confirmed.high is None:
        return f"{number(confirmed.mean)} (1 run)"
    return f"{number(confirmed.mean)} ± {(confirmed.high - confirmed.low) / 2:.2g} ({confirmed.runs} runs)"


def values(row: TrialRow) -> str:
    """A trial's value, or the values of all objectives."""
    return number(row.value) if row.values is None else ", ".join(map(number, row.values))


def ended(counts: Mapping[State, int]) -> int:
    """How many trials have come to their end."""
    return sum(n for each, n in counts.items() if each.terminal)


def _text(named: Mapping[str, Any], name: str) -> str:
    return cell(named[name]) if name in named else NOTHING
