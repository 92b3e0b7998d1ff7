"""Trainables that are given parameters beside their config, or say what a trial takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hpsearch.errors import UserError


@dataclass(frozen=True)
class WrappedTrainable:
    """A trainable with more than its code.

    Args:
        inner: A function or a class.
        parameters: Given to the function, or to the class's `setup`, by name.
        resources: ``cpu`` and ``gpu`` of a trial.
    """

    inner: Any
    parameters: Mapping[str, Any] = field(default_factory=dict)
    resources: Mapping[str, float] = field(default_factory=dict)


def unwrapped(trainable: Any) -> WrappedTrainable:
    """A trainable with its parameters and resources, none where it has none."""
    return trainable if isinstance(trainable, WrappedTrainable) else WrappedTrainable(trainable)


def with_parameters(trainable: Any, **parameters: Any) -> WrappedTrainable:
    """A trainable that is given objects beside its config.

    Args:
        trainable: A function, which is called with them by name, or a class, whose `setup` is.
        parameters: Plain values, or objects that are global in the trainable's module.
    """
    before = unwrapped(trainable)
    together = {**before.parameters, **parameters}
    return WrappedTrainable(before.inner, together, before.resources)


def with_resources(trainable: Any, resources: Any) -> WrappedTrainable:
    """A trainable that says what each trial takes: ``{"cpu": 2, "gpu": 0.5}``. Raises UserError if
    it asks for something else."""
    before = unwrapped(trainable)
    return WrappedTrainable(before.inner, before.parameters, _plain_resources(resources))


def _plain_resources(resources: Any) -> dict[str, float]:
    if not isinstance(resources, Mapping):
        what = f"tune.with_resources cannot follow {resources!r}"
        raise UserError(what, "give numbers that are the same for all trials: {'cpu': 2}")
    found = {str(name).lower(): number for name, number in resources.items()}
    for name in found:
        if name not in ("cpu", "gpu"):
            what = f"tune.with_resources asks for {name}, and workers are given cpu and gpu only"
            raise UserError(what, "leave it out")
    return found
