"""The samples of a run as flat tensors, and batches of them.

`Samples` have parts: columns with a row for each sample, and sequences that are padded to the
longest of a batch. A batch is gathered in the place of the samples, and then sent to the device.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt
import torch

from trials.data import ladder
from trials.data.batching import Ints, Sequences
from trials.data.residence import Residence
from trials.data.workload import Batch

LABELS = "labels"
"""The name of the part that the model predicts. All others are its inputs."""


class Part(Protocol):
    """One or two tensors of a batch."""

    def gather(self, rows: Ints, index: torch.Tensor) -> Mapping[str, torch.Tensor]:
        """Tensors of the samples `rows` by name; `index` has their numbers as a tensor."""


class Column:
    """A row for each sample. `values`: (n, ...). `kind`: the type in a batch, or theirs."""

    def __init__(
        self,
        residence: Residence,
        name: str,
        values: npt.NDArray[np.generic],
        kind: torch.dtype | None = None,
    ) -> None:
        self._name = name
        self._values = residence.hold(values)
        self._kind = self._values.dtype if kind is None else kind

    def gather(self, rows: Ints, index: torch.Tensor) -> Mapping[str, torch.Tensor]:
        """Shape (rows, ...)."""
        values = self._values.index_select(0, index)
        return {self._name: values.to(self._kind)}


class Padded:
    """Sequences, padded on the right to the longest of a batch.

    Args:
        name: The name of the tensor of tokens.
        padding: The token that follows the last of a sequence.
        mask: The name of a tensor that is 1 for tokens and 0 for padding; None for no such tensor.
        always: Whether there is a mask even if it is 1 everywhere.
        rungs: The ladder of padded lengths; None for the longest of each batch.
    """

    def __init__(
        self,
        residence: Residence,
        name: str,
        sequences: Sequences,
        padding: int,
        mask: str | None = None,
        always: bool = True,
        rungs: Ints | None = None,
    ) -> None:
        self.lengths: Ints = sequences.lengths
        self._rungs = rungs
        self._name = name
        self._padding = padding
        self._mask = mask
        self._always = always
        self._tokens = residence.hold(sequences.tokens)
        self._starts = residence.hold(sequences.offsets[:-1])
        self._ends = residence.hold(sequences.offsets[1:])

    def gather(self, rows: Ints, index: torch.Tensor) -> Mapping[str, torch.Tensor]:
        """Shape (rows, longest), int64; the longest is known here, without asking the device."""
        longest, _ = self.padded(rows)
        is_padded = int(self.lengths[rows].min()) < longest
        starts = self._starts.index_select(0, index)[:, None]
        ends = self._ends.index_select(0, index)[:, None]
        places = starts + torch.arange(longest, device=index.device)
        inside = places < ends
        flat = places.where(inside, 0).flatten()
        tokens = self._tokens.index_select(0, flat).view_as(places)
        padded = tokens.where(inside, self._padding)
        found = {self._name: padded.long()}
        if self._mask is not None and (self._always or is_padded):
            found[self._mask] = inside.long()
        return found

    def padded(self, rows: Ints) -> tuple[int, bool]:
        """The padded length of the samples `rows`, and whether it is a rung of the ladder."""
        longest = int(self.lengths[rows].max())
        rung = None if self._rungs is None else ladder.fitted(self._rungs, longest)
        return (longest, False) if rung is None else (rung, True)


class Samples:
    """Samples of training or of validation.

    Args:
        parts: One of them names its tensor `LABELS`.
        counted: The parts that decide on a batch's shape, and whose lengths count as tokens.
        finish: Changes a batch on the device; it may draw random numbers.
    """

    def __init__(
        self,
        residence: Residence,
        parts: Sequence[Part],
        counted: Sequence[Padded] = (),
        finish: Callable[[Batch], Batch] | None = None,
    ) -> None:
        self.residence = residence
        self._parts = parts
        self._counted = counted
        self._finish = finish

    def batch(self, rows: Ints) -> Batch:
        """The samples `rows`, on the device."""
        index = self.residence.index(rows)
        found: dict[str, torch.Tensor] = {}
        for each in self._parts:
            found |= each.gather(rows, index)
        sent = {name: self.residence.sent(tensor) for name, tensor in found.items()}
        tokens, cells, recurs = 0, 0, True
        for part in self._counted:
            padded, is_rung = part.padded(rows)
            tokens += int(part.lengths[rows].sum())
            cells += len(rows) * padded
            recurs = recurs and is_rung
        labels = sent.pop(LABELS)
        batch = Batch(sent, labels, tokens, cells, recurs)
        return batch if self._finish is None else self._finish(batch)
