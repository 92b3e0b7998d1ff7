"""What a free slot does next: a trial that lost its worker, then a promotion, then a new configuration.

When all configurations have been tried and nothing runs, the last call promotes the best of each rung, and after that
the leading configurations are confirmed on fresh seeds, where the study file asks for it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hpsearch.lifecycle import State
from hpsearch.records import History, Trial
from hpsearch.search import Search, derived_seed
from hpsearch.spec import StudySpec

Affordable = Callable[[float], bool]
"""Whether the budget can reserve the worst case of training so much further."""


@dataclass(frozen=True)
class Work:
    """A trial to launch, with the decision that it is."""

    trial: Trial
    kind: str
    """start, promote or retry."""
    why: str
    against: list[int] = field(default_factory=list)


class Agenda:
    """The work of one study.

    Args:
        spec: The study.
        history: Its live state; new trials are added to it.
        search: Proposes and promotes over the same history.
        defaults: The task's default settings inside the space, tried first as the yardstick; None if it has none.
    """

    def __init__(
        self, spec: StudySpec, history: History, search: Search, defaults: Mapping[str, Any] | None = None
    ) -> None:
        self._spec = spec
        self._history = history
        self._search = search
        self._asked_for = [("default", dict(defaults))] if defaults is not None else []
        self._asked_for += [("enqueued", dict(params)) for params in spec.enqueue]
        self._queue: deque[int] = deque()
        self._searched = sum(trial.role != "confirm" for trial in history.trials)
        self._confirming = False
        self._sign = -1.0 if spec.objective.direction == "maximize" else 1.0

    def put_back(self, trial: Trial) -> None:
        """A queued trial waits for the next free slot, before anything new."""
        self._queue.append(trial.number)

    def next(self, now: float, affordable: Affordable, *, last_call: bool) -> Work | None:
        """The next piece of work, if there is one and the budget can bear it.

        Args:
            now: The time, for what is created.
            affordable: Asked before anything is handed out; what it refuses stays where it is.
            last_call: Nothing runs that could still change the standings.
        """
        if self._queue:
            trial = self._history.trials[self._queue[0]]
            if not self._can_go_on(trial, affordable):
                return None
            self._queue.popleft()
            return Work(trial, "retry", "its last attempt was cut short")
        more = self._spec.budget.trials is None or self._searched < self._spec.budget.trials
        promotion = self._search.promotion(last_call=last_call and not more)
        if promotion is not None:
            trial, judgement = promotion
            return (
                Work(trial, "promote", judgement.why, judgement.against) if self._can_go_on(trial, affordable) else None
            )
        if more:
            return self._new_trial(now) if affordable(self._search.first_stretch) else None
        self._confirming |= last_call
        return self._confirmation(now, affordable) if self._confirming else None

    def why_empty(self) -> str:
        """Why `next` has nothing to hand out though nothing runs."""
        trials = self._spec.budget.trials
        if self._queue or trials is None or self._searched < trials:
            return "the budget left is too small for another trial"
        return f"all {trials} trials have ended"

    def _can_go_on(self, trial: Trial, affordable: Affordable) -> bool:
        return affordable(self._search.until(trial) - trial.resource)

    def _new_trial(self, now: float) -> Work:
        number = len(self._history.trials)
        role, given = self._asked_for[number] if number < len(self._asked_for) else ("search", None)
        trial = self._add(now, role)
        self._searched += 1
        self._search.propose(trial, given)
        sampler = f"drawn by {self._spec.search.sampler.kind}"
        return Work(
            trial, "start", {"default": "the task's default settings", "enqueued": "asked for"}.get(role, sampler)
        )

    def _confirmation(self, now: float, affordable: Affordable) -> Work | None:
        """One of the leading configurations once more in full, on a fresh seed: the least repeated of them first."""
        confirm = self._spec.search.confirm
        if confirm is None or not affordable(self._spec.budget.per_trial.total):
            return None
        complete = [t for t in self._history.trials if t.state is State.COMPLETE and t.role != "confirm"]
        leaders = sorted(complete, key=lambda t: (self._sign * (t.value or 0.0), t.number))[: confirm.top]
        repeats = [t.repeats for t in self._history.trials if t.role == "confirm"]
        leader = min(leaders, key=lambda t: repeats.count(t.number), default=None)
        if leader is None or repeats.count(leader.number) >= confirm.seeds:
            return None
        trial = self._add(now, "confirm")
        trial.repeats, trial.params, trial.distributions = leader.number, leader.params, leader.distributions
        return Work(trial, "start", f"confirms trial {leader.number}", [leader.number])

    def _add(self, now: float, role: str) -> Trial:
        number = len(self._history.trials)
        seed = derived_seed(self._spec.seed, number, "trial")
        return self._history.add_trial(Trial(number, State.QUEUED, {}, seed=seed, created=now, role=role))
