"""The learning curves of the races, read from files: LCBench's surrogate, TaskSet's tables, and
this project's own recordings.

LCBench (Zimmer et al. 2021, through YAHPO Gym): neural networks on tabular data, 7 hyperparameters,
52 epochs. The share of errors on the validation data is minimised, as in YAHPO Gym's own suites.
Time is the running maximum of the surrogate's time output.

TaskSet (Metz et al. 2020, through DyHPO): 1,000 settings of Adam with 8 hyperparameters on
recurrent text classifiers, with 51 points of the validation loss, each of which costs the same. All
hyperparameters are searched on a log scale, beta1 and beta2 as 1 - beta. A proposal takes the
nearest row that is not yet taken. A run that diverges ends there and counts as ten times the median
initial loss; larger finite losses are cut off at that value. A point takes a minute.

Recorded (docs/measured/recorded-curves.md): configurations that `record.py` trained in full, one
table for each study file in `benchmarks/recorded`. The study's objective is minimised; one that is
maximised counts as 1 - value. A proposal takes the nearest configuration that is not yet taken,
with the first of its seeds. Time is the recorded time of these small models, times 1,000: what a
study does once a second must not take a share of a training. Diverged runs count as in TaskSet.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import optuna
import yaml
from pydantic import TypeAdapter

from hpsearch.study_file.levels import trial_budget
from hpsearch.study_file.models import StudySpec
from hpsearch.study_file.parameters import Parameter
from hpsearch.study_file.reading import load
from hpsearch.study_file.space import distribution_of
from simulation.curve_file import load_curves
from simulation.curves import Curve, Floats, RecordedCurves
from simulation.running import Curves

RANDOM_CONFIGURATIONS = 2000
"""How many of them determine the best and the median value, if there is no table."""

RECORDED = Path(__file__).parents[1] / "recorded"
"""The folder with the recorded tables and their study files."""

METRIC = "loss"
VALIDATION_LOSS = "validation_loss"
"""What a recorded metric is called whose name is that of the races' own."""
MINUTE = 60.0
SLOWER = 1000.0
"""The factor of recorded times."""
DIVERGED = 10.0
"""A diverged run counts as this many median initial losses."""


class Task(Protocol):
    """Something to search: a space, its curves, and a scale for their final values."""

    @property
    def name(self) -> str:
        """The name by which the command knows it."""

    @property
    def family(self) -> str:
        """lcbench, taskset or recorded."""

    @property
    def unit(self) -> str:
        """The unit of the resource, as in a study file."""

    @property
    def total(self) -> int:
        """The full budget of a trial: it reports at 1, 2, ... up to this."""

    @property
    def space(self) -> dict[str, dict[str, Any]]:
        """The space, as in a study file."""

    @property
    def best(self) -> float:
        """The best final value: of random configurations, or of the table."""

    @property
    def median(self) -> float:
        """The median of the same final values."""

    @property
    def full_seconds(self) -> float:
        """The mean time of a full trial, over the same configurations."""

    @property
    def penalty(self) -> float:
        """The loss that a diverged run counts as."""

    def curves(self) -> Curves:
        """The curves for one race."""


class Scaled:
    """The scale of a task whose final values are known."""

    _final: Floats

    @property
    def best(self) -> float:
        return float(self._final.min())

    @property
    def median(self) -> float:
        return float(np.median(self._final))


def parameters(space: Mapping[str, Mapping[str, Any]]) -> dict[str, Parameter]:
    """A space as the program reads it from a study file."""
    return {
        name: TypeAdapter[Any](Parameter).validate_python(dict(text))
        for name, text in space.items()
    }


def random_configurations(
    space: dict[str, dict[str, Any]], count: int, seed: int
) -> list[dict[str, Any]]:
    """Configurations drawn uniformly from a space without conditions."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed))
    distributions = {
        name: distribution_of(parameter) for name, parameter in parameters(space).items()
    }
    return [study.ask(distributions).params for _ in range(count)]


# --------------------------------------------------------------------------------- LCBench

LCBENCH_SPACE: dict[str, dict[str, Any]] = {
    "batch_size": {"type": "int", "low": 16, "high": 512, "log": True},
    "learning_rate": {"type": "float", "low": 1e-4, "high": 1e-1, "log": True},
    "momentum": {"type": "float", "low": 0.1, "high": 0.99},
    "weight_decay": {"type": "float", "low": 1e-5, "high": 1e-1},
    "num_layers": {"type": "int", "low": 1, "high": 5},
    "max_units": {"type": "int", "low": 64, "high": 1024, "log": True},
    "max_dropout": {"type": "float", "low": 0.0, "high": 1.0},
}
"""In the order of the surrogate's inputs, after the epoch."""

EPOCHS = 52
TIME, ACCURACY = 0, 1
"""Columns of the surrogate's output; the accuracy is in percent."""


class LCBenchCurves:
    """The surrogate for one task. Every configuration is computed once, as a whole curve."""

    def __init__(self, folder: Path, encoded: int) -> None:
        self._session = _session(folder)
        self._encoded = encoded
        self._known: dict[tuple[Any, ...], Curve] = {}

    def compute(self, configurations: list[dict[str, Any]]) -> list[Curve]:
        """The curves of several configurations at once."""
        levels = np.arange(1, EPOCHS + 1, dtype=float)
        rows = np.array(
            [[params[name] for name in LCBENCH_SPACE] for params in configurations],
            dtype=np.float32,
        )
        epochs = np.tile(levels.astype(np.float32), len(rows))[:, None]
        continuous = np.hstack([epochs, np.repeat(rows, EPOCHS, axis=0)])
        category = np.full((len(continuous), 1), self._encoded, dtype=np.int32)
        (output,) = self._session.run(None, {"x_cat": category, "x_cont": continuous})
        curves = output.reshape(len(rows), EPOCHS, -1).astype(float)
        seconds = np.maximum.accumulate(np.maximum(curves[:, :, TIME], 0.0), axis=1)
        losses = 1 - curves[:, :, ACCURACY] / 100
        return [
            Curve(levels, {METRIC: loss}, time) for loss, time in zip(losses, seconds, strict=True)
        ]

    def _curve(self, params: Mapping[str, Any]) -> Curve:
        key = tuple(params[name] for name in LCBENCH_SPACE)
        if key not in self._known:
            (self._known[key],) = self.compute([dict(params)])
        return self._known[key]

    def measure(self, params: Mapping[str, Any], seed: int, resource: float) -> Mapping[str, float]:
        """The loss at an epoch."""
        return self._curve(params).at(resource)

    def seconds(self, params: Mapping[str, Any], resource: float) -> float:
        """Seconds of training up to an epoch."""
        return self._curve(params).seconds_at(resource)


@lru_cache(maxsize=1)
def _session(folder: Path) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(str(folder / "model.onnx"), options)


@dataclass(frozen=True)
class LCBench(Scaled):
    """A task of LCBench, named by its OpenML number."""

    folder: Path
    name: str
    family: str = "lcbench"
    unit: str = "epochs"
    total: int = EPOCHS

    @property
    def space(self) -> dict[str, dict[str, Any]]:
        return LCBENCH_SPACE

    def curves(self) -> LCBenchCurves:
        """The curves for one race."""
        encoding = json.loads((self.folder / "encoding.json").read_text())["OpenML_task_id"]
        return LCBenchCurves(self.folder, encoding[self.name])

    @cached_property
    def _random(self) -> list[Curve]:
        seed = int.from_bytes(hashlib.sha256(f"lcbench {self.name}".encode()).digest()[:4], "big")
        return self.curves().compute(
            random_configurations(LCBENCH_SPACE, RANDOM_CONFIGURATIONS, seed)
        )

    @cached_property
    def _final(self) -> Floats:
        return np.array([curve.metrics[METRIC][-1] for curve in self._random])

    @property
    def full_seconds(self) -> float:
        return float(np.mean([curve.seconds[-1] for curve in self._random]))

    @property
    def penalty(self) -> float:
        return DIVERGED * float(np.median([curve.metrics[METRIC][0] for curve in self._random]))


# --------------------------------------------------------------------------------- TaskSet


@dataclass(frozen=True)
class TaskSet(Scaled):
    """A table of TaskSet, named by its file."""

    folder: Path
    name: str
    family: str = "taskset"
    unit: str = "steps"

    @cached_property
    def _table(self) -> tuple[list[str], Floats, Floats]:
        """Names, settings `[n, d]` and validation losses `[n, points]`."""
        with np.load(self.folder / f"{self.name}.npz", allow_pickle=True) as file:
            names, settings, losses = (
                [str(name) for name in file["hp_names"]],
                file["hp"],
                file["valid"],
            )
        for i, name in enumerate(names):
            if name in ("beta1", "beta2"):
                names[i], settings[:, i] = f"one_minus_{name}", 1 - settings[:, i]
        return names, settings.astype(float), losses.astype(float)

    @property
    def total(self) -> int:
        return int(self._table[2].shape[1])

    @property
    def penalty(self) -> float:
        return DIVERGED * float(np.nanmedian(self._table[2][:, 0]))

    @cached_property
    def _losses(self) -> Floats:
        """Losses cut off at the penalty; NaN after a run has diverged."""
        losses = np.minimum(self._table[2], self.penalty)
        ended = np.maximum.accumulate(np.isnan(losses), axis=1)
        return np.where(ended, np.nan, losses)

    @cached_property
    def space(self) -> dict[str, dict[str, Any]]:
        names, settings, _ = self._table
        return {
            name: {
                "type": "float",
                "low": float(column.min()),
                "high": float(column.max()),
                "log": True,
            }
            for name, column in zip(names, settings.T, strict=True)
        }

    def curves(self) -> RecordedCurves:
        """The curves for one race, with no row taken."""
        configurations, curves = self._rows
        return RecordedCurves(parameters(self.space), configurations, [[each] for each in curves])

    @cached_property
    def _rows(self) -> tuple[list[dict[str, Any]], list[Curve]]:
        names, settings, _ = self._table
        points = np.arange(1, self.total + 1, dtype=float)
        configurations = [dict(zip(names, map(float, row), strict=True)) for row in settings]
        return configurations, [
            Curve(points, {METRIC: losses}, MINUTE * points) for losses in self._losses
        ]

    @cached_property
    def _final(self) -> Floats:
        return np.where(np.isnan(self._losses[:, -1]), self.penalty, self._losses[:, -1])

    @property
    def full_seconds(self) -> float:
        return MINUTE * self.total


# -------------------------------------------------------------------------------- Recorded


@dataclass(frozen=True)
class Recorded(Scaled):
    """A workload whose training was recorded, named by its study file.

    Its resource counts reports, whatever unit the study's budget has.
    """

    folder: Path
    name: str
    family: str = "recorded"
    unit: str = "steps"

    @cached_property
    def _spec(self) -> StudySpec:
        return load(self.folder / f"{self.name}.yaml")

    @cached_property
    def _file(self) -> RecordedCurves:
        """The table as it was recorded."""
        return load_curves(self.folder / f"{self.name}.parquet", self._spec).curves

    @cached_property
    def _levels(self) -> tuple[float, ...]:
        """The resources of the reports, in the study's unit."""
        return trial_budget(self._spec).report_at

    @property
    def total(self) -> int:
        return len(self._levels)

    @cached_property
    def space(self) -> dict[str, dict[str, Any]]:
        text = yaml.safe_load((self.folder / f"{self.name}.yaml").read_text())
        return dict(text["space"])

    def curves(self) -> RecordedCurves:
        """The curves of the first seeds for one race, with no configuration taken."""
        runs = [[curve] for curve in self._curves]
        return RecordedCurves(self._spec.space, self._file.configurations, runs)

    @cached_property
    def _curves(self) -> list[Curve]:
        """The curve of each configuration over its reports, with its loss at most the penalty."""
        points = np.arange(1, self.total + 1, dtype=float)
        found = []
        for (curve, *_), losses in zip(self._file.runs, self._losses, strict=True):
            seconds = SLOWER * np.array([curve.seconds_at(level) for level in self._levels])
            others = {}
            for name, values in {**curve.others, **curve.metrics}.items():
                unlike = VALIDATION_LOSS if name == METRIC else name
                others[unlike] = np.interp(self._levels, curve.levels, values)
            cut_off = np.minimum(losses, self.penalty)
            found.append(Curve(points, {METRIC: cut_off}, seconds, others))
        return found

    @cached_property
    def _losses(self) -> Floats:
        """The losses of the first seeds at the reports, `[n, total]`; NaN after a run diverged."""
        objective = self._spec.objective
        rows = []
        for curve, *_ in self._file.runs:
            values = np.interp(self._levels, curve.levels, curve.metrics[objective.metric])
            rows.append(1 - values if objective.direction == "maximize" else values)
        return np.array(rows)

    @cached_property
    def penalty(self) -> float:
        return DIVERGED * float(np.nanmedian(self._losses[:, 0]))

    @cached_property
    def _final(self) -> Floats:
        final = self._losses[:, -1]
        return np.where(np.isnan(final), self.penalty, np.minimum(final, self.penalty))

    @property
    def full_seconds(self) -> float:
        whole = [curve.seconds[-1] for curve in self._curves if curve.is_finite]
        return float(np.mean(whole))


def recorded_tasks(folder: Path = RECORDED) -> list[Recorded]:
    """Every workload of a folder that has both a study file and a table."""
    tables = sorted(folder.glob("*.parquet"))
    return [Recorded(folder, table.stem) for table in tables if table.with_suffix(".yaml").exists()]


def tasks_in(file: Path | None, data: Path | None, family: str) -> list[Task]:
    """The tasks to race on.

    Args:
        file: JSON with a list `tasks`: numbers of LCBench tasks, names of TaskSet tables and of
            recorded workloads. None names none.
        data: The folder that contains `lcbench` and `taskset`, or one of these folders itself. None
            has neither.
        family: lcbench, taskset or recorded. TaskSet's tables and recorded workloads are those in
            the file, or else all.

    Raises:
        SystemExit: A task is in no family, or there are no tasks.
    """
    folder = RECORDED if data is None else data
    lcbench = folder / "lcbench" if (folder / "lcbench").is_dir() else folder
    taskset = folder / "taskset" if (folder / "taskset").is_dir() else folder
    named = [] if file is None else json.loads(file.read_text())["tasks"]
    wanted = [str(name) for name in named]
    tables = sorted(path.stem for path in taskset.glob("*.npz"))
    encoding = lcbench / "encoding.json"
    known = json.loads(encoding.read_text())["OpenML_task_id"] if encoding.is_file() else {}
    recorded = recorded_tasks()
    names = [task.name for task in recorded]
    for name in wanted:
        if name not in known and name not in tables and name not in names:
            raise SystemExit(
                f"{file}: {name} is neither a task in {lcbench} nor a table in {taskset} "
                f"or {RECORDED}"
            )
    tasks: list[Task] = []
    if family == "lcbench":
        tasks += [LCBench(lcbench, name) for name in wanted if name in known]
    if family == "taskset":
        tasks += [TaskSet(taskset, name) for name in [n for n in wanted if n in tables] or tables]
    if family == "recorded":
        tasks += [task for task in recorded if task.name in wanted] or recorded
    if not tasks:
        raise SystemExit(f"no task of the family {family} (tasks: {file}, data: {data})")
    return tasks
