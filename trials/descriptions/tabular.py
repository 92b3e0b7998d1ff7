"""Tables, for classification and regression: their fields and settings."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trials.descriptions.description import (
    NETWORK_METRICS,
    TABLE_FILES,
    Field,
    NetworkSettings,
    TaskDescription,
    by_name,
    files,
    split_seed,
)
from trials.settings import setting

CLASSIFICATION, REGRESSION = OBJECTIVES = ("classification", "regression")
METRICS = {
    CLASSIFICATION: NETWORK_METRICS | {"loss", "accuracy", "macro_f1", "mcc"},
    REGRESSION: NETWORK_METRICS | {"loss", "rmse", "mae", "r2"},
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
    split_seed("rows"),
)


@dataclass(frozen=True)
class TabularSettings(NetworkSettings):
    dropout: float | None = setting(
        None, "Dropout probability after each hidden layer; null for no dropout.", low=0, high=0.95
    )
    depth: int = setting(2, "Hidden layers of the perceptron; 0 is a linear model.", low=0, high=64)
    width: int = setting(128, "Units of each hidden layer.", low=1, high=65536)
    embedding: int = setting(
        16, "Numbers that stand for a class of a categorical column.", low=1, high=4096
    )


TABULAR = TaskDescription(
    kind="tabular",
    fields=by_name(_FIELDS),
    settings=TabularSettings.table(),
    metrics=METRICS[CLASSIFICATION] | METRICS[REGRESSION],
    tokens=False,
    metrics_of=_metrics_of,
)
