"""The part of a study's budget that a slot may use now, and the work that is launched on it."""

from __future__ import annotations

from hpsearch.brain.agenda.agenda import Agenda, Work
from hpsearch.brain.agenda.confirmation import Confirmation
from hpsearch.brain.attempts import Attempts, Live, Slot
from hpsearch.brain.budget.headroom import Headroom
from hpsearch.brain.budget.spending import Spending
from hpsearch.brain.node_health import NodeHealth
from hpsearch.brain.progress import StudyProgress
from hpsearch.brain.trial_log import TrialLog
from hpsearch.domain.history import History
from hpsearch.domain.lifecycle import State
from hpsearch.domain.phase import Phase
from hpsearch.domain.records import Trial
from hpsearch.search.searcher import Searcher


class Launcher:
    """Gives the free slots of one study work, as far as its budget allows."""

    def __init__(
        self,
        history: History,
        searcher: Searcher,
        spending: Spending,
        confirmation: Confirmation,
        attempts: Attempts,
        agenda: Agenda,
        log: TrialLog,
        progress: StudyProgress,
    ) -> None:
        self._history = history
        self._searcher = searcher
        self._spending = spending
        self._confirmation = confirmation
        self._attempts = attempts
        self._agenda = agenda
        self._log = log
        self._progress = progress
        self.nodes = NodeHealth(attempts)

    @property
    def _running(self) -> int:
        """The number of trials of the search that run."""
        live = self._attempts.live
        return len(live) - sum(number in live for number in self._history.repeats)

    def headroom(self, slot: Slot, now: float, *, last_call: bool = False) -> Headroom:
        """The part of the budget for a slot, less what is kept back for repeats to come."""
        self._confirmation.refresh()
        return Headroom(
            self._spending,
            now,
            slot.gpus,
            len(self._attempts.slots),
            slot.device,
            kept=self._confirmation.to_come * self._spending.trial_total,
            start_up=self._spending.start_ups.next(is_warm=slot.is_warm),
            last_call=last_call,
        )

    def reserve(self, live: Live, trial: Trial, stretch: float, now: float) -> bool:
        """Reserve what the next stretch of an attempt may cost; False, and nothing changed, if the
        budget does not allow it."""
        room = self._confirmation.room_for(trial, self.headroom(live.slot, now).under_way())
        before_repeats = stretch if room.kept else 0.0
        if not room.affords(stretch, trial) or not room.in_time(before_repeats, trial):
            return False
        return self._attempts.reserve(live.attempt, stretch, live.slot, trial)

    def fill_slots(self, now: float) -> None:
        """Give free slots work; if there is none and nothing runs, the study ends."""
        if self._progress.phase.leaves or self._progress.waits_for_disk(now):
            return
        free = self.nodes.usable(self._attempts.free_slots(), now)
        last_call = self._running == 0
        for slot in free:
            room = self.headroom(slot, now, last_call=last_call)
            work = self._agenda.next(room, self._running)
            if work is None:
                break
            self._launch(work, slot, now)
        if free and not self._attempts.live:
            self._progress.leave(Phase.ENDING, self._agenda.why_empty())

    def _launch(self, work: Work, slot: Slot, now: float) -> None:
        """Start an attempt on a slot, whose worst case can be afforded."""
        trial = work.trial
        until = self._searcher.until(trial)
        stretch = self._searcher.stretch(trial)
        self._attempts.launch(trial, slot, until, stretch, now)
        self._log.decide(trial, work.kind, work.why, now, work.against)
        self._searcher.continues(trial)
        if trial.started is None:
            trial.started = now
        self._log.move(trial, State.RUNNING)
