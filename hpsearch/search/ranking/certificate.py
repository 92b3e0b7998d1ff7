"""Whether a trial is better than the defaults, by repeats of both on the same seeds.

A trial becomes a candidate when it is first repeated. Each of its repeats has a fresh seed, on
which the defaults are repeated after it, so that nothing that was chosen before knows the pair.

Two kinds of luck count. That of seeds: the differences of the pairs are `evidence`. The k-th
candidate of a study may be wrong with 1 / (k (k + 1)) of the probability that the level leaves,
which adds up to all of it. That of the validation samples, which all seeds share: a difference is
less by what samples may explain, a normal quantile of the mean of paired differences by sample,
averaged over seeds. The candidate is the best of m trials by the same samples, so that each of them
may be wrong with a share of 1 / m (Bonferroni). Where trials report no results by sample, only
seeds count.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist, fmean, stdev
from typing import Any, Protocol, TypeVar

from hpsearch.domain.facts import Role
from hpsearch.domain.lifecycle import State
from hpsearch.search.ranking.evidence import e_value, lower_bound, needed
from hpsearch.search.ranking.repeats import RepeatedTrial, mean_of, worth_of
from trials.running.reported import SAMPLES

OF_SAMPLES = 1 / 5
"""The share of what may be wrong that is left to the luck of samples, where it counts."""
FEWEST = 3  # pairs before which nothing is given up


class PairedTrial(RepeatedTrial, Protocol):
    """A trial that may be paired by its seed: a `records.Trial`, or a row with these columns."""

    @property
    def number(self) -> int: ...
    @property
    def seed(self) -> int: ...
    @property
    def system_attrs(self) -> Mapping[str, Any]: ...


@dataclass(frozen=True)
class Comparison:
    """A candidate beside the defaults.

    Args:
        differences: What it is better by, for each seed with both.
        by_sample: The same for each validation sample, or block of them, averaged over seeds; empty
            where that is not known.
        samples: The number of validation samples; 0 where it is not known.
        failed: The number of its repeats that failed: it is not shown to be better then.
        lost: The number of pairs in which the defaults failed.
        wrong: The probability with which any candidate may be shown to be better and is not.
        share: The share of it that is this one's.
        tried: The number of trials that it is the best of.
    """

    candidate: int
    differences: Sequence[float]
    by_sample: Sequence[float]
    samples: int
    failed: int
    lost: int
    wrong: float
    share: float
    tried: int

    @property
    def gain(self) -> float:
        return mean_of(self.differences) if self.differences else math.nan

    @property
    def level(self) -> float:
        """Of the evidence of seeds."""
        of_seeds = 1 - OF_SAMPLES if self.by_sample else 1
        return 1 - of_seeds * self.share * self.wrong

    @cached_property
    def of_samples(self) -> float:
        """What the luck of the validation samples may explain."""
        if len(self.by_sample) < 2:
            return 0.0
        wrong = OF_SAMPLES * self.wrong / max(1, self.tried)
        deviation = stdev(self.by_sample) / math.sqrt(len(self.by_sample))
        return NormalDist().inv_cdf(1 - wrong) * deviation

    @property
    def is_shown(self) -> bool:
        evidence = e_value(self.differences, self.of_samples)
        return not self.failed and evidence >= 1 / (1 - self.level)

    @cached_property
    def least(self) -> float:
        """What it is better by at least; minus infinity where nothing is known."""
        return lower_bound(self.differences, self.level) - self.of_samples

    @cached_property
    def more(self) -> int | None:
        """The number of further pairs that are expected to show it; None if none would."""
        if self.failed:
            return None
        if len(self.differences) < FEWEST:
            return FEWEST - len(self.differences)
        return needed([each - self.of_samples for each in self.differences], self.level)

    @property
    def samples_needed(self) -> int | None:
        """The number of validation samples whose luck would explain half of the gain; None where
        samples are not what is missing."""
        if not self.samples or not 0 < self.gain < 2 * self.of_samples:
            return None
        return math.ceil(self.samples * (2 * self.of_samples / self.gain) ** 2)


Of = TypeVar("Of", bound=PairedTrial)


def defaults_among(trials: Iterable[Of]) -> Of | None:
    """The trial of the task's default settings, or else the first that was enqueued."""
    found: Of | None = None
    for trial in trials:
        if trial.role is Role.DEFAULT:
            return trial
        if trial.role is Role.ENQUEUED and found is None:
            found = trial
    return found


class Certificate:
    """The repeats of one study's candidates and of its defaults.

    Args:
        trials: The repeats, among other trials.
        defaults: The number of the trial of the defaults.
        sign: 1 if less of the objective is better, else -1.
        level: The probability with which what is shown must be true.
        tried: The number of trials that candidates are the best of.
    """

    def __init__(
        self,
        trials: Iterable[PairedTrial],
        defaults: int,
        sign: float,
        level: float,
        tried: int,
    ) -> None:
        self.defaults, self._sign, self._wrong, self._tried = defaults, sign, 1 - level, tried
        runs: defaultdict[int, dict[int, PairedTrial]] = defaultdict(dict)
        for trial in sorted(trials, key=lambda trial: trial.number):
            if trial.role is Role.CONFIRM and trial.repeats is not None:
                runs[trial.repeats][trial.seed] = trial
        self._of_defaults = runs.pop(defaults, {})
        self._runs = dict(runs)

    @property
    def candidates(self) -> list[int]:
        """The trials that were compared with the defaults, the latest last."""
        return list(self._runs)

    @property
    def seeds(self) -> set[int]:
        """The seeds of all repeats."""
        return {seed for runs in self._runs.values() for seed in runs} | set(self._of_defaults)

    def unpaired(self, candidate: int) -> list[int]:
        """The seeds of a candidate's repeats on which the defaults are still to be repeated."""
        runs = self._runs.get(candidate, {})
        usable = (seed for seed, trial in runs.items() if trial.state is not State.FAILED)
        return [seed for seed in usable if seed not in self._of_defaults]

    def open_pairs(self, candidate: int) -> int:
        """The number of pairs of which a part is still to come."""
        runs = self._runs.get(candidate, {})
        pairs = ((trial, self._of_defaults.get(seed)) for seed, trial in runs.items())
        return sum(
            not trial.state.terminal or other is None or not other.state.terminal
            for trial, other in pairs
        )

    def comparison(self, candidate: int) -> Comparison:
        runs = self._runs.get(candidate, {})
        pairs = [(trial, self._of_defaults.get(seed)) for seed, trial in runs.items()]
        differences, by_sample, samples = [], [], 0
        for trial, other in pairs:
            own, theirs = _end(trial), None if other is None else _end(other)
            if own is None or theirs is None or other is None:
                continue
            differences.append(self._sign * (theirs - own))
            found, beside = _samples(trial), _samples(other)
            if found and beside and found["count"] == beside["count"]:
                samples = found["count"]
                columns = zip(found["means"], beside["means"], strict=True)
                by_sample.append([self._sign * (b - a) for a, b in columns])
        asked = self.candidates
        place = asked.index(candidate) + 1 if candidate in asked else len(asked) + 1
        return Comparison(
            candidate=candidate,
            differences=differences,
            by_sample=[fmean(each) for each in zip(*by_sample, strict=True)],
            samples=samples,
            failed=sum(trial.state is State.FAILED for trial, _ in pairs),
            lost=sum(other is not None and other.state is State.FAILED for _, other in pairs),
            wrong=self._wrong,
            share=1 / (place * (place + 1)),
            tried=self._tried,
        )

    def last_word(self) -> Comparison | None:
        """The comparison of the candidate that is shown to be better by most, or else of the latest
        one; None without any."""
        compared = [self.comparison(candidate) for candidate in self.candidates]
        shown = [each for each in compared if each.is_shown]
        if shown:
            return max(shown, key=lambda each: each.least)
        return compared[-1] if compared else None


def _end(trial: PairedTrial) -> float | None:
    if trial.state is not State.COMPLETE:
        return None
    value = worth_of(trial)
    return value if value is not None and math.isfinite(value) else None


def _samples(trial: PairedTrial) -> Any:
    return trial.system_attrs.get(SAMPLES)
