"""The `task` part of a table, parsed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trials.contract import Problem, TaskError
from trials.descriptions.tabular import OBJECTIVES
from trials.tasks.datasets.spec import DataSpec


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
        """Parse a part whose keys and types are right.

        Raises:
            TaskError: The objective is unknown, or a column is named wrongly or twice.
        """
        objective = task.get("objective_kind")
        problems = [*_wrong_objective(objective), *_wrong_columns(task)]
        if problems:
            raise TaskError(problems)
        return TabularSpec(
            **DataSpec.shared(task, base),
            target=task["target"],
            objective=objective,
            numeric=tuple(task["numeric"]) if "numeric" in task else None,
            categorical=tuple(task["categorical"]) if "categorical" in task else None,
        )


def _wrong_objective(objective: str | None) -> Iterator[Problem]:
    if objective is not None and objective not in OBJECTIVES:
        what = f"must be {' or '.join(OBJECTIVES)}, not {objective!r}"
        yield Problem("task.objective_kind", what)


def _wrong_columns(task: Mapping[str, Any]) -> Iterator[Problem]:
    stands_under: dict[str, str] = {task["target"]: "target"}
    for key in ("numeric", "categorical"):
        for column in task.get(key, ()):
            if not isinstance(column, str):
                yield Problem(f"task.{key}", f"must be a list of column names, not {column!r}")
            elif column in stands_under:
                also = f"names {column!r}, which stands under {stands_under[column]} too"
                yield Problem(f"task.{key}", f"{also}; keep it in one place")
            else:
                stands_under[column] = key
