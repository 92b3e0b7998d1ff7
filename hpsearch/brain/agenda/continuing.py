"""A trial that continues another one under other parameters: whether it can, and from where.

It begins with the newest checkpoint of the other trial: with its weights, and as far as that one
had trained. Its GPU time and its reports begin there. What it shows in the end is the result of two
trainings, one after the other, and not of its own parameters alone: it is never repeated, and what
hands it out says what it continues.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hpsearch.domain.history import History
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import Trial
from hpsearch.errors import UserError
from hpsearch.study_file.models import StudySpec
from trials.descriptions.builtin import describe


def refuse_to_continue(source: Trial, params: Mapping[str, Any], spec: StudySpec) -> None:
    """Make sure that a trial with these parameters can begin with the newest checkpoint of another.

    Raises:
        UserError: It cannot, as far as that is known before it is tried.
    """
    name = f"trial {source.number}"
    if source.was_asked:
        raise UserError(f"{name} is trained by a program that alone can read its checkpoints")
    if source.resource >= spec.budget.per_trial.total or source.state is State.COMPLETE:
        raise UserError(f"{name} has been trained in full: nothing is left to train")
    if source.state.terminal:
        raise UserError(f"{name} has ended ({source.state.value}) and cannot be continued")
    if source.checkpoint is None:
        raise UserError(f"{name} has saved no checkpoint that could be continued")
    known = describe(spec.task["kind"]).settings or {}
    shapes = [name for name, setting in known.items() if setting.shapes]
    changed = [each for each in shapes if params.get(each) != source.params.get(each)]
    if changed:
        names = ", ".join(changed)
        what = "the form of its model or of its data depends on that"
        raise UserError(f"{name} cannot be continued with another {names}: {what}")


def continue_trial(trial: Trial, source: Trial) -> None:
    """Let a new trial begin with the newest checkpoint of another one."""
    trial.continues = source.number
    trial.continues_at = source.resource
    trial.continues_with = source.checkpoint
    trial.resource = source.resource


def begun_at(history: History, trial: Trial, reported: float) -> float | None:
    """The resource at which a trial began that continues another one, by its first report.

    The checkpoint that it began with may be older than the last report of the other trial. None if
    it reports before anything that the other one has reported: it cannot have continued.
    """
    assert trial.continues is not None, "it continues another trial"
    source = history.trials[trial.continues]
    earlier = {*source.reports, source.continues_at or 0.0}
    return max((level for level in earlier if 0 < level < reported), default=None)
