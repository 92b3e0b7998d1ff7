"""The time until a study ends, by the time that its trials have taken.

It is that of the trials that run, of those still to come, of the promotions that are expected, and
of the repeats (`search.confirm`). As long as few trials have shown it, how many train how far is
taken from what studies on recorded curves did (`benchmarks/pauses.py`). A limit of time or money
ends all of this.

Times are those of an average one of the present workers. Where these have other types of devices
than attempts before them, the time that those took is converted by the paces on each type.
"""

import heapq
import math
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from statistics import fmean

from hpsearch.domain.facts import Role
from hpsearch.domain.lifecycle import State
from hpsearch.domain.paces import Paces, own_pace
from hpsearch.domain.records import Trial
from hpsearch.search.pausing import WORTH
from hpsearch.study_file.levels import rung_levels
from hpsearch.study_file.methods import ETA, PROMOTION
from hpsearch.study_file.models import StudySpec
from hpsearch.study_file.types import AUTO

PRIOR = 10.0  # the trials that an expectation counts as, beside those that were seen
IN_FULL = {True: 0.4, False: 1.7}
"""The trials that are trained in full, as a multiple of the root of all: where trials are stopped;
and where they pause, with one worker and the last rung at the very end."""
BESIDE = 0.3
"""More go on where more run beside each other, as it shows later which are the best: as many as the
workers to this power, where trials pause."""
LOWER = 1.5
"""Of two rungs, as many trials pass the lower one as of the share that pass the last one, to the
power of its level as a share of the last, to this power."""
FEWER = {True: 0.65, False: 0.85}
"""Of so many trials at a rung, to this power, go on: the later ones must be better."""
UNPRUNED, PRUNED_AT, KEPT = 5, 0.12, 0.25
"""The trials that a pruner of Optuna sees in full before it prunes, the share of the budget at
which it then prunes, on average, and the share of trials that it lets by."""
ENDS_AT, ENDS_SEEN = 0.9, 2.0
"""The share of the budget at which programs that end by themselves are expected to, and the ends
that this counts as."""
REPEATED = 0.5
"""The share of the promised repeats that takes place: the race may be decided earlier."""
SIDE_BY_SIDE = 3
"""The average number of repeats that run at a time: later ones wait for the earlier ones."""
SPREAD = 2.0
"""The deviation of an estimate, as a share of it, times the root of the trials at rest."""
UNSEEN = {True: 1.2, False: 1.6}
"""The factor by which a whole study may take more or less than it is expected to before any trial
has ended, where all are trained in full and where not."""
MOST_PLAYED = 200
"""The new trials that are played through; of more, the time for each is that of these."""


class TimeLeft:
    """The time that the rest of a study takes.

    Args:
        spec: Its study file.
        trials: Its trials; of many, some that are evenly chosen, with all that run and all repeats.
        devices: The type of device of each of its workers.
        searched: The number of all trials of the search; None if it is that of these.
        paces: Those of all trials, where they are known already.
    """

    def __init__(
        self,
        spec: StudySpec,
        trials: Sequence[Trial],
        devices: Sequence[str | None],
        searched: int | None = None,
        paces: Paces | None = None,
    ) -> None:
        self._spec = spec
        self._search = [trial for trial in trials if trial.role is not Role.CONFIRM]
        self._repeats = [trial for trial in trials if trial.role is Role.CONFIRM]
        self._scale = (searched or len(self._search)) / (len(self._search) or 1)
        self._devices, self._workers = devices, len(devices)
        self._paces = paces or Paces(trials)
        self._kind = spec.search.pruner.kind
        self._eta = spec.search.pruner.arguments.get("eta", ETA)
        self._ends = [trial.resource for trial in trials if trial.state is State.COMPLETE]
        self._total = self._mean_end()
        self._levels = self._levels_of(trials)
        self._pace = self._start_up_s = 0.0
        pruned = any(trial.state is State.PRUNED for trial in self._search)
        again = any(len(trial.attempts) > 1 for trial in self._search)
        self._keeps = again or not pruned

    def _mean_end(self) -> float:
        """The resource at which trials end: their budget, or where their programs do."""
        budget = self._spec.budget.per_trial.total
        ends_early = (
            self._spec.task.get("ends_early", False) or min(self._ends, default=budget) < budget
        )
        if not ends_early:
            return budget
        running = [trial.resource for trial in self._search if trial.state is State.RUNNING]
        ends = [*self._ends, *map(self._end_after, running)] if self._ends else []
        return (sum(ends) + ENDS_SEEN * ENDS_AT * budget) / (len(ends) + ENDS_SEEN)

    def _end_after(self, resource: float) -> float:
        """The resource at which a trial ends that has come so far, by those that ended later."""
        later = [end for end in self._ends if end > resource]
        return fmean(later) if later else self._spec.budget.per_trial.total

    def _levels_of(self, trials: Sequence[Trial]) -> list[float]:
        """The resources at which trials go on or do not, on average, the end last."""
        if self._kind == "none":
            return [self._total]
        if self._kind == PROMOTION:
            levels = rung_levels(self._spec)
            return [*(level for level in levels if level < self._total), self._total]
        pruned = [trial.resource for trial in trials if trial.state is State.PRUNED]
        at = (sum(pruned) + PRIOR * PRUNED_AT * self._total) / (len(pruned) + PRIOR)
        return [min(at, 0.9 * self._total), self._total]

    def seconds(self, active_s: float, now: float) -> float | None:
        """Seconds until the study ends, after so many of work; None where that is not known yet."""
        trials = self._search + self._repeats
        weight = self._weight()
        paces = [self._pace_of(trial, weight) for trial in trials]
        known = [pace for pace in paces if pace is not None]
        if not self._workers or not known:
            return None
        self._pace = fmean(known)
        attempts = [attempt for trial in trials for attempt in trial.attempts]
        start_ups = [attempt.start_up_seconds for attempt in attempts]
        self._start_up_s = fmean([s for s in start_ups if s is not None] or [0.0])
        ends = self._limits_s(active_s, now)
        most = self._spec.budget.trials
        if most is not None:
            ends.append(self._search_s(most, now) + self._repeats_s(REPEATED, now))
        return min(ends, default=None)

    def _pace_of(self, trial: Trial, weight: Callable[[str | None], float]) -> float | None:
        """Seconds that an average worker trains a trial for one unit, by its ended attempts or
        else by its reports."""
        own = own_pace(trial)
        device = trial.attempts[-1].device if trial.attempts else None
        return None if own is None else own * weight(device)

    def between(self, seconds: float) -> tuple[float, float]:
        """The least and the most seconds that an estimate of the time left may mean."""
        deviation = min(0.9, SPREAD / math.sqrt(max(1.0, self._resting)))
        return seconds * (1 - deviation), seconds * (1 + deviation)

    @property
    def _resting(self) -> float:
        waiting = (State.QUEUED, State.RUNNING)
        return sum(trial.state not in waiting for trial in self._search) * self._scale

    def in_all_s(
        self, pace: float, start_up_s: float, keeps: bool = True
    ) -> tuple[float | None, float | None]:
        """Seconds that a whole study takes, for all its work and until its budget ends it; None for
        a number without a limit.

        Args:
            pace: Seconds that one worker trains for one unit of the budget.
            start_up_s: Seconds that an attempt takes until it trains.
            keeps: False if trials keep nothing to go on from.
        """
        self._pace = pace
        self._start_up_s = start_up_s
        limits_s = self._limits_s(0.0, 0.0)
        first_limit_s = min(limits_s, default=None)
        self._keeps = keeps
        trials = self._spec.budget.trials
        if trials is None:
            return None, first_limit_s
        search_s = self._search_s(trials)
        return search_s + self._repeats_s(1.0), first_limit_s

    def _weight(self) -> Callable[[str | None], float]:
        """The speed on a type of device, as a share of that of an average present worker."""
        speeds = [1 / (self._paces.mean(device) or 1.0) for device in self._devices]
        average = fmean(speeds) if speeds else 1.0
        return lambda device: 1 / (self._paces.mean(device) or 1.0) / average

    def _used(self, now: float, rate: Callable[[str | None], float]) -> float:
        search, repeats = (_held_s(each, now, rate) for each in (self._search, self._repeats))
        return search * self._scale + repeats

    def _limits_s(self, active_s: float, now: float) -> list[float]:
        budget = self._spec.budget
        limits = []
        if budget.wall_clock_s is not None:
            left_s = budget.wall_clock_s - active_s
            limits.append(max(0.0, left_s))
        gpus = self._spec.resources.stated_gpus or self._latest_gpus()
        gpu_hours = gpus / 3600

        def price(device: str | None) -> float:
            return gpu_hours * (budget.most_price_of(device) or 0.0)

        rates: list[tuple[float | None, Callable[[str | None], float]]]
        rates = [(budget.gpu_hours, lambda _: gpu_hours), (budget.cost, price)]
        for most, rate in rates:
            if most is not None:
                left = most - self._used(now, rate)
                at_once = sum(map(rate, self._devices))
                limits.append(max(0.0, left) / at_once)
        return limits

    def _latest_gpus(self) -> float:
        """The GPUs that the latest attempt is charged for; 1 where that is not known."""
        attempts = [attempt for trial in self._search for attempt in trial.attempts]
        latest = max(attempts, key=lambda attempt: attempt.started, default=None)
        return (latest.gpus if latest is not None else None) or 1.0

    @property
    def _full_s(self) -> float:
        return self._total * self._pace + self._start_up_s

    def _search_s(self, trials: int, now: float = 0.0) -> float:
        """Seconds that the rest of the search takes."""
        begun = self._scale * sum(bool(trial.attempts) for trial in self._search)
        new = max(0.0, trials - begun)
        if new <= MOST_PLAYED:
            return self._played_s(trials, math.ceil(new), now)
        some, half = (self._played_s(trials, each, now) for each in (MOST_PLAYED, MOST_PLAYED // 2))
        return some + (some - half) / (MOST_PLAYED / 2) * (new - MOST_PLAYED)

    def _played_s(self, trials: int, new: int, now: float) -> float:
        """Seconds until the running trials and so many new ones are done, as stretches are handed
        out by the rule of the search: to the first that may go on at the highest level, then to a
        new trial."""
        levels, start_s = self._levels, self._start_up_s
        stretches_s = [(high - low) * self._pace for low, high in pairwise([0.0, *levels])]
        top = len(levels) - 1
        pauses = [self._pauses_before(each_s) for each_s in stretches_s[1:]]
        arrived, gone_on, waiting = self._standing()
        quotas = self._quotas(trials, any(pauses), arrived, gone_on)
        spared = max(0, self._spared - (trials - new))
        busy = [self._stretch_of(trial, now) for trial in self._search if _is_open(trial)]
        heapq.heapify(busy)
        ended_s = 0.0

        def may_go_on(at: int, *, is_early: bool) -> bool:
            most = quotas[at](arrived[at])
            most = min(most, arrived[at] / self._eta) if is_early else most
            return gone_on[at] < most - 0.5

        def begin(at: int, seconds: float) -> None:
            heapq.heappush(busy, (ended_s + seconds + stretches_s[at], at))

        while True:
            while len(busy) < self._workers:
                able = (at for at in range(top) if waiting[at] >= 1)
                ready = [at for at in able if may_go_on(at, is_early=new > 0)]
                if ready:
                    at = ready[-1]
                    waiting[at] -= 1
                    gone_on[at] += 1
                    begin(at + 1, start_s)
                elif new:
                    new -= 1
                    spared -= 1
                    if spared >= 0:
                        heapq.heappush(busy, (ended_s + start_s + sum(stretches_s), top))
                    else:
                        begin(0, start_s)
                else:
                    break
            if not busy:
                return ended_s
            ended_s, at = heapq.heappop(busy)
            if at == top:
                continue
            arrived[at] += 1
            is_early = pauses[at] and (new > 0 or any(waiting))
            if may_go_on(at, is_early=is_early):
                gone_on[at] += 1
                begin(at + 1, 0.0)
            else:
                waiting[at] += pauses[at]

    def _pauses_before(self, stretch_s: float) -> bool:
        """True if trials pause where such a stretch begins."""
        wanted = self._spec.search.pruner.arguments.get("pause", AUTO)
        if self._kind != PROMOTION or wanted != AUTO:
            return self._kind == PROMOTION and bool(wanted)
        return self._keeps and self._start_up_s <= WORTH * stretch_s

    @property
    def _spared(self) -> int:
        """The first trials that a pruner of Optuna lets by, as it has not seen enough."""
        if self._kind in (PROMOTION, "none"):
            return 0
        return self._workers * math.ceil(UNPRUNED / self._workers)

    def _standing(self) -> tuple[list[float], list[float], list[float]]:
        """By level, the trials that have arrived there, have gone on, and wait there."""
        arrived, gone_on, waiting = ([0.0] * len(self._levels) for _ in range(3))
        for trial in self._search:
            below = [at for at, level in enumerate(self._levels) if level <= trial.resource]
            if trial.state is State.PRUNED and self._kind != PROMOTION:
                below = [0]
            for at in below:
                arrived[at] += self._scale
                goes_on = at != below[-1] or _is_open(trial)
                gone_on[at] += self._scale * goes_on
                waiting[at] += self._scale * (not goes_on and trial.state is State.PAUSED)
        return arrived, gone_on, waiting

    def _quotas(
        self, trials: int, pauses: bool, arrived: Sequence[float], gone_on: Sequence[float]
    ) -> list[Callable[[float], float]]:
        """By level, the trials that go on in the end of so many that have arrived, expected and as
        seen."""
        found = []
        before = 1.0
        for at, level in enumerate(self._levels[:-1]):
            after = self._going_on(level, trials, pauses)
            share = after / before
            usually = partial(_fewer, share, before * trials, FEWER[pauses])
            seen = max(gone_on[at], usually(arrived[at])) if pauses else gone_on[at]
            ratio = (seen + PRIOR * share) / (usually(arrived[at]) + PRIOR * share)
            found.append(partial(_beyond, seen, ratio, usually, arrived[at]))
            before = after
        return found

    def _going_on(self, level: float, trials: int, pauses: bool) -> float:
        """The share of all trials that are expected to train beyond a level."""
        if self._kind != PROMOTION:
            return KEPT
        last = self._levels[-2]
        share = IN_FULL[pauses] / math.sqrt(trials)
        if pauses:
            share *= self._workers**BESIDE * self._total / last
        return min(1.0, share) ** ((level / last) ** LOWER)

    def _stretch_of(self, trial: Trial, now: float) -> tuple[float, int]:
        """Seconds until a trial that runs arrives at a level, and the index of that level."""
        top = len(self._levels) - 1
        is_unjudged = trial.role in (Role.DEFAULT, Role.CONFIRM) or trial.number < self._spared
        above = (at for at, level in enumerate(self._levels) if level > trial.resource)
        at = top if is_unjudged else next(above, top)
        until = self._end_after(trial.resource) if at == top else self._levels[at]
        return self._until_s(trial, until, now), at

    def _until_s(self, trial: Trial, until: float, now: float) -> float:
        latest = trial.attempts[-1] if trial.attempts and trial.attempts[-1].ended is None else None
        device = latest.device if latest else None
        pace = self._paces.of(trial, device) or self._pace
        if latest is None:
            return self._start_up_s + max(0.0, until - trial.resource) * pace
        start_s = latest.start_up_seconds
        start_s = self._start_up_s if start_s is None else start_s
        due = latest.started + start_s + (until - latest.start_resource) * pace
        return min(max(0.0, due - now), start_s + (until - trial.resource) * pace)

    def _rest_s(self, trial: Trial, now: float) -> float:
        return self._until_s(trial, self._total, now) if _is_open(trial) else 0.0

    def _repeats_s(self, share: float, now: float = 0.0) -> float:
        """Seconds of the repeats to come, if this share of the promised ones takes place."""
        confirm = self._spec.search.confirm
        if confirm is None:
            return 0.0
        promised = confirm.top * confirm.seeds
        due = max(0, promised - len(self._repeats))
        rests_s = [self._rest_s(trial, now) for trial in self._repeats]
        work_s = share * due * self._full_s + sum(rests_s)
        at_once = min(self._workers, SIDE_BY_SIDE)
        return max([work_s / at_once, *rests_s])


def _fewer(share: float, most: float, power: float, count: float) -> float:
    """The trials that go on of the first so many, if of `most` this share does."""
    return share * max(most, count) ** (1 - power) * count**power


def _beyond(
    seen: float, ratio: float, usually: Callable[[float], float], then: float, count: float
) -> float:
    return seen + ratio * (usually(count) - usually(then))


def _is_open(trial: Trial) -> bool:
    return trial.state in (State.RUNNING, State.QUEUED)


def _held_s(trials: Sequence[Trial], now: float, weight: Callable[[str | None], float]) -> float:
    attempts = [attempt for trial in trials for attempt in trial.attempts]
    weights = {device: weight(device) for device in {each.device for each in attempts}}
    seconds = []
    for attempt in attempts:
        ended = attempt.ended or now
        held_s = max(0.0, ended - attempt.started)
        seconds.append(held_s * weights[attempt.device])
    return sum(seconds)
