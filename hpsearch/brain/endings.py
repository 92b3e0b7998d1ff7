"""The end of an attempt, and what its trial does then: it ends, fails, or waits for another one."""

from __future__ import annotations

from hpsearch.brain.agenda.agenda import Agenda
from hpsearch.brain.attempts import Attempts, Live
from hpsearch.brain.phase.progress import StudyProgress
from hpsearch.brain.reopening import workers_lost
from hpsearch.brain.trial_log import TrialLog
from hpsearch.domain import events as ev
from hpsearch.domain.facts import DecisionKind, ErrorKind
from hpsearch.domain.history import History
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import Outcome, Trial
from hpsearch.search.rungs import Judgement, Verdict
from hpsearch.study_file.models import StudySpec

Ending = ev.Finished | ev.Stopped | ev.Failed | ev.Lost
"""The last event of an attempt."""


class Endings:
    """Ends the attempts of one study.

    Args:
        spec: The study file.
        history: The study's records.
        attempts: What runs.
        log: Writes down what becomes of trials.
        agenda: Takes back trials that wait for another attempt.
        progress: The study's phase, which ends if all trials fail.
    """

    def __init__(
        self,
        spec: StudySpec,
        history: History,
        attempts: Attempts,
        log: TrialLog,
        agenda: Agenda,
        progress: StudyProgress,
    ) -> None:
        self._spec = spec
        self._history = history
        self._attempts = attempts
        self._log = log
        self._agenda = agenda
        self._progress = progress

    def end(self, live: Live, event: Ending, now: float) -> None:
        """End a current attempt, by its last event."""
        trial = self._history.trials[event.trial]
        match event:
            case ev.Finished():
                self._finished(live, trial, event, now)
            case _ if self._attempts.is_trained(trial):
                why = event.text if isinstance(event, ev.Failed) else live.stopping or event.why
                self._log.decide(trial, DecisionKind.FINISH, f"budget used, and then: {why}", now)
                self._attempts.end(live, Outcome.COMPLETE, now, why)
                self._log.move(trial, State.COMPLETE, ended=now)
                self._log.keep(trial, None, None)
            case ev.Stopped():
                trial.checkpoint = event.checkpoint or trial.checkpoint
                self._log.keep(trial, event.best, event.held)
                self._attempts.end(live, Outcome.INTERRUPTED, now, live.stopping or event.why)
                self._requeue(trial)
            case ev.Failed(kind=ErrorKind.DISK_FULL):
                self._attempts.end(live, Outcome.INTERRUPTED, now, event.text)
                self._log.decide(trial, DecisionKind.RETRY, event.text, now)
                self._requeue(trial)
                self._progress.disk_full(event.text, now)
            case ev.Failed():
                self.fail(live, trial, event.kind, event.text, now)
            case ev.Lost():
                self._lost(live, trial, event.why, now)

    def fail(self, live: Live, trial: Trial, kind: ErrorKind, text: str, now: float) -> None:
        """Fail a trial, for a reason that is the trial's own."""
        self._attempts.end(live, Outcome.FAILED, now, text)
        self._give_up(trial, kind, text, now)

    def leave_behind(self, live: Live, trial: Trial, judgement: Judgement, now: float) -> None:
        """End an attempt because others are ahead: its trial pauses at a rung, or is pruned."""
        why, against = judgement.why, judgement.against
        if judgement.verdict is Verdict.PAUSE:
            self._log.decide(trial, DecisionKind.PAUSE, why, now, against)
            self._attempts.end(live, Outcome.PAUSED, now)
            self._log.move(trial, State.PAUSED)
        else:
            self._log.decide(trial, DecisionKind.PRUNE, why, now, against)
            self._attempts.end(live, Outcome.PRUNED, now)
            self._log.move(trial, State.PRUNED, ended=now)

    def _finished(self, live: Live, trial: Trial, event: ev.Finished, now: float) -> None:
        """Take in the result of a training that ended by itself."""
        if trial.value is None and not event.pruned:
            error = ErrorKind.DIVERGED if trial.reports else ErrorKind.ERROR
            text = f"it ended without a finite {self._spec.objective.metric}"
            self.fail(live, trial, error, text, now)
            return
        kind, outcome, state = DecisionKind.FINISH, Outcome.COMPLETE, State.COMPLETE
        if event.pruned:
            kind, outcome, state = DecisionKind.PRUNE, Outcome.PRUNED, State.PRUNED
        self._log.decide(trial, kind, event.why, now)
        self._attempts.end(live, outcome, now)
        self._log.move(trial, state, ended=now)
        self._log.keep(trial, event.checkpoint, event.held)

    def _lost(self, live: Live, trial: Trial, why: str, now: float) -> None:
        """Let a trial whose worker died try again, as often as the study file allows."""
        self._attempts.end(live, Outcome.LOST, now, why)
        lost = workers_lost(trial)
        if lost > self._spec.resources.retries:
            text = f"lost {lost} workers, the last one: {why}"
            self._give_up(trial, ErrorKind.LOST, text, now)
            return
        self._log.decide(trial, DecisionKind.RETRY, why, now)
        self._requeue(trial)

    def _give_up(self, trial: Trial, kind: ErrorKind, text: str, now: float) -> None:
        """Fail a trial whose attempt has ended."""
        self._log.decide(trial, DecisionKind.FAIL, f"{kind}: {text}", now)
        trial.error_kind = kind
        trial.error_text = text
        self._log.move(trial, State.FAILED, ended=now)
        self._progress.failed(kind, text)

    def _requeue(self, trial: Trial) -> None:
        self._log.move(trial, State.QUEUED)
        self._agenda.put_back(trial)
