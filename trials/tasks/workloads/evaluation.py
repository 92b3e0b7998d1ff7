"""The evaluation of a model, without an effect on its training."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import nn

from trials.data.batching import Ints, Lengths, cut
from trials.devices.precision import Precision
from trials.devices.processes import Group
from trials.loop.micro_batch import MicroBatch, evaluation_batch_of
from trials.settings import Settings

Measures = tuple[torch.Tensor, torch.Tensor]
"""The sum of the losses of some samples, and a row of other measures for each."""
Measure = Callable[[Ints, Precision], Measures]
"""Measures the samples of some rows."""


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

    Args:
        settings: `eval_batch_size` is the most samples in a batch.
    """

    def __init__(
        self, model: nn.Module, lengths: Lengths, settings: Settings, device: torch.device
    ) -> None:
        self._model, self._lengths, self._settings, self._device = model, lengths, settings, device
        self.size = settings.eval_batch_size
        self._limits: dict[str, MicroBatch] = {}

    def parts(self, order: Ints) -> list[Ints]:
        """Rows in batches of `eval_batch_size`."""
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


def total(losses: list[torch.Tensor], group: Group | None = None) -> float:
    """The sum of the losses of batches; NaN if one is not finite.

    Args:
        group: The processes that have batches of their own; None if all have the same. The sum is
            rounded once, however the batches are distributed.
    """
    values: list[float] = torch.stack(losses).tolist() if losses else []
    if group is not None:
        shares = group.gather(values)
        values = list(itertools.chain.from_iterable(shares))
    if not all(map(math.isfinite, values)):
        return math.nan
    return math.fsum(values)
