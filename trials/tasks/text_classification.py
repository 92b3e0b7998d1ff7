"""Text classification: a Hugging Face model learns to tell which class a text belongs to.

This module holds the task's face: its fields, and how it is built, prepared and started. Its data is read in
`text_data`, its model built in `text_model`; both are imported when they are needed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trials.contract import Problem, Setting, Setup, TaskError
from trials.settings import TABLE, Settings, nearest
from trials.tasks.description import Field, TaskDescription

if TYPE_CHECKING:
    from trials.loop import TrainingRun
    from trials.tasks.text_data import TextData

METRICS = frozenset(
    {
        "accuracy", "macro_f1", "mcc", "loss",
        "train_loss", "samples_per_second", "tokens_per_second", "padding_ratio", "grad_norm", "learning_rate",
        "peak_memory_bytes",
    }
)  # fmt: skip
"""All metrics of a report: four of the validation data, then what the loop measures of itself."""

_FIELDS = (
    Field("train", (str,), "the training data: a CSV, Parquet or JSONL file", required=True),
    Field("validation", (float, str), "a fraction of the training data such as 0.15, or a file", required=True),
    Field("test", (str,), "a file that the search never sees"),
    Field("text", (str,), "the column with the texts", required=True),
    Field("label", (str,), "the column with the classes", required=True),
    Field("model", (str, dict), "a hub id, a local folder, or scratch: {layers: 2, width: 128}", required=True),
    Field("split_seed", (int,), "which samples a validation fraction picks; the same for every trial"),
)

DESCRIPTION = TaskDescription(
    kind="text_classification",
    fields={field.name: field for field in _FIELDS},
    settings=TABLE,
    metrics=METRICS,
)


@dataclass(frozen=True)
class Scratch:
    """The shape of a small BERT with random weights."""

    layers: int = 2
    width: int = 128
    heads: int = 2
    feed_forward: int = 512
    vocabulary: int = 8192

    @staticmethod
    def parse(shape: Mapping[str, Any]) -> Scratch:
        """Check a mapping of sizes; `heads` and `feed_forward` follow the width where they are not given.

        Raises:
            TaskError: With every unknown or unfit size.
        """
        names = list(Scratch.__dataclass_fields__)
        problems = []
        for name, value in shape.items():
            if name not in names:
                problems.append(Problem(f"task.model.scratch.{name}", f"is no size of a model; {nearest(name, names)}"))
            elif isinstance(value, bool) or not isinstance(value, int) or value < 1:
                problems.append(Problem(f"task.model.scratch.{name}", f"must be a whole number above 0, not {value!r}"))
        if problems:
            raise TaskError(problems)
        width = shape.get("width", Scratch.width)
        sizes = {"heads": max(width // 64, 1), "feed_forward": 4 * width, **shape}
        if width % sizes["heads"]:
            what = f"{sizes['heads']} heads do not divide the width {width}; choose a divisor of it"
            raise TaskError([Problem("task.model.scratch.heads", what)])
        return Scratch(**sizes)


@dataclass(frozen=True)
class TextSpec:
    """The `task` part, parsed: paths are absolute."""

    train: Path
    validation: float | Path
    test: Path | None
    text: str
    label: str
    model: str | Scratch
    split_seed: int

    @staticmethod
    def parse(task: Mapping[str, Any], base: Path) -> TextSpec:
        """Parse a part whose keys and types are right.

        Raises:
            TaskError: The validation fraction or the model cannot be.
        """
        validation = task["validation"]
        if isinstance(validation, float | int) and not 0 < validation < 1:
            what = f"must be a fraction between 0 and 1 or a file, not {validation}"
            raise TaskError([Problem("task.validation", what)])
        return TextSpec(
            train=base / task["train"],
            validation=validation if isinstance(validation, float) else base / validation,
            test=base / task["test"] if "test" in task else None,
            text=task["text"],
            label=task["label"],
            model=_parse_model(task["model"], base),
            split_seed=task.get("split_seed", 0),
        )

    def with_model(self, model: str | None, base: Path) -> str | Scratch:
        """The model to train: the one that a setting names, or the task's own."""
        return self.model if model is None else _parse_model(model, base)


def _parse_model(model: Any, base: Path) -> str | Scratch:
    """A local folder becomes an absolute path; a hub id stays as it is."""
    if model == "scratch":
        return Scratch()
    if isinstance(model, Mapping):
        if list(model) != ["scratch"]:
            what = f"as a mapping has the one key scratch, not {', '.join(map(str, model)) or 'none'}"
            raise TaskError([Problem("task.model", what)])
        return Scratch.parse(model["scratch"] or {})
    folder = base / model
    if folder.is_dir():
        if not (folder / "config.json").is_file():
            what = f"{folder} has no config.json; name a folder that save_pretrained wrote"
            raise TaskError([Problem("task.model", what)])
        return str(folder)
    if model.startswith((".", "/", "~")) or model.count("/") > 1:
        raise TaskError([Problem("task.model", f"no such folder: {folder}; write a folder's path or a hub id")])
    return str(model)


class TextClassification:
    """The task (a `contract.Task`).

    Args:
        task: The `task` part of a study file, its keys and types checked.
        base: The folder its relative paths start from.
    """

    def __init__(self, task: Mapping[str, Any], base: Path) -> None:
        self.metrics: frozenset[str] | None = METRICS
        self.settings: Mapping[str, Setting] | None = TABLE
        self.spec = TextSpec.parse(task, base)
        self._base = base
        self._digest = hashlib.sha256(json.dumps([dict(task), str(base)], sort_keys=True).encode()).hexdigest()[:12]

    def problems(self) -> list[Problem]:
        """What is wrong with the data files."""
        from trials.tasks import text_data

        return text_data.problems_with(self.spec)

    def data_key(self, params: Mapping[str, Any]) -> str:
        """Equal for settings that need the same tokens: the longest length and, where it is searched, the model."""
        settings = Settings.parse(params)
        return f"text_classification:{self._digest}:max_length={settings.max_length}:model={settings.model or 'own'}"

    def prepare(self, params: Mapping[str, Any]) -> TextData:
        """Read, split and tokenise the data.

        Raises:
            TaskError: With every problem of the data or the model.
        """
        from trials.tasks import text_data

        settings = Settings.parse(params)
        return text_data.prepare(self.spec, self.spec.with_model(settings.model, self._base), settings.max_length)

    def start(self, setup: Setup, data: TextData) -> TrainingRun:
        """Build the model and the run, continued from a checkpoint where `setup` names one.

        Raises:
            TaskError: The settings do not fit.
            CheckpointError: The checkpoint is damaged, and so are those before it.
        """
        from trials.loop import TrainingRun
        from trials.tasks.text_model import TextWorkload

        settings = Settings.parse(setup.params)
        if settings.monitor not in METRICS:
            what = f"{settings.monitor!r} is no metric of this task; {nearest(settings.monitor, METRICS)}"
            raise TaskError([Problem("settings.monitor", what)])
        model = self.spec.with_model(settings.model, self._base)
        return TrainingRun(TextWorkload(model, data, settings, setup), settings, setup)

    def rehearse(self, setup: Setup, data: TextData) -> dict[str, float]:
        """Train one step and evaluate one batch, each of the longest texts."""
        run = self.start(setup, data)
        try:
            return run.rehearse()
        finally:
            run.close()
