"""The metrics of several labels, by scikit-learn, and of numbers, by scikit-learn and SciPy."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from scipy import stats
from sklearn import metrics

Floats = npt.NDArray[np.float64]


def of_labels(truth: npt.NDArray[np.integer], found: npt.NDArray[np.integer]) -> dict[str, float]:
    """Micro F1, macro F1 and the share of texts whose labels are all right.

    A label that no text has, truly or as found, does not count in macro F1. Micro F1 and macro F1
    are 0 if no text has any label.

    Args:
        truth: 1 for the labels that a text has, shape (n, labels).
        found: The same of those that were found.
    """
    micro = metrics.f1_score(truth, found, average="micro", zero_division=0.0)
    macro = metrics.f1_score(truth, found, average="macro", zero_division=np.nan)
    return {
        "micro_f1": float(micro),
        "macro_f1": 0.0 if math.isnan(macro) else float(macro),
        "exact_match": float(metrics.accuracy_score(truth, found)),
    }


def of_numbers(truth: Floats, found: Floats, deviation: float) -> dict[str, float]:
    """Mean squared and mean absolute error in the unit of the data, and Pearson's and Spearman's
    correlation.

    A correlation is 0 if all numbers of one side are the same.

    Args:
        truth: Standardised numbers, shape (n,).
        found: The same of those that were found.
        deviation: What a difference of 1 is in the unit of the data.
    """
    if not np.isfinite(found).all():
        return dict.fromkeys(("mse", "mae", "pearson", "spearman"), math.nan)
    squared = float(metrics.mean_squared_error(truth, found))
    absolute = float(metrics.mean_absolute_error(truth, found))
    pearson = spearman = 0.0
    if np.ptp(truth) > 0 and np.ptp(found) > 0:
        pearson = float(stats.pearsonr(truth, found).statistic)
        spearman = float(stats.spearmanr(truth, found).statistic)
    return {
        "mse": squared * deviation**2,
        "mae": absolute * deviation,
        "pearson": pearson,
        "spearman": spearman,
    }
