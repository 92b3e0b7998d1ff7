"""The tensors of a checkpoint: copied to host memory while training waits, and written later.

A model's weights are a mapping of file names to tensors by name. Tensors that share their memory
(tied weights) are copied, and written, once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import safetensors.torch
import torch

MODEL = "model.safetensors"
"""The file of a model's weights, by the name that transformers looks for."""

Weights = Mapping[str, Mapping[str, torch.Tensor]]
"""Tensors by name, by the file that they are in."""

T = TypeVar("T")


class _Holder:
    """Takes the place of a model where only its tensors are needed."""

    def __init__(self, tensors: Mapping[str, torch.Tensor]) -> None:
        self._tensors = tensors

    def state_dict(self) -> dict[str, torch.Tensor]:
        return dict(self._tensors)


def write(weights: Weights, folder: Path) -> None:
    """Write every file into a folder, as safetensors writes a model. Works in any thread."""
    for name, tensors in weights.items():
        path = str(folder / name)
        model: Any = _Holder(tensors)
        safetensors.torch.save_model(model, path, metadata={"format": "pt"})


def host_copy(value: T) -> T:
    """Copy the tensors in containers (mappings, lists, tuples) to host memory.

    Those of a GPU are copied into pinned memory at the speed of its bus, one after the other
    without waiting. Torch keeps that memory for the next copies.

    Returns: Equal values in equal containers.
    """
    copies: dict[tuple[Any, ...], torch.Tensor] = {}
    copied: T = _copied(value, copies)
    wait_for({device for device, *_ in copies})
    return copied


def wait_for(devices: Iterable[torch.device]) -> None:
    """Wait until all GPUs among `devices`, and not only the current one, have finished."""
    for device in devices:
        if device.type == "cuda":
            torch.cuda.synchronize(device)


def tensor_bytes(value: Any) -> int:
    """The size of all different tensors in such containers, in bytes."""
    found: dict[tuple[Any, ...], int] = {}
    _add_sizes(value, found)
    return sum(found.values())


def _add_sizes(value: Any, found: dict[tuple[Any, ...], int]) -> None:
    match value:
        case torch.Tensor():
            place = value.untyped_storage().data_ptr(), value.storage_offset()
            found[*place, tuple(value.shape)] = value.nbytes
        case Mapping():
            for item in value.values():
                _add_sizes(item, found)
        case list() | tuple():
            for item in value:
                _add_sizes(item, found)


def _copied(value: Any, copies: dict[tuple[Any, ...], torch.Tensor]) -> Any:
    match value:
        case torch.Tensor():
            place = value.untyped_storage().data_ptr(), value.storage_offset()
            key = (value.device, *place, value.dtype, tuple(value.shape), value.stride())
            if key not in copies:
                copies[key] = _tensor_copied(value)
            return copies[key]
        case Mapping():
            return {name: _copied(item, copies) for name, item in value.items()}
        case list() | tuple():
            return type(value)(_copied(item, copies) for item in value)
    return value


def _tensor_copied(tensor: torch.Tensor) -> torch.Tensor:
    """A copy in host memory, for which nothing waits yet."""
    empty = torch.empty_like(tensor, device="cpu", requires_grad=False, pin_memory=tensor.is_cuda)
    return empty.copy_(tensor.detach(), non_blocking=True)
