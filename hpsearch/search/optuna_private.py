"""The calls of Optuna's functions that are not public.

Optuna's own samplers and pruners use the same parts, and they have been stable, but a new release
may change them, and with them the methods that `samplers.view.SamplerView`,
`samplers.design.Design` and `hpsearch.adapters.optuna_trial.ObjectiveTrial` override.
"""

from __future__ import annotations

from typing import Any

from optuna.distributions import BaseDistribution


def contains(distribution: BaseDistribution, value: Any) -> bool:
    """True if a parameter with this distribution can have a value."""
    try:
        return distribution._contains(distribution.to_internal_repr(value))
    except (ValueError, TypeError):
        return False
