"""Workers and current attempts as the brain knows them: state that exists only while a driver runs.

An attempt holds a slot, and a reservation in the ledger, from its launch to its end.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hpsearch.brain.agenda.continuing import begun_at
from hpsearch.brain.budget.ledger import Key
from hpsearch.brain.budget.spending import Spending
from hpsearch.domain import events as ev
from hpsearch.domain.history import History
from hpsearch.domain.records import Attempt, Outcome, Trial
from hpsearch.study_file.models import StudySpec

GRACE_S = 30.0
"""How much longer than its time limit the brain waits for a worker to enforce it itself."""


@dataclass
class Slot:
    """A worker as the brain knows it."""

    name: str
    node: str
    device: str
    gpus: float
    holds: tuple[int, int] | None = None
    """The attempt it works on, current or being stopped, as (trial, attempt)."""
    is_warm: bool = False
    """True if an attempt has come to train on it, so that the next one finds all it needs there."""


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
    """Why it was asked to save and stop; None if it was not."""
    away_s: float = 0.0
    """The seconds of its time during which the driver was not listening."""

    def was_away(self, seconds: float) -> None:
        """The driver was not listening for this many seconds."""
        self.heard += seconds
        self.away_s += seconds

    def speed_at(self, resource: float, now: float) -> float | None:
        """Resource trained a second, by a report at that resource; None if it is not known.

        Its start-up is left out: training further does not take it again. Where the driver was away
        for most of the time, the attempt may have waited for it.
        """
        attempt = self.attempt
        trained = resource - attempt.start_resource
        seconds = now - attempt.started - self.away_s
        mostly_away = seconds <= self.away_s
        if trained <= 0 or mostly_away:
            return None
        start_up_s = attempt.start_up_seconds or 0.0
        # It may have started while the driver was away: that time is left out already.
        training_s = seconds - max(0.0, start_up_s - self.away_s)
        if training_s <= 0:
            return None
        return trained / training_s

    def overdue(self, now: float, deadline_s: float, limit_s: float | None) -> str | None:
        """Why the attempt is overdue; None while it is not.

        Args:
            now: The time.
            deadline_s: The longest it may go without a report.
            limit_s: The longest it may take; None for no limit.
        """
        silent = now - self.heard
        if silent > deadline_s:
            return f"no report for {silent:.0f} s (report_deadline is {deadline_s:g} s)"
        if limit_s is None:
            return None
        started = self.attempt.started
        past = now - started - self.away_s - limit_s
        if past > GRACE_S:
            return f"still running {past:.0f} s past its time limit of {limit_s:g} s"
        return None


class Attempts:
    """The slots of a study, and the attempts that run on them.

    Args:
        spec: The study.
        history: Its records.
        spending: Reserves and settles what attempts cost.
    """

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
        """Have the driver carry out a command, once what led to it is in the database."""
        self._commands.append(command)

    def commands(self) -> list[ev.Command]:
        """Hand out what was sent since the last call, in order."""
        commands, self._commands = self._commands, []
        return commands

    def settle_unfinished(self, trial: Trial, last_seen: float) -> bool:
        """End the attempt of a trial that was running when its driver died; False if there is none.

        Args:
            trial: The trial.
            last_seen: When that driver was last known to be alive: the attempt is charged until
                then.
        """
        share = self.stated_gpus
        any_unfinished = False
        for attempt in trial.attempts:
            if attempt.ended is not None:
                continue
            any_unfinished = True
            ended = max(attempt.started, last_seen)
            self._spending.settle(attempt, Outcome.INTERRUPTED, ended, share, "its driver died")
        return any_unfinished

    def adopt(self, trial: Trial, until: float) -> None:
        """Make the latest attempt of a trial current, as it is on record: it runs elsewhere.

        Args:
            trial: The trial.
            until: The resource up to which it may train before it waits for a command.
        """
        attempt = trial.attempts[-1]
        key = (trial.number, attempt.number)
        device = attempt.device or ""
        slot = Slot(attempt.worker, attempt.node or "", device, self.stated_gpus, holds=key)
        self.slots[slot.name] = slot
        self._spending.recall(attempt)
        own = [each for each in trial.reports.values() if each.attempt == attempt.number]
        resource = max((each.resource for each in own), default=attempt.start_resource)
        heard = max((each.created for each in own), default=attempt.started)
        self.live[trial.number] = Live(attempt, slot, until, resource, heard)

    @property
    def stated_gpus(self) -> float:
        """GPUs a slot, as far as the study file states them; 0 where it does not."""
        gpus = self._spec.resources.gpu
        return 0.0 if gpus == "auto" else float(gpus)

    def current(self, trial: int, attempt: int) -> Live | None:
        """The attempt with that name; None if it is not current."""
        live = self.live.get(trial)
        if live is None or live.attempt.number != attempt:
            return None
        return live

    def add_slot(self, event: ev.SlotUp) -> None:
        """A worker is there."""
        self.slots[event.slot] = Slot(event.slot, event.node, event.device, event.gpus)

    def drop_slot(self, name: str) -> Key | None:
        """A worker is gone; returns the attempt that it worked on, if any."""
        slot = self.slots.pop(name, None)
        return None if slot is None else slot.holds

    def free_slots(self) -> list[Slot]:
        """The slots that hold no attempt."""
        return [slot for slot in self.slots.values() if slot.holds is None]

    def leave_slot(self, key: Key) -> None:
        """An attempt no longer holds its slot."""
        for slot in self.slots.values():
            if slot.holds == key:
                slot.holds = None

    def launch(self, trial: Trial, slot: Slot, until: float, stretch: float, now: float) -> None:
        """Start an attempt of a trial on a slot.

        Args:
            trial: The trial; the worst case of its stretch can be reserved.
            slot: A free slot.
            until: The resource up to which it may train.
            stretch: How much it trains before it is next judged.
            now: The time.
        """
        number = trial.number
        borrowed = None if trial.checkpoint else trial.continues_with
        start_resource = trial.resource if trial.checkpoint or borrowed else 0.0
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
        start_up = self._spending.start_up(is_warm=slot.is_warm)
        reserved = self.reserve(attempt, stretch, slot, trial, start_up.worst_s)
        assert reserved, "the agenda hands out nothing that cannot be afforded"
        slot.holds = (number, attempt.number)
        self.live[number] = Live(attempt, slot, until, start_resource, heard=now)
        per_trial = self._spec.budget.per_trial
        study = self._history.study
        launch = ev.Launch(
            number,
            attempt.number,
            slot.name,
            dict(trial.params),
            trial.seed,
            until,
            resume_from=trial.checkpoint or borrowed,
            time_limit_s=per_trial.time_limit_s,
            known=study.memory,
            arithmetic=trial.arithmetic,
            continues=trial.continues,
            takes_over=borrowed is not None,
        )
        self.send(launch)

    def correct_beginning(self, live: Live, trial: Trial, reported: float) -> str | None:
        """Note where a trial that continues another one has really begun.

        Its first report may show that it began with a state before the other one's last report.

        Args:
            live: Its attempt.
            trial: The trial.
            reported: The resource of its first report.

        Returns: Why it cannot have continued the other one, if so.
        """
        began = begun_at(self._history, trial, reported)
        if began is None:
            continued = f"though it continues trial {trial.continues}"
            return f"reported at {reported:g}, {continued}: it began anew"
        trial.continues_at = trial.resource = began
        live.attempt.start_resource = live.resource = began
        self._history.touch_attempt(live.attempt)
        return None

    def began(self, live: Live, event: ev.Began) -> None:
        """An attempt has come to train, or to fail at the start."""
        attempt, slot = live.attempt, live.slot
        attempt.arithmetic = dict(event.arithmetic)
        seconds = event.start_up_s
        if seconds is not None:
            attempt.start_up_seconds = seconds
            self._spending.saw_start_up(seconds, is_warm=slot.is_warm)
            slot.is_warm = True
        self._history.touch_attempt(attempt)

    def reserve(
        self, attempt: Attempt, stretch: float, slot: Slot, trial: Trial, start_up_s: float = 0.0
    ) -> bool:
        """Reserve the worst case of a stretch for an attempt.

        Args:
            attempt: The attempt.
            stretch: How much further it trains.
            slot: Where.
            trial: Its trial.
            start_up_s: How long its start-up may take, if it has not started.

        Returns: False, and nothing changed, if it is not left.
        """
        need = self._spending.need(stretch, slot.gpus, len(self.slots), trial, start_up_s)
        return self._spending.reserve(attempt, need)

    def end(self, live: Live, outcome: Outcome, now: float, note: str | None = None) -> None:
        """End an attempt: the one place where its cost is settled."""
        attempt = live.attempt
        self._spending.settle(attempt, outcome, now, live.slot.gpus, note)
        del self.live[attempt.trial]

    def advance(self, live: Live, until: float, values: Mapping[str, Any] | None = None) -> None:
        """Let an attempt train further, or answer its question.

        Args:
            live: The attempt.
            until: The resource up to which it may train.
            values: Parameters that it has asked for.
        """
        live.until = until
        attempt = live.attempt
        self.send(ev.Advance(attempt.trial, attempt.number, until, dict(values or {})))

    def stop(self, live: Live, why: str) -> None:
        """Ask an attempt to save and stop, unless it was asked before."""
        if live.stopping is None:
            live.stopping = why
            self.send(ev.Stop(live.attempt.trial, live.attempt.number, save=True))

    def is_trained(self, trial: Trial) -> bool:
        """True if a trial has reported its full budget: however it ends then, it has its result."""
        return trial.resource >= self._spec.budget.per_trial.total and trial.value is not None


def last_on_record(history: History) -> float:
    """The latest time at which a driver is known to have been alive, judging by what it wrote.

    0 if there is nothing.
    """
    times: list[float] = []
    for trial in history.trials:
        times += [attempt.started for attempt in trial.attempts]
        times += [report.created for report in trial.reports.values()]
    return max(times, default=0.0)
