"""When a study looks at what another hour would bring, and when that is not worth it any more.

It looks rarely, as trials end, and records what it sees for people. Where its budget says what an
hour is to be worth, the search has its end once `STEADY` looks in a row expect less.
"""

from dataclasses import asdict

from hpsearch.brain.budget.ledger import Spending
from hpsearch.domain.facts import NEXT_HOUR, NextHour
from hpsearch.domain.history import History
from hpsearch.domain.lifecycle import State
from hpsearch.domain.numbers import number
from hpsearch.search.next_hour import chance_of, notable
from hpsearch.search.searcher import Searcher
from hpsearch.study_file.models import HOUR_S

FEWEST, FEWEST_IN_FULL = 10, 3  # trials that have ended before it looks, and those in full
GROWTH = 1.05  # it looks again once this many times as many have ended
STEADY = 3


class NextHours:
    """The looks of one study."""

    def __init__(self, history: History, searcher: Searcher, spending: Spending) -> None:
        self._history, self._searcher, self._spending = history, searcher, spending
        self._looked = 0  # the trials that had ended when it last looked, whatever it saw

    @property
    def too_little(self) -> str | None:
        """The reason for which no hour is worth it any more; None while one is."""
        worth = self._spending.ledger.budget.worth
        latest = NextHour.of(self._history.study.system_attrs)
        if worth is None or latest is None or latest.per != worth.per or latest.below < STEADY:
            return None
        what = f"{latest.what} is expected to bring {latest.gain:.2g}"
        return f"{what}, less than the {number(worth.gain)} that it is to be worth"

    def look(self, now: float) -> None:
        """Look, if enough trials have ended since the last time, and an hour was spent."""
        study, states = self._history.study, self._history.states
        begun = self._history.searched
        ended = begun - states[State.QUEUED] - states[State.RUNNING]
        latest = NextHour.of(study.system_attrs)
        before = max(self._looked, 0 if latest is None else latest.trials)
        if ended < max(FEWEST, before + 1, GROWTH * before):
            return
        self._looked = ended
        worth = self._spending.ledger.budget.worth
        per = "gpu_hour" if worth is None else worth.per
        so_far, hours = self._training(per, now)
        if states[State.COMPLETE] < FEWEST_IN_FULL or hours < 1 or so_far <= 0:
            return
        found = self._searcher.gain(so_far / hours, so_far)
        if found is None:
            return
        gain, scale = found
        is_below = worth is not None and gain < worth.gain
        below = 1 + (latest.below if latest and latest.per == per else 0) if is_below else 0
        than = notable(scale) if worth is None else worth.gain
        told = NextHour(per, gain, chance_of(gain, scale, than), than, ended, below)
        study.system_attrs[NEXT_HOUR] = asdict(told)
        self._history.touch_study()

    def _training(self, per: str, now: float) -> tuple[float, float]:
        """All training of the search, in full trainings, and the hours that it took."""
        trials = [trial for trial in self._history.trials if trial.role.of_search]
        so_far = sum(trial.resource for trial in trials) / self._spending.trial_total
        if per == "trial":
            return so_far, len(trials)
        gpu_s = sum(trial.gpu_seconds for trial in trials)
        return so_far, (self._spending.time.so_far(now) if per == "hour" else gpu_s) / HOUR_S
