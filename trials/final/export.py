"""Writing a model for programs without transformers, as an exported program of `torch.export`.

The file is read back and compared with the model before it is used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

TOLERANCE = 1e-4
"""The greatest difference of a logit between kernels for the same fp32 arithmetic."""
FILE = "model.pt2"

Inputs = tuple[torch.Tensor, ...]


@dataclass(frozen=True)
class Portable:
    """A model to export.

    Args:
        model: On the CPU; takes the inputs of a batch and returns one tensor.
        free: The dimensions of every input that may have any size: samples (0), and tokens (1).
    """

    model: nn.Module
    free: tuple[int, ...]


class ExportError(Exception):
    """A model that cannot be exported, or would not compute the same."""


def export(portable: Portable, samples: Sequence[Inputs], folder: Path) -> dict[str, Any]:
    """Write a model, read it back and compare.

    Returns: `format`, `file` and `greatest_difference`.

    Raises:
        ExportError: It cannot be exported, or does not compute the same.
    """
    path = folder / FILE
    model = portable.model.eval()
    difference = 0.0
    with torch.no_grad():
        try:
            _write(portable, samples[0], path)
            exported = torch.export.load(path).module()
            for sample in samples:
                greatest = (model(*sample) - exported(*sample)).abs().max()
                difference = max(difference, float(greatest))
        except (RuntimeError, ValueError, AssertionError) as error:
            what = str(error).strip() or type(error).__name__
            first = what.splitlines()[0]
            raise ExportError(f"the model cannot be exported: {first}") from error
    if not difference <= TOLERANCE:
        what = f"logits differ by {difference:.3g}"
        raise ExportError(f"the exported model computes something else: {what}")
    return {"format": "torch.export", "file": path.name, "greatest_difference": difference}


def _write(portable: Portable, sample: Inputs, path: Path) -> None:
    any_size = dict.fromkeys(portable.free, torch.export.Dim.DYNAMIC)
    shapes = (any_size,) * len(sample)
    program = torch.export.export(portable.model, sample, dynamic_shapes=shapes)
    torch.export.save(program, path)
