"""The calls of Optuna's functions that are not public.

Optuna's own samplers and pruners use the same parts, and they have been stable, but a new release
may change them, and with them the methods that `samplers.view.SamplerView`,
`samplers.random_points.Design` and `hpsearch.adapters.optuna_trial.ObjectiveTrial` override.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from optuna.distributions import BaseDistribution
from optuna.pruners import HyperbandPruner
from optuna.samplers import BruteForceSampler
from optuna.samplers._brute_force import _TreeNode
from optuna.study import Study
from optuna.trial import FrozenTrial


def contains(distribution: BaseDistribution, value: Any) -> bool:
    """True if a parameter with this distribution can have a value."""
    try:
        return distribution._contains(distribution.to_internal_repr(value))
    except (ValueError, TypeError):
        return False


def brackets_of(
    pruner: HyperbandPruner, study: Study, trials: Sequence[FrozenTrial]
) -> dict[int, int]:
    """The Hyperband bracket of each trial, by its number."""
    if not pruner._pruners:
        pruner._try_initialization(study)
    return {trial.number: pruner._get_bracket_id(study, trial) for trial in trials}


def brute_force_is_done(trials: Sequence[FrozenTrial]) -> bool:
    """True if brute force has tried all configurations; those that are queued or run count too."""
    tree = _TreeNode()
    BruteForceSampler._populate_tree(tree, list(trials), {})
    return not tree.is_any_expandable(exclude_running=True)
