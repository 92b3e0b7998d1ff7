"""When a study looks at what another hour would bring, and when that is not worth it any more.

It looks rarely, as trials end, and records what it sees for people. Where its budget says what an
hour is to be worth, the search has its end once `STEADY` looks in a row expect less.
"""

from dataclasses import asdict, replace

from hpsearch.brain.budget.ledger import Spending
from hpsearch.domain.facts import NEXT_HOUR, NextHour, Role
from hpsearch.domain.history import History
from hpsearch.domain.lifecycle import State
from hpsearch.domain.numbers import number
from hpsearch.search.next_hour import chance_of, notable
from hpsearch.search.searcher import Searcher
from hpsearch.study_file.models import HOUR_S, Worth

FEWEST, FEWEST_IN_FULL = 10, 3  # trials that have ended before it looks, and those in full
GROWTH = 1.05  # it looks again once this many times as many have ended
STEADY = 3


class NextHours:
    """The looks of one study."""

    def __init__(self, history: History, searcher: Searcher, spending: Spending) -> None:
        self._history, self._searcher, self._spending = history, searcher, spending

    @property
    def _worth(self) -> Worth | None:
        return self._spending.ledger.budget.worth

    @property
    def latest(self) -> NextHour | None:
        """What was seen last; None before the first look."""
        return NextHour.of(self._history.study.system_attrs)

    @property
    def too_little(self) -> str | None:
        """The reason for which no hour is worth it any more; None while one is."""
        worth, latest = self._worth, self.latest
        if worth is None or latest is None or latest.per != worth.per or latest.below < STEADY:
            return None
        what = f"{latest.what} is expected to bring {latest.gain:.2g}"
        return f"{what}, less than the {number(worth.gain)} that it is to be worth"

    def look(self, now: float) -> None:
        """Look, if enough trials have ended since the last time."""
        states = self._history.states
        ended = sum(states.values()) - states[State.QUEUED] - states[State.RUNNING]
        latest = self.latest
        before = 0 if latest is None else latest.trials
        is_soon = ended <= before or ended < GROWTH * before
        if is_soon or ended < FEWEST or states[State.COMPLETE] < FEWEST_IN_FULL:
            return
        found = self._foretold(ended, now)
        if found is None:
            return
        worth = self._worth
        is_below = worth is not None and found.gain < worth.gain
        is_next = latest is not None and latest.per == found.per
        self._record(found, 1 + (latest.below if latest and is_next else 0) if is_below else 0)

    def _foretold(self, ended: int, now: float) -> NextHour | None:
        worth = self._worth
        per = "gpu_hour" if worth is None else worth.per
        trials = [trial for trial in self._history.trials if trial.role is not Role.CONFIRM]
        spent_s = sum(trial.gpu_seconds for trial in trials)
        so_far = sum(trial.resource for trial in trials) / self._spending.trial_total
        hours = {
            "gpu_hour": spent_s / HOUR_S,
            "hour": self._spending.time.so_far(now) / HOUR_S,
            "trial": float(len(trials)),
        }
        if hours[per] < 1 or not so_far:
            return None
        found = self._searcher.gain(so_far / hours[per], so_far)
        if found is None:
            return None
        gain, scale = found
        if not scale:
            return None
        than = notable(scale) if worth is None else worth.gain
        return NextHour(per, gain, chance_of(gain, scale, than), than, ended)

    def _record(self, found: NextHour, below: int) -> None:
        study = self._history.study
        study.system_attrs[NEXT_HOUR] = asdict(replace(found, below=below))
        self._history.touch_study()
