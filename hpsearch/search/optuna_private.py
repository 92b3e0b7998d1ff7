"""The calls of Optuna's functions that are not public.

Optuna's own samplers and pruners use the same parts, and they have been stable, but a new release
may change them, and with them the methods that `samplers.view.SamplerView`,
`samplers.design.Design` and `hpsearch.adapters.optuna_trial.ObjectiveTrial` override.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from optuna.distributions import BaseDistribution
from optuna.samplers import BruteForceSampler
from optuna.samplers._brute_force import _TreeNode
from optuna.trial import FrozenTrial


def contains(distribution: BaseDistribution, value: Any) -> bool:
    """True if a parameter with this distribution can have a value."""
    try:
        return distribution._contains(distribution.to_internal_repr(value))
    except (ValueError, TypeError):
        return False


def brute_force_is_done(trials: Sequence[FrozenTrial]) -> bool:
    """True if brute force has tried all configurations; those that are queued or run count too."""
    tree = _TreeNode()
    BruteForceSampler._populate_tree(tree, list(trials), {})
    return not tree.is_any_expandable(exclude_running=True)
