"""What a study gained: its best trial against the task's default settings, in a sentence."""

from __future__ import annotations

from hpsearch.repeats import Confirmed
from hpsearch.selection import Ranked
from hpsearch.store.queries import TrialRow
from hpsearch.views.numbers import number
from hpsearch.views.tables import interval


def gain(best: Ranked[TrialRow], default: TrialRow | None, metric: str, direction: str) -> str | None:
    """The sentence; None where there is nothing to compare with.

    A best trial that was repeated stands by the mean of its repeats; else by its own value, the luckiest of many.

    Args:
        best: The first of the ranking.
        default: The trial of the default settings, trained in full.
        metric: What is compared.
        direction: ``minimize`` or ``maximize``.
    """
    if default is None or default.value is None or best.trial.violation > 0:
        return None
    if best.trial.number == default.number:
        return f"nothing that was tried is better than the default settings: {metric} {number(default.value)} (trial 0)"
    value, worth = _worth(best)
    gained = value - default.value if direction == "maximize" else default.value - value
    than = f"the default settings' {number(default.value)} (trial {default.number})"
    if gained <= 0:
        return f"{metric} {worth}, no better than {than}"
    lucky = "" if best.confirmed is not None else "; a part of that may be luck, which search.confirm would tell"
    return f"{metric} {worth}, {number(gained)} better than {than}{lucky}"


def _worth(best: Ranked[TrialRow]) -> tuple[float, str]:
    confirmed: Confirmed | None = best.confirmed
    if confirmed is None:
        return best.value, number(best.value)
    return confirmed.mean, interval(confirmed)
