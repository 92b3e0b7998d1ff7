"""Trials side by side: the parameters in which they differ, and the levels that they share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hpsearch.store.reading.queries import TrialDetail

MOST_COMPARED = 100
"""The most trials that are compared at once."""


def parameter_names(trials: Sequence[TrialDetail]) -> list[str]:
    """The names of all parameters that any of the trials has."""
    return list(dict.fromkeys(name for each in trials for name in each.trial.params))


def differences(trials: Sequence[TrialDetail]) -> dict[str, list[Any]]:
    """The parameters in which trials differ, each with its values; None where one has none."""
    found = {}
    for name in parameter_names(trials):
        values = [each.trial.params.get(name) for each in trials]
        if any(value != values[0] for value in values):
            found[name] = values
    return found


def common_levels(trials: Sequence[TrialDetail]) -> list[float]:
    """The resource levels at which all trials reported, in order."""
    reached = [{report["resource"] for report in each.reports} for each in trials]
    return sorted(set.intersection(*reached))
