"""How the built-in workloads measure a model without disturbing its training."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn

from trials.batching import Ints
from trials.distributed import Group


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Without dropout and gradients; the model is training again afterwards."""
    model.eval()
    try:
        with torch.inference_mode():
            yield
    finally:
        model.train()


def cut(order: Ints, size: int) -> list[Ints]:
    """Rows in batches of `size`; the last may be smaller."""
    return [order[start : start + size] for start in range(0, len(order), size)]


def total(losses: list[torch.Tensor], group: Group | None = None) -> float:
    """The sum of the losses of batches, read from the device at once; not a number where one is not finite.

    Args:
        losses: Of this process's batches.
        group: The processes that have batches of their own; None where all have the same. The sum is rounded once,
            whoever has which.
    """
    values = torch.stack(losses).tolist() if losses else []
    if group is not None:
        values = [value for share in group.gather(values) for value in share]
    return math.fsum(values) if all(map(math.isfinite, values)) else math.nan
