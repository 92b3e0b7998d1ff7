"""A report or a question of an attempt, and the answer to it."""

from __future__ import annotations

from hpsearch.brain.agenda.agenda import Agenda
from hpsearch.brain.allowance import Allowance
from hpsearch.brain.attempts import Attempts, Live
from hpsearch.brain.endings import Endings
from hpsearch.brain.phase.progress import StudyProgress
from hpsearch.brain.trial_log import TrialLog, lacking, record_of
from hpsearch.domain import events as ev
from hpsearch.domain.facts import DecisionKind, ErrorKind
from hpsearch.domain.records import ReportRecord, Trial
from hpsearch.search.questions import Unanswerable
from hpsearch.search.rungs import Verdict
from hpsearch.search.searcher import Assessment, Searcher
from hpsearch.study_file.models import StudySpec


class Reports:
    """Answers the attempts of one study.

    Args:
        spec: The study file.
        searcher: Assesses reports, and draws the parameters that are asked for.
        attempts: What runs.
        log: Writes down what becomes of trials.
        agenda: Follows what is left of the budget before a report is assessed.
        allowance: What attempts may still cost.
        endings: Ends the attempts that go no further.
        progress: The study's phase.
    """

    def __init__(
        self,
        spec: StudySpec,
        searcher: Searcher,
        attempts: Attempts,
        log: TrialLog,
        agenda: Agenda,
        allowance: Allowance,
        endings: Endings,
        progress: StudyProgress,
    ) -> None:
        self._spec = spec
        self._searcher = searcher
        self._attempts = attempts
        self._log = log
        self._agenda = agenda
        self._allowance = allowance
        self._endings = endings
        self._progress = progress

    # ------------------------------------------------------------------------------------- a report

    def reported(self, live: Live, trial: Trial, event: ev.Reported, now: float) -> None:
        """Record and assess a report, and let its trial go on or leave it behind."""
        problem = lacking(self._spec, event)
        if problem is None and _is_before_its_beginning(trial, event.resource):
            problem = self._attempts.correct_beginning(live, trial, event.resource)
        if problem is not None:
            self._fail(live, trial, problem, now)
            return
        report = self._record(live, trial, event, now)
        room = self._allowance.headroom(live.slot, now)
        self._agenda.follow(room)
        answer = self._searcher.assess(trial, report, self._progress.phase)
        self._log.assessed(trial, answer)
        self._progress.reported(trial)
        if report.resource >= self._allowance.spending.total:
            return
        if answer.judgement.verdict is Verdict.CONTINUE:
            self._continue(live, trial, answer, now)
        else:
            self._leave_behind(live, trial, answer, event, now)

    def _record(self, live: Live, trial: Trial, event: ev.Reported, now: float) -> ReportRecord:
        """Record a report, with what it says about the trial's speed and checkpoints."""
        report = self._log.report(record_of(self._spec, event, now))
        resource = event.resource
        speed = live.speed_at(resource, now)
        if speed is not None:
            trial.speed = speed
            self._allowance.spending.saw(trial, live.attempt)
        trial.resource = max(trial.resource, resource)
        live.resource = max(live.resource, resource)
        checkpoint = event.checkpoint
        if checkpoint is not None and checkpoint != trial.checkpoint:
            trial.checkpoint = checkpoint
            self._progress.disk.saved()
        self._log.keep(trial, event.best, event.held)
        return report

    def _continue(self, live: Live, trial: Trial, answer: Assessment, now: float) -> None:
        """Let a trial continue to where it is next judged, if the budget allows it."""
        judgement = answer.judgement
        if judgement.against:
            self._log.decide(trial, DecisionKind.CONTINUE, judgement.why, now, judgement.against)
        if trial.resource < live.until or live.stopping is not None:
            return
        if self._allowance.reserve(live, trial, answer.stretch, now):
            self._attempts.advance(live, answer.until)
        else:
            why = "the remaining budget is not enough to reach its next rung"
            self._attempts.stop(live, why)

    def _leave_behind(
        self, live: Live, trial: Trial, answer: Assessment, event: ev.Reported, now: float
    ) -> None:
        """End the attempt of a trial that pauses or is pruned."""
        self._endings.leave_behind(live, trial, answer.judgement, now)
        self._log.keep(trial, event.best, event.held)
        if event.resource >= live.until:
            # The worker waits for a command, so its slot is free as soon as it has this one.
            self._attempts.leave_slot((event.trial, event.attempt))
        self._attempts.send(ev.Stop(event.trial, event.attempt))

    # ----------------------------------------------------------------------------------- a question

    def asked(self, live: Live, trial: Trial, event: ev.Asked, now: float) -> None:
        """Answer with a parameter's value: the one on record, or one that is drawn and recorded
        now.

        The answer goes out once the record has been committed, so that another attempt of the trial
        gets the same value.
        """
        try:
            value = self._searcher.questions.value_for(trial, event.name, event.distribution)
        except Unanswerable as problem:
            self._fail(live, trial, str(problem), now)
        else:
            self._attempts.advance(live, live.until, {event.name: value})

    def _fail(self, live: Live, trial: Trial, problem: str, now: float) -> None:
        """Fail a trial whose attempt waits for an answer."""
        self._endings.fail(live, trial, ErrorKind.ERROR, problem, now)
        self._attempts.send(ev.Stop(trial.number, live.attempt.number))


def _is_before_its_beginning(trial: Trial, reported: float) -> bool:
    """True for the first report of a trial that continues another one, if it is not beyond it."""
    at = trial.continues_at
    return at is not None and not trial.reports and reported <= at
