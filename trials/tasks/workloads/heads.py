"""The losses and metrics of models with one target a sample: a class, labels, or a number.

Metrics are scikit-learn's and SciPy's, which take a second to import.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

Labels = npt.NDArray[np.integer]
Floats = npt.NDArray[np.float64]

LARGEST_EXPONENT = 700.0  # the power of e is still a float


def classification(truth: Labels, predicted: Labels) -> dict[str, float]:
    """Accuracy, the mean F1 of the classes that occur in truth or predictions, and Matthews
    correlation, which is 0 if truth or predictions are all one class.

    Args:
        truth, predicted: Numbers of classes, shape (n,).
    """
    from sklearn import metrics

    return {
        "accuracy": float(metrics.accuracy_score(truth, predicted)),
        "macro_f1": float(metrics.f1_score(truth, predicted, average="macro", zero_division=0.0)),
        "mcc": float(metrics.matthews_corrcoef(truth, predicted)),
    }


def perplexity(loss: float) -> float:
    """e to the power of the mean loss of a token."""
    return math.exp(min(loss, LARGEST_EXPONENT))


def of_labels(truth: Labels, found: Labels) -> dict[str, float]:
    """Micro F1, macro F1 and the share of samples whose labels are all right.

    A label that occurs in neither truth nor predictions does not count in macro F1. Micro F1 and
    macro F1 are 0 if no sample has any label.

    Args:
        truth, found: 1 for the labels of a sample, shape (n, labels).
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
    correlation, which are 0 if truth or predictions are all one number. `truth`, `found`:
    standardised numbers, shape (n,). `deviation`: the size of 1 in the unit of the data."""
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
    """Errors in the target's own unit, and the explained share of its variance."""
    if not np.isfinite(found).all():
        return dict.fromkeys(("rmse", "mae", "r2"), math.nan)
    from sklearn import metrics

    root_mean_square = float(metrics.root_mean_squared_error(truth, found))
    absolute = float(metrics.mean_absolute_error(truth, found))
    explained = float(metrics.r2_score(truth, found)) if len(truth) > 1 else math.nan
    return {"rmse": root_mean_square * deviation, "mae": absolute * deviation, "r2": explained}


def by_sample(
    metric: str, truth: npt.NDArray[Any], found: npt.NDArray[Any], deviation: float
) -> list[float] | None:
    """The results of samples whose mean is a metric; None if it is no such mean. `truth`, `found`
    and `deviation`: as the heads measure them."""
    results = truth == found
    if metric == "exact_match":
        results = results.all(axis=1)
    elif metric in ("mae", "mse"):
        errors = np.abs(truth.astype(np.float64) - found) * deviation
        results = errors if metric == "mae" else np.square(errors)
    elif metric != "accuracy":
        return None
    return [float(result) for result in results]


class ClassHead:
    """Scores of classes that exclude each other. `weights` has the weight of each class in the
    loss, shape (classes,)."""

    deviation = 1.0

    def __init__(self, weights: torch.Tensor | None = None) -> None:
        self._weights = weights

    def losses(self, outputs: torch.Tensor, truth: torch.Tensor, smoothing: float) -> torch.Tensor:
        return nn.functional.cross_entropy(
            outputs, truth, self._weights, reduction="sum", label_smoothing=smoothing
        )

    def predicted(self, outputs: torch.Tensor) -> torch.Tensor:
        return outputs.argmax(dim=-1)

    def measure(self, truth: npt.NDArray[Any], found: npt.NDArray[Any]) -> dict[str, float]:
        return classification(truth.astype(np.int64), found)


class LabelsHead:
    """A score for each label, above 0 if a sample has the label. `weights` has the weight of each
    label where a sample has it, shape (labels,)."""

    deviation = 1.0

    def __init__(self, weights: torch.Tensor | None = None) -> None:
        self._weights = weights

    def losses(self, outputs: torch.Tensor, truth: torch.Tensor, smoothing: float) -> torch.Tensor:
        """Binary cross-entropies; for each sample the mean over the labels."""
        wanted = truth * (1.0 - smoothing) + smoothing / 2.0  # of two classes: it has it or not
        total = nn.functional.binary_cross_entropy_with_logits(
            outputs, wanted, reduction="sum", pos_weight=self._weights
        )
        return total / outputs.shape[1]

    def predicted(self, outputs: torch.Tensor) -> torch.Tensor:
        return (outputs > 0).to(torch.int8)

    def measure(self, truth: npt.NDArray[Any], found: npt.NDArray[Any]) -> dict[str, float]:
        return of_labels(truth.astype(np.int8), found)


NumberMetrics = Callable[[Floats, Floats, float], dict[str, float]]


class NumberHead:
    """A standardised number. `deviation`: the size of 1 in the unit of the data."""

    def __init__(self, deviation: float, measure: NumberMetrics) -> None:
        self.deviation, self._measure = deviation, measure

    def losses(self, outputs: torch.Tensor, truth: torch.Tensor, smoothing: float) -> torch.Tensor:
        return nn.functional.mse_loss(outputs.squeeze(-1), truth, reduction="sum")

    def predicted(self, outputs: torch.Tensor) -> torch.Tensor:
        return outputs.squeeze(-1)

    def measure(self, truth: npt.NDArray[Any], found: npt.NDArray[Any]) -> dict[str, float]:
        numbers = truth.astype(np.float64), found.astype(np.float64)
        return self._measure(*numbers, self.deviation)


Head = ClassHead | LabelsHead | NumberHead
"""The meaning of a model's outputs, shape (n, classes). `losses` gives the sum of the losses of
targets, shape (n,) or (n, labels); `smoothing` is the share of each label that is spread over all
classes. `predicted` gives predictions of the targets' shape, and `measure` the metrics of both."""
