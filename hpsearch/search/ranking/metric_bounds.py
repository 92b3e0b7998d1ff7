"""The bounds of a metric, by its name and its values so far."""

import math
import re
from collections.abc import Iterable

SHARES = frozenset({"accuracy", "acc", "f1", "auc", "auroc", "precision", "recall", "iou", "dice"})
CORRELATIONS = frozenset({"mcc", "kappa", "correlation", "pearson", "spearman"})
LOSSES = frozenset({"loss", "error", "err", "rmse", "mse", "mae", "perplexity", "bits"})

KNOWN = (
    (SHARES, 0.0, 1.0),
    (SHARES, 0.0, 100.0),  # in percent
    (CORRELATIONS, -1.0, 1.0),
    (frozenset({"r2"}), -math.inf, 1.0),
    (LOSSES, 0.0, math.inf),
)
"""Words in names, each with the lowest and the highest value of a metric that is called so."""


def bounds_of(metric: str, seen: Iterable[float]) -> tuple[float, float]:
    """The lowest and the highest value that a metric can have; infinite where they are unknown.

    Bounds do not count if a finite value lies outside: a loss may be negative. A metric that has
    no bounds by its name, and was never negative, is assumed never to be.
    """
    values = [value for value in seen if math.isfinite(value)]
    lowest = min(values, default=0.0)
    highest = max(values, default=0.0)
    words = frozenset(re.split(r"[^a-z0-9]+", metric.lower()))
    for names, low, high in KNOWN:
        is_inside = low <= lowest and highest <= high
        if words & names and is_inside:
            return low, high
    return (0.0 if lowest >= 0 else -math.inf), math.inf
