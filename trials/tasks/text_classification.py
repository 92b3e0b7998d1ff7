"""Text classification: a Hugging Face model learns to tell which class a text belongs to.

This module holds the task's face: its fields, and how it is built, prepared and started. Its data is read in
`text_data`, its model built in `text_model`; both are imported when they are needed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trials.contract import Problem, Setup, TaskError
from trials.settings import TABLE, Settings, nearest
from trials.tasks import splitting
from trials.tasks.description import LOOP_METRICS, Field, TaskDescription
from trials.tasks.pretrained import KEY, TRUST, Pretrained
from trials.tasks.trained import TrainedTask

if TYPE_CHECKING:
    from torch import nn

    from trials.export import Portable
    from trials.tasks.prepared import Recipe
    from trials.tasks.text_data import TextData
    from trials.workload import Workload

METRICS = LOOP_METRICS | {"accuracy", "macro_f1", "mcc", "loss"}
"""All metrics of a report: four of the validation data, then what the loop measures of itself."""

_FIELDS = (
    Field("train", (str,), "the training data: a CSV, Parquet or JSONL file", required=True),
    Field("validation", (float, str), "a fraction of the training data such as 0.15, or a file", required=True),
    Field("test", (str,), "a file that the search never sees"),
    Field("text", (str,), "the column with the texts", required=True),
    Field("label", (str,), "the column with the classes", required=True),
    Field("model", (str, dict), "a hub id, a local folder, or scratch: {layers: 2, width: 128}", required=True),
    TRUST,
    Field("split_seed", (int,), "which samples a validation fraction picks; the same for every trial"),
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
    model: Pretrained | Scratch
    trusted: bool
    split_seed: int

    @staticmethod
    def parse(task: Mapping[str, Any], base: Path) -> TextSpec:
        """Parse a part whose keys and types are right.

        Raises:
            TaskError: The validation fraction or the model cannot be.
        """
        return TextSpec(
            train=base / task["train"],
            validation=splitting.parse(task, base),
            test=base / task["test"] if "test" in task else None,
            text=task["text"],
            label=task["label"],
            model=parse_model(task["model"], base, task.get(KEY, False)),
            trusted=task.get(KEY, False),
            split_seed=task.get("split_seed", 0),
        )

    def with_model(self, model: str | None, base: Path) -> Pretrained | Scratch:
        """The model to train: the one that a setting names, or the task's own."""
        return self.model if model is None else parse_model(model, base, self.trusted)


def parse_model(model: Any, base: Path, trusted: bool) -> Pretrained | Scratch:
    """A local folder becomes an absolute path; a hub id stays as it is.

    Args:
        model: What the study file names.
        base: The folder that a relative path starts from.
        trusted: Whether the study file lets code that the model brings run.

    Raises:
        TaskError: It is no shape and no name, or there is no such folder.
    """
    if model == "scratch":
        return Scratch()
    if isinstance(model, Mapping):
        if list(model) != ["scratch"]:
            what = f"as a mapping has the one key scratch, not {', '.join(map(str, model)) or 'none'}"
            raise TaskError([Problem("task.model", what)])
        return Scratch.parse(model["scratch"] or {})
    folder = base / model
    if not model or not model.isprintable():
        what = f"{model[:60]!r} is no name of a model; write a folder's path or a hub id"
        raise TaskError([Problem("task.model", what)])
    if folder.is_dir():
        if not (folder / "config.json").is_file():
            what = f"{folder} has no config.json; name a folder that save_pretrained wrote"
            raise TaskError([Problem("task.model", what)])
        return Pretrained(str(folder), trusted)
    if model.startswith((".", "/", "~")) or model.count("/") > 1:
        raise TaskError([Problem("task.model", f"no such folder: {folder}; write a folder's path or a hub id")])
    return Pretrained(str(model), trusted)


class TextClassification(TrainedTask):
    """The task."""

    DESCRIPTION = TaskDescription(
        kind="text_classification",
        fields={field.name: field for field in _FIELDS},
        settings=TABLE,
        metrics=METRICS,
    )
    SETTINGS = Settings
    DATA_SETTINGS = ("max_length", "model")
    spec: TextSpec

    def __init__(self, task: Mapping[str, Any], base: Path) -> None:
        super().__init__(task, base)
        self.spec = TextSpec.parse(task, base)
        self.model = self.spec.model

    def problems(self) -> list[Problem]:
        """What is wrong with the data files."""
        from trials.tasks import text_data

        return text_data.problems_with(self.spec)

    def prepare(self, params: Mapping[str, Any]) -> TextData:
        """Read, split and tokenise the data, or find it in the cache.

        Raises:
            TaskError: With every problem of the data or the model.
        """
        from trials.tasks import prepared

        return prepared.prepare(self.recipe(Settings.parse(params)))

    def recipe(self, settings: Settings) -> Recipe[TextData]:
        """How its data is prepared."""
        from trials.batching import Sequences
        from trials.tasks import text_data
        from trials.tasks.prepared import Recipe

        spec, model, max_length = self.spec, self.spec.with_model(settings.model, self._base), settings.max_length
        return Recipe(
            kind=self.DESCRIPTION.kind,
            sources=(spec.train, spec.validation),
            facts=(spec.split_seed, spec.text, spec.label, max_length),
            model=model,
            types=(text_data.TextData, Sequences),
            build=lambda: text_data.prepare(spec, model, max_length),
        )

    def on_test(self, data: TextData, settings: Settings) -> TextData:
        """The test texts where the validation texts were."""
        from trials.tasks import text_data

        model = self.spec.with_model(settings.model, self._base)
        return text_data.on_test(self.spec, model, data, settings.max_length)

    def portable(self, folder: Path, model: nn.Module) -> Portable:
        """From `input_ids` and `attention_mask` to the logits of the classes."""
        from trials.export import Portable
        from trials.tasks.finishing import Scores

        return Portable(Scores(folder, type(model)), free=(0, 1))

    def workload(self, data: TextData, settings: Settings, setup: Setup) -> Workload:
        """The classifier with its texts."""
        from trials.tasks.text_model import TextWorkload

        return TextWorkload(self.spec.with_model(settings.model, self._base), data, settings, setup)
