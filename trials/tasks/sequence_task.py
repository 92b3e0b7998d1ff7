"""What the tasks have in common whose model reads and predicts tokens: their fields, settings and parsed form."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from trials.settings import Settings, setting
from trials.tasks import splitting
from trials.tasks.description import Field, TaskDescription
from trials.tasks.pretrained import KEY, TRUST, Pretrained
from trials.tasks.text_classification import Scratch, parse_model
from trials.tasks.trained import TrainedTask

if TYPE_CHECKING:
    from torch import nn

    from trials.export import Portable
    from trials.tasks.sequence_data import SequenceData


@dataclass(frozen=True)
class PackingSettings(Settings):
    """The loop's settings, and whether short samples share a row; for tasks that score every token by itself."""

    packing: bool = setting(
        bool, False, "Lay short samples end to end in rows of max_length: less padding, same samples, same losses."
    )


@dataclass(frozen=True)
class SequenceSpec:
    """The `task` part, parsed: paths are absolute.

    Args:
        columns: The names of the file's columns, by the field that states them.
    """

    train: Path
    validation: float | Path
    test: Path | None
    columns: Mapping[str, str]
    model: Pretrained | Scratch
    trusted: bool
    split_seed: int


def describe(
    kind: str, files: str, columns: tuple[Field, ...], settings: type[Settings], metrics: frozenset[str]
) -> TaskDescription:
    """The description of a task on sequences.

    Args:
        kind: Its name.
        files: Which files its data may be in, in words.
        columns: The fields that name columns.
        settings: Its settings.
        metrics: What it reports.
    """
    fields = (
        Field("train", (str,), f"the training data: {files}", required=True),
        Field("validation", (float, str), "a fraction of the training data such as 0.15, or a file", required=True),
        Field("test", (str,), "a file that the search never sees"),
        *columns,
        Field("model", (str, dict), "a hub id, a local folder, or scratch: {layers: 2, width: 128}", required=True),
        TRUST,
        Field("split_seed", (int,), "which samples a validation fraction picks; the same for every trial"),
    )
    return TaskDescription(kind, {field.name: field for field in fields}, settings.table(), metrics)


class SequenceTask(TrainedTask):
    """A task on sequences; what is prepared follows from the longest length and the model."""

    DATA_SETTINGS: ClassVar[tuple[str, ...]] = ("max_length", "model")
    COLUMNS: ClassVar[Mapping[str, str]]
    """The fields that name columns, each with the column's name where the study file states none."""
    spec: SequenceSpec

    def __init__(self, task: Mapping[str, Any], base: Path) -> None:
        super().__init__(task, base)
        self.spec = SequenceSpec(
            train=base / task["train"],
            validation=splitting.parse(task, base),
            test=base / task["test"] if "test" in task else None,
            columns={name: task.get(name, default) for name, default in self.COLUMNS.items()},
            model=parse_model(task["model"], base, task.get(KEY, False)),
            trusted=task.get(KEY, False),
            split_seed=task.get("split_seed", 0),
        )
        self.model = self.spec.model

    def kept(self, settings: Settings, build: Callable[[], SequenceData], *facts: object) -> SequenceData:
        """The task's data from the cache, or built and kept.

        Args:
            settings: What the data is prepared for.
            build: Prepares it.
            facts: What decides on the data beside the files, the split, the columns and the settings.
        """
        from trials.batching import Sequences
        from trials.tasks import prepared
        from trials.tasks.sequence_data import SequenceData, Split

        spec = self.spec
        decisive = [getattr(settings, name) for name in self.DATA_SETTINGS if name != "model"]
        recipe = prepared.Recipe(
            kind=self.DESCRIPTION.kind,
            sources=(spec.train, spec.validation),
            facts=(spec.split_seed, dict(spec.columns), decisive, *facts),
            model=self.model_for(settings),
            types=(SequenceData, Split, Sequences),
            build=build,
        )
        return prepared.prepare(recipe)

    def portable(self, folder: Path, model: nn.Module) -> Portable:
        """From `input_ids` and `attention_mask` to the logits of every token."""
        from trials.export import Portable
        from trials.tasks.finishing import Scores

        return Portable(Scores(folder, type(model)), free=(0, 1))

    def model_for(self, settings: Settings) -> Pretrained | Scratch:
        """The model to train: the one that a setting names, or the task's own."""
        spec = self.spec
        return spec.model if settings.model is None else parse_model(settings.model, self._base, spec.trusted)
