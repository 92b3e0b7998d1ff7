"""Tables of studies and trials for a terminal, from what `hpsearch.store` reads."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from hpsearch.domain.lifecycle import State
from hpsearch.domain.numbers import NOTHING, cell, duration, moment, number, pairs
from hpsearch.domain.records import Trial
from hpsearch.search.ranking.repeats import expectation
from hpsearch.search.ranking.selection import Ranked
from hpsearch.store.reading.queries import TrialRow
from hpsearch.store.reading.status import StudySummary
from hpsearch.views.terminal.escapes import Sheet
from hpsearch.views.words import expected, if_again, nearest_limit, score, values

Width = int | None  # columns of the terminal; None if the output goes elsewhere
NUMERIC = "right"
Head = str | tuple[str, str]  # the head of a column, alone or with its alignment
Cells = Iterable[str | Text]

_COLOURS = {
    State.COMPLETE: "green",
    State.RUNNING: "cyan",
    State.PAUSED: "blue",
    State.FAILED: "red",
    State.PRUNED: "dim",
    State.QUEUED: "dim",
}


def heading(text: str) -> Text:
    return Text(text, style="bold", no_wrap=True, overflow="ignore")


def table(
    heads: Iterable[Head], rows: Iterable[Cells], width: Width, title: str | None = None
) -> Table:
    """A table under a title: with rules on a terminal, with plain columns where `width` is None."""
    made = Sheet(
        box=None if width is None else box.SIMPLE_HEAD,
        pad_edge=False,
        padding=(0, 2, 0, 0) if width is None else (0, 1, 0, 0),
        title=None if title is None else heading(title),
        title_justify="left",
    )
    for column in heads:
        head, justify = column if isinstance(column, tuple) else (column, "left")
        made.add_column(head, justify=justify, overflow="fold")
    for row in rows:
        made.add_row(*row)
    return made


def with_named(
    heads: Sequence[Head],
    rows: Sequence[tuple[Cells, Mapping[str, Any]]],
    width: Width,
    title: str | None = None,
    shared: str = "parameters",
) -> Table:
    """A table whose rows also have named values, such as parameters: in a column for each, or in a
    shared one where the terminal is too narrow."""
    names = list(dict.fromkeys(name for _, named in rows for name in named))
    named_heads = [(name, NUMERIC) for name in names]
    wide = table([*heads, *named_heads], [], width, title)
    for cells, named in rows:
        wide.add_row(*cells, *(cell(named.get(name)) for name in names))
    if width is None or Console(width=10_000).measure(wide).maximum <= width:
        return wide
    narrow_rows = [[*cells, pairs(named)] for cells, named in rows]
    return table([*heads, shared], narrow_rows, width, title)


def fact_table(named: Mapping[str, Any], width: Width, title: str | None = None) -> Table:
    made = table([], [], width, title)
    made.box, made.show_header, made.padding = None, False, (0, 2, 0, 0)
    made.add_column(style="dim" if width else None, no_wrap=True)
    made.add_column(overflow="fold")
    for name, value in named.items():
        made.add_row(name, str(value))
    return made


def state(of: State) -> Text:
    return Text(of.value, style=_COLOURS[of])


def studies(summaries: Iterable[StudySummary], width: Width) -> Table:
    heads: list[Head] = ["study", "state", ("trials", NUMERIC), ("best", NUMERIC)]
    heads += [("compute time", NUMERIC), "budget", "created"]
    rows = []
    for each in summaries:
        driven = f" by {each.head.driver}" if each.head.driver else ""
        trials = f"{each.ended}/{sum(each.trials.values())}"
        used = [duration(each.gpu_seconds), nearest_limit(each.budget)]
        created = moment(each.head.created)
        rows.append([each.head.name, each.state + driven, trials, best_value(each), *used, created])
    return table(heads, rows, width)


def revisions(tested: Iterable[Mapping[str, Any]], width: Width) -> Table:
    heads: list[Head] = [("revision", NUMERIC), "verdict", "because", ("pairs", NUMERIC)]
    heads += [("compute time", NUMERIC), "by", "why"]
    rows = []
    for each in tested:
        cells = [str(each["number"]), each["verdict"], each["reason"], str(each["pairs"])]
        rows.append([*cells, duration(each["gpu_seconds"]), each["origin"], each["why"]])
    return table(heads, rows, width)


def best_value(summary: StudySummary) -> str:
    if summary.best is None:
        return NOTHING
    return score(summary.best, driven=summary.head.driver is not None)


def best(
    ranked: Sequence[Ranked[TrialRow]] | Sequence[Ranked[Trial]],
    width: Width,
    objectives: Sequence[str] = ("value",),
    seen_at: Mapping[int, float | None] | None = None,
    title: str | None = None,
) -> Table:
    """The best trials, best first. `=` marks those that tie with the first one, or are on the
    front; `?` those that have trained too little to tell; `over limit` those that break a limit.
    What comes of them when they are trained again stands beside the value that they have shown, and
    how far they had trained when they did: `seen_at`, by their numbers."""
    is_known = any(row.again is not None and row.again.is_measured for row in ranked)
    seen = seen_at or {}
    for row in ranked:
        is_known |= seen.get(row.trial.number, row.trial.resource) != row.trial.resource
    heads: list[Head] = [("trial", NUMERIC), "state", *((name, NUMERIC) for name in objectives)]
    if is_known:
        heads += [("seen at", NUMERIC), "if trained again (90%)"]
    heads += ["", ("resource", NUMERIC), ("compute time", NUMERIC)]
    has_versions = any(row.trial.version > 1 for row in ranked)
    heads += [("version", NUMERIC)] * has_versions
    rows = []
    for row in ranked:
        trial = row.trial
        shown = [row.value] if trial.values is None else trial.values
        cells: list[str | Text] = [str(trial.number), state(trial.state), *map(number, shown)]
        if is_known:
            cells += [number(seen.get(trial.number)), if_again(row.again)]
        mark = Text("=" if row.tied else "?" * row.unknown)
        cells.append(Text("over limit", style="red") if trial.violation > 0 else mark)
        cells += [number(trial.resource), duration(trial.gpu_seconds)]
        cells += [str(trial.version)] * has_versions
        rows.append((cells, trial.params))
    return with_named(heads, rows, width, title)


def trials(listed: Sequence[TrialRow], metric: str, width: Width) -> Table:
    """Trials, one a line, each with its best value, and where another one came last, that too."""
    lasts = [row.value if row.values else row.metrics.get(metric, row.value) for row in listed]
    is_expected = any(expectation(row) is not None for row in listed)
    heads: list[Head] = [("trial", NUMERIC), "state", ("value", NUMERIC)]
    has_last = [number(last) for last in lasts] != [number(row.value) for row in listed]
    if has_last:
        heads.append(("last", NUMERIC))
    if is_expected:
        heads.append("expected end (90%)")
    heads += [("resource", NUMERIC), ("compute time", NUMERIC)]
    has_versions = any(row.version > 1 for row in listed)
    heads += [("version", NUMERIC)] * has_versions
    separator = ": " if width is None else "\n"
    rows = []
    for row, last in zip(listed, lasts, strict=True):
        shown_state = state(row.state)
        remarks = [
            row.error_kind,
            "over limit" * (row.violation > 0),
            "retried" * bool(row.retried),
        ]
        remarks += ["out of space" * row.out_of_space, str(row.revision_run or "")]
        for remark in remarks:
            shown_state.append(f"{separator}{remark}" if remark else "")
        cells: list[str | Text] = [str(row.number), shown_state, values(row)]
        if has_last:
            cells.append(number(last))
        if is_expected:
            cells.append(expected(row))
        cells += [number(row.ended_at), duration(row.gpu_seconds)]
        cells += [str(row.version)] * has_versions
        rows.append((cells, row.params))
    return with_named(heads, rows, width)
