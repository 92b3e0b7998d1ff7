"""What a study gained over the default settings of its task, in a sentence."""

from __future__ import annotations

from sqlalchemy import Connection

from hpsearch.ranking.repeats import Confirmed
from hpsearch.ranking.selection import Ranked, standing
from hpsearch.store.reading.queries import StudyHead, TrialRow, best_trials, trial_rows
from hpsearch.views.numbers import number
from hpsearch.views.tables import expected, interval, may_change

LUCK = "; part of this may be luck: search.confirm measures it"
"""Ends the sentence on a trial that was not repeated."""


def gained_by(connection: Connection, study: StudyHead) -> str | None:
    """What the study gained over the default settings, in a sentence; None if it is not known."""
    if not study.has_best:
        return None
    default = trial_rows(connection, study, where="role = 'default'", limit=1)
    if not default:
        return None
    first = best_trials(connection, study, 1)
    if not first:
        return None
    objective = study.written.get("objective")
    metric = objective.get("metric", "value") if isinstance(objective, dict) else "value"
    return gain(first[0], default[0], str(metric), study.direction)


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
    if default is None or default.value is None or best.trial.violation > 0:
        return None
    baseline = standing(default)
    before = number(baseline)
    if best.trial.number == default.number:
        return f"no trial is better than the default settings: {metric} {before} (trial 0)"
    value, written = _worth(best)
    gained = value - baseline if direction == "maximize" else baseline - value
    than = f"the default settings' {before} (trial {default.number})"
    if gained <= 0:
        return f"{metric} {written}, not better than {than}"
    sentence = f"{metric} {written}, {number(gained)} better than {than}"
    if best.confirmed is None:
        return sentence + LUCK
    return sentence


def _worth(best: Ranked[TrialRow]) -> tuple[float, str]:
    """The value that a trial counts by, and how it is written."""
    confirmed: Confirmed | None = best.confirmed
    if confirmed is None:
        told = f"{expected(best.trial)} expected in full" if may_change(best.trial) else ""
        return standing(best.trial), told or number(standing(best.trial))
    return confirmed.mean, interval(confirmed)
