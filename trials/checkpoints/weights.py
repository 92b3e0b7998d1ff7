"""The tensors of a checkpoint: copied to host memory while training waits, and written later.

A model's weights are a mapping of file names to tensors by name. Tensors that share their memory
(tied weights) are copied, and written, once.
"""

from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar

import safetensors.torch
import torch
from torch.utils._pytree import tree_leaves, tree_map_only

MODEL = "model.safetensors"
"""The file of a model's weights, by the name that transformers looks for."""

Weights = Mapping[str, Mapping[str, torch.Tensor]]  # tensors by name, by the file that they are in

T = TypeVar("T")


def write(weights: Weights, folder: Path) -> None:
    """Write every file into a folder, as safetensors writes a model. Works in any thread."""
    for name, tensors in weights.items():
        path = str(folder / name)
        model: Any = SimpleNamespace(state_dict=partial(dict, tensors))
        safetensors.torch.save_model(model, path, metadata={"format": "pt"})


def host_copy(value: T) -> T:
    """Copy the tensors in containers (dicts, lists, tuples) to host memory. Those of a GPU are
    copied into pinned memory at the speed of its bus, one after the other without waiting. Torch
    keeps that memory for the next copies."""
    copies: dict[tuple[Any, ...], torch.Tensor] = {}

    def copied(tensor: torch.Tensor) -> torch.Tensor:
        view = (tensor.device, *_memory_of(tensor), tensor.dtype, tensor.stride())
        if view not in copies:
            empty = torch.empty_like(
                tensor, device="cpu", requires_grad=False, pin_memory=tensor.is_cuda
            )
            copies[view] = empty.copy_(tensor.detach(), non_blocking=True)
        return copies[view]

    found: T = tree_map_only(torch.Tensor, copied, value)
    wait_for({device for device, *_ in copies})
    return found


def wait_for(devices: Iterable[torch.device]) -> None:
    for device in devices:
        if device.type == "cuda":
            torch.cuda.synchronize(device)


def tensor_bytes(value: Any) -> int:
    """The bytes of all tensors in containers; tensors that share their memory count once."""
    tensors = [leaf for leaf in tree_leaves(value) if isinstance(leaf, torch.Tensor)]
    sizes = {_memory_of(tensor): tensor.nbytes for tensor in tensors}
    return sum(sizes.values())


def _memory_of(tensor: torch.Tensor) -> tuple[int, int, torch.Size]:
    """A key that tensors have in common if they share their memory."""
    return tensor.untyped_storage().data_ptr(), int(tensor.storage_offset()), tensor.shape
