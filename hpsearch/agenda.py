"""What a free slot does next: a trial that lost its worker, then a promotion, then a new configuration.

When all configurations have been tried and nothing runs, or when too little of the budget is left for a new one to
win, the last call promotes the best of each rung that can still be trained in full. After that, and on slots that have
nothing else to do before, the leading configurations are confirmed on fresh seeds (`hpsearch.confirmation`), where the
study file asks for it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hpsearch.confirmation import CONFIRM, Confirmation
from hpsearch.lifecycle import State
from hpsearch.records import History, Trial
from hpsearch.room import Room
from hpsearch.search import Search, derived_seed
from hpsearch.spec import StudySpec

ENQUEUED = "hpsearch:enqueued"
"""Study attribute: known-good configurations from the command line, in order, after those of the study file."""


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
        known_good = [*spec.enqueue, *history.study.system_attrs.get(ENQUEUED, [])]
        self._asked_for += [("enqueued", dict(params)) for params in known_good]
        self._begun = sum(trial.role in ("default", "enqueued") for trial in history.trials)
        self._queue: deque[int] = deque()
        self._searched = sum(trial.role != CONFIRM for trial in history.trials)
        self._confirmation = Confirmation(spec, history)
        self._confirming = False
        self._total = spec.budget.per_trial.total

    @property
    def kept(self) -> float:
        """Resource that the search leaves to the confirmation of its winners."""
        return (self._confirmation.to_come if self._all_tried else self._confirmation.runs) * self._total

    def put_back(self, trial: Trial) -> None:
        """A queued trial waits for the next free slot, before anything new."""
        self._queue.append(trial.number)

    def next(self, now: float, room: Room, *, running: int) -> Work | None:
        """The next piece of work, if there is one and the budget can bear it.

        Args:
            now: The time, for what is created.
            room: What is left of the budget; what it refuses stays where it is.
            running: How many trials of the search run, which may still change the standings.
        """
        last_call = running == 0
        if (again := self._cut_short(room)) is not None:
            return again
        more = self._more(room, last_call)
        promotion = self._search.promotion(
            lambda trial: self._can_finish(trial, room, last_call),
            last_call=not more and (last_call or not self._all_tried),
        )
        if promotion is not None:
            trial, judgement = promotion
            work = Work(trial, "promote", judgement.why, judgement.against)
            return work if self._can_go_on(trial, room) else None
        if more:
            return self._new_trial(now) if room.bears(self._search.first_stretch) else None
        self._confirming |= last_call
        return self._repeat(now, room.without_reserve(), running)

    def why_empty(self) -> str:
        """Why `next` has nothing to hand out though nothing runs."""
        if self._queue or not self._all_tried:
            return "the budget left is too small for another trial"
        return f"all {self._spec.budget.trials} trials have ended"

    @property
    def _all_tried(self) -> bool:
        return self._spec.budget.trials is not None and self._searched >= self._spec.budget.trials

    def _more(self, room: Room, last_call: bool) -> bool:
        """Whether new trials are to come. What runs may give back some of what was reserved for it; on the last call
        nothing does."""
        if self._all_tried or (last_call and not room.bears(self._search.first_stretch)):
            return False
        return room.reaches(self._search.last_rung)

    def _can_finish(self, trial: Trial, room: Room, last_call: bool) -> bool:
        reaches = room.reaches(self._total - trial.resource, trial)
        return reaches and (not last_call or self._can_go_on(trial, room))

    def _cut_short(self, room: Room) -> Work | None:
        """The first queued trial that there is room for."""
        for number in self._queue:
            trial = self._history.trials[number]
            if self._can_go_on(trial, self.room_for(trial, room)):
                self._queue.remove(number)
                return Work(trial, "retry", "its last attempt was cut short")
        return None

    def _can_go_on(self, trial: Trial, room: Room) -> bool:
        return room.bears(self._search.stretch(trial), self.like(trial))

    def room_for(self, trial: Trial, room: Room) -> Room:
        """What is left for a trial: to a repeat also what was kept back for it."""
        return room.without_reserve() if trial.role == CONFIRM else room

    def like(self, trial: Trial) -> Trial:
        """The trial whose pace tells of this one's: itself, or before it has trained the one that it repeats."""
        return trial if trial.speed or trial.repeats is None else self._history.trials[trial.repeats]

    def _new_trial(self, now: float) -> Work:
        role, given = self._asked_for[self._begun] if self._begun < len(self._asked_for) else ("search", None)
        self._begun += given is not None
        trial = self._add(now, role)
        self._searched += 1
        self._search.propose(trial, given)
        sampler = f"drawn by {self._spec.search.sampler.kind}"
        return Work(
            trial, "start", {"default": "the task's default settings", "enqueued": "asked for"}.get(role, sampler)
        )

    def _repeat(self, now: float, room: Room, running: int) -> Work | None:
        """A leading configuration once more in full, on a fresh seed."""
        leader = None
        if self._confirming:
            leader = self._confirmation.leader_to_repeat()
        elif self._all_tried:  # a budget of time or money would be missing from the search
            leader = self._confirmation.early_repeat(running)
        if leader is None or not room.bears(self._total, leader):
            return None
        trial = self._add(now, CONFIRM)
        trial.repeats, trial.params, trial.distributions = leader.number, leader.params, leader.distributions
        return Work(trial, "start", f"confirms trial {leader.number}", [leader.number])

    def _add(self, now: float, role: str) -> Trial:
        number = len(self._history.trials)
        seed = derived_seed(self._spec.seed, number, "trial")
        return self._history.add_trial(Trial(number, State.QUEUED, {}, seed=seed, created=now, role=role))
