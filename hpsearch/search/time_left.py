"""The time until a study ends, by the time that its trials have taken.

It is the expected time of the whole search, less the time that it has taken, and the time of the
repeats to come (`search.confirm`). At least one trial in eta is assumed to go on from each rung,
and a few (`RACE`) to be trained in full at the end. Under a pruner of Optuna, new trials are
assumed to get as far as those before them. A limit of time or money ends all of this.

Times are those of an average one of the present workers. Where these have other types of devices
than attempts before them, the time that those took is converted by the paces on each type.
"""

import math
from collections.abc import Callable, Sequence
from statistics import fmean

from hpsearch.domain.facts import Role
from hpsearch.domain.lifecycle import State
from hpsearch.domain.paces import Paces
from hpsearch.domain.records import Trial
from hpsearch.study_file.levels import rung_levels
from hpsearch.study_file.methods import ETA, PROMOTION
from hpsearch.study_file.models import StudySpec

FEWEST, PRUNED_FEWEST = 3, 10
"""The fewest trials at rest that an estimate is made from; more are needed under a pruner of
Optuna, which trains its first ones in full."""
RACE = 2.0
"""The number of trials that are trained in full by the end of a search of so many trials is at
least this multiple of the root of all: what is left may not win."""
TAIL = 0.25
"""The share of a full training for which the other workers wait for the last one, on average."""
REPEATED = 0.5
"""The share of the promised repeats that takes place: the race may be decided earlier."""
SIDE_BY_SIDE = 3
"""The average number of repeats that run at a time: later ones wait for the earlier ones."""


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
        self._total = spec.budget.per_trial.total
        self._search = [trial for trial in trials if trial.role is not Role.CONFIRM]
        self._repeats = [trial for trial in trials if trial.role is Role.CONFIRM]
        self._scale = (searched or len(self._search)) / (len(self._search) or 1)
        self._devices, self._workers = devices, len(devices)
        self._paces = paces or Paces(trials)
        self._kind = spec.search.pruner.kind
        levels = rung_levels(spec) if self._kind == PROMOTION else ()
        self._levels = [*(level for level in levels if level < self._total), self._total]
        self._pace = self._start_up_s = 0.0

    def seconds(self, active_s: float, now: float) -> float | None:
        """Seconds until the study ends, after so many of work; None where that is not known yet."""
        trials = self._search + self._repeats
        weight = self._weight()
        searched_s = _held_s(self._search, now, weight)
        repeated_s = _held_s(self._repeats, now, weight)
        held_s = searched_s + repeated_s
        trained = sum(trial.resource for trial in trials)
        if not self._workers or trained <= 0 or held_s <= 0:
            return None
        attempts = [attempt for trial in trials for attempt in trial.attempts]
        start_ups = [attempt.start_up_seconds for attempt in attempts]
        known = [seconds for seconds in start_ups if seconds is not None]
        self._start_up_s = fmean(known) if known else 0.0
        self._pace = max(0.0, held_s - sum(known)) / trained
        ends = self._limits_s(active_s, now)
        waiting = (State.QUEUED, State.RUNNING)
        resting = sum(trial.state not in waiting for trial in self._search) * self._scale
        most = self._spec.budget.trials
        if most is not None and resting >= min(self._fewest, most):
            search_s = self._search_s(most, searched_s * self._scale)
            ends.append(search_s + self._repeats_s(REPEATED))
        return min(ends, default=None)

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
        search_s = self._search_s(trials, 0.0)
        return search_s + self._repeats_s(1.0), first_limit_s

    def _weight(self) -> Callable[[str | None], float]:
        """The speed on a type of device, as a share of that of an average present worker."""
        speeds = [1 / (self._paces.mean(device) or 1.0) for device in self._devices]
        average = fmean(speeds) if speeds else 1.0
        return lambda device: 1 / (self._paces.mean(device) or 1.0) / average

    def _used(self, now: float, rate: Callable[[str | None], float]) -> float:
        search, repeats = (_held_s(each, now, rate) for each in (self._search, self._repeats))
        return search * self._scale + repeats

    @property
    def _fewest(self) -> int:
        known_beforehand = self._kind in (PROMOTION, "none")
        return FEWEST if known_beforehand else PRUNED_FEWEST

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

    def _search_s(self, trials: int, held_s: float) -> float:
        """Seconds that the rest of the search takes; its trials have held workers for `held_s`."""
        workers = self._workers
        expected_s = trials * self._trial_s() + self._race_s(trials)
        rests_s = [self._rest_s(trial) for trial in self._search]
        work_s = max(expected_s - held_s, sum(rests_s))
        if work_s <= 0:
            return 0.0
        others = (workers - 1) / workers
        tail_s = TAIL * others * self._full_s
        return max(work_s / workers, *rests_s, 0.0) + tail_s

    def _trial_s(self) -> float:
        pace, start_up_s = self._pace, self._start_up_s
        if len(self._levels) == 1:
            ended = [trial.resource for trial in self._search if trial.state.terminal]
            mean = fmean(ended or [self._total])
            return mean * pace + start_up_s
        seconds = low = 0.0
        for level, share in zip(self._levels, self._shares(), strict=True):
            seconds += share * ((level - low) * pace + start_up_s)
            low = level
        return seconds

    def _shares(self) -> list[float]:
        """The share of trials that train up to each level: as measured, or at least as assumed."""
        arguments = self._spec.search.pruner.arguments
        least = 1 / arguments.get("eta", ETA)
        resources = [trial.resource for trial in self._search]
        share = 1.0
        shares = [share]
        for level in self._levels[:-1]:
            reached = sum(resource >= level for resource in resources)
            went_on = sum(resource > level for resource in resources)
            measured = went_on / max(1, reached)
            share *= max(least, measured)
            shares.append(share)
        return shares

    def _race_s(self, trials: int) -> float:
        """Seconds of training a few more trials in full than the rungs let through."""
        in_full = min(RACE * math.sqrt(trials), trials)
        let_through = trials * self._shares()[-1]
        more = max(0.0, in_full - let_through)
        above = self._total - self._levels[0]
        return more * (above * self._pace + self._start_up_s)

    def _rest_s(self, trial: Trial) -> float:
        if trial.state not in (State.RUNNING, State.QUEUED):
            return 0.0
        resource = trial.resource
        is_unjudged = trial.role in (Role.DEFAULT, Role.CONFIRM)
        above = (level for level in self._levels if level > resource)
        until = self._total if is_unjudged else next(above, self._total)
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
