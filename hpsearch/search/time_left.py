"""The time until a study ends, by the time that its trials have taken.

It is that of the trials that run, of those still to come, of the promotions that are expected, and
of the repeats (`search.confirm`). As long as few trials have shown it, how many train how far is
taken from what studies on recorded curves did (`benchmarks/pauses.py`). A limit of time or money
ends all of this.

Times are those of an average one of the present workers. Where these have other types of devices
than attempts before them, the time that those took is converted by the paces on each type.
"""

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from statistics import fmean

from hpsearch.domain.facts import Role
from hpsearch.domain.lifecycle import State
from hpsearch.domain.paces import Paces
from hpsearch.domain.records import Trial
from hpsearch.study_file.levels import rung_levels
from hpsearch.study_file.methods import PROMOTION
from hpsearch.study_file.models import StudySpec
from hpsearch.study_file.types import AUTO

FEWEST = 3  # the fewest trials at rest that an estimate is made from
IN_FULL = {True: 1.25, False: 1.75}
"""The trials that are trained in full, as a multiple of the root of all, where trials pause and
where they are stopped."""
FORETOLD = 1.5
"""A rung that lies this many times as early lets fewer by: after 0.1 of the budget 1 - 0.15."""
UNPRUNED, PRUNED_AT = 5, 0.25
"""The trials that a pruner of Optuna trains in full before it prunes, and the mean resource of
others, as a share of the budget."""
PRIOR = 5.0  # the trials that such an expectation counts as
STARTS = 0.75
"""The share of promotions that need another start, where trials pause: others go straight on."""
TAIL = 0.25
"""The share of a full training for which the other workers wait for the last one, on average."""
REPEATED = 0.5
"""The share of the promised repeats that takes place: the race may be decided earlier."""
SIDE_BY_SIDE = 3
"""The average number of repeats that run at a time: later ones wait for the earlier ones."""
SPREAD = 2.0
"""The deviation of an estimate, as a share of it, times the root of the trials at rest."""
UNSEEN = {True: 1.2, False: 1.6}
"""The factor by which a whole study may take more or less than it is expected to before any trial
has ended, where all are trained in full and where not."""


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
        self._total = self._end_of(trials)
        self._search = [trial for trial in trials if trial.role is not Role.CONFIRM]
        self._repeats = [trial for trial in trials if trial.role is Role.CONFIRM]
        self._scale = (searched or len(self._search)) / (len(self._search) or 1)
        self._devices, self._workers = devices, len(devices)
        self._paces = paces or Paces(trials)
        self._kind = spec.search.pruner.kind
        levels = rung_levels(spec) if self._kind == PROMOTION else ()
        self._levels = [*(level for level in levels if level < self._total), self._total]
        pauses = spec.search.pruner.arguments.get("pause", AUTO)
        self._pauses = self._kind == PROMOTION and pauses is not False
        self._pace = self._start_up_s = 0.0

    def _end_of(self, trials: Sequence[Trial]) -> float:
        """The resource at which trials end: their budget, or where their programs do."""
        total = self._spec.budget.per_trial.total
        ends = [trial.resource for trial in trials if trial.state is State.COMPLETE]
        return fmean(ends) if len(ends) >= FEWEST else total

    def seconds(self, active_s: float, now: float) -> float | None:
        """Seconds until the study ends, after so many of work; None where that is not known yet."""
        trials = self._search + self._repeats
        weight = self._weight()
        held_s = _held_s(trials, now, weight)
        trained = sum(trial.resource for trial in trials)
        if not self._workers or trained <= 0 or held_s <= 0:
            return None
        attempts = [attempt for trial in trials for attempt in trial.attempts]
        start_ups = [attempt.start_up_seconds for attempt in attempts]
        known = [seconds for seconds in start_ups if seconds is not None]
        self._start_up_s = fmean(known) if known else 0.0
        self._pace = max(0.0, held_s - sum(known)) / trained
        ends = self._limits_s(active_s, now)
        most = self._spec.budget.trials
        if most is not None and self._resting >= min(FEWEST, most):
            ends.append(self._search_s(most) + self._repeats_s(REPEATED))
        return min(ends, default=None)

    def between(self, seconds: float) -> tuple[float, float]:
        """The least and the most seconds that an estimate of the time left may mean."""
        deviation = min(0.9, SPREAD / math.sqrt(max(1.0, self._resting)))
        return seconds * (1 - deviation), seconds * (1 + deviation)

    @property
    def _resting(self) -> float:
        waiting = (State.QUEUED, State.RUNNING)
        return sum(trial.state not in waiting for trial in self._search) * self._scale

    def in_all_s(self, pace: float, start_up_s: float) -> tuple[float | None, float | None]:
        """Seconds that a whole study takes, for all its work and until its budget ends it; None for
        a number without a limit.

        Args:
            pace: Seconds that one worker trains for one unit of the budget.
            start_up_s: Seconds that an attempt takes until it trains.
        """
        self._pace = pace
        self._start_up_s = start_up_s
        limits_s = self._limits_s(0.0, 0.0)
        first_limit_s = min(limits_s, default=None)
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

    def _search_s(self, trials: int) -> float:
        """Seconds that the rest of the search takes."""
        workers = self._workers
        rests_s = [self._rest_s(trial) for trial in self._search]
        work_s = self._to_come_s(trials) + sum(rests_s)
        if work_s <= 0:
            return 0.0
        others = (workers - 1) / workers
        tail_s = TAIL * others * self._full_s
        return max(work_s / workers, *rests_s, 0.0) + tail_s

    def _to_come_s(self, trials: int) -> float:
        """Seconds of the stretches that no trial has begun yet, on one worker."""
        pace, start_up_s = self._pace, self._start_up_s
        begun = [trial.resource for trial in self._search if trial.attempts]
        new = max(0.0, trials - len(begun) * self._scale)
        if len(self._levels) == 1:
            return new * start_up_s + self._unpruned_s(trials, new)
        seconds = low = 0.0
        again = self._starts_again()
        for level, share in zip(self._levels, self._shares(trials), strict=True):
            reached = len(begun) if low == 0 else sum(resource > low for resource in begun)
            coming = max(0.0, trials * share - reached * self._scale)
            starts = 1.0 if low == 0 else again
            seconds += coming * ((level - low) * pace + starts * start_up_s)
            low = level
        return seconds

    def _unpruned_s(self, trials: int, new: float) -> float:
        """Seconds of training so many new trials without rungs."""
        if self._kind == "none":
            ended = [trial.resource for trial in self._search if trial.state.terminal]
            mean = fmean(ended) if ended else self._total
            return new * mean * self._pace
        in_full = max(0.0, new - max(0, trials - UNPRUNED))
        mean = self._pruned_at() * self._total
        return (in_full * self._total + (new - in_full) * mean) * self._pace

    def _pruned_at(self) -> float:
        """The mean share of the budget that trials get under a pruner of Optuna."""
        later = [each for each in self._search[UNPRUNED:] if each.state.terminal]
        trained = self._scale * sum(trial.resource for trial in later) / self._total
        return (trained + PRIOR * PRUNED_AT) / (self._scale * len(later) + PRIOR)

    def _starts_again(self) -> float:
        """The starts that one promotion needs."""
        if not self._pauses:
            return 0.0
        rungs = [level for level in self._levels if level < self._total]
        begun = [trial for trial in self._search if trial.attempts]
        promoted = self._scale * sum(trial.resource > low for trial in begun for low in rungs)
        again = self._scale * sum(len(trial.attempts) - 1 for trial in begun)
        return (again + PRIOR * STARTS) / (promoted + PRIOR)

    def _shares(self, trials: int) -> list[float]:
        """The share of trials that begin to train up to each level, expected and as seen."""
        root = IN_FULL[self._pauses] * math.sqrt(trials)
        in_full = min(1.0, root / trials)
        resources = [trial.resource for trial in self._search]
        expected = before = share = 1.0
        shares = [share]
        for level, above in pairwise(self._levels):
            is_last = above == self._total
            early = 1 - FORETOLD * level / self._total
            expected = in_full if is_last else max(in_full, min(before, early))
            reached = self._scale * sum(resource >= level for resource in resources)
            went_on = self._scale * sum(resource > level for resource in resources)
            seen = went_on + PRIOR * expected / before
            share *= seen / (reached + PRIOR)
            shares.append(share)
            before = expected
        return shares

    def _rest_s(self, trial: Trial) -> float:
        if trial.state not in (State.RUNNING, State.QUEUED):
            return 0.0
        resource = trial.resource
        is_unjudged = trial.role in (Role.DEFAULT, Role.CONFIRM)
        above = (level for level in self._levels if level > resource)
        until = self._total if is_unjudged else next(above, self._total)
        if self._kind not in (PROMOTION, "none") and trial.number >= UNPRUNED:
            until = max(resource, (resource + self._total) / 2)
        device = trial.attempts[-1].device if trial.attempts else None
        pace = self._paces.of(trial, device) or self._pace
        return max(0.0, until - resource) * pace

    def _repeats_s(self, share: float) -> float:
        """Seconds of the repeats to come, if this share of the promised ones takes place."""
        confirm = self._spec.search.confirm
        if confirm is None:
            return 0.0
        promised = confirm.top * confirm.seeds
        due = max(0, promised - len(self._repeats))
        rests_s = [self._rest_s(trial) for trial in self._repeats]
        work_s = share * due * self._full_s + sum(rests_s)
        at_once = min(self._workers, SIDE_BY_SIDE)
        return max([work_s / at_once, *rests_s])


def _held_s(trials: Sequence[Trial], now: float, weight: Callable[[str | None], float]) -> float:
    attempts = [attempt for trial in trials for attempt in trial.attempts]
    weights = {device: weight(device) for device in {each.device for each in attempts}}
    seconds = []
    for attempt in attempts:
        ended = attempt.ended or now
        held_s = max(0.0, ended - attempt.started)
        seconds.append(held_s * weights[attempt.device])
    return sum(seconds)
