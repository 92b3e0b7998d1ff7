"""The pictures of a story: what is drawn of it, thinned where it is large, and said in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from hpsearch.domain.lifecycle import State
from hpsearch.report.figures import courses, progress, time, trade_off
from hpsearch.report.figures.courses import CurveKind
from hpsearch.report.figures.style import value_range
from hpsearch.report.frames.clocks import wall_clock
from hpsearch.report.frames.configurations import (
    ranked_configurations,
)
from hpsearch.report.frames.progress import improvements
from hpsearch.report.frames.spending import purposes, spending
from hpsearch.report.frames.thinning import Thinned, evenly, join_short, thin_curves
from hpsearch.report.story import StudyStory
from hpsearch.store.reading.course import CourseGoal, each_row
from hpsearch.words.numbers import duration, number

if TYPE_CHECKING:
    import plotly.graph_objects as go

MOST_CURVES, MOST_CURVE_POINTS = 150, 60
MOST_POINTS = 1_200
MOST_BARS = 1_500
MOST_SLOTS = 32
TIMELINE_STEPS = 400
"""Attempts on a timeline that is too full are joined to bars of so many to its length."""

_KINDS = {
    State.COMPLETE: CurveKind.COMPLETE,
    State.PAUSED: CurveKind.PAUSED,
    State.PRUNED: CurveKind.PAUSED,
    State.FAILED: CurveKind.FAILED,
    State.RUNNING: CurveKind.RUNNING,
    State.QUEUED: CurveKind.RUNNING,
}


@dataclass(frozen=True, slots=True)
class Chart:
    """A picture with its words."""

    figure: go.Figure
    title: str | None
    """None where the heading above it, or its axis, says the same."""
    alternative: str
    """What it shows, for who cannot see it; foreign texts are not escaped."""
    remark: str | None = None
    """What to know before it is read: what was left out."""
    narrowest: int = 0
    """How many pixels wide it is at least: a narrower screen scrolls it."""


def best_so_far(story: StudyStory, goal: CourseGoal, against: progress.Spent) -> Chart | None:
    """The best value so far; None before there is one, and where the clock is not known."""
    frame = improvements(story.course, goal, story.attempts, story.spans, story.until)
    frame = frame[frame[against].notna()]
    if frame.empty:
        return None
    winner = story.winner
    confirmed = winner.confirmed if winner is not None else None
    spent = {"gpu_seconds": "compute time", "wall_seconds": "wall clock"}[against]
    first, last = frame.iloc[0], frame.iloc[-1]
    said = (
        f"The best {goal.metric} shown went from {number(first['value'])} "
        f"to {number(last['value'])} in {duration(last[against])} of {spent}."
    )
    made = progress.best_so_far(frame, goal, against, confirmed)
    alone = f"{goal.metric} alone, against" if len(story.course.goals) > 1 else "Against"
    return Chart(made, f"{alone} {spent}", said)


def curves(story: StudyStory, goal: CourseGoal) -> Chart | None:
    """The learning curves; None where no trial has reported a value."""
    course = story.course
    reports = course.reports[course.reports[goal.column].notna()]
    is_repeat = course.trials["role"] == "confirm"
    reports = reports[~reports["trial"].isin(course.trials.index[is_repeat])]
    if reports.empty:
        return None
    reports = reports.sort_values(["trial", "resource"], kind="stable")
    ranking = list(ranked_configurations(course, goal).index)
    if story.winner is not None:
        ranking = list(dict.fromkeys([story.winner.trial.number, *ranking]))
    thinned = thin_curves(reports, MOST_CURVES, MOST_CURVE_POINTS, ranking)
    states = course.trials["state"]
    kinds = {number: _KINDS[State(state)].value for number, state in states.items()}
    if story.winner is not None:
        kinds[story.winner.trial.number] = CurveKind.WINNER.value
    frame = thinned.frame.assign(kind=thinned.frame["trial"].map(kinds))
    remarks = [thinned.said("curves"), outside_remark(frame[goal.column], goal)]
    counts = frame.groupby("kind")["trial"].nunique()
    parts = ", ".join(f"{count} {kind}" for kind, count in counts.items())
    said = f"Learning curves of {goal.metric} by {story.unit}: {parts}."
    made = courses.curves(frame, goal, story.unit)
    return Chart(made, None, said, joined(remarks))


def outside_remark(values: pd.Series, goal: CourseGoal) -> str | None:
    """What to say of values that a picture leaves out; None if it has all."""
    limits, outside = value_range(values, goal.maximize)
    if limits is None:
        return None
    return f"{outside:,} values far worse than all others lie outside the picture."


def joined(remarks: Sequence[str | None]) -> str | None:
    """Remarks as one; None if there are none."""
    said = [remark for remark in remarks if remark]
    return " ".join(said) if said else None


def spent(story: StudyStory) -> pd.DataFrame:
    """Where the time went (`spending.spending`)."""
    return spending(story.attempts, story.course.trials, story.spans)


def budget(story: StudyStory) -> Chart | None:
    """Where the time went; None if no attempt is recorded."""
    frame = spent(story)
    if frame.empty:
        return None
    parts = [f"{row.part} {duration(row.gpu_seconds)}" for row in each_row(frame)]
    said = f"Compute time: {', '.join(parts)}."
    return Chart(time.budget(frame), None, said)


def timeline(story: StudyStory) -> Chart | None:
    """Who held which slot when; None if no attempt is recorded."""
    attempts = story.attempts
    if attempts.empty:
        return None
    bars, slots = _bars(story)
    workers = attempts["worker"].nunique()
    remarks = []
    if workers > len(slots):
        remarks.append(f"{len(slots)} of {workers} slots are drawn, the first ones.")
    if len(bars) > MOST_BARS:
        length = float(bars["end"].max())
        steps = max(20, min(TIMELINE_STEPS, 6_000 // max(1, len(slots))))
        bars = join_short(bars, length / steps, time.MIXED)
        remarks.append(f"Neighbouring attempts are joined to bars of up to 1/{steps} of the time.")
    pauses = wall_clock([span.end for span in story.spans[:-1]], story.spans)
    if len(pauses):
        remarks.append("Dashed lines mark interruptions, which are left out.")
    made = time.timeline(bars, slots, list(pauses))
    said = f"{len(attempts)} attempts on {workers} slots over the study's wall clock."
    return Chart(made, "Slots over time", said, joined(remarks))


def _bars(story: StudyStory) -> tuple[pd.DataFrame, list[str]]:
    """The bars of the timeline, and the names of its slots."""
    attempts = story.attempts
    kinds = purposes(attempts, story.course.trials)
    slots = list(attempts["worker"].unique())[:MOST_SLOTS]
    place = {slot: row for row, slot in enumerate(slots)}
    frame = pd.DataFrame(
        {
            "slot": attempts["worker"].map(place),
            "begin": wall_clock(attempts["started"], story.spans),
            "end": wall_clock(attempts["ended"], story.spans),
            "kind": kinds,
            "attempts": 1,
            "trial": attempts["trial"],
        }
    )
    frame = frame[frame["slot"].notna()].astype({"slot": int})
    return frame.sort_values(["slot", "begin"], kind="stable"), slots


def front(story: StudyStory) -> Chart | None:
    """The trade-off between the first two objectives; None without trials that have both."""
    goals = story.course.goals
    if len(goals) < 2:
        return None
    across, up = goals[0], goals[1]
    trials = story.course.trials
    has_both = trials[across.column].notna() & trials[up.column].notna()
    is_searched = (trials["role"] != "confirm") & (trials["state"] != State.FAILED)
    trials = trials[has_both & is_searched]
    if trials.empty:
        return None
    numbers = {each.trial.number for each in story.ranked}
    on_front = pd.Series(trials.index.isin(numbers), index=trials.index)
    order = list(trials.index)
    chosen = evenly(order, MOST_POINTS, np.asarray(order)[on_front.to_numpy()].tolist())
    thinned = Thinned(trials.loc[chosen], len(chosen), len(order))
    made = trade_off.front(thinned.frame, on_front.loc[chosen], (across, up))
    said = f"{int(on_front.sum())} of {len(order)} trials are beaten by none in all objectives."
    more = _further(len(goals) - 2)
    return Chart(made, "The front", said, joined([thinned.said("trials"), more]))


def _further(objectives: int) -> str | None:
    """Where to find the objectives that the picture of a front does not show."""
    if objectives <= 0:
        return None
    others = "third objective is" if objectives == 1 else f"other {objectives} objectives are"
    return f"The {others} in the table."
