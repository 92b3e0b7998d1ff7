"""The brain of a study: events in, changed records and commands out. No clock, no cluster, no SQL.

The driver calls it in a loop. `on_event` handles what an executor reports; `on_tick` gives free
slots work and watches the limits. Both change the records of the `History` and return commands,
which the driver carries out once those records are in the database. Time is an argument, in seconds
since the epoch. Randomness is derived, by the searcher.

The path of one report:

 1. The driver calls `Study.on_event` with a `Reported` (`hpsearch.running.executors.worker` tells
 how it gets there).
 2. `on_event` finds the current attempt. `AttemptEvents` checks that the report has all its
 metrics, and adds it to the history.
 3. `Agenda.update_phase` moves the study's phase (`domain.phase`) by what is left of the budget.
 4. `Searcher.assess` says, in that phase, what the report is worth and what its trial does.
 5. `TrialLog` makes it the trial's value if it is its best so far, and records the decision where
 the trial stops or was compared with others.
 6. To go on, `Agenda.reserve` sets the cost of the next stretch aside, and `Attempts` takes the
 command `Advance`; a trial that pauses, or whose stretch is not left in the budget, gets `Stop`.
 Between rungs and at the full budget there is no command: the worker knows where it ends.
 7. `Study.on_tick` stops what must not go on, and gives free slots their next work.
 8. The driver hands all touched records to `store`: one commit. Then it executes the commands.

Events of an attempt that is not current change nothing but three things: its slot is free, findings
about its health are kept, and the last event of a paused or pruned trial may name a checkpoint that
it was still writing.

The death of a worker: `SlotDown` becomes a `Lost` of its attempt. `AttemptEvents` has it charged
(`Attempts.end`), and queues its trial, sets the node aside, or gives the trial up.

A resume is told in `hpsearch.running.study_run.on_ray`.

The states of a trial are in `domain.lifecycle`. Trials that are asked for (`hpsearch.asking`) call
the same methods, without a driver. The package `hpsearch.brain` lists the parts that are joined
here.
"""

import math
from collections.abc import Collection, Mapping
from typing import Any

from hpsearch.brain.agenda import Agenda, Work, first_configurations
from hpsearch.brain.attempt_events import AttemptEvents
from hpsearch.brain.attempts import CurrentAttempt, Slot, latest_time_on_record
from hpsearch.brain.budget.headroom import Headroom
from hpsearch.brain.budget.ledger import Key
from hpsearch.brain.context import Context
from hpsearch.brain.requests import Requests
from hpsearch.brain.retention import Retention
from hpsearch.domain import events as ev
from hpsearch.domain.facts import DecisionKind, Interruption
from hpsearch.domain.history import History
from hpsearch.domain.lifecycle import State
from hpsearch.domain.phase import Phase
from hpsearch.domain.records import Outcome, Request, StudyState
from hpsearch.search.searcher import Searcher
from hpsearch.search.time_left import TimeLeft
from hpsearch.study_file.models import StudySpec

WATCH_EVERY_S = 1.0  # seconds between two looks for attempts that are overdue
EXPECT_EVERY_S = 5.0  # seconds between two records of what is expected of trials


class Study:
    """One study being driven.

    Args:
        spec: The study file.
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
        self._context = context = Context(spec, history, searcher)
        self.history = history
        self.spending = context.spending
        self._agenda = Agenda(context, first_configurations(spec, history, defaults))
        self._events = AttemptEvents(context, self._agenda)
        self._requests = Requests(context, self._agenda)
        self._retention = Retention(spec, history)
        self._expected_at = self._watched_at = -math.inf
        """The times at which expectations were last recorded, and attempts last looked at."""

    # --------------------------------------------------------------------------------------- events

    def on_event(self, event: ev.Event, now: float) -> list[ev.Command]:
        """Turn one event into changes of the records, and return the commands that follow."""
        match event:
            case ev.SlotUp():
                self._context.attempts.add_slot(event, now)
            case ev.SlotDown():
                lost = self._context.attempts.drop_slot(event.slot, now)
                if lost is not None:
                    self._on_attempt(ev.Lost(*lost, event.why), now)
            case ev.Answered():
                if event.slot in self.slots:
                    self.slots[event.slot].answered = now
            case _:
                self._on_attempt(event, now)
        return self._context.attempts.commands()

    def _on_attempt(self, event: ev.AttemptEvent, now: float) -> None:
        if isinstance(event, ev.Finished | ev.Stopped | ev.Failed | ev.Lost):
            self._context.attempts.leave_slot((event.trial, event.attempt))
        if isinstance(event, ev.Finished | ev.Stopped | ev.Failed):
            self._context.log.keep_findings(event)
        running = self._context.attempts.current(event.trial, event.attempt)
        if running is not None:
            running.last_event = now
            self._events.handle(running, event, now)
        elif isinstance(event, ev.Stopped):
            self._context.log.keep_last_checkpoint(event)

    # ---------------------------------------------------------------------------------------- ticks

    def on_tick(self, now: float) -> list[ev.Command]:
        """Watch the limits, give free slots work, and notice the end."""
        self.spending.time.note(now)
        self._watch_study(now)
        self._watch_attempts(now)
        self._fill_slots(now)
        if self.finished or now - self._expected_at >= EXPECT_EVERY_S:
            self._expected_at = now
            self._context.note_expectations()
        self._context.next_hours.look(now)
        self._drop_checkpoints(now)
        return self._context.attempts.commands()

    def _watch_study(self, now: float) -> None:
        """End the study when its time is used up, and stop what runs when it leaves; but a trial
        that is trained in full may be measured again as long as there is time."""
        is_late = self.spending.time.is_used(now)
        if is_late:
            self._context.progress.end("its wall-clock time is used up")
        if not self.phase.winds_down:
            return
        spares = self.phase is Phase.ENDING and not is_late
        for number, running in list(self.running.items()):
            if not (spares and self._context.attempts.is_trained(self.history.trials[number])):
                self._context.attempts.save_and_stop(running, self.reason or "")

    def _watch_attempts(self, now: float) -> None:
        """Fail what is overdue, and stop what has outgrown its reservation. Where nothing is
        reserved they are looked at once a second."""
        is_soon = now - self._watched_at < WATCH_EVERY_S
        if is_soon and not self.spending.ledger.is_limited:
            return
        self._watched_at = now
        deadline_s = self.spec.resources.report_deadline_s
        limit_s = self.spec.budget.per_trial.time_limit_s
        for running in list(self.running.values()):
            overdue = running.overdue(now, deadline_s, limit_s)
            if overdue is not None:
                self._events.time_out(running, overdue, now)
            elif running.stopping is None and not self._reserve_more(running, now):
                self._context.attempts.save_and_stop(running, "the study's budget is used up")

    def _reserve_more(self, running: CurrentAttempt, now: float) -> bool:
        is_outgrown = self.spending.is_outgrown(running.attempt, now, running.rate)
        return not is_outgrown or self.spending.extend(running.attempt)

    def _fill_slots(self, now: float) -> None:
        if self.phase.winds_down or self.waits_for_disk(now):
            return
        free = self._context.nodes.free_slots(now)
        search_is_idle = self._search_trials_running == 0
        for slot in free:
            headroom = self._agenda.headroom(slot, now, search_is_idle=search_is_idle)
            work = self._agenda.next(headroom, self._search_trials_running)
            if work is None:
                break
            self._launch(work, slot, headroom, now)
        if free and not self.running:
            self._context.progress.end(self._agenda.why_no_work())

    @property
    def _search_trials_running(self) -> int:
        return sum(self.history.trials[number].role.of_search for number in self.running)

    def _launch(self, work: Work, slot: Slot, headroom: Headroom, now: float) -> None:
        trial = work.trial
        cost = headroom.cost(self._context.searcher.stretch(trial), trial)
        why, before = work.why, trial.version
        self._context.attempts.launch(trial, slot, self._context.searcher.until(trial), cost, now)
        if trial.version != before and trial.reports:
            why += f"; its reports so far are of version {before}, those to come of {trial.version}"
        self._context.log.decide(trial, work.kind, why, now, work.against)
        self._context.searcher.resumed(trial)
        if trial.started is None:
            trial.started = now
        self._context.log.move(trial, State.RUNNING)

    def _drop_checkpoints(self, now: float) -> None:
        """Drop the checkpoints that are not kept; a paused trial whose own goes is pruned."""
        for trial, why in self._retention.drop():
            if trial.state is State.PAUSED:
                self._context.searcher.ended(trial)
                self._context.log.move(trial, State.PRUNED, ended=now)
                self._context.log.decide(trial, DecisionKind.PRUNE, why, now)
            elif why:
                self._context.log.decide(trial, DecisionKind.DROP, why, now)

    # ------------------------------------------------------------------------------------ beginning

    def begin(self, now: float, last_seen: float | None = None) -> None:
        """Take over the study. What its last driver left running is charged until that one's last
        sign of life, or the last time on record, and queued."""
        history = self.history
        study = history.study
        self.spending.time.begin(now)
        study.state = StudyState.RUNNING
        study.reason = study.interruption = study.ended = None
        history.touch_study()
        if last_seen is None:
            last_seen = latest_time_on_record(history)
        self._queue_unfinished(last_seen, ())

    def join(self, now: float, last_seen: float, running: Collection[Key]) -> None:
        """Take part in a study that other processes work on too. The attempts in `running` stay
        current; others are charged until the last sign of life of any process, and queued."""
        self.spending.time.begin(now)
        self._queue_unfinished(last_seen, running)
        for trial in self.history.trials:
            if not trial.out_of_space:
                self._context.progress.end_at_target(trial)
        for trial in self.history.trials:
            if trial.error_kind is not None and trial.forgiven < len(trial.attempts):
                self._context.progress.failed(trial.error_kind, trial.error_text or "")

    def _queue_unfinished(self, last_seen: float, elsewhere: Collection[Key]) -> None:
        for trial in self.history.trials:
            is_running = trial.state is State.RUNNING
            if is_running and (trial.number, len(trial.attempts)) in elsewhere:
                self._context.attempts.adopt(trial, self._context.searcher.until(trial))
            elif self._context.attempts.end_unfinished(trial, last_seen):
                self._context.log.move(trial, State.QUEUED)
            if trial.out_of_space and trial.state in (State.QUEUED, State.PAUSED):
                self._context.log.move(trial, State.PRUNED, ended=last_seen)
                why = "the study's space does not have its configuration any more"
                self._context.log.decide(trial, DecisionKind.PRUNE, why, last_seen)
            if trial.state is State.QUEUED:
                self._agenda.put_back(trial)

    def driver_was_away(self, seconds: float) -> None:
        """Leave these seconds out of the silence of attempts: the driver was not listening."""
        for running in self.running.values():
            running.last_event += seconds
            running.away_s += seconds
            if running.reported is not None:
                running.reported += seconds

    # --------------------------------------------------------------------------------------- ending

    def interrupt(self, signal: str | None = None) -> None:
        """Have all save and stop at the next tick, as a signal of that name asks for it."""
        if signal in (None, "SIGINT"):
            self._context.progress.interrupt(Interruption.BY_HAND, "interrupted")
        else:
            self._context.progress.interrupt(Interruption.SIGNAL, f"told to end by {signal}")

    def abandon(self, now: float) -> None:
        """Count what was asked to stop as interrupted now, at its last checkpoint."""
        for number, running in list(self.running.items()):
            self._context.attempts.end(running, Outcome.INTERRUPTED, now, running.stopping)
            self._context.log.move(self.history.trials[number], State.QUEUED)

    def close(self, now: float) -> None:
        """Record how the study ended, once nothing runs any more."""
        assert not self.running, "a study is closed after its attempts have ended"
        history = self.history
        study = history.study
        study.active_seconds = self.active_s(now)
        study.ended = now
        study.reason = self.reason
        study.interruption = self._context.progress.interruption
        if self.phase is Phase.INTERRUPTED:
            study.state = StudyState.INTERRUPTED
        else:
            self._prune_waiting(now)
            self._drop_checkpoints(now)
            study.state = StudyState.FINISHED
            if all(trial.value is None for trial in history.trials):
                study.state = StudyState.FAILED
                study.reason = self._context.progress.failures or self.reason
            elif self._context.progress.gave_up:
                study.state = StudyState.FAILED
        history.touch_study()

    def _prune_waiting(self, now: float) -> None:
        for trial in self.history.trials:
            if trial.state not in (State.PAUSED, State.QUEUED):
                continue
            trial.left_as = trial.state
            self._context.log.move(trial, State.PRUNED, ended=now)
            self._context.log.decide(trial, DecisionKind.PRUNE, "the study ended without it", now)

    # ------------------------------------------------------------------------------------- requests

    def on_request(self, request: Request, now: float) -> list[ev.Command]:
        """Do what somebody asks of the study, or refuse it; the record says which."""
        self._requests.handle(request, now)
        return self._context.attempts.commands()

    # -------------------------------------------------------------------------------------- reading

    @property
    def spec(self) -> StudySpec:
        """The study file, with the budget that it has by now."""
        return self._context.spec

    @property
    def phase(self) -> Phase:
        return self._context.progress.phase

    @property
    def reason(self) -> str | None:
        """The reason why nothing starts any more; None while work may start."""
        return self._context.progress.reason

    @property
    def slots(self) -> Mapping[str, Slot]:
        """The workers, by name."""
        return self._context.attempts.slots

    @property
    def running(self) -> Mapping[int, CurrentAttempt]:
        """The current attempts, by the number of their trial."""
        return self._context.attempts.running

    @property
    def finished(self) -> bool:
        """True if nothing runs and nothing more will."""
        return self.phase.winds_down and not self.running

    def active_s(self, now: float) -> float:
        """Seconds that drivers have worked on the study, over all of them."""
        return self.spending.time.so_far(now)

    def seconds_left(self, now: float) -> float | None:
        """Seconds until the study ends; None where that cannot be known yet."""
        if self.phase.winds_down:
            return None
        devices = [slot.device for slot in self.slots.values()]
        left = TimeLeft(self.spec, self.history.trials, devices, paces=self.spending.paces)
        return left.seconds(self.active_s(now), now)

    def waits_for_disk(self, now: float) -> bool:
        """True if nothing starts at present because a checkpoint could not be written."""
        return self._context.progress.waits_for_disk(now)
