"""What a free slot does next: an interrupted trial, then a promotion, then a new configuration.

When too little of the budget is left to train a new configuration in full, paused trials that may
still turn out the best go before new ones. When a new one would not even reach the highest rung, or
when all have been tried, they are all that goes on, as long as they can be trained in full. A
budget in which nothing can be is spent on getting the most promising ones as far as it lasts.

After that, and on slots that have nothing else to do before, the leading configurations are
confirmed on fresh seeds (`hpsearch.brain.confirmation`), where the study file asks for it. What is
left of a budget of time or money once they have their repeats goes to the search again, or else to
further repeats.

The agenda is given what is left of the budget, as `Headroom`. Work that does not fit into it stays
where it is.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hpsearch.brain.budget.headroom import Headroom
from hpsearch.brain.confirmation import Confirmation
from hpsearch.brain.continuing import continue_trial
from hpsearch.domain.facts import DecisionKind, Role
from hpsearch.domain.history import History
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import Outcome, Trial
from hpsearch.domain.seeds import derived_seed
from hpsearch.errors import UserError
from hpsearch.search.searcher import Searcher
from hpsearch.study_file.models import StudySpec


@dataclass(frozen=True)
class AskedFor:
    """A configuration that is tried before the sampler draws any.

    Args:
        role: Of its trial: DEFAULT or ENQUEUED.
        params: Its parameters; missing ones are drawn.
    """

    role: Role
    params: dict[str, Any]


@dataclass(frozen=True)
class Work:
    """A trial to launch, with the decision to record for it."""

    trial: Trial
    kind: DecisionKind
    """START, PROMOTE or RETRY."""
    why: str
    against: list[int] = field(default_factory=list)


def asked_for(
    spec: StudySpec, history: History, defaults: Mapping[str, Any] | None
) -> list[AskedFor]:
    """The configurations that a study tries first, in order.

    Args:
        spec: The study.
        history: Its records, with what the command line enqueued.
        defaults: The task's default settings inside the space, tried first as the yardstick; None
            if it has none.
    """
    found: list[AskedFor] = []
    if defaults is not None:
        yardstick = AskedFor(Role.DEFAULT, dict(defaults))
        found.append(yardstick)
    for params in [*spec.enqueue, *history.study.enqueued]:
        known_good = AskedFor(Role.ENQUEUED, dict(params))
        found.append(known_good)
    return found


class Agenda:
    """The work of one study.

    Args:
        spec: The study.
        history: Its live state; new trials are added to it.
        searcher: Proposes and promotes over the same history.
        confirmation: The race of its leaders.
        first: The configurations to try first.
    """

    def __init__(
        self,
        spec: StudySpec,
        history: History,
        searcher: Searcher,
        confirmation: Confirmation,
        first: Sequence[AskedFor],
    ) -> None:
        self._spec = spec
        self._history = history
        self._searcher = searcher
        self._confirmation = confirmation
        self._first = first
        roles = [trial.role for trial in history.trials]
        self._begun = roles.count(Role.DEFAULT) + roles.count(Role.ENQUEUED)
        """How many of the first ones have a trial."""
        self._searched = len(roles) - roles.count(Role.CONFIRM)
        """How many trials there are, repeats left out."""
        self._queue: deque[int] = deque()
        self._total = spec.budget.per_trial.total

    def put_back(self, trial: Trial) -> None:
        """A queued trial waits for the next free slot, before anything new."""
        self._queue.append(trial.number)

    def drop(self, trial: Trial) -> None:
        """A trial that waits, for a slot or at a rung, does not go on."""
        if trial.number in self._queue:
            self._queue.remove(trial.number)
        if trial.state is State.PAUSED:
            self._searcher.stops(trial)

    def propose(self, params: dict[str, Any], now: float, source: Trial | None = None) -> Trial:
        """Add a trial that is asked for while the study runs; it waits for the next free slot.

        Args:
            params: Its parameters, inside the space; missing ones are drawn.
            now: The time.
            source: The trial whose newest checkpoint it begins with; None to begin with nothing.

        Raises:
            UserError: The budget has no trial left.
        """
        if self._trials_used:
            most = self._spec.budget.trials
            raise UserError(f"all {most} trials of the budget have started", "raise the limit")
        trial = self._add(now, Role.PROPOSED)
        if source is not None:
            continue_trial(trial, source)
        self._searched += 1
        self._searcher.proposals.propose(trial, params)
        self.put_back(trial)
        return trial

    def go_on_with(self, spec: StudySpec, confirmation: Confirmation) -> None:
        """The study has a larger budget from now on."""
        self._spec = spec
        self._confirmation = confirmation

    def next(self, now: float, room: Headroom, *, running: int, last_call: bool) -> Work | None:
        """The next piece of work, if there is one and the budget allows it.

        Args:
            now: The time, for what is created.
            room: What is left of the budget.
            running: How many trials of the search run, which may still change the standings.
            last_call: None of the search ran before this slot and others were given work just now.
        """
        interrupted = self._interrupted(room)
        if interrupted is not None:
            return interrupted
        if self._confirmation.begun:
            return self._race(now, room, running=running, last_call=last_call)
        more = self._more(room, last_call)
        promotion = self._promotion(room, more=more, last_call=last_call)
        if promotion is None and more and not room.reaches(self._total):
            promotion = self._promotion(room, more=False, last_call=last_call)
        if promotion is not None:
            return promotion if self._can_go_on(promotion.trial, room) else None
        if more:
            can_start = room.can_start(self._searcher.first_stretch)
            return self._new_trial(now, room) if can_start else None
        if running == 0:
            self._confirmation.begin()
        return self._race(now, room, running=running, last_call=last_call)

    def has_more(self, room: Headroom) -> bool:
        """Whether new trials are to come, by what is left of the budget."""
        return not self._confirmation.begun and self._more(room, last_call=False)

    def why_empty(self) -> str:
        """Why `next` has nothing to hand out though nothing runs."""
        if self._queue or not self._all_tried:
            return "the budget left is too small for another trial"
        if not self._trials_used:
            return "all configurations of the space have been tried"
        most = self._spec.budget.trials
        return f"all {most} trials have ended"

    # -------------------------------------------------------------------------------- what there is

    @property
    def _all_tried(self) -> bool:
        if self._trials_used:
            return True
        if self._begun < len(self._first):
            return False
        return self._searcher.proposals.exhausted

    @property
    def _trials_used(self) -> bool:
        most = self._spec.budget.trials
        return most is not None and self._searched >= most

    def _more(self, room: Headroom, last_call: bool) -> bool:
        """Whether new trials are to come.

        What runs may give back some of what was reserved for it, so what does not fit now may fit
        later; on the last call nothing runs.
        """
        if self._all_tried:
            return False
        if last_call and not room.can_start(self._searcher.first_stretch):
            return False
        if room.reaches(self._searcher.last_rung):
            return True
        return self._none_ends(room) and room.reaches(self._searcher.first_stretch)

    def _none_ends(self, room: Headroom) -> bool:
        """Whether no trial has been trained in full, and none can be any more.

        Then the study hands out what is expected of one that got as far as it could.
        """
        if room.reaches(self._total):
            return False
        trials = self._history.trials
        if any(trial.state is State.COMPLETE for trial in trials):
            return False
        return not any(self._may_end(trial, room) for trial in trials)

    def _may_end(self, trial: Trial, room: Headroom) -> bool:
        """Whether a trial can still be trained in full; what runs has its share of the budget."""
        if trial.state.terminal:
            return False
        distance = self._total - trial.resource
        if trial.state is State.RUNNING:
            return room.under_way().in_time(distance, trial)
        return room.reaches(distance, trial)

    def _can_finish(self, trial: Trial, room: Headroom, last_call: bool) -> bool:
        room = self._confirmation.room_for(trial, room)
        if not room.reaches(self._total - trial.resource, trial):
            return False
        return not last_call or self._can_go_on(trial, room)

    def _can_go_on(self, trial: Trial, room: Headroom) -> bool:
        room = self._confirmation.room_for(trial, room)
        return room.can_start(self._searcher.stretch(trial), trial)

    # ---------------------------------------------------------------------------- the kinds of work

    def _interrupted(self, room: Headroom) -> Work | None:
        """The first queued trial that there is room for."""
        for number in self._queue:
            trial = self._history.trials[number]
            if not self._can_go_on(trial, room):
                continue
            self._queue.remove(number)
            if not trial.attempts:
                return Work(trial, DecisionKind.START, "asked for while the study ran")
            why = "its last attempt was cut short"
            if trial.attempts[-1].outcome is Outcome.FAILED:
                why = "its study had given up"
            return Work(trial, DecisionKind.RETRY, why)
        return None

    def _promotion(self, room: Headroom, *, more: bool, last_call: bool) -> Work | None:
        """A paused trial that should go on and can still be trained in full, if any can.

        Args:
            room: What is left of the budget.
            more: Whether new trials are to come. Without them whatever may still turn out the best
                goes on, on as many slots as are free.
            last_call: As `next` has it.
        """
        none_ends = self._none_ends(room)

        def is_able(trial: Trial) -> bool:
            if none_ends:
                return self._can_go_on(trial, room)
            return self._can_finish(trial, room, last_call)

        promotion = self._searcher.promotion(is_able, more=more)
        if promotion is None:
            return None
        trial, judgement = promotion
        return Work(trial, DecisionKind.PROMOTE, judgement.why, judgement.against)

    def _new_trial(self, now: float, room: Headroom) -> Work:
        """A configuration that was asked for, or else one that the sampler draws."""
        if self._begun < len(self._first):
            first = self._first[self._begun]
            self._begun += 1
            role, why = self._role_of(first, room)
            return self._start(now, role, why, first.params)
        sampler = self._spec.search.sampler
        return self._start(now, Role.SEARCH, f"drawn by {sampler.kind}", None)

    def _role_of(self, first: AskedFor, room: Headroom) -> tuple[Role, str]:
        """The role of a trial that was asked for, and why it starts.

        The defaults are the yardstick if they can be trained in full, and else a configuration like
        others.
        """
        if first.role is Role.ENQUEUED:
            return Role.ENQUEUED, "asked for"
        why = "the task's default settings"
        if room.can_start(self._total):
            return Role.DEFAULT, why
        return Role.ENQUEUED, f"{why}, for which the budget is too small to train them in full"

    def _start(self, now: float, role: Role, why: str, params: dict[str, Any] | None) -> Work:
        trial = self._add(now, role)
        self._searched += 1
        self._searcher.proposals.propose(trial, params)
        return Work(trial, DecisionKind.START, why)

    def _race(self, now: float, room: Headroom, *, running: int, last_call: bool) -> Work | None:
        """A repeat that is due, or else what the rest of the budget is used for.

        Args:
            now: The time, for what is created.
            room: What is left of the budget.
            running: As `next` has it.
            last_call: As `next` has it.
        """
        confirmation = self._confirmation
        if not confirmation.begun:
            if not self._all_tried and room.in_time(self._searcher.last_rung):
                return None  # what runs may give back some of what was reserved for it
            return self._repeat(now, room, confirmation.early_repeat(running))
        due = self._repeat(now, room, confirmation.leader_to_repeat())
        if due is not None or not room.is_limited:
            return due
        more = self._more_search(now, room, last_call)
        if more is not None:
            confirmation.resume_search()
            return more
        for leader in confirmation.further_repeats():
            further = self._repeat(now, room, leader)
            if further is not None:
                return further
        return None

    def _more_search(self, now: float, room: Headroom, last_call: bool) -> Work | None:
        """A paused trial that can still be trained in full, or a new one.

        None if less is left than that takes, with the repeats of one that leads.
        """
        promotion = self._promotion(room, more=False, last_call=last_call)
        if promotion is not None and self._can_go_on(promotion.trial, room):
            return promotion
        if self._all_tried or not room.reaches(self._total):
            return None
        return self._new_trial(now, room) if room.can_start(self._searcher.first_stretch) else None

    def _repeat(self, now: float, room: Headroom, leader: Trial | None) -> Work | None:
        """A leading configuration once more in full, on a fresh seed, if there is room for it."""
        if leader is None or not room.without_reserve().can_start(self._total, leader):
            return None
        number = leader.number
        trial = self._add(now, Role.CONFIRM)
        trial.repeats = number
        trial.params = dict(leader.params)
        trial.distributions = dict(leader.distributions)
        return Work(trial, DecisionKind.START, f"confirms trial {number}", [number])

    def _add(self, now: float, role: Role) -> Trial:
        number = len(self._history.trials)
        seed = derived_seed(self._spec.seed, number, "trial")
        trial = Trial(number, State.QUEUED, {}, seed=seed, created=now, role=role)
        return self._history.add_trial(trial)
