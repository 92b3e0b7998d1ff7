"""The `task` part of a table, parsed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trials.contract import TaskError
from trials.tasks.datasets.data_set import DataSpec


@dataclass(frozen=True)
class TabularSpec(DataSpec):
    """The part, parsed; None stands for a choice that follows from the data."""

    target: str
    objective: str | None
    numeric: tuple[str, ...] | None
    categorical: tuple[str, ...] | None

    @property
    def facts(self) -> tuple[object, ...]:
        return self.split_seed, self.target, self.objective, self.numeric, self.categorical

    @staticmethod
    def parse(task: Mapping[str, Any], base: Path) -> TabularSpec:
        """Parse a part whose keys and values are right.

        Raises:
            TaskError: A column is named twice.
        """
        stands_under: dict[str, str] = {task["target"]: "target"}
        for key in ("numeric", "categorical"):
            for column in task.get(key, ()):
                if column in stands_under:
                    also = f"names {column!r}, which stands under {stands_under[column]} too"
                    raise TaskError.at(f"task.{key}", f"{also}; keep it in one place")
                stands_under[column] = key
        return TabularSpec(
            **DataSpec.shared(task, base),
            target=task["target"],
            objective=task.get("objective_kind"),
            numeric=tuple(task["numeric"]) if "numeric" in task else None,
            categorical=tuple(task["categorical"]) if "categorical" in task else None,
        )
