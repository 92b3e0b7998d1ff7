"""Optimizers by name, with weight decay where it belongs and a learning rate for each depth."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from trials.depths import depths, hidden_matrices
from trials.lamb import Lamb
from trials.lion import Lion
from trials.muon import MuonWithAdamW
from trials.settings import Settings

FACTOR = "factor"
"""The key of a parameter group's factor: the learning rate of a step times it is the group's own."""

Group = dict[str, Any]


def build(model: nn.Module, settings: Settings, device: torch.device) -> torch.optim.Optimizer:
    """The optimizer that the settings name, over the model's trainable parameters."""
    rate, momentum = settings.peak_learning_rate, settings.momentum
    betas, epsilon = (settings.beta1, settings.beta2), settings.epsilon
    fused = device.type in ("cuda", "cpu")  # one kernel a step instead of several a parameter
    if settings.optimizer == "muon":
        return _muon(model, settings, fused)
    groups = parameter_groups(model, settings)
    match settings.optimizer:
        case "sgd":
            return torch.optim.SGD(groups, lr=rate, momentum=momentum, fused=fused)
        case "nesterov":
            return torch.optim.SGD(groups, lr=rate, momentum=momentum, nesterov=True, fused=fused)
        case "adam":
            return torch.optim.Adam(groups, lr=rate, betas=betas, eps=epsilon, fused=fused)
        case "adamw":
            return torch.optim.AdamW(groups, lr=rate, betas=betas, eps=epsilon, fused=fused)
        case "adafactor":
            return torch.optim.Adafactor(groups, lr=rate)
        case "lamb":
            return Lamb(groups, lr=rate, betas=betas, eps=epsilon)
        case "lion":
            return Lion(groups, lr=rate, betas=betas)
    raise AssertionError(settings.optimizer)


def _muon(model: nn.Module, settings: Settings, fused: bool) -> MuonWithAdamW:
    rate, hidden = settings.peak_learning_rate, hidden_matrices(model)
    matrices = parameter_groups(model, settings, among=hidden)
    rest = parameter_groups(model, settings, among={name for name, _ in model.named_parameters()} - hidden)
    betas = (settings.beta1, settings.beta2)
    return MuonWithAdamW(
        torch.optim.Muon(matrices, lr=rate, momentum=settings.momentum, adjust_lr_fn="match_rms_adamw")
        if matrices
        else None,
        torch.optim.AdamW(rest, lr=rate, betas=betas, eps=settings.epsilon, fused=fused) if rest else None,
    )


def parameter_groups(model: nn.Module, settings: Settings, among: set[str] | None = None) -> list[Group]:
    """The trainable parameters, grouped by weight decay and learning-rate factor, in a fixed order.

    Matrices have weight decay; vectors (biases and the scales of norms) have none: shrinking them does not regularise,
    it only moves the function (see Loshchilov and Hutter 2019, and the practice of BERT and GPT-2).

    Layer-wise decay (Howard and Ruder 2018; ELECTRA, BEiT): the factor is 1 for the head, and `layer_decay` times that
    of the layer above for each layer below it, down to the embeddings.

    Args:
        model: The model.
        settings: `weight_decay` and `layer_decay` count.
        among: The names of the parameters to take; None for all.
    """
    depth = depths(name for name, _ in model.named_parameters())
    head = max(depth.values(), default=0)
    groups: dict[tuple[int, bool], list[nn.Parameter]] = {}
    for name, parameter in model.named_parameters():
        if parameter.requires_grad and (among is None or name in among):
            # Without layer-wise decay all depths share their groups: fewer kernels a step.
            below = head - depth[name] if settings.layer_decay != 1 else 0
            groups.setdefault((below, parameter.ndim >= 2), []).append(parameter)
    return [
        {
            "params": parameters,
            "weight_decay": settings.weight_decay if decays else 0.0,
            FACTOR: settings.layer_decay**below,
        }
        for (below, decays), parameters in sorted(groups.items(), key=lambda item: (item[0][0], not item[0][1]))
    ]
