"""What a pause costs, by what the attempts of a study have shown, and whether it pays.

A trial that pauses at a rung and goes on later needs another start: its worker begins an attempt,
the program starts, imports and reads its data. It trains again what its checkpoint does not keep,
which is all of it where nothing is kept, or where nothing is read back. A trial that runs on
instead trains up to the next rung, perhaps for nothing.

So a pause pays where its trial can go on from its checkpoint and the start takes at most `WORTH`
of the time to the next rung. Where it does not pay, no trial pauses: at each rung it goes on or is
stopped for good.
"""

from statistics import median

from hpsearch.domain.history import History
from hpsearch.domain.paces import own_pace
from hpsearch.domain.records import Trial

WORTH = 0.25
"""The most that a start may take, as a share of the training to the next rung."""
LATEST = 16  # the latest trials whose starts count
BEGAN_AGAIN = "began_again"
"""The name of the finding on an attempt that began from nothing though its trial was further."""


class Pausing:
    """What a pause costs in one study.

    Args:
        history: Its live records.
        wanted: True if its study file wants trials to pause, False if it wants them not to, None
            if that is to be found out.
    """

    def __init__(self, history: History, wanted: bool | None) -> None:
        self._history = history
        self._wanted = wanted
        self._looked_at = 0  # the clock of the history, when findings were last looked at
        self._has_begun_again = False

    def pays(self, trial: Trial, resource: float, until: float) -> bool:
        """True if a trial may pause at a resource rather than train up to the next rung."""
        if self._wanted is not None:
            return self._wanted
        if trial.was_asked:
            return True  # its program keeps what it needs, and is not ended
        kept = trial.checkpoint_resource
        if trial.checkpoint is None or self._begins_again():
            return False
        pace = own_pace(trial)
        start_s = self.start_s()
        if pace is None or start_s is None:
            return True
        repeated = 0.0 if kept is None else max(0.0, resource - kept)
        return start_s + repeated * pace <= WORTH * (until - resource) * pace

    def start_s(self) -> float | None:
        """The median time from a worker's order until the first step, in seconds, of attempts on
        workers that had trained before, or else of all; None before it is known."""
        latest = self._history.trials[-LATEST:]
        attempts = [attempt for trial in latest for attempt in trial.attempts]
        workers: set[str] = set()
        warm: list[float] = []
        cold: list[float] = []
        for attempt in sorted(attempts, key=lambda attempt: attempt.started):
            if attempt.start_up_seconds is not None:
                kind = warm if attempt.worker in workers else cold
                kind.append(attempt.start_up_seconds)
            workers.add(attempt.worker)
        known = warm or cold
        return median(known) if known else None

    def _begins_again(self) -> bool:
        """True if an attempt of the study has begun from nothing though its trial was further."""
        self._looked_at, changed = self._history.changed_since(self._looked_at)
        trials = (self._history.trials[number] for number in changed)
        names = (finding.name for trial in trials for finding in trial.findings)
        self._has_begun_again |= BEGAN_AGAIN in names
        return self._has_begun_again
