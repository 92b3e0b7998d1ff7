"""Which column of a table, or key of a report, is what: from options of the command line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hpsearch.bridges.past_runs import Misfits
from hpsearch.errors import UserError
from hpsearch.study_file.models import Objective
from trials.settings import nearest

DIRECTIONS = ("minimize", "maximize")


@dataclass(frozen=True, slots=True)
class Mapped:
    """The columns of a source, each named by an option.

    Attributes:
        params: By the name of each parameter, its column; empty for all.
        metric: By the name of each objective, its column.
        direction: Minimize or maximize, for each objective.
        run: The column that names a run; with `resource`, rows of one run are its curve.
        state: The column that says how a run ended.
        resource: The column that says how far a run had trained, one row for each report.
        study: The study in a storage of Optuna's.
    """

    params: Mapping[str, str] = field(default_factory=dict)
    metric: Mapping[str, str] = field(default_factory=dict)
    direction: tuple[str, ...] = ()
    run: str | None = None
    state: str | None = None
    resource: str | None = None
    study: str | None = None

    @property
    def objectives(self) -> tuple[Objective, ...]:
        """The objectives as a study file states them.

        Raises:
            UserError: The metric or its direction is missing or wrong.
        """
        if not self.metric:
            what = "it is not said what the runs are compared by"
            raise UserError(what, "name the metric: --metric NAME, or --metric NAME=COLUMN")
        if not self.direction:
            first = next(iter(self.metric))
            what = f"it is not said whether less or more {first} is better"
            raise UserError(what, "add --direction minimize or --direction maximize")
        for word in self.direction:
            if word not in DIRECTIONS:
                raise UserError(f"--direction {word}: must be minimize or maximize")
        if len(self.direction) != len(self.metric):
            what = f"{len(self.metric)} metrics and {len(self.direction)} directions are given"
            raise UserError(what, "give one --direction for each --metric, in the same order")
        named = zip(self.metric, self.direction, strict=True)
        pairs = [{"metric": metric, "direction": direction} for metric, direction in named]
        return tuple(Objective.model_validate(pair) for pair in pairs)

    def values_in(self, metrics: Mapping[str, float]) -> tuple[float, ...] | None:
        """The objectives' values among metrics under our names; None if one is missing."""
        if any(name not in metrics for name in self.metric):
            return None
        return tuple(metrics[name] for name in self.metric)

    def chosen(
        self, params: Mapping[str, Any], place: str, misfits: Misfits | None
    ) -> dict[str, Any]:
        """The parameters of a run that are kept, by our names: all if none are named.

        Args:
            params: By the source's names.
            place: The place of the run.
            misfits: Takes those that the run lacks; None where it may lack some.
        """
        if not self.params:
            return dict(params)
        for theirs in self.params.values():
            if theirs not in params and misfits is not None:
                misfits.add(place, f"has no parameter {theirs}; {nearest(theirs, params)}")
        return {ours: params[theirs] for ours, theirs in self.params.items() if theirs in params}


def pairs(option: str, texts: Iterable[str]) -> dict[str, str]:
    """The names and columns of `lr=learning_rate,depth`, which may be given in several parts.

    Raises:
        UserError: A part is not such a pair, or a name appears twice.
    """
    found: dict[str, str] = {}
    text = ",".join(texts)
    if not text:
        return found
    for part in text.split(","):
        ours, equals, theirs = (piece.strip() for piece in part.partition("="))
        theirs = theirs if equals else ours
        if not ours or not theirs:
            raise UserError(f'{option} "{text}": write NAME=COLUMN, or NAME where both are alike')
        if ours in found:
            raise UserError(f'{option} "{text}": {ours} appears twice')
        found[ours] = theirs
    return found
