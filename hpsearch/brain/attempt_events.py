"""The events of running attempts: what they report and ask for, and how they end."""

from collections.abc import Sequence
from dataclasses import dataclass

from hpsearch.brain.agenda import Agenda
from hpsearch.brain.attempts import CurrentAttempt
from hpsearch.brain.context import Context
from hpsearch.brain.trial_log import missing_metrics, not_finite, record_of
from hpsearch.domain import events as ev
from hpsearch.domain.facts import DecisionKind, ErrorKind, Role
from hpsearch.domain.lifecycle import State
from hpsearch.domain.phase import Phase
from hpsearch.domain.records import Outcome, Trial
from hpsearch.search.questions import Unanswerable
from hpsearch.search.rungs import Verdict
from hpsearch.search.searcher import Assessment

DECISIONS = {
    State.COMPLETE: DecisionKind.FINISH,
    State.PRUNED: DecisionKind.PRUNE,
    State.PAUSED: DecisionKind.PAUSE,
}
"""The decision that puts a trial into a state."""

LastEvent = ev.Finished | ev.Stopped | ev.Failed | ev.Lost


@dataclass(frozen=True)
class AttemptEvents:
    """Turns the events of one study's running attempts into changes of their trials."""

    context: Context
    agenda: Agenda

    def handle(self, running: CurrentAttempt, event: ev.AttemptEvent, now: float) -> None:
        trial = self.context.history.trials[event.trial]
        match event:
            case ev.Began():
                self.context.attempts.began(running, event)
            case ev.Reported():
                self._reported(running, trial, event, now)
            case ev.Queried():
                self._queried(running, trial, event, now)
            case ev.Noted():
                self.context.log.note(trial, event)
            case _:
                self._ended(running, trial, event, _end_of(running, event, now))

    # ------------------------------------------------------------------------------------- a report

    def _reported(
        self, running: CurrentAttempt, trial: Trial, event: ev.Reported, now: float
    ) -> None:
        problem = missing_metrics(self.context.spec, event)
        if problem is not None:
            self._stop_as_failed(running, trial, ErrorKind.ERROR, problem, now)
            return
        divergence = None if trial.value is None else not_finite(self.context.spec, event)
        report = self.context.history.add_report(record_of(self.context.spec, event, now))
        self.context.attempts.reported(running, trial, event.resource, now)
        self._saved(trial, event)
        self.context.nodes.worked(running.slot)
        if divergence is not None:
            text = f"{divergence}, after finite values"
            self._stop_as_failed(running, trial, ErrorKind.DIVERGED, text, now)
            return
        self.agenda.update_phase(self.agenda.headroom(running.slot, now))
        assessment = self.context.searcher.assess(trial, report, self.context.progress.phase)
        self.context.log.update_value(trial, assessment.worth)
        self.context.progress.reported(trial)
        if report.resource >= self.context.spec.budget.per_trial.total or event.is_last:
            return
        if assessment.judgement.verdict is Verdict.CONTINUE:
            self._continue(running, trial, assessment, now)
        else:
            self._stop_training(running, trial, assessment, event, now)

    def _saved(self, trial: Trial, event: ev.Reported) -> None:
        is_new = event.checkpoint not in (None, trial.checkpoint)
        saved_at = event.saved_at
        if saved_at is None and is_new:
            saved_at = event.resource
        self.context.log.note_checkpoint(trial, event.checkpoint, saved_at)
        if is_new:
            self.context.progress.saved()
        self.context.log.keep_checkpoints(trial, event.best, event.sizes)

    def _continue(
        self, running: CurrentAttempt, trial: Trial, assessment: Assessment, now: float
    ) -> None:
        judgement = assessment.judgement
        if judgement.against:
            self.context.log.decide(
                trial, DecisionKind.CONTINUE, judgement.why, now, judgement.against
            )
        if trial.resource < running.until or running.stopping is not None:
            return
        if self.agenda.reserve(running, trial, assessment.stretch, now):
            self.context.attempts.advance(running, assessment.until)
        else:
            why = "the remaining budget is not enough to reach its next rung"
            self.context.attempts.save_and_stop(running, why)

    def _stop_training(
        self,
        running: CurrentAttempt,
        trial: Trial,
        assessment: Assessment,
        event: ev.Reported,
        now: float,
    ) -> None:
        judgement = assessment.judgement
        state = State.PAUSED if judgement.verdict is Verdict.PAUSE else State.PRUNED
        self._conclude(running, trial, state, judgement.why, now, judgement.against)
        self.context.log.keep_checkpoints(trial, event.best, event.sizes)
        if event.resource >= running.until:
            # The worker waits for a command, so its slot is free as soon as it has this one.
            self.context.attempts.leave_slot(running.key)
        self.context.attempts.send(ev.Stop(*running.key))

    # ----------------------------------------------------------------------------------- a question

    def _queried(
        self, running: CurrentAttempt, trial: Trial, event: ev.Queried, now: float
    ) -> None:
        """Send a parameter's value: the one on record, or one that is drawn now. It is sent once
        the record has been committed, so that another attempt of the trial gets the same value."""
        try:
            value = self.context.searcher.questions.value_for(trial, event.name, event.distribution)
        except Unanswerable as problem:
            self._stop_as_failed(running, trial, ErrorKind.ERROR, str(problem), now)
        else:
            self.context.attempts.advance(running, running.until, {event.name: value})

    def _stop_as_failed(
        self, running: CurrentAttempt, trial: Trial, kind: ErrorKind, problem: str, now: float
    ) -> None:
        self._fail(running, trial, kind, problem, now)
        self.context.attempts.send(ev.Stop(*running.key))

    # --------------------------------------------------------------------------------------- an end

    def time_out(self, running: CurrentAttempt, why: str, now: float) -> None:
        self.handle(running, ev.Failed(*running.key, ErrorKind.TIMEOUT, why), now)
        self.context.attempts.send(ev.Stop(*running.key))

    def _ended(self, running: CurrentAttempt, trial: Trial, event: LastEvent, now: float) -> None:
        match event:
            case ev.Finished():
                self._finished(running, trial, event, now)
            case _ if self.context.attempts.is_trained(trial):
                why = event.text if isinstance(event, ev.Failed) else running.stopping or event.why
                what = f"budget used, and then: {why}"
                self._conclude(running, trial, State.COMPLETE, what, now)
                running.attempt.note = why
                self.context.log.keep_checkpoints(trial, None, None)
            case ev.Stopped():
                self._stopped(running, trial, event, now)
            case ev.Failed(kind=ErrorKind.DISK_FULL):
                self.context.attempts.end(running, Outcome.INTERRUPTED, now, event.text)
                self.context.log.decide(trial, DecisionKind.RETRY, event.text, now)
                self._requeue(trial)
                self.context.progress.disk_full(event.text, now)
            case ev.Failed(kind=ErrorKind.OUT_OF_MEMORY):
                self._out_of_memory(running, trial, event, now)
            case ev.Failed():
                self._fail(running, trial, event.kind, event.text, now)
            case ev.Lost():
                self._lost(running, trial, event.why, now)

    def _finished(
        self, running: CurrentAttempt, trial: Trial, event: ev.Finished, now: float
    ) -> None:
        if trial.value is None and not event.pruned:
            error = ErrorKind.DIVERGED if trial.reports else ErrorKind.ERROR
            text = f"it ended without a finite {self.context.spec.objective.metric}"
            self._fail(running, trial, error, text, now)
            return
        state = State.PRUNED if event.pruned else State.COMPLETE
        self._conclude(running, trial, state, event.why, now)
        self.context.log.keep_checkpoints(trial, event.checkpoint, event.sizes)

    def _stopped(
        self, running: CurrentAttempt, trial: Trial, event: ev.Stopped, now: float
    ) -> None:
        """Put a trial back into the queue. An attempt that nobody asked to stop, and that leaves
        its trial where it began, counts as lost: the next one may end in the same way."""
        is_new = event.checkpoint not in (None, trial.checkpoint)
        self.context.log.note_checkpoint(
            trial, event.checkpoint, running.resource if is_new else None
        )
        self.context.log.keep_checkpoints(trial, event.best, event.sizes)
        is_asked = running.stopping is not None or self.context.progress.phase is Phase.INTERRUPTED
        has_gained = is_new or (trial.checkpoint_resource or 0.0) > running.attempt.start_resource
        if event.signalled and not is_asked and not has_gained:
            self._lost(running, trial, event.why or "", now)
            return
        self.context.attempts.end(running, Outcome.INTERRUPTED, now, running.stopping or event.why)
        self._requeue(trial)

    def _conclude(
        self,
        running: CurrentAttempt,
        trial: Trial,
        state: State,
        why: str,
        now: float,
        against: Sequence[int] = (),
    ) -> None:
        self.context.progress.ended_well()
        self.context.log.decide(trial, DECISIONS[state], why, now, against)
        self.context.attempts.end(running, Outcome(state.value), now)
        self.context.log.move(trial, state, ended=now if state.terminal else None)
        if state is State.COMPLETE:
            self.context.log.expect_last_value(trial)

    def _lost(self, running: CurrentAttempt, trial: Trial, why: str, now: float) -> None:
        self.context.attempts.end(running, Outcome.LOST, now, why)
        if self._blames_node(running, trial, why, now):
            return
        counting = trial.attempts[trial.forgiven :]
        lost = sum(attempt.outcome is Outcome.LOST for attempt in counting)
        if lost > self.context.spec.resources.retries:
            text = f"lost {lost} workers, the last one: {why}"
            self._give_up(trial, ErrorKind.LOST, text, now)
            return
        self.context.log.decide(trial, DecisionKind.RETRY, why, now)
        self._requeue(trial)

    def _out_of_memory(
        self, running: CurrentAttempt, trial: Trial, event: ev.Failed, now: float
    ) -> None:
        """Let it begin again where fewer share a GPU, as often as it may be lost; else fail it."""
        counting = trial.attempts[trial.forgiven :]
        lost = sum(attempt.outcome is Outcome.LOST for attempt in counting)
        is_left = lost < self.context.spec.resources.retries
        note = self.context.attempts.share_with_fewer(running) if is_left else None
        if note is None:
            self.context.attempts.share_as_before(trial.number)
            self._fail(running, trial, event.kind, event.text, now)
            return
        why = f"{event.text}; {note}"
        self.context.attempts.end(running, Outcome.LOST, now, why)
        self.context.log.decide(trial, DecisionKind.RETRY, why, now)
        self._requeue(trial)

    def _fail(
        self, running: CurrentAttempt, trial: Trial, kind: ErrorKind, text: str, now: float
    ) -> None:
        self.context.attempts.end(running, Outcome.FAILED, now, text)
        is_own = kind.of_configuration or trial.role is Role.REVISION
        if is_own or not self._blames_node(running, trial, text, now):
            self._give_up(trial, kind, text, now)

    def _blames_node(self, running: CurrentAttempt, trial: Trial, text: str, now: float) -> bool:
        """Count a failure of a node; once it is set aside, others run what has failed there."""
        row = self.context.nodes.failed(running.slot, trial, now)
        for each in {each.number: each for each in row}.values():
            each.forgiven = len(each.attempts)
            self.context.history.touch(each)
            if each.state is State.FAILED:
                self.context.progress.forgiven(each.error_kind or ErrorKind.ERROR)
                each.ended = each.error_kind = each.error_text = None
                self._requeue(each)
        if not row:
            return False
        where = f"node {running.slot.node} is set aside"
        why = f"{where} after {len(row)} failures there in a row: {text}"
        self.context.log.decide(trial, DecisionKind.ASIDE, why, now)
        self._requeue(trial)
        return True

    def _give_up(self, trial: Trial, kind: ErrorKind, text: str, now: float) -> None:
        self.context.log.decide(trial, DecisionKind.FAIL, f"{kind}: {text}", now)
        trial.error_kind = kind
        trial.error_text = text
        self.context.log.note_expected(trial, None, None)
        self.context.log.move(trial, State.FAILED, ended=now)
        if trial.role is not Role.REVISION:
            self.context.progress.failed(kind, text)

    def _requeue(self, trial: Trial) -> None:
        self.context.log.move(trial, State.QUEUED)
        self.agenda.put_back(trial)


def _end_of(running: CurrentAttempt, event: LastEvent, now: float) -> float:
    """The time at which an attempt has ended, by its worker: nobody may have listened then."""
    if isinstance(event, ev.Lost) or event.held_s is None:
        return now
    return min(now, running.attempt.started + event.held_s)
