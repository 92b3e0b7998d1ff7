"""The result of a study on its page: the best configuration, how sure that is, and its cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hpsearch.domain.lifecycle import State
from hpsearch.ranking.selection import Ranked
from hpsearch.report.data import ReportData
from hpsearch.report.wording import (
    PageResult,
    PageSection,
    PageTable,
    Pieces,
    foreign,
    foreign_name,
)
from hpsearch.result.training import Way, as_argument, way_to_train
from hpsearch.store.reading.queries import TrialRow
from hpsearch.words.certainty import caveat, gain, luck, rivals, without_effect, worth
from hpsearch.words.estimates import by_device, if_again
from hpsearch.words.numbers import NOTHING, cell, duration, number
from hpsearch.words.opening import opening

MOST_PARAMETERS = 8
"""Columns for parameters in a table of several configurations."""


def result_part(data: ReportData, parameters: Sequence[str]) -> PageResult:
    """The sentence that opens the page, the best configuration, and how to train it; the most
    important parameters come first."""
    result, ranked = data.result, data.ranked
    headline = opening(result, data.status.summary, foreign_name)
    warning = without_effect(result.no_effect)
    warnings = [] if warning is None else [sentence(warning)]
    if not ranked:
        return PageResult(headline, warnings=warnings)
    best, number_ = result.best, ranked[0].trial.number
    commands = _commands(data, ranked[0].trial)
    only_parameters = way_to_train(data.study.content) is Way.OWN
    purpose = "For your own program: the parameters of" if only_parameters else "To train"
    if best is None:
        some = "The front" if len(ranked) <= 50 else f"50 of the {len(ranked)} trials of the front"
        tables = [_listed(data, parameters, some)]
        title = f"{purpose} trial {number_}, for example:"
        return PageResult(headline, tables, warnings, command_title=title, commands=commands)
    tables = [parameter_table(f"The configuration (trial {number_})", best.trial.params)]
    is_sure = best.confirmed is not None and best.confirmed.low is not None
    return PageResult(headline, tables, warnings, is_sure, f"{purpose} it:", commands)


def details(data: ReportData, parameters: Sequence[str]) -> PageSection | None:
    """How sure the result is, what it cost, and the best trials side by side; None before the
    first trial."""
    result, best = data.result, data.result.best
    lines = _costs(data)
    tables = []
    if best is not None:
        lines = [*_certainty(data, best), *lines]
        if len(data.ranked) > 1:
            marks = ["= too close to call"] if result.tied else []
            marks += ["? trained too little to tell"] if result.unknown else []
            meaning = f" ({'; '.join(marks)})" if marks else ""
            tables.append(_listed(data, parameters, f"The best trials{meaning}"))
    elif data.ranked:
        lines = [*_of_front(data), *lines]
    title = "How sure that is, and what it cost" if data.ranked else "What it cost"
    return PageSection("details", title, lines, tables=tables) if lines else None


def sentence(text: str) -> Pieces:
    """A text as a sentence of a page: with a capital letter and a full stop."""
    return (f"{text[:1].upper()}{text[1:]}{'' if text.endswith('.') else '.'}",)


def _certainty(data: ReportData, best: Ranked[TrialRow]) -> list[Pieces]:
    result, trial = data.result, best.trial
    lines: list[Pieces] = []
    if trial.violation > 0:
        over = f"{trial.violation:.1%}"
        lines.append((f"No trial keeps the limits; this one exceeds them by {over}.",))
    if worth(best) != number(best.value):
        lines.append((foreign_name(data.goal.metric), f" {worth(best)}."))
    lines.append(sentence(luck(best)))
    shown = f"The best value that it showed in the search is {number(best.value)}"
    at = result.seen_at.get(trial.number)
    where: Pieces = () if at is None else (f", at {number(at)} ", foreign(data.unit))
    lines.append((shown, *where, "."))
    if trial.state is not State.COMPLETE:
        lines.append((f"It has not been trained to the end: it is {trial.state.value}.",))
    for text in (rivals(result), gain(result), caveat(result.trust)):
        if text is not None:
            lines.append(sentence(text))
    return lines


def _costs(data: ReportData) -> list[Pieces]:
    counts = data.status.summary.trials
    total = sum(counts.values())
    if not total:
        return []
    states = ", ".join(f"{counts[state]:,} {state.value}" for state in State if counts.get(state))
    charged = data.attempts["gpu_seconds"].sum()
    seconds = max(float(charged), data.status.summary.gpu_seconds)
    used = {line.name: line.used for line in data.status.budget}
    active = used["wall_clock_seconds"]
    money = f", a cost of {number(used['cost'])}" if "cost" in used else ""
    trials = f"{total:,} {'trial' if total == 1 else 'trials'} ({states})"
    so_far = " so far" if data.is_going_on else ""
    if data.attempts.empty and seconds == 0:
        return [(f"Tried{so_far}: {trials}. What they cost is not recorded.",)]
    took = f"{duration(seconds)} of compute time{money}, {duration(active)} of wall clock"
    lines: list[Pieces] = [(f"Cost{so_far}: {took}, {trials}.",)]
    if devices := by_device(data.status):
        lines.append(("By type of device: ", foreign(devices), "."))
    return lines


def _commands(data: ReportData, trial: TrialRow) -> list[str]:
    """Commands that train a trial's configuration, or print its parameters where only a program of
    the user's own trains it; empty for a study without a task."""
    way = way_to_train(data.study.content)
    if way is None:
        return []
    words = as_argument(data.study.name)
    if way is Way.COMMAND:
        return [data.command(f"train --trial {trial.number} {words}")]
    only = f'--where "number = {trial.number}" --format'
    if way is Way.OWN:
        return [data.command(f"best {only} json {words}")]
    settings = data.command(f"best {only} yaml {words}")
    return [f"{settings} > best.yaml", "python -m trials best.yaml --out model"]


def parameter_table(caption: str, params: Mapping[str, Any]) -> PageTable:
    """Parameters by name, with their values."""
    rows = [(foreign(name), foreign(cell(value))) for name, value in params.items()]
    return PageTable(caption, ("parameter", "value"), rows, frozenset({1}))


def _listed(data: ReportData, parameters: Sequence[str], caption: str) -> PageTable:
    ranked = data.ranked[:50]
    named = parameters[:MOST_PARAMETERS]
    left_out = len(parameters) - len(named)
    more = f", with the {len(named)} most important of {len(parameters)} parameters"
    heads, cells = _columns(data, ranked)
    heads += [foreign_name(name) for name in named]
    rows = []
    for each, own in zip(ranked, cells, strict=True):
        rows.append([*own, *(_parameter(each.trial.params, name) for name in named)])
    numeric = frozenset({0, *range(2, len(heads))})
    return PageTable(caption + (more if left_out else ""), heads, rows, numeric)


def _parameter(params: Any, name: str) -> str:
    return foreign_name(cell(params[name])) if name in params else NOTHING


def _columns(
    data: ReportData, ranked: Sequence[Ranked[TrialRow]]
) -> tuple[list[str], list[list[str]]]:
    """The heads, and for each trial the cells, of the columns that are not parameters."""
    goals = data.history.goals
    is_known = any(each.again and (each.again.low, each.again.runs) != (None, 0) for each in ranked)
    heads: list[str] = ["trial", "state", *(foreign_name(goal.metric) for goal in goals)]
    heads += ["if trained again (90%)"] * is_known
    heads += ["compute time"]
    cells = []
    for each in ranked:
        trial = each.trial
        mark = " =" if each.tied and len(goals) == 1 else " ?" * each.unknown
        of_goals = [each.value] if trial.values is None else trial.values
        own = [f"{trial.number}{mark}", trial.state.value, *map(number, of_goals)]
        if is_known:
            own.append(if_again(each.again))
        own.append(duration(trial.gpu_seconds))
        cells.append(own)
    return heads, cells


def _of_front(data: ReportData) -> list[Pieces]:
    """The meaning of a front, and whether it keeps the limits."""
    meaning = (
        "With several objectives there is no single best configuration: no other trial beats one "
        "of the front in all of them."
    )
    over = data.ranked[0].trial.violation > 0
    return [(meaning,), *[("No trial keeps the limits.",)] * over]
