"""The brain of a study: events in, changed records and commands out. No clock, no cluster, no SQL.

The driver calls it in a loop. `on_event` takes what happened; `on_tick` gives free slots work and
watches the limits. Both change the records of the `History` and return commands, which the driver
carries out once those records are in the database. Time is an argument, in seconds since the epoch.
Randomness is derived, by the searcher.

The path of one report, which enters each room once on its way up and once on its way down:

 1. `running.runner` yields it, and `executors.worker` makes it a `Reported` with its checkpoints.
 2. `driver` polls the executor (`executors.ray`) and hands the event to `Study.on_event`.
 3. `on_event` finds the current attempt, and `_reported` checks that the report has all its
 metrics.
 4. `_record` adds it to the history, and notes the trial's resource, speed and checkpoints.
 5. `Searcher.assess` is asked once what it is worth and what its trial does: an `Assessment`.
 6. `TrialLog` makes it the trial's value if it is the best so far, and records the decision.
 7. `_continue` or `_leave_behind` answers with a command: `Advance`, `Stop`, or none between rungs.
 8. `Study.on_tick` gives a slot that has become free its next work.
 9. `driver` hands all touched records to `store`: one commit. Only then are the commands executed.
10. `store.reading` and `ranking` read the row for `hpsearch best`.

Events of an attempt that is not current are dropped. They only free the slot that they come from,
and the last event of a paused or pruned trial may name a checkpoint that it was still writing.

The states of a trial are in `domain.lifecycle`. An attempt ends in one place, `Attempts.end`, where
it is charged.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Any

from hpsearch.brain.agenda import Agenda, Work, asked_for
from hpsearch.brain.attempts import Attempts, Live, Slot, last_on_record
from hpsearch.brain.budget.headroom import Headroom, WorkingTime
from hpsearch.brain.budget.ledger import Key
from hpsearch.brain.budget.spending import Spending
from hpsearch.brain.confirmation import Confirmation
from hpsearch.brain.continuing import begun_at
from hpsearch.brain.giving_up import DiskWatch, FailureWatch
from hpsearch.brain.health import forget_shortages, note_findings, note_memory
from hpsearch.brain.reopening import leave, workers_lost
from hpsearch.brain.requests import INTERRUPTED, Requests, raised
from hpsearch.brain.retention import Retention
from hpsearch.brain.trial_log import TrialLog, lacking, record_of
from hpsearch.domain import events as ev
from hpsearch.domain.facts import DecisionKind, ErrorKind, Role
from hpsearch.domain.history import History
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import Outcome, ReportRecord, Request, StudyState, Trial
from hpsearch.search.questions import Unanswerable
from hpsearch.search.rungs import Verdict
from hpsearch.search.searcher import Assessment, Searcher
from hpsearch.search.time_left import TimeLeft
from hpsearch.study_file.models import StudySpec

NOTE_S = 1.0
"""How often expectations are written down, in seconds."""


class Study:
    """One study being driven.

    Args:
        spec: The study file: what is searched, for what, with which budget.
        history: All records so far; the brain's only memory.
        searcher: Proposes, assesses and promotes over the same history.
        defaults: The task's default settings inside the space, tried first as the yardstick; None
            if it has none.
    """

    def __init__(
        self,
        spec: StudySpec,
        history: History,
        searcher: Searcher,
        defaults: Mapping[str, Any] | None = None,
    ) -> None:
        self.spec = spec
        self.history = history
        self.ending: str | None = None
        """Why nothing new starts any more."""
        self.interrupted = False
        self.spending = Spending(spec.budget, history)
        self._searcher = searcher
        self._attempts = Attempts(spec, history, self.spending)
        self._log = TrialLog(history)
        first = asked_for(spec, history, defaults)
        self._confirmation = Confirmation(spec, history, self._expect, len(first))
        self._asked_for = len(first)
        self._agenda = Agenda(spec, history, searcher, self._confirmation, first)
        self._requests = Requests(
            history, self._agenda, self._attempts, self._log, self._raise_budget, self._interrupt
        )
        self._failures = FailureWatch(worked=any(trial.reports for trial in history.trials))
        self._disk = DiskWatch(spec.resources.disk_patience_s)
        self._retention = Retention(spec, history)
        self._time = WorkingTime(history, spec.budget.wall_clock_s)
        self._total = spec.budget.per_trial.total
        self._noted = -math.inf
        """When expectations were last written down."""

    @property
    def slots(self) -> Mapping[str, Slot]:
        """The workers, by name."""
        return self._attempts.slots

    @property
    def live(self) -> Mapping[int, Live]:
        """The current attempts, by the number of their trial."""
        return self._attempts.live

    @property
    def lent(self) -> set[int]:
        """The trials whose checkpoints others are to begin with: nothing of them may be removed."""
        return self._retention.lent

    @property
    def stated_gpus(self) -> float:
        """GPUs a worker, as far as the study file states them; 0 where it does not."""
        return self._attempts.stated_gpus

    @property
    def finished(self) -> bool:
        """Whether nothing runs and nothing more will."""
        return self.ending is not None and not self.live

    def active_s(self, now: float) -> float:
        """Seconds that drivers have worked on the study, over all of them."""
        return self._time.so_far(now)

    def seconds_left(self, now: float) -> float | None:
        """Seconds until the study ends; None where that cannot be known yet."""
        if self.ending is not None:
            return None
        left = TimeLeft(self.spec, self.history.trials, len(self.slots))
        return left.seconds(self.active_s(now), now)

    # ------------------------------------------------------------------------- beginning and ending

    def begin(self, now: float, last_seen: float | None = None) -> None:
        """Take over the study: what was running when its last driver ended goes back to the queue.

        Args:
            now: The time.
            last_seen: When the last driver was last known to be alive, by the clock that timed its
                own attempts: they are charged until then. None for the last time on record.
        """
        history = self.history
        study = history.study
        self._time.begin(now)
        study.state = StudyState.RUNNING
        study.reason = None
        study.ended = None
        history.touch_study()
        forget_shortages(history)
        if last_seen is None:
            last_seen = last_on_record(history)
        self._take_up(last_seen, frozenset())

    def join(self, now: float, last_seen: float, running: Collection[Key]) -> None:
        """Take part in a study that other processes work on too, as the history has it now.

        Nothing of the study begins or ends with that: what they run stays current.

        Args:
            now: The time.
            last_seen: When somebody was last known to work on the study. Attempts that are not
                among `running` are charged until then, and go back to the queue.
            running: The attempts that run.
        """
        self._time.begin(now)
        self._take_up(last_seen, running)
        if any(self._reaches_target(trial) for trial in self.history.trials):
            self.ending = "a trial reached the target"
        for trial in self.history.trials:
            if trial.error_kind is not None and trial.forgiven < len(trial.attempts):
                self._failures.failed(trial.error_kind, trial.error_text or "")
        self.ending = self.ending or self._failures.hopeless()

    def _take_up(self, last_seen: float, running: Collection[Key]) -> None:
        """Find what runs, and what waits in the queue."""
        for trial in self.history.trials:
            is_running = trial.state is State.RUNNING
            if is_running and (trial.number, len(trial.attempts)) in running:
                self._attempts.adopt(trial, self._searcher.until(trial))
            elif self._attempts.settle_unfinished(trial, last_seen):
                self._log.move(trial, State.QUEUED)
            if trial.state is State.QUEUED:
                self._agenda.put_back(trial)

    def worked(self, seconds: float, now: float) -> None:
        """So many seconds were spent on the study until now, by all who work on it together."""
        self._time.set(seconds, now)

    def was_away(self, seconds: float) -> None:
        """Hold this silence against no attempt: the driver was not listening."""
        for live in self.live.values():
            live.was_away(seconds)
        self._disk.was_away(seconds)

    def interrupt(self, now: float) -> list[ev.Command]:
        """Ask everything that runs to save and stop; the study stays resumable."""
        return self._interrupt(INTERRUPTED)

    def _interrupt(self, why: str) -> list[ev.Command]:
        self.interrupted = True
        return self._wind_down(why)

    def abandon(self, now: float) -> None:
        """Count what was asked to stop as interrupted now, at its last checkpoint."""
        for live in list(self.live.values()):
            trial = self.history.trials[live.attempt.trial]
            self._attempts.end(live, Outcome.INTERRUPTED, now, live.stopping)
            self._log.move(trial, State.QUEUED)

    def waits_for_disk(self, now: float) -> bool:
        """Whether nothing starts at present because a checkpoint could not be written."""
        return self._disk.waits(now)

    def close(self, now: float) -> None:
        """Record how the study ended, once nothing runs any more."""
        assert not self.live, "a study is closed after its attempts have ended"
        history = self.history
        study = history.study
        study.active_seconds = self.active_s(now)
        study.ended = now
        if self.interrupted:
            study.state = StudyState.INTERRUPTED
            study.reason = self.ending
            history.touch_study()
            return
        self._leave_waiting(now)
        self._drop_checkpoints(now)
        if any(trial.value is not None for trial in history.trials):
            study.state = StudyState.FINISHED
            study.reason = self.ending
        else:
            study.state = StudyState.FAILED
            study.reason = self._failures.summary() or self.ending
        history.touch_study()

    def _leave_waiting(self, now: float) -> None:
        """Prune what still waits, since the study ends."""
        for trial in self.history.trials:
            if trial.state not in (State.PAUSED, State.QUEUED):
                continue
            leave(trial)
            self._log.move(trial, State.PRUNED, ended=now)
            self._log.decide(trial, DecisionKind.PRUNE, "the study ended without it", now)

    def _wind_down(self, why: str) -> list[ev.Command]:
        """Start nothing new; what runs saves and stops."""
        if self.ending is None or self.interrupted:
            self.ending = why
        return self._attempts.stop_all(why)

    # ------------------------------------------------------------------------------------- requests

    def on_request(self, request: Request, now: float) -> list[ev.Command]:
        """Do what somebody asks of the study, or refuse it, as is one that could not be read; the
        answer is recorded."""
        why = request.refused
        if self.ending is not None and not self.interrupted:
            why = f"the study is ending: {self.ending}"
        if why is not None:
            self._requests.refuse(request, why, now)
            return []
        return self._requests.handle(request, self.spec, now)

    def _raise_budget(self, changes: Mapping[str, Any]) -> None:
        """Go on with higher limits.

        Raises:
            UserError: A limit is lower than it was, is new, or cannot be read.
        """
        history = self.history
        spec = raised(self.spec, changes)
        self.spec = spec
        history.study.spec = spec.text
        history.touch_study()
        self.spending.ledger.keep_to(spec.budget)
        self._time.limit_s = spec.budget.wall_clock_s
        self._confirmation = Confirmation(spec, history, self._expect, self._asked_for)
        self._agenda.go_on_with(spec, self._confirmation)

    # --------------------------------------------------------------------------------------- events

    def on_event(self, event: ev.Event, now: float) -> list[ev.Command]:
        """Turn one event into changes of the records, and return the commands that follow."""
        match event:
            case ev.SlotUp():
                self._slot_up(event)
                return []
            case ev.SlotDown():
                return self._slot_down(event, now)
            case ev.Learned():
                note_memory(self.history, event)
                return []
            case ev.Finished() | ev.Stopped() | ev.Failed() | ev.Lost():
                self._attempts.leave_slot((event.trial, event.attempt))
        if isinstance(event, ev.Finished | ev.Stopped | ev.Failed):
            note_findings(self.history, event)
        live = self._attempts.current(event.trial, event.attempt)
        if live is None:
            self._last_word(event)
            return []
        live.heard = now
        trial = self.history.trials[event.trial]
        return self._on_current(live, trial, event, now)

    def _slot_up(self, event: ev.SlotUp) -> None:
        name = event.slot
        self._attempts.slots[name] = Slot(name, event.node, event.device, event.gpus)

    def _slot_down(self, event: ev.SlotDown, now: float) -> list[ev.Command]:
        slot = self._attempts.slots.pop(event.slot, None)
        if slot is None or slot.holds is None:
            return []
        return self.on_event(ev.Lost(*slot.holds, event.why), now)

    def _on_current(
        self, live: Live, trial: Trial, event: ev.Event, now: float
    ) -> list[ev.Command]:
        """Handle an event of a current attempt."""
        match event:
            case ev.Began():
                self._attempts.began(live, event)
            case ev.Reported():
                return self._reported(live, trial, event, now)
            case ev.Asked():
                return self._asked(live, trial, event, now)
            case ev.Noted():
                self._log.note(trial, event)
            case ev.Finished():
                return self._finished(live, trial, event, now)
            case ev.Stopped() | ev.Failed() | ev.Lost() if self._is_trained(trial):
                self._keep_result(live, trial, event, now)
            case ev.Stopped():
                self._stopped(live, trial, event, now)
            case ev.Failed(kind=ErrorKind.DISK_FULL):
                return self._disk_full(live, trial, event.text, now)
            case ev.Failed():
                return self._failed(live, trial, event.kind, event.text, now)
            case ev.Lost():
                return self._lost(live, trial, event.why, now)
        return []

    def _last_word(self, event: ev.Event) -> None:
        """Take in what a paused or pruned trial was still writing when it was asked to stop."""
        trials = self.history.trials
        if not isinstance(event, ev.Stopped) or event.trial >= len(trials):
            return
        trial = trials[event.trial]
        is_latest = event.attempt == len(trial.attempts)
        if not is_latest or trial.checkpoint is None:
            return
        if trial.state in (State.PAUSED, State.PRUNED):
            self._log.keep(trial, event.best, event.held)

    # ------------------------------------------------------------------------------------- a report

    def _reported(
        self, live: Live, trial: Trial, event: ev.Reported, now: float
    ) -> list[ev.Command]:
        stop = ev.Stop(event.trial, event.attempt)
        problem = lacking(self.spec, event)
        if problem is not None:
            commands = self._failed(live, trial, ErrorKind.ERROR, problem, now)
            return [*commands, stop]
        if not self._continues(live, trial, event.resource):
            text = f"reported at {event.resource:g}, though it continues trial {trial.continues}"
            commands = self._failed(live, trial, ErrorKind.ERROR, f"{text}: it began anew", now)
            return [*commands, stop]
        report = self._record(live, trial, event, now)
        more = self._agenda.has_more(self._headroom(live.slot, now))
        answer = self._searcher.assess(trial, report, more=more)
        self._log.assessed(trial, answer)
        if self.ending is None and self._reaches_target(trial):
            self.ending = f"trial {trial.number} reached the target with {trial.value:g}"
        if report.resource >= self._total:
            return []
        if answer.judgement.verdict is Verdict.CONTINUE:
            return self._continue(live, trial, answer, now)
        self._leave_behind(live, trial, answer, now)
        self._log.keep(trial, event.best, event.held)
        if report.resource >= live.until:
            # The worker waits for a command, so its slot is free as soon as it has this one.
            self._attempts.leave_slot((event.trial, event.attempt))
        return [stop]

    def _continues(self, live: Live, trial: Trial, reported: float) -> bool:
        """Whether a report can be of a trial that continues another one, as it should.

        Its first report may show that it began with a state before the other one's last report.
        """
        at = trial.continues_at
        if at is None or trial.reports or reported > at:
            return True
        began = begun_at(self.history, trial, reported)
        if began is None:
            return False
        trial.continues_at = trial.resource = began
        live.attempt.start_resource = live.resource = began
        self.history.touch_attempt(live.attempt)
        return True

    def _record(self, live: Live, trial: Trial, event: ev.Reported, now: float) -> ReportRecord:
        """Record a report, with what it says about the trial's speed and checkpoints."""
        report = self.history.add_report(record_of(self.spec, event, now))
        resource = event.resource
        speed = live.speed_at(resource, now)
        if speed is not None:
            trial.speed = speed
            self.spending.saw(trial, live.attempt)
        trial.resource = max(trial.resource, resource)
        live.resource = max(live.resource, resource)
        checkpoint = event.checkpoint
        if checkpoint is not None and checkpoint != trial.checkpoint:
            trial.checkpoint = checkpoint
            self._disk.saved()
        self._log.keep(trial, event.best, event.held)
        self._failures.worked()
        return report

    def _continue(
        self, live: Live, trial: Trial, answer: Assessment, now: float
    ) -> list[ev.Command]:
        """Let a trial continue to where it is next judged, if the budget allows it."""
        judgement = answer.judgement
        if judgement.against:
            self._log.decide(trial, DecisionKind.CONTINUE, judgement.why, now, judgement.against)
        if trial.resource < live.until or live.stopping is not None:
            return []
        if not self._reserve(live, trial, answer.stretch, now):
            why = "the remaining budget is not enough to reach its next rung"
            return [self._attempts.stop(live, why)]
        attempt = live.attempt
        live.until = answer.until
        return [ev.Advance(trial.number, attempt.number, live.until)]

    def _reserve(self, live: Live, trial: Trial, stretch: float, now: float) -> bool:
        """Reserve what the next stretch of an attempt may cost.

        Returns False, and changes nothing, if the budget does not allow it.
        """
        slot = live.slot
        room = self._confirmation.room_for(trial, self._headroom(slot, now).under_way())
        before_repeats = stretch if room.kept else 0.0
        if not room.affords(stretch, trial) or not room.in_time(before_repeats, trial):
            return False
        return self._attempts.reserve(live.attempt, stretch, slot, trial)

    def _leave_behind(self, live: Live, trial: Trial, answer: Assessment, now: float) -> None:
        """End a trial's attempt because others are ahead: it pauses at a rung, or is pruned."""
        judgement = answer.judgement
        why, against = judgement.why, judgement.against
        if judgement.verdict is Verdict.PAUSE:
            self._log.decide(trial, DecisionKind.PAUSE, why, now, against)
            self._attempts.end(live, Outcome.PAUSED, now)
            self._log.move(trial, State.PAUSED)
        else:
            self._log.decide(trial, DecisionKind.PRUNE, why, now, against)
            self._attempts.end(live, Outcome.PRUNED, now)
            self._log.move(trial, State.PRUNED, ended=now)

    def _reaches_target(self, trial: Trial) -> bool:
        target = self.spec.budget.target
        value = trial.value
        if target is None or value is None or trial.violation > 0:
            return False
        short_by = self.spec.objective.sign * (value - target)
        return short_by <= 0

    # ----------------------------------------------------------------------------------- a question

    def _asked(self, live: Live, trial: Trial, event: ev.Asked, now: float) -> list[ev.Command]:
        """Answer with a parameter's value: the one on record, or one that is drawn and recorded
        now.

        The answer goes out once the record has been committed, so that another attempt of the trial
        gets the same value.
        """
        try:
            value = self._searcher.questions.value_for(trial, event.name, event.distribution)
        except Unanswerable as problem:
            commands = self._failed(live, trial, ErrorKind.ERROR, str(problem), now)
            return [*commands, ev.Stop(event.trial, event.attempt)]
        return [ev.Advance(event.trial, event.attempt, live.until, {event.name: value})]

    # ------------------------------------------------------------------------ the end of an attempt

    def _finished(
        self, live: Live, trial: Trial, event: ev.Finished, now: float
    ) -> list[ev.Command]:
        if event.pruned:
            self._gave_up(live, trial, event, now)
            return []
        if trial.value is None:
            kind = ErrorKind.DIVERGED if trial.reports else ErrorKind.ERROR
            text = f"it ended without a finite {self.spec.objective.metric}"
            return self._failed(live, trial, kind, text, now)
        self._log.decide(trial, DecisionKind.FINISH, event.why, now)
        self._attempts.end(live, Outcome.COMPLETE, now)
        self._log.move(trial, State.COMPLETE, ended=now)
        self._log.keep(trial, event.checkpoint, event.held)
        return []

    def _is_trained(self, trial: Trial) -> bool:
        """Whether a trial has reported its full budget: however it ends then, it has its result."""
        return trial.resource >= self._total and trial.value is not None

    def _keep_result(
        self, live: Live, trial: Trial, event: ev.Stopped | ev.Failed | ev.Lost, now: float
    ) -> None:
        """Complete a trial whose attempt was ended after it had reported its full budget."""
        why = event.text if isinstance(event, ev.Failed) else live.stopping or event.why
        self._log.decide(trial, DecisionKind.FINISH, f"budget used, and then: {why}", now)
        self._attempts.end(live, Outcome.COMPLETE, now, why)
        self._log.move(trial, State.COMPLETE, ended=now)
        self._log.keep(trial, None, None)

    def _gave_up(self, live: Live, trial: Trial, event: ev.Finished, now: float) -> None:
        """End a trial that says itself that it is not worth more training."""
        self._log.decide(trial, DecisionKind.PRUNE, event.why, now)
        self._attempts.end(live, Outcome.PRUNED, now)
        self._log.move(trial, State.PRUNED, ended=now)
        self._log.keep(trial, event.checkpoint, event.held)

    def _stopped(self, live: Live, trial: Trial, event: ev.Stopped, now: float) -> None:
        trial.checkpoint = event.checkpoint or trial.checkpoint
        self._log.keep(trial, event.best, event.held)
        self._attempts.end(live, Outcome.INTERRUPTED, now, live.stopping or event.why)
        self._requeue(trial)

    def _failed(
        self, live: Live, trial: Trial, kind: ErrorKind, text: str, now: float
    ) -> list[ev.Command]:
        self._attempts.end(live, Outcome.FAILED, now, text)
        return self._give_up(trial, kind, text, now)

    def _lost(self, live: Live, trial: Trial, why: str, now: float) -> list[ev.Command]:
        self._attempts.end(live, Outcome.LOST, now, why)
        lost = workers_lost(trial)
        if lost > self.spec.resources.retries:
            text = f"lost {lost} workers, the last one: {why}"
            return self._give_up(trial, ErrorKind.LOST, text, now)
        self._log.decide(trial, DecisionKind.RETRY, why, now)
        self._requeue(trial)
        return []

    def _disk_full(self, live: Live, trial: Trial, text: str, now: float) -> list[ev.Command]:
        """Let a trial whose checkpoint could not be written continue once there is room again."""
        self._attempts.end(live, Outcome.INTERRUPTED, now, text)
        self._log.decide(trial, DecisionKind.RETRY, text, now)
        self._requeue(trial)
        self._disk.full(now)
        if not self._disk.hopeless(now):
            return []
        self.interrupted = True
        return self._wind_down(f"checkpoints cannot be written: {text}; make room and resume")

    def _give_up(self, trial: Trial, kind: ErrorKind, text: str, now: float) -> list[ev.Command]:
        """Fail a trial after its attempt has ended, and the study if all trials fail like this."""
        self._log.decide(trial, DecisionKind.FAIL, f"{kind}: {text}", now)
        trial.error_kind = kind
        trial.error_text = text
        self._log.move(trial, State.FAILED, ended=now)
        self._failures.failed(kind, text)
        hopeless = self._failures.hopeless()
        if hopeless is None:
            return []
        return self._wind_down(hopeless)

    def _requeue(self, trial: Trial) -> None:
        self._log.move(trial, State.QUEUED)
        self._agenda.put_back(trial)

    # ---------------------------------------------------------------------------------------- ticks

    def on_tick(self, now: float) -> list[ev.Command]:
        """Watch the limits, give free slots work, and notice the end."""
        self._time.note(now)
        commands = self._watch_study(now) + self._watch_attempts(now)
        commands += self._fill_slots(now)
        self._note_expectations(now)
        self._drop_checkpoints(now)
        return commands

    def _note_expectations(self, now: float) -> None:
        """Write down what is expected of trials, from time to time and when the study has ended."""
        if now - self._noted < NOTE_S and not self.finished:
            return
        self._noted = now
        self._expect()

    def _expect(self) -> None:
        """Write down what is expected of trials by now."""
        for trial, *expected in self._searcher.expectations():
            self._log.expects(trial, *expected)

    def _watch_study(self, now: float) -> list[ev.Command]:
        if self._time.is_used(now):
            return self._wind_down("its wall-clock time is used up")
        if self.ending is None or self.interrupted:
            return []
        trained = [n for n in self.live if self._is_trained(self.history.trials[n])]
        return self._attempts.stop_all(self.ending, spared=trained)

    def _watch_attempts(self, now: float) -> list[ev.Command]:
        """Fail what is overdue, and stop what has outgrown its reservation."""
        commands: list[ev.Command] = []
        spec = self.spec
        deadline_s = spec.resources.report_deadline_s
        limit_s = spec.budget.per_trial.time_limit_s
        for live in list(self.live.values()):
            overdue = live.overdue(now, deadline_s, limit_s)
            if overdue is not None:
                commands += self._fail_overdue(live, overdue, now)
            elif live.stopping is None and self._has_outgrown(live, now):
                stop = self._attempts.stop(live, "the study's budget is used up")
                commands.append(stop)
        return commands

    def _fail_overdue(self, live: Live, why: str, now: float) -> list[ev.Command]:
        attempt = live.attempt
        trial = self.history.trials[attempt.trial]
        key = attempt.trial, attempt.number
        commands = self._on_current(live, trial, ev.Failed(*key, ErrorKind.TIMEOUT, why), now)
        return [*commands, ev.Stop(*key)]

    def _has_outgrown(self, live: Live, now: float) -> bool:
        """Whether an attempt has used its reservation, and no more could be reserved."""
        return self.spending.outgrown(live.attempt, now, live.slot.gpus)

    def _fill_slots(self, now: float) -> list[ev.Command]:
        """Give free slots work; if there is none and nothing runs, the study ends."""
        commands: list[ev.Command] = []
        free = self._attempts.free_slots()
        last_call = self._searching() == 0
        for slot in free:
            if self.ending is not None or self._disk.waits(now):
                break
            room = self._headroom(slot, now)
            running = self._searching()
            work = self._agenda.next(now, room, running=running, last_call=last_call)
            if work is None:
                break
            commands.append(self._launch(work, slot, now))
        if free and not self.live:
            self._notice_end(now)
        return commands

    def _notice_end(self, now: float) -> None:
        """End the study, in which nothing runs, unless it waits for room on its disk."""
        if self.ending is None and not self._disk.waits(now):
            self.ending = self._agenda.why_empty()

    def _searching(self) -> int:
        """How many trials of the search run."""
        trials = self.history.trials
        return sum(trials[number].role is not Role.CONFIRM for number in self.live)

    def _headroom(self, slot: Slot, now: float) -> Headroom:
        """What a slot may still begin, less what is kept back for repeats to come."""
        left = self._time.left(now)
        kept = self._confirmation.to_come * self._total
        start_up = self.spending.start_up(is_warm=slot.is_warm)
        return Headroom(
            self.spending, slot.gpus, len(self.slots), self._time.limit_s, left, kept, start_up
        )

    def _launch(self, work: Work, slot: Slot, now: float) -> ev.Command:
        """Start an attempt on a slot; its worst case has been found to be affordable."""
        trial = work.trial
        searcher = self._searcher
        until = searcher.until(trial)
        stretch = searcher.stretch(trial)
        order = self._attempts.launch(trial, slot, until, stretch, now)
        self._log.decide(trial, work.kind, work.why, now, work.against)
        searcher.continues(trial)
        if trial.started is None:
            trial.started = now
        self._log.move(trial, State.RUNNING)
        return order

    def _drop_checkpoints(self, now: float) -> None:
        """Drop the checkpoints that are not kept.

        A paused trial cannot continue without its own, and is pruned.
        """
        for dropped in self._retention.drop():
            trial = dropped.trial
            if dropped.for_room:
                self._log.decide(trial, DecisionKind.DROP, dropped.why, now)
            if trial.state is State.PAUSED:
                self._prune_waiting(trial, dropped.why, now)

    def _prune_waiting(self, trial: Trial, why: str, now: float) -> None:
        """End a trial that waits at a rung."""
        self._searcher.stops(trial)
        self._log.move(trial, State.PRUNED, ended=now)
        self._log.decide(trial, DecisionKind.PRUNE, why, now)
