"""Muon for the hidden matrices, AdamW for all else, as one optimizer.

Jordan et al. 2024 (kellerjordan.github.io/posts/muon): the momentum of a hidden matrix is
orthogonalised before it is applied; embeddings, the head and vectors are left to AdamW. Muon's
steps are scaled to the size of AdamW's (Liu et al. 2025, arXiv 2502.16982), so that one learning
rate and one weight decay serve both.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


class MuonWithAdamW(torch.optim.Optimizer):
    """Two optimizers that share their state and their groups: to a loss scaler and a checkpoint
    they are one, and a step that is skipped is skipped by both.
    """

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
