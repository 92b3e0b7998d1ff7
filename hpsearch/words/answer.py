"""What a study gained over the default settings of its task, in a sentence."""

from __future__ import annotations

from sqlalchemy import Connection

from hpsearch.ranking.repeats import Confirmed
from hpsearch.ranking.selection import Ranked, standing
from hpsearch.store.reading.queries import StudyHead, TrialRow, best_trials, trial_rows
from hpsearch.words.estimates import expected, interval, may_change
from hpsearch.words.numbers import number

LUCK = "; part of this may be luck: search.confirm measures it"
"""Ends the sentence on a trial that was not repeated."""


def gained_by(connection: Connection, study: StudyHead) -> str | None:
    """What the study gained over the default settings, in a sentence; None if it is not known."""
    if not study.has_best:
        return None
    default = default_of(connection, study)
    first = best_trials(connection, study, 1)
    if default is None or not first:
        return None
    return gain(first[0], default, study.metric or "value", study.direction)


def default_of(connection: Connection, study: StudyHead) -> TrialRow | None:
    """The trial of the default settings; None if there was none."""
    rows = trial_rows(connection, study, where="role = 'default'", limit=1)
    return rows[0] if rows else None


def gain(
    best: Ranked[TrialRow], default: TrialRow | None, metric: str, direction: str
) -> str | None:
    """The sentence; None if there is nothing to compare with.

    A best trial that was repeated counts by the mean of its repeats. Any other counts by what is
    expected of it in full, or else by its own value, which is the luckiest of many; and so does the
    trial of the default settings.

    Args:
        best: The first of the ranking.
        default: The trial of the default settings, trained in full.
        metric: What is compared.
        direction: ``minimize`` or ``maximize``.
    """
    more = gained(best, default, direction)
    if more is None or default is None:
        return None
    if best.trial.number == default.number:
        before = number(standing(default))
        return f"no trial is better than the default settings: {metric} {before} (trial 0)"
    sentence = f"{metric} {written(best)}, {compared(more, default)}"
    if best.confirmed is None and more > 0:
        return sentence + LUCK
    return sentence


def gained(best: Ranked[TrialRow], default: TrialRow | None, direction: str) -> float | None:
    """By how much the best trial is better than the default settings; None if that is not known.

    Args:
        best: The first of the ranking.
        default: The trial of the default settings, trained in full.
        direction: ``minimize`` or ``maximize``.
    """
    if default is None or default.value is None or best.trial.violation > 0:
        return None
    difference = _worth(best) - standing(default)
    return difference if direction == "maximize" else -difference


def compared(more: float, default: TrialRow) -> str:
    """``0.1 better than the default settings' 0.8 (trial 0)``"""
    than = f"the default settings' {number(standing(default))} (trial {default.number})"
    if more <= 0:
        return f"not better than {than}"
    return f"{number(more)} better than {than}"


def written(best: Ranked[TrialRow]) -> str:
    """The value that a trial counts by: its confirmed mean, what is expected of it in full, or its
    own."""
    if best.confirmed is not None:
        return interval(best.confirmed)
    if may_change(best.trial):
        return f"{expected(best.trial)} expected in full"
    return number(standing(best.trial))


def _worth(best: Ranked[TrialRow]) -> float:
    confirmed: Confirmed | None = best.confirmed
    return standing(best.trial) if confirmed is None else confirmed.mean
