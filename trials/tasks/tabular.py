"""Tabular: a multi-layer perceptron learns to tell one column of a table from the others.

This module holds the task's face. Its columns are read in `tabular_data`, its model stands in `tabular_model`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from trials.contract import Problem, Setup, TaskError
from trials.settings import Settings, setting
from trials.tasks import splitting
from trials.tasks.description import LOOP_METRICS, Field, TaskDescription
from trials.tasks.trained import TrainedTask

if TYPE_CHECKING:
    from torch import nn

    from trials.export import Portable
    from trials.tasks.tabular_data import TabularData
    from trials.workload import Workload

CLASSIFICATION, REGRESSION = OBJECTIVES = ("classification", "regression")
METRICS = {
    CLASSIFICATION: LOOP_METRICS | {"loss", "accuracy", "macro_f1", "mcc"},
    REGRESSION: LOOP_METRICS | {"loss", "rmse", "mae", "r2"},
}
"""The metrics of a report, by what the task predicts."""

_FIELDS = (
    Field("train", (str,), "the training data: a CSV, Parquet or JSONL file", required=True),
    Field("validation", (float, str), "a fraction of the training data such as 0.15, or a file", required=True),
    Field("test", (str,), "a file that the search never sees"),
    Field("target", (str,), "the column to predict", required=True),
    Field("objective_kind", (str,), "classification or regression; told from the target where it is missing"),
    Field("numeric", (list,), "the columns that are numbers; told from the training data where it is missing"),
    Field("categorical", (list,), "the columns that are classes; told from the training data where it is missing"),
    Field("split_seed", (int,), "which rows a validation fraction picks; the same for every trial"),
)


@dataclass(frozen=True)
class TabularSettings(Settings):
    """The loop's settings, and the shape of the perceptron."""

    LEFT_OUT: ClassVar[frozenset[str]] = frozenset(
        {"max_length", "bucketing", "batch_tokens", "model", "freeze_layers", "gradient_checkpointing"}
        | {"lora", "lora_rank", "lora_alpha", "lora_targets"}
    )

    learning_rate: float = setting(float, 1e-3, "Peak learning rate; the schedule multiplies it.", above=0, high=10)
    dropout: float | None = setting(
        float, None, "Dropout probability after each hidden layer; null is none.", low=0, high=0.95, nullable=True
    )
    depth: int = setting(int, 2, "Hidden layers of the perceptron; 0 is a linear model.", low=0, high=64)
    width: int = setting(int, 128, "Units of each hidden layer.", low=1, high=65536)
    embedding: int = setting(int, 16, "Numbers that stand for a class of a categorical column.", low=1, high=4096)


@dataclass(frozen=True)
class TabularSpec:
    """The `task` part, parsed: paths are absolute; None for what the data tells."""

    train: Path
    validation: float | Path
    test: Path | None
    target: str
    objective: str | None
    numeric: tuple[str, ...] | None
    categorical: tuple[str, ...] | None
    split_seed: int

    @staticmethod
    def parse(task: Mapping[str, Any], base: Path) -> TabularSpec:
        """Parse a part whose keys and types are right.

        Raises:
            TaskError: The objective is unknown, or a column is named wrongly or twice.
        """
        problems = []
        objective = task.get("objective_kind")
        if objective is not None and objective not in OBJECTIVES:
            problems.append(Problem("task.objective_kind", f"must be {' or '.join(OBJECTIVES)}, not {objective!r}"))
        named: dict[Any, str] = {task["target"]: "target"}
        for key in ("numeric", "categorical"):
            for column in task.get(key, ()):
                if not isinstance(column, str):
                    problems.append(Problem(f"task.{key}", f"must be a list of column names, not {column!r}"))
                elif column in named:
                    what = f"names {column!r}, which stands under {named[column]} too; keep it in one place"
                    problems.append(Problem(f"task.{key}", what))
                else:
                    named[column] = key
        if problems:
            raise TaskError(problems)
        return TabularSpec(
            train=base / task["train"],
            validation=splitting.parse(task, base),
            test=base / task["test"] if "test" in task else None,
            target=task["target"],
            objective=objective,
            numeric=tuple(task["numeric"]) if "numeric" in task else None,
            categorical=tuple(task["categorical"]) if "categorical" in task else None,
            split_seed=task.get("split_seed", 0),
        )


class Tabular(TrainedTask):
    """The task."""

    DESCRIPTION = TaskDescription(
        kind="tabular",
        fields={field.name: field for field in _FIELDS},
        settings=TabularSettings.table(),
        metrics=METRICS[CLASSIFICATION] | METRICS[REGRESSION],
        tokens=False,
    )
    SETTINGS = TabularSettings
    spec: TabularSpec

    def __init__(self, task: Mapping[str, Any], base: Path) -> None:
        super().__init__(task, base)
        self.spec = TabularSpec.parse(task, base)
        if self.spec.objective is not None:
            self.metrics = METRICS[self.spec.objective]

    def problems(self) -> list[Problem]:
        """What is wrong with the data files."""
        from trials.tasks import tabular_data

        return tabular_data.problems_with(self.spec)

    def prepare(self, params: Mapping[str, Any]) -> TabularData:
        """Read, split and encode the table, or find it in the cache."""
        from trials.tasks import prepared, tabular_data

        TabularSettings.parse(params)
        spec = self.spec
        recipe = prepared.Recipe(
            kind=self.DESCRIPTION.kind,
            sources=(spec.train, spec.validation),
            facts=(spec.split_seed, spec.target, spec.objective, spec.numeric, spec.categorical),
            model=None,
            types=(tabular_data.TabularData, tabular_data.Rows, tabular_data.Encoding),
            build=lambda: tabular_data.prepare(spec),
        )
        return prepared.prepare(recipe)

    def on_test(self, data: TabularData, settings: TabularSettings) -> TabularData:
        """The test rows where the validation rows were."""
        from trials.tasks import tabular_data

        return tabular_data.on_test(self.spec, data)

    def portable(self, folder: Path, model: nn.Module) -> Portable:
        """From `numeric` and `categorical`, as `table.json` encodes them, to logits or a standardised quantity."""
        from trials import predict
        from trials.export import Portable

        return Portable(predict.TableModel(folder).network, free=(0,))

    def workload(self, data: TabularData, settings: TabularSettings, setup: Setup) -> Workload:
        """The perceptron with the table's rows."""
        from trials.tasks.tabular_model import TabularWorkload

        if settings.monitor not in METRICS[data.objective]:
            what = f"{settings.monitor!r} is no metric of {data.objective}, which the target asks for; choose another"
            raise TaskError([Problem("settings.monitor", what)])
        return TabularWorkload(data, settings, setup)
