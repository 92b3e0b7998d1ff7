"""Tables, for classification and regression: their fields and settings."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from trials.contract import Unit
from trials.descriptions.description import (
    GROUP,
    TABLE_FILES,
    Field,
    TaskDescription,
    by_name,
    files,
    split_seed,
)
from trials.settings import TABLE, Settings, setting

_OF_BOOSTING = frozenset({"loss", "train_loss", "samples_per_second"})
CLASSIFICATION, REGRESSION = OBJECTIVES = ("classification", "regression")
METRICS = {
    CLASSIFICATION: _OF_BOOSTING | {"accuracy", "macro_f1", "mcc"},
    REGRESSION: _OF_BOOSTING | {"rmse", "mae", "r2"},
}
"""The metrics of a report, by the objective."""


def _metrics_of(task: Mapping[str, Any]) -> frozenset[str]:
    stated = task.get("objective_kind")
    if isinstance(stated, str) and stated in METRICS:
        return METRICS[stated]
    return METRICS[CLASSIFICATION] | METRICS[REGRESSION]


_COLUMNS = {"items": {"type": "string"}, "uniqueItems": True}

_FIELDS = (
    *files(TABLE_FILES),
    Field("target", (str,), "the column to predict", required=True),
    Field(
        "objective_kind",
        (str,),
        "classification or regression; inferred from the target if missing",
        limits={"enum": OBJECTIVES},
    ),
    Field(
        "numeric",
        (list,),
        "the columns that are numbers; inferred from the training data if missing",
        limits=_COLUMNS,
    ),
    Field(
        "categorical",
        (list,),
        "the columns that are classes; inferred from the training data if missing",
        limits=_COLUMNS,
    ),
    GROUP,
    split_seed("rows"),
)


@dataclass(frozen=True)
class TabularSettings(Settings):
    """The settings of boosting, by the names that LightGBM gives them."""

    LEFT_OUT: ClassVar[frozenset[str]] = frozenset(TABLE) - {
        "learning_rate", "patience", "min_delta", "monitor", "keep_checkpoints",
    }  # fmt: skip

    learning_rate: float = setting(
        0.1, "The share of each tree that is added to the model.", above=0, high=1
    )
    num_leaves: int = setting(31, "The most leaves of a tree.", low=2, high=4096)
    max_depth: int | None = setting(
        None, "The most splits above a leaf; null for no limit.", low=1, high=64
    )
    min_data_in_leaf: int = setting(20, "The fewest rows in a leaf.", low=1)
    bagging_fraction: float = setting(
        1.0, "The share of the rows that each tree learns from.", above=0, high=1
    )
    feature_fraction: float = setting(
        1.0, "The share of the columns that each tree learns from.", above=0, high=1
    )
    lambda_l1: float = setting(0.0, "L1 regularisation of the values of leaves.", low=0, high=1e6)
    lambda_l2: float = setting(1.0, "L2 regularisation of the values of leaves.", low=0, high=1e6)


TABULAR = TaskDescription(
    kind="tabular",
    fields=by_name(_FIELDS),
    settings=TabularSettings.table(),
    metrics=METRICS[CLASSIFICATION] | METRICS[REGRESSION],
    units=frozenset({Unit.STEPS, Unit.SECONDS}),
    metrics_of=_metrics_of,
)
