"""Past runs from a study in a storage of Optuna's."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from hpsearch.bridges.columns import Mapped
from hpsearch.bridges.optuna.storages import opened_study
from hpsearch.bridges.past_runs import Misfits, PastRun, PastRuns
from hpsearch.domain.lifecycle import State
from hpsearch.errors import UserError

if TYPE_CHECKING:
    import optuna
    from optuna.trial import FrozenTrial

_STATES = {
    "COMPLETE": State.COMPLETE,
    "PRUNED": State.PRUNED,
    "FAIL": State.FAILED,
    "RUNNING": State.RUNNING,
    "WAITING": State.QUEUED,
}


def read(source: str, mapped: Mapped, misfits: Misfits) -> PastRuns:
    """Past runs from a study of Optuna's. Nothing is written to its storage.

    Args:
        source: A database URL, or the path of a journal.
        mapped: Which study, which parameters to keep, and names for the objectives.
        misfits: Takes what does not fit.

    Raises:
        UserError: There is no such storage or study, or the options contradict it.
    """
    study, shown = opened_study(source, mapped.study)
    mapped = _measured(study, mapped)
    trials = study.get_trials(deepcopy=False)
    runs = [_run(trial, study.study_name, mapped, misfits) for trial in trials]
    found = PastRuns("Optuna", f"study {study.study_name} in {shown}", mapped.objectives, runs)
    if any("constraints" in trial.system_attrs for trial in trials):
        found.notes.append("the trials have constraints, which are not imported")
    return found


def objectives_of(study: optuna.study.Study) -> tuple[list[str], tuple[str, ...]]:
    """The names and directions of a study's objectives; usual names where it has none."""
    directions = tuple(direction.name.lower() for direction in study.directions)
    usual = ["value"] if len(directions) == 1 else [f"value_{i}" for i in range(len(directions))]
    return list(study.metric_names or usual), directions


def _measured(study: optuna.study.Study, mapped: Mapped) -> Mapped:
    """The mapping with the objectives of the study, where it names none."""
    names, directions = objectives_of(study)
    names = list(mapped.metric or names)
    if len(names) != len(directions):
        what = f"the study has {len(directions)} objectives, and {len(names)} are named"
        raise UserError(what, "give one --metric for each, in the study's order")
    if mapped.direction and mapped.direction != directions:
        what = f"the study's direction is {', '.join(directions)}"
        raise UserError(what, "leave --direction out")
    return replace(mapped, metric={name: name for name in names}, direction=directions)


def _run(trial: FrozenTrial, study: str, mapped: Mapped, misfits: Misfits) -> PastRun:
    place = f"study {study}, trial {trial.number}"
    run = PastRun(place, mapped.chosen(trial.params, place, None), _STATES[trial.state.name])
    run.distributions = mapped.chosen(trial.distributions, place, None)
    run.name = f"trial {trial.number}"
    first = next(iter(mapped.metric))
    steps = sorted(trial.intermediate_values.items())
    run.curve = {float(step): {first: float(value)} for step, value in steps}
    if run.state is State.COMPLETE:
        run.values = tuple(map(float, trial.values))
        if len(run.values) != len(mapped.metric):
            counts = f"{len(run.values)} values for {len(mapped.metric)} objectives"
            misfits.add(place, f"is complete with {counts}")
    reason = trial.system_attrs.get("fail_reason")
    run.error_text = None if reason is None else str(reason)
    began, ended = trial.datetime_start, trial.datetime_complete
    run.started = None if began is None else began.timestamp()
    run.ended = None if ended is None else ended.timestamp()
    return run
