"""The trial that was tried, once more with other values and the same seed: its reports must differ.

First all parameters have other values, then one after another while that takes little time. What
reports the same at first may have its effect later, so it trains on for a few seconds, and so does
the first configuration.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from functools import cached_property
from typing import Any

from hpsearch.domain import events as ev
from hpsearch.executors.first_report import Tried
from hpsearch.ranking.no_effect import Course, Same, same
from hpsearch.study_file import space
from hpsearch.study_file.models import StudySpec
from hpsearch.words.numbers import cell, duration, number, pairs

TRAIN_ON_S = 5.0
"""Seconds that a further start trains on after its first report."""
ALONE_S = 30.0
"""Seconds in all for starts that differ in one parameter alone."""
MORE = 3
"""Configurations that must report the same where their values are so coarse that chance may equal
two of them."""
DRAWS = 20
"""Random configurations of which those with the most other values are taken."""

Start = Callable[..., tuple[Tried, list[str]]]
"""`first_trial.start` of a study on a device."""
Note = Callable[[str], None]
Reports = Mapping[float, Mapping[str, float]]


def note_without_effect(
    start: Start, spec: StudySpec, params: Mapping[str, Any], first: Tried, note: Note
) -> None:
    """Print a warning for parameters that change nothing in a trial's reports.

    Args:
        first: The trial with `params`, up to its first report.
    """
    _OtherValues(start, spec, params, first, note).compare()


class _OtherValues:
    """Further starts of one trial."""

    def __init__(
        self, start: Start, spec: StudySpec, params: Mapping[str, Any], first: Tried, note: Note
    ) -> None:
        self._start, self._spec, self._note = start, spec, note
        self._params, self._first = params, first
        ((self._at, self._first_metrics),) = first.reports.items()
        self._objectives = [objective.metric for objective in spec.objectives]
        self._total = spec.budget.per_trial.total
        self._others = _most_different(spec, params)

    def compare(self) -> None:
        if not self._others:
            return
        names = [*_differing(self._others[0], self._params), *self._first.asked]
        if not names:
            return
        self._note("trying it again with other values of every parameter ...")
        equal = self._equal(self._others[0], self._first.asked)
        if equal is None:
            self._compare_alone()
        elif equal.is_certain:
            what = f"PARAMETERS WITHOUT EFFECT: {', '.join(names)}"
            why = "the values do not reach the program, or its metrics do not depend on them"
            self._note(f"{what}: {self._until(equal)}, with the same seed: {why}")
        elif equal.in_full and self._others_are_the_same():
            what = f"{MORE + 1} trials with other values of {', '.join(names)} have reported"
            shown = pairs({name: self._first_metrics[name] for name in self._objectives})
            why = "the metric is too coarse to compare them, or the values do not reach the program"
            self._note(f"{what} the same, {shown}: {why}")

    def _others_are_the_same(self) -> bool:
        """True if chance has not made two coarse values equal."""
        more = self._others[1:]
        return len(more) == MORE - 1 and None not in (self._equal(each) for each in more)

    def _compare_alone(self) -> None:
        """Start again with another value of one parameter, for each, as long as there is time."""
        other, give_up = self._others[0], time.monotonic() + ALONE_S
        names = _differing(other, self._params)
        if len(names) + len(self._first.asked) < 2:
            return
        for name in [*names, *self._first.asked]:
            params = {**self._params, **({name: other[name]} if name in names else {})}
            asked = [] if name in names else [name]
            if time.monotonic() + self._first.seconds > give_up:
                return
            if space.completed(self._spec.space, params, self._spec.requires) != params:
                continue  # others would need values of their own, or none
            equal = self._equal(params, asked, ends_early=True)
            if equal is None or not equal.is_certain:
                continue
            values = "another value"
            if not asked:
                values = f"{cell(params[name])} in place of {cell(self._params[name])}"
            later = "makes no difference here" if equal.in_full else "has its effect later"
            what = f"PARAMETER WITHOUT EFFECT: {name} alone with {values}: {self._until(equal)}"
            self._note(f"{what}: it does not reach the program, or {later}")

    def _until(self, equal: Same) -> str:
        unit = self._spec.budget.per_trial.unit.value
        far = "in full" if equal.in_full else f"up to {number(equal.until)} {unit}"
        return f"all reports {far} are the same to the last digit"

    def _equal(
        self, params: Mapping[str, Any], asked: Collection[str] = (), *, ends_early: bool = False
    ) -> Same | None:
        """The reports of a start that are those of the first configuration; None if they differ,
        or there are none. It may end as soon as they do."""

        def differs(report: ev.Reported) -> bool:
            is_first = ends_early and report.resource == self._at
            return is_first and self._differs({report.resource: report.metrics})

        tried, _ = self._start(params, train_on_s=TRAIN_ON_S, is_enough=differs, others=asked)
        if not tried.reports:
            self._note(_without_report(params, tried))
            return None
        if self._differs(tried.reports):
            return None
        again = self._again
        noisy = self._first_metrics.items() - again.get(self._at, {}).items()
        ignored = [name for name, _ in noisy]
        if set(ignored) & set(self._objectives):
            return None  # not even the same configuration reports the same
        one, other = Course(self._params, again), Course(params, tried.reports)
        return same(one, other, self._objectives, self._total, ignored)

    def _differs(self, reports: Reports) -> bool:
        """True if the objectives are others than in the first report."""
        now = reports.get(self._at)
        return now is None or any(
            now.get(metric) != self._first_metrics.get(metric) for metric in self._objectives
        )

    @cached_property
    def _again(self) -> Reports:
        """The reports of the first configuration, which trains once more, and for longer."""
        tried, _ = self._start(self._params, train_on_s=TRAIN_ON_S)
        return tried.reports


def _most_different(spec: StudySpec, params: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Configurations that differ from one in most parameters, the first one in the most."""
    drawn = [space.drawn(spec.space, spec.requires, seed) for seed in range(DRAWS)]
    found = [each for each in drawn if each is not None]
    found.sort(key=lambda each: -len(_differing(each, params)))
    return found[:MORE]


def _differing(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    return [name for name in one if name in other and one[name] != other[name]]


def _without_report(params: Mapping[str, Any], tried: Tried) -> str:
    what = f"with {pairs(params)}, it has not reported within {duration(tried.seconds)}"
    if isinstance(tried.news, ev.Failed):
        what = f"with {pairs(params)}, it fails ({tried.news.kind.value}): {tried.news.text}"
    return f"{what}; a study goes on without such trials"
