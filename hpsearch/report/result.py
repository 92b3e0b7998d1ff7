"""The result of a study on its page: the best configuration, how sure that is, and its cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

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
from hpsearch.result.training import Way, to_train, way_to_train
from hpsearch.store.reading.queries import TrialRow
from hpsearch.words.certainty import in_detail, without_effect
from hpsearch.words.estimates import if_again
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
    commands = [command for command, _ in to_train(data.study, number_, data.command)]
    is_trained = way_to_train(data.study.content) in (Way.COMMAND, Way.FILE)
    purpose = "To train" if is_trained else "For your own program: the parameters of"
    if best is None:
        some = "The front" if len(ranked) <= 50 else f"50 of the {len(ranked)} trials of the front"
        meaning = "no other trial beats one of them in all objectives"
        over = "; no trial keeps the limits" if ranked[0].trial.violation > 0 else ""
        tables = [_listed(data, parameters, f"{some}: {meaning}{over}")]
        title = f"{purpose} trial {number_}, for example:"
        return PageResult(headline, tables, warnings, command_title=title, commands=commands)
    tables = [parameter_table(f"The configuration (trial {number_})", best.trial.params)]
    is_sure = best.confirmed is not None and best.confirmed.low is not None
    return PageResult(headline, tables, warnings, is_sure, f"{purpose} it:", commands)


def details(data: ReportData, parameters: Sequence[str]) -> PageSection | None:
    """How sure the result is, what it cost, and the best trials side by side; None before the
    first trial."""
    result = data.result
    if not data.status.summary.trials:
        return None
    facts = in_detail(result, data.status)
    devices = facts.pop("by device", None)
    rows = list(facts.items()) + ([] if devices is None else [("by device", foreign(devices))])
    tables = [PageTable("In detail", ("what", ""), rows)]
    if result.best is not None and len(data.ranked) > 1:
        marks = ["= too close to call"] if result.tied else []
        marks += ["? trained too little to tell"] if result.unknown else []
        meaning = f" ({'; '.join(marks)})" if marks else ""
        tables.append(_listed(data, parameters, f"The best trials{meaning}"))
    title = "How sure that is, and what it cost" if data.ranked else "What it cost"
    return PageSection("details", title, tables=tables)


def sentence(text: str) -> Pieces:
    """A text as a sentence of a page: with a capital letter and a full stop."""
    return (f"{text[:1].upper()}{text[1:]}{'' if text.endswith('.') else '.'}",)


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
