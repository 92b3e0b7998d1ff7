"""The events of current attempts: what they report and ask for, and how they end."""

from __future__ import annotations

from collections.abc import Sequence

from hpsearch.brain.agenda.agenda import Agenda
from hpsearch.brain.attempts import Attempts, Live
from hpsearch.brain.launching import Launcher
from hpsearch.brain.progress import StudyProgress
from hpsearch.brain.trial_log import TrialLog, lacking, not_finite, record_of
from hpsearch.domain import events as ev
from hpsearch.domain.facts import DecisionKind, ErrorKind
from hpsearch.domain.history import History
from hpsearch.domain.lifecycle import State
from hpsearch.domain.phase import Phase
from hpsearch.domain.records import Outcome, ReportRecord, Trial
from hpsearch.search.questions import Unanswerable
from hpsearch.search.rungs import Judgement, Verdict
from hpsearch.search.searcher import Assessment, Searcher
from hpsearch.study_file.models import StudySpec

DECISIONS = {
    State.COMPLETE: DecisionKind.FINISH,
    State.PRUNED: DecisionKind.PRUNE,
    State.PAUSED: DecisionKind.PAUSE,
}
"""The decision that puts a trial into a state."""

LastEvent = ev.Finished | ev.Stopped | ev.Failed | ev.Lost


class AttemptEvents:
    """Turns the events of one study's current attempts into changes of their trials."""

    def __init__(
        self,
        spec: StudySpec,
        history: History,
        searcher: Searcher,
        attempts: Attempts,
        agenda: Agenda,
        launcher: Launcher,
        log: TrialLog,
        progress: StudyProgress,
    ) -> None:
        self._spec = spec
        self._history = history
        self._searcher = searcher
        self._attempts = attempts
        self._agenda = agenda
        self._launcher = launcher
        self._log = log
        self._progress = progress

    def handle(self, live: Live, event: ev.AttemptEvent, now: float) -> None:
        """Handle an event of a current attempt."""
        trial = self._history.trials[event.trial]
        match event:
            case ev.Began():
                self._attempts.began(live, event)
            case ev.Reported():
                self._reported(live, trial, event, now)
            case ev.Asked():
                self._asked(live, trial, event, now)
            case ev.Noted():
                self._log.note(trial, event)
            case _:
                self._ended(live, trial, event, _end_of(live, event, now))

    # ------------------------------------------------------------------------------------- a report

    def _reported(self, live: Live, trial: Trial, event: ev.Reported, now: float) -> None:
        """Record and assess a report, and let its trial go on or end its attempt."""
        problem = lacking(self._spec, event)
        if problem is not None:
            self._stop_as_failed(live, trial, ErrorKind.ERROR, problem, now)
            return
        divergence = None if trial.value is None else not_finite(self._spec, event)
        report = self._record(live, trial, event, now)
        self._launcher.nodes.worked(live.slot)
        if divergence is not None:
            text = f"{divergence}, after finite values"
            self._stop_as_failed(live, trial, ErrorKind.DIVERGED, text, now)
            return
        self._agenda.follow(self._launcher.headroom(live.slot, now))
        assessment = self._searcher.assess(trial, report, self._progress.phase)
        self._log.value(trial, assessment.worth)
        self._progress.reported(trial)
        if report.resource >= self._spec.budget.per_trial.total:
            return
        if assessment.judgement.verdict is Verdict.CONTINUE:
            self._continue(live, trial, assessment, now)
        else:
            self._stop_training(live, trial, assessment.judgement, event, now)

    def _record(self, live: Live, trial: Trial, event: ev.Reported, now: float) -> ReportRecord:
        report = self._history.add_report(record_of(self._spec, event, now))
        self._attempts.reported(live, trial, event.resource, now)
        is_new = event.checkpoint not in (None, trial.checkpoint)
        saved_at = event.saved_at
        if saved_at is None and is_new:
            saved_at = event.resource
        self._log.saved(trial, event.checkpoint, saved_at)
        if is_new:
            self._progress.saved()
        self._log.keep(trial, event.best, event.held)
        return report

    def _continue(self, live: Live, trial: Trial, assessment: Assessment, now: float) -> None:
        """Let a trial continue to where it is next judged, if the budget allows it."""
        judgement = assessment.judgement
        if judgement.against:
            self._log.decide(trial, DecisionKind.CONTINUE, judgement.why, now, judgement.against)
        if trial.resource < live.until or live.stopping is not None:
            return
        if self._launcher.reserve(live, trial, assessment.stretch, now):
            self._attempts.advance(live, assessment.until)
        else:
            why = "the remaining budget is not enough to reach its next rung"
            self._attempts.save_and_stop(live, why)

    def _stop_training(
        self, live: Live, trial: Trial, judgement: Judgement, event: ev.Reported, now: float
    ) -> None:
        """End an attempt because others are ahead: its trial pauses at a rung, or is pruned."""
        state = State.PAUSED if judgement.verdict is Verdict.PAUSE else State.PRUNED
        self._conclude(live, trial, state, judgement.why, now, judgement.against)
        self._log.keep(trial, event.best, event.held)
        if event.resource >= live.until:
            # The worker waits for a command, so its slot is free as soon as it has this one.
            self._attempts.leave_slot((event.trial, event.attempt))
        self._attempts.send(ev.Stop(event.trial, event.attempt))

    # ----------------------------------------------------------------------------------- a question

    def _asked(self, live: Live, trial: Trial, event: ev.Asked, now: float) -> None:
        """Send a parameter's value: the one on record, or one that is drawn now. It is sent once
        the record has been committed, so that another attempt of the trial gets the same value."""
        try:
            value = self._searcher.questions.value_for(trial, event.name, event.distribution)
        except Unanswerable as problem:
            self._stop_as_failed(live, trial, ErrorKind.ERROR, str(problem), now)
        else:
            self._attempts.advance(live, live.until, {event.name: value})

    def _stop_as_failed(
        self, live: Live, trial: Trial, kind: ErrorKind, problem: str, now: float
    ) -> None:
        """Fail a trial by what its attempt has sent, and stop the attempt."""
        self._fail(live, trial, kind, problem, now)
        self._attempts.send(ev.Stop(trial.number, live.attempt.number))

    # --------------------------------------------------------------------------------------- an end

    def time_out(self, live: Live, why: str, now: float) -> None:
        """End an attempt that is overdue."""
        key = live.attempt.trial, live.attempt.number
        self.handle(live, ev.Failed(*key, ErrorKind.TIMEOUT, why), now)
        self._attempts.send(ev.Stop(*key))

    def _ended(self, live: Live, trial: Trial, event: LastEvent, now: float) -> None:
        """End an attempt by its last event: its trial has ended too, or waits for another one."""
        match event:
            case ev.Finished():
                self._finished(live, trial, event, now)
            case _ if self._attempts.is_trained(trial):
                why = event.text if isinstance(event, ev.Failed) else live.stopping or event.why
                self._conclude(live, trial, State.COMPLETE, f"budget used, and then: {why}", now)
                live.attempt.note = why
                self._log.keep(trial, None, None)
            case ev.Stopped():
                is_new = event.checkpoint not in (None, trial.checkpoint)
                self._log.saved(trial, event.checkpoint, live.resource if is_new else None)
                self._log.keep(trial, event.best, event.held)
                if event.signalled and not is_new and self._has_gained_nothing(live, trial):
                    self._lost(live, trial, event.why or "", now)
                    return
                self._attempts.end(live, Outcome.INTERRUPTED, now, live.stopping or event.why)
                self._requeue(trial)
            case ev.Failed(kind=ErrorKind.DISK_FULL):
                self._attempts.end(live, Outcome.INTERRUPTED, now, event.text)
                self._log.decide(trial, DecisionKind.RETRY, event.text, now)
                self._requeue(trial)
                self._progress.disk_full(event.text, now)
            case ev.Failed():
                self._fail(live, trial, event.kind, event.text, now)
            case ev.Lost():
                self._lost(live, trial, event.why, now)

    def _has_gained_nothing(self, live: Live, trial: Trial) -> bool:
        """True if an attempt that nobody asked to stop leaves its trial where it began: another one
        may end in the same way, again and again."""
        is_asked = live.stopping is not None or self._progress.phase is Phase.INTERRUPTED
        saved_at = trial.checkpoint_resource or 0.0
        return not is_asked and saved_at <= live.attempt.start_resource

    def _finished(self, live: Live, trial: Trial, event: ev.Finished, now: float) -> None:
        if trial.value is None and not event.pruned:
            error = ErrorKind.DIVERGED if trial.reports else ErrorKind.ERROR
            text = f"it ended without a finite {self._spec.objective.metric}"
            self._fail(live, trial, error, text, now)
            return
        state = State.PRUNED if event.pruned else State.COMPLETE
        self._conclude(live, trial, state, event.why, now)
        self._log.keep(trial, event.checkpoint, event.held)

    def _conclude(
        self,
        live: Live,
        trial: Trial,
        state: State,
        why: str,
        now: float,
        against: Sequence[int] = (),
    ) -> None:
        """End an attempt and make its trial complete, pruned or paused."""
        self._log.decide(trial, DECISIONS[state], why, now, against)
        self._attempts.end(live, Outcome(state.value), now)
        self._log.move(trial, state, ended=now if state.terminal else None)
        if state is State.COMPLETE:
            self._log.ends(trial)

    def _lost(self, live: Live, trial: Trial, why: str, now: float) -> None:
        """Let a trial whose worker died try again, up to `retries` times."""
        self._attempts.end(live, Outcome.LOST, now, why)
        if self._blames_node(live, trial, why, now):
            return
        counting = trial.attempts[trial.forgiven :]
        lost = sum(attempt.outcome is Outcome.LOST for attempt in counting)
        if lost > self._spec.resources.retries:
            text = f"lost {lost} workers, the last one: {why}"
            self._give_up(trial, ErrorKind.LOST, text, now)
            return
        self._log.decide(trial, DecisionKind.RETRY, why, now)
        self._requeue(trial)

    def _fail(self, live: Live, trial: Trial, kind: ErrorKind, text: str, now: float) -> None:
        """Fail a trial, for a reason that is the trial's own, or its node's."""
        self._attempts.end(live, Outcome.FAILED, now, text)
        if kind.of_configuration or not self._blames_node(live, trial, text, now):
            self._give_up(trial, kind, text, now)

    def _blames_node(self, live: Live, trial: Trial, text: str, now: float) -> bool:
        """Count a failure of a node. If that sets it aside, other nodes run the trials that failed
        there in a row, this one too."""
        row = self._launcher.nodes.failed(live.slot, trial, now)
        for each in {each.number: each for each in row}.values():
            each.forgiven = len(each.attempts)
            self._history.touch(each)
            if each.state is State.FAILED:
                self._progress.forgiven(each.error_kind or ErrorKind.ERROR)
                each.ended = each.error_kind = each.error_text = None
                self._requeue(each)
        if not row:
            return False
        why = f"node {live.slot.node} is set aside after {len(row)} failures there in a row: {text}"
        self._log.decide(trial, DecisionKind.ASIDE, why, now)
        self._requeue(trial)
        return True

    def _give_up(self, trial: Trial, kind: ErrorKind, text: str, now: float) -> None:
        """Fail a trial whose attempt has ended."""
        self._log.decide(trial, DecisionKind.FAIL, f"{kind}: {text}", now)
        trial.error_kind = kind
        trial.error_text = text
        self._log.expects(trial, None, None)
        self._log.move(trial, State.FAILED, ended=now)
        self._progress.failed(kind, text)

    def _requeue(self, trial: Trial) -> None:
        self._log.move(trial, State.QUEUED)
        self._agenda.put_back(trial)


def _end_of(live: Live, event: LastEvent, now: float) -> float:
    """The time at which an attempt has ended, by its worker: nobody may have listened then."""
    if isinstance(event, ev.Lost) or event.held_s is None:
        return now
    return min(now, live.attempt.started + event.held_s)
