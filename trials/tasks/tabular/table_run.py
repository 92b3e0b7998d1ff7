"""One attempt to grow trees: its reports and checkpoints.

A segment of trees ends at each report, whether the trial pauses there or not, and a checkpoint is
the state at a report. A trial that is stopped between two reports grows the trees since the first
of them again.
"""

import json
import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path

from trials.checkpoints.checkpoints import Checkpoints
from trials.checkpoints.continuing import opened
from trials.checkpoints.manifests import Label, stretch_of
from trials.contract import Diverged, Finding, Report, Setup, TaskError, Unit
from trials.descriptions.tabular import METRICS, TabularSettings
from trials.loop.stopping import EarlyStopping
from trials.loop.telemetry.findings import diagnose
from trials.loop.telemetry.history import Trace
from trials.tasks.tabular.boosting import Boosting, Trees, found_in, losses_of, scores_of
from trials.tasks.tabular.columns import Floats
from trials.tasks.tabular.encoding import TabularData, TabularRows

MODEL, DESCRIPTION, STATE = "model.txt", "table.json", "state.json"
"""The files of a checkpoint: the trees, the encoding of their inputs, and the state of the run."""


class TableRun:
    """One attempt (a `contract.Run`). Raises TaskError if the settings do not fit, CheckpointError
    if the checkpoint that it continues from is damaged, and so are those before it."""

    def __init__(self, data: TabularData, settings: TabularSettings, setup: Setup) -> None:
        if settings.monitor not in METRICS[data.objective]:
            metric = f"{settings.monitor!r} is not a metric of {data.objective}"
            what = f"{metric}, which the target asks for; choose another"
            raise TaskError.at("settings.monitor", what)
        if setup.ranks is not None:
            raise TaskError.at("resources.gpu", "a table is learnt by one process; set it to 0")
        mode = settings.monitor_mode(setup.goal)
        self._data, self._settings, self._setup = data, settings, setup
        self._stopping = EarlyStopping(mode, settings.patience, settings.min_delta)
        self._checkpoints = Checkpoints(setup.folder, settings.keep_checkpoints)
        self._trace = Trace()
        self._newest: Path | str | None = None
        self._metrics: Mapping[str, float] | None = None
        """Measured after the last step; None if it was not."""
        self._step, self._seconds, self._reported = 0, 0.0, 0.0
        trees = Trees() if setup.resume_from is None else self._restored(setup.resume_from)
        self.boosting = Boosting(data.train, data.encoding, settings, setup.seed, trees)
        self._scores: Floats | None = None
        """Of the validation rows."""
        if trees.ends:
            self._scores = scores_of(trees, data.validation.features)

    def __iter__(self) -> Iterator[Report | None]:
        while self.finished is None:
            level = self._level_due()
            if level is not None:
                yield self._report(level)
                continue
            began = time.perf_counter()
            self.boosting.grow()
            self._step += 1
            self._metrics = None
            self._seconds += time.perf_counter() - began
            yield None

    @property
    def finished(self) -> str | None:
        if self._reported >= self._setup.budget.total:
            return "budget used"
        return self._stopping.exhausted

    def _level_due(self) -> float | None:
        budget = self._setup.budget
        reached = self._seconds if budget.unit is Unit.SECONDS else float(self._step)
        due = (level for level in budget.report_at if self._reported < level <= reached)
        return next(due, None)

    def _report(self, level: float) -> Report:
        is_new = self._metrics is None
        metrics = self._metrics = self.measured() if self._metrics is None else self._metrics
        is_best = is_new and self._stopping.note(metrics[self._settings.monitor])
        self._reported = level
        self._newest = self._saved(is_best=is_best)
        best = self._checkpoints.reported(level, self._newest)
        samples = self._by_sample() if self.finished is not None else None
        return Report(
            *(level, metrics, self._step, self._seconds, self._newest, best), samples=samples
        )

    def _by_sample(self) -> list[float] | None:
        from trials.tasks.workloads.heads import by_sample  # imports torch

        goal, scores, data = self._setup.goal, self._scores, self._data
        if goal is None or scores is None:
            return None
        rows, is_class = data.validation, data.encoding.classes is not None
        if goal.metric == "loss":
            return list(map(float, losses_of(rows, scores, is_class=is_class)))
        found, deviation = found_in(scores, is_class=is_class), data.encoding.target_deviation
        return by_sample(goal.metric, rows.target, found, deviation)

    def measured(self) -> dict[str, float]:
        """End the segment, and measure all rows. Raises Diverged if the loss is not finite."""
        began, boosting = time.perf_counter(), self.boosting
        validation, is_class = self._data.validation, self._data.encoding.classes is not None
        boosting.end_segment()
        last = len(boosting.trees.ends) - 1
        added = scores_of(boosting.trees, validation.features, last)
        self._scores = added if self._scores is None else self._scores + added
        assert boosting.scores is not None
        train_loss = losses_of(boosting.rows, boosting.scores, is_class=is_class).mean()
        metrics = measure(self._data, validation, self._scores)
        if not math.isfinite(metrics["loss"]):
            what = f"validation loss became {metrics['loss']} at step {self._step}"
            raise Diverged(f"{what}; try a lower learning rate")
        self._trace.report(self._step, float(train_loss), metrics["loss"])
        self._seconds += time.perf_counter() - began
        pace = self._step * len(boosting.rows.target) / self._seconds
        return metrics | {"train_loss": float(train_loss), "samples_per_second": pace}

    def _saved(self, *, is_best: bool) -> Path | str:
        state = {
            "step": self._step,
            "seconds": self._seconds,
            "reported": self._reported,
            "metrics": self._metrics,
            "ends": self.boosting.trees.ends,
            "stopping": self._stopping.state_dict(),
            "trace": self._trace.state_dict(),
        }
        with self._checkpoints.drafting() as draft:
            (draft / MODEL).write_text(self.boosting.trees.text, encoding="utf-8")
            told = json.dumps({"encoding": asdict(self._data.encoding)}, indent=1)
            (draft / DESCRIPTION).write_text(told, encoding="utf-8")
            (draft / STATE).write_text(json.dumps(state), encoding="utf-8")
        stretch = stretch_of(self._setup, self._reported)
        label = Label(self._step, is_best, stretch, state=(STATE,))
        return self._checkpoints.commit(draft, label)

    def _restored(self, source: Path | str) -> Trees:
        with opened(source) as checkpoint:
            state = json.loads((checkpoint.files / STATE).read_text(encoding="utf-8"))
            text = (checkpoint.files / MODEL).read_text(encoding="utf-8")
        self._newest = checkpoint.path
        self._step, self._seconds = state["step"], state["seconds"]
        self._reported, self._metrics = state["reported"], state["metrics"]
        self._stopping.load_state_dict(state["stopping"])
        self._trace.load_state_dict(state["trace"])
        if not self._checkpoints.continue_from(source, checkpoint.path):
            self._stopping.forget_best()
        self._checkpoints.reported(self._reported, checkpoint.path)
        return Trees(text, tuple(state["ends"]))

    def save(self) -> Path | str | None:
        """The checkpoint of the last report; None before the first."""
        return self._newest

    @property
    def best(self) -> Path | str | None:
        return None if self._newest is None else self._checkpoints.best_until(self._newest)

    def recorded(self, resource: float) -> None:
        self._checkpoints.recorded(resource)

    def findings(self) -> tuple[Finding, ...]:
        return diagnose(self._trace.history(counted="iteration"))

    def close(self) -> bool:
        return True


def measure(data: TabularData, rows: TabularRows, scores: Floats) -> dict[str, float]:
    """The loss and the metrics of rows by the scores of the trees."""
    from trials.tasks.workloads.heads import classification, of_quantities  # imports torch

    is_class = data.encoding.classes is not None
    loss = float(losses_of(rows, scores, is_class=is_class).mean())
    found = found_in(scores, is_class=is_class)
    if is_class:
        return {"loss": loss, **classification(rows.target.astype("int64"), found)}
    target = rows.target.astype("float64")
    return {"loss": loss, **of_quantities(target, found, data.encoding.target_deviation)}
