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
NONE, NEAR, NEAR_LOSS = 0.05, 0.1, 0.02
"""The most of such a metric that a guess has; how far, in shares, the accuracy and the loss of a
guess are from those of an even one."""


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
    for name, value in metrics.items():
        is_agreement = AGREEMENT.fullmatch(name) is not None and value <= NONE
        if is_agreement or (name.lower() in ("f1", "eval_f1", "micro_f1") and value == 0):
            return f"{name} {number(value)}"
    for name, accuracy in metrics.items():
        share = accuracy / 100 if accuracy > 1 else accuracy
        if not name.lower().endswith(("accuracy", "acc")) or not 1e-9 < share < 1 - NEAR:
            continue
        classes = round(1 / share)
        even = math.log(classes) if classes > 1 and abs(share * classes - 1) <= NEAR else math.nan
        for loss, each in metrics.items():
            if loss.lower().endswith("loss") and abs(each - even) <= NEAR_LOSS * even:
                return f"{name} {number(accuracy)}, {loss} {number(each)}"
    return None


def _later(spec: StudySpec, at: float) -> str | None:
    """The pruner to write, which compares later; None if trials are not compared by then."""
    first, *above = rung_levels(spec)
    if spec.search.pruner.kind != PROMOTION or not above or first > at:
        return None
    if len(above) == 1:
        return "search: {pruner: none}"
    return f"search: {{pruner: {{kind: {PROMOTION}, first_rung: {number(above[0])}}}}}"
