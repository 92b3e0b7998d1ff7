"""How deep in a model a parameter stands: the embeddings, layer by layer, the head. Told from its name."""

from __future__ import annotations

import re
from collections.abc import Iterable

from torch import nn

_LAYER = re.compile(r"(?:^|\.)(?:layers?|h|blocks?|stages?)\.(\d+)\.")
"""``encoder.layer.3.`` (BERT, RoBERTa), ``transformer.layer.3.`` (DistilBERT), ``transformer.h.3.`` (GPT-2),
``model.layers.3.`` (Llama and its relatives); ``stages.3.layers.1.`` counts by its stage (residual networks)."""


def depths(names: Iterable[str]) -> dict[str, int]:
    """The depth of each parameter, by name: 0 for embeddings, i + 1 for layer i, one more than the last for the rest.

    What a model registers before its first layer belongs to the embeddings, and what it registers after (a final
    norm, a pooler, the classifier) to the head. A model without numbered layers is all head: its depths are 0.

    Args:
        names: The names of all parameters, in the order of `Module.named_parameters`.
    """
    found: dict[str, int] = {}
    inside = False
    for name in names:
        match = _LAYER.search(name)
        inside = inside or match is not None
        if match is not None:
            found[name] = int(match[1]) + 1
        elif not inside or "embed" in name:
            found[name] = 0
        else:
            found[name] = -1  # the head, whose depth is known at the end
    head = max(found.values(), default=0) + 1 if inside else 0
    return {name: head if depth == -1 else depth for name, depth in found.items()}


def hidden_matrices(model: nn.Module) -> set[str]:
    """The names of the parameters that are matrices and neither embeddings nor of the head.

    In a model with numbered layers these are the layers' matrices; in another one, all but the last matrix.
    """
    found = depths(name for name, _ in model.named_parameters())
    embeddings = {f"{name}.weight" for name, module in model.named_modules() if isinstance(module, nn.Embedding)}
    matrices = [name for name, p in model.named_parameters() if p.ndim == 2 and name not in embeddings]
    head = max(found.values(), default=0)
    return {name for name in matrices if 0 < found[name] < head} if head else set(matrices[:-1])
