"""Past runs as every reader leaves them, and the error for those that do not fit."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from optuna.distributions import BaseDistribution

from hpsearch.domain.facts import ErrorKind
from hpsearch.domain.lifecycle import State
from hpsearch.errors import UserError
from hpsearch.study_file.models import Objective
from trials.settings import nearest

MOST_SHOWN = 10
"""So many misfits are listed; the rest is counted."""


@dataclass(slots=True)
class PastRun:
    """One run that has ended."""

    place: str
    """Where it is, for errors: a file with a row, or a trial of a study."""
    params: dict[str, Any]
    """Only those that it has."""
    state: State
    """Complete, pruned or failed."""
    values: tuple[float, ...] | None = None
    """Its result: one value for each objective. A complete run has one."""
    curve: dict[float, dict[str, float]] = field(default_factory=dict)
    """The metrics by resource, rising."""
    name: str | None = None
    """What the source calls it."""
    error_kind: ErrorKind | None = None
    """Why it failed; a failed run has one."""
    error_text: str | None = None
    started: float | None = None
    """Seconds since the epoch."""
    ended: float | None = None
    distributions: dict[str, BaseDistribution] | None = None
    """What each parameter was drawn from, where the source knows it."""


@dataclass(slots=True)
class PastRuns:
    """All runs of a source."""

    kind: str
    """The kind of source, such as `Ray Tune`."""
    source: str
    """Where they are from, without passwords."""
    objectives: tuple[Objective, ...]
    runs: list[PastRun]
    notes: list[str] = field(default_factory=list)
    """What a person should know, such as how many runs were left out."""


@dataclass(frozen=True, slots=True)
class Measures:
    """What runs are compared by, and how far they have trained.

    Attributes:
        metrics: By the name of each objective, what the source calls it.
        directions: Minimize or maximize, for each objective.
        resource: What the source calls the resource of a report; None for the usual name.
    """

    metrics: Mapping[str, str]
    directions: tuple[str, ...]
    resource: str | None = None

    @property
    def objectives(self) -> tuple[Objective, ...]:
        """The objectives as a study file states them."""
        named = zip(self.metrics, self.directions, strict=True)
        pairs = [{"metric": metric, "direction": direction} for metric, direction in named]
        return tuple(Objective.model_validate(pair) for pair in pairs)

    def renamed(self, metrics: Mapping[str, float]) -> dict[str, float]:
        """Metrics of the source under the names of the objectives."""
        names = {theirs: ours for ours, theirs in self.metrics.items()}
        return {names.get(name, name): value for name, value in metrics.items()}

    def values_in(self, metrics: Mapping[str, float]) -> tuple[float, ...] | None:
        """The objectives' values among metrics of ours; None if one is missing."""
        if any(name not in metrics for name in self.metrics):
            return None
        return tuple(metrics[name] for name in self.metrics)


class Misfits:
    """What does not fit in a source. Reading goes on, so that all of it can be told at once."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._found: dict[str, None] = {}

    def add(self, place: str, what: str) -> None:
        """Note one: where it is, and what is wrong with it and how to fix it."""
        self._found[f"{place}: {what}"] = None

    def has(self, place: str) -> bool:
        """Whether anything at a place, or in what is below it, does not fit."""
        inside = (f"{place}:", f"{place}/", f"{place},")
        return any(found.startswith(inside) for found in self._found)

    def refuse(self) -> None:
        """Refuse the source if anything did not fit.

        Raises:
            UserError: It lists what.
        """
        if not self._found:
            return
        lines = [f"  {line}" for line in list(self._found)[:MOST_SHOWN]]
        more = len(self._found) - len(lines)
        if more:
            lines.append(f"  and {more} more")
        count = f"{len(self._found)} problem" + ("s" if len(self._found) > 1 else "")
        text = "\n".join([f"{count} in {self._source}; nothing was imported:", *lines])
        raise UserError(text)


def check(found: PastRuns, misfits: Misfits) -> None:
    """Look at what every source must hold to.

    Names occur once, resources are numbers that are not negative, and a complete run has a result.

    Raises:
        UserError: Something does not fit, or there is no run.
    """
    if not found.runs:
        misfits.refuse()
        raise UserError(
            f"{found.source} holds no run that has ended or reported; nothing was imported",
            "check that it is the right source",
        )
    places: dict[str, str] = {}
    for run in found.runs:
        if run.name is not None and run.name in places:
            first = places[run.name]
            misfits.add(run.place, f"{run.name} occurs twice, first at {first}; remove one")
        if run.name is not None:
            places.setdefault(run.name, run.place)
        lacks_result = run.state is State.COMPLETE and run.values is None
        if lacks_result and not misfits.has(run.place):
            wanted = ", ".join(objective.metric for objective in found.objectives)
            known = _metrics_of(run)
            misfits.add(run.place, f"is complete and has no {wanted}; {nearest(wanted, known)}")
        for resource in run.curve:
            if not math.isfinite(resource) or resource < 0:
                misfits.add(run.place, f"resource {resource:g} must be a number of at least 0")
    misfits.refuse()


def _metrics_of(run: PastRun) -> list[str]:
    names = {name: None for metrics in run.curve.values() for name in metrics}
    return list(names)


def without_constants(found: PastRuns) -> None:
    """Leave out the parameters that are the same in all runs: a configuration holds much that
    nobody searched."""
    names = list(dict.fromkeys(name for run in found.runs for name in run.params))
    constant = []
    for name in names:
        values = [run.params.get(name) for run in found.runs]
        if all(value == values[0] for value in values):
            constant.append(name)
    if not constant or len(constant) == len(names):
        return
    for run in found.runs:
        for name in constant:
            del run.params[name]
    found.notes.append(f"the same in all runs, and left out: {', '.join(constant)}")


def settle(run: PastRun, unfinished: Callable[[], None]) -> bool:
    """Make a run whose result is not finite a failed one, and one that has not ended a pruned one.

    Args:
        run: The run; a state of running or queued means that it has not ended.
        unfinished: Called if it had not ended and is left out because it has reported nothing.

    Returns:
        Whether the run is kept.
    """
    if not run.state.terminal:
        if not run.curve:
            unfinished()
            return False
        run.state = State.PRUNED
    if run.state is State.FAILED:
        run.error_kind = run.error_kind or ErrorKind.ERROR
        run.values = None
    elif run.values is not None and not all(map(math.isfinite, run.values)):
        run.state = State.FAILED
        run.error_kind = ErrorKind.DIVERGED
        run.error_text = "its result is not a finite number"
        run.values = None
    return True


def begin_at_one(found: PastRuns) -> None:
    """Count resources from 1 where the source counts whole numbers from 0: its step 0 is what has
    been trained first."""
    resources = [resource for run in found.runs for resource in run.curve]
    if 0.0 not in resources or not all(resource.is_integer() for resource in resources):
        return
    for run in found.runs:
        run.curve = {resource + 1: metrics for resource, metrics in run.curve.items()}
    found.notes.append("steps are counted from 0 there, and from 1 here")
