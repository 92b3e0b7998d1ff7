"""Pruners of Optuna, which are told what they would otherwise guess."""

from __future__ import annotations

from optuna.pruners import BasePruner

from hpsearch.domain.history import History
from hpsearch.study_file import methods
from hpsearch.study_file.levels import trial_budget
from hpsearch.study_file.methods import Method
from hpsearch.study_file.models import StudySpec

HYPERBAND = {"hyperband", "HyperbandPruner"}
STEPPED = {"successive_halving", "SuccessiveHalvingPruner", *HYPERBAND}
"""Pruners that guess their first and last step from finished trials unless they are given."""


def pruner_of(spec: StudySpec, history: History) -> BasePruner:
    """The pruner that a study file names."""
    pruner: BasePruner = methods.pruner(_with_known_steps(spec, history))
    return pruner


def _with_known_steps(spec: StudySpec, history: History) -> Method:
    """The pruner with its first and last steps, which it would otherwise guess."""
    method = spec.search.pruner
    if method.kind not in STEPPED:
        return method
    scale = history.study.step_scale
    levels = trial_budget(spec).report_at
    known = {"min_resource": round(levels[0] * scale)}
    if method.kind in HYPERBAND:
        known["max_resource"] = round(levels[-1] * scale)
    return Method(kind=method.kind, arguments={**known, **method.arguments})
