"""One training step and one evaluation step of a built-in task, with its heaviest configuration."""

import math
from collections.abc import Callable, Mapping
from typing import Any

from hpsearch.errors import UserError
from hpsearch.running import loading
from hpsearch.running.study_run.workers import goal_of
from hpsearch.study_file import space
from hpsearch.study_file.levels import trial_budget
from hpsearch.study_file.models import StudySpec
from hpsearch.study_file.reading import refusal
from hpsearch.study_file.types import is_number
from trials.checkpoints.disk import drafts
from trials.contract import Rehearsed, Setup, TaskError
from trials.descriptions.builtin import describe
from trials.descriptions.models import KEY
from trials.devices.memory import keep_to_share
from trials.running.runner import failure_of

HEAVY = {"batch_size", "max_length", "max_target_length", "width", "depth", "lora_rank"}
"""Settings whose largest value takes the most memory or disk.

The rehearsal uses that value, so that what does not fit fails here and not later.
"""

COMPARED = 100
"""The random configurations that are compared where requirements limit the largest values."""


def rehearse(
    spec: StudySpec, name: str, device: str, note: Callable[[str], None]
) -> dict[str, float]:
    """Build the task and run one training step and one evaluation step; return what was measured,
    and print what the data make one notice. Of a trial on several processes, the part of one is
    trained.

    Raises:
        SpecError: The task refuses its part of the file.
        UserError: The step diverges, does not fit in memory, or fails in the user's own code.
    """
    gpus = spec.resources.gpu
    with drafts.temporary("hpsearch-check-") as folder:
        params, budget = heaviest(spec), trial_budget(spec)
        one = budget.each or budget
        setup = Setup(params, spec.seed, one, folder, device=device, goal=goal_of(spec))
        if isinstance(gpus, float | int) and gpus > 0:
            keep_to_share(device, gpus)
        try:
            task = loading.load(spec.task, spec.base)
            assert isinstance(task, Rehearsed), "every built-in task is"
            data = task.prepare(setup.params)
            for line in task.remarks(setup.params, data):
                note(f"{name}: {line}")
            return task.rehearse(setup, data)
        except TaskError as error:
            raise refusal(spec.text, name, error.problems) from error
        except Exception as error:
            failure = failure_of(error)
            if failure.kind == "error" and not spec.task.get(KEY):
                raise  # a bug of ours: it keeps its traceback
            hint = "lower max_length or eval_batch_size, or use a smaller model"
            is_full = failure.kind == "out_of_memory"
            message = f"the first step fails ({failure.kind}): {failure.text}"
            raise UserError(message, hint if is_full else None) from error


def heaviest(spec: StudySpec) -> dict[str, Any]:
    """The configuration of a study that takes the most memory."""
    table = describe(spec.task["kind"]).settings
    wanted = space.defaults(spec.space, table) or {}
    for name in spec.space.keys() & HEAVY:
        largest = space.largest_value(spec.space[name])
        if largest is not None:
            wanted[name] = largest
    monitor = {}
    if table and "monitor" in table:
        monitor["monitor"] = spec.objective.metric
    shared = space.largest(spec.space, spec.settings, table)
    searched = space.completed(spec.space, wanted, spec.requires)
    if spec.requires:  # the largest values may not go together
        others = [space.drawn(spec.space, spec.requires, seed) for seed in range(COMPARED)]
        searched = max([searched, *filter(None, others)], key=_weight)
    found = {**monitor, **shared, **spec.settings, **searched}
    if spec.resources.processes > 1 and table:
        whole = found.get("batch_size", table["batch_size"].default)
        found["batch_size"] = math.ceil(whole / spec.resources.processes)
    return found


def _weight(params: Mapping[str, Any]) -> float:
    heavy = [params[name] for name in params.keys() & HEAVY]
    return math.prod(value for value in heavy if is_number(value))
