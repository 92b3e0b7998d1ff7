"""The time until a study ends, by the time that its trials have taken.

The rest is played through: what runs, the trials to come, and promotions, as workers become free.
How many go on at a rung is taken from what studies on recorded curves did (`benchmarks/told.py`),
and from this one. Then come repeats (`search.confirm`). A limit of time or money ends all of this.

Times are those of an average one of the present workers. Where these have other types of devices
than attempts before them, the time that those took is converted by the paces on each type.
"""

import heapq
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean

from hpsearch.domain.facts import Role
from hpsearch.domain.lifecycle import State
from hpsearch.domain.paces import WORTH, Paces, own_pace
from hpsearch.domain.records import Trial
from hpsearch.study_file.levels import rung_levels
from hpsearch.study_file.methods import ETA, PROMOTION
from hpsearch.study_file.models import StudySpec
from hpsearch.study_file.types import AUTO

PRIOR = 10.0  # the trials that an expectation counts as, beside those that were seen
IN_FULL = {True: 0.24, False: 1.8}
"""The trials trained in full, as a multiple of the root of all, where they are stopped; and where
they pause, on one worker, with a rung at the very end."""
BESIDE = 0.3  # with more workers more go on, before it shows which are the best: to this power
LOWER = 1.5  # beyond a lower rung goes the share in full to the power of how low it is, to this
FEWER, FEWER_KEPT = {True: 0.75, False: 0.9}, 0.55
"""Of so many trials at a rung go on as of this power of them; last, for a pruner of Optuna."""
UNPRUNED, PRUNED_AT, KEPT = 5, 0.12, 0.25
"""The trials that a pruner of Optuna sees in full before it prunes, the share of the budget at
which it then prunes, and the share of trials that it lets by."""
ENDS_AT, ENDS_SEEN = 0.9, 3.0  # the share at which early ends are, and the ends it counts as
REPEATED = 0.5  # the share of the promised repeats that takes place, as a race is decided earlier
SIDE_BY_SIDE = 3  # the average number of repeats that run at a time: later ones wait
PACE, END, GO_ON = 0.25, 0.35, 0.28
"""The logarithm by which the real time is off, nine times in ten, at most: by paces and ends, what
is left; and by how many trials go on, the whole."""
HOW_MANY, HOW_EARLY = "how many trials go on", "how early they end"
OTHERS = "how much longer other configurations take"
MOST_PLAYED = 200  # the new trials that are played through; others take as long


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
        self._search = [trial for trial in trials if trial.role.of_search]
        self._repeats = [trial for trial in trials if trial.role is Role.CONFIRM]
        self._of_code = [trial for trial in trials if trial.role is Role.REVISION]
        self._scale = (searched or len(self._search)) / (len(self._search) or 1)
        self._devices, self._workers = devices, len(devices)
        self._paces = paces or Paces(trials)
        self._kind = spec.search.pruner.kind
        self._eta = spec.search.pruner.arguments.get("eta", ETA)
        same_code = self._search + self._repeats
        self._ends = [trial.resource for trial in same_code if trial.state is State.COMPLETE]
        is_early = min(self._ends, default=math.inf) < spec.budget.per_trial.total
        self._ends_early = is_early or bool(spec.task.get("ends_early", False))
        self._total = self._mean_end()
        self._levels = self._rungs_and_end()
        self._pace = self._start_up_s = self._elapsed_s = 0.0
        self._is_limited = False  # true if its budget ends the study
        pruned = any(trial.state is State.PRUNED for trial in self._search)
        self._keeps = not pruned or any(len(trial.attempts) > 1 for trial in self._search)

    def _mean_end(self) -> float:
        """The resource at which trials end: their budget, or where their programs do."""
        budget = self._spec.budget.per_trial.total
        if not self._ends_early:
            return budget
        running = [trial.resource for trial in self._search if trial.state is State.RUNNING]
        ends = [*self._ends, *map(self._end_after, running)] if self._ends else []
        return (sum(ends) + ENDS_SEEN * ENDS_AT * budget) / (len(ends) + ENDS_SEEN)

    def _end_after(self, resource: float) -> float:
        """The resource at which a trial ends that has come so far, by those that ended later."""
        later = [end for end in self._ends if end > resource]
        return fmean(later) if later else self._spec.budget.per_trial.total

    def _rungs_and_end(self) -> list[float]:
        """The resources at which trials go on or do not, on average, and the end."""
        levels = [PRUNED_AT * self._total] if self._kind != "none" else []
        levels = list(rung_levels(self._spec)) if self._kind == PROMOTION else levels
        return [*(level for level in levels if level < self._total), self._total]

    def seconds(self, active_s: float, now: float) -> float | None:
        """Seconds until the study ends, after so many of work; None where that is not known yet."""
        trials = self._search + self._repeats
        weight = self._weight()
        paces = [self._pace_of(trial, now, weight) for trial in trials]
        known = [pace for pace in paces if pace is not None]
        if not self._workers or not known:
            return None
        self._pace = fmean(known)
        starts_s = [attempt.start_up_seconds for trial in trials for attempt in trial.attempts]
        self._start_up_s = fmean([s for s in starts_s if s is not None] or [0.0])
        self._elapsed_s = active_s
        ends = self._limits_s(active_s, now)
        most = self._spec.budget.trials
        if most is not None:
            ends.append(self._search_s(most, now) + self._repeats_s(REPEATED, now))
        left_s = min(ends, default=None)
        self._is_limited = most is None or left_s != ends[-1]
        return left_s

    def between(self, seconds: float) -> tuple[float, float]:
        """The least and the most seconds that a time left means, nine times in ten."""
        factor = math.exp(self.spread(seconds))
        limit_s = self._spec.budget.wall_clock_s or math.inf
        return seconds / factor, min(seconds * factor, max(seconds, limit_s - self._elapsed_s))

    def spread(self, seconds: float) -> float:
        """The logarithm of the factor by which the time left may be more or less than so much."""
        depends = self.depends
        go_on = GO_ON * (self._elapsed_s + seconds) / max(seconds, 1e-9)
        spreads = (go_on * (HOW_MANY in depends), END * (HOW_EARLY in depends), PACE)
        return min(1.0, math.hypot(*spreads))

    @property
    def depends(self) -> list[str]:
        """The facts that this range is for."""
        if self._is_limited:
            return [OTHERS]
        return [HOW_MANY] * (self._kind != "none") + [HOW_EARLY] * self._ends_early + [OTHERS]

    def _pace_of(
        self, trial: Trial, now: float, weight: Callable[[str | None], float]
    ) -> float | None:
        """Seconds that an average worker trains a trial for one unit, with its program's end."""
        own, device = own_pace(trial), trial.attempts[-1].device if trial.attempts else None
        if own is not None and _is_open(trial):
            return own * weight(device)
        starts_s = sum(each.start_up_seconds or 0.0 for each in trial.attempts)
        trained_s = _held_s([trial], now, weight) - starts_s * weight(device)
        return trained_s / trial.resource if trained_s > 0 and trial.resource > 0 else None

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
        self._keeps = keeps
        limit_s = min(self._limits_s(0.0, 0.0), default=None)
        trials = self._spec.budget.trials
        return trials and self._search_s(trials) + self._repeats_s(1.0), limit_s

    def _weight(self) -> Callable[[str | None], float]:
        """The speed on a type of device, as a share of that of an average present worker."""
        speeds = [1 / (self._paces.mean(device) or 1.0) for device in self._devices]
        average = fmean(speeds) if speeds else 1.0
        return lambda device: 1 / (self._paces.mean(device) or 1.0) / average

    def _used(self, now: float, rate: Callable[[str | None], float]) -> float:
        others = self._repeats + self._of_code
        return _held_s(self._search, now, rate) * self._scale + _held_s(others, now, rate)

    def _limits_s(self, active_s: float, now: float) -> list[float]:
        budget = self._spec.budget
        limits = []
        if budget.wall_clock_s is not None:
            limits.append(max(0.0, budget.wall_clock_s - active_s))
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

    def _search_s(self, trials: int, now: float = 0.0) -> float:
        """Seconds that the rest of the search takes."""
        new = max(0.0, trials - self._scale * sum(bool(each.attempts) for each in self._search))
        if new <= MOST_PLAYED:
            return self._played_s(trials, math.ceil(new), now)
        some, half = (self._played_s(trials, each, now) for each in (MOST_PLAYED, MOST_PLAYED // 2))
        return some + (some - half) / (MOST_PLAYED / 2) * (new - MOST_PLAYED)

    def _played_s(self, trials: int, new: int, now: float) -> float:
        """Seconds until running and new trials are done, if promotions come before new ones."""
        levels, start_s = self._levels, self._start_up_s
        stretches_s = [(high - low) * self._pace for low, high in pairwise([0.0, *levels])]
        top = len(levels) - 1
        rungs = self._standing(trials, [self._pauses_before(each_s) for each_s in stretches_s[1:]])
        busy = [self._stretch_of(trial, now) for trial in self._search if _is_open(trial)]
        heapq.heapify(busy)
        ended_s = 0.0

        def begin(at: int, seconds: float) -> None:
            heapq.heappush(busy, (ended_s + seconds + stretches_s[at], at))

        while True:
            while len(busy) < self._workers:
                able = [at for at in range(top) if rungs[at].lets_go_on(self._eta if new else None)]
                if able:
                    rungs[able[-1]].gone_on += 1
                    begin(able[-1] + 1, start_s)
                elif new:
                    new -= 1
                    begin(0, start_s)
                else:
                    break
            if not busy:
                return ended_s
            ended_s, at = heapq.heappop(busy)
            if at == top:
                continue
            is_early = new or any(rung.waiting >= 1 for rung in rungs)
            rungs[at].arrived += 1
            if rungs[at].lets_go_on(self._eta if is_early else None):
                rungs[at].gone_on += 1
                begin(at + 1, 0.0)
            elif not rungs[at].pauses:
                rungs[at].stopped += 1

    def _pauses_before(self, stretch_s: float) -> bool:
        """True if trials pause where such a stretch begins."""
        wanted = self._spec.search.pruner.arguments.get("pause", AUTO)
        if self._kind != PROMOTION or wanted != AUTO:
            return self._kind == PROMOTION and bool(wanted)
        return self._keeps and self._start_up_s <= WORTH * stretch_s

    def _standing(self, trials: int, pauses: Sequence[bool]) -> "list[_Rung]":
        """The rungs with the trials that have arrived, and with how many are expected to go on."""
        rungs = [_Rung(each) for each in pauses]
        for trial in self._search:
            reached = sum(level <= trial.resource for level in self._levels[:-1])
            if trial.state is State.PRUNED and self._kind != PROMOTION:
                reached = 1
            goes_on = _is_open(trial) or trial.state is State.COMPLETE
            for rung in rungs[:reached]:
                rung.arrived += self._scale
                rung.gone_on += self._scale * (goes_on or rung is not rungs[reached - 1])
            if reached and not goes_on and trial.state is not State.PAUSED:
                rungs[reached - 1].stopped += self._scale
        before = 1.0
        for rung, level in zip(rungs, self._levels, strict=False):
            after = self._going_on(level, trials, any(pauses))
            power = FEWER[any(pauses)] if self._kind == PROMOTION else FEWER_KEPT
            rung.expect(after / before, before * trials, power)
            before = after
        return rungs

    def _going_on(self, level: float, trials: int, pauses: bool) -> float:
        """The share of all trials that are expected to train beyond a level."""
        if self._kind != PROMOTION:
            return min(1.0, KEPT + (1 - KEPT) * UNPRUNED / trials)
        last = self._levels[-2]
        share: float = IN_FULL[pauses] / math.sqrt(trials)
        if pauses:
            share *= self._workers**BESIDE * self._total / last
        return math.pow(min(1.0, share), (level / last) ** LOWER)

    def _stretch_of(self, trial: Trial, now: float) -> tuple[float, int]:
        """Seconds until a trial that runs arrives at a level, and the index of that level."""
        top = len(self._levels) - 1
        is_unjudged = trial.role is Role.DEFAULT
        above = (at for at, level in enumerate(self._levels) if level > trial.resource)
        at = top if is_unjudged else next(above, top)
        until = self._end_after(trial.resource) if at == top else self._levels[at]
        return self._until_s(trial, until, now), at

    def _until_s(self, trial: Trial, until: float, now: float) -> float:
        """Seconds until a trial that runs or is queued has come so far, by its own pace."""
        latest = trial.attempts[-1] if trial.attempts else None
        pace = self._paces.of(trial, latest.device if latest else None) or self._pace
        longest_s = self._start_up_s + max(0.0, until - trial.resource) * pace
        if latest is None or latest.ended is not None:
            return longest_s
        known_s = latest.start_up_seconds
        began = latest.started + (self._start_up_s if known_s is None else known_s)
        return min(max(0.0, began + (until - latest.start_resource) * pace - now), longest_s)

    def _repeats_s(self, share: float, now: float = 0.0) -> float:
        """Seconds of the repeats to come, if this share of the promised ones takes place, and of
        the tests of changed code that have begun."""
        due = max(0, self._spec.search.promised_repeats - len(self._repeats))
        running = [trial for trial in self._repeats + self._of_code if _is_open(trial)]
        rests_s = [self._until_s(trial, self._total, now) for trial in running]
        full_s = self._start_up_s + self._total * self._pace
        at_once = min(self._workers, SIDE_BY_SIDE)
        return max([(share * due * full_s + sum(rests_s)) / at_once, *rests_s])


@dataclass
class _Rung:
    """The standing of the trials at a level, as it was seen and is played on."""

    pauses: bool  # others than those that go on wait here, instead of ending
    arrived: float = 0.0
    gone_on: float = 0.0
    stopped: float = 0.0
    most: Callable[[float], float] = float  # the trials that go on in the end, of so many

    @property
    def waiting(self) -> float:
        """The trials that may go on."""
        return self.arrived - self.gone_on - self.stopped

    def expect(self, share: float, trials: float, power: float) -> None:
        """Expect that this share of so many trials goes on, and learn from what was seen."""
        rate = share * max(trials, self.arrived) ** (1 - power)
        usual, seen, then = rate * self.arrived**power, self.gone_on, self.arrived
        seen = max(seen, min(usual, seen + self.waiting))
        rate *= (seen + PRIOR * share) / (usual + PRIOR * share)
        self.most = lambda arrived: seen + rate * (arrived**power - then**power)

    def lets_go_on(self, eta: int | None) -> bool:
        """True if one more goes on, at present; while new trials come, at most one in eta does."""
        most = self.most(self.arrived)
        most = most if eta is None or not self.pauses else min(most, self.arrived / eta)
        return self.waiting >= 1 and self.gone_on < most - 0.5


def _is_open(trial: Trial) -> bool:
    return trial.state in (State.RUNNING, State.QUEUED)


def _held_s(trials: Sequence[Trial], now: float, weight: Callable[[str | None], float]) -> float:
    attempts = [attempt for trial in trials for attempt in trial.attempts]
    weights = {device: weight(device) for device in {each.device for each in attempts}}
    held_s = [max(0.0, (each.ended or now) - each.started) for each in attempts]
    return sum(s * weights[each.device] for s, each in zip(held_s, attempts, strict=True))
