"""The ledger of a study: what it may spend, has reserved and has spent; and the time it has taken.

Amounts are GPU-seconds: the seconds for which a slot was held, times its share of GPUs; a slot
without a GPU counts as one. A limit on money is the GPU-seconds that it pays on the type of device
that asks. Nothing starts unless its reservation fits into what is left; an attempt that outgrows
its reservation must extend it or stop. The ledger is rebuilt from the attempts in the database.

What is reserved for a stretch of training is its worst case: at the trial's own pace, or the
slowest one seen on the type of device (`domain.paces`), with a margin, within the trial's time
limit; before any trial has reported, a fair share of the budget. Every report gives back what the
rest of the stretch does not need. The start-up of an attempt, which is longest on a new worker, is
reserved beside that.
"""

import math
from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from statistics import fmean

from hpsearch.domain.history import History
from hpsearch.domain.paces import Paces, own_pace
from hpsearch.domain.records import Attempt, Outcome, Trial
from hpsearch.study_file.models import StudyBudget
from trials.contract import Unit

NOTE_S = 10.0  # seconds between two records of the time worked

Key = tuple[int, int]  # (trial, attempt)


MARGIN = 1.25
"""The factor by which a trial may be slower than it was, or a new one than the slowest so far. More
would be reserved for nothing, and slots would wait for it near the end; what is slower still takes
more of what is left, or stops."""
STOPPING_S = 5.0
"""The most seconds that an attempt takes to stop, where a tenth of its reservation is not less."""
ROUNDING_S = 1e-6  # seconds by which a clock may be too early at the moment for which it was set
LATEST_START_UPS = 10  # of each kind of worker, which foretell the next one


def charged_gpus(gpus: float) -> float:
    """GPU-seconds that a slot costs per second."""
    return gpus if gpus > 0 else 1.0


@dataclass(frozen=True, slots=True)
class ChargeRate:
    """GPUs that an attempt is charged for, and since when: by them alone its whole charge is right,
    so that is before its start where it was charged for more until lately, and later for less."""

    gpus: float
    since: float

    def charge(self, now: float) -> float:
        """GPU-seconds until a time."""
        return max(0.0, now - self.since) * charged_gpus(self.gpus)

    def changed(self, gpus: float, now: float) -> "ChargeRate":
        """The rate of the same attempt with other GPUs from now on."""
        return ChargeRate(gpus, now - self.charge(now) / charged_gpus(gpus))


@dataclass
class Ledger:
    """The GPU-seconds that one study may spend, has spent and has reserved."""

    budget: StudyBudget  # the limits and the prices
    spent: float = 0.0
    paid: float = 0.0  # money, as far as a limit counts it (`StudyBudget.most_price_of`)
    reserved: dict[Key, float] = field(default_factory=dict)
    to_pay: dict[Key, float] = field(default_factory=dict)  # the money that is reserved

    @property
    def is_limited(self) -> bool:
        """True if GPU time or money may run out."""
        return self.budget.gpu_hours is not None or self.budget.cost is not None

    def whole(self, device: str | None) -> float | None:
        """GPU-seconds that may be spent on a type of device in all; None without a limit."""
        return self._rest(device, 0.0, 0.0)

    def unspent(self, device: str | None) -> float | None:
        """GPU-seconds of a type of device that are not spent; None without a limit."""
        return self._rest(device, self.spent, self.paid)

    def left(self, device: str | None) -> float | None:
        """GPU-seconds of a type of device neither spent nor reserved; None without a limit."""
        reserved, to_pay = sum(self.reserved.values()), sum(self.to_pay.values())
        return self._rest(device, self.spent + reserved, self.paid + to_pay)

    def _rest(self, device: str | None, seconds: float, money: float) -> float | None:
        """GPU-seconds beyond so many, and so much money: of two limits the lower one holds."""
        hours, cost = self.budget.gpu_hours, self.budget.cost
        rests = [] if hours is None else [hours * 3600.0 - seconds]
        if cost is not None:
            rests.append((cost - money) / self._price(device))
        return max(0.0, min(rests)) if rests else None

    def _price(self, device: str | None) -> float:
        return (self.budget.most_price_of(device) or 0.0) / 3600.0

    def hold(self, attempt: Attempt) -> None:
        """Take in what is reserved for an attempt by now."""
        key = (attempt.trial, attempt.number)
        self.reserved[key] = attempt.reserved_gpu_seconds
        self.to_pay[key] = attempt.reserved_gpu_seconds * self._price(attempt.device)

    def spend(self, attempt: Attempt) -> None:
        """Record what an ended attempt used as spent, and free the rest of its reservation."""
        key = (attempt.trial, attempt.number)
        self.reserved.pop(key, None)
        self.to_pay.pop(key, None)
        self.spent += attempt.gpu_seconds
        self.paid += attempt.gpu_seconds * self._price(attempt.device)


class WorkingTime:
    """The seconds that drivers have worked on one study; `limit_s` is None without a limit."""

    def __init__(self, history: History, limit_s: float | None) -> None:
        self._history = history
        self.limit_s = limit_s
        self._before = self._began = self._noted = 0.0

    def begin(self, now: float, before_s: float | None = None) -> None:
        """Count from now on, after so many seconds; None for those on record."""
        self._before = self._history.study.active_seconds if before_s is None else before_s
        self._began = now
        self._noted = now

    def so_far(self, now: float) -> float:
        """Seconds that drivers have worked on the study, over all of them."""
        return self._before + max(0.0, now - self._began)

    def left(self, now: float) -> float:
        """Seconds left of the limit; infinite without one."""
        return math.inf if self.limit_s is None else self.limit_s - self.so_far(now)

    def is_used(self, now: float) -> bool:
        """True if the limit is reached."""
        return self.left(now) <= 0

    def note(self, now: float) -> None:
        """Record the time every `NOTE_S` seconds, for the next driver if this one dies."""
        if now - self._noted < NOTE_S:
            return
        self._noted = now
        self._history.study.active_seconds = self.so_far(now)
        self._history.touch_study()


@dataclass(frozen=True)
class StartUp:
    """The seconds of an attempt before it trains: as expected, and at most."""

    expected_s: float = 0.0
    worst_s: float = 0.0


@dataclass
class _Seen:
    seconds: float
    key: Key | None
    is_shown: bool = False
    """True if its reports have shown it; its worker alone does not know what its code prepares."""


class StartUps:
    """The latest start-ups of attempts, in seconds."""

    def __init__(self) -> None:
        # Of the first attempts on their workers, and of all others.
        self._cold: deque[_Seen] = deque(maxlen=LATEST_START_UPS)
        self._warm: deque[_Seen] = deque(maxlen=LATEST_START_UPS)

    def add(self, seconds: float, key: Key | None = None, *, is_warm: bool) -> None:
        """Count an attempt that came to train after so many seconds."""
        (self._warm if is_warm else self._cold).append(_Seen(seconds, key))

    def show(self, key: Key, seconds: float) -> None:
        """Correct the start-up of an attempt by what its reports have shown."""
        for seen in (*self._cold, *self._warm):
            if seen.key == key:
                seen.seconds, seen.is_shown = seconds, True

    def shown(self, *, is_warm: bool) -> float | None:
        """The mean of those that reports have shown, of one kind of worker; None without any."""
        seen = self._warm if is_warm else self._cold
        known = [each.seconds for each in seen if each.is_shown]
        return fmean(known) if known else None

    def next(self, *, is_warm: bool) -> StartUp:
        """The start-up of the next attempt on a worker. A warm one is at most a known cold one, and
        is expected to take nothing, until it is known; a cold one is as warm ones until then."""
        cold, warm = ([seen.seconds for seen in kind] for kind in (self._cold, self._warm))
        if is_warm and not warm:
            return StartUp(0.0, max(cold, default=0.0))
        seen = warm if is_warm else cold or warm
        if not seen:
            return StartUp()
        expected_s = self.shown(is_warm=seen is warm)
        return StartUp(fmean(seen) if expected_s is None else expected_s, MARGIN * max(seen))


class Spending:
    """The ledger of one study, its time, and the pace of its trials, rebuilt from its history."""

    def __init__(self, budget: StudyBudget, history: History) -> None:
        self._per_trial = budget.per_trial
        self._history = history
        self.paces = Paces(history.trials)
        self._most_unreported = 0.0
        """The most GPU-seconds that an attempt took while none had reported."""
        attempts = [attempt for trial in history.trials for attempt in trial.attempts]
        self.ledger = Ledger(budget)
        self.time = WorkingTime(history, budget.wall_clock_s)
        self.start_ups = _recalled(history)
        for attempt in attempts:
            self.ledger.spend(attempt)
            self._note_unreported(attempt)

    def change_budget(self, budget: StudyBudget) -> None:
        """Go on with the limits of another budget, whose price is the same."""
        self.ledger.budget = budget
        self.time.limit_s = budget.wall_clock_s

    @property
    def trial_total(self) -> float:
        """The full budget of one trial, in its unit."""
        return self._per_trial.total

    # ---------------------------------------------------------------------------------------- paces

    def learn(self, trial: Trial, attempt: Attempt, *, afresh: bool = False) -> None:
        """Learn from the speed that a report has shown; `afresh` if its start was in it before."""
        pace = own_pace(trial)
        if pace is None:
            return
        before = attempt.slowest_pace or 0.0
        attempt.slowest_pace = pace if afresh else max(before, pace)
        if attempt.slowest_pace < before and before >= self.paces.slowest(attempt.device):
            self.paces = Paces(self._history.trials)
        self.paces.learn(trial)
        self._most_unreported = 0.0
        self._history.touch_attempt(attempt)

    def pace_of(self, trial: Trial | None, device: str | None) -> float | None:
        """The pace of a trial, or of the one it repeats, on a type of device; None if unknown."""
        if trial is None:
            return None
        if trial.speed or trial.repeats is None:
            return self.paces.of(trial, device)
        repeated = self._history.trials[trial.repeats]
        return self.paces.of(repeated, device)

    def _note_unreported(self, attempt: Attempt) -> None:
        if self.paces.mean() is None:
            self._most_unreported = max(self._most_unreported, attempt.gpu_seconds)

    # ---------------------------------------------------------------------------- before and during

    def need(
        self,
        stretch: float,
        gpus: float,
        slots: int,
        trial: Trial | None = None,
        start_up_s: float = 0.0,
        device: str | None = None,
    ) -> float:
        """The most GPU-seconds that a further stretch of training may take, on a slot with so many
        GPUs, of so many slots.

        Args:
            trial: The trial that trains, whose pace may be known; None for a new one.
            start_up_s: The most seconds before it trains; 0 if it trains already.
            device: The type of the slot's device; None for any.
        """
        unspent = self.ledger.unspent(device)
        if unspent is None:
            return 0.0
        pace = self.pace_of(trial, device) or self.paces.slowest(device)
        worst_s = self._worst_s(stretch, pace, start_up_s)
        if worst_s is not None:
            return worst_s * charged_gpus(gpus)
        fair = unspent / max(1, slots) * 0.99
        return max(fair, self._most_unreported)

    def _worst_s(self, stretch: float, pace: float, start_up_s: float) -> float | None:
        limit_s = self._per_trial.time_limit_s
        counts_seconds = self._per_trial.unit is Unit.SECONDS
        if not pace and not counts_seconds:
            return limit_s
        worst_s = MARGIN * stretch * pace
        if counts_seconds:
            worst_s = max(worst_s, stretch)
        worst_s += start_up_s
        return worst_s if limit_s is None else min(worst_s, limit_s)

    def reserve(self, attempt: Attempt, amount: float) -> bool:
        """Reserve more for an attempt; False, and nothing changed, if too little is left."""
        left = self.ledger.left(attempt.device)
        if left is not None and amount > left:
            return False
        attempt.reserved_gpu_seconds += amount
        self.ledger.hold(attempt)
        self._history.touch_attempt(attempt)
        return True

    def due(self, running: Iterable[tuple[Attempt, ChargeRate]]) -> float | None:
        """When the first of these attempts will have outgrown its reservation; None if never."""
        if not self.ledger.is_limited:
            return None
        return min((_outgrown_at(attempt, rate) for attempt, rate in running), default=None)

    def is_outgrown(self, attempt: Attempt, now: float, rate: ChargeRate) -> bool:
        """True if an attempt has used up its reservation."""
        if not self.ledger.is_limited:
            return False
        return now + ROUNDING_S >= _outgrown_at(attempt, rate)

    def extend(self, attempt: Attempt) -> bool:
        """Reserve up to a quarter more; False, and nothing changed, if too little is left."""
        more = max(1.0, attempt.reserved_gpu_seconds / 4)
        left = self.ledger.left(attempt.device)
        return self.reserve(attempt, more if left is None else max(1.0, min(more, left)))

    def rescale(self, attempt: Attempt, before: ChargeRate, after: ChargeRate, now: float) -> None:
        """Reserve for the rest of an attempt at another rate; what is left may be too little."""
        if self.ledger.is_limited:
            rest = attempt.reserved_gpu_seconds - before.charge(now)
            factor = charged_gpus(after.gpus) / charged_gpus(before.gpus)
            self.reserve(attempt, max(0.0, rest) * (factor - 1))

    def give_back(self, attempt: Attempt, rest: float, now: float, rate: ChargeRate) -> None:
        """Free what is reserved beyond the worst case of the rest, at the trial's own pace."""
        pace = self.paces.of(self._history.trials[attempt.trial], attempt.device)
        if not self.ledger.is_limited or pace is None:
            return
        worst_s = self._worst_s(rest, pace, 0.0) or 0.0
        needed = rate.charge(now + worst_s)
        spare = attempt.reserved_gpu_seconds - needed
        if spare > 0:
            self.reserve(attempt, -spare)

    # ----------------------------------------------------------------------------------- afterwards

    def end(
        self, attempt: Attempt, outcome: Outcome, now: float, rate: ChargeRate, note: str | None
    ) -> None:
        """Charge an attempt that has ended, and its trial, for the time it held its slot."""
        history = self._history
        trial = history.trials[attempt.trial]
        gpu_seconds = rate.charge(now)
        attempt.ended = now
        attempt.outcome = outcome
        attempt.note = note
        attempt.gpu_seconds = gpu_seconds
        self.ledger.spend(attempt)
        trial.gpu_seconds += gpu_seconds
        taken = ((each.device, each.gpu_seconds) for each in trial.attempts)
        trial.cost = self.ledger.budget.cost_of(taken)
        self._note_unreported(attempt)
        history.touch_attempt(attempt)
        history.touch(trial)


def _recalled(history: History) -> StartUps:
    """The start-ups on record. A first attempt on a worker of a later driver counts as warm: so too
    much may be reserved, but not too little."""
    start_ups = StartUps()
    reports: Counter[Key] = Counter()
    known: list[Attempt] = []
    for trial in history.trials:
        known += [each for each in trial.attempts if each.start_up_seconds is not None]
        reports.update((trial.number, each.attempt or 0) for each in trial.reports.values())
    workers: set[tuple[str | None, str]] = set()
    for attempt in sorted(known, key=lambda attempt: attempt.started):
        worker = (attempt.node, attempt.worker)
        seconds, key = attempt.start_up_seconds or 0.0, (attempt.trial, attempt.number)
        start_ups.add(seconds, key, is_warm=worker in workers)
        if reports[key] > 1:
            start_ups.show(key, seconds)
        workers.add(worker)
    return start_ups


def _outgrown_at(attempt: Attempt, rate: ChargeRate) -> float:
    """The time at which an attempt must have more reserved, or stop: a little before its
    reservation is used up, since it takes a step and a save to stop."""
    reserved_s = attempt.reserved_gpu_seconds / charged_gpus(rate.gpus)
    return rate.since + max(reserved_s - STOPPING_S, reserved_s * 0.9)
