"""The page of a study as text: its result first, then how sure that is, its cost, and the rest."""

from collections.abc import Iterable, Sequence

from hpsearch.domain.numbers import NOTHING, cell, duration, first_line, moment, number
from hpsearch.store.reading.history_frames import rows_in
from hpsearch.views import words
from hpsearch.views.report.charts import parameters, progress
from hpsearch.views.report.charts.revisions import ladder
from hpsearch.views.report.charts.style import Chart
from hpsearch.views.report.data import ReportData, spending
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
from hpsearch.views.result import Retraining, retraining_of, to_train

MOST_FINDINGS = 30
MOST_REQUESTS = 30
MOST_FRONT = 50  # trials of a front that are listed
MOST_PARAMETERS = 8  # columns for parameters in a table of several configurations


def html_report(data: ReportData) -> str:
    """The report of a study as HTML. Raises UserError if Plotly is not installed."""
    return as_html(page(data))


def markdown_report(data: ReportData) -> str:
    return as_markdown(page(data, with_charts=False))


def summary(data: ReportData) -> str:
    names = list(data.history.params.columns)
    return summary_html(_page(data, names, [_details(data, names)], ()))


def page(data: ReportData, *, with_charts: bool = True) -> ReportPage:
    found = parameters.configurations(data, data.goal)
    names = [each.name for each in found.parameters]
    sections = [
        _parameters(data, found, with_charts),
        _details(data, names),
        _budget(data),
        _requests(data),
        _troubles(data),
        _origin(data),
    ]
    charts: list[Chart | None] = []
    if with_charts:
        bests = [progress.best_so_far(data, goal) for goal in data.history.goals]
        charts = [progress.front(data), *bests, progress.curves(data, data.goal), ladder(data)]
    return _page(data, names, sections, charts)


def _page(
    data: ReportData,
    names: Sequence[str],
    sections: Sequence[PageSection | None],
    charts: Sequence[Chart | None],
) -> ReportPage:
    return ReportPage(
        name=foreign(data.study.name, 120),
        subtitle=_subtitle(data),
        result=_result(data, names),
        charts=_present(charts),
        sections=[section for section in sections if section is not None],
        footer=(f"Made by hpsearch on {moment(data.now)}.",),
    )


def _present(charts: Iterable[Chart | None]) -> list[Chart]:
    return [chart for chart in charts if chart is not None]


def _subtitle(data: ReportData) -> Pieces:
    study, state = data.study, data.status.summary.state
    parts: list[str] = []
    for goal in data.history.goals:
        way = "maximizes" if goal.maximize else "minimizes"
        parts += [f"{' and' if parts else 'Search that'} {way} ", foreign_name(goal.metric)]
    so_far = "" if state.is_over else ": all of this is so far"
    parts.append(f". Begun {moment(study.created)}; {state}{so_far}")
    if study.reason and study.reason != state:
        parts += [": ", foreign(study.reason)]
    return (*parts, ".")


def _parameters(
    data: ReportData, of: parameters.Configurations, with_charts: bool
) -> PageSection | None:
    if not of.can_compare:
        return None
    lines, found = _parameter_lines(data, of), of.importances
    charts: list[Chart | None] = []
    tables = []
    if with_charts:
        charts = [parameters.importances(of), parameters.parallel_coordinates(of)]
        charts.append(parameters.slices(of))
    elif not found.frame.empty:
        shares = [
            (foreign(each.parameter), f"{each.importance:.0%}") for each in rows_in(found.frame)
        ]
        heads = ("parameter", "share explained")
        tables = [PageTable("Importance of parameters", heads, shares, frozenset({1}))]
    return PageSection("parameters", "Parameters", lines, _present(charts), tables)


def _parameter_lines(data: ReportData, of: parameters.Configurations) -> list[Pieces]:
    lines: list[Pieces] = []
    shown, all_of_them = len(data.history.trials), data.history.count
    if shown < all_of_them:
        which = f"Of all {all_of_them:,} trials, {shown:,} are looked at here"
        lines.append((f"{which}: the best, and others with evenly spaced numbers.",))
    several = " (the first objective)" if len(data.history.goals) > 1 else ""
    values = (
        f"{several}: the value if trained to the end, or else the best that they have shown. "
        "The best tenth is orange, the rest of the better half blue, the others are grey."
    )
    lines.append(("Trials are shown by ", foreign_name(data.goal.metric), values))
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
        why = "Not measured, because not every trial has them or they never differ: "
        lines.append((why, foreign(", ".join(found.unmeasured)), "."))
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
        what, answer = words.request_in_words(each), words.answer_in_words(each)
        rows.append((when, who, foreign(what), foreign(answer)))
    caption = "Requests"
    if len(requests) > MOST_REQUESTS:
        caption = f"The last {MOST_REQUESTS} of {len(requests):,} requests"
    table = PageTable(caption, ("when", "by", "what", "answer"), rows)
    return PageSection("asked", "What was asked while it ran", tables=[table])


def _troubles(data: ReportData) -> PageSection | None:
    failures, findings = [], []
    for each in data.status.failures:
        kind, message = each.kind.replace("_", " "), foreign(first_line(each.text))
        failures.append((kind, f"{each.count:,}", str(each.trial), message))
    found = sorted(data.history.findings.items(), key=lambda item: -item[1].trials)
    for (severity, name), of in found[:MOST_FINDINGS]:
        counts = (f"{of.trials:,}", str(of.latest))
        findings.append((foreign(name), severity, *counts, foreign(of.evidence)))
    heads = ("cause", "trials", "latest", "its message")
    heads_ = ("finding", "severity", "trials", "latest", "its evidence")
    caption = "Findings about the health of trainings"
    tables = [
        PageTable("Failed trials by cause", heads, failures, frozenset({1, 2})),
        PageTable(caption, heads_, findings, frozenset({2, 3})),
    ]
    tables = [table for table in tables if table.rows]
    return PageSection("troubles", "Findings and failures", tables=tables) if tables else None


def _origin(data: ReportData) -> PageSection | None:
    environments = data.history.environments
    lines: list[Pieces] = []
    tables = []
    if environments:
        own = data.result.origins.best
        latest = own or environments[-1]
        facts = {
            "device": latest.device,
            "code revision": latest.revision,
            "data fingerprint": latest.data_fingerprint,
            **latest.packages,
        }
        rows = [(foreign(name), foreign(value)) for name, value in facts.items() if value]
        tables.append(PageTable("Environment", ("what", "which"), rows))
        if len(environments) > 1:
            which = "the latest one" if own is None else "that of the trial above"
            begun = f"Its driver began {len(environments)} times; this environment is {which}."
            lines.append((begun,))
    versions = data.result.origins.versions
    if len(versions) > 1:
        told = [(str(each.number), foreign(words.version(each))) for each in versions]
        tables.append(PageTable("Versions", ("version", "since"), told, frozenset({0})))
    if data.revisions:
        keys = ("number", "verdict", "reason", "origin", "why")
        tried = [[foreign(str(each[key])) for key in keys] for each in data.revisions]
        tables.append(PageTable("Changes of code", ("revision", *keys[1:]), tried, frozenset({0})))
    code = [("Study file", data.study.spec)] if data.study.spec else []
    if not tables and not code:
        return None
    return PageSection("origin", "Environment and study file", lines, tables=tables, code=code)


def _result(data: ReportData, names: Sequence[str]) -> PageResult:
    """The sentence that opens the page, the best configuration, and how to train it."""
    result, ranked = data.result, data.ranked
    headline = words.opening(result, data.status.summary, foreign_name)
    warnings: list[Pieces] = []
    if result.no_effect is not None:
        text = result.no_effect.warning
        warnings.append((f"{text[:1].upper()}{text[1:]}{'' if text.endswith('.') else '.'}",))
    if not ranked:
        return PageResult(headline, warnings=warnings)
    best, first = result.best, ranked[0].trial
    commands = [command for command, _ in to_train(data.study, first.number, data.command)]
    is_trained = retraining_of(data.study.content) in (Retraining.COMMAND, Retraining.FILE)
    purpose = "To train" if is_trained else "For your own program: the parameters of"
    if best is None:
        some, all_of_them = "The front", len(ranked)
        if all_of_them > MOST_FRONT:
            some = f"{MOST_FRONT} of the {all_of_them} trials of the front"
        meaning = "no other trial beats one of them in all objectives"
        over = "; no trial keeps the limits" if first.violation > 0 else ""
        tables = [_listed(data, names, f"{some}: {meaning}{over}")]
        title = f"{purpose} trial {first.number}, for example:"
        return PageResult(headline, tables, warnings, command_title=title, commands=commands)
    rows = [(foreign(name), foreign(cell(value))) for name, value in first.params.items()]
    caption = f"The configuration (trial {first.number})"
    tables = [PageTable(caption, ("parameter", "value"), rows, frozenset({1}))]
    is_sure = best.confirmed is not None and best.confirmed.low is not None
    return PageResult(headline, tables, warnings, is_sure, f"{purpose} it:", commands)


def _details(data: ReportData, names: Sequence[str]) -> PageSection | None:
    """How sure the result is, what it cost, and the best trials; None before the first one."""
    result = data.result
    if not data.status.summary.trials:
        return None
    facts = words.in_detail(result, data.status)
    for name in {"by device", "GPUs"} & facts.keys():
        facts[name] = foreign(facts[name])
    tables = [PageTable("In detail", ("what", ""), list(facts.items()))]
    if result.best is not None and len(data.ranked) > 1:
        marks = ["= too close to call"] if result.tied else []
        marks += ["? trained too little to tell"] if result.unknown else []
        meaning = f" ({'; '.join(marks)})" if marks else ""
        tables.append(_listed(data, names, f"The best trials{meaning}"))
    title = "How sure that is, and what it cost" if data.ranked else "What it cost"
    return PageSection("details", title, tables=tables)


def _listed(data: ReportData, names: Sequence[str], caption: str) -> PageTable:
    """The best trials, with their most important parameters."""
    ranked, goals = data.ranked[:MOST_FRONT], data.history.goals
    named = names[:MOST_PARAMETERS]
    is_known = any(each.again and each.again.is_measured for each in ranked)
    lasts = [each.trial.metrics.get(goals[0].metric) for each in ranked]
    has_last = len(goals) == 1 and list(map(number, lasts)) != [
        number(each.value) for each in ranked
    ]
    shown_as = ["value"] if len(goals) == 1 else [foreign_name(goal.metric) for goal in goals]
    heads: list[str] = ["trial", "state", *shown_as]
    heads += ["seen at", "last"] * has_last
    heads += ["if trained again (90%)"] * is_known
    has_versions = any(each.trial.version > 1 for each in ranked)
    heads += ["version"] * has_versions
    heads += ["compute time", *map(foreign_name, named)]
    rows = []
    for each, last in zip(ranked, lasts, strict=True):
        trial = each.trial
        mark = " =" if each.tied and len(goals) == 1 else " ?" * each.unknown
        shown = [each.value] if trial.values is None else trial.values
        cells = [f"{trial.number}{mark}", trial.state.value, *map(number, shown)]
        if has_last:
            cells += [number(data.result.seen_at.get(trial.number)), number(last)]
        if is_known:
            cells.append(words.if_again(each.again))
        cells += [str(trial.version)] * has_versions
        cells.append(duration(trial.gpu_seconds))
        for name in named:
            has_one = name in trial.params
            cells.append(foreign_name(cell(trial.params[name])) if has_one else NOTHING)
        rows.append(cells)
    if len(named) < len(names):
        caption += f", with the {len(named)} most important of {len(names)} parameters"
    return PageTable(caption, heads, rows, frozenset({0, *range(2, len(heads))}))
