"""A trial in the hands of the code that trains it, and the verdict on its reports."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from hpsearch.brain.trial_log import missing_metrics
from hpsearch.domain.events import Reported
from hpsearch.errors import UserError
from hpsearch.store.codec import clean
from hpsearch.store.heartbeats import Key
from hpsearch.study_file.levels import trial_budget
from hpsearch.study_file.models import StudySpec
from trials.running.reported import numbers_of, resource_of
from trials.settings import in_full

Metrics = Mapping[str, Any] | float
"""Numbers by name: Python's, numpy's or torch's; or the objective alone, where it is the only
metric that the study needs."""


@dataclass(frozen=True, slots=True)
class ReportVerdict:
    """The verdict on a report: true in an ``if`` where the trial goes on.

    Args:
        goes_on: If False, nothing more can be reported; ask for the next trial.
        why: The reason, in words.
    """

    goes_on: bool
    why: str

    def __bool__(self) -> bool:
        return self.goes_on


class AskedTrial:
    """A trial that was asked for, until `tell` or a verdict ends it.

    Attributes:
        number: Its number in the study.
        attempt: The number of times it was asked for, this time included.
        params: Its parameters, with the study file's fixed settings; inactive ones are absent.
        seed: The trial's own seed: derive everything random from it.
        budget: The length of its training, in the study file's unit; an int where it is whole.
        unit: The unit of the budget, such as epochs.
        report_at: The ascending levels at which the study wants a report; the last one is the
            budget.
        resume_from: The checkpoint to continue from, as a report named it; None to start afresh.
        resource: The resource at that checkpoint; 0 to start afresh.
        ended: The verdict that ended it for this process; None while it goes on.
    """

    def __init__(
        self,
        key: Key,
        spec: StudySpec,
        *,
        params: Mapping[str, Any],
        seed: int,
        resume_from: str | None,
        resource: float,
        report: Callable[[AskedTrial, float, dict[str, float], str | None], ReportVerdict],
    ) -> None:
        budget = trial_budget(spec)
        self.number, self.attempt = key
        self.params = copy.deepcopy({**spec.settings, **params})
        self.seed = seed
        self.budget = _whole(budget.total)
        self.unit = budget.unit.value
        self.report_at = tuple(map(_whole, budget.report_at))
        self.resume_from = resume_from
        self.resource = _whole(resource)
        self.ended: ReportVerdict | None = None
        self._spec = spec
        self._report = report
        self._reported = resource

    @property
    def key(self) -> Key:
        return self.number, self.attempt

    def report(
        self, resource: float, metrics: Metrics, checkpoint: str | os.PathLike[str] | None = None
    ) -> ReportVerdict:
        """Report the metrics of the trial at a resource level. A trial that does not go on needs no
        `tell`.

        Args:
            resource: The level, in the budget's unit; above the one of the report before.
            checkpoint: A complete path or URL from which the trial can continue as it is now. It
                is handed out again as `resume_from`, and never read or removed.

        Raises:
            AttemptLost: This process was taken for dead, and the trial went on elsewhere.
            StudyHeld: A driver has taken the study over.
            UserError: The resource does not rise, a metric is missing or not a number, or the
                checkpoint is not a path.
        """
        if self.ended is not None:
            what = f"trial {self.number} has ended for now and takes no reports: {self.ended.why}"
            raise UserError(what, "ask for the next trial")
        reached = self._reached(resource)
        values = self._values(reached, metrics)
        place = None if checkpoint is None else _place(checkpoint)
        verdict = self._report(self, reached, values, place)
        self._reported = reached
        if not verdict:
            self.ended = verdict
        return verdict

    def _reached(self, resource: float) -> float:
        try:
            reached = resource_of(resource)
        except ValueError as error:
            raise UserError(str(error)) from None
        hint = f"report how far the trial has trained in all, up to {self.budget} {self.unit}"
        if not self._reported < reached:
            what = f"the resource must rise, and is {in_full(self._reported)}"
            raise UserError(f"trial.report({resource}): {what}", hint)
        return reached

    def _values(self, resource: float, metrics: Metrics) -> dict[str, float]:
        if not isinstance(metrics, Mapping):
            metrics = {self._only_metric(): metrics}
        try:
            values = numbers_of(metrics)
        except ValueError as error:
            raise UserError(str(error)) from None
        problem = missing_metrics(self._spec, Reported(self.number, self.attempt, resource, values))
        if problem is not None:
            raise UserError(problem, "report every metric of the study's objective and constraints")
        return values

    def _only_metric(self) -> str:
        objectives = self._spec.objectives
        if len(objectives) > 1 or self._spec.constraints:
            what = "the study has several objectives or constraints, and one number was reported"
            raise UserError(what, "report the metrics by name, as a mapping")
        return objectives[0].metric

    def __repr__(self) -> str:
        return f"<trial {self.number}, attempt {self.attempt}: {self.params}>"


def _place(checkpoint: object) -> str:
    place = os.fspath(checkpoint) if isinstance(checkpoint, os.PathLike) else checkpoint
    if not isinstance(place, str) or not place or clean(place) != place:
        what = f"trial.report: the checkpoint {checkpoint!r:.100} is not a path"
        raise UserError(what, "give the path or URL from which the trial can continue")
    return str(place)


def _whole(number: float) -> int | float:
    return int(number) if number == int(number) else number
