"""LAMB: Adam with a step for each matrix in proportion to its own norm, for large batches.

You et al. 2020, "Large Batch Optimization for Deep Learning: Training BERT in 76 minutes" (arXiv 1904.00962),
algorithm 2, with the identity for its scaling function. Vectors (biases, scales of norms) take Adam's plain step, as in
the authors' code, which adapts only what it decays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch


class Lamb(torch.optim.Optimizer):
    """LAMB with decoupled weight decay.

    Args:
        params: Parameter groups.
        lr: Learning rate: the share of its norm by which a matrix moves.
        betas: Decays of the running means of the gradient and of its square.
        eps: Added to the denominator.
        weight_decay: Added to the step, times the weight.
    """

    def __init__(
        self,
        params: Iterable[dict[str, Any]],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-6,
        weight_decay: float = 0.0,
    ) -> None:
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "steps": 0})

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
            if group["weight_decay"]:
                torch._foreach_add_(directions, parameters, alpha=group["weight_decay"])
            torch._foreach_mul_(directions, self._trust(parameters, directions))
            torch._foreach_add_(parameters, directions, alpha=-group["lr"])

    def _adam(self, parameters: list[torch.Tensor], group: dict[str, Any]) -> list[torch.Tensor]:
        """Adam's bias-corrected directions."""
        gradients = [p.grad for p in parameters if p.grad is not None]
        beta1, beta2 = group["betas"]
        means = [self._running(p, "mean") for p in parameters]
        squares = [self._running(p, "square") for p in parameters]
        torch._foreach_lerp_(means, gradients, 1 - beta1)
        torch._foreach_mul_(squares, beta2)
        torch._foreach_addcmul_(squares, gradients, gradients, 1 - beta2)
        below = torch._foreach_div(squares, 1 - beta2 ** group["steps"])
        torch._foreach_sqrt_(below)
        torch._foreach_add_(below, group["eps"])
        above = torch._foreach_div(means, 1 - beta1 ** group["steps"])
        return list(torch._foreach_div(above, below))

    @staticmethod
    def _trust(parameters: list[torch.Tensor], directions: list[torch.Tensor]) -> list[torch.Tensor]:
        """The norm of each matrix over that of its direction; 1 for vectors, and where either norm is 0."""
        ratios = []
        for weight, step, parameter in zip(
            torch._foreach_norm(parameters), torch._foreach_norm(directions), parameters, strict=True
        ):
            plain = torch.ones_like(weight)
            adapted = parameter.ndim >= 2
            ratios.append(torch.where((weight > 0) & (step > 0), weight / step, plain) if adapted else plain)
        return ratios

    def _running(self, parameter: torch.Tensor, name: str) -> torch.Tensor:
        state = self.state[parameter]
        if name not in state:
            state[name] = torch.zeros_like(parameter)
        running: torch.Tensor = state[name]
        return running
