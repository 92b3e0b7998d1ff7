"""Notes on a study file: valid requests that may not work as expected."""

from __future__ import annotations

from collections.abc import Iterator

from hpsearch.study_file.levels import PROMOTION
from hpsearch.study_file.methods import CURVE_GP, PRUNERS
from hpsearch.study_file.models import CategoricalParameter, Method, StudySpec, split_method
from hpsearch.study_file.space import is_open
from trials.descriptions.builtin import BUILT_IN
from trials.descriptions.models import KEY

STARTUP = 5
"""Finished trials that Optuna's median and percentile pruners wait for by default."""


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
    pruner = _innermost(spec.search.pruner)
    if PRUNERS.get(pruner.kind, pruner.kind) in ("MedianPruner", "PercentilePruner"):
        startup = max(1, pruner.arguments.get("n_startup_trials", STARTUP))
        enough = "" if startup == 1 else f" and needs {startup} of them"
        yield (
            f"search.pruner: {pruner.kind} compares with finished trials only{enough}: "
            "trials that run before that, such as the first one of every worker, are never pruned; "
            f"{PROMOTION} compares from the first rung on"
        )
    yield from _of_open_space(spec)
    metric = spec.objective.metric
    if len(spec.objectives) > 1 and pruner.kind == PROMOTION:
        yield (
            f"search.pruner: {PROMOTION} compares trials by the first objective ({metric}) only; "
            "none trains all of them in full"
        )
    if len(spec.objectives) > 1 and spec.budget.target is not None:
        yield f"budget.target: is a value of the first objective ({metric})"


def _of_open_space(spec: StudySpec) -> Iterator[str]:
    if not is_open(spec.task):
        return
    if spec.search.sampler.kind == CURVE_GP:
        yield (
            f"search.sampler: {CURVE_GP} draws the parameters that space names; Optuna's tpe draws "
            "those that only the objective names"
        )
    if spec.search.pruner.kind == PROMOTION and len(spec.objectives) == 1:
        yield (
            "search.pruner: an objective has no checkpoints, so a paused trial that continues "
            "trains from the beginning, and is charged for it; to only end trials: pruner: "
            "successive_halving"
        )


def _innermost(pruner: Method) -> Method:
    wrapped = pruner.arguments.get("wrapped_pruner")
    return pruner if wrapped is None else _innermost(Method.model_validate(split_method(wrapped)))
