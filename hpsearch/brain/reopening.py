"""A study that continues after its end: its waiting trials wait again.

Trials that were pruned only because the study ended without them go back to where they were, those
at a rung if their checkpoint is still there. Those that a pruner stopped have had their turn.

In a study that gave up no trial worked: they failed because of the code, the data or the machines.
A resume assumes that this was corrected, so they take their turn again, except where the
configuration itself was the reason: one that diverged or was too large would do so again. Workers
that were lost until then count against no trial.
"""

from __future__ import annotations

from hpsearch.domain.history import History
from hpsearch.domain.lifecycle import MOVES, State
from hpsearch.domain.records import StudyState, Trial


def reopen(history: History) -> None:
    """Let trials of a study that finished or gave up wait again; no other study changes."""
    study = history.study
    gave_up = study.state is StudyState.FAILED
    if not gave_up and study.state is not StudyState.FINISHED:
        return
    for trial in history.trials:
        to = _back_to(trial, gave_up)
        if gave_up and (to is not None or trial.state is State.FAILED):
            trial.forgiven = len(trial.attempts)
            history.touch(trial)
        if to is not None:
            trial.left_as = None
            trial.state = MOVES.move(trial.state, to)
            trial.ended = None
            trial.error_kind = None
            trial.error_text = None
            history.touch(trial)
    if gave_up and study.race is not None:
        study.race = None
        history.touch_study()


def _back_to(trial: Trial, gave_up: bool) -> State | None:
    """The state in which a trial waits once its study continues; None if it has had its turn."""
    if trial.state is State.FAILED and gave_up:
        kind = trial.error_kind
        return None if kind is not None and kind.of_configuration else State.QUEUED
    if trial.state is not State.PRUNED:
        return None
    if trial.left_as is State.PAUSED and trial.checkpoint is None:
        return None
    return trial.left_as
