"""Repeats on fresh seeds, until a question is answered: which of the leading configurations is best
(`confirm`), or if the best one is better than the defaults (`certify`).

To confirm, the leaders are the first of the complete trials that have learnt something and may be
the best (`ranking.contenders`). The next repeat goes to the leader with the fewest that is still in
the race; a running repeat counts. A leader is out while the probability that it is better
than the first one is below 5% (`repeats.BEHIND`): racing (Maron and Moore 1994; Birattari et al.
2002, F-Race) with a Bayesian rule in place of a test. The n-th repeats of all have the same seed.

To certify, the best trial is the candidate (`verdicts.certificate`) until its question is closed:
it is shown to be better, or is not expected to be shown within `FURTHER` times the promised pairs,
or within what is left. Then another one may be asked about that the search finds.

Slots that the end of the search no longer needs begin with the leaders that are likely to stay
among them. Once nothing of the search runs, it waits until all repeats that are due have been
handed out. Of a budget of GPU time, money or wall-clock time, it then takes what it can still use;
the rest goes to further repeats of those that are in the race.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from itertools import count, islice

from hpsearch.brain.budget.headroom import Headroom
from hpsearch.domain.facts import ConfirmationState, Role
from hpsearch.domain.history import History
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import IN_FULL, Trial, sign_of
from hpsearch.domain.seeds import derived_seed
from hpsearch.search.ranking.contenders import Contenders, first_of, guess_of, has_learnt
from hpsearch.search.ranking.in_order import InOrder
from hpsearch.search.ranking.repeats import Repeats, runs_of
from hpsearch.search.ranking.selection import counts, place_of
from hpsearch.search.ranking.verdicts.certificate import Certificate, defaults_among
from hpsearch.study_file.models import PAIRS, StudyBudget, StudySpec

FURTHER = 4
"""A leader is repeated at most this multiple of `seeds`, with what is left of a budget at the end.
Four times as many repeats halve the width of an interval; more would hardly narrow it."""

Fits = Callable[[int], bool]
"""Whether so many repeats fit into what is left."""


class Confirmation:
    """The race between one study's leaders; without `search.confirm` there is none.

    Args:
        expect: Records what is expected of trials by now. The leaders are found by that, so it must
            not be older for one trial than for another.
        first: The number of configurations that are tried before the sampler draws any.
    """

    def __init__(
        self, spec: StudySpec, history: History, expect: Callable[[], None], first: int = 0
    ) -> None:
        confirm, self._level = spec.search.confirm, spec.search.level
        self._top = 0 if confirm is None else confirm.top
        self._seeds = 0 if confirm is None else confirm.seeds
        if self._level is not None:
            self._top, self._seeds = 2, PAIRS  # the best one may be the defaults
        self._seed = spec.seed
        self.promised_repeats = spec.search.promised_repeats
        """With a budget of trials alone, a study takes no more."""
        self._history = history
        self._expect = expect
        self._first_count = first
        self._direction = history.study.directions[0]
        self.change_budget(spec.budget)
        self._contenders = Contenders([], self._direction)
        self._seen = 0  # the history's clock at which the contenders were last looked for
        sign = sign_of(self._direction)
        self._firsts = InOrder(history, lambda trial: first_of(trial, sign))
        self._reported = 0  # the number of first reports that the contenders were found by
        self._complete = InOrder(history, lambda trial: _key_if_complete(trial, sign))

    def change_budget(self, budget: StudyBudget) -> None:
        """Promise the repeats of a budget; a larger one promises its own."""
        limits = (budget.gpu_hours, budget.cost, budget.wall_clock_s)
        self._limited = any(limit is not None for limit in limits)
        self._given: tuple[float | None, ...] = (budget.trials, *limits, self._first_count)
        known = self._history.study.confirmation
        is_same = known is not None and known.given == self._given
        self._first = known.first if known and is_same else len(self._history.trials)
        """The first trial whose repeats count against what this budget promises."""

    @property
    def is_under_way(self) -> bool:
        """True if the search waits, by the record."""
        known = self._history.study.confirmation
        return known is not None and known.given == self._given and known.search_waits

    def record(self, *, search_waits: bool) -> None:
        """Record if the search waits, for the next driver."""
        study = self._history.study
        now = ConfirmationState(self._given, self._first, search_waits)
        if study.confirmation != now:
            study.confirmation = now
            self._history.touch_study()

    def refresh(self) -> None:
        """Find the contenders, which all below goes by, again after a change that may matter."""
        if not self._top:
            return
        history = self._history
        trials = history.trials
        self._seen, changed = history.changed_since(self._seen)
        is_new = len(self._firsts) != self._reported
        if is_new or any(_may_matter(trials[number]) for number in changed):
            self._expect()
            self._seen, _ = history.changed_since(self._seen)
            self._contenders = self._found()
            self._reported = len(self._firsts)

    def _found(self) -> Contenders:
        trials, firsts = self._history.trials, self._firsts.keys
        sign, guess = sign_of(self._direction), guess_of(firsts)
        repeats = self._repeats()
        numbers = {repeat.repeats for repeat in repeats if repeat.repeats is not None}
        others = (trials[number] for number in self._complete if number not in numbers)
        learnt = (trial for trial in others if has_learnt(trial, sign, guess))
        leading = [*islice(learnt, self._top), *(trials[number] for number in sorted(numbers))]
        return Contenders([*leading, *repeats], self._direction, firsts)

    @property
    def repeats_to_come(self) -> int:
        """The number of repeats for which a part of the budget is kept back: those that the leaders
        still miss, and those of one more that the search may find. 0 before a trial that is worth
        repeating is complete."""
        leaders = self._contenders.leaders(self._top)
        if not leaders or not self._limited:
            return 0
        if self._level is not None:
            is_open = self._candidate() is not None
            missing = is_open * max(0, self.promised_repeats - len(self._repeats()))
            return min(self.promised_repeats, missing + PAIRS)
        repeats = self._repeats()
        given = _by_leader(repeats)
        out = self._out(repeats)
        numbers = [leader.number for leader in leaders if leader.number not in out]
        missing = sum(max(0, self._seeds - given[number]) for number in numbers)
        return min(self.promised_repeats, missing + self._seeds)

    def headroom_for(self, trial: Trial, headroom: Headroom) -> Headroom:
        """The part of the budget for a trial: also what is kept back, if the trial is a repeat, is
        wanted in full, or leads and is not complete. The repeats would otherwise go to others that
        are behind it."""
        if not headroom.kept_back:
            return headroom
        is_wanted = not trial.role.of_search or IN_FULL in trial.system_attrs
        if is_wanted or self._contenders.leads(trial):
            return headroom.including_kept_back()
        return headroom

    def early_leader(self, running: int) -> Trial | None:
        """The leader that a repeat may go to while so many trials of the search still run, of which
        every second one is assumed to rank before the last of the leaders."""
        if self._level is not None or (self._is_used_up() and not self._limited):
            return None
        repeats = self._repeats()
        given = _by_leader(repeats)
        out = self._out(repeats)
        newcomers = running // 2
        safe = self._contenders.leaders(max(0, self._top - newcomers))
        for leader in safe:
            if given[leader.number] < self._seeds and leader.number not in out:
                return leader
        return None

    def next_leader(self, fits: Fits = lambda repeats: True) -> Trial | None:
        """The leader to repeat next; None if that is decided, used up, or waits for what runs, and
        to certify also if so many repeats as are expected to decide do not fit."""
        if self._level is not None:
            return self._next_of_pair(fits)
        racing = self._racing()
        if not racing:
            return None
        repeats = self._repeats()
        given = _by_leader(repeats)
        following = min(racing, key=lambda leader: given[leader.number])
        is_due = given[following.number] < self._seeds
        if is_due and self._limited:
            return following
        if self._is_used_up():
            return None
        if is_due:
            return following
        decided = len(racing) == 1
        is_under_way = any(not repeat.state.terminal for repeat in repeats)
        if decided or is_under_way:
            return None
        return following

    def further_leaders(self, fits: Fits = lambda repeats: True) -> list[Trial]:
        """The leaders that the rest of a budget may go to, those with the fewest repeats first."""
        if not self._limited:
            return []
        if self._level is not None:
            following = self._next_of_pair(lambda repeats: fits(min(2, repeats)))
            return [] if following is None else [following]
        given = _by_leader(self._repeats())
        most = FURTHER * self._seeds
        racing = [leader for leader in self._racing() if given[leader.number] < most]
        return sorted(racing, key=lambda leader: given[leader.number])

    def seed_for(self, leader: Trial) -> int:
        """The seed of the next repeat of a leader: of the defaults that of an open pair."""
        certificate, repeats = self._certificate, self._repeats()
        if certificate is not None and leader.number == certificate.defaults:
            return certificate.unpaired(certificate.candidates[-1])[0]
        if certificate is None:
            repeats = [repeat for repeat in repeats if repeat.repeats == leader.number]
        used = {repeat.seed for repeat in repeats}
        seeds = (derived_seed(self._seed, place, "repeat") for place in count())
        return next(seed for seed in seeds if seed not in used)

    @property
    def _certificate(self) -> Certificate | None:
        """The pairs so far; None where nothing is certified, or no trial is of the defaults."""
        trials = self._history.trials
        defaults = None if self._level is None else defaults_among(trials)
        if defaults is None or self._level is None:
            return None
        tried, sign = sum(map(counts, trials)), sign_of(self._direction)
        return Certificate(self._repeats(), defaults.number, sign, self._level, tried)

    def _candidate(self) -> Trial | None:
        """The trial that is compared with the defaults now; None without one that leads them."""
        certificate, best = self._certificate, self._contenders.best
        if certificate is None or best is None:
            return None
        asked = certificate.candidates
        if asked:
            found = certificate.comparison(asked[-1])
            is_open = not found.is_shown and found.more is not None
            if is_open and len(found.differences) + (found.more or 0) <= FURTHER * PAIRS:
                return self._history.trials[asked[-1]]
        is_new = best.number not in (certificate.defaults, *asked)
        return best if is_new and best.violation == 0 else None

    def _next_of_pair(self, fits: Fits) -> Trial | None:
        certificate, candidate = self._certificate, self._candidate()
        if certificate is None or candidate is None:
            return None
        if certificate.unpaired(candidate.number):
            return self._history.trials[certificate.defaults]
        found = certificate.comparison(candidate.number)
        further = len(found.differences) + (found.more or 0) - certificate.begun(candidate.number)
        if further <= 0 or not fits(2 * further) or (self._is_used_up() and not self._limited):
            return None
        return candidate

    def _repeats(self) -> list[Trial]:
        repeats = [self._history.trials[number] for number in self._history.repeats]
        return [trial for trial in repeats if trial.repeats is not None]

    def _is_used_up(self) -> bool:
        """True if the repeats of the leaders, and all begun since, are as many as promised."""
        of_leaders = [] if self._level is not None else self._contenders.leaders(self._top)
        numbers = {leader.number for leader in of_leaders}
        counting = [
            each
            for each in self._repeats()
            if each.repeats in numbers or each.number >= self._first
        ]
        return len(counting) >= self.promised_repeats

    def _racing(self) -> list[Trial]:
        leaders = self._contenders.leaders(self._top)
        numbers = {leader.number for leader in leaders}
        out = self._out([repeat for repeat in self._repeats() if repeat.repeats in numbers])
        return [leader for leader in leaders if leader.number not in out]

    def _out(self, repeats: list[Trial]) -> set[int]:
        compared = Repeats(runs_of(repeats), self._direction)
        failed = _by_leader(repeat for repeat in repeats if repeat.state is State.FAILED)
        complete = _by_leader(repeat for repeat in repeats if repeat.state is State.COMPLETE)
        leaders = _by_leader(repeats)
        return {each for each in leaders if failed[each] > complete[each] or compared.behind(each)}


def _may_matter(trial: Trial) -> bool:
    return trial.role is Role.CONFIRM or trial.state is State.COMPLETE


def _key_if_complete(trial: Trial, sign: float) -> tuple[float, ...] | None:
    if trial.state is not State.COMPLETE or not counts(trial):
        return None
    return (trial.violation, *place_of(trial, sign))


def _by_leader(repeats: Iterable[Trial]) -> Counter[int]:
    return Counter(repeat.repeats for repeat in repeats if repeat.repeats is not None)
