"""Which of the leading configurations is best, by repeats of each on the same seeds.

The next repeat goes to the leader with the fewest that is still in the race; a running repeat
counts. A leader is out while the probability that it is better than the first one is below 5%
(`repeats.BEHIND`), or most of its repeats fail: racing (Maron and Moore 1994; Birattari et al.
2002, F-Race) with a Bayesian rule in place of a test. The n-th repeats of all have the same seed.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence, Set
from functools import cached_property

from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import Trial
from hpsearch.search.ranking.repeats import Repeats, runs_of
from hpsearch.search.ranking.verdicts.question import FURTHER, Turn


class Race:
    """The race between one study's leaders.

    Args:
        leaders: The trials that may be the best, the first one first.
        repeats: The study's repeats.
        direction: ``minimize`` or ``maximize``.
        seeds: The promised number of repeats of each.
    """

    def __init__(
        self,
        leaders: Sequence[Trial],
        repeats: Iterable[Trial],
        direction: str,
        seeds: int,
    ) -> None:
        self._leaders, self._direction, self._seeds = leaders, direction, seeds
        self.asked_about: Set[int] = {leader.number for leader in leaders}
        self._given: defaultdict[int, list[Trial]] = defaultdict(list)
        for repeat in repeats:
            if repeat.repeats is not None:
                self._given[repeat.repeats].append(repeat)

    @property
    def turns(self) -> list[Turn]:
        given = [(leader, len(self._given[leader.number])) for leader in self._racing]
        given.sort(key=lambda each: each[1])
        most = FURTHER * self._seeds
        return [Turn(leader, count < self._seeds) for leader, count in given if count < most]

    @property
    def is_settled(self) -> bool:
        all_given = (repeat for given in self._given.values() for repeat in given)
        return len(self._racing) == 1 or any(not repeat.state.terminal for repeat in all_given)

    @property
    def missing(self) -> int:
        given = (len(self._given[leader.number]) for leader in self._racing)
        return sum(max(0, self._seeds - count) for count in given)

    def seed_for(self, trial: Trial, seeds: Iterable[int]) -> int:
        used = {repeat.seed for repeat in self._given[trial.number]}
        return next(seed for seed in seeds if seed not in used)

    @cached_property
    def _racing(self) -> list[Trial]:
        own = [self._given[leader.number] for leader in self._leaders]
        compared = Repeats(runs_of(repeat for given in own for repeat in given), self._direction)
        return [
            leader
            for leader, given in zip(self._leaders, own, strict=True)
            if not _mostly_fails(given) and not compared.behind(leader.number)
        ]


def _mostly_fails(repeats: Iterable[Trial]) -> bool:
    states = [repeat.state for repeat in repeats]
    return states.count(State.FAILED) > states.count(State.COMPLETE)
