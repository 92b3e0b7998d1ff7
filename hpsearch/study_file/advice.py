"""Notes on a study file: valid requests that may not work as expected."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from hpsearch.study_file import space
from hpsearch.study_file.methods import PROMOTION
from hpsearch.study_file.models import StudySpec
from hpsearch.study_file.parameters import CategoricalParameter
from hpsearch.study_file.validation import shown
from trials.descriptions.builtin import describe
from trials.descriptions.command import COMMAND, line_of


def advice(spec: StudySpec, further: int = 0, begun: int = 0) -> list[str]:
    """Notes on a study file, a text each, with a remedy where there is one. `further`
    configurations are tried beside those of the file, and `begun` trials have drawn theirs."""
    return [*_notes(spec), *_enqueued(spec, further, begun)]


def _dashes(spec: StudySpec) -> Iterator[str]:
    if spec.task.get("kind") != COMMAND.kind:
        return
    line = line_of(spec.task)
    values: dict[str, Sequence[Any]] = {name: [value] for name, value in spec.settings.items()}
    for name, parameter in spec.space.items():
        values[name] = parameter.choices if isinstance(parameter, CategoricalParameter) else ()
    for name, some in values.items():
        dashed = [value for value in some if isinstance(value, str) and value.startswith("-")]
        flag = line.flag_before(name)
        if dashed and flag is not None:
            yield (
                f"task.run: many programs take {shown(dashed[0])} after {flag} for another flag; "
                f"write {flag}={{{name}}}"
            )


def _enqueued(spec: StudySpec, further: int, begun: int) -> Iterator[str]:
    given, trials = len(spec.enqueue) + further, spec.budget.trials
    first = space.defaults(spec.space, describe(spec.task["kind"]).settings, spec.requires)
    others = begun + (first is not None)
    most = given + others
    if not given or trials is None or most < trials + (begun > 0):
        return
    beside = "" if first is None else " after the defaults"
    beside += f" beside {begun} other trials" if begun else ""
    what = f"enqueue: {given} configurations{beside}, and budget.trials is {trials}"
    if most == trials:
        yield f"{what}: nothing is left to search"
    else:
        yield f"{what}: the last {most - trials} are not tried; raise budget.trials to {most}"


def _notes(spec: StudySpec) -> Iterator[str]:
    yield from _dashes(spec)
    pruner = spec.search.pruner.kind
    if pruner in ("median", "percentile"):
        yield (
            f"search.pruner: {pruner} compares with finished trials only: trials that run before, "
            "such as the first one of every worker, are never pruned; "
            f"{PROMOTION} compares from the first rung on"
        )
    if space.is_open(spec.task) and pruner == PROMOTION and len(spec.objectives) == 1:
        yield (
            "search.pruner: an objective has no checkpoints, so a paused trial that continues "
            "trains from the beginning, and is charged for it; to only end trials: pruner: "
            "successive_halving"
        )
