"""The time that is left of a study, by the time that its trials have taken.

The work is counted level by level: of the trials that reach a rung the share goes on that has gone
on so far, with 1/eta assumed at first. At the end a few more (`RACE`) are trained in full, and the
leaders are repeated (`search.confirm`). Under a pruner of Optuna new trials are taken to get as far
as the later half of those before them. A limit of time or money ends all of this.

The numbers below were chosen on simulated studies; `tests/sim/test_time_left.py` shows how good the
times are on others.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from hpsearch.domain.facts import Role
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import Trial
from hpsearch.ranking.selection import expectation, likely_range, standing
from hpsearch.study_file.levels import rung_levels
from hpsearch.study_file.methods import ETA, PROMOTION
from hpsearch.study_file.models import StudyBudget, StudySpec

FEWEST = 3
"""Before so many trials have come to rest, only a limit of time or money says anything."""
PRUNED_FROM = 10
"""Before so many, nothing is known of how soon a pruner of Optuna ends trials: its first five are
trained in full."""
ASSUMED = 3
"""The number of trials that the assumption is worth that one in eta goes on from a rung."""
RACE = 3
"""The least number of trials that are trained in full at the end of a search."""
RIVALS = 0.35
"""The share trained in full of the paused trials that may still turn out the best."""
NEAR = 0.78
"""The share of the way to the best end of its interval that a trial reaches one time in ten."""
TAIL = 0.25
"""For how much of a full training the other workers wait for the last one, on average."""
REPEATED = 0.5
"""The share of the promised repeats that takes place: the race may be decided earlier."""
SIDE_BY_SIDE = 3
"""The average number of repeats that run at a time: later ones wait for the earlier ones."""


class TimeLeft:
    """The time that the rest of a study takes, by what it has done so far."""

    def __init__(self, spec: StudySpec, trials: Sequence[Trial], workers: int) -> None:
        self._spec = spec
        self._total = spec.budget.per_trial.total
        self._trials = trials
        self._search = [trial for trial in trials if trial.role is not Role.CONFIRM]
        self._repeats = [trial for trial in trials if trial.role is Role.CONFIRM]
        self._workers = workers
        levels = rung_levels(spec) if spec.search.pruner.kind == PROMOTION else ()
        self._levels = [*(level for level in levels if level < self._total), self._total]
        self._repeated = REPEATED
        self._now = self._held_s = self._pace = self._start_up_s = 0.0

    def seconds(self, active_s: float, now: float) -> float | None:
        """Seconds until the study, worked on for `active_s` so far, ends; None where that cannot be
        known yet. `now` is the time by the clock of its attempts."""
        self._now = now
        trained = sum(map(self._reached, self._trials))
        attempts = [attempt for trial in self._trials for attempt in trial.attempts]
        held = [max(0.0, (attempt.ended or now) - attempt.started) for attempt in attempts]
        self._held_s = sum(held)
        if not self._workers or trained <= 0 or self._held_s <= 0:
            return None
        known = [each.start_up_seconds for each in attempts if each.start_up_seconds is not None]
        self._start_up_s = fmean(known) if known else 0.0
        self._pace = max(0.0, self._held_s - sum(known)) / trained
        charged = sum(attempt.gpu_seconds for attempt in attempts if attempt.ended is not None)
        settled_s = sum(s for s, each in zip(held, attempts, strict=True) if each.ended is not None)
        ends = self._limits_s(active_s, charged / settled_s if settled_s else 1.0)
        work_s = self._work_s()
        return min([*ends, *([] if work_s is None else [work_s])], default=None)

    def in_all_s(self, pace: float, start_up_s: float) -> tuple[float | None, float | None]:
        """Seconds that a study takes of which nothing has run yet, with all promised repeats.

        Args:
            pace: Seconds that one worker trains for one unit of the budget.
            start_up_s: Seconds that an attempt takes until it trains.

        Returns: For all its work, and until its budget ends it; None for what is not limited.
        """
        self._pace, self._start_up_s, self._repeated = pace, start_up_s, 1.0
        share = self._spec.resources.gpu
        costs = float(share) if isinstance(share, int | float) and share else 1.0
        trials = self._spec.budget.trials
        work_s = None if trials is None else self._all_s(trials)
        return work_s, min(self._limits_s(0.0, costs), default=None)

    def _limits_s(self, active_s: float, share: float) -> list[float]:
        budget, limits = self._spec.budget, []
        if budget.wall_clock_s is not None:
            limits.append(max(0.0, budget.wall_clock_s - active_s))
        most = _gpu_seconds(budget)
        if most is not None:
            left_s = max(0.0, most / share - self._held_s)
            limits.append(left_s / self._workers + self._tail_s)
        return limits

    def _work_s(self) -> float | None:
        most = self._spec.budget.trials
        resting = sum(trial.state not in (State.QUEUED, State.RUNNING) for trial in self._search)
        if most is None or resting < min(FEWEST, most):
            return None
        fresh = max(0, most - len(self._search))
        may_prune = self._spec.search.pruner.kind not in (PROMOTION, "none")
        if fresh and resting < PRUNED_FROM and may_prune:
            return None
        return self._all_s(fresh)

    def _all_s(self, fresh: int) -> float:
        if len(self._levels) > 1:
            under_way = [self._rest_s(trial, self._target(trial)) for trial in self._search]
            new_s = self._to_rungs_s(fresh)
        else:
            under_way, new_s = self._one_by_one_s(fresh)
        work_s = sum(under_way) + new_s
        seconds = 0.0
        if work_s:
            longest = max(under_way, default=0.0)
            seconds = max(work_s / self._workers, longest) + self._tail_s
        return seconds + self._repeats_s()

    @property
    def _full_s(self) -> float:
        return self._total * self._pace + self._start_up_s

    @property
    def _tail_s(self) -> float:
        """For how long some workers have nothing to do at the end."""
        return TAIL * (self._workers - 1) / self._workers * self._full_s

    def _reached(self, trial: Trial) -> float:
        """The resource that a trial has reached by now, at its own speed."""
        if trial.state is not State.RUNNING or not trial.attempts:
            return trial.resource
        attempt = trial.attempts[-1]
        trains_s = self._now - attempt.started - (attempt.start_up_seconds or 0.0)
        guess = attempt.start_resource + (trial.speed or 0.0) * max(0.0, trains_s)
        return min(self._target(trial), max(trial.resource, guess))

    def _target(self, trial: Trial) -> float:
        """The resource up to which a trial trains for now; its own, if it does not run."""
        if trial.state not in (State.RUNNING, State.QUEUED):
            return trial.resource
        if trial.role in (Role.DEFAULT, Role.CONFIRM):
            return self._total
        return next((level for level in self._levels if level > trial.resource), self._total)

    def _rest_s(self, trial: Trial, until: float) -> float:
        pace = 1 / trial.speed if trial.speed else self._pace
        return max(0.0, until - self._reached(trial)) * pace

    def _to_rungs_s(self, fresh: int) -> float:
        """The work on trials that are not under way to a rung, level by level."""
        assumed = 1 / self._spec.search.pruner.arguments.get("eta", ETA)
        work_s = 0.0
        expected = float(fresh + len(self._search))
        low = 0.0
        for level in self._levels:
            beyond = self._beyond(low)
            more = max(0.0, expected - len(beyond))
            work_s += more * ((level - low) * self._pace + self._start_up_s)
            if level == self._total:
                break
            ended = sum(each.state.terminal and each.resource < level for each in beyond)
            reached = sum(trial.resource >= level for trial in self._search)
            on = len(self._beyond(level))
            share = max(assumed, (on + ASSUMED * assumed) / (reached + ASSUMED))
            expected = max(on, share * expected * (1 - ended / max(1, len(beyond))))
            low = level
        return work_s + self._race_s(fresh, expected)

    def _beyond(self, level: float) -> list[Trial]:
        """The trials of the search that have gone on from a level; all of them from 0."""
        return [trial for trial in self._search if self._target(trial) > level or not level]

    def _race_s(self, fresh: int, expected: float) -> float:
        """The work of training a few more in full than the rungs let through, at the end."""
        any_runs = any(trial.state is State.RUNNING for trial in self._search)
        if not fresh and self._repeats and not any_runs:
            return 0.0
        rivals = self._rivals()
        wanted = max(RACE, RIVALS * len(rivals))
        if fresh:
            above = self._total - self._levels[0]
            wanted = min(wanted, fresh + len(self._search))
            return max(0.0, wanted - expected) * (above * self._pace + self._start_up_s)
        last = max(trial.started or 0.0 for trial in self._search)
        ended = sum(
            trial.state is State.COMPLETE and (trial.ended or 0.0) > last for trial in self._search
        )
        ending = sum(trial.state is State.RUNNING for trial in self._beyond(self._levels[-2]))
        more = max(RIVALS * len(rivals), RACE - ended - ending)
        waiting = rivals or [each for each in self._search if each.state is State.PAUSED]
        each_s = [(self._total - at.resource) * self._pace + self._start_up_s for at in waiting]
        return min(more, len(each_s)) * fmean(each_s or [0.0])

    def _rivals(self) -> list[Trial]:
        sign = self._spec.objective.sign
        known = [trial for trial in self._search if expectation(trial) is not None]
        best = min((sign * standing(trial) for trial in known), default=0.0)
        found = []
        for trial in known:
            low, high = likely_range(trial)
            reach = standing(trial) - low if sign > 0 else high - standing(trial)
            if trial.state is State.PAUSED and sign * standing(trial) - best <= NEAR * reach:
                found.append(trial)
        return found

    def _one_by_one_s(self, fresh: int) -> tuple[list[float], float]:
        """The rest of each trial under way, and the work on new ones, without rungs."""
        ended = [trial.resource for trial in self._search if trial.state.terminal]
        lately = ended[len(ended) // 2 :]
        work_s = fresh * (fmean(lately or [self._total]) * self._pace + self._start_up_s)
        under_way = []
        for trial in self._search:
            if trial.state in (State.RUNNING, State.QUEUED):
                reached = self._reached(trial)
                further = [each for each in lately if each > reached]
                under_way.append(self._rest_s(trial, fmean(further or [self._total])))
        return under_way, work_s

    def _repeats_s(self) -> float:
        confirm = self._spec.search.confirm
        if confirm is None:
            return 0.0
        running = [trial for trial in self._repeats if not trial.state.terminal]
        under_way = [self._rest_s(trial, self._total) for trial in running]
        due = max(0, confirm.top * confirm.seeds - len(self._repeats))
        work_s = self._repeated * due * self._full_s + sum(under_way)
        return max([work_s / min(self._workers, SIDE_BY_SIDE), *under_way])


def _gpu_seconds(budget: StudyBudget) -> float | None:
    limits = []
    if budget.gpu_hours is not None:
        limits.append(budget.gpu_hours * 3600)
    if budget.cost is not None and budget.cost_per_gpu_hour:
        limits.append(budget.cost / budget.cost_per_gpu_hour * 3600)
    return min(limits, default=None)
