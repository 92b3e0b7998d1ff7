"""The phase of a study, and the reasons for which it ends."""

import re
from collections import Counter

from hpsearch.domain.facts import ErrorKind, Interruption, Role
from hpsearch.domain.history import History
from hpsearch.domain.lifecycle import State
from hpsearch.domain.phase import MOVES, Phase
from hpsearch.domain.records import IN_FULL, Trial
from hpsearch.study_file.models import StudySpec
from trials.contract import ROUNDS

PATIENCE = {ErrorKind.ERROR: 3, ErrorKind.LOST: 3}
"""The number of failures of one kind, and of no other, after which a study gives up."""
PATIENCE_OTHERWISE = 10  # the same for kinds that are facts about a region of the space
VARIES = re.compile(r"0x[0-9a-f]+|[^\s'\"]*/[^\s'\"]*|\d[\d.,e+-]*", re.IGNORECASE)
"""The parts in which two texts of one failure differ: addresses, paths and numbers."""
DISK_PAUSE_S = 10.0  # seconds in which nothing starts after a checkpoint could not be written
ENDED_WELL = (State.COMPLETE, State.PAUSED, State.PRUNED)


class StudyProgress:
    """The phase of one study, and what its trials have in common that ends it."""

    def __init__(self, spec: StudySpec, history: History) -> None:
        self.phase = Phase.SEARCHING
        self.reason: str | None = None
        """The reason why nothing starts any more; None while work may start."""
        self.interruption: Interruption | None = None
        """What has interrupted the study; None if nothing has."""
        self.gave_up = False
        self._objective = spec.objective
        self._target = spec.budget.target
        self._total = spec.budget.per_trial.total
        self._is_mean = spec.budget.per_trial.unit in ROUNDS
        trials = history.trials
        self._has_reported = any(trial.reports for trial in trials)
        self._has_ended = any(trial.state in ENDED_WELL for trial in trials)
        self._failures: Counter[ErrorKind] = Counter()
        self._latest_failure: dict[ErrorKind, str] = {}
        self._row: tuple[ErrorKind, str] | None = None
        """The failure of the latest trials that ended, without what varies; None after others."""
        self._in_row = 0
        self._disk_patience_s = spec.resources.disk_patience_s
        self._disk_full_since: float | None = None
        self._disk_pause_until = 0.0

    def move(self, to: Phase) -> None:
        """Go on with another phase of the search; nothing happens if it is this one."""
        if to is not self.phase:
            self.phase = MOVES.move(self.phase, to)

    def end(self, why: str) -> None:
        """Start nothing from now on: the study ends, unless it does so for another reason."""
        if not self.phase.winds_down:
            self.phase = MOVES.move(self.phase, Phase.ENDING)
            self.reason = why

    def interrupt(self, by: Interruption, why: str) -> None:
        """Start nothing from now on: the study can be resumed. The first interruption counts."""
        if self.phase is not Phase.INTERRUPTED:
            self.phase = MOVES.move(self.phase, Phase.INTERRUPTED)
            self.reason, self.interruption = why, by

    # ----------------------------------------------------------------------------- trials at work

    def reported(self, trial: Trial) -> None:
        """Note that a trial has reported: later failures have reasons of their own."""
        self._has_reported = True
        self.end_at_target(trial)

    def end_at_target(self, trial: Trial) -> None:
        """End the study at its target, but not before the end of a trial wanted in full, nor of one
        whose value is a mean over folds or seeds."""
        value = trial.value
        if trial.role is Role.REVISION:
            return
        in_full = self._is_mean or IN_FULL in trial.system_attrs
        if in_full and trial.resource < self._total:
            return
        if self._target is None or value is None or trial.violation > 0:
            return
        if self._objective.sign * (value - self._target) <= 0:
            why = f"trial {trial.number} reached the target with {value:g}"
            self.end(why)

    def failed(self, kind: ErrorKind, text: str) -> None:
        """Count a failure: the study gives up if all fail like this before any has reported, or
        fail in the same words, one after another, after they have."""
        self._failures[kind] += 1
        self._latest_failure[kind] = text
        enough = self._failures[kind] >= PATIENCE.get(kind, PATIENCE_OTHERWISE)
        if enough and len(self._failures) == 1 and not self._has_reported:
            self.end(self.failures or "")
        same = kind, VARIES.sub("#", text)
        self._in_row = self._in_row + 1 if same == self._row else 1
        self._row = same
        is_same = kind is ErrorKind.ERROR and self._in_row >= PATIENCE[kind]
        if is_same and not self._has_ended:
            why = f"{self._in_row} trials in a row failed the same way ({kind}): {text}"
            self.gave_up = True
            self.end(why)

    def ended_well(self) -> None:
        """Note that a trial is complete, or waits or ends at a rung: not all fail."""
        self._has_ended = True

    def forgiven(self, kind: ErrorKind) -> None:
        """Count a failure no more: its node was the reason."""
        self._row, self._in_row = None, 0
        self._failures[kind] -= 1
        self._failures += Counter()  # without those that are 0

    @property
    def failures(self) -> str | None:
        """The most frequent failure, in a sentence; None if nothing failed."""
        if not self._failures:
            return None
        [(kind, count)] = self._failures.most_common(1)
        trials = "trial" if count == 1 else "trials"
        return f"{count} {trials} failed the same way ({kind}): {self._latest_failure[kind]}"

    # ------------------------------------------------------------------------------- a full disk

    def disk_full(self, text: str, now: float) -> None:
        """Pause because no checkpoint can be written; interrupt the study if that lasts long."""
        if self._disk_full_since is None:
            self._disk_full_since = now
        self._disk_pause_until = now + DISK_PAUSE_S
        if now - self._disk_full_since > self._disk_patience_s:
            why = f"checkpoints cannot be written: {text}; make room and resume"
            self.interrupt(Interruption.DISK_FULL, why)

    def saved(self) -> None:
        self._disk_full_since = None

    def waits_for_disk(self, now: float) -> bool:
        """True if nothing starts at present because a checkpoint could not be written."""
        return now < self._disk_pause_until
