"""Gradient-boosted trees that grow in segments.

A segment is a booster of its own, which begins with the scores of all trees before it and with a
seed of its own. Nothing but the text of the trees is therefore needed to go on bit for bit, on any
number of threads.
"""

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from trials.descriptions.tabular import TabularSettings
from trials.running.randomness import Use, derive
from trials.tasks.tabular.columns import Floats
from trials.tasks.tabular.encoding import TabularEncoding, TabularRows

if TYPE_CHECKING:
    import lightgbm

_FIRST_TREE, _LAST_TREE = "\nTree=0\n", "\nend of trees\n"
_SIZES = re.compile(r"^tree_sizes=.*\n", re.MULTILINE)
"""The lengths of the trees, which only a text that is read in parallel needs."""
_IMPORTANCES = re.compile(r"^feature_importances:\n(?:.+\n)*\n", re.MULTILINE)
"""Those of the first segment alone; a model that is loaded counts its own."""
_NUMBER = re.compile(r"^Tree=\d+$", re.MULTILINE)
_SMALL = 1_000_000  # cells of a table below which threads wait for each other longer than they work


@dataclass(frozen=True)
class Trees:
    """A model."""

    text: str = ""  # in LightGBM's own form; empty without trees
    ends: tuple[int, ...] = ()  # the iterations of boosting after each segment

    def after(self, segment: str, iterations: int) -> "Trees":
        """The model with the trees of one more segment."""
        so_far = self.ends[-1] if self.ends else 0
        ends = (*self.ends, so_far + iterations)
        if not self.text:
            plain = _IMPORTANCES.sub("", _SIZES.sub("", segment, count=1), count=1)
            return Trees(plain, ends)
        head, mark, tail = self.text.partition(_LAST_TREE)
        begin, end = segment.index(_FIRST_TREE), segment.index(_LAST_TREE)
        numbers = iter(range(head.count("\nTree="), 1 << 31))
        added = _NUMBER.sub(lambda _: f"Tree={next(numbers)}", segment[begin:end])
        return Trees(f"{head}{added}{mark}{tail}", ends)


def scores_of(trees: Trees, features: Floats, first: int = 0) -> Floats:
    """The sum of the scores of the segments from number `first` on, shape (n, outputs)."""
    from lightgbm import Booster

    booster = Booster(model_str=trees.text)
    total = np.zeros((len(features), booster.num_model_per_iteration()))
    begins = (0, *trees.ends)
    for segment in range(first, len(trees.ends)):
        begin, end = begins[segment], trees.ends[segment]
        found = booster.predict(
            features, begin, end - begin, raw_score=True, num_threads=_threads(features)
        )
        total += np.asarray(found).reshape(total.shape)
    return total


def scores_of_text(text: str, features: Floats) -> Floats:
    """The scores of a whole model, shape (n, outputs)."""
    from lightgbm import Booster

    booster, threads = Booster(model_str=text), _threads(features)
    found = np.asarray(booster.predict(features, raw_score=True, num_threads=threads))
    return found.reshape(len(features), -1)


def _threads(features: Floats) -> int:
    """The threads for some rows; 0 for those of the process. They do not change results."""
    return 1 if features.size < _SMALL else 0


def outputs_of(scores: Floats) -> Floats:
    """The scores of all classes, where one of two classes has none of its own."""
    outputs: Floats = np.concatenate([np.zeros_like(scores), scores], axis=1)
    return outputs


def losses_of(rows: TabularRows, scores: Floats, *, is_class: bool) -> Floats:
    """The loss of each row: minus the log of the probability of its class, or the squared error of
    its standardised quantity; shape (n,)."""
    if not is_class:
        return np.square(scores[:, 0] - rows.target)
    outputs = outputs_of(scores) if scores.shape[1] == 1 else scores
    shifted = outputs - outputs.max(axis=1, keepdims=True)
    of_truth = shifted[np.arange(len(rows.target)), rows.target.astype(np.int64)]
    losses: Floats = np.log(np.exp(shifted).sum(axis=1)) - of_truth
    return losses


def found_in(scores: Floats, *, is_class: bool) -> npt.NDArray[Any]:
    """The class of each row, or its standardised quantity."""
    if not is_class:
        return scores[:, 0]
    outputs = outputs_of(scores) if scores.shape[1] == 1 else scores
    found: npt.NDArray[Any] = outputs.argmax(axis=1)
    return found


@dataclass
class Boosting:
    """Trees that grow on the rows of a table."""

    rows: TabularRows
    encoding: TabularEncoding
    settings: TabularSettings
    seed: int  # the trial's
    trees: Trees = field(default_factory=Trees)  # the model so far

    def __post_init__(self) -> None:
        from lightgbm import Dataset

        numbers, columns = len(self.encoding.numeric), self.rows.features.shape[1]
        self._dataset = Dataset(
            self.rows.features,
            self.rows.target,
            categorical_feature=list(range(numbers, columns)),
            params=self._params(0),
            free_raw_data=False,
        )
        self._booster: lightgbm.Booster | None = None
        self.scores: Floats | None = None
        """Of the rows, by the segments that are whole; None before the first."""
        if self.trees.ends:
            self.scores = scores_of(self.trees, self.rows.features)

    def grow(self) -> None:
        """One iteration of boosting."""
        if self._booster is None:
            from lightgbm import Booster

            if self.scores is not None:
                self._dataset.set_init_score(self.scores.ravel(order="F"))
            self._booster = Booster(self._params(1 + len(self.trees.ends)), self._dataset)
        self._booster.update()

    def end_segment(self) -> None:
        if self._booster is None:
            return
        text, iterations = self._booster.model_to_string(), self._booster.current_iteration()
        self._booster = None
        before = self.scores
        self.trees = self.trees.after(text, iterations)
        added = scores_of(self.trees, self.rows.features, len(self.trees.ends) - 1)
        self.scores = added if before is None else before + added

    def _params(self, place: int) -> dict[str, Any]:
        settings, classes = self.settings, len(self.encoding.classes or ())
        objective: dict[str, Any] = {"objective": "regression"}
        if classes == 2:
            objective = {"objective": "binary"}
        elif classes > 2:
            objective = {"objective": "multiclass", "num_class": classes}
        return {
            **objective,
            "learning_rate": settings.learning_rate,
            "num_leaves": settings.num_leaves,
            "max_depth": settings.max_depth or -1,
            "min_data_in_leaf": settings.min_data_in_leaf,
            "min_data_per_group": settings.min_data_in_leaf,
            "bagging_fraction": settings.bagging_fraction,
            "bagging_freq": 1 if settings.bagging_fraction < 1 else 0,
            "feature_fraction": settings.feature_fraction,
            "lambda_l1": settings.lambda_l1,
            "lambda_l2": settings.lambda_l2,
            "seed": derive(self.seed, Use.STEP, place) % 2**31,
            "data_random_seed": derive(self.seed, Use.ORDER) % 2**31,
            "feature_pre_filter": False,
            "deterministic": True,
            "force_row_wise": True,
            "num_threads": _threads(self.rows.features),
            "verbosity": -1,
        }
