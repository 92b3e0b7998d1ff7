"""A trial's parameters as the nested config of a trainable, and the way back.

A config ``{"model": {"width": uniform(1, 8)}}`` is searched as the parameter ``model.width``.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

OURS = "_tune"
"""Among the `args` of a task: what `hpsearch.tune` notes about its trainable."""


def config_of(params: Mapping[str, Any], tuples: frozenset[str] = frozenset()) -> dict[str, Any]:
    """The nested config of a trial, which its trainable may change.

    Args:
        params: Its parameters by their dotted names, over constants, which may be nested.
        tuples: The parameters whose lists were tuples.
    """
    config: dict[str, Any] = {}
    own = {name: value for name, value in params.items() if name != OURS}
    # Constants first: their names have no points, and parameters go inside.
    for name in sorted(own, key=lambda name: "." in name):
        value = copy.deepcopy(own[name])
        _put(config, name, _with_tuples(value) if name in tuples else value)
    return config


def _with_tuples(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(map(_with_tuples, value))
    if isinstance(value, dict):
        return {key: _with_tuples(each) for key, each in value.items()}
    return value


def _put(config: dict[str, Any], name: str, value: Any) -> None:
    *parents, last = str(name).split(".")
    inner = config
    for parent in parents:
        inner = inner.setdefault(parent, {})
    inner[last] = value


def flat(nested: Mapping[str, Any], between: str) -> dict[str, Any]:
    """A nested mapping as one level, its names joined."""
    found: dict[str, Any] = {}
    for name, value in nested.items():
        if not isinstance(value, Mapping):
            found[str(name)] = value
            continue
        for inner, each in flat(value, between).items():
            found[f"{name}{between}{inner}"] = each
    return found
