"""Trains the random configurations of a study in full, and keeps what they report.

A workload is a study file. Its configurations are drawn from the study's seed and space, each by
its number, so that they are the same however many are trained, and whenever. A run is one
configuration with one seed. It is trained as a worker of a study trains an attempt, and its file is
written when it has ended: a recording that is stopped loses the run under way.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pandas as pd
import pyarrow as pa
from pyarrow import parquet

from hpsearch.domain.seeds import derived_seed
from hpsearch.running.executors.worker_config import WorkerConfig
from hpsearch.running.study_run.workers import worker_config
from hpsearch.study_file.models import StudySpec
from hpsearch.study_file.reading import load
from hpsearch.study_file.space import suggest
from trials.contract import Setup, Task
from trials.running import arithmetic
from trials.running.runner import Runner, failure_of

METRIC = "metrics."
"""Begins the name of a metric's column."""
LEVELS = 9
"""A metric is recorded if a run has reported it at least so often."""
DIGITS = 6
"""Significant digits of a metric."""
UNDER_WAY = ("diverged", "out_of_memory")
"""Failures that are a result; all others are mistakes of the recording."""
SHARED_MEMORY = Path("/dev/shm")


@dataclass(frozen=True, order=True)
class Entry:
    """A run to record: the number of a configuration, and which of its seeds."""

    seed: int
    trial: int


@dataclass(frozen=True)
class Workload:
    """A study file whose configurations are trained.

    Args:
        file: The study file.
        folder: What the study file's paths start from; the runs are kept in `raw` in it.
    """

    file: Path
    folder: Path

    @property
    def name(self) -> str:
        return self.file.stem

    @cached_property
    def spec(self) -> StudySpec:
        return load(self.file).model_copy(update={"base": self.folder})

    @property
    def runs(self) -> Path:
        """The folder of its runs."""
        return self.folder / "raw" / self.name

    @property
    def levels(self) -> int:
        """How often a run reports."""
        return len(self.config("").budget.report_at)

    def config(self, checkpoints: str) -> WorkerConfig:
        """The configuration of a worker of the study."""
        return worker_config(self.spec, checkpoints)

    def configuration(self, trial: int) -> dict[str, Any]:
        """The configuration of a number: drawn at random from the space and its conditions."""
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        seed = derived_seed(self.spec.seed, trial, "recorded configuration")
        study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed))
        return suggest(study.ask(), self.spec.space)

    def run_file(self, entry: Entry) -> Path:
        """Where a run is kept once it has ended."""
        return self.runs / f"{entry.trial:04d}-{entry.seed}.json"

    @cached_property
    def digest(self) -> str:
        """Tells what is trained: runs of another task, space, budget or data do not belong
        together. What the file leaves open does not count, so that a study file may learn new words
        and a recording still goes on."""
        spec = self.spec
        space = {name: each.model_dump(exclude_unset=True) for name, each in spec.space.items()}
        per_trial = spec.budget.per_trial.model_dump(exclude_unset=True)
        parts = [spec.seed, spec.task, spec.settings, space, per_trial]
        text = json.dumps(parts, sort_keys=True, default=str)
        digest = hashlib.sha256(text.encode())
        for value in spec.task.values():
            path = self.folder / value if isinstance(value, str) else None
            if path is not None and path.is_file():
                digest.update(path.read_bytes())
        return digest.hexdigest()[:16]


class Recorder:
    """Trains runs of one workload in this process, one after another.

    Args:
        workload: The workload.
        device: A torch device name.
    """

    def __init__(self, workload: Workload, device: str) -> None:
        self._workload = workload
        self._device = device
        self._task: Task | None = None
        self._data: dict[str, Any] = {}
        self._warm = False

    def record(self, entry: Entry) -> dict[str, Any]:
        """Train a run and write its file.

        Raises:
            RuntimeError: It failed in a way that is not a result.
        """
        workload = self._workload
        file = workload.run_file(entry)
        file.parent.mkdir(parents=True, exist_ok=True)
        run = self._train(entry)
        unfinished = file.with_suffix(".unfinished")
        unfinished.write_text(json.dumps(run))
        unfinished.replace(file)
        return run

    def _train(self, entry: Entry) -> dict[str, Any]:
        """The reports of a run, with how it ended."""
        fastest = SHARED_MEMORY if SHARED_MEMORY.is_dir() else None
        checkpoints = tempfile.mkdtemp(prefix="recording-", dir=fastest)
        config = self._workload.config(checkpoints)
        if self._task is None:
            self._task = config.load_task()
        params = self._workload.configuration(entry.trial)
        settings, computed = arithmetic.adopt(
            None,
            {**config.settings, **params},
            self._device,
            threads=config.threads,
            known=self._task.settings,
        )
        setup = Setup(
            params=settings,
            seed=derived_seed(self._workload.spec.seed, entry.trial, entry.seed, "recorded run"),
            budget=config.budget,
            folder=Path(checkpoints) / "run",
            device=self._device,
            goal=config.goal,
        )
        try:
            reports, failure = self._follow(self._task, setup)
        finally:
            shutil.rmtree(checkpoints, ignore_errors=True)
        return {
            **asdict(entry),
            "digest": self._workload.digest,
            "params": params,
            "reports": reports,
            "failure": failure,
            "arithmetic": computed.as_plain(),
            "python": platform.python_version(),
        }

    def _follow(self, task: Task, setup: Setup) -> tuple[list[dict[str, Any]], str | None]:
        """Train a run to its end; its reports, and how it failed.

        A run that fails gets a last report without metrics, at the level that it did not reach.
        """
        is_built_in = self._workload.config("").prepares
        data = self._prepared(task, setup) if is_built_in else None
        seconds = _clock(self._device, is_built_in)
        reports: list[dict[str, Any]] = []
        runner: Runner | None = None
        try:
            runner = Runner(task, data, setup)
            for report in runner.advance(setup.budget.total):
                reports.append(_row(report.resource, seconds(), report.metrics))
                runner.recorded(report.resource)
        except Exception as error:  # a failed training is a result
            failure = failure_of(error)
            if failure.kind not in UNDER_WAY:
                raise RuntimeError(f"{self._workload.name}: {failure.text}") from error
            reached = reports[-1]["resource"] if reports else 0.0
            missed = next(level for level in setup.budget.report_at if level > reached)
            reports.append(_row(missed, seconds(), {}))
            return reports, f"{failure.kind}: {failure.text}"
        finally:
            while runner is not None and not runner.close():
                pass
        return reports, None

    def _prepared(self, task: Task, setup: Setup) -> Any:
        """The data for a run, prepared once."""
        key = task.data_key(setup.params)
        if key not in self._data:
            self._data[key] = task.prepare(setup.params)
        if not self._warm:
            task.rehearse(setup, self._data[key])  # imports what only training needs: not timed
            self._warm = True
        return self._data[key]


def _row(resource: float, seconds: float, metrics: Mapping[str, float]) -> dict[str, Any]:
    return {"resource": resource, "seconds": round(seconds, 4), "metrics": dict(metrics)}


def _clock(device: str, is_built_in: bool) -> Callable[[], float]:
    """Seconds since now: processor time on a CPU, where others may use the machine too, else of the
    wall clock.

    A built-in task trains in this thread. What it gives to others, such as writing a large
    checkpoint, does not keep it from training, and is not counted. Training code of one's own runs
    in a thread of its own: all threads are counted.
    """
    now = time.perf_counter
    if device == "cpu":
        now = time.thread_time if is_built_in else time.process_time
    began = now()
    return lambda: now() - began


# --------------------------------------------------------------------------------- the table


def read_runs(workload: Workload) -> list[dict[str, Any]]:
    """The runs that have ended, by configuration and seed.

    Raises:
        SystemExit: One of them belongs to another version of the study file or of its data.
    """
    runs = [json.loads(file.read_text()) for file in sorted(workload.runs.glob("*.json"))]
    for run in runs:
        if run["digest"] != workload.digest:
            file = workload.run_file(Entry(run["seed"], run["trial"]))
            raise SystemExit(
                f"{file}: the study file or its data has changed; remove {file.parent}"
            )
    return runs


def unpack(workload: Workload, table: Path) -> int:
    """Write the runs of a table that have no file of their own, so that a recording continues from
    it; how many these were. A table of another version of the study file or its data has none."""
    if not table.exists():
        return 0
    packed = parquet.read_table(table)
    made = json.loads((packed.schema.metadata or {}).get(b"made", b"{}"))
    if made.get("digest") != workload.digest:
        return 0
    unpacked = 0
    for (trial, seed), rows in packed.to_pandas().groupby(["trial", "seed"]):
        file = workload.run_file(Entry(int(seed), int(trial)))
        if file.exists():
            continue
        file.parent.mkdir(parents=True, exist_ok=True)
        run = _run_of(workload, int(trial), int(seed), rows, made)
        unfinished = file.with_suffix(f".unfinished-{os.getpid()}")
        unfinished.write_text(json.dumps(run))
        unfinished.replace(file)
        unpacked += 1
    return unpacked


def _run_of(
    workload: Workload, trial: int, seed: int, rows: pd.DataFrame, made: Mapping[str, Any]
) -> dict[str, Any]:
    """A run as its rows in a table tell of it."""
    unit = workload.spec.budget.per_trial.unit.value
    reports = []
    for row in rows.to_dict("records"):
        metrics = {}
        for name, value in row.items():
            if str(name).startswith(METRIC) and np.isfinite(value):
                metrics[str(name).removeprefix(METRIC)] = value
        reports.append(_row(row[unit], row["seconds"], metrics))
    reports.sort(key=lambda report: report["resource"])
    failed = not reports[-1]["metrics"]
    return {
        **asdict(Entry(seed, trial)),
        "digest": workload.digest,
        "params": workload.configuration(trial),
        "reports": reports,
        "failure": "not recorded" if failed else None,
        "arithmetic": made["computers"][0],
        "python": made["pythons"][0],
    }


def table_of(workload: Workload, runs: list[dict[str, Any]]) -> pd.DataFrame:
    """Runs as a table for `simulate.py`, with a row for each report."""
    unit = workload.spec.budget.per_trial.unit.value
    metrics = list(_often_reported(runs))
    rows = []
    for run in runs:
        params = {name: run["params"].get(name) for name in workload.spec.space}
        for report in run["reports"]:
            measured = {METRIC + name: report["metrics"].get(name) for name in metrics}
            row = {"trial": run["trial"], "seed": run["seed"], **params, unit: report["resource"]}
            rows.append({**row, **measured, "seconds": report["seconds"]})
    frame = pd.DataFrame(rows)
    for name in metrics:
        column = pd.to_numeric(frame[METRIC + name])
        frame[METRIC + name] = [float(f"{value:.{DIGITS}g}") for value in column]
    return frame


def _often_reported(runs: list[dict[str, Any]]) -> Iterator[str]:
    """The metrics that a run has reported at `LEVELS` levels or more."""
    found: dict[str, int] = {}
    for run in runs:
        counts: dict[str, int] = {}
        for report in run["reports"]:
            for name in report["metrics"]:
                counts[name] = counts.get(name, 0) + 1
        for name, count in counts.items():
            found[name] = max(found.get(name, 0), count)
    return (name for name, count in found.items() if count >= LEVELS)


def pack(workload: Workload, to: Path) -> pd.DataFrame | None:
    """Write all runs that have ended as one table, and return it; None where there are none."""
    runs = read_runs(workload)
    if not runs:
        return None
    frame = table_of(workload, runs)
    made = {
        "digest": workload.digest,
        "computers": _different(run["arithmetic"] for run in runs),
        "pythons": _different(run["python"] for run in runs),
    }
    table = pa.Table.from_pandas(frame, preserve_index=False)
    table = table.replace_schema_metadata(
        {**(table.schema.metadata or {}), "made": json.dumps(made)}
    )
    to.parent.mkdir(parents=True, exist_ok=True)
    unfinished = to.with_suffix(f".unfinished-{os.getpid()}")
    parquet.write_table(table, unfinished, compression="zstd", compression_level=19)
    unfinished.replace(to)
    return frame


def _different(values: Iterator[Any]) -> list[Any]:
    """Each value once."""
    return [json.loads(text) for text in sorted({json.dumps(value) for value in values})]


# ---------------------------------------------------------------------------------- figures


def summary(workload: Workload, frame: pd.DataFrame) -> dict[str, Any]:
    """A row of figures about a recorded table.

    The noise is the standard deviation between seeds of one configuration, pooled over those that
    have several; `noise_of_good` is that of those whose first seed ends no worse than the median.
    Correlations are Spearman's, over first seeds, of the objective (or the validation loss) at a
    share of the budget with the objective at its end; a run that has diverged is the worst.
    """
    from scipy.stats import spearmanr

    objective = workload.spec.objective
    total = workload.spec.budget.per_trial.total
    losses = _curves(workload, frame, objective.metric) * objective.sign
    first = losses.xs(0, level="seed")
    final = first[total]
    finished = final[np.isfinite(final)] * objective.sign
    best, worst = finished.min(), finished.max()
    if objective.sign < 0:
        best, worst = worst, best
    good = final.index[final <= final.median()]
    ends = frame.groupby(["trial", "seed"])["seconds"].max()
    row: dict[str, Any] = {
        "workload": workload.name,
        "configurations": len(first),
        "repeats": len(losses) - len(first),
        "diverged": len(first) - len(finished),
        "levels": workload.levels,
        "seconds": float(ends.median()),
        "best": float(best),
        "median": float(finished.median()),
        "worst": float(worst),
        "noise": _noise(losses[total]),
        "noise_of_good": _noise(losses[total][losses.index.isin(good, level="trial")]),
    }
    validation = _curves(workload, frame, "loss").xs(0, level="seed")
    for name, curves in (("objective", first), ("loss", validation)):
        for share, label in SHARES.items():
            early = curves.apply(lambda curve, at=share * total: _at(curve, at), axis=1)
            same = spearmanr(early.fillna(np.inf), final.fillna(np.inf))
            row[f"{name}_{label}"] = float(same.statistic)
    return row


SHARES = {1 / 9: "R/9", 1 / 3: "R/3", 4 / 9: "4R/9", 2 / 3: "2R/3"}
"""The shares of the budget at which configurations are compared, with their names."""


def _curves(workload: Workload, frame: pd.DataFrame, metric: str) -> pd.DataFrame:
    """A metric at the levels (columns) of each configuration and seed (rows)."""
    unit = workload.spec.budget.per_trial.unit.value
    wide = frame.pivot(index=["trial", "seed"], columns=unit, values=METRIC + metric)
    return wide.sort_index(axis=1)


def _at(curve: pd.Series[float], resource: float) -> float:
    """A curve between two levels."""
    return float(np.interp(resource, curve.index.to_numpy(), curve.to_numpy()))


def _noise(final: pd.Series[float]) -> float | None:
    """The standard deviation between seeds, pooled; None where no configuration has several."""
    variances = final.unstack("seed").replace([np.inf, -np.inf], np.nan).var(axis=1).dropna()
    return float(np.sqrt(variances.mean())) if len(variances) else None
