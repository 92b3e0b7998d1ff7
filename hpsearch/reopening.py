"""A finished study that is given more budget: what waited when it ended waits again.

Trials that were pruned only because the study ended without them go back to where they were, those at a rung if their
checkpoint is still there. Those that a pruner stopped have had their turn.
"""

from __future__ import annotations

from hpsearch.lifecycle import State, move
from hpsearch.records import History, StudyState, Trial

LEFT = "hpsearch:left"
"""System attribute of a trial that the study ended without: the state it was in."""


def leave(trial: Trial) -> None:
    """Remember where a trial waited that the study ends without."""
    trial.system_attrs[LEFT] = trial.state.value


def reopen(history: History) -> None:
    """Let trials of a finished study wait again; does nothing to any other study."""
    if history.study.state is not StudyState.FINISHED:
        return
    for trial in history.trials:
        left = trial.system_attrs.get(LEFT)
        if trial.state is not State.PRUNED or left is None:
            continue
        to = State(left)
        if to is State.PAUSED and trial.checkpoint is None:
            continue
        del trial.system_attrs[LEFT]
        trial.state, trial.ended = move(trial.state, to, f"trial {trial.number} at {trial.resource:g}"), None
        history.touch(trial)
