"""The race of the leading configurations, repeated until it is clear which one is best.

The leaders are the first trials of the ranking, including paused and pruned ones that rank there.
Their repeats train in full, on fresh seeds. The next repeat goes to the leader with the fewest that
is still in the race. A leader is out once the probability that it is better than the first one has
fallen below 5% (`repeats.BEHIND`), and back in if later runs say so. The remaining repeats of a
leader that is out go to the others. This is racing (Maron and Moore 1994; Birattari et al. 2002,
F-Race) with a Bayesian rule in place of a test. A running repeat counts as one that its leader has,
so that free slots can work in parallel.

While the last trials of the search still run, slots that it no longer needs begin with the leaders
that are likely to stay among them. Once nothing of the search runs, the race has begun, and the
search does not continue beside it: only a study that is given another budget, or more to try,
searches again, and then races again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from hpsearch.domain.facts import Race, Role
from hpsearch.domain.history import History
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import Trial
from hpsearch.ranking.repeats import Repeats, runs_of
from hpsearch.ranking.selection import rank
from hpsearch.study_file.models import StudySpec


class Confirmation:
    """The race between one study's leaders.

    Args:
        spec: The study; without `search.confirm` there is no race.
        history: Its records.
        asked_for: How many configurations are tried whatever the sampler says.
    """

    def __init__(self, spec: StudySpec, history: History, asked_for: int = 0) -> None:
        study = history.study
        budget = spec.budget
        self._confirm = spec.search.confirm
        self._history = history
        self._direction = study.directions[0]
        self._given: tuple[float | None, ...] = (
            budget.trials,
            budget.gpu_hours,
            budget.cost,
            budget.wall_clock_s,
            asked_for,
        )
        race = study.race or Race(self._given)
        under_way = race.given == self._given
        self._first = race.first if under_way else len(history.trials)
        """The first trial whose repeats count against what this budget promises."""
        self.begun = under_way and race.begun
        """Whether the search is over: nothing but repeats starts any more."""

    def begin(self) -> None:
        """Note that the search is over."""
        if self._confirm is not None and not self.begun:
            self.begun = True
            self._note()

    @property
    def runs(self) -> int:
        """How many repeats the race may take."""
        return 0 if self._confirm is None else self._confirm.top * self._confirm.seeds

    @property
    def to_come(self) -> int:
        """How many of them have not begun.

        Those of an earlier race, with another budget, do not count.
        """
        if not self.runs:
            return 0
        counted = self._history.trials[self._first :]
        begun = sum(trial.role is Role.CONFIRM for trial in counted)
        return max(0, self.runs - begun)

    def early_repeat(self, running: int) -> Trial | None:
        """The leader that a repeat may go to while the search still runs.

        Every second running trial is assumed to rank before the last of the leaders. None if no
        leader is likely enough to stay one.

        Args:
            running: How many trials of the search run.
        """
        confirm = self._confirm
        if confirm is None or not self.to_come:
            return None
        self._note()
        given = _by_leader(self._repeats())
        newcomers = running // 2
        safe = self._leaders(max(0, confirm.top - newcomers))
        for leader in safe:
            if given[leader.number] < confirm.seeds:
                return leader
        return None

    def leader_to_repeat(self) -> Trial | None:
        """The leader that the next repeat goes to.

        None if the race is decided, used up, or waits for what runs.
        """
        confirm = self._confirm
        if confirm is None:
            return None
        leaders = self._leaders(confirm.top)
        numbers = {leader.number for leader in leaders}
        if not leaders or self._counted(numbers) >= self.runs:
            return None
        repeats = [repeat for repeat in self._repeats() if repeat.repeats in numbers]
        out = self._out(repeats)
        racing = [leader for leader in leaders if leader.number not in out]
        if not racing:
            return None
        given = _by_leader(repeats)
        following = min(racing, key=lambda leader: given[leader.number])
        if given[following.number] < confirm.seeds:
            return following
        decided = len(racing) == 1
        if decided or _any_is_under_way(repeats):
            return None
        return following

    def _note(self) -> None:
        race = Race(self._given, self._first, self.begun)
        study = self._history.study
        if study.race != race:
            study.race = race
            self._history.touch_study()

    def _repeats(self) -> list[Trial]:
        return [trial for trial in self._history.trials if trial.role is Role.CONFIRM]

    def _counted(self, leaders: set[int]) -> int:
        """How many repeats the race has used: those of its leaders, and all that it has begun."""
        count = 0
        for repeat in self._repeats():
            begun_in_race = repeat.number >= self._first
            if repeat.repeats in leaders or begun_in_race:
                count += 1
        return count

    def _leaders(self, top: int) -> list[Trial]:
        searched = [trial for trial in self._history.trials if trial.role is not Role.CONFIRM]
        ranking = rank(searched, self._direction)
        return [ranked.trial for ranked in ranking[:top]]

    def _out(self, repeats: list[Trial]) -> set[int]:
        """Leaders that are clearly behind, and those most of whose repeats failed."""
        standing = Repeats(runs_of(repeats), self._direction)
        failed = _by_leader(_in_state(repeats, State.FAILED))
        complete = _by_leader(_in_state(repeats, State.COMPLETE))
        out = set()
        for number in _by_leader(repeats):
            mostly_failed = failed[number] > complete[number]
            if mostly_failed or standing.behind(number):
                out.add(number)
        return out


def _by_leader(repeats: Iterable[Trial]) -> Counter[int]:
    """How many repeats each leader has, by its number."""
    count: Counter[int] = Counter()
    for repeat in repeats:
        if repeat.repeats is not None:
            count[repeat.repeats] += 1
    return count


def _in_state(repeats: Iterable[Trial], state: State) -> list[Trial]:
    return [repeat for repeat in repeats if repeat.state is state]


def _any_is_under_way(repeats: Iterable[Trial]) -> bool:
    return any(not repeat.state.terminal for repeat in repeats)
