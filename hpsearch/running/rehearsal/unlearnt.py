"""A first report that is no better than guessing, where trials are compared that early."""

import math
import re
from collections.abc import Iterator, Mapping

from hpsearch.domain.numbers import in_unit, number
from hpsearch.study_file.levels import rung_levels
from hpsearch.study_file.methods import PROMOTION
from hpsearch.study_file.models import StudySpec

AGREEMENT = re.compile(r"(?i)(?:.*[^a-z0-9])?(?:mcc|matthews_correlation|pearson|spearman|r2)")
"""The names of metrics that are about 0 for answers without regard to the sample."""
MOST_AGREEMENT = 0.05  # of a guess
F1 = ("f1", "eval_f1", "micro_f1")
NEAR_ACCURACY, NEAR_LOSS = 0.1, 0.02
"""How far the accuracy and the loss of a guess are from those of an even one, as fractions."""


def remarks(spec: StudySpec, at: float, metrics: Mapping[str, float]) -> Iterator[str]:
    """A sentence if trials are compared by a report such as this one, at a resource, and it shows
    that nothing has been learnt by then; with what to write instead."""
    shown, later = _guess(metrics), _later(spec, at)
    if shown is None or later is None:
        return
    where = in_unit(at, spec.budget.per_trial.unit.value)
    yield (
        f"search.pruner: trials are compared at {where} already, where this one has learnt nothing "
        f"({shown}, as by guessing), so that chance decides which go on; write {later}"
    )


def _guess(metrics: Mapping[str, float]) -> str | None:
    """The metrics that a guess would have; None if there are none."""
    for name, value in metrics.items():
        is_agreement = AGREEMENT.fullmatch(name) is not None
        if is_agreement and value <= MOST_AGREEMENT:
            return f"{name} {number(value)}"
        if name.lower() in F1 and value == 0:
            return f"{name} {number(value)}"
    for name, value in metrics.items():
        if not name.lower().endswith(("accuracy", "acc")):
            continue
        loss = _loss_of_a_guess(value, metrics)
        if loss is not None:
            return f"{name} {number(value)}, {loss} {number(metrics[loss])}"
    return None


def _loss_of_a_guess(accuracy: float, metrics: Mapping[str, float]) -> str | None:
    """The name of a loss that is about the logarithm of the number of classes, which an accuracy
    tells of if it is that of a guess; None if no loss is."""
    right = accuracy / 100 if accuracy > 1 else accuracy
    if not 1e-9 < right < 1 - NEAR_ACCURACY:
        return None
    classes = round(1 / right)
    if classes < 2 or abs(right * classes - 1) > NEAR_ACCURACY:
        return None
    even = math.log(classes)
    for name, loss in metrics.items():
        if name.lower().endswith("loss") and abs(loss - even) <= NEAR_LOSS * even:
            return name
    return None


def _later(spec: StudySpec, at: float) -> str | None:
    """The pruner to write, which compares later; None if trials are not compared by then."""
    first, *above = rung_levels(spec)
    if spec.search.pruner.kind != PROMOTION or not above or first > at:
        return None
    if len(above) == 1:
        return "search: {pruner: none}"
    later = f"kind: {PROMOTION}, first_rung: {number(above[0])}"
    return f"search: {{pruner: {{{later}}}}}"
