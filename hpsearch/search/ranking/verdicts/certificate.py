"""Whether a trial is better than the defaults, by repeats of both on the same seeds.

A trial becomes a candidate when it is first repeated. Each of its repeats has a fresh seed, on
which the defaults are repeated after it, so that nothing that was chosen before knows the pair.
The best trial is the candidate until its question is closed: it is shown to be better, or is not
expected to be shown within `FURTHER` times the promised pairs, or within what is left. Then another
one may be asked about that the search finds.

Two kinds of luck count. That of seeds: the differences of the pairs are `evidence`. The k-th
candidate of a study may be wrong with a share of 4 / 5^k of what the level leaves; all shares add
up to 1. That of the validation samples, which all seeds share: a difference is less by what samples
may explain, a normal quantile of the mean of the paired differences by sample, averaged over seeds.
The candidate is the best of m trials by the same samples, so that each of them may be wrong with a
share of 1 / m (Bonferroni). Where trials report no results by sample, only seeds count.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist, fmean, stdev

from hpsearch.domain.facts import Role
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import Trial, sign_of
from hpsearch.search.ranking.repeats import mean_of, worth_of
from hpsearch.search.ranking.selection import counts
from hpsearch.search.ranking.verdicts.evidence import lower_bound, needed
from hpsearch.search.ranking.verdicts.question import FURTHER, Turn
from trials.contract import SAMPLES

OF_SAMPLES = 1 / 5
"""The share of what may be wrong that is left to the luck of samples, where it counts."""
FEWEST = 3  # pairs before which nothing is given up


@dataclass(frozen=True)
class Claim:
    """The claim that a candidate is better than the defaults.

    Args:
        differences: What it is better by, for each seed with both.
        samples: The number of validation samples; 0 where it is not known.
        failed: The number of repeats that failed: it is not shown to be better then.
        level: Of the evidence of seeds.
        of_samples: What the luck of the validation samples may explain.
    """

    candidate: int
    differences: Sequence[float]
    samples: int
    failed: int
    level: float
    of_samples: float

    @property
    def gain(self) -> float:
        return mean_of(self.differences) if self.differences else math.nan

    @cached_property
    def least(self) -> float:
        """What it is better by at least; minus infinity where nothing is known."""
        return lower_bound(self.differences, self.level) - self.of_samples

    @property
    def is_shown(self) -> bool:
        return not self.failed and self.least > 0

    @cached_property
    def more(self) -> int | None:
        """The number of further pairs that are expected to show it; None if none would."""
        if self.failed:
            return None
        if self.is_shown:
            return 0
        if len(self.differences) < FEWEST:
            return FEWEST - len(self.differences)
        return needed([each - self.of_samples for each in self.differences], self.level)

    @property
    def samples_needed(self) -> int | None:
        """The number of validation samples whose luck would explain half of the gain; None where
        samples are not what is missing."""
        if not 0 < self.gain < 2 * self.of_samples:
            return None
        return math.ceil(self.samples * (2 * self.of_samples / self.gain) ** 2)


def defaults_among(trials: Iterable[Trial]) -> Trial | None:
    """The trial of the task's default settings, or else the first that was enqueued."""
    first = [trial for trial in trials if trial.role in (Role.DEFAULT, Role.ENQUEUED)]
    return min(first, key=lambda trial: trial.role is not Role.DEFAULT, default=None)


class Certificate:
    """The repeats of one study's candidates and of its defaults.

    Args:
        repeats: In the order of their numbers.
        defaults: The number of the trial of the defaults.
        sign: 1 if less of the objective is better, else -1.
        level: The probability with which what is shown must be true.
        tried: The number of trials that candidates are the best of.
    """

    def __init__(
        self, repeats: Iterable[Trial], defaults: int, sign: float, level: float, tried: int
    ) -> None:
        self.defaults, self._sign, self._wrong, self._tried = defaults, sign, 1 - level, tried
        runs: defaultdict[int, dict[int, Trial]] = defaultdict(dict)
        for trial in repeats:
            if trial.repeats is not None:
                runs[trial.repeats][trial.seed] = trial
        self._of_defaults = runs.pop(defaults, {})
        self._runs = dict(runs)

    @property
    def candidates(self) -> list[int]:
        """The trials that were compared with the defaults, the latest last."""
        return list(self._runs)

    def unpaired(self, candidate: int) -> list[int]:
        """The seeds of a candidate's repeats on which the defaults are still to be repeated."""
        runs = self._runs.get(candidate, {})
        return [seed for seed in runs if seed not in self._of_defaults]

    def begun(self, candidate: int) -> int:
        """The number of pairs that were begun."""
        return len(self._runs.get(candidate, {}))

    def comparison(self, candidate: int) -> Claim:
        runs, beside = self._runs.get(candidate, {}), self._of_defaults
        pairs = [(trial, beside[seed]) for seed, trial in runs.items() if seed in beside]
        pairs = [(trial, other) for trial, other in pairs if trial.version == other.version]
        both = [pair for pair in pairs if all(each.state is State.COMPLETE for each in pair)]
        ended = [(worth_of(trial) or 0.0, worth_of(other) or 0.0) for trial, other in both]
        by_sample, samples = self._by_sample(both)
        of_both = [*runs.values(), *(other for _, other in pairs)]
        failed = sum(trial.state is State.FAILED for trial in of_both)
        asked = self.candidates
        place = asked.index(candidate) + 1 if candidate in asked else len(asked) + 1
        of_seeds = self._wrong * (1 - OF_SAMPLES if by_sample else 1)
        return Claim(
            candidate=candidate,
            differences=[self._sign * (theirs - own) for own, theirs in ended],
            samples=samples,
            failed=failed,
            level=1 - of_seeds * 4 / 5**place,
            of_samples=self._explained(by_sample),
        )

    def _by_sample(self, pairs: Iterable[tuple[Trial, Trial]]) -> tuple[list[float], int]:
        """What a candidate is better by for each sample, averaged over seeds, and the number of
        samples; nothing where that is not known."""
        rows, count = [], 0
        for pair in pairs:
            own, theirs = (trial.system_attrs.get(SAMPLES) for trial in pair)
            if own is not None and theirs is not None and own["count"] == theirs["count"]:
                count, columns = own["count"], zip(own["means"], theirs["means"], strict=True)
                rows.append([self._sign * (b - a) for a, b in columns])
        return [fmean(each) for each in zip(*rows, strict=True)], count

    def _explained(self, by_sample: Sequence[float]) -> float:
        if len(by_sample) < 2:
            return 0.0
        wrong = OF_SAMPLES * self._wrong / max(1, self._tried)
        return NormalDist().inv_cdf(1 - wrong) * stdev(by_sample) / math.sqrt(len(by_sample))

    def last_word(self) -> Claim | None:
        """The comparison of the candidate that is shown to be better by most, or else of the latest
        one; None without any."""
        compared = [self.comparison(candidate) for candidate in self.candidates]
        shown = [each for each in compared if each.is_shown]
        if shown:
            return max(shown, key=lambda each: each.least)
        return compared[-1] if compared else None


class AgainstDefaults:
    """Whether the best trial of a study is better than its defaults.

    Args:
        trials: All of the study's.
        repeats: Those among them that repeat a trial.
        best: The best complete trial; None without one that has learnt something.
        pairs: The promised number of pairs.
    """

    is_settled = False
    asked_about: Set[int] = frozenset()

    def __init__(
        self,
        trials: Sequence[Trial],
        repeats: Sequence[Trial],
        best: Trial | None,
        direction: str,
        level: float,
        pairs: int,
    ) -> None:
        self._trials, self._repeats, self._pairs = trials, repeats, pairs
        defaults, sign = defaults_among(trials), sign_of(direction)
        number = -1 if defaults is None else defaults.number
        self._known = Certificate(repeats, number, sign, level, sum(map(counts, trials)))
        self._candidate = None if defaults is None else self._asked(best)

    def _asked(self, best: Trial | None) -> Trial | None:
        asked = self._known.candidates
        if asked:
            found = self._known.comparison(asked[-1])
            is_open = not found.is_shown and found.more is not None
            if is_open and len(found.differences) + (found.more or 0) <= FURTHER * self._pairs:
                return self._trials[asked[-1]]
        if best is None or best.violation:
            return None
        return None if best.number in (self._known.defaults, *asked) else best

    @property
    def turns(self) -> list[Turn]:
        candidate, known = self._candidate, self._known
        if candidate is None:
            return []
        if known.unpaired(candidate.number):
            return [Turn(self._trials[known.defaults], is_due=True)]
        found = known.comparison(candidate.number)
        further = len(found.differences) + (found.more or 0) - known.begun(candidate.number)
        return [Turn(candidate, is_due=True, until=2 * further)] if further > 0 else []

    @property
    def missing(self) -> int:
        is_open = self._candidate is not None
        return is_open * max(0, 2 * self._pairs - len(self._repeats))

    def seed_for(self, trial: Trial, seeds: Iterable[int]) -> int:
        if trial.number == self._known.defaults:
            return self._known.unpaired(self._known.candidates[-1])[0]
        used = {repeat.seed for repeat in self._repeats}
        return next(seed for seed in seeds if seed not in used)
