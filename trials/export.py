"""Writing a model for programs without transformers or Python: TorchScript, or torch.export.

What was written is read back and compared with the model before anyone gets to rely on it.
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
"""The greatest difference of a logit that may come of other kernels for the same arithmetic in fp32."""

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
        free: The dimensions of every input that may have any size afterwards: samples (0), and tokens (1).
    """

    model: nn.Module
    free: tuple[int, ...]


class ExportError(Exception):
    """A model that cannot be written in this format, or would not compute the same in it."""


def export(portable: Portable, samples: Sequence[Inputs], format_: Export, folder: Path) -> dict[str, Any]:
    """Write a model, read it back and compare.

    Args:
        portable: The model.
        samples: At least two batches, of different sizes. The first is traced, all are compared.
        format_: How to write it.
        folder: Where to.

    Returns: `format`, `file` and `greatest_difference`.

    Raises:
        ExportError: It cannot be written like this, or does not compute the same.
    """
    path = folder / FILES[format_]
    model = portable.model.eval()
    with torch.no_grad():
        expected = [model(*sample) for sample in samples]
        try:
            written = _WRITERS[format_](portable, samples[0], path)
            found = [written(*sample) for sample in samples]
        except (RuntimeError, ValueError, AssertionError) as error:
            first = (str(error).strip() or type(error).__name__).splitlines()[0]
            raise ExportError(f"the model cannot be written as {format_.value}: {first}") from error
    difference = max(float((a - b).abs().max()) for a, b in zip(expected, found, strict=True))
    if not difference <= TOLERANCE:
        raise ExportError(f"as {format_.value}, the model computes something else: logits differ by {difference:.3g}")
    return {"format": format_.value, "file": path.name, "greatest_difference": difference}


def _script(portable: Portable, sample: Inputs, path: Path) -> Callable[..., torch.Tensor]:
    with warnings.catch_warnings(), _plainly_named(portable.model):
        # torch tells that TorchScript is on its way out, and tracing touches every attribute of a model, old ones too.
        warnings.simplefilter("ignore")
        torch.jit.trace(portable.model, sample).save(str(path))  # type: ignore[no-untyped-call]  # torch leaves it untyped
        loaded: Callable[..., torch.Tensor] = torch.jit.load(str(path))  # type: ignore[no-untyped-call]
    return loaded


@contextmanager
def _plainly_named(model: nn.Module) -> Iterator[None]:
    """Let TorchScript read what it writes: it names a class by its module, of which every part must be an identifier,
    and the code that came with a model stands in a module named after a hash."""
    odd = {kind: kind.__module__ for kind in map(type, model.modules()) if not _identifiers(kind.__module__)}
    try:
        for kind, module in odd.items():
            kind.__module__ = ".".join(part if part.isidentifier() else f"_{part}" for part in module.split("."))
        yield
    finally:
        for kind, module in odd.items():
            kind.__module__ = module


def _identifiers(module: str) -> bool:
    return all(part.isidentifier() for part in module.split("."))


def _export(portable: Portable, sample: Inputs, path: Path) -> Callable[..., torch.Tensor]:
    any_size = dict.fromkeys(portable.free, torch.export.Dim.DYNAMIC)
    program = torch.export.export(portable.model, sample, dynamic_shapes=tuple(any_size for _ in sample))
    torch.export.save(program, path)
    loaded: Callable[..., torch.Tensor] = torch.export.load(path).module()
    return loaded


_WRITERS: dict[Export, Callable[[Portable, Inputs, Path], Callable[..., torch.Tensor]]] = {
    Export.TORCHSCRIPT: _script,
    Export.TORCH_EXPORT: _export,
}
