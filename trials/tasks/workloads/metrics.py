"""Metrics from predictions. Those of classes are in plain numpy; the others are scikit-learn's and
SciPy's, imported when first needed (a second)."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

Labels = npt.NDArray[np.integer]
Floats = npt.NDArray[np.float64]

LARGEST_EXPONENT = 700.0
"""Of e, about, whose power is still a float."""


def classification(truth: Labels, predicted: Labels, classes: int) -> dict[str, float]:
    """Accuracy, macro F1 and Matthews correlation.

    Args:
        truth: The labels, shape (n,), from 0 to `classes` - 1.
        predicted: The predictions, the same shape and range.
    """
    pairs = truth * classes + predicted
    table = np.bincount(pairs, minlength=classes * classes).reshape(classes, classes)
    return {"accuracy": accuracy(table), "macro_f1": macro_f1(table), "mcc": mcc(table)}


def accuracy(table: Labels) -> float:
    """The share of correct predictions, from a confusion table (rows: truth)."""
    return float(np.trace(table) / table.sum())


def macro_f1(table: Labels) -> float:
    """The mean F1 of the classes that occur in truth or predictions; 0 for a class without a
    correct prediction."""
    correct = np.diag(table)
    occurrences = table.sum(axis=0) + table.sum(axis=1)
    seen = occurrences > 0
    return float(np.mean(2.0 * correct[seen] / occurrences[seen]))


def perplexity(loss: float) -> float:
    """e to the power of the mean loss of a token."""
    return math.exp(min(loss, LARGEST_EXPONENT))


def mcc(table: Labels) -> float:
    """Matthews correlation for many classes (Gorodkin 2004); 0 if truth or predictions are all
    one class."""
    counts = table.astype(np.float64)
    truth, predicted, total = counts.sum(axis=1), counts.sum(axis=0), counts.sum()
    covariance = np.trace(counts) * total - truth @ predicted
    spread_of_truth = total**2 - truth @ truth
    spread_of_predicted = total**2 - predicted @ predicted
    spread = spread_of_predicted * spread_of_truth
    return float(covariance / math.sqrt(spread)) if spread > 0 else 0.0


def of_labels(truth: Labels, found: Labels) -> dict[str, float]:
    """Micro F1, macro F1 and the share of samples whose labels are all right.

    A label that no sample has, truly or as found, does not count in macro F1. Micro F1 and macro F1
    are 0 if no sample has any label.

    Args:
        truth: 1 for the labels that a sample has, shape (n, labels).
    """
    from sklearn import metrics

    micro = metrics.f1_score(truth, found, average="micro", zero_division=0.0)
    macro = metrics.f1_score(truth, found, average="macro", zero_division=np.nan)
    return {
        "micro_f1": float(micro),
        "macro_f1": 0.0 if math.isnan(macro) else float(macro),
        "exact_match": float(metrics.accuracy_score(truth, found)),
    }


def of_numbers(truth: Floats, found: Floats, deviation: float) -> dict[str, float]:
    """Mean squared and mean absolute error in the unit of the data, and Pearson's and Spearman's
    correlation, which are 0 if all numbers of one side are the same.

    Args:
        truth, found: Standardised numbers, shape (n,).
        deviation: The size of 1 in the unit of the data.
    """
    if not np.isfinite(found).all():
        return dict.fromkeys(("mse", "mae", "pearson", "spearman"), math.nan)
    from scipy import stats
    from sklearn import metrics

    squared = float(metrics.mean_squared_error(truth, found))
    absolute = float(metrics.mean_absolute_error(truth, found))
    pearson = spearman = 0.0
    if np.ptp(truth) > 0 and np.ptp(found) > 0:
        pearson = float(stats.pearsonr(truth, found).statistic)
        spearman = float(stats.spearmanr(truth, found).statistic)
    errors = {"mse": squared * deviation**2, "mae": absolute * deviation}
    return {**errors, "pearson": pearson, "spearman": spearman}


def of_quantities(truth: Floats, found: Floats, deviation: float) -> dict[str, float]:
    """Errors in the target's own unit and the explained share of its variance, with the arguments
    of `of_numbers`."""
    if not np.isfinite(found).all():
        return dict.fromkeys(("rmse", "mae", "r2"), math.nan)
    from sklearn import metrics

    root_mean_square = float(metrics.root_mean_squared_error(truth, found))
    absolute = float(metrics.mean_absolute_error(truth, found))
    explained = float(metrics.r2_score(truth, found)) if len(truth) > 1 else math.nan
    return {"rmse": root_mean_square * deviation, "mae": absolute * deviation, "r2": explained}
