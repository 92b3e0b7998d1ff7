"""Writing a model for programs without transformers or Python: TorchScript, or torch.export.

What was written is read back and compared with the model before it is used.
"""

from __future__ import annotations

import enum
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

TOLERANCE = 1e-4
"""The greatest difference of a logit that other kernels for the same fp32 arithmetic may cause."""

Inputs = tuple[torch.Tensor, ...]


class Export(enum.StrEnum):
    """A format."""

    TORCHSCRIPT = "torchscript"
    """A traced module, for `torch.jit.load` and libtorch."""
    TORCH_EXPORT = "torch.export"
    """An exported program, for `torch.export.load` and what compiles it."""


FILES = {Export.TORCHSCRIPT: "model.torchscript.pt", Export.TORCH_EXPORT: "model.pt2"}


@dataclass(frozen=True)
class Portable:
    """A model to export.

    Args:
        model: On the CPU; takes the inputs of a batch and returns one tensor.
        free: The dimensions of every input that may have any size afterwards: samples (0), and
            tokens (1).
    """

    model: nn.Module
    free: tuple[int, ...]


class ExportError(Exception):
    """A model that cannot be written in a format, or would not compute the same in it."""


def export(
    portable: Portable, samples: Sequence[Inputs], format_: Export, folder: Path
) -> dict[str, Any]:
    """Write a model, read it back and compare.

    Returns: `format`, `file` and `greatest_difference`.

    Raises:
        ExportError: It cannot be written like this, or does not compute the same.
    """
    path = folder / FILES[format_]
    model = portable.model.eval()
    write = _WRITERS[format_]
    with torch.no_grad():
        expected = [model(*sample) for sample in samples]
        try:
            written = write(portable, samples[0], path)
            found = [written(*sample) for sample in samples]
        except (RuntimeError, ValueError, AssertionError) as error:
            what = str(error).strip() or type(error).__name__
            first = what.splitlines()[0]
            raise ExportError(f"the model cannot be written as {format_.value}: {first}") from error
    difference = _greatest_difference(expected, found)
    if not difference <= TOLERANCE:
        what = f"logits differ by {difference:.3g}"
        raise ExportError(f"as {format_.value}, the model computes something else: {what}")
    return {"format": format_.value, "file": path.name, "greatest_difference": difference}


def _greatest_difference(expected: list[torch.Tensor], found: list[torch.Tensor]) -> float:
    differences = []
    for one, other in zip(expected, found, strict=True):
        greatest = (one - other).abs().max()
        differences.append(float(greatest))
    return max(differences)


def _script(portable: Portable, sample: Inputs, path: Path) -> Callable[..., torch.Tensor]:
    jit: Any = torch.jit  # which torch leaves untyped
    with warnings.catch_warnings(), _plainly_named(portable.model):
        # torch warns of TorchScript, and of old attributes of a model, all of which tracing reads.
        warnings.simplefilter("ignore")
        jit.trace(portable.model, sample).save(str(path))
        loaded: Callable[..., torch.Tensor] = jit.load(str(path))
    return loaded


@contextmanager
def _plainly_named(model: nn.Module) -> Iterator[None]:
    """Let TorchScript read what it writes.

    It names a class by its module, every part of which must be an identifier; and the code that
    came with a model is in a module named after a hash.
    """
    odd = {}
    for kind in map(type, model.modules()):
        module = kind.__module__
        if _plain(module) != module:
            odd[kind] = module
    try:
        for kind, module in odd.items():
            kind.__module__ = _plain(module)
        yield
    finally:
        for kind, module in odd.items():
            kind.__module__ = module


def _plain(module: str) -> str:
    parts = [part if part.isidentifier() else f"_{part}" for part in module.split(".")]
    return ".".join(parts)


def _export(portable: Portable, sample: Inputs, path: Path) -> Callable[..., torch.Tensor]:
    any_size = dict.fromkeys(portable.free, torch.export.Dim.DYNAMIC)
    shapes = (any_size,) * len(sample)
    program = torch.export.export(portable.model, sample, dynamic_shapes=shapes)
    torch.export.save(program, path)
    written = torch.export.load(path)
    loaded: Callable[..., torch.Tensor] = written.module()
    return loaded


_WRITERS: dict[Export, Callable[[Portable, Inputs, Path], Callable[..., torch.Tensor]]] = {
    Export.TORCHSCRIPT: _script,
    Export.TORCH_EXPORT: _export,
}
