"""Workers and current attempts: state that exists only while a driver runs.

An attempt holds a slot, and a reservation in the ledger, from its launch to its end.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hpsearch.brain.budget.ledger import Key
from hpsearch.brain.budget.spending import Spending
from hpsearch.domain import events as ev
from hpsearch.domain.history import History
from hpsearch.domain.records import Attempt, Outcome, Trial
from hpsearch.study_file.models import StudySpec

GRACE_S = 30.0
"""Seconds past an attempt's time limit in which its worker may enforce the limit itself."""


@dataclass
class Slot:
    """A worker."""

    name: str
    node: str
    device: str
    gpus: float
    holds: Key | None = None
    """The attempt it works on, current or being stopped."""
    is_warm: bool = False
    """True if an attempt has come to train on it, so that the next one finds all it needs there."""
    place: str = ""
    """The id of its node; empty where work cannot be kept from it."""
    answered: float | None = None
    """The time at which it last had nothing to say; None where slots do not tell."""


@dataclass
class Live:
    """A current attempt."""

    attempt: Attempt
    slot: Slot
    until: float
    """The resource up to which it may train before it waits for a command."""
    resource: float
    """The resource of its last report."""
    heard: float
    """The time of its last event."""
    stopping: str | None = None
    """The reason why it was asked to save and stop; None if it was not."""
    away_s: float = 0.0
    """The seconds of its time during which the driver was not listening."""

    def speed_at(self, resource: float, now: float) -> float | None:
        """Resource trained a second, by a report at that resource; None if it is not known.

        Its start-up is left out, because training further does not take it again. Where the driver
        was away for most of the time, the attempt may have waited for it.
        """
        attempt = self.attempt
        trained = resource - attempt.start_resource
        start_up_s = attempt.start_up_seconds or 0.0
        listened_s = now - attempt.started - self.away_s
        training_s = listened_s - start_up_s
        if trained <= 0 or training_s <= 0 or listened_s <= self.away_s:
            return None
        return trained / training_s

    def overdue(self, now: float, deadline_s: float, limit_s: float | None) -> str | None:
        """The reason why the attempt is overdue, by the longest time without a report and its time
        limit; None while it is not. What it has said may be on its way until its slot answers."""
        until = now if self.slot.answered is None else self.slot.answered
        silent = until - self.heard
        if silent > deadline_s:
            return f"no report for {silent:.0f} s (report_deadline is {deadline_s:g} s)"
        if limit_s is None:
            return None
        past = now - self.attempt.started - self.away_s - limit_s
        if past > GRACE_S:
            return f"still running {past:.0f} s past its time limit of {limit_s:g} s"
        return None


class Attempts:
    """The slots of a study, and the attempts that run on them."""

    def __init__(self, spec: StudySpec, history: History, spending: Spending) -> None:
        self._spec = spec
        self._history = history
        self._spending = spending
        self.slots: dict[str, Slot] = {}
        """By name."""
        self.live: dict[int, Live] = {}
        """The current attempts, by the number of their trial."""
        self._commands: list[ev.Command] = []

    def send(self, command: ev.Command) -> None:
        """Have the driver carry out a command, once its cause is in the database."""
        self._commands.append(command)

    def commands(self) -> list[ev.Command]:
        """Hand out what was sent since the last call, in order."""
        commands, self._commands = self._commands, []
        return commands

    def settle_unfinished(self, trial: Trial, last_seen: float) -> bool:
        """End the attempt of a trial that was running when its driver died, and charge it until
        then; False if there is none."""
        unfinished = [attempt for attempt in trial.attempts if attempt.ended is None]
        for attempt in unfinished:
            ended = max(attempt.started, last_seen)
            note = "its driver died"
            self._spending.settle(attempt, Outcome.INTERRUPTED, ended, self.stated_gpus, note)
        return bool(unfinished)

    def adopt(self, trial: Trial, until: float) -> None:
        """Make the latest attempt of a trial, which runs elsewhere up to a resource, current."""
        attempt = trial.attempts[-1]
        key = (trial.number, attempt.number)
        place = attempt.worker, attempt.node or "", attempt.device or ""
        slot = Slot(*place, self.stated_gpus, holds=key)
        self.slots[slot.name] = slot
        self._spending.ledger.hold(attempt, attempt.reserved_gpu_seconds)
        own = [each for each in trial.reports.values() if each.attempt == attempt.number]
        resource = max((each.resource for each in own), default=attempt.start_resource)
        heard = max((each.created for each in own), default=attempt.started)
        self.live[trial.number] = Live(attempt, slot, until, resource, heard)

    @property
    def stated_gpus(self) -> float:
        """GPUs a slot, as far as the study file states them; 0 where it does not."""
        return self._spec.resources.stated_gpus

    def current(self, trial: int, attempt: int) -> Live | None:
        """The attempt of a trial with that number; None if it is not current."""
        live = self.live.get(trial)
        return live if live is not None and live.attempt.number == attempt else None

    def add_slot(self, event: ev.SlotUp) -> None:
        """Add a worker that is ready."""
        slot = Slot(event.slot, event.node, event.device, event.gpus, place=event.place)
        self.slots[event.slot] = slot

    def drop_slot(self, name: str) -> Key | None:
        """Remove a worker that is gone; returns the attempt that it worked on, if any."""
        slot = self.slots.pop(name, None)
        return None if slot is None else slot.holds

    def answered(self, name: str, now: float) -> None:
        """Note that a slot had nothing to say."""
        if name in self.slots:
            self.slots[name].answered = now

    def free_slots(self) -> list[Slot]:
        """The slots that hold no attempt."""
        return [slot for slot in self.slots.values() if slot.holds is None]

    def leave_slot(self, key: Key) -> None:
        """Free the slot that an attempt holds."""
        for slot in self.slots.values():
            if slot.holds == key:
                slot.holds = None

    def launch(self, trial: Trial, slot: Slot, until: float, stretch: float, now: float) -> None:
        """Start an attempt of a trial on a free slot, whose stretch can be afforded."""
        number = trial.number
        start_resource = trial.trains_from
        attempt = Attempt(
            number,
            len(trial.attempts) + 1,
            slot.name,
            started=now,
            start_resource=start_resource,
            node=slot.node,
            device=slot.device,
        )
        self._history.add_attempt(attempt)
        start_up = self._spending.start_ups.next(is_warm=slot.is_warm)
        reserved = self.reserve(attempt, stretch, slot, trial, start_up.worst_s)
        assert reserved, "the agenda hands out nothing that cannot be afforded"
        slot.holds = (number, attempt.number)
        self.live[number] = Live(attempt, slot, until, start_resource, heard=now)
        launch = ev.Launch(
            number,
            attempt.number,
            slot.name,
            dict(trial.params),
            trial.seed,
            until,
            resume_from=trial.checkpoint,
            time_limit_s=self._spec.budget.per_trial.time_limit_s,
            arithmetic=trial.arithmetic,
        )
        self.send(launch)

    def began(self, live: Live, event: ev.Began) -> None:
        """Note that an attempt has come to train, or has failed at the start."""
        attempt, slot = live.attempt, live.slot
        attempt.arithmetic = dict(event.arithmetic)
        seconds = event.start_up_s
        if seconds is not None:
            attempt.start_up_seconds = seconds
            self._spending.start_ups.saw(seconds, is_warm=slot.is_warm)
            slot.is_warm = True
        self._history.touch_attempt(attempt)

    def reported(self, live: Live, trial: Trial, resource: float, now: float) -> None:
        """Note that an attempt has reported at a resource: its trial has trained so far."""
        speed = live.speed_at(resource, now)
        if speed is not None:
            trial.speed = speed
            self._spending.saw(trial, live.attempt)
        trial.resource = max(trial.resource, resource)
        live.resource = max(live.resource, resource)
        rest = max(0.0, live.until - resource)
        self._spending.give_back(live.attempt, rest, now, live.slot.gpus)

    def reserve(
        self, attempt: Attempt, stretch: float, slot: Slot, trial: Trial, start_up_s: float = 0.0
    ) -> bool:
        """Reserve the worst case of a further stretch of training for an attempt, and of its
        start-up if it has not started; False, and nothing changed, if it is not left."""
        slots, device = len(self.slots), slot.device
        need = self._spending.need(stretch, slot.gpus, slots, trial, start_up_s, device)
        return self._spending.reserve(attempt, need)

    def end(self, live: Live, outcome: Outcome, now: float, note: str | None = None) -> None:
        """End an attempt and charge it."""
        self._spending.settle(live.attempt, outcome, now, live.slot.gpus, note)
        del self.live[live.attempt.trial]

    def advance(self, live: Live, until: float, values: Mapping[str, Any] | None = None) -> None:
        """Let an attempt train up to a resource, with the parameters that it has asked for."""
        live.until = until
        attempt = live.attempt
        self.send(ev.Advance(attempt.trial, attempt.number, until, dict(values or {})))

    def save_and_stop(self, live: Live, why: str) -> None:
        """Ask an attempt to save and stop, unless it was asked before."""
        if live.stopping is None:
            live.stopping = why
            self.send(ev.Stop(live.attempt.trial, live.attempt.number, save=True))

    def is_trained(self, trial: Trial) -> bool:
        """True if a trial has reported its full budget: however it ends then, it has its result."""
        return trial.resource >= self._spec.budget.per_trial.total and trial.value is not None


def last_on_record(history: History) -> float:
    """The latest time on record; 0 if there is none."""
    times: list[float] = []
    for trial in history.trials:
        times += [attempt.started for attempt in trial.attempts]
        times += [report.created for report in trial.reports.values()]
    return max(times, default=0.0)
