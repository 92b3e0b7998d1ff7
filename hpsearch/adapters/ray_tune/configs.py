"""A trial's parameters as the nested config of a trainable, and the way back.

A config ``{"model": {"width": uniform(1, 8)}}`` is searched as the parameter ``model.width``.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from typing import Any

OURS = "_tune"
"""Among the `args` of a task: what `hpsearch.tune` notes about its trainable."""


def config_of(params: Mapping[str, Any], lists: frozenset[str] = frozenset()) -> dict[str, Any]:
    """The nested config of a trial.

    Args:
        params: Its parameters by their dotted names, over constants, which may be nested.
        lists: The parameters whose values are JSON texts, of choices that are lists or mappings.
    """
    config: dict[str, Any] = {}
    for name, value in params.items():
        if isinstance(value, Mapping):
            config[name] = copy.deepcopy(dict(value))
    for name, value in params.items():
        if name != OURS and not isinstance(value, Mapping):
            decoded = json.loads(value) if name in lists else value
            _put(config, name, decoded)
    config.pop(OURS, None)
    return config


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
