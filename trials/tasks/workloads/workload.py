"""A model with its samples on a device: the common steps of all built-in tasks."""

import abc
import itertools
import math
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import safetensors.torch
import torch
from torch import nn

from trials.checkpoints.weights import MODEL, Weights, write
from trials.data import ladder
from trials.data.batching import Ints, Lengths, cut, longest_batch, totals
from trials.data.samples import Samples
from trials.data.workload import Batch, Replay, Work
from trials.devices import processes
from trials.devices.precision import Precision
from trials.devices.processes import Group
from trials.loop.captured import is_captured
from trials.loop.micro_batch import MicroBatch, evaluation_batch_of
from trials.settings import Settings
from trials.tasks.workloads.heads import Head, by_sample


class Stored(Protocol):
    """A model's files in the folder of a checkpoint."""

    def weights(self) -> Weights:
        """The model's own tensors for a checkpoint, not copies."""

    def write(self, folder: Path, weights: Weights) -> None:
        """Write such weights with the files to use them, in any thread."""

    def read(self, folder: Path) -> None:
        """Load the model's weights."""


class NetworkFiles:
    """The files of a network: all its weights in one, and a description beside it (a `Stored`).
    `describe`: writes the description into a folder."""

    def __init__(
        self, network: nn.Module, device: torch.device, describe: Callable[[Path], None]
    ) -> None:
        self._network, self._device, self._describe = network, device, describe

    def weights(self) -> Weights:
        return {MODEL: self._network.state_dict()}

    def write(self, folder: Path, weights: Weights) -> None:
        write(weights, folder)
        self._describe(folder)

    def read(self, folder: Path) -> None:
        path = folder / MODEL
        safetensors.torch.load_model(self._network, str(path), device=str(self._device))


@dataclass(frozen=True)
class SampleSet:
    samples: Samples
    lengths: Lengths


@dataclass(frozen=True)
class Ladders:
    """The padded lengths of training and of evaluation; None for the longest of each batch."""

    training: Ints | None = None
    evaluation: Ints | None = None


def ladders(
    training: Ints,
    evaluation: Ints,
    settings: Settings,
    device: torch.device,
    most: int = ladder.MOST_RUNGS,
) -> Ladders:
    """The ladders of samples with these lengths, if steps on the device are captured."""
    if not is_captured(settings, device):
        return Ladders()
    return Ladders(
        ladder.of_training(training, settings.batch_size, settings.bucketing, most),
        ladder.of_evaluation(evaluation, settings.eval_batch_size, most),
    )


Measures = tuple[torch.Tensor, torch.Tensor]
"""The sum of the losses of some samples, and a row of other measures for each."""
Measure = Callable[[Ints, Precision], Measures]  # measures the samples of some rows


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Evaluate without dropout and gradients; the model trains again afterwards."""
    model.eval()
    try:
        with torch.inference_mode():
            yield
    finally:
        model.train()


class Batches:
    """The validation batches of a workload, which become smaller if they do not fit the device.
    `settings`: `eval_batch_size` is the most samples in a batch."""

    def __init__(
        self, model: nn.Module, lengths: Lengths, settings: Settings, device: torch.device
    ) -> None:
        self._model, self._lengths, self._settings, self._device = model, lengths, settings, device
        self.size = settings.eval_batch_size
        self._limits: dict[str, MicroBatch] = {}

    def parts(self, order: Ints) -> list[Ints]:
        return cut(order, self.size)

    def measured(
        self, rows: Ints, precision: Precision, measure: Measure
    ) -> list[tuple[Ints, Measures]]:
        """The measures of a batch with their rows, in one part or several."""

        def in_parts(size: int) -> list[tuple[Ints, Measures]]:
            return [(part, measure(part, precision)) for part in cut(rows, size)]

        return self._limit(precision).fitting(len(rows), in_parts)

    def joined(self, rows: Ints, precision: Precision, measure: Measure) -> Measures:
        """The measures of a batch as a whole."""
        found = self.measured(rows, precision, measure)
        if len(found) == 1:
            _, measures = found[0]
            return measures
        losses, others = [], []
        for _, (loss, other) in found:
            losses.append(loss)
            others.append(other)
        return torch.stack(losses).sum(), torch.cat(others)

    def rehearse(self, order: Ints, precision: Precision, measure: Measure) -> None:
        """Measure the first batch of `order`, and wait for the device."""
        first = self.parts(order)[0]
        _, (loss, _) = self.measured(first, precision, measure)[-1]
        loss.item()

    def _limit(self, precision: Precision) -> MicroBatch:
        name = precision.name
        if name not in self._limits:
            given = self._model, self._lengths, self._settings, precision, self._device
            self._limits[name] = evaluation_batch_of(*given)
        return self._limits[name]


def sum_of(losses: list[torch.Tensor], group: Group | None = None) -> float:
    """The sum of the losses of batches; NaN if one is not finite. `group`: the processes that have
    batches of their own; None if all have the same. The sum is rounded once, however the batches
    are distributed."""
    values: list[float] = torch.stack(losses).tolist() if losses else []
    if group is not None:
        shares = group.gather(values)
        values = list(itertools.chain.from_iterable(shares))
    if not all(map(math.isfinite, values)):
        return math.nan
    return math.fsum(values)


def at_once(name: str, batch: Batch, work: Work) -> tuple[torch.Tensor, ...]:
    """Do a batch's work (a `Replay` that captures nothing)."""
    return work(batch)


class BuiltInWorkload(abc.ABC):
    """A model with its training and its validation samples (a `workload.Workload`)."""

    baked: Hashable  # all that the losses compute with beside weights and a batch
    replay: Replay = staticmethod(at_once)  # evaluates a batch

    def __init__(
        self,
        model: nn.Module,
        files: Stored,
        train: SampleSet,
        validation: SampleSet,
        settings: Settings,
        device: torch.device,
    ) -> None:
        self.model = model
        self.samples, self.lengths = train.samples, train.lengths
        self.weights, self.write, self.read = files.weights, files.write, files.read
        self._validation, self._eval_lengths = validation.samples, validation.lengths
        # Longest first: samples of a batch pad little, and too large a batch fails at once.
        self._order = np.argsort(-totals(self._eval_lengths), kind="stable")
        self._batches = Batches(model, self._eval_lengths, settings, device)
        self._smoothing = settings.label_smoothing

    @abc.abstractmethod
    def outputs(self, batch: Batch) -> torch.Tensor:
        """The model's scores or quantities, in float32."""

    @abc.abstractmethod
    def losses(self, outputs: torch.Tensor, labels: torch.Tensor, smoothing: float) -> torch.Tensor:
        """The sum of the losses of all targets of a batch."""

    @abc.abstractmethod
    def keep(self, outputs: torch.Tensor) -> torch.Tensor:
        """The part of a batch's outputs for the metrics."""

    def by_sample(self, metric: str) -> list[float] | None:
        return None

    def batch(self, rows: Ints) -> Batch:
        return self.samples.batch(rows)

    def loss_sum(self, batch: Batch) -> torch.Tensor:
        return self.losses(self.outputs(batch), batch.labels, self._smoothing)

    def evaluate_longest(self, precision: Precision) -> None:
        longest = longest_batch(self._eval_lengths, self._batches.size)
        with evaluating(self.model):
            self._batches.rehearse(longest, precision, self._evaluate_batch)

    def _evaluate_batch(self, rows: Ints, precision: Precision) -> Measures:
        def measure(batch: Batch) -> Measures:
            with precision.autocast():
                outputs = self.outputs(batch)
            return self.losses(outputs, batch.labels, 0.0), self.keep(outputs)

        batch = self._validation.batch(rows)
        if len(rows) < self._batches.size:
            return measure(batch)
        loss, kept = self.replay(f"evaluation in {precision.name}", batch, measure)
        return loss, kept


class OneTargetWorkload(BuiltInWorkload):
    _head: Head  # losses and metrics, by the kind of target; set before this class is initialised
    _targets: npt.NDArray[Any]  # the validation targets
    _found: npt.NDArray[Any] | None = None  # by the last evaluation

    def losses(self, outputs: torch.Tensor, labels: torch.Tensor, smoothing: float) -> torch.Tensor:
        return self._head.losses(outputs, labels, smoothing)

    def keep(self, outputs: torch.Tensor) -> torch.Tensor:
        return self._head.predicted(outputs)

    def weight(self, rows: Ints) -> float:
        return float(len(rows))

    def evaluate(self, precision: Precision) -> dict[str, float]:
        """Loss (without smoothing) and metrics of the validation samples."""
        batches, order = self._batches, self._order

        def measure(part: Ints) -> Measures:
            return batches.joined(part, precision, self._evaluate_batch)

        group = processes.current()
        with evaluating(self.model):
            measured = group.spread(batches.parts(order), measure)
        losses = [loss for loss, _ in measured]
        found = torch.cat([predicted for _, predicted in measured]).cpu().numpy()
        self._found = np.empty_like(found)
        self._found[order] = found
        loss = sum_of(losses) / len(order)
        return {"loss": loss, **self._head.measure(self._targets[order], found)}

    def by_sample(self, metric: str) -> list[float] | None:
        if self._found is None:
            return None
        return by_sample(metric, self._targets, self._found, self._head.deviation)
