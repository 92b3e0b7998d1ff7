"""The keys of a `task` part that say where the data is, parsed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trials.descriptions.models import Pretrained, Scratch


@dataclass(frozen=True)
class DataSpec:
    """The data of a task; paths are absolute.

    Args:
        validation: The validation data, or the fraction of the training data that it is.
        split_seed: Decides which samples a validation fraction picks.
    """

    train: Path
    validation: float | Path
    test: Path | None
    split_seed: int

    @property
    def facts(self) -> tuple[object, ...]:
        """Everything else that decides on the prepared data; compared by `repr`."""
        return (self.split_seed,)

    @property
    def encoder(self) -> Pretrained | Scratch | None:
        """The model whose tokenizer encodes the data; None if none does."""
        return None

    @staticmethod
    def shared(task: Mapping[str, Any], base: Path) -> dict[str, Any]:
        """The fields of this class, from a part whose values are right."""
        validation = task["validation"]
        return {
            "train": base / task["train"],
            "validation": base / validation if isinstance(validation, str) else float(validation),
            "test": base / task["test"] if "test" in task else None,
            "split_seed": task.get("split_seed", 0),
        }
