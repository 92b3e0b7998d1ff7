"""Built-in tasks on data of a test's own, and what their runs report."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trials import tasks
from trials.contract import Report, Run, Setup, Task
from trials.running.report_grid import budget_from

Course = list[Report]


def reports_of(run: Run) -> Course:
    """Train to the end."""
    return [item for item in run if item is not None]


@dataclass(frozen=True)
class Lab:
    """A folder with data, a task on it, and runs of that task.

    Args:
        folder: Where the data are, and where checkpoints go.
        plain: The `task` part of a study file.
        params: The settings of a run.
        unit: Of its budget.
    """

    folder: Path
    plain: Mapping[str, Any]
    params: Mapping[str, Any]
    unit: str = "epochs"

    def part(self, **changes: Any) -> dict[str, Any]:
        """The `task` part of a study file, with changes."""
        return {**self.plain, **changes}

    def task(self, **changes: Any) -> Any:
        """The task of `part`."""
        return tasks.load(self.part(**changes), self.folder)

    def problems(self, **changes: Any) -> dict[str, str]:
        """What is wrong with `part`, by the key it is about."""
        return {p.where: p.what for p in tasks.inspect(self.part(**changes), self.folder)}

    def setup(
        self,
        out: str = "run",
        epochs: int = 1,
        resume_from: Path | str | None = None,
        **params: Any,
    ) -> Setup:
        """A run whose checkpoints go to the folder `out`."""
        given = {**self.params, **params}
        return Setup(given, 5, budget_from({self.unit: epochs}), self.folder / out, resume_from)

    def whole_and_resumed(self, task: Task, after: int, **params: Any) -> tuple[Course, Course]:
        """The reports of a run of three epochs, and those of an equal one saved `after` so many
        steps and resumed."""
        data = task.prepare(self.params)
        whole = reports_of(task.start(self.setup("whole", 3, **params), data))
        first = task.start(self.setup("parts", 3, **params), data)
        items = iter(first)
        for _ in range(after):
            next(items)
        return whole, reports_of(task.start(self.setup("parts", 3, first.save(), **params), data))

    def train_losses(
        self, task: Task, micro_batches: Iterable[int | None], **params: Any
    ) -> list[list[float]]:
        """The training losses of two epochs, for each size of the micro-batches."""
        data = task.prepare(self.params)
        setups = [self.setup(f"m{size}", 2, micro_batch=size, **params) for size in micro_batches]
        return [
            [r.metrics["train_loss"] for r in reports_of(task.start(setup, data))]
            for setup in setups
        ]
