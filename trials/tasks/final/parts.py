"""The steps of the final training of a built-in task, the same for every kind."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from trials.contract import TaskError
from trials.data.batching import Sequences
from trials.tasks.datasets import prepared
from trials.tasks.workloads.trained_task import BuiltInTask


class FinalParts:
    def __init__(self, task: BuiltInTask[Any]) -> None:
        self._task = task

    @property
    def files(self) -> Mapping[str, Path]:
        """The data files, or folders, by the key that names them."""
        spec = self._task.spec
        named = {"train": spec.train, "validation": spec.validation, "test": spec.test}
        found = {}
        for key, path in named.items():
            if isinstance(path, Path):
                found[key] = path
        return found

    def fingerprint(self, data: Any) -> str:
        """SHA-256 of the prepared training and validation data."""
        return prepared.digest_of(data)

    def joined(self, data: Any) -> Any:
        """Data that trains on the validation samples too."""
        joined = {}
        for field in dataclasses.fields(data):
            name = field.name
            if name.startswith("train"):
                other = name.replace("train", "validation", 1)
                joined[name] = _after(getattr(data, name), getattr(data, other))
        return replace(data, **joined)

    def on_test(self, params: Mapping[str, Any]) -> Any | None:
        """Data with the test samples in place of the validation samples; None without any."""
        task = self._task
        if task.spec.test is None:
            return None
        if problems := task.problems():
            raise TaskError(problems)
        settings = task.SETTINGS.parse(params)
        return task.DATA(task.spec_for(settings)).on_test(settings)


def _after(first: Any, second: Any) -> Any:
    if first is None:
        return None
    if isinstance(first, np.ndarray):
        return np.concatenate([first, second])
    if isinstance(first, Sequences):
        moved = second.offsets[1:] + first.offsets[-1]
        tokens = np.concatenate([first.tokens, second.tokens])
        offsets = np.concatenate([first.offsets, moved])
        return Sequences(tokens, offsets)
    joined = {}
    for field in dataclasses.fields(first):
        name = field.name
        joined[name] = _after(getattr(first, name), getattr(second, name))
    return replace(first, **joined)
