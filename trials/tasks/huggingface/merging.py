"""A whole model from one with adapters: merged one tensor at a time on the host, in the files that
transformers loads.

A merged weight is computed in float32 and written in the type of the base's own files, so that the
model is as large as the one it was trained from.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
import torch
import transformers
from torch import nn

from trials.tasks.huggingface.lora import ADAPTERS, BASE, CONFIG, Base

SHARD_BYTES = 1 << 30
"""The size of a file of weights, unless one tensor is larger: this much is in memory beside the
model."""
INDEX = "model.safetensors.index.json"
_LAYER = ".base_layer."
_ADAPTER = ".lora_"


@dataclass(frozen=True)
class _Part:
    """A tensor of the whole model.

    Args:
        layer: The module with the adapters that are added to it; None if there are none.
    """

    module: nn.Module
    name: str
    layer: Any

    @property
    def held(self) -> torch.Tensor:
        """The tensor as the model holds it, perhaps in four bits."""
        tensor: torch.Tensor = getattr(self.module, self.name)
        return tensor

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the dense tensor."""
        if _in_four_bits(self.held):
            return (self.module.out_features, self.module.in_features)  # type: ignore[return-value]
        return tuple(self.held.shape)

    def dtype(self, base: Base) -> torch.dtype:
        """The type it is written in: that of the base's files; what counts (an integer) keeps its
        own."""
        held = self.held
        if held.is_floating_point() or _in_four_bits(held):
            return base.dtype
        return held.dtype

    def merged(self, base: Base) -> torch.Tensor:
        """In host memory, with its adapters."""
        from peft.utils.integrations import dequantize_module_weight

        dense = self.held
        if _in_four_bits(dense):
            dense = dequantize_module_weight(self.module)
        tensor = dense.detach().cpu()
        if self.layer is not None:
            delta = self.layer.get_delta_weight("default")
            tensor = tensor.float() + delta.detach().cpu()
        written = tensor.to(self.dtype(base))
        return written.contiguous()


def write(model: transformers.PreTrainedModel, base: Base, folder: Path) -> None:
    """Write the model that computes what one with adapters does, into the folder of its checkpoint.

    Args:
        base: What its frozen weights are.
        folder: Holds tokenizer and configuration already; the files of its adapters are removed.
    """
    from huggingface_hub import split_torch_state_dict_into_shards

    parts = dict(_parts(model))
    shapes = {}
    for name, part in parts.items():
        shapes[name] = torch.empty(part.shape, dtype=part.dtype(base), device="meta")
    plan = split_torch_state_dict_into_shards(
        shapes, filename_pattern="model{suffix}.safetensors", max_shard_size=SHARD_BYTES
    )
    for file, names in plan.filename_to_tensors.items():
        tensors = {name: parts[name].merged(base) for name in names}
        path = folder / file
        safetensors.torch.save_file(tensors, path, metadata={"format": "pt"})
        path.chmod(folder.stat().st_mode & 0o666)  # safetensors makes its files private
    if plan.is_sharded:
        index = {"metadata": plan.metadata, "weight_map": plan.tensor_to_filename}
        content = json.dumps(index, indent=1)
        (folder / INDEX).write_text(content + "\n", encoding="utf-8")
    for name in (ADAPTERS, CONFIG, BASE):
        (folder / name).unlink(missing_ok=True)


@torch.no_grad()
def take(model: nn.Module, folder: Path) -> None:
    """Put the weights of a whole model into one whose adapters have not been trained, and change
    nothing yet.

    Nothing is copied but what has another type than the model holds it in: the file itself stays
    mapped into memory.

    Args:
        folder: What `write` wrote.
    """
    parts = dict(_parts(model))
    for file in sorted(folder.glob("model*.safetensors")):
        with safetensors.safe_open(file, "pt") as tensors:
            for name in tensors.keys():  # noqa: SIM118 - it is not a mapping
                held = parts[name].held
                held.data = tensors.get_tensor(name).to(held.device, held.dtype)


def _parts(model: nn.Module) -> Iterator[tuple[str, _Part]]:
    """The tensors of the whole model, by the plain model's names; each tied one once."""
    seen: set[int] = set()
    for prefix, module in model.named_modules():
        for name in _tensors_of(module):
            held = getattr(module, name)
            full = f"{prefix}.{name}" if prefix else name
            if held is None or id(held) in seen or _ADAPTER in full:
                continue
            seen.add(id(held))
            owner, in_layer, kind = full.rpartition(_LAYER)
            if not in_layer:
                yield full, _Part(module, name, layer=None)
                continue
            layer = model.get_submodule(owner) if kind == "weight" else None
            yield f"{owner}.{kind}", _Part(module, name, layer)


def _tensors_of(module: nn.Module) -> list[str]:
    passing = module._non_persistent_buffers_set
    lasting = [name for name in module._buffers if name not in passing]
    return [*module._parameters, *lasting]


def _in_four_bits(tensor: torch.Tensor) -> bool:
    return getattr(tensor, "quant_state", None) is not None
