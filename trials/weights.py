"""The tensors of a checkpoint: copied to host memory while training waits, and written whenever there is time.

A model's weights are a mapping of file names to tensors by name. Tensors that share their memory (tied weights) are
copied, and written, once.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import safetensors.torch
import torch

MODEL = "model.safetensors"
"""The file of a model's weights, by the name transformers looks for."""

Weights = Mapping[str, Mapping[str, torch.Tensor]]
"""Tensors by name, by the file they stand in."""

T = TypeVar("T")


class _Holder:
    """Stands for a model where only its tensors are asked for."""

    def __init__(self, tensors: Mapping[str, torch.Tensor]) -> None:
        self._tensors = tensors

    def state_dict(self) -> dict[str, torch.Tensor]:
        return dict(self._tensors)


def write(weights: Weights, folder: Path) -> None:
    """Write every file into a folder, as `safetensors.torch.save_model` writes a model's. Works in any thread."""
    for name, tensors in weights.items():
        safetensors.torch.save_model(_Holder(tensors), str(folder / name), metadata={"format": "pt"})  # type: ignore[arg-type]


def host_copy(value: T) -> T:
    """Equal values whose tensors are copies in host memory, in equal containers (mappings, lists, tuples).

    Of a GPU they are copied into pinned memory at the speed of its bus, one after the other without waiting; torch
    keeps that memory for the next copies.
    """
    copies: dict[tuple[Any, ...], torch.Tensor] = {}
    copied: T = _copied(value, copies)
    if any(device == "cuda" for device, *_ in copies):
        torch.cuda.synchronize()
    return copied


def _copied(value: Any, copies: dict[tuple[Any, ...], torch.Tensor]) -> Any:
    match value:
        case torch.Tensor():
            place = value.untyped_storage().data_ptr(), value.storage_offset()
            key = (value.device.type, *place, value.dtype, tuple(value.shape), value.stride())
            if key not in copies:
                empty = torch.empty_like(value, device="cpu", requires_grad=False, pin_memory=value.is_cuda)
                copies[key] = empty.copy_(value.detach(), non_blocking=True)
            return copies[key]
        case Mapping():
            return {name: _copied(item, copies) for name, item in value.items()}
        case list() | tuple():
            return type(value)(_copied(item, copies) for item in value)
    return value
