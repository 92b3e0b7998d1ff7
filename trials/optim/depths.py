"""How deep in a model a parameter is, judged by its name: the embeddings, then layer by layer, then
the head."""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterable

import torch
from torch import nn

_LAYER = re.compile(r"(?:^|\.)(?:layers?|h|blocks?|stages?)\.(\d+)\.")
"""``encoder.layer.3.`` (BERT, RoBERTa), ``transformer.layer.3.`` (DistilBERT), ``transformer.h.3.``
(GPT-2), ``model.layers.3.`` (Llama and its relatives); ``stages.3.layers.1.`` counts by its stage
(residual networks)."""
_HEAD = -1
"""Stands for the head's depth until it is known."""


def depths(parameters: Iterable[tuple[str, torch.Tensor]]) -> dict[str, int]:
    """The depth of each parameter, by name: 0 for embeddings, from 1 on for the layers, one more
    than the last for the rest.

    What a model registers before its first layer belongs to the embeddings, and what it registers
    after (a final norm, a pooler, the classifier) to the head. A model without numbered layers is
    all head: its depths are 0.

    Numbers without matrices are not layers of their own: in ``layers.0`` (linear), ``layers.1`` (a
    norm), ``layers.4`` (linear), activations have no parameters, and the norm belongs to the layer
    before it.
    """
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
    return _with_head(found)


def _with_head(found: dict[str, int]) -> dict[str, int]:
    """The same depths; that of the head is one more than the deepest layer's."""
    head = max(found.values()) + 1
    depth_of = {}
    for name, depth in found.items():
        depth_of[name] = head if depth == _HEAD else depth
    return depth_of


def hidden_matrices(model: nn.Module) -> set[str]:
    """The names of the parameters that are matrices and neither embeddings nor of the head.

    In a model with numbered layers these are the layers' matrices; in another one, all but the last
    matrix.
    """
    found = depths(model.named_parameters())
    embeddings = _embeddings(model)
    matrices = []
    for name, parameter in model.named_parameters():
        if parameter.ndim == 2 and name not in embeddings:
            matrices.append(name)
    head = max(found.values(), default=0)
    if head == 0:
        return set(matrices[:-1])
    return {name for name in matrices if 0 < found[name] < head}


def _embeddings(model: nn.Module) -> set[str]:
    names = set()
    for name, module in model.named_modules():
        if isinstance(module, nn.Embedding):
            names.add(f"{name}.weight")
    return names
