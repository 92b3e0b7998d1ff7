"""The depth of parameters in a model, by their names: embeddings, layer by layer, then the head."""

import bisect
import re
from collections.abc import Iterable

import torch
from torch import nn

_LAYER = re.compile(r"(?:^|\.)(?:layers?|h|blocks?|stages?)\.(\d+)\.")
"""``encoder.layer.3.`` (BERT), ``transformer.h.3.`` (GPT-2), ``model.layers.3.`` (Llama);
``stages.3.layers.1.`` counts by its stage (residual networks)."""
_HEAD = -1  # stands for the head's depth until it is known


def depths(parameters: Iterable[tuple[str, torch.Tensor]]) -> dict[str, int]:
    """The depth of each parameter by name: 0 for embeddings, from 1 on for layers, and one more for
    the head.

    Parameters before the first layer belong to the embeddings, and those after the layers (a final
    norm, a pooler, the classifier) to the head. Without numbered layers all depths are 0. A number
    without a matrix is part of the layer before: ``layers.1`` (a norm) belongs to ``layers.0``."""
    numbers: dict[str, int] = {}
    found: dict[str, int] = {}
    layers: set[int] = set()
    for name, parameter in parameters:
        match = _LAYER.search(name)
        if match is not None:
            number = int(match[1])
            numbers[name] = number
            if parameter.ndim >= 2:
                layers.add(number)
        is_embedding = not numbers or "embed" in name
        found[name] = 0 if is_embedding else _HEAD
    if not numbers:
        return found
    order = sorted(layers or set(numbers.values()))
    for name, number in numbers.items():
        place = bisect.bisect_right(order, number)
        found[name] = max(place, 1)
    head = max(found.values()) + 1
    return {name: head if depth == _HEAD else depth for name, depth in found.items()}


def hidden_matrices(model: nn.Module) -> set[str]:
    """The names of a model's matrices, without embeddings and the head, if need be the last one."""
    found = depths(model.named_parameters())
    embeddings = set()
    for name, module in model.named_modules():
        if isinstance(module, nn.Embedding):
            embeddings.add(f"{name}.weight")
    matrices = []
    for name, parameter in model.named_parameters():
        if parameter.ndim == 2 and name not in embeddings:
            matrices.append(name)
    head = max(found.values(), default=0)
    if head == 0:
        return set(matrices[:-1])
    return {name for name in matrices if 0 < found[name] < head}
