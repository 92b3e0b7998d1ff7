"""The trials of a search that have learnt something, and the complete ones that may be best.

The value of a trial that has learnt nothing is read from first reports: most trials share it, and
hardly any begins worse. A classifier that predicts the majority class has such a value. Where first
reports differ, every trial has learnt something.
"""

import bisect
import math
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from hpsearch.domain.facts import Role
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import Trial, sign_of
from hpsearch.search.ranking.repeats import BEHIND, Repeats, runs_of
from hpsearch.search.ranking.selection import rank, standing

SAME = 1e-3  # two first values that differ by less than this share of them are the same
FEWEST = 3  # the fewest trials that share a first value; they are also half of all trials or more
WORSE = 1 / 4
"""The largest share that may begin worse than the commonest value, until that has been learnt."""
CLEARLY = 1.645
"""The standard deviations by which a trial is clearly ahead, with a probability of 95%."""


First: TypeAlias = tuple[float, int]  # the score of a trial's first report, and the trial's number


class Contenders:
    """The trials of one study that its leading configurations are chosen from.

    Args:
        trials: All of its trials, repeats included, with their reports.
        direction: ``minimize`` or ``maximize``.
        firsts: The scores of all first reports (`first_of`), ascending. With them, `trials` may be
            the repeats, what they repeat, and the first of the others that have learnt something.
    """

    def __init__(
        self, trials: Iterable[Trial], direction: str, firsts: Sequence[First] | None = None
    ) -> None:
        everyone = list(trials)
        self._sign = sign_of(direction)
        self._runs = runs_of(everyone)
        self._repeats = Repeats(self._runs, direction)
        self._direction = direction
        if firsts is None:
            known = [first_of(trial, self._sign) for trial in everyone]
            firsts = sorted(first for first in known if first is not None)
        self._before_learning = guess_of(firsts)
        complete = [trial for trial in everyone if trial.state is State.COMPLETE]
        learnt = [
            trial for trial in complete if trial.role is Role.CONFIRM or self.has_learnt(trial)
        ]
        self._ranking = [ranked.trial for ranked in rank(learnt, direction)]

    @property
    def best(self) -> Trial | None:
        """The best of the complete trials that have learnt something; None without one."""
        return self._ranking[0] if self._ranking else None

    def leaders(self, top: int) -> list[Trial]:
        """The first of the complete trials, at most `top`: those that may be the best."""
        best = self.best
        if best is None:
            return []
        return [trial for trial in self._ranking[:top] if self.may_win(trial, best)]

    def has_learnt(self, trial: Trial) -> bool:
        """True if a trial has shown a better value than most trials begin with."""
        return has_learnt(trial, self._sign, self._before_learning)

    def may_win(self, trial: Trial, best: Trial) -> bool:
        """True if a complete trial may be better than the best one.

        Its chance must not be below `BEHIND`, by the values of both and the spread that repeats
        show. While that is not known, it must be nearer to the best one than to the value of trials
        that have learnt nothing, if that is known. A trial that exceeds the study's limits by more
        than the best one cannot win. A trial with repeats of its own is judged by them, in the
        race.
        """
        if trial is best or trial.number in self._runs:
            return True
        if trial.violation > best.violation:
            return False
        if self._repeats.deviation:  # equal values of two repeats say nothing of the spread
            return self._chance(trial, best) >= BEHIND
        guess = self._before_learning
        if guess is None:
            return True
        behind = self._score(trial) - self._score(best)
        learnt = guess - self._score(trial)
        return behind < learnt

    def leads(self, trial: Trial) -> bool:
        """True if a trial that is not complete is ahead of all complete ones.

        Its expected value must be clearly better, since the highest of several expectations is
        partly luck. Without an expectation, its shown value must be better.
        """
        has_ended = trial.state in (State.COMPLETE, State.FAILED)
        if has_ended or not self.has_learnt(trial):
            return False
        best = self.best
        if best is None:
            return True
        unsure = CLEARLY * (trial.expected_deviation or 0.0)
        return (trial.violation, self._score(trial) + unsure) < (best.violation, self._score(best))

    def _chance(self, trial: Trial, best: Trial) -> float:
        runs = dict(self._runs)
        for each in (trial, best):
            runs.setdefault(each.number, [standing(each)])
        return Repeats(runs, self._direction).chance(trial.number, best.number)

    def _score(self, trial: Trial) -> float:
        mean = self._repeats.means.get(trial.number)
        value = standing(trial) if mean is None else mean
        return self._sign * value


def first_of(trial: Trial, sign: float) -> First | None:
    """The score of a trial's first report, smaller is better and infinite without a value, and the
    trial's number; None without a report, and for a repeat."""
    if not trial.role.of_search or not trial.reports:
        return None
    value = trial.reports[min(trial.reports)].value
    if value is None or not math.isfinite(value):
        return math.inf, trial.number
    return sign * value, trial.number


def guess_of(firsts: Sequence[First]) -> float | None:
    """The score that most trials begin with; None if they begin differently.

    Half of all share it and at most a quarter begin worse, so that the trials from the middle to
    the third quarter do.
    """
    number = bisect.bisect_left(firsts, (math.inf, -1))
    if number < FEWEST:
        return None
    middle, quarter = number // 2, math.ceil(number * (1 - WORSE))
    reached = firsts[quarter - 1][0]
    place = bisect.bisect_left(firsts, reached, 0, middle + 1, key=_reach)
    enough = max(FEWEST, number / 2)
    found: float | None = None
    while place <= middle:
        score = firsts[place][0]
        last = bisect.bisect_right(firsts, _reach(firsts[place]), place, number, key=_score)
        if last - place >= enough and last >= quarter:
            found = score
            enough = last - place + 1
        place = bisect.bisect_right(firsts, score, place, number, key=_score)
    return found


def has_learnt(trial: Trial, sign: float, guess: float | None) -> bool:
    """True if a trial has shown a better value than the one that most begin with."""
    value = trial.value
    if value is None or not math.isfinite(value):
        return False
    return guess is None or sign * value < guess - _tolerance(guess)


def _score(first: First) -> float:
    return first[0]


def _reach(first: First) -> float:
    """The worst score that is the same as a first one."""
    return first[0] + _tolerance(first[0])


def _tolerance(score: float) -> float:
    return SAME * abs(score)
