"""Notes on a study file: valid requests that may not work as expected."""

from __future__ import annotations

from collections.abc import Iterator

from hpsearch.study_file.methods import PROMOTION
from hpsearch.study_file.models import StudySpec
from hpsearch.study_file.parameters import CategoricalParameter
from hpsearch.study_file.space import is_open
from trials.descriptions.builtin import BUILT_IN
from trials.descriptions.models import KEY


def advice(spec: StudySpec) -> list[str]:
    """Notes on a study file, a text each, with a remedy where there is one."""
    return [*code_that_runs(spec), *_advice(spec)]


def code_that_runs(spec: StudySpec) -> list[str]:
    """A note on models whose own code will run because the study file trusts it; empty for none."""
    is_trusted = spec.task.get(KEY) is True
    if spec.task["kind"] not in BUILT_IN or not is_trusted:
        return []
    models = _names(spec)
    if not models:
        return []
    where = "with your rights, here and on every worker"
    return [f"task.{KEY}: code that {', '.join(models)} may bring will run {where}"]


def _names(spec: StudySpec) -> list[str]:
    searched = spec.space.get("model")
    choices = searched.choices if isinstance(searched, CategoricalParameter) else ()
    named = dict.fromkeys([spec.task.get("model"), spec.settings.get("model"), *choices])
    return [name for name in named if isinstance(name, str) and name != "scratch"]


def _advice(spec: StudySpec) -> Iterator[str]:
    pruner = spec.search.pruner.kind
    if pruner in ("median", "percentile"):
        yield (
            f"search.pruner: {pruner} compares with finished trials only: trials that run before, "
            "such as the first one of every worker, are never pruned; "
            f"{PROMOTION} compares from the first rung on"
        )
    has_several = len(spec.objectives) > 1
    if has_several and pruner == PROMOTION:
        metric = spec.objective.metric
        yield (
            f"search.pruner: {PROMOTION} compares trials by the first objective ({metric}) only; "
            "none trains all of them in full"
        )
    if is_open(spec.task) and pruner == PROMOTION and not has_several:
        yield (
            "search.pruner: an objective has no checkpoints, so a paused trial that continues "
            "trains from the beginning, and is charged for it; to only end trials: pruner: "
            "successive_halving"
        )
