"""The page of a study as text: its result first, then how sure that is, its cost, and the rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hpsearch.domain.numbers import NOTHING, cell, duration, first_line, moment, number
from hpsearch.search.ranking.selection import Ranked
from hpsearch.store.reading.history_frames import rows_in
from hpsearch.store.reading.queries import TrialRow
from hpsearch.views.report.charts import parameters
from hpsearch.views.report.charts.curves import curves
from hpsearch.views.report.charts.parameters import Configurations
from hpsearch.views.report.charts.progress import best_so_far, front
from hpsearch.views.report.charts.style import Chart
from hpsearch.views.report.compute_time import spending
from hpsearch.views.report.data import ReportData
from hpsearch.views.report.rendering import (
    PageResult,
    PageSection,
    PageTable,
    Pieces,
    ReportPage,
    as_html,
    as_markdown,
    foreign,
    foreign_name,
    summary_html,
)
from hpsearch.views.result.training import Way, to_train, way_to_train
from hpsearch.views.words.certainty import in_detail, opening
from hpsearch.views.words.estimates import if_again
from hpsearch.views.words.requests import outcome, wish

MOST_FINDINGS = 30
MOST_REQUESTS = 30


def html_report(data: ReportData) -> str:
    """The report of a study as HTML.

    Raises:
        UserError: Plotly is not installed.
    """
    return as_html(page(data))


def markdown_report(data: ReportData) -> str:
    """The report of a study as Markdown, without charts."""
    return as_markdown(page(data, with_charts=False))


def summary(data: ReportData) -> str:
    """The result of a study as a piece of HTML; no importances are computed."""
    names = list(data.history.params.columns)
    return summary_html(_page(data, names, [details(data, names)]))


def page(data: ReportData, *, with_charts: bool = True) -> ReportPage:
    """The whole page, with or without pictures."""
    of = parameters.configurations(data, data.goal)
    names = [each.name for each in of.parameters]
    sections = [
        _parameters(data, of, with_charts),
        details(data, names),
        _budget(data),
        _requests(data),
        _troubles(data),
        _origin(data),
    ]
    return _page(data, names, sections, _pictures(data) if with_charts else ())


def _page(
    data: ReportData,
    parameters: Sequence[str],
    sections: Sequence[PageSection | None],
    charts: Sequence[Chart] = (),
) -> ReportPage:
    return ReportPage(
        name=foreign(data.study.name, 120),
        subtitle=_subtitle(data),
        result=result_part(data, parameters),
        charts=charts,
        sections=[section for section in sections if section is not None],
        footer=(f"Made by hpsearch on {moment(data.now)}.",),
    )


def _subtitle(data: ReportData) -> Pieces:
    study = data.study
    parts: list[str] = []
    for place, goal in enumerate(data.history.goals):
        way = "maximizes" if goal.maximize else "minimizes"
        before = " and " if place else "Search that "
        parts += [f"{before}{way} ", foreign_name(goal.metric)]
    state = data.status.summary.state
    so_far = "" if state.is_over else ": all of this is so far"
    parts.append(f". Begun {moment(study.created)}; {state}{so_far}")
    if study.reason and study.reason != state:
        parts += [": ", foreign(study.reason)]
    return (*parts, ".")


def _pictures(data: ReportData) -> list[Chart]:
    """The pictures of the result: the best value over time, beside all learning curves."""
    bests = (best_so_far(data, goal) for goal in data.history.goals)
    return _drawn([front(data), *bests, curves(data, data.goal)])


def _chosen(data: ReportData) -> list[Pieces]:
    """A line on which trials of a large study are shown."""
    shown, of = len(data.history.trials), data.history.count
    if shown == of:
        return []
    which = f"Of all {of:,} trials, {shown:,} are looked at here"
    return [(f"{which}: the best, and others with evenly spaced numbers.",)]


def _drawn(charts: Sequence[Chart | None]) -> list[Chart]:
    return [chart for chart in charts if chart is not None]


def _parameters(data: ReportData, of: Configurations, with_charts: bool) -> PageSection | None:
    if not of.can_compare:
        return None
    goal = data.goal
    lines = _parameter_lines(data, of)
    if with_charts:
        made = [parameters.importances(of), parameters.parallel_coordinates(goal, of)]
        charts = _drawn([*made, parameters.slices(goal, of)])
        return PageSection("parameters", "Parameters", lines, charts)
    tables = [] if of.importances.frame.empty else [_importances(of)]
    return PageSection("parameters", "Parameters", lines, tables=tables)


def _importances(of: Configurations) -> PageTable:
    shares = [
        (foreign(row.parameter), f"{row.importance:.0%}") for row in rows_in(of.importances.frame)
    ]
    heads = ("parameter", "share explained")
    return PageTable("Importance of parameters", heads, shares, frozenset({1}))


def _parameter_lines(data: ReportData, of: Configurations) -> list[Pieces]:
    several = " (the first objective)" if len(data.history.goals) > 1 else ""
    values = (
        f"{several}: the value if trained to the end, or else the best that they have shown. "
        "The best tenth is orange, the rest of the better half blue, the others are grey."
    )
    line = ("Trials are shown by ", foreign_name(data.goal.metric), values)
    lines: list[Pieces] = [*_chosen(data), line]
    found = of.importances
    if found.why_not is not None:
        return [*lines, (f"Which parameters mattered cannot be said: {found.why_not}.",)]
    source = (
        f"Importances are the shares of the differences between {found.trials:,} trials that a "
        "forest of trees explains by each parameter (mean decrease in impurity). They "
        "tell what varied in this search, not causes."
    )
    lines.append((source,))
    if found.unmeasured:
        names = foreign(", ".join(found.unmeasured))
        why = "Not measured, because not every trial has them or they never differ: "
        lines.append((why, names, "."))
    return lines


def _budget(data: ReportData) -> PageSection | None:
    spent = spending(data.attempts, [each.created for each in data.history.environments])
    if not spent:
        return None
    total = sum(seconds for seconds, _ in spent.values())
    rows = []
    for purpose, (seconds, counted) in spent.items():
        attempts = f"{counted:,}" if counted else NOTHING
        rows.append((purpose, duration(seconds), f"{seconds / total:.0%}", attempts))
    heads = ("for", "compute time", "share", "attempts")
    table = PageTable("Compute time by purpose", heads, rows, frozenset({1, 2, 3}))
    line = (
        "Start-up is the time before an attempt could train. Idle slots are not charged: they "
        "waited between attempts, or for the last trials to end."
    )
    return PageSection("budget", "Where the time went", [(line,)], tables=[table])


def _requests(data: ReportData) -> PageSection | None:
    requests = data.status.requests
    if not requests:
        return None
    rows = []
    for each in requests[-MOST_REQUESTS:]:
        when, who = moment(each.created or None), foreign_name(each.origin)
        rows.append((when, who, foreign(wish(each)), foreign(outcome(each))))
    caption = "Requests"
    if len(requests) > MOST_REQUESTS:
        caption = f"The last {MOST_REQUESTS} of {len(requests):,} requests"
    table = PageTable(caption, ("when", "by", "what", "answer"), rows)
    return PageSection("asked", "What was asked while it ran", tables=[table])


def _troubles(data: ReportData) -> PageSection | None:
    tables = [table for table in (_failures(data), _findings(data)) if table.rows]
    return PageSection("troubles", "Findings and failures", tables=tables) if tables else None


def _failures(data: ReportData) -> PageTable:
    rows = []
    for each in data.status.failures:
        kind, message = each.kind.replace("_", " "), foreign(first_line(each.text))
        rows.append((kind, f"{each.count:,}", str(each.trial), message))
    heads = ("cause", "trials", "latest", "its message")
    return PageTable("Failed trials by cause", heads, rows, frozenset({1, 2}))


def _findings(data: ReportData) -> PageTable:
    found = sorted(data.history.findings.items(), key=lambda item: -item[1].trials)
    rows = []
    for (severity, name), of in found[:MOST_FINDINGS]:
        evidence = foreign(of.evidence)
        rows.append((foreign(name), severity, f"{of.trials:,}", str(of.latest), evidence))
    heads = ("finding", "severity", "trials", "latest", "its evidence")
    return PageTable("Findings about the health of trainings", heads, rows, frozenset({2, 3}))


def _origin(data: ReportData) -> PageSection | None:
    environments = data.history.environments
    lines: list[Pieces] = []
    tables = []
    if environments:
        latest = environments[-1]
        facts = {
            "device": latest.device,
            "code revision": latest.revision,
            "data fingerprint": latest.data_fingerprint,
            **latest.packages,
        }
        rows = [(foreign(name), foreign(value)) for name, value in facts.items() if value]
        tables.append(PageTable("Environment", ("what", "which"), rows))
        if len(environments) > 1:
            begun = f"Its driver began {len(environments)} times; this is the latest environment."
            lines.append((begun,))
    code = [("Study file", data.study.spec)] if data.study.spec else []
    if not tables and not code:
        return None
    return PageSection("origin", "Environment and study file", lines, tables=tables, code=code)


MOST_PARAMETERS = 8
"""Columns for parameters in a table of several configurations."""


def result_part(data: ReportData, parameters: Sequence[str]) -> PageResult:
    """The sentence that opens the page, the best configuration, and how to train it; the most
    important parameters come first."""
    result, ranked = data.result, data.ranked
    headline = opening(result, data.status.summary, foreign_name)
    without_effect = result.no_effect
    warnings = [] if without_effect is None else [sentence(without_effect.warning)]
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
