"""What a study file may ask for that works otherwise than expected, or is to be known: notes, no errors."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from hpsearch.levels import PROMOTION
from hpsearch.methods import PRUNERS
from hpsearch.spec import CategoricalParameter, Method, StudySpec, split_method
from trials import tasks
from trials.tasks.pretrained import KEY, Pretrained, brings_code

STARTUP = 5
"""Finished trials that Optuna's median and percentile pruners wait for where they are not told."""


def advice(spec: StudySpec) -> list[str]:
    """Notes on a study file, each a finished sentence with its remedy."""
    return [*code_that_runs(spec), *_advice(spec)]


def code_that_runs(spec: StudySpec) -> list[str]:
    """Which models' own code will run, since the study file trusts them; empty for none."""
    if spec.task["kind"] not in tasks.BUILT_IN or spec.task.get(KEY) is not True:
        return []
    models = [_pretrained(name, spec.base) for name in _names(spec)]
    if not (running := [model.name for model in models if brings_code(model)]):
        return []
    return [f"task.{KEY}: code of {', '.join(running)} will run with your rights, here and on every worker"]


def _names(spec: StudySpec) -> list[str]:
    """The pretrained models that trials may be of, each once."""
    searched = spec.space.get("model")
    choices = searched.choices if isinstance(searched, CategoricalParameter) else ()
    named = [spec.task.get("model"), spec.settings.get("model"), *choices]
    return list(dict.fromkeys(name for name in named if isinstance(name, str) and name != "scratch"))


def _pretrained(name: str, base: Path) -> Pretrained:
    folder = base / name
    return Pretrained(str(folder) if folder.is_dir() else name)


def _advice(spec: StudySpec) -> Iterator[str]:
    pruner = _innermost(spec.search.pruner)
    if PRUNERS.get(pruner.kind, pruner.kind) in ("MedianPruner", "PercentilePruner"):
        startup = max(1, pruner.arguments.get("n_startup_trials", STARTUP))
        first = "" if startup == 1 else f", of which there must be {startup}"
        yield (
            f"search.pruner: {pruner.kind} compares with finished trials only{first}: what runs before that, such as "
            f"the first trial of every worker, is never pruned; {PROMOTION} compares from the first rung on"
        )
    if len(spec.objectives) > 1 and pruner.kind == PROMOTION:
        yield (
            f"search.pruner: {PROMOTION} compares trials by the first objective ({spec.objective.metric}) alone; "
            "none trains all of them in full"
        )
    if len(spec.objectives) > 1 and spec.budget.target is not None:
        yield f"budget.target: is a value of the first objective ({spec.objective.metric})"


def _innermost(pruner: Method) -> Method:
    """The pruner that compares: what another one wraps, or itself."""
    wrapped = pruner.arguments.get("wrapped_pruner")
    return pruner if wrapped is None else _innermost(Method.model_validate(split_method(wrapped)))
