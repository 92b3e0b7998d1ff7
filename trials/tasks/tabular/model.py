"""How a tabular task trains and evaluates: a perceptron over a table's rows."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from sklearn import metrics as scores
from torch import nn

from trials.contract import Setup
from trials.data.residence import Residence
from trials.data.samples import LABELS, Column, Samples
from trials.data.workload import Batch
from trials.descriptions.tabular import TabularSettings
from trials.running.randomness import Use, derive, seed_everything
from trials.tasks import metrics
from trials.tasks.network_files import NetworkFiles
from trials.tasks.one_target import OneTargetWorkload, TargetSamples
from trials.tasks.tabular.data import TabularData
from trials.tasks.tabular.encoding import TabularRows
from trials.tasks.tabular.perceptron import Perceptron
from trials.tasks.tabular.written import DESCRIPTION

SHAPE = ("depth", "width", "embedding", "dropout")
"""The settings that a perceptron is built from."""


class TabularWorkload(OneTargetWorkload):
    """A perceptron with a table's rows on a device (a `workload.Workload`)."""

    def __init__(self, data: TabularData, settings: TabularSettings, setup: Setup) -> None:
        device = torch.device(setup.device)
        encoding = data.encoding
        cardinalities = [len(names) for names in encoding.categorical.values()]
        outputs = 1 if encoding.classes is None else len(encoding.classes)
        seed_everything(derive(setup.seed, Use.WEIGHTS))
        numbers = data.train.numeric.shape[1]
        model = Perceptron(numbers, cardinalities, outputs, settings).to(device)

        def describe(folder: Path) -> None:
            shape = {name: getattr(settings, name) for name in SHAPE}
            content = {"encoding": dataclasses.asdict(encoding), "model": shape}
            (folder / DESCRIPTION).write_text(json.dumps(content, indent=1), encoding="utf-8")

        residence = Residence.of(data, device)
        train = _split(residence, data.train)
        validation = _split(residence, data.validation)
        files = NetworkFiles(model, device, describe)
        super().__init__(model, files, (train, validation), settings, device)
        self._encoding = encoding

    def outputs(self, batch: Batch) -> torch.Tensor:
        """The scores of the classes, shape (rows, classes); or a standardised quantity of each row,
        shape (rows,)."""
        outputs: torch.Tensor = self.model(**batch.inputs).float()
        return outputs.squeeze(1) if self._encoding.classes is None else outputs

    def losses(self, outputs: torch.Tensor, batch: Batch, smoothing: float) -> torch.Tensor:
        """The sum of the rows' cross-entropies, or of their squared errors in deviations of the
        target."""
        if self._encoding.classes is None:
            return nn.functional.mse_loss(outputs, batch.labels, reduction="sum")
        return super().losses(outputs, batch, smoothing)

    def predicted(self, outputs: torch.Tensor) -> torch.Tensor:
        """The class of each row, or its standardised quantity, shape (rows,)."""
        return outputs if self._encoding.classes is None else super().predicted(outputs)

    def measure(self, truth: npt.NDArray[Any], found: npt.NDArray[Any]) -> dict[str, float]:
        """The metrics of classes or of quantities."""
        classes = self._encoding.classes
        if classes is not None:
            return metrics.classification(truth.astype(np.int64), found, len(classes))
        return self._quantities(truth.astype(np.float64), found.astype(np.float64))

    def _quantities(
        self, truth: npt.NDArray[np.float64], found: npt.NDArray[np.float64]
    ) -> dict[str, float]:
        """The errors in the target's own unit, and the share of its variance that is explained."""
        if not np.isfinite(found).all():
            return dict.fromkeys(("rmse", "mae", "r2"), float("nan"))
        unit = self._encoding.target_deviation
        root_mean_square = float(scores.root_mean_squared_error(truth, found))
        mean_absolute = float(scores.mean_absolute_error(truth, found))
        explained = float("nan")
        if len(truth) > 1:
            explained = float(scores.r2_score(truth, found))
        return {"rmse": root_mean_square * unit, "mae": mean_absolute * unit, "r2": explained}


def _split(residence: Residence, rows: TabularRows) -> TargetSamples:
    parts = [
        Column(residence, "numeric", rows.numeric),
        Column(residence, "categorical", rows.categorical, torch.int64),
        Column(residence, LABELS, rows.target),
    ]
    lengths = np.ones(len(rows.target), dtype=np.int64)
    return TargetSamples(Samples(residence, parts, [lengths]), rows.target, lengths)
