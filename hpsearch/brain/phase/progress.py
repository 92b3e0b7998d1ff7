"""The phase of a study, and what makes the study end."""

from __future__ import annotations

from hpsearch.brain.phase.giving_up import DiskWatch, FailureWatch
from hpsearch.domain.facts import ErrorKind
from hpsearch.domain.phase import MOVES, Phase
from hpsearch.domain.records import Trial
from hpsearch.study_file.models import StudySpec


class StudyProgress:
    """The phase of one study while it is driven.

    Args:
        spec: The study file.
        phase: The phase in which its driver takes it up.
        worked: True if a trial has already reported, under an earlier driver.
    """

    def __init__(self, spec: StudySpec, phase: Phase, worked: bool) -> None:
        self.phase = phase
        self.reason: str | None = None
        """Why nothing starts any more; None while work may start."""
        self.failures = FailureWatch(worked)
        self.disk = DiskWatch(spec.resources.disk_patience_s)
        self._target = spec.budget.target
        self._sign = spec.objective.sign

    def move(self, to: Phase) -> None:
        """Go on with another phase of the search; nothing happens if it is this one."""
        if to is not self.phase:
            self.phase = MOVES.move(self.phase, to)

    def leave(self, to: Phase, why: str) -> None:
        """Start nothing from now on.

        The first reason stays, except that a study that ends may still be interrupted.

        Args:
            to: ENDING or INTERRUPTED.
            why: The reason.
        """
        if self.phase is not to and self.phase is not Phase.INTERRUPTED:
            self.phase = MOVES.move(self.phase, to)
            self.reason = why

    def may_start(self, now: float) -> bool:
        """True if the study neither ends nor waits for room on its disk."""
        return not self.phase.leaves and not self.disk.waits(now)

    def reported(self, trial: Trial) -> None:
        """A trial has reported, and has its value: the study ends if that reaches the target."""
        self.failures.worked()
        self.end_at_target(trial)

    def end_at_target(self, trial: Trial) -> None:
        """End the study if the value of a trial reaches the target."""
        value = trial.value
        if self._target is None or value is None or trial.violation > 0:
            return
        if self._sign * (value - self._target) <= 0:
            why = f"trial {trial.number} reached the target with {value:g}"
            self.leave(Phase.ENDING, why)

    def failed(self, kind: ErrorKind, text: str) -> None:
        """A trial has failed: the study ends if all fail like this."""
        self.failures.failed(kind, text)
        hopeless = self.failures.hopeless()
        if hopeless is not None:
            self.leave(Phase.ENDING, hopeless)

    def disk_full(self, text: str, now: float) -> None:
        """A checkpoint could not be written: the study is interrupted if that lasts too long."""
        self.disk.full(now)
        if self.disk.hopeless(now):
            why = f"checkpoints cannot be written: {text}; make room and resume"
            self.leave(Phase.INTERRUPTED, why)
