"""What the tasks on texts share: they train models of transformers, whose tokenizers prepare the
data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from trials.descriptions.models import parse_model
from trials.settings import Settings
from trials.tasks.huggingface.spec import TextSpec
from trials.tasks.trained import TrainedTask

if TYPE_CHECKING:
    from torch import nn

    from trials.final.export import Portable


class TextTask(TrainedTask[TextSpec]):
    """A task on texts; what is prepared follows from the longest length and the model.

    A kind of task names its own fields and its data module, and builds in `workload` the model that
    it trains.
    """

    DATA_SETTINGS: ClassVar[tuple[str, ...]] = ("max_length", "model")
    FIELDS: ClassVar[Mapping[str, str]]
    """The fields of its own, each with its value where the study file states none."""
    OPTIONS: ClassVar[tuple[str, ...]] = ()
    """The keys of its own that are no such fields."""

    def __init__(self, task: Mapping[str, Any], base: Path) -> None:
        spec = TextSpec.parse(task, base, self.FIELDS, self.OPTIONS)
        super().__init__(task, base, spec, spec.model)

    def spec_for(self, settings: Settings) -> TextSpec:
        """The part with the model that a setting names, where one does."""
        spec = self.spec
        if settings.model is None:
            return spec
        return replace(spec, model=parse_model(settings.model, self._base, spec.trusted))

    def portable(self, folder: Path, model: nn.Module) -> Portable:
        """From `input_ids` and `attention_mask` to the logits of the classes, of a text or of each
        of its tokens."""
        from trials.final.export import Portable
        from trials.tasks.huggingface.written import Scores

        return Portable(Scores(folder, type(model)), free=(0, 1))
