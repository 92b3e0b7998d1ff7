"""Image classification: a small residual network, or a pretrained model, learns the class of an
image."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trials.contract import Problem, Setup, TaskError
from trials.descriptions.images import IMAGE_CLASSIFICATION, ImageSettings
from trials.settings import Settings
from trials.tasks.images.data import ImageDataSet, ImageSpec
from trials.tasks.workloads.task import TrainedTask

if TYPE_CHECKING:
    from trials.data.workload import Workload
    from trials.tasks.images.data import ImageData


class ImageClassification(TrainedTask[ImageSpec]):
    """The task."""

    DESCRIPTION = IMAGE_CLASSIFICATION
    SETTINGS = ImageSettings
    DATA = ImageDataSet

    def __init__(self, task: Mapping[str, Any], base: Path) -> None:
        super().__init__(task, base, ImageSpec.parse(task, base))

    def problems(self, remark: Callable[[str], None] | None = None) -> list[Problem]:
        try:
            return self.DATA(self._sized()).problems(remark)
        except TaskError as error:
            return error.problems

    def spec_for(self, settings: Settings) -> ImageSpec:
        return self._sized()

    def _sized(self) -> ImageSpec:
        if self.spec.size is not None or self.spec.model is None:
            return self.spec
        from trials.tasks.images import processor

        return replace(self.spec, size=processor.read(self.spec.model).side)

    def workload(self, data: ImageData, settings: ImageSettings, setup: Setup) -> Workload:
        from trials.tasks.images.model import ImageWorkload, residual

        if self.spec.model is None:
            return ImageWorkload(residual(data, settings, setup), data, settings, setup)
        from trials.tasks.images.pretrained import pretrained

        network = pretrained(self.spec.model, data, settings, setup)
        return ImageWorkload(network, data, settings, setup)
