"""The base of the tasks on texts, whose models and tokenizers are of transformers."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Self

from trials.descriptions.models import KEY, Pretrained, Scratch, parse_model
from trials.settings import Settings
from trials.tasks.datasets.data_set import DataSpec
from trials.tasks.workloads.trained_task import TrainedTask


@dataclass(frozen=True)
class TextSpec(DataSpec):
    """The parsed part."""

    kind: str
    fields: Mapping[str, str]
    """The values of the task's own fields, most of them names of columns. A field that names
    several columns is here once for each, as ``text[0]``."""
    model: Pretrained | Scratch  # the model to train, where no setting names another one
    trusted: bool
    is_balanced: bool

    @property
    def facts(self) -> tuple[object, ...]:
        return self.split_seed, dict(self.fields), self.is_balanced

    @property
    def encoder(self) -> Pretrained | Scratch:
        return self.model

    def columns(self, name: str) -> dict[str, str]:
        found = {}
        for field_name, column in self.fields.items():
            first, _, _ = field_name.partition("[")
            if first == name:
                found[field_name] = column
        return found

    @classmethod
    def parse(cls, task: Mapping[str, Any], base: Path, fields: Mapping[str, str]) -> Self:
        """Parse a valid part. `fields` are the task's own fields with their default values. Raises
        TaskError if the model is not possible."""
        trusted = task.get(KEY, False)
        return cls(
            **DataSpec.shared(task, base),
            kind=task["kind"],
            fields=_own_fields(task, fields),
            model=parse_model(task["model"], base, trusted),
            trusted=trusted,
            is_balanced="class_weights" in task,
        )


def _own_fields(task: Mapping[str, Any], fields: Mapping[str, str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, default in fields.items():
        value = task.get(name, default)
        if isinstance(value, list):
            for place, part in enumerate(value):
                found[f"{name}[{place}]"] = part
        else:
            found[name] = value
    return found


class TextTask(TrainedTask[TextSpec]):
    """A task on texts. A kind names its own fields, its data and its workload."""

    DATA_SETTINGS: ClassVar[tuple[str, ...]] = ("max_length", "model")
    FIELDS: ClassVar[Mapping[str, str]]  # the task's own fields with their default values

    def __init__(self, task: Mapping[str, Any], base: Path) -> None:
        super().__init__(task, base, TextSpec.parse(task, base, self.FIELDS))

    def model_for(self, settings: Settings) -> Pretrained | Scratch:
        if settings.model is None:
            return self.spec.model
        return parse_model(settings.model, self._base, self.spec.trusted)

    def spec_for(self, settings: Settings) -> TextSpec:
        return replace(self.spec, model=self.model_for(settings))

    def remarks(self, params: Mapping[str, Any], data: Any) -> list[str]:
        settings, found = self.SETTINGS.parse(params), []
        for name, (cut, total) in data.cut.items():
            if cut:
                what = (
                    f"{cut:,} of {total:,} texts are longer than {getattr(settings, name)} tokens"
                )
                found.append(f"settings.{name}: {what}, and are cut")
        return found
