"""Parameters and their values in Optuna's terms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hpsearch.study_file.parameters import (
    CategoricalParameter,
    IntParameter,
    Parameter,
    grid_point,
)

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution


def distribution_of(parameter: Parameter) -> BaseDistribution:
    """The Optuna distribution a parameter is drawn from."""
    # Imported here: reading a study file and asking for help need no Optuna.
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    if isinstance(parameter, CategoricalParameter):
        return CategoricalDistribution(parameter.choices)
    kind: Any = IntDistribution if isinstance(parameter, IntParameter) else FloatDistribution
    distribution: BaseDistribution = kind(
        parameter.low, parameter.high, log=parameter.log, step=parameter.step
    )
    return distribution


def value_of(distribution: BaseDistribution, internal: float) -> Any:
    """The value that Optuna keeps as a number, as people write it."""
    from optuna.distributions import FloatDistribution

    value = distribution.to_external_repr(internal)
    if isinstance(distribution, FloatDistribution) and distribution.step is not None:
        low, step = distribution.low, distribution.step
        return grid_point(low, step, (value - low) / step)
    return value
