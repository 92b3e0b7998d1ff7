"""The configuration of the workers of a study."""

from pathlib import Path

from hpsearch.running import loading
from hpsearch.running.executors.worker_config import WorkerConfig
from hpsearch.study_file import space
from hpsearch.study_file.levels import trial_budget
from hpsearch.study_file.models import Objective, StudySpec
from hpsearch.study_file.reading import refusal
from trials.contract import Goal
from trials.descriptions.builtin import BUILT_IN, describe


def worker_config(spec: StudySpec, checkpoints: Path | str) -> WorkerConfig:
    """The configuration of every worker; `checkpoints` is the folder, absolute or a URL."""
    kind = spec.task["kind"]
    known = describe(kind).settings
    monitor = {}
    if "monitor" in (known or {}):
        monitor = {"monitor": spec.objective.metric}
    largest = space.largest(spec.space, spec.settings, known)
    return WorkerConfig(
        task=spec.task,
        base=str(spec.base.absolute()),
        settings={**monitor, **largest, **spec.settings},
        budget=trial_budget(spec),
        checkpoints=str(checkpoints),
        prepares=kind in BUILT_IN,
        threads=max(1, int(spec.resources.cpu)),
        goal=goal_of(spec),
        goals=tuple(map(_goal, spec.objectives)),
    )


def refuse_contradictions(spec: StudySpec, name: str) -> None:
    """Raise SpecError if the code, once inspected, states other directions than the file."""
    directions = [objective.direction for objective in spec.objectives]
    problems = loading.contradictions(spec.task, spec.base, directions)
    if problems:
        raise refusal(spec.text, name, problems)


def goal_of(spec: StudySpec) -> Goal:
    """The measure that compares the reports of a trial: the first objective."""
    return _goal(spec.objective)


def _goal(objective: Objective) -> Goal:
    return Goal(objective.metric, maximize=objective.direction == "maximize")
