"""Tables: a multi-layer perceptron learns to predict one column of a table from the others."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trials.contract import Setup, TaskError
from trials.descriptions.tabular import METRICS, TABULAR, TabularSettings
from trials.tasks.tabular.columns import TabularSpec
from trials.tasks.tabular.data import TabularDataSet
from trials.tasks.workloads.task import TrainedTask

if TYPE_CHECKING:
    from trials.data.workload import Workload
    from trials.tasks.tabular.data import TabularData


class Tabular(TrainedTask[TabularSpec]):
    """The task."""

    DESCRIPTION = TABULAR
    SETTINGS = TabularSettings
    DATA = TabularDataSet

    def __init__(self, task: Mapping[str, Any], base: Path) -> None:
        super().__init__(task, base, TabularSpec.parse(task, base))

    def workload(self, data: TabularData, settings: TabularSettings, setup: Setup) -> Workload:
        from trials.tasks.tabular.model import TabularWorkload

        if settings.monitor not in METRICS[data.objective]:
            metric = f"{settings.monitor!r} is not a metric of {data.objective}"
            what = f"{metric}, which the target asks for; choose another"
            raise TaskError.at("settings.monitor", what)
        return TabularWorkload(data, settings, setup)
