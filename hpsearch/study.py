"""The brain of a study: events in, records and commands out. No clock, no cluster, no SQL.

The driver calls it in a loop. `on_event` takes what happened, `on_tick` gives free slots work and watches limits; both
change the records of the `History` and return commands, which the driver carries out once those records are in the
database. Time is an argument, in seconds since the epoch; randomness is the searcher's and derived.

How a trial lives (the table is in `lifecycle`): the agenda picks what a free slot does, and `_launch` makes an attempt
of it. `_reported` asks the searcher for a verdict at every report. An attempt ends in one place, `_end`, where its
GPU-seconds are settled.

Word from an attempt that is not current is dropped, but for one thing: it frees the slot it comes from.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hpsearch import events as ev
from hpsearch.agenda import Agenda, Work
from hpsearch.budget import Books
from hpsearch.confirmation import CONFIRM
from hpsearch.curve_gp import FAILED
from hpsearch.failures import DISK_FULL, FACTS, DiskWatch, FailureWatch
from hpsearch.health import MEMORY, note_findings, note_memory
from hpsearch.keeping import WAITING, Keeping
from hpsearch.lifecycle import State, move
from hpsearch.measures import Measures
from hpsearch.records import Attempt, Decision, History, Outcome, Report, StudyState, Trial
from hpsearch.reopening import leave
from hpsearch.room import Room, pace_of
from hpsearch.rungs import Judgement, Verdict
from hpsearch.search import Search
from hpsearch.slots import Live, Slot
from hpsearch.spec import StudySpec

NOTE_S = 10.0
"""How often the time worked is written down."""


class Study:
    """One study being driven.

    Args:
        spec: What is searched, for what, with which budget.
        history: All records so far; the brain's only memory.
        search: Proposes, judges and promotes over the same history.
        defaults: The task's default settings inside the space, tried first as the yardstick; None if it has none.
    """

    def __init__(
        self, spec: StudySpec, history: History, search: Search, defaults: Mapping[str, Any] | None = None
    ) -> None:
        self.spec = spec
        self.history = history
        self.slots: dict[str, Slot] = {}
        self.live: dict[int, Live] = {}
        self.ending: str | None = None
        """Why nothing new starts any more."""
        self.interrupted = False
        self.books = Books(spec.budget, history)
        self._search = search
        self._agenda = Agenda(spec, history, search, defaults)
        self._failures, self._disk = FailureWatch(), DiskWatch(spec.resources.disk_patience_s)
        self._keeping = Keeping(spec, history)
        self._total = spec.budget.per_trial.total
        self._measures = Measures(spec)
        self._began = self._noted = 0.0
        self._active_before = 0.0

    # ------------------------------------------------------------------------------------ beginning and ending

    def begin(self, now: float, last_seen: float | None = None) -> None:
        """Take the study up: what was running when its last driver ended goes back to the queue.

        Args:
            now: The time.
            last_seen: When the last driver was known to live; what its attempts cost is counted until then.
        """
        self._began = self._noted = now
        self._active_before = self.history.study.active_seconds
        self.history.study.state, self.history.study.reason, self.history.study.ended = StudyState.RUNNING, None, None
        self.history.touch_study()
        for trial in self.history.trials:
            for attempt in trial.attempts:
                if attempt.ended is not None:
                    continue
                ended = max(attempt.started, min(now, last_seen if last_seen is not None else now))
                gpus = 0.0 if self.spec.resources.gpu == "auto" else float(self.spec.resources.gpu)
                self.books.settle(attempt, Outcome.INTERRUPTED, ended, gpus, "its driver died")
                self._move(trial, State.QUEUED)
            if trial.state is State.QUEUED:
                self._agenda.put_back(trial)

    def interrupt(self, now: float) -> list[ev.Command]:
        """Ask everything that runs to save and stop; the study stays resumable."""
        self.interrupted = True
        return self._wind_down("interrupted")

    def abandon(self, now: float) -> None:
        """Stop waiting for what was asked to stop: it counts as interrupted now, at its last checkpoint."""
        for live in list(self.live.values()):
            trial = self.history.trials[live.attempt.trial]
            self._end(live, Outcome.INTERRUPTED, now, live.stopping)
            self._move(trial, State.QUEUED)

    def close(self, now: float) -> None:
        """Write down where the study stands, once nothing runs any more."""
        assert not self.live, "a study is closed after its attempts have ended"
        study = self.history.study
        study.active_seconds = self.active_s(now)
        study.ended = now
        if self.interrupted:
            study.state, study.reason = StudyState.INTERRUPTED, self.ending
            self.history.touch_study()
            return
        for trial in self.history.trials:
            if trial.state in (State.PAUSED, State.QUEUED):
                leave(trial)
                self._move(trial, State.PRUNED)
                trial.ended = now
                self._decide(trial, "prune", "the study ended without it", now)
        self._keeping.give_up()
        worked = any(trial.value is not None for trial in self.history.trials)
        study.state = StudyState.FINISHED if worked else StudyState.FAILED
        study.reason = self.ending if worked else self._failures.summary() or self.ending
        self.history.touch_study()

    @property
    def finished(self) -> bool:
        """Whether nothing runs and nothing more will."""
        return self.ending is not None and not self.live

    def active_s(self, now: float) -> float:
        """Seconds that drivers have worked on the study, over all of them."""
        return self._active_before + max(0.0, now - self._began)

    def _wind_down(self, why: str) -> list[ev.Command]:
        """Start nothing new; what runs saves and stops."""
        if self.ending is None or self.interrupted:
            self.ending = why
        commands: list[ev.Command] = []
        for live in self.live.values():
            if live.stopping is None:
                live.stopping = why
                commands.append(ev.Stop(live.attempt.trial, live.attempt.number, save=True))
        return commands

    # -------------------------------------------------------------------------------------------------- events

    def on_event(self, event: ev.Event, now: float) -> list[ev.Command]:
        """Turn one event into changes of the records, and say what is to be done."""
        match event:
            case ev.SlotUp():
                self.slots[event.slot] = Slot(event.slot, event.node, event.device, event.gpus)
                return []
            case ev.SlotDown():
                return self._slot_down(event, now)
            case ev.Learned():
                note_memory(self.history, event)
                return []
            case ev.Finished() | ev.Stopped() | ev.Failed() | ev.Lost():
                self._free((event.trial, event.attempt))
        if isinstance(event, ev.Finished | ev.Stopped | ev.Failed):
            note_findings(self.history, event)
        live = self.live.get(event.trial)
        if live is None or live.attempt.number != event.attempt:
            return []
        live.heard = now
        trial = self.history.trials[event.trial]
        match event:
            case ev.Reported():
                return self._reported(live, trial, event, now)
            case ev.Finished():
                return self._finished(live, trial, event, now)
            case ev.Stopped():
                trial.checkpoint = event.checkpoint or trial.checkpoint
                self._end(live, Outcome.INTERRUPTED, now, live.stopping or event.why)
                self._requeue(trial)
            case ev.Failed(kind=kind) if kind == DISK_FULL:
                return self._disk_full(live, trial, event.text, now)
            case ev.Failed():
                return self._failed(live, trial, event.kind, event.text, now)
            case ev.Lost():
                return self._lost(live, trial, event.why, now)
        return []

    def _slot_down(self, event: ev.SlotDown, now: float) -> list[ev.Command]:
        slot = self.slots.pop(event.slot, None)
        if slot is None or slot.holds is None:
            return []
        return self.on_event(ev.Lost(*slot.holds, event.why), now)

    def _reported(self, live: Live, trial: Trial, event: ev.Reported, now: float) -> list[ev.Command]:
        if (text := self._measures.missing(event)) is not None:
            return [*self._failed(live, trial, "error", text, now), ev.Stop(event.trial, event.attempt)]
        previous, report = live.resource, self._record(live, trial, event, now)
        judgement = self._search.judge(trial, report, previous)
        if self._reaches_target(trial):
            self.ending = self.ending or f"trial {trial.number} reached the target with {trial.value:g}"
        if report.resource >= self._total:
            return []
        if judgement.verdict is Verdict.CONTINUE:
            return self._continue(live, trial, judgement, now)
        paused = judgement.verdict is Verdict.PAUSE
        self._decide(trial, "pause" if paused else "prune", judgement.why, now, judgement.against)
        self._end(live, Outcome.PAUSED if paused else Outcome.PRUNED, now)
        self._move(trial, State.PAUSED if paused else State.PRUNED)
        trial.ended = None if paused else now
        if report.resource >= live.until:  # the worker waits, so it is free as soon as it is told
            self._free((event.trial, event.attempt))
        return [ev.Stop(event.trial, event.attempt)]

    def _record(self, live: Live, trial: Trial, event: ev.Reported, now: float) -> Report:
        report = self.history.add_report(self._measures.report_of(event, now))
        self._measures.stand_by(trial, report)
        trained = event.resource - live.attempt.start_resource
        if trained > 0 and now > live.attempt.started:
            trial.speed = trained / (now - live.attempt.started)
            self.books.saw(trial, trained, now - live.attempt.started)
        trial.resource = max(trial.resource, event.resource)
        if event.checkpoint is not None and event.checkpoint != trial.checkpoint:
            trial.checkpoint = event.checkpoint
            self._disk.saved()
        live.resource = max(live.resource, event.resource)
        self._failures.worked()
        self.history.touch(trial)
        return report

    def _continue(self, live: Live, trial: Trial, judgement: Judgement, now: float) -> list[ev.Command]:
        if judgement.against:
            self._decide(trial, "continue", judgement.why, now, judgement.against)
        if trial.resource < live.until or live.stopping is not None:
            return []
        until = self._search.until(trial)
        room, stretch = self._agenda.room_for(trial, self._room(live.slot, now)), self._search.stretch(trial)
        fits = room.affords(stretch, trial) and room.in_time(0.0)
        if not fits or not self.books.reserve(live.attempt, self._need(stretch, live.slot, trial)):
            live.stopping = "the budget left does not reach to its next rung"
            return [ev.Stop(trial.number, live.attempt.number, save=True)]
        live.until = until
        return [ev.Advance(trial.number, live.attempt.number, until)]

    def _finished(self, live: Live, trial: Trial, event: ev.Finished, now: float) -> list[ev.Command]:
        if trial.value is None:
            text = f"it came to its end without a finite {self.spec.objective.metric}"
            return self._failed(live, trial, "diverged" if trial.reports else "error", text, now)
        self._decide(trial, "finish", event.why, now)
        trial.checkpoint = event.checkpoint or trial.checkpoint
        self._end(live, Outcome.COMPLETE, now)
        self._move(trial, State.COMPLETE)
        trial.ended = now
        return []

    def _failed(self, live: Live, trial: Trial, kind: str, text: str, now: float) -> list[ev.Command]:
        self._end(live, Outcome.FAILED, now, text)
        return self._give_up(trial, kind, text, now)

    def _lost(self, live: Live, trial: Trial, why: str, now: float) -> list[ev.Command]:
        self._end(live, Outcome.LOST, now, why)
        lost = sum(attempt.outcome is Outcome.LOST for attempt in trial.attempts)
        if lost > self.spec.resources.retries:
            return self._give_up(trial, "lost", f"lost {lost} workers, the last one: {why}", now)
        self._decide(trial, "retry", why, now)
        self._requeue(trial)
        return []

    def _disk_full(self, live: Live, trial: Trial, text: str, now: float) -> list[ev.Command]:
        """Let a trial whose checkpoint could not be written go on when there is room again: it did nothing wrong."""
        self._end(live, Outcome.INTERRUPTED, now, text)
        self._decide(trial, "retry", text, now)
        self._requeue(trial)
        self._disk.full(now)
        if not self._disk.hopeless(now):
            return []
        self.interrupted = True
        return self._wind_down(f"checkpoints cannot be written: {text}; make room and resume")

    def _give_up(self, trial: Trial, kind: str, text: str, now: float) -> list[ev.Command]:
        """Fail a trial whose attempt has ended, and the study with it if all trials fail like this."""
        self._decide(trial, "fail", f"{kind}: {text}", now)
        trial.error_kind, trial.error_text, trial.ended = kind, text, now
        if kind in FACTS:
            trial.system_attrs[FAILED] = kind
        self._move(trial, State.FAILED)
        self._failures.failed(kind, text)
        hopeless = self._failures.hopeless()
        return [] if hopeless is None else self._wind_down(hopeless)

    # ------------------------------------------------------------------------------------------ filling slots

    def on_tick(self, now: float) -> list[ev.Command]:
        """Watch the limits, give free slots work, and notice the end."""
        commands = self._watch(now)
        free = [slot for slot in self.slots.values() if slot.holds is None]
        running = sum(self.history.trials[number].role != CONFIRM for number in self.live)
        for slot in free:
            if self.ending is not None or self._disk.waits(now):
                break
            work = self._agenda.next(now, self._room(slot, now), running=running)
            if work is None:
                break
            commands.append(self._launch(work, slot, now))
        if free and self.ending is None and not self.live and not self._disk.waits(now):
            self.ending = self._agenda.why_empty()
        for trial in self._keeping.give_up():
            self._search.continues(trial)
            self._move(trial, State.PRUNED)
            trial.ended = now
            self._decide(trial, "prune", f"{WAITING} better ones wait", now)
        return commands

    def _watch(self, now: float) -> list[ev.Command]:
        commands: list[ev.Command] = []
        if now - self._noted >= NOTE_S:  # what a driver that dies has worked is known to the next one
            self._noted, self.history.study.active_seconds = now, self.active_s(now)
            self.history.touch_study()
        wall_clock = self.spec.budget.wall_clock_s
        if self.ending is not None and not self.interrupted:
            commands += self._wind_down(self.ending)
        elif wall_clock is not None and self.active_s(now) >= wall_clock:
            commands += self._wind_down("its wall-clock time is used")
        deadline, limit = self.spec.resources.report_deadline_s, self.spec.budget.per_trial.time_limit_s
        for live in list(self.live.values()):
            attempt, trial = live.attempt, self.history.trials[live.attempt.trial]
            if (text := live.overdue(now, deadline, limit)) is None:
                if live.stopping is None and self.books.outgrown(attempt, now, live.slot.gpus):
                    live.stopping = "the study's budget is used"
                    commands.append(ev.Stop(attempt.trial, attempt.number, save=True))
                continue
            commands += self._failed(live, trial, "timeout", text, now)
            commands.append(ev.Stop(attempt.trial, attempt.number))
        return commands

    def _launch(self, work: Work, slot: Slot, now: float) -> ev.Command:
        """Start an attempt on a slot; its worst case has been found to be affordable."""
        trial, until = work.trial, self._search.until(work.trial)
        attempt = self.history.add_attempt(
            Attempt(
                trial.number,
                len(trial.attempts) + 1,
                slot.name,
                started=now,
                start_resource=trial.resource if trial.checkpoint else 0.0,
                node=slot.node,
                device=slot.device,
            )
        )
        reserved = self.books.reserve(attempt, self._need(self._search.stretch(trial), slot, trial))
        assert reserved, "the agenda hands out nothing that cannot be afforded"
        self._decide(trial, work.kind, work.why, now, work.against)
        self._search.continues(trial)
        self._move(trial, State.RUNNING)
        trial.started = trial.started if trial.started is not None else now
        slot.holds = (trial.number, attempt.number)
        self.live[trial.number] = Live(attempt, slot, until, attempt.start_resource, heard=now)
        limit = self.spec.budget.per_trial.time_limit_s
        known = self.history.study.system_attrs.get(MEMORY, {})
        return ev.Launch(
            trial.number, attempt.number, slot.name, trial.params, trial.seed, until, trial.checkpoint, limit, known
        )

    # --------------------------------------------------------------------------------------- what events share

    def _need(self, stretch: float, slot: Slot, trial: Trial) -> float:
        return self.books.need(stretch, slot.gpus, len(self.slots), pace_of(self._agenda.like(trial)))

    def _room(self, slot: Slot, now: float) -> Room:
        wall_clock = self.spec.budget.wall_clock_s
        left = 0.0 if wall_clock is None else wall_clock - self.active_s(now)
        return Room(self.books, slot.gpus, len(self.slots), wall_clock, left, self._agenda.kept)

    def _end(self, live: Live, outcome: Outcome, now: float, note: str | None = None) -> None:
        """End an attempt: the one place where its cost is settled."""
        self.books.settle(live.attempt, outcome, now, live.slot.gpus, note)
        del self.live[live.attempt.trial]

    def _free(self, key: tuple[int, int]) -> None:
        for slot in self.slots.values():
            if slot.holds == key:
                slot.holds = None

    def _requeue(self, trial: Trial) -> None:
        self._move(trial, State.QUEUED)
        self._agenda.put_back(trial)

    def _move(self, trial: Trial, to: State) -> None:
        trial.state = move(trial.state, to, f"trial {trial.number} at {trial.resource:g}")
        self.history.touch(trial)

    def _decide(self, trial: Trial, kind: str, why: str, now: float, against: list[int] | None = None) -> None:
        self.history.add_decision(Decision(trial.number, kind, why, trial.resource, against or [], now))

    def _reaches_target(self, trial: Trial) -> bool:
        target = self.spec.budget.target
        if target is None or trial.value is None or trial.violation > 0:
            return False
        return self.spec.objective.sign * (trial.value - target) <= 0
