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
        trained = sum(trial.resource for trial in trials)
        if not self._workers or trained <= 0 or searched_s + repeated_s <= 0:
            return None
        start_ups = [each.start_up_seconds for trial in trials for each in trial.attempts]
        known = [seconds for seconds in start_ups if seconds is not None]
        self._start_up_s = fmean(known) if known else 0.0
        self._pace = max(0.0, searched_s + repeated_s - sum(known)) / trained
        searched_s *= self._scale
        ends = self._limits_s(active_s, now)
        rest = (trial.state not in (State.QUEUED, State.RUNNING) for trial in self._search)
        resting = sum(rest) * self._scale
        most = self._spec.budget.trials
        if most is not None and resting >= min(self._fewest, most):
            search_s = self._search_s(most, searched_s)
            ends.append(search_s + self._repeats_s(REPEATED))
        return min(ends, default=None)

    def in_all_s(self, pace: float, start_up_s: float) -> tuple[float | None, float | None]:
        """Seconds that a whole study takes, for all its work and until its budget ends it; None for
        a number without a limit.

        Args:
            pace: Seconds that one worker trains for one unit of the budget.
            start_up_s: Seconds that an attempt takes until it trains.
        """
        self._pace, self._start_up_s = pace, start_up_s
        trials = self._spec.budget.trials
        work_s = None
        if trials is not None:
            work_s = self._search_s(trials, 0.0) + self._repeats_s(1.0)
        return work_s, min(self._limits_s(0.0, 0.0), default=None)

    def _weight(self) -> Callable[[str | None], float]:
        """The speed on a type of device, as a share of that of an average present worker."""
        speeds = [1 / (self._paces.mean(device) or 1.0) for device in self._devices]
        average = fmean(speeds) if speeds else 1.0
        return lambda device: 1 / (self._paces.mean(device) or 1.0) / average

    def _used(self, now: float, rate: Callable[[str | None], float]) -> float:
        """The use by all attempts of something that a worker uses at a rate."""
        search, repeats = (_held_s(each, now, rate) for each in (self._search, self._repeats))
        return search * self._scale + repeats

    @property
    def _fewest(self) -> int:
        known_beforehand = self._kind in (PROMOTION, "none")
        return FEWEST if known_beforehand else PRUNED_FEWEST

    def _limits_s(self, active_s: float, now: float) -> list[float]:
        """Seconds until each limit of the budget is reached."""
        budget = self._spec.budget
        limits = []
        if budget.wall_clock_s is not None:
            limits.append(max(0.0, budget.wall_clock_s - active_s))
        share = (self._spec.resources.stated_gpus or 1.0) / 3600
        rates: list[tuple[float | None, Callable[[str | None], float]]] = [
            (budget.gpu_hours, lambda _: share),
            (budget.cost, lambda device: share * (budget.most_price_of(device) or 0.0)),
        ]
        for most, rate in rates:
            if most is not None:
                left = max(0.0, most - self._used(now, rate))
                limits.append(left / sum(map(rate, self._devices)))
        return limits

    @property
    def _full_s(self) -> float:
        """Seconds of a full training."""
        return self._total * self._pace + self._start_up_s

    def _search_s(self, trials: int, held_s: float) -> float:
        """Seconds that the rest of the search takes; its trials have held workers for `held_s`."""
        expected_s = trials * self._trial_s() + self._race_s(trials)
        rests_s = [self._rest_s(trial) for trial in self._search]
        work_s = max(expected_s - held_s, sum(rests_s))
        if work_s <= 0:
            return 0.0
        tail_s = TAIL * (self._workers - 1) / self._workers * self._full_s
        return max(work_s / self._workers, *rests_s, 0.0) + tail_s

    def _trial_s(self) -> float:
        """Seconds that a trial is expected to take, over all rungs that it may get to."""
        if len(self._levels) == 1:
            ended = [trial.resource for trial in self._search if trial.state.terminal]
            return fmean(ended or [self._total]) * self._pace + self._start_up_s
        seconds = low = 0.0
        for level, share in zip(self._levels, self._shares(), strict=True):
            seconds += share * ((level - low) * self._pace + self._start_up_s)
            low = level
        return seconds

    def _shares(self) -> list[float]:
        """The share of trials that train up to each level: as measured, or at least as assumed."""
        least = 1 / self._spec.search.pruner.arguments.get("eta", ETA)
        shares = [1.0]
        for level in self._levels[:-1]:
            reached = sum(trial.resource >= level for trial in self._search)
            on = sum(trial.resource > level for trial in self._search)
            shares.append(shares[-1] * max(least, on / max(1, reached)))
        return shares

    def _race_s(self, trials: int) -> float:
        """Seconds of training a few more trials in full than the rungs let through."""
        more = min(RACE * math.sqrt(trials), trials) - trials * self._shares()[-1]
        above = self._total - self._levels[0]
        return max(0.0, more) * (above * self._pace + self._start_up_s)

    def _rest_s(self, trial: Trial) -> float:
        """Seconds until a running trial is next judged."""
        if trial.state not in (State.RUNNING, State.QUEUED):
            return 0.0
        until = next((level for level in self._levels if level > trial.resource), self._total)
        if trial.role in (Role.DEFAULT, Role.CONFIRM):
            until = self._total
        device = trial.attempts[-1].device if trial.attempts else None
        pace = self._paces.of(trial, device) or self._pace
        return max(0.0, until - trial.resource) * pace

    def _repeats_s(self, share: float) -> float:
        """Seconds of the repeats to come, if this share of the promised ones takes place."""
        confirm = self._spec.search.confirm
        if confirm is None:
            return 0.0
        due = max(0, confirm.top * confirm.seeds - len(self._repeats))
        rests_s = [self._rest_s(trial) for trial in self._repeats]
        work_s = share * due * self._full_s + sum(rests_s)
        return max([work_s / min(self._workers, SIDE_BY_SIDE), *rests_s])


def _held_s(trials: Sequence[Trial], now: float, weight: Callable[[str | None], float]) -> float:
    """Seconds for which trials have held workers, weighted by the type of device."""
    attempts = [attempt for trial in trials for attempt in trial.attempts]
    weights = {device: weight(device) for device in {attempt.device for attempt in attempts}}
    return sum(
        max(0.0, (attempt.ended or now) - attempt.started) * weights[attempt.device]
        for attempt in attempts
    )
