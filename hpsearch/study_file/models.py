"""The study file as frozen objects: its space, objectives, budget, search and resources.

The models refuse a value that is wrong by itself. `checks` finds mistakes that take two parts of
a file, or knowledge of the task, to see. `reading` reads a file and finds the line of each mistake.
"""

import math
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field
from pydantic.json_schema import SkipJsonSchema

from hpsearch.study_file.expressions.meaning import Requirements
from hpsearch.study_file.methods import Method, Pruner, Sampler
from hpsearch.study_file.parameters import Parameter
from hpsearch.study_file.trackers import TrackerList
from hpsearch.study_file.types import (
    EXACT,
    Bound,
    Count,
    Duration,
    Earlier,
    GpuPrice,
    Gpus,
    Level,
    Positive,
    Rounds,
    StudyName,
    Workers,
)
from hpsearch.study_file.validation import Mistake, Model
from trials.contract import LENGTHS, ROUNDS, Unit
from trials.running import report_grid
from trials.settings import in_full

GB = 1e9
"""Bytes."""
HOUR_S = 3600.0


# ---------------------------------------------------------------------------- objective and budget


class Objective(Model):
    """A metric to minimize or maximize."""

    metric: str = Field(examples=["accuracy"])
    """The name of a metric that trials report."""
    direction: Literal["minimize", "maximize"] = Field(examples=["maximize"])
    """The better direction: less or more of it."""

    @property
    def sign(self) -> float:
        """The factor that makes less of a value better."""
        return -1.0 if self.direction == "maximize" else 1.0


class Limit(Model):
    """The range that a metric must lie in for a configuration to be usable, bounds included."""

    min: Bound | None = None
    """The smallest allowed value."""
    max: Bound | None = None
    """The largest allowed value."""

    def mistakes(self) -> Iterator[Mistake]:
        if self.min is None and self.max is None:
            yield "", "has no bound; give max, min or both"
        if self.min is None or self.max is None:
            return
        if self.min > self.max:
            yield "min", f"{in_full(self.min)} is above max ({in_full(self.max)}); swap them"


class PerTrial(Model):
    """The length of one trial: exactly one of steps, epochs, samples, tokens and seconds; and how
    often it is trained to that length."""

    steps: Count | None = None
    """Optimizer steps."""
    epochs: Positive | None = None
    """Passes over the training data."""
    samples: Count | None = None
    """Training samples."""
    tokens: Count | None = None
    """Tokens of texts, without padding."""
    seconds: Positive | None = None
    """Seconds of training."""
    folds: Rounds | None = None
    """Train on this many folds of the data in turn; the value is the mean over them."""
    seeds: Rounds | None = None
    """Train with this many seeds in turn; the value is the mean over them."""
    report_every: Positive | None = None
    """The amount of training between two evaluations of a trial, in the same unit."""
    time_limit_s: Duration | None = Field(default=None, alias="time_limit")
    """Seconds after which an attempt is stopped and fails with a timeout."""

    def mistakes(self) -> Iterator[Mistake]:
        given = [unit.value for unit in self._units() if unit in LENGTHS]
        if not given:
            yield "", "sets no length; give one of steps, epochs, samples, tokens or seconds"
        for name in given[1:]:
            what = f"cannot be combined with {given[0]}: a trial is measured in one unit"
            yield name, f"{what}; keep one"
        if self.folds and self.seeds:
            yield "seeds", "cannot be combined with folds, each of which has its own; keep one"
        if len(given) != 1:
            return
        one = self.of_one
        problem = report_grid.problem_with_interval(one.unit, one.total, one.report_interval)
        if problem is not None:
            place = "report_every" if self.report_every else given[0]
            yield place, problem

    @cached_property
    def unit(self) -> Unit:
        return next(self._units())

    def _units(self) -> Iterator[Unit]:
        for unit in (*ROUNDS, *LENGTHS):
            if getattr(self, unit.value) is not None:
                yield unit

    @cached_property
    def total(self) -> float:
        return float(getattr(self, self.unit.value))

    @cached_property
    def of_one(self) -> "PerTrial":
        """The length of one training of a trial."""
        given = {each.value: getattr(self, each.value) for each in LENGTHS}
        return PerTrial.model_construct(**given, report_every=self.report_every)

    @property
    def report_interval(self) -> float:
        """The amount of training between two reports, in `unit`: `report_every`, or else 1 epoch or
        a tenth of the total; one fold, or one seed."""
        if self.report_every is not None and self.unit in LENGTHS:
            return self.report_every
        return report_grid.usual_interval(self.unit, self.total)


class LeastGain(Model):
    """The least that more training must be expected to bring."""

    gain: Positive = Field(examples=["0.002"])
    """How much better the winner gets, trained again, in the objective's own unit."""
    per: Literal["gpu_hour", "hour", "trial"] = "gpu_hour"
    """What it is to get better by: an hour of one GPU, an hour of the study, or a configuration."""


class StudyBudget(Model):
    """The budget of the whole study, with at least one limit, and of each trial."""

    trials: Count | None = None
    """The number of configurations that are tried."""
    gpu_hours: Positive | None = None
    """GPU time, by each worker's share of a GPU; without GPUs, the time of the workers."""
    cost: Positive | None = None
    """Money, at the price of `cost_per_gpu_hour`."""
    cost_per_gpu_hour: GpuPrice | None = None
    """The price of an hour of one GPU, or prices by a part of the GPU's name; `cost` needs it."""
    wall_clock_s: Duration | None = Field(default=None, alias="wall_clock")
    """Seconds that drivers may work on the study, in total."""
    target: float | None = None
    """The study stops at the first trial whose value is this good or better."""
    worth: LeastGain | None = None
    """The study stops where another hour is not expected to bring so much."""
    per_trial: PerTrial = Field(examples=["{epochs: 3}"])
    """The length of one trial."""

    def mistakes(self) -> Iterator[Mistake]:
        limits = (self.trials, self.gpu_hours, self.cost, self.wall_clock_s)
        if all(limit is None for limit in limits):
            yield "", "sets no limit for the study; give trials, gpu_hours or wall_clock"
        if self.cost is not None and self.cost_per_gpu_hour is None:
            yield "cost", "needs a price; add cost_per_gpu_hour"

    def price_of(self, device: str | None) -> float | None:
        """Money for an hour of a GPU, by the longest name that is part of the device's, if any
        is."""
        prices, wanted = self.cost_per_gpu_hour, (device or "").casefold()
        if not isinstance(prices, dict):
            return prices
        named = [name for name in prices if name.casefold() in wanted]
        return prices[max(named, key=len)] if named else None

    def cost_of(self, taken: Iterable[tuple[str | None, float]]) -> float | None:
        """Money for GPU-seconds, each with its type of device; None if no price is known."""
        priced = ((self.price_of(device), gpu_seconds) for device, gpu_seconds in taken)
        known = [price * seconds / 3600.0 for price, seconds in priced if price is not None]
        return math.fsum(known) if known else None

    def most_price_of(self, device: str | None) -> float | None:
        """The same for a limit, which must hold: without a price, a device is the dearest one."""
        price, prices = self.price_of(device), self.cost_per_gpu_hour
        return max(prices.values()) if price is None and isinstance(prices, dict) else price


# ---------------------------------------------------------------------------- search and resources


PAIRS = 10
"""The pairs of repeats, of the best trial and of the defaults, that `certify` promises."""


class Confirm(Model):
    """Repeat the best trials with new seeds at the end, to see which are good by luck."""

    top: Count = Field(examples=["3"])
    """The number of best trials."""
    seeds: Count = Field(examples=["3"])
    """The number of runs of each."""


class Search(Model):
    """The sampler that proposes configurations and the pruner that stops weak ones."""

    sampler: Sampler = Method(kind="curve_gp")
    """Proposes configurations: its name, or a mapping of `kind` and its arguments."""
    pruner: Pruner = Method(kind="promotion")
    """Stops or pauses weak trials: its name, or a mapping of `kind` and its arguments."""
    confirm: Confirm | None = None
    """Repeat the best trials with new seeds at the end."""
    certify: Level = False
    """Repeat the best trial and the defaults until it is shown that it is better: true for 95%, or
    the level."""
    warm_start: Earlier | None = None
    """Earlier studies in the same database whose results are evidence; auto finds them."""

    @property
    def level(self) -> float | None:
        """The level at which the best trial is certified; None if it is not."""
        return (0.95 if self.certify is True else self.certify) or None

    @property
    def promised_repeats(self) -> int:
        """The number of repeats that a budget promises; 0 without any."""
        if self.certify:
            return 2 * PAIRS
        return 0 if self.confirm is None else self.confirm.top * self.confirm.seeds


class Resources(Model):
    """The workers of the study, and its patience with each of its parts."""

    went: ClassVar = {"priority": "to share a cluster, give each study a number of workers"}

    workers: Workers = "auto"
    """The number of trials that run side by side; auto fills the machine or cluster."""
    processes: Annotated[int, Field(ge=1, le=EXACT)] = 1
    """The number of processes (ranks) that train each trial together."""
    cpu: Positive = 1.0
    """CPU cores for each process of a worker."""
    gpu: Gpus = "auto"
    """GPUs, or the share of one, for each process of a worker; auto is one where there are any,
    share as many trials on each as pay, found while they train."""
    retries: Annotated[int, Field(ge=0, le=EXACT)] = 2
    """The number of attempts that a trial may lose to dead workers before it fails."""
    report_deadline_s: Duration = Field(default=1800.0, alias="report_deadline")
    """Seconds without a report after which a trial is treated as hung."""
    worker_timeout_s: Duration = Field(default=120.0, alias="worker_timeout")
    """Seconds without a sign of life after which a worker is killed and replaced."""
    lease_s: Duration = Field(default=45.0, alias="lease")
    """Seconds after which a driver that does not renew its lease on the study counts as dead."""
    database_patience_s: Duration = Field(default=300.0, alias="database_patience")
    """Seconds to wait for a database that does not answer; then the driver ends, resumable."""
    disk_patience_s: Duration = Field(default=300.0, alias="disk_patience")
    """Seconds to wait for a disk that cannot be written to; then the study is interrupted."""
    stop_grace_s: Duration = Field(default=60.0, alias="stop_grace")
    """Seconds that an interrupted study waits for its workers to save."""

    @property
    def stated_gpus(self) -> float:
        return 0.0 if isinstance(self.gpu, str) else self.processes * self.gpu


# ------------------------------------------------------------------------------------------- study


class CheckpointsPlace(Model):
    """The place of checkpoints, and the most that they may take: a folder, or a mapping of both."""

    folder: str | None = None
    """A path or a URL; None for a folder beside the study file."""
    max_gb: Positive | None = None
    """GB (10^9 bytes) that the study's checkpoints may take; None for no limit."""


def _as_place(value: Any) -> Any:
    """`my/folder` as the fields of a `CheckpointsPlace`."""
    return {"folder": value} if isinstance(value, str) else value


class StudySpec(Model):
    """A whole study file."""

    study: StudyName = Field(examples=["my-study"])
    """Its name, unique in its database."""
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
    """Every random number in the study is derived from it."""
    task: dict[str, Any] = Field(
        examples=["{kind: text_classification, train: train.csv, ...}", "{kind: ask}"]
    )
    """The training and its data; the other keys depend on `kind`."""
    settings: dict[str, Any] = Field(default={})
    """Settings with the same value in every trial."""
    space: dict[str, Annotated[Parameter, Field(discriminator="type")]] = Field(
        examples=["{learning_rate: {type: float, low: 1.0e-5, high: 1.0e-3, log: true}}"]
    )
    """The settings that are searched, by name."""
    requires: Requirements = ()
    """Limits between parameters that every configuration keeps, such as heads * 8 <= width."""
    objectives: tuple[Objective, ...]
    """A metric to minimize or maximize, or a list of several: `objective` in the file."""
    constraints: dict[str, Limit] = Field(default={})
    """The range that each metric must lie in for a configuration to be usable."""
    budget: StudyBudget = Field(examples=["{trials: 20, per_trial: {epochs: 3}}"])
    """The budget of the study and of each trial."""
    search: Search = Search()
    """The sampler and the pruner."""
    resources: Resources = Resources()
    """The workers that trials run on."""
    enqueue: list[dict[str, Any]] = Field(default=[])
    """Configurations that are tried first, such as ones known to be good."""
    checkpoints: Annotated[
        CheckpointsPlace, BeforeValidator(_as_place, json_schema_input_type=str | CheckpointsPlace)
    ] = CheckpointsPlace()
    """The folder for checkpoints, and how much they may take."""
    track: TrackerList = ()
    """Experiment trackers of the study, each a word or a mapping of its options."""
    base: SkipJsonSchema[Path]
    """The folder of the study file; relative paths in the file start there. Not in the file."""
    text: SkipJsonSchema[str]
    """The file's text. Not in the file."""

    @property
    def objective(self) -> Objective:
        return self.objectives[0]
