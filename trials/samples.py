"""The samples of a run as flat tensors, and how rows of them become a batch, wherever they lie.

A `Samples` has parts: columns with a row a sample, and sequences that are padded to the longest of a batch. `gather`
makes a batch where the samples lie: it draws nothing random and may be called in any thread. `deliver` brings it to the
device, in the thread that trains.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt
import torch

from trials.batching import Ints, Sequences
from trials.residence import Residence
from trials.workload import Batch

LABELS = "labels"
"""The name of the part that is to be predicted; all others are inputs of the model."""


class Part(Protocol):
    """One or two tensors of a batch."""

    def gather(self, rows: Ints, index: torch.Tensor) -> Mapping[str, torch.Tensor]:
        """Those of the samples `rows` by name, where the samples lie; `index` are the same row numbers there."""


class Column:
    """A row a sample.

    Args:
        residence: Where they lie.
        name: Of the tensor.
        values: Shape (n, ...).
        kind: The type of number in a batch; None for that of the values.
    """

    def __init__(
        self, residence: Residence, name: str, values: npt.NDArray[np.generic], kind: torch.dtype | None = None
    ) -> None:
        self._name, self._values = name, residence.hold(values)
        self._kind = self._values.dtype if kind is None else kind

    def gather(self, rows: Ints, index: torch.Tensor) -> Mapping[str, torch.Tensor]:
        """Shape (rows, ...)."""
        return {self._name: self._values.index_select(0, index).to(self._kind)}


class Padded:
    """Sequences, padded on the right to the longest of a batch: what `Sequences.padded` makes.

    Args:
        residence: Where they lie.
        name: Of the tensor with the tokens.
        sequences: The tokens.
        padding: What stands behind the last of them.
        mask: Of the tensor that is 1 for tokens and 0 for padding; None for none.
    """

    def __init__(
        self, residence: Residence, name: str, sequences: Sequences, padding: int, mask: str | None = None
    ) -> None:
        self._name, self._padding, self._mask = name, padding, mask
        self._lengths: Ints = sequences.lengths
        self._tokens = residence.hold(sequences.tokens)
        self._starts = residence.hold(sequences.offsets[:-1])
        self._ends = residence.hold(sequences.offsets[1:])

    def gather(self, rows: Ints, index: torch.Tensor) -> Mapping[str, torch.Tensor]:
        """Shape (rows, longest), int64. How long the longest is, the machine's memory tells: no device is asked."""
        starts, ends = (bounds.index_select(0, index)[:, None] for bounds in (self._starts, self._ends))
        places = starts + torch.arange(int(self._lengths[rows].max()), device=index.device)
        inside = places < ends
        tokens = self._tokens.index_select(0, places.where(inside, 0).flatten()).view_as(places)
        found = {self._name: tokens.where(inside, self._padding).long()}
        return found if self._mask is None else {**found, self._mask: inside.long()}


class Samples:
    """Samples of training or of validation.

    Args:
        residence: Where they lie.
        parts: What a batch has; one of them names its tensor `LABELS`.
        counted: The lengths of what counts as tokens and padding, each of shape (n,).
        finish: What is done to a batch on the device, in the thread that trains; it may draw random numbers.
    """

    def __init__(
        self,
        residence: Residence,
        parts: Sequence[Part],
        counted: Sequence[Ints],
        finish: Callable[[Batch], Batch] | None = None,
    ) -> None:
        self.residence = residence
        self._parts, self._counted, self._finish = parts, counted, finish

    def batch(self, rows: Ints) -> Batch:
        """The samples `rows`, on the device."""
        return self.deliver(self.gather(rows))

    def gather(self, rows: Ints) -> Batch:
        """The samples `rows`, where they lie, ready to be sent."""
        index = self.residence.index(rows)
        gathered = {name: tensor for part in self._parts for name, tensor in part.gather(rows, index).items()}
        found = {name: self.residence.staged(tensor) for name, tensor in gathered.items()}
        lengths = [counted[rows] for counted in self._counted]
        return Batch(
            inputs={name: tensor for name, tensor in found.items() if name != LABELS},
            labels=found[LABELS],
            tokens=sum(int(each.sum()) for each in lengths),
            cells=sum(len(rows) * int(each.max()) for each in lengths),
        )

    def deliver(self, batch: Batch) -> Batch:
        """What was gathered, on the device and finished."""
        sent = self.residence.sent
        inputs = {name: sent(tensor) for name, tensor in batch.inputs.items()}
        arrived = dataclasses.replace(batch, inputs=inputs, labels=sent(batch.labels))
        return arrived if self._finish is None else self._finish(arrived)
