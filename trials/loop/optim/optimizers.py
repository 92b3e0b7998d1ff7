"""Optimizers by name, with weight decay for matrices only and a learning rate for each depth."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from trials.loop.optim.depths import depths, hidden_matrices
from trials.settings import Settings

CAPTURABLE = ("adamw", "adam", "sgd", "nesterov")
"""Optimizers whose steps do not wait for the device."""
FACTOR = "factor"  # the key of a parameter group's factor of the learning rate

ParameterGroup = dict[str, Any]  # parameters and their options, for an optimizer of torch


def build(
    model: nn.Module, settings: Settings, device: torch.device, captured: bool = False
) -> torch.optim.Optimizer:
    """The optimizer that the settings name, over the model's trainable parameters. `captured`:
    whether its steps become a CUDA graph."""
    rate = settings.learning_rate  # until the first step, which sets its own
    momentum = settings.momentum
    betas = (settings.beta1, settings.beta2)
    fused = device.type in ("cuda", "cpu")  # one kernel a step instead of several a parameter
    if settings.optimizer == "muon":
        return _muon(model, settings, fused)
    groups = parameter_groups(model, settings)
    of_adam: dict[str, Any] = {
        "lr": rate, "betas": betas, "eps": settings.epsilon, "fused": fused,
        "capturable": captured and device.type == "cuda",
    }  # fmt: skip
    match settings.optimizer:
        case "sgd":
            return torch.optim.SGD(groups, lr=rate, momentum=momentum, fused=fused)
        case "nesterov":
            return torch.optim.SGD(groups, lr=rate, momentum=momentum, nesterov=True, fused=fused)
        case "adam":
            return torch.optim.Adam(groups, **of_adam)
        case "adamw":
            return torch.optim.AdamW(groups, **of_adam)
        case "adafactor":
            return torch.optim.Adafactor(groups, lr=rate)
    raise AssertionError(settings.optimizer)


def _muon(model: nn.Module, settings: Settings, fused: bool) -> MuonWithAdamW:
    """torch's Muon over the hidden matrices and AdamW over the rest; either may be empty."""
    hidden = hidden_matrices(model)
    names = {name for name, _ in model.named_parameters()}
    rate = settings.learning_rate
    muon = adamw = None
    matrices = parameter_groups(model, settings, among=hidden)
    if matrices:
        muon = torch.optim.Muon(
            matrices, lr=rate, momentum=settings.momentum, adjust_lr_fn="match_rms_adamw"
        )
    rest = parameter_groups(model, settings, among=names - hidden)
    if rest:
        betas = (settings.beta1, settings.beta2)
        adamw = torch.optim.AdamW(rest, lr=rate, betas=betas, eps=settings.epsilon, fused=fused)
    return MuonWithAdamW(muon, adamw)


def parameter_groups(
    model: nn.Module, settings: Settings, among: set[str] | None = None
) -> list[ParameterGroup]:
    """The trainable parameters, grouped by weight decay and learning-rate factor, in a fixed order.

    Only matrices have weight decay, and not vectors (biases and the scales of norms), as in BERT
    and GPT-2 (see Loshchilov and Hutter 2019). Tables of biases, as T5 and Swin have for distances,
    have none either.

    Layer-wise decay (Howard and Ruder 2018; ELECTRA, BEiT): the factor is 1 for the head, and falls
    by `layer_decay` from each layer to the one below, down to the embeddings.

    Args:
        settings: `weight_decay` and `layer_decay` count.
        among: The names of the parameters to take; None for all.
    """
    depth = depths(model.named_parameters())
    head = max(depth.values(), default=0)
    by_layers = settings.layer_decay != 1
    groups: dict[tuple[int, bool], list[nn.Parameter]] = {}
    for name, parameter in model.named_parameters():
        if not parameter.requires_grad:
            continue
        if among is not None and name not in among:
            continue
        # Without layer-wise decay all depths share their groups: fewer kernels a step.
        below = head - depth[name] if by_layers else 0
        is_bias = parameter.ndim < 2 or "bias" in name
        groups.setdefault((below, is_bias), []).append(parameter)
    found: list[ParameterGroup] = []
    for below, is_bias in sorted(groups):
        group: ParameterGroup = {
            "params": groups[below, is_bias],
            "weight_decay": 0.0 if is_bias else settings.weight_decay,
            FACTOR: settings.layer_decay**below,
        }
        found.append(group)
    return found


class MuonWithAdamW(torch.optim.Optimizer):
    """Muon for the hidden matrices, AdamW for all else, as one optimizer.

    Jordan et al. 2024 (kellerjordan.github.io/posts/muon): the momentum of a hidden matrix is
    orthogonalised before it is applied. Muon's steps are scaled to the size of AdamW's (Liu et al.
    2025, arXiv 2502.16982), so that one learning rate and one weight decay serve both. The two
    share their state and their groups: to a loss scaler and a checkpoint they are one."""

    def __init__(self, muon: torch.optim.Muon | None, adamw: torch.optim.AdamW | None) -> None:
        self._parts = [part for part in (muon, adamw) if part is not None]
        groups: list[dict[str, Any]] = []
        for part in self._parts:
            groups += part.param_groups
        super().__init__(groups, {})
        self._share()

    def _share(self) -> None:
        """Let the parts see the state and the groups of the whole."""
        groups = iter(self.param_groups)
        for part in self._parts:
            part.param_groups = [next(groups) for _ in part.param_groups]
            part.state = self.state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._share()

    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """Take one step with both; a closure is not supported."""
        assert closure is None
        for part in self._parts:
            part.step()  # type: ignore[no-untyped-call]  # torch leaves it untyped
