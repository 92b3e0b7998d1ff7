"""Repeats on fresh seeds, until a question is answered: which of the leading configurations is best
(`confirm`, `verdicts.race`), or if the best one is better than the defaults (`certify`,
`verdicts.certificate`).

The leaders are the first of the complete trials that have learnt something and may be the best
(`ranking.contenders`). The question says which of them may be repeated next, and which repeats it
cannot do without. Those come before anything else that a budget of GPU time, money or wall-clock
time allows, which keeps a part back for them.

Slots that the end of the search no longer needs begin with the leaders that are likely to stay
among them. Once nothing of the search runs, it waits until all repeats that are due have been
handed out. Of such a budget, it then takes what it can still use; the rest goes to further repeats.
"""

from collections.abc import Callable
from itertools import count, islice

from hpsearch.brain.budget.headroom import Headroom
from hpsearch.domain.facts import ConfirmationState, Role
from hpsearch.domain.history import History
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import IN_FULL, Trial, sign_of
from hpsearch.domain.seeds import derived_seed
from hpsearch.search.ranking.contenders import Contenders, first_of, guess_of, has_learnt
from hpsearch.search.ranking.in_order import InOrder
from hpsearch.search.ranking.selection import counts, place_of
from hpsearch.search.ranking.verdicts.certificate import AgainstDefaults
from hpsearch.search.ranking.verdicts.question import OpenQuestion
from hpsearch.search.ranking.verdicts.race import Race
from hpsearch.study_file.models import PAIRS, StudyBudget, StudySpec

Fits = Callable[[int], bool]
"""Whether so many repeats fit into what is left."""


class Confirmation:
    """The repeats of one study; without `search.confirm` and `search.certify` there are none.

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
        if not self._limited or not self._contenders.leaders(self._top):
            return 0
        return min(self.promised_repeats, self._question().missing + self._seeds)

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
        if self._level is not None:
            return None
        race = self._question(newcomers=running // 2)
        due = [turn.trial for turn in race.turns if turn.is_due]
        is_refused = not due or (self._is_used_up(self._question()) and not self._limited)
        return None if is_refused else due[0]

    def next_leader(self, fits: Fits = lambda repeats: True) -> Trial | None:
        """The trial to repeat next; None if the question is answered, used up, waits for what runs,
        or if what is expected to answer it does not fit."""
        question = self._question()
        turn = next(iter(question.turns), None)
        if turn is None or not fits(turn.until):
            return None
        if turn.is_due and self._limited:
            return turn.trial
        is_enough = self._is_used_up(question) or (not turn.is_due and question.is_settled)
        return None if is_enough else turn.trial

    def further_leaders(self, fits: Fits = lambda repeats: True) -> list[Trial]:
        """The trials that the rest of a budget may go to, the first one first."""
        if not self._limited:
            return []
        return [turn.trial for turn in self._question().turns if fits(min(2, turn.until))]

    def seed_for(self, leader: Trial) -> int:
        """The seed of the next repeat of a leader."""
        seeds = (derived_seed(self._seed, place, "repeat") for place in count())
        return self._question().seed_for(leader, seeds)

    def _question(self, newcomers: int = 0) -> OpenQuestion:
        """The question as it stands, if so many trials come before the last of the leaders."""
        repeats, direction = self._repeats(), self._direction
        if self._level is None:
            leaders = self._contenders.leaders(max(0, self._top - newcomers))
            return Race(leaders, repeats, direction, self._seeds)
        trials, best = self._history.trials, self._contenders.best
        return AgainstDefaults(trials, repeats, best, direction, self._level, self._seeds)

    def _repeats(self) -> list[Trial]:
        return [self._history.trials[number] for number in self._history.repeats]

    def _is_used_up(self, question: OpenQuestion) -> bool:
        """True if the repeats of the leaders, and all begun since, are as many as promised."""
        counted = question.asked_about
        counting = [
            each
            for each in self._repeats()
            if each.repeats in counted or each.number >= self._first
        ]
        return len(counting) >= self.promised_repeats


def _may_matter(trial: Trial) -> bool:
    return trial.role is Role.CONFIRM or trial.state is State.COMPLETE


def _key_if_complete(trial: Trial, sign: float) -> tuple[float, ...] | None:
    if trial.state is not State.COMPLETE or not counts(trial):
        return None
    return (trial.violation, *place_of(trial, sign))
