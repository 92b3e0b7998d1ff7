"""Past runs of another program, the columns that they are read from, and what does not fit."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from optuna.distributions import BaseDistribution

from hpsearch.domain.facts import ErrorKind
from hpsearch.domain.lifecycle import State
from hpsearch.errors import UserError
from hpsearch.study_file.models import Objective

MOST_SHOWN = 10
"""Problems that are listed; the others are counted."""


@dataclass(slots=True)
class PastRun:
    """One run of a source.

    Attributes:
        place: The row or trial that it is read from, for errors.
        state: Its state; running or queued if it has not ended.
        values: One value for each objective; None if it has no result.
        curve: The metrics by step, rising.
        started: Seconds since the epoch.
        ended: Seconds since the epoch.
        distributions: The distribution that each parameter was drawn from, where it is known.
    """

    place: str
    params: dict[str, Any]
    state: State
    values: tuple[float, ...] | None = None
    curve: dict[float, dict[str, float]] = field(default_factory=dict)
    name: str | None = None
    error_kind: ErrorKind | None = None
    error_text: str | None = None
    started: float | None = None
    ended: float | None = None
    distributions: dict[str, BaseDistribution] | None = None


@dataclass(slots=True)
class PastRuns:
    """All runs of a source.

    Attributes:
        kind: The kind of source, such as `Optuna`.
        source: The source, without passwords.
        objectives: The metrics that runs are compared by.
        notes: Remarks for a person, such as how many runs were left out.
    """

    kind: str
    source: str
    objectives: tuple[Objective, ...]
    runs: list[PastRun]
    notes: list[str] = field(default_factory=list)

    @property
    def steps(self) -> float:
        """The steps that runs have trained at most; 1 where they have no curves."""
        return max((step for run in self.runs for step in run.curve), default=1.0)


Problems = dict[str, str]
"""What does not fit in a source, by its place, and how to mend it. Reading goes on, so that one
error can list all of them."""


def _refuse(problems: Problems, source: str) -> None:
    """Refuse a source if anything does not fit."""
    if not problems:
        return
    lines = [f"  {place}: {what}" for place, what in problems.items()]
    if len(lines) > MOST_SHOWN:
        lines[MOST_SHOWN:] = [f"  and {len(lines) - MOST_SHOWN} more"]
    head = f"{len(problems)} problems in {source}; nothing was imported:"
    raise UserError("\n".join([head, *lines]))


@dataclass(frozen=True, slots=True)
class Mapped:
    """The columns of a source, each named by an option of the command line.

    Attributes:
        params: The column of each parameter; empty for all.
        metric: The column of each objective.
        direction: `minimize` or `maximize`, for each objective.
        run: The column that names a run.
        state: The column with the state of a run.
        study: The study in a storage of Optuna's.
    """

    params: Mapping[str, str] = field(default_factory=dict)
    metric: Mapping[str, str] = field(default_factory=dict)
    direction: tuple[str, ...] = ()
    run: str | None = None
    state: str | None = None
    study: str | None = None

    @property
    def objectives(self) -> tuple[Objective, ...]:
        """The objectives as a study file states them. Raises UserError if the metric or its
        direction is missing or wrong."""
        if not self.metric:
            what = "it is not said what the runs are compared by"
            raise UserError(what, "name the metric: --metric NAME, or --metric NAME=COLUMN")
        if len(self.direction) != len(self.metric):
            what = f"{len(self.metric)} metrics and {len(self.direction)} directions are given"
            hint = "--direction minimize or --direction maximize for each --metric, in its order"
            raise UserError(what, hint)
        for word in self.direction:
            if word not in ("minimize", "maximize"):
                raise UserError(f"--direction {word}: must be minimize or maximize")
        named = zip(self.metric, self.direction, strict=True)
        pairs = [{"metric": metric, "direction": direction} for metric, direction in named]
        return tuple(Objective.model_validate(pair) for pair in pairs)


def pairs(option: str, texts: Iterable[str]) -> dict[str, str]:
    """The names and columns of `lr=learning_rate,depth`, which may be given in several parts.
    Raises UserError if a part is not such a pair, or a name appears twice."""
    found: dict[str, str] = {}
    text = ",".join(texts)
    for part in text.split(",") if text else ():
        ours, equals, theirs = (piece.strip() for piece in part.partition("="))
        theirs = theirs if equals else ours
        if not ours or not theirs:
            raise UserError(f'{option} "{text}": write NAME=COLUMN, or NAME where both are alike')
        if ours in found:
            raise UserError(f'{option} "{text}": {ours} appears twice')
        found[ours] = theirs
    return found


def settle(found: PastRuns, problems: Problems) -> None:
    """Bring runs to an end, and check what every source must hold to.

    A run whose result is not finite, or its last report where it has no result, has failed. A run
    that has not ended is pruned, or left out if it has reported nothing. Raises UserError if
    something does not fit, or there is no run.
    """
    kept = [run for run in found.runs if run.state.terminal or run.curve]
    if len(kept) < len(found.runs):
        left_out = len(found.runs) - len(kept)
        found.notes.append(f"{left_out} unfinished runs without a report were left out")
    found.runs = kept
    if not kept:
        _refuse(problems, found.source)
        what = f"{found.source} holds no run that has ended or reported; nothing was imported"
        raise UserError(what, "check that it is the right source")
    places: dict[str, str] = {}
    for run in kept:
        _end(run)
        if run.state is State.COMPLETE and run.values is None:
            wanted = ", ".join(objective.metric for objective in found.objectives)
            problems.setdefault(run.place, f"is complete and has no {wanted}")
        if run.name is not None:
            first = places.setdefault(run.name, run.place)
            if first != run.place:
                what = f"{run.name} occurs twice, first at {first}; remove one"
                problems.setdefault(run.place, what)
    _refuse(problems, found.source)


def _end(run: PastRun) -> None:
    if not run.state.terminal:
        run.state = State.PRUNED
    if run.state is State.FAILED:
        run.error_kind = ErrorKind.ERROR
        run.values = None
    elif not all(map(math.isfinite, _last_values(run))):
        run.state = State.FAILED
        run.error_kind = ErrorKind.DIVERGED
        run.error_text = "its result is not a finite number"
        run.values = None


def _last_values(run: PastRun) -> Iterable[float]:
    """The result of a run, or else what it has reported last."""
    if run.values is not None:
        return run.values
    return run.curve[max(run.curve)].values() if run.curve else ()
