"""The result of a study on its page: the best configuration, how sure that is, and its cost."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from hpsearch.domain.lifecycle import State
from hpsearch.ranking.selection import Ranked
from hpsearch.report.data import ReportData
from hpsearch.report.wording import PageResult, PageTable, Pieces, foreign, foreign_name
from hpsearch.store.reading.queries import TrialRow
from hpsearch.words.certainty import caveat, gain, luck, rivals, without_effect, worth
from hpsearch.words.estimates import by_device, if_again
from hpsearch.words.numbers import NOTHING, cell, duration, number
from trials.descriptions.builtin import BUILT_IN
from trials.descriptions.command import COMMAND

MOST_PARAMETERS = 8
"""Columns for parameters in a table of several configurations."""


def result_part(data: ReportData, parameters: Sequence[str]) -> PageResult:
    """The result as texts and tables; the most important parameters come first."""
    if len(data.study.directions) > 1:
        return _several(data, parameters)
    result = data.result
    best = result.best
    if best is None:
        return PageResult((_nothing(data),), _costs(data), False, "", (), ())
    lines = [*_certainty(data, best), *_costs(data)]
    tables = [parameter_table(f"Trial {best.trial.number}", best.trial.params)]
    if len(data.ranked) > 1:
        marks = ["= cannot be told from the first"] if result.tied else []
        marks += ["? trained too little to tell"] if result.unknown else []
        meaning = f" ({'; '.join(marks)})" if marks else ""
        tables.append(_listed(data, parameters, f"The best trials{meaning}"))
    headline = (f"Trial {best.trial.number}: ", foreign_name(data.goal.metric), f" {worth(best)}")
    is_sure = best.confirmed is not None and best.confirmed.low is not None
    commands = _commands(data, best.trial)
    return PageResult(headline, lines, is_sure, "To train it:", commands, tables)


def sentence(text: str) -> Pieces:
    """A text as a sentence of a page: with a capital letter and a full stop."""
    return (f"{text[:1].upper()}{text[1:]}{'' if text.endswith('.') else '.'}",)


def _nothing(data: ReportData) -> str:
    """The reason why there is no best configuration."""
    counts = data.status.summary.trials
    total = sum(counts.values())
    if not total:
        return "No trial has started yet"
    failed = counts.get(State.FAILED, 0)
    if failed == total:
        which = "The only trial" if total == 1 else f"All {total:,} trials"
        return f"{which} failed, so there is no best configuration"
    if not data.study.has_best:
        return "The study states no direction, so there is no best configuration"
    return "No trial has a value yet"


def _warning(data: ReportData) -> list[Pieces]:
    warning = without_effect(data.result.no_effect)
    return [] if warning is None else [sentence(warning)]


def _certainty(data: ReportData, best: Ranked[TrialRow]) -> list[Pieces]:
    result = data.result
    lines: list[Pieces] = _warning(data)
    trial = best.trial
    if trial.violation > 0:
        over = f"{trial.violation:.1%}"
        lines.append((f"No trial keeps the limits; this one exceeds them by {over}.",))
    lines.append(sentence(luck(best)))
    shown = f"The best value that it showed in the search is {number(best.value)}"
    at = result.seen_at.get(trial.number)
    where: Pieces = () if at is None else (f", at {number(at)} ", foreign(data.unit))
    lines.append((shown, *where, "."))
    if trial.state is not State.COMPLETE:
        lines.append((f"It has not been trained in full: it is {trial.state.value}.",))
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
    """Commands that train a trial's configuration; empty for a study without a study file."""
    kind = data.task_kind
    if kind is None:
        return []
    name = shlex.quote(data.study.name)
    words = f"-- {name}" if name.startswith("-") else name
    if kind in BUILT_IN and kind != COMMAND.kind:
        options = f"--trial {trial.number}"
        return [f"hpsearch train {options} {words}"]
    only = f'--where "number = {trial.number}" --format yaml'
    return [
        f"hpsearch best {only} {words} > best.yaml",
        "python -m trials best.yaml --out model",
    ]


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


def _several(data: ReportData, parameters: Sequence[str]) -> PageResult:
    """The result of a study of several objectives: its front."""
    ranked = data.ranked
    if not ranked:
        return PageResult((_nothing(data),), _costs(data), False, "", (), ())
    goals = ", ".join(goal.metric for goal in data.history.goals)
    beaten = "trial that no other trial beats" if len(ranked) == 1 else "trials that none beats"
    headline = (f"{len(ranked)} {beaten} in all of: ", foreign(goals))
    lines: list[Pieces] = [
        (
            "With several objectives there is no single best configuration: each trial of the "
            "front is better than every other one in some objective.",
        ),
        *_warning(data),
    ]
    if ranked[0].trial.violation > 0:
        lines.append(("No trial keeps the limits.",))
    lines += _costs(data)
    caption = "The front" if len(ranked) <= 50 else f"50 of the {len(ranked)} trials of the front"
    commands = _commands(data, ranked[0].trial)
    title = f"To train trial {ranked[0].trial.number}, for example:"
    tables = [_listed(data, parameters, caption)]
    return PageResult(headline, lines, False, title, commands, tables)
