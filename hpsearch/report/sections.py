"""The parts of the page below the answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from hpsearch.report import charts, parameter_charts
from hpsearch.report.charts import Chart
from hpsearch.report.parameter_charts import Configurations
from hpsearch.report.result import is_long, result_part, whole_configuration
from hpsearch.report.story import StudyStory
from hpsearch.report.wording import (
    PageSection,
    PageTable,
    Pieces,
    ReportPage,
    foreign,
    foreign_name,
)
from hpsearch.store.reading.course import CourseGoal, each_row
from hpsearch.store.reading.standing import Standing
from hpsearch.words.numbers import NOTHING, duration, first_line, moment
from hpsearch.words.requests import outcome, wish

MOST_FINDINGS = 30
MOST_REQUESTS = 30


def page(story: StudyStory, *, with_charts: bool = True) -> ReportPage:
    """The whole page.

    Args:
        story: The study's.
        with_charts: Whether it has pictures, which need plotly.
    """
    goals = story.course.goals
    of = parameter_charts.configurations(story, goals[0])
    sections = [
        _progress(story, with_charts),
        _curves(story, with_charts),
        _parameters(story, of, with_charts),
        _budget(story, with_charts),
        _asked(story),
        _troubles(story),
        _origin(story),
    ]
    parameters = [scale.name for scale in of.scales]
    return _page(story, parameters, [section for section in sections if section is not None])


def answer_alone(story: StudyStory) -> ReportPage:
    """The page without its sections, and without asking which parameters mattered."""
    return _page(story, list(story.course.params.columns), ())


def _page(
    story: StudyStory, parameters: Sequence[str], sections: Sequence[PageSection]
) -> ReportPage:
    return ReportPage(
        name=foreign(story.study.name, 120),
        subtitle=_subtitle(story),
        answer=result_part(story, parameters),
        sections=sections,
        footer=(f"Made by hpsearch on {moment(story.now)}.",),
    )


def _subtitle(story: StudyStory) -> Pieces:
    """What the study is, and how it stands."""
    study = story.study
    parts: list[str] = []
    for place, goal in enumerate(story.course.goals):
        way = "maximizes" if goal.maximize else "minimizes"
        before = " and " if place else "Search that "
        parts += [f"{before}{way} ", foreign_name(goal.metric)]
    state = story.status.summary.state
    parts.append(f". Begun {moment(study.created)}; {_STANDING[state]}")
    if study.reason and study.reason != state:
        parts += [": ", foreign(study.reason)]
    return (*parts, ".")


_STANDING = {
    Standing.RUNNING: "still running: all of this is so far",
    Standing.WAITING: "nobody has a trial of it: all of this is so far, and more can be asked for",
    Standing.ABANDONED: "its driver died: all of this is so far, and it can be resumed",
    Standing.INTERRUPTED: "interrupted: all of this is so far, and it can be resumed",
    Standing.FINISHED: "finished",
    Standing.FAILED: "given up",
}
"""The standing of a study, as the page says it."""


def _progress(story: StudyStory, with_charts: bool) -> PageSection | None:
    made: list[Chart | None] = [charts.front(story)] if with_charts else []
    several = len(story.course.goals) > 1
    for goal in story.course.goals if with_charts else ():
        made.append(charts.best_so_far(story, goal, "gpu_seconds"))
        if not several:
            made.append(charts.best_so_far(story, goal, "wall_seconds"))
    drawn = [chart for chart in made if chart is not None]
    if not drawn:
        return None
    lines: list[Pieces] = [
        (
            "The best value that any trial had shown by then, after whatever training. "
            "The wall clock stands still while nobody drives the study.",
        )
    ]
    return PageSection("progress", "Progress", lines, charts=drawn)


def _curves(story: StudyStory, with_charts: bool) -> PageSection | None:
    chart = charts.curves(story, story.goal) if with_charts else None
    return None if chart is None else PageSection("curves", "Learning curves", charts=[chart])


def _parameters(story: StudyStory, of: Configurations, with_charts: bool) -> PageSection | None:
    """Parallel coordinates, importances and slices; and all parameters of a long configuration."""
    winner = story.winner
    has_more = winner is not None and is_long(winner.trial)
    whole = [whole_configuration(winner.trial)] if winner is not None and has_more else []
    if not of.scales or len(of.ranked) < 2:
        return PageSection("parameters", "Parameters", tables=whole) if whole else None
    goal = story.goal
    lines: list[Pieces] = [_what_they_are_worth(story, goal)]
    lines.append(_how_measured(of))
    if of.importances.unmeasured and of.importances.why_not is None:
        names = foreign(", ".join(of.importances.unmeasured))
        lines.append(
            ("Not measured, because not every trial has them or they never differ: ", names, ".")
        )
    big: list[Chart | None] = []
    small: list[Chart] = []
    if with_charts:
        big = [
            parameter_charts.importances(of),
            parameter_charts.parallel_coordinates(story, goal, of),
        ]
        small = parameter_charts.slice_charts(story, goal, of)
    shares = [
        (foreign(row.parameter), f"{row.importance:.0%}") for row in each_row(of.importances.frame)
    ]
    heads = ("parameter", "share explained")
    table = PageTable("Importance of parameters", heads, shares, frozenset({1}))
    tables = [table] if shares and not with_charts else []
    return PageSection(
        "parameters",
        "Parameters",
        lines,
        charts=[chart for chart in big if chart is not None],
        small_charts=small,
        small_title="Slices",
        small_remark=parameter_charts.slices_remark(of, goal) if small else None,
        tables=[*tables, *whole],
    )


def _what_they_are_worth(story: StudyStory, goal: CourseGoal) -> Pieces:
    """By what trials are compared in the pictures of parameters."""
    several = " (the first objective)" if len(story.course.goals) > 1 else ""
    return (
        "Trials are shown by ",
        foreign_name(goal.metric),
        f"{several}: what is expected of them in full, or else the best value that they have "
        "shown. The best tenth is orange, the rest of the better half blue, the others are grey.",
    )


def _how_measured(of: Configurations) -> Pieces:
    if of.importances.why_not is not None:
        return (f"Which parameters mattered cannot be said: {of.importances.why_not}.",)
    return (
        "Importances are the shares of the differences between "
        f"{of.importances.trials:,} trials that a forest of trees explains by each parameter "
        "(Optuna's mean decrease in impurity). They tell what varied in this search, not causes.",
    )


def _budget(story: StudyStory, with_charts: bool) -> PageSection | None:
    spent = charts.spent(story)
    if spent.empty:
        return None
    total = spent["gpu_seconds"].sum()
    rows = [
        (
            row.part,
            duration(row.gpu_seconds),
            f"{row.gpu_seconds / total:.0%}",
            f"{row.attempts:,}" if row.attempts else NOTHING,
        )
        for row in each_row(spent)
    ]
    heads = ("for", "compute time", "share", "attempts")
    table = PageTable("Compute time by purpose", heads, rows, frozenset({1, 2, 3}))
    lines: list[Pieces] = [
        (
            "Start-up is the time before an attempt could train. Idle slots are not charged: they "
            "waited between attempts, or for the last trials to end.",
        )
    ]
    made = [charts.budget(story), charts.timeline(story)] if with_charts else []
    drawn = [chart for chart in made if chart is not None]
    return PageSection("budget", "Where the time went", lines, charts=drawn, tables=[table])


def _asked(story: StudyStory) -> PageSection | None:
    """What people asked while the study ran, and what came of it."""
    requests = story.status.requests
    if not requests:
        return None
    left_out = len(requests) - MOST_REQUESTS
    rows = []
    for each in requests[-MOST_REQUESTS:]:
        told = (moment(each.created or None), foreign_name(each.origin), foreign(wish(each)))
        rows.append((*told, foreign(outcome(each))))
    last = f"The last {MOST_REQUESTS} of {len(requests):,} requests"
    table = PageTable(last if left_out > 0 else "Requests", ("when", "by", "what", "answer"), rows)
    return PageSection("asked", "What was asked while it ran", tables=[table])


def _troubles(story: StudyStory) -> PageSection | None:
    """Failures by cause, and what trials showed of their health."""
    tables = [table for table in (_failures(story), _findings(story)) if table is not None]
    return PageSection("troubles", "Findings and failures", tables=tables) if tables else None


def _failures(story: StudyStory) -> PageTable | None:
    failures = story.status.failures
    if not failures:
        return None
    rows = []
    for each in failures:
        kind, message = each.kind.replace("_", " "), foreign(first_line(each.text))
        rows.append((kind, f"{each.count:,}", str(each.trial), message))
    heads = ("cause", "trials", "latest", "its message")
    return PageTable("Failed trials by cause", heads, rows, frozenset({1, 2}))


def _findings(story: StudyStory) -> PageTable | None:
    found = story.course.findings
    if not found:
        return None
    times = Counter((finding.severity.value, finding.name) for _, finding in found)
    latest = {(each.severity.value, each.name): (number, each.evidence) for number, each in found}
    rows = []
    for (severity, name), trials in times.most_common(MOST_FINDINGS):
        number, evidence = latest[(severity, name)]
        rows.append((foreign(name), severity, f"{trials:,}", str(number), foreign(evidence)))
    heads = ("finding", "severity", "trials", "latest", "its evidence")
    return PageTable("Findings about the health of trainings", heads, rows, frozenset({2, 3}))


def _origin(story: StudyStory) -> PageSection | None:
    """What the study ran on, and its study file."""
    environments = story.course.environments
    lines: list[Pieces] = []
    tables = []
    if environments:
        latest = environments[-1]
        facts: Mapping[str, str | None] = {
            "device": latest.device,
            "code revision": latest.revision,
            "data fingerprint": latest.data_fingerprint,
            **latest.packages,
        }
        rows = [
            (name if name not in latest.packages else foreign(name), foreign(value))
            for name, value in facts.items()
            if value
        ]
        tables.append(PageTable("Environment", ("what", "which"), rows))
        if len(environments) > 1:
            lines.append(
                (f"Its driver began {len(environments)} times; this is the latest environment.",)
            )
    code = [("Study file", story.study.spec)] if story.study.spec else []
    if not tables and not code:
        return None
    return PageSection("origin", "Environment and study file", lines, tables=tables, code=code)
