"""The trial that was tried, once more with other values and the same seed: its reports must differ.

First all parameters have other values, then one after another while that takes little time. What
reports the same at first may have its effect later, so it trains on for a few seconds, and so does
the first configuration.
"""

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from hpsearch.domain import events as ev
from hpsearch.domain.numbers import duration, pairs
from hpsearch.running.executors.first_report import Tried
from hpsearch.search.ranking.no_effect import NoEffect, TrialReports, no_effect
from hpsearch.study_file import space
from hpsearch.study_file.models import StudySpec

TRAIN_ON_S = 5.0  # seconds that a further start trains on after its first report
ALONE_S = 30.0  # seconds in all for starts that differ in one parameter alone
MORE = 3
"""Configurations that must report the same where their values are so coarse that chance may equal
two of them."""
DRAWS = 20  # random configurations of which those with the most other values are taken

Start = Callable[..., tuple[Tried, list[bytes]]]  # `first_trial.start` of a study on a device
Note = Callable[[str], None]
Reports = Mapping[float, Mapping[str, float]]


class OtherValues:
    """Further starts of the trial with `params`, after the `first` up to its report or further."""

    def __init__(
        self, start: Start, spec: StudySpec, params: Mapping[str, Any], first: Tried, note: Note
    ) -> None:
        self._start, self._spec, self._note = start, spec, note
        self._params, self._first = params, first
        self._at, self._first_metrics = next(iter(first.reports.items()))
        self.slowness: list[float] = []
        """How many times as long those take in which every parameter has another value."""
        self._is_alone = self._has_differed = False
        self._objectives = [objective.metric for objective in spec.objectives]

    def compare(self) -> None:
        """Print a warning for parameters that change nothing in the trial's reports."""
        others = most_different(self._spec, self._params)
        if not others or not (self._first.queried or _differing(others[0], self._params)):
            return
        self._note("trying it again with other values of every parameter ...")
        found = self._without_effect(others, self._first.queried)
        if found is None:
            self._compare_alone(others[0])
        else:
            self._note(found.warning)

    def _compare_alone(self, other: Mapping[str, Any]) -> None:
        """Start again with another value of one parameter, for each, as long as there is time."""
        self._is_alone, give_up = True, time.monotonic() + ALONE_S
        names = _differing(other, self._params)
        if len(names) + len(self._first.queried) < 2:
            return
        for name in [*names, *self._first.queried]:
            is_queried = name not in names
            params = self._params if is_queried else {**self._params, name: other[name]}
            if time.monotonic() + self._first.seconds > give_up:
                return
            if space.completed(self._spec.space, params, self._spec.requires) != params:
                continue  # others would need values of their own, or none
            found = self._without_effect([params], [name] if is_queried else ())
            if found is not None:
                self._note(replace(found, names=[name], is_all=False).warning)

    def _without_effect(
        self, configurations: Sequence[Mapping[str, Any]], queried: Collection[str]
    ) -> NoEffect | None:
        """The parameters that make no difference between the first configuration and others, which
        are started until that is known; None as soon as one reports something else, or nothing."""
        trainings: list[TrialReports] = []
        is_enough = self._differs if self._is_alone else self._differs_and_is_timed
        for index, params in enumerate(configurations, 1):
            tried, _ = self._start(
                params, train_on_s=TRAIN_ON_S, is_enough=is_enough, others=queried
            )
            if not tried.reports:
                self._note(_without_report(params, tried))
                return None
            if self._at in tried.trained_s and not self._is_alone:
                self.slowness.append(slowness_of(tried, self._first))
            again = self._again.get(self._at, {})
            noisy = {name for name, _ in self._first_metrics.items() - again.items()}
            if not self._is_same(tried.reports) or noisy & set(self._objectives):
                return None
            first = _reported(self._params, dict.fromkeys(queried, 0), self._again, noisy)
            trainings.append(_reported(params, dict.fromkeys(queried, index), tried.reports, noisy))
            total = self._spec.budget.per_trial.total
            found = no_effect([first, *trainings], self._objectives, total, fewest=2)
            if found is not None:
                return found
        return None

    def _differs(self, report: ev.Reported) -> bool:
        is_first = report.resource == self._at
        return is_first and not self._is_same({report.resource: report.metrics})

    def _differs_and_is_timed(self, report: ev.Reported) -> bool:
        """True at a second report at the earliest, which tells the pace from the start."""
        self._has_differed |= self._differs(report)
        return self._has_differed and report.resource > self._at

    def _is_same(self, reports: Reports) -> bool:
        now = reports.get(self._at, {})
        return all(now.get(name) == self._first_metrics.get(name) for name in self._objectives)

    @cached_property
    def _again(self) -> Reports:
        """The reports of the first configuration, which trains once more, and for longer."""
        tried, _ = self._start(self._params, train_on_s=TRAIN_ON_S)
        return tried.reports


def slowness_of(tried: Tried, first: Tried) -> float:
    """How many times as long a trial takes as the first one, between reports of both."""
    both = sorted(tried.trained_s.keys() & first.trained_s.keys())
    begin, end = both[0], both[-1]
    its_s, own_s = (each.trained_s[end] for each in (tried, first))
    if begin < end:
        its_s, own_s = its_s - tried.trained_s[begin], own_s - first.trained_s[begin]
    return its_s / own_s if its_s > 0 and own_s > 0 else 1.0


def _reported(
    params: Mapping[str, Any], queried: Mapping[str, int], reports: Reports, noisy: Collection[str]
) -> TrialReports:
    """A training without the metrics that differ between two trainings of one configuration; of
    values that it asked for it is known that they are others."""
    kept = {}
    for at, metrics in reports.items():
        kept[at] = {name: value for name, value in metrics.items() if name not in noisy}
    return TrialReports({**params, **queried}, kept)


def most_different(spec: StudySpec, params: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Configurations of a study's space that differ the most from one."""
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
