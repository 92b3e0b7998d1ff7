"""One transaction of a process on a study, to which nobody else writes meanwhile.

An asking process is a slot of the brain's for each trial that it runs, and no slot in between. The
process that asked for a trial carries out its commands when it reports: so a stop is answered at
once, with the state of that report.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import chain, count

from hpsearch.asking.trial import ReportVerdict
from hpsearch.brain.attempts import CurrentAttempt
from hpsearch.brain.study import Study
from hpsearch.domain import events as ev
from hpsearch.domain.facts import ErrorKind
from hpsearch.domain.history import History
from hpsearch.domain.records import ASKED, Attempt, Outcome
from hpsearch.errors import AttemptLost, UserError
from hpsearch.store.heartbeats import Heartbeat, Key
from hpsearch.store.owners import shown

GOES_ON = "nothing speaks against it"

_ENDINGS = {
    Outcome.COMPLETE: "it is complete",
    Outcome.PAUSED: "it is paused",
    Outcome.PRUNED: "it is pruned",
    Outcome.FAILED: "it has failed",
}


@dataclass
class Transaction:
    """A study, for as long as nobody else writes to it. `report` and `end` raise `AttemptLost` for
    an attempt that is not current any more."""

    history: History  # as the database has it
    brain: Study | None  # None while the study is over
    now: float  # the time by the database's clock, which never runs backwards here
    last_seen: float | None  # the time of the transaction before; None before the first one
    stop_requested: bool  # true if the study is to stop
    beats: list[Heartbeat]  # the attempts that run, or ran in a process that has died
    dead: list[Heartbeat]  # the beats whose process has died
    owner: str  # this process
    revision: int  # the study's, before this transaction
    active_s: float | None = None
    """The seconds of work on the study by now; None if nothing is to be noted."""
    forgets_stop: bool = False  # true if a stop that was requested is over
    launched: set[Key] = field(default_factory=set)  # the attempts that began in it

    def worked_s(self) -> float:
        """The seconds of work on the study since the transaction before."""
        if self.last_seen is None or not self.beats:
            return 0.0
        until = self.now
        if len(self.dead) == len(self.beats):
            until = max(beat.renewed for beat in self.beats)
        return max(0.0, until - self.last_seen)

    def end_lost_attempts(self) -> None:
        assert self.brain is not None
        for beat in self.dead:
            running = self._current(beat.key)
            if running is None:
                continue
            if beat.owner == self.owner:
                self._end_of(running, ev.Stopped(*beat.key, why="nobody was told of it"))
                continue
            why = f"{shown(beat.owner)} has died"
            if beat.live is False:
                silent_s = self.now - beat.renewed
                why = f"{shown(beat.owner)} gave no sign of life for {silent_s:.0f} s"
            last_beat = max(beat.renewed, running.attempt.started)
            self.brain.on_event(ev.SlotDown(running.slot.name, why), last_beat)

    def free_slot_of(self, key: Key) -> None:
        brain = self._brain()
        for slot in list(brain.slots.values()):
            if slot.holds == key:
                brain.on_event(ev.SlotDown(slot.name, "its trial was stopped"), self.now)

    def running(self) -> set[Key]:
        """The attempts that run at its end."""
        if self.brain is None:
            return set()
        return {running.key for running in self.brain.running.values()}

    def close_if_finished(self) -> None:
        """Note the study's end once nothing runs and nothing more will."""
        if self.brain is not None and self.brain.finished:
            self.brain.close(self.now)
            self.brain = None

    def hand_out(self, worker: str, node: str) -> ev.Launch | None:
        """A trial for this process; None if nothing can be handed out now."""
        brain = self.brain
        if brain is None:
            return None
        if self.stop_requested:
            brain.interrupt()
        others = (f"{worker}/{number}" for number in count(2))
        slot = next(name for name in chain([worker], others) if name not in brain.slots)
        brain.on_event(ev.SlotUp(slot, node, ASKED, brain.spec.resources.stated_gpus), self.now)
        commands = brain.on_tick(self.now)
        for order in commands:
            if isinstance(order, ev.Launch):
                self.launched.add((order.trial, order.attempt))
                return order
        brain.on_event(ev.SlotDown(slot, "no work"), self.now)
        return None

    def report(
        self, key: Key, resource: float, metrics: Mapping[str, float], checkpoint: str | None
    ) -> ReportVerdict:
        running = self._current(key)
        if running is None:
            return self._ended_before(key, came_through=self._is_on_record(key, resource))
        brain = self._brain()
        best = checkpoint if self._is_best(key[0], metrics) else None
        event = ev.Reported(
            *key, resource, metrics, checkpoint=checkpoint, best=best, saved_at=resource
        )
        brain.on_event(event, self.now)
        if self._current(key) is not None:
            if resource >= brain.spec.budget.per_trial.total:
                brain.on_event(ev.Finished(*key), self.now)
            else:
                self._watch_time(running)
        return self._verdict(running, checkpoint)

    def end(self, event: ev.Finished | ev.Failed | ev.Stopped) -> ReportVerdict:
        key = (event.trial, event.attempt)
        running = self._current(key)
        if running is None:
            ends = {ev.Finished: Outcome.COMPLETE, ev.Failed: Outcome.FAILED}
            attempt = self._attempt(key)
            came_through = attempt is not None and attempt.outcome is ends.get(type(event))
            return self._ended_before(key, came_through=came_through)
        self._brain().on_event(event, self.now)
        return self._verdict(running, None)

    def _is_best(self, number: int, metrics: Mapping[str, float]) -> bool:
        objectives = self._brain().spec.objectives
        if len(objectives) > 1:
            return False
        sign = objectives[0].sign
        value = sign * metrics[objectives[0].metric]
        if not math.isfinite(value):
            return False
        before = self.history.trials[number].reports.values()
        return all(each.value is None or value < sign * each.value for each in before)

    def _watch_time(self, running: CurrentAttempt) -> None:
        brain = self._brain()
        limit_s = brain.spec.budget.per_trial.time_limit_s
        if limit_s is not None and self.now - running.attempt.started > limit_s:
            text = f"ran past its time limit of {limit_s:g} s"
            brain.on_event(ev.Failed(*running.key, ErrorKind.TIMEOUT, text), self.now)

    def _verdict(self, running: CurrentAttempt, checkpoint: str | None) -> ReportVerdict:
        brain = self._brain()
        if self.stop_requested:
            brain.interrupt()
        self._obey(running, checkpoint)
        brain.on_tick(self.now)
        self._obey(running, checkpoint)
        decided = self._why(running.attempt.trial)
        if self._current(running.key) is not None:
            return ReportVerdict(True, decided or GOES_ON)
        why = running.stopping or decided or _ending_of(running.attempt)
        return ReportVerdict(False, why)

    def _obey(self, running: CurrentAttempt, checkpoint: str | None) -> None:
        if self._current(running.key) is None:
            if running.slot.name in self._brain().slots:
                self._leave(running)
        elif running.stopping is not None:
            self._end_of(running, ev.Stopped(*running.key, running.resource, checkpoint))

    def _end_of(self, running: CurrentAttempt, event: ev.Event) -> None:
        self._brain().on_event(event, self.now)
        self._leave(running)

    def _leave(self, running: CurrentAttempt) -> None:
        running.slot.holds = None
        self._brain().on_event(ev.SlotDown(running.slot.name, "its trial has ended"), self.now)

    def _why(self, number: int) -> str | None:
        for decision in reversed(self.history.decided):
            if decision.trial == number:
                return decision.why
        return None

    def _ended_before(self, key: Key, *, came_through: bool) -> ReportVerdict:
        attempt = self._attempt(key)
        was_stopped = attempt is not None and attempt.outcome is Outcome.PRUNED  # by a request
        if attempt is not None and (came_through or was_stopped):
            return ReportVerdict(False, _ending_of(attempt))
        why = None if attempt is None else attempt.note
        raise AttemptLost(
            f"attempt {key[1]} of trial {key[0]} is not current any more: "
            f"{why or 'the study went on without it'}",
            "its results so far are kept and nothing more is written; ask for the next trial",
        )

    def _is_on_record(self, key: Key, resource: float) -> bool:
        trials = self.history.trials
        report = trials[key[0]].reports.get(resource) if key[0] < len(trials) else None
        return report is not None and report.attempt == key[1]

    def _attempt(self, key: Key) -> Attempt | None:
        number, attempt = key
        trials = self.history.trials
        known = trials[number].attempts if number < len(trials) else []
        return known[attempt - 1] if attempt <= len(known) else None

    def _current(self, key: Key) -> CurrentAttempt | None:
        if self.brain is None:
            return None
        running = self.brain.running.get(key[0])
        return running if running is not None and running.attempt.number == key[1] else None

    def _brain(self) -> Study:
        if self.brain is None:
            raise UserError(f"study {self.history.study.name} is over")
        return self.brain


def _ending_of(attempt: Attempt) -> str:
    if attempt.outcome is None:
        return "its attempt has ended"
    ending = _ENDINGS.get(attempt.outcome, "it was interrupted")
    return f"{ending}: {attempt.note}" if attempt.note else ending
