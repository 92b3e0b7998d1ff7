"""LAMB: Adam with a step for each matrix in proportion to its own norm, for large batches.

You et al. 2020, "Large Batch Optimization for Deep Learning: Training BERT in 76 minutes" (arXiv
1904.00962), algorithm 2, with the identity for its scaling function. Vectors (biases, scales of
norms) take Adam's plain step, as in the authors' code, which adapts only what it decays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch


class Lamb(torch.optim.Optimizer):
    """LAMB with decoupled weight decay."""

    def __init__(
        self,
        params: Iterable[dict[str, Any]],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-6,
        weight_decay: float = 0.0,
    ) -> None:
        defaults = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "steps": 0}
        super().__init__(params, defaults)

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """Take one step; a closure is not supported."""
        assert closure is None
        for group in self.param_groups:
            parameters = [p for p in group["params"] if p.grad is not None]
            if not parameters:
                continue
            group["steps"] += 1
            directions = self._adam(parameters, group)
            decay = group["weight_decay"]
            if decay:
                torch._foreach_add_(directions, parameters, alpha=decay)
            ratios = self._trust(parameters, directions)
            torch._foreach_mul_(directions, ratios)
            torch._foreach_add_(parameters, directions, alpha=-group["lr"])

    def _adam(self, parameters: list[torch.Tensor], group: dict[str, Any]) -> list[torch.Tensor]:
        gradients = [p.grad for p in parameters if p.grad is not None]
        means = [self._running(p, "mean") for p in parameters]
        squares = [self._running(p, "square") for p in parameters]
        beta1, beta2 = group["betas"]
        steps = group["steps"]
        torch._foreach_lerp_(means, gradients, 1 - beta1)
        torch._foreach_mul_(squares, beta2)
        torch._foreach_addcmul_(squares, gradients, gradients, 1 - beta2)
        square_bias = 1 - beta2**steps
        denominators = torch._foreach_div(squares, square_bias)
        torch._foreach_sqrt_(denominators)
        torch._foreach_add_(denominators, group["eps"])
        mean_bias = 1 - beta1**steps
        numerators = torch._foreach_div(means, mean_bias)
        directions = torch._foreach_div(numerators, denominators)
        return list(directions)

    @staticmethod
    def _trust(
        parameters: list[torch.Tensor], directions: list[torch.Tensor]
    ) -> list[torch.Tensor]:
        """The norm of each matrix over that of its direction; 1 for vectors, and where either norm
        is 0."""
        weight_norms = torch._foreach_norm(parameters)
        direction_norms = torch._foreach_norm(directions)
        ratios = []
        for parameter, weight, step in zip(parameters, weight_norms, direction_norms, strict=True):
            ratio = torch.ones_like(weight)
            if parameter.ndim >= 2:
                both = (weight > 0) & (step > 0)
                ratio = torch.where(both, weight / step, ratio)
            ratios.append(ratio)
        return ratios

    def _running(self, parameter: torch.Tensor, name: str) -> torch.Tensor:
        state = self.state[parameter]
        if name not in state:
            state[name] = torch.zeros_like(parameter)
        running: torch.Tensor = state[name]
        return running
