"""The race of the leading configurations: trained again in full on fresh seeds, until it is clear which one is best.

The leaders are the first of the ranking, also those that were paused or pruned where they lead: their repeats train in
full. The next repeat goes to the leader with the fewest that is still in the race; a leader is out once the probability
that it is better than the first one has fallen below 5% (`repeats.BEHIND`), and in again should later runs say so. What
one that is out has left goes to the others. This is racing (Maron and Moore 1994; Birattari et al. 2002, F-Race) with a
Bayesian rule in the place of a test. Repeats that run count as given, so that free slots work side by side.

While the last trials of the search still run, slots that it has no use for any more begin with the leaders that are
likely to stay among them.
"""

from __future__ import annotations

from collections import Counter

from hpsearch.lifecycle import State
from hpsearch.records import History, Trial
from hpsearch.repeats import Repeats, runs_of
from hpsearch.selection import rank
from hpsearch.spec import StudySpec

CONFIRM = "confirm"
"""The role of a repeat."""


class Confirmation:
    """The race of one study's leaders.

    Args:
        spec: The study; without `search.confirm` there is no race.
        history: Its records.
    """

    def __init__(self, spec: StudySpec, history: History) -> None:
        self._confirm = spec.search.confirm
        self._history = history

    @property
    def runs(self) -> int:
        """How many repeats the race may take."""
        return 0 if self._confirm is None else self._confirm.top * self._confirm.seeds

    @property
    def to_come(self) -> int:
        """How many of them have not begun."""
        return max(0, self.runs - sum(trial.role == CONFIRM for trial in self._history.trials)) if self.runs else 0

    def early_repeat(self, running: int) -> Trial | None:
        """The leader that a repeat may go to while the search still runs; None where none is likely enough to stay one.

        Every second trial that runs is taken to come in before the last of the leaders.

        Args:
            running: How many trials of the search run.
        """
        if self._confirm is None or not self.to_come:
            return None
        given = Counter(trial.repeats for trial in self._history.trials if trial.role == CONFIRM)
        safe = self._leaders(max(0, self._confirm.top - running // 2))
        return next((leader for leader in safe if given[leader.number] < self._confirm.seeds), None)

    def leader_to_repeat(self) -> Trial | None:
        """Whom the next repeat goes to; None where the race is decided, used up, or waits for what runs."""
        if self._confirm is None:
            return None
        leaders = self._leaders(self._confirm.top)
        numbers = {leader.number for leader in leaders}
        repeats = [t for t in self._history.trials if t.role == CONFIRM and t.repeats in numbers]
        if not leaders or len(repeats) >= self.runs:
            return None
        racing = [leader for leader in leaders if leader.number not in self._out(repeats)]
        given = Counter(repeat.repeats for repeat in repeats)
        following = min(racing, key=lambda leader: given[leader.number], default=None)
        if following is None or given[following.number] < self._confirm.seeds:
            return following
        decided = len(racing) == 1 or not all(repeat.state.terminal for repeat in repeats)
        return None if decided else following

    def _leaders(self, top: int) -> list[Trial]:
        searched = [trial for trial in self._history.trials if trial.role != CONFIRM]
        return [ranked.trial for ranked in rank(searched, self._history.study.directions[0])[:top]]

    def _out(self, repeats: list[Trial]) -> set[int]:
        """Leaders that are clearly behind, and those most of whose repeats failed."""
        standing = Repeats(runs_of(repeats), self._history.study.directions[0])
        failed = Counter(repeat.repeats for repeat in repeats if repeat.state is State.FAILED)
        complete = Counter(repeat.repeats for repeat in repeats if repeat.state is State.COMPLETE)
        numbers = {repeat.repeats for repeat in repeats if repeat.repeats is not None}
        return {number for number in numbers if standing.behind(number) or failed[number] > complete[number]}
