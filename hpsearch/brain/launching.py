"""The next work of free slots, launched."""

from __future__ import annotations

from hpsearch.brain.agenda.agenda import Agenda, Work
from hpsearch.brain.allowance import Allowance
from hpsearch.brain.attempts import Attempts, Slot
from hpsearch.brain.phase.progress import StudyProgress
from hpsearch.brain.trial_log import TrialLog
from hpsearch.domain.lifecycle import State
from hpsearch.domain.phase import Phase
from hpsearch.search.searcher import Searcher


class Launcher:
    """Gives the free slots of one study work.

    Args:
        searcher: Knows how far trials train before they are judged.
        attempts: What runs.
        log: Writes down what starts.
        agenda: The work.
        allowance: What slots may begin.
        progress: The study's phase.
    """

    def __init__(
        self,
        searcher: Searcher,
        attempts: Attempts,
        log: TrialLog,
        agenda: Agenda,
        allowance: Allowance,
        progress: StudyProgress,
    ) -> None:
        self._searcher = searcher
        self._attempts = attempts
        self._log = log
        self._agenda = agenda
        self._allowance = allowance
        self._progress = progress

    def fill_slots(self, now: float) -> None:
        """Give free slots work; if there is none and nothing runs, the study ends."""
        if not self._progress.may_start(now):
            return
        free = self._attempts.free_slots()
        last_call = self._allowance.running == 0
        for slot in free:
            room = self._allowance.headroom(slot, now, last_call=last_call)
            work = self._agenda.next(now, room)
            if work is None:
                break
            self._launch(work, slot, now)
        if free and not self._attempts.live:
            self._progress.leave(Phase.ENDING, self._agenda.why_empty())

    def _launch(self, work: Work, slot: Slot, now: float) -> None:
        """Start an attempt on a slot; its worst case has been found to be affordable."""
        trial = work.trial
        until = self._searcher.until(trial)
        stretch = self._searcher.stretch(trial)
        self._attempts.launch(trial, slot, until, stretch, now)
        self._log.decide(trial, work.kind, work.why, now, work.against)
        self._searcher.continues(trial)
        if trial.started is None:
            trial.started = now
        self._log.move(trial, State.RUNNING)
