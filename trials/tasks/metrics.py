"""Classification metrics from predictions, in plain numpy; each equals scikit-learn's of the same
name."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

Labels = npt.NDArray[np.integer]

LARGEST_EXPONENT = 700.0
"""Of e, about, whose power is still a float."""
CLASSIFICATION = ("accuracy", "macro_f1", "mcc")
"""The metrics that `classification` returns."""


def classification(truth: Labels, predicted: Labels, classes: int) -> dict[str, float]:
    """Accuracy, macro F1 and Matthews correlation.

    Args:
        truth: The labels, shape (n,), from 0 to `classes` - 1.
        predicted: The predictions, the same shape and range.
        classes: How many classes there are.
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
