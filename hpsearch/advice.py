"""What a study file may ask for that works otherwise than expected: notes for `check` and `run`, no errors."""

from __future__ import annotations

from collections.abc import Iterator

from hpsearch.levels import PROMOTION
from hpsearch.methods import PRUNERS
from hpsearch.spec import Method, StudySpec, split_method

STARTUP = 5
"""Finished trials that Optuna's median and percentile pruners wait for where they are not told."""


def advice(spec: StudySpec) -> list[str]:
    """Notes on a study file, each a finished sentence with its remedy."""
    return list(_advice(spec))


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
