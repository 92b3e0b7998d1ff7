"""The base of the tasks on texts: they train models of transformers, whose tokenizers prepare the
data."""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from trials.contract import Setup
from trials.descriptions.models import parse_model
from trials.settings import Settings
from trials.tasks.huggingface.spec import TextSpec
from trials.tasks.workloads.task import TrainedTask

if TYPE_CHECKING:
    from torch import nn

    from trials.data.workload import Workload
    from trials.final.export import Portable


class TextTask(TrainedTask[TextSpec]):
    """A task on texts; what is prepared follows from the longest length and the model.

    A kind of task names its own fields, its data and its workload.
    """

    DATA_SETTINGS: ClassVar[tuple[str, ...]] = ("max_length", "model")
    FIELDS: ClassVar[Mapping[str, str]]
    """The fields of its own, each with its value where the study file states none."""
    WORKLOAD: ClassVar[str]
    """Its workload as ``module:class``; imported when a model is built, as it imports torch."""

    def __init__(self, task: Mapping[str, Any], base: Path) -> None:
        spec = TextSpec.parse(task, base, self.FIELDS)
        super().__init__(task, base, spec, spec.model)

    def spec_for(self, settings: Settings) -> TextSpec:
        spec = self.spec
        if settings.model is None:
            return spec
        return replace(spec, model=parse_model(settings.model, self._base, spec.trusted))

    def workload(self, data: Any, settings: Any, setup: Setup) -> Workload:
        """The model with its data."""
        build = pkgutil.resolve_name(self.WORKLOAD)
        built: Workload = build(self.spec_for(settings).model, data, settings, setup)
        return built

    def portable(self, folder: Path, model: nn.Module) -> Portable:
        """From `input_ids` and `attention_mask` to the logits of the classes, of a text or of each
        of its tokens."""
        from trials.final.export import Portable
        from trials.tasks.huggingface.model_files import Scores

        return Portable(Scores(folder, type(model)), free=(0, 1))
