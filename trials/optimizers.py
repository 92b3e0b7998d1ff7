"""Optimizers by name, with weight decay where it belongs."""

from __future__ import annotations

import torch
from torch import nn

from trials.settings import Settings


def build(model: nn.Module, settings: Settings, device: torch.device) -> torch.optim.Optimizer:
    """The optimizer that the settings name, over the model's trainable parameters."""
    groups = parameter_groups(model, settings.weight_decay)
    rate = settings.learning_rate
    fused = device.type in ("cuda", "cpu")  # one kernel a step instead of several a parameter
    if settings.optimizer == "sgd":
        return torch.optim.SGD(groups, lr=rate, momentum=settings.momentum, fused=fused)
    kind = torch.optim.AdamW if settings.optimizer == "adamw" else torch.optim.Adam
    betas = (settings.beta1, settings.beta2)
    return kind(groups, lr=rate, betas=betas, eps=settings.epsilon, fused=fused)


def parameter_groups(model: nn.Module, weight_decay: float) -> list[dict[str, object]]:
    """Two groups: matrices with weight decay; vectors (biases and the scales of norms) without.

    Shrinking a bias or a norm's scale does not regularise, it only moves the function (see Loshchilov and Hutter
    2019, and the practice of BERT and GPT-2).
    """
    trainable = [p for p in model.parameters() if p.requires_grad]
    groups = [
        {"params": [p for p in trainable if p.ndim >= 2], "weight_decay": weight_decay},
        {"params": [p for p in trainable if p.ndim < 2], "weight_decay": 0.0},
    ]
    return [group for group in groups if group["params"]]
