"""The model of a tabular task: a multi-layer perceptron over numbers and embedded classes, in plain torch."""

from __future__ import annotations

import dataclasses
import itertools
import json
from pathlib import Path

import numpy as np
import numpy.typing as npt
import safetensors.torch
import torch
from sklearn import metrics as scores
from torch import nn

from trials import distributed, metrics
from trials.batching import Ints
from trials.contract import Setup
from trials.precision import Precision
from trials.randomness import Use, derive, seed_everything
from trials.residence import Residence
from trials.samples import LABELS, Column, Samples
from trials.tasks import evaluation
from trials.tasks.tabular import TabularSettings
from trials.tasks.tabular_data import Rows, TabularData
from trials.weights import MODEL, Weights, write
from trials.workload import Batch

DESCRIPTION = "table.json"
"""The file of a checkpoint that tells how a table becomes the model's inputs."""


class Perceptron(nn.Module):
    """Hidden layers (linear, normalised, ReLU, dropout) over numbers and embedded classes.

    Args:
        numbers: How many numbers a row has.
        classes: How many classes each categorical column has, 0 (missing or unknown) not counted.
        outputs: How many numbers come out.
        settings: Depth, width, embedding and dropout.
    """

    def __init__(self, numbers: int, classes: list[int], outputs: int, settings: TabularSettings) -> None:
        super().__init__()
        self.embeddings = nn.ModuleList(nn.Embedding(count + 1, settings.embedding) for count in classes)
        inputs = numbers + len(classes) * settings.embedding
        widths = [inputs] + [settings.width] * settings.depth
        layers: list[nn.Module] = []
        for before, after in itertools.pairwise(widths):
            layers += [nn.Linear(before, after), nn.LayerNorm(after), nn.ReLU(), nn.Dropout(settings.dropout or 0.0)]
        self.layers = nn.Sequential(*layers, nn.Linear(widths[-1], outputs))

    def forward(self, numeric: torch.Tensor, categorical: torch.Tensor) -> torch.Tensor:
        """Numbers (n, numbers) and classes (n, columns) to outputs (n, outputs)."""
        embedded = [embed(categorical[:, column]) for column, embed in enumerate(self.embeddings)]
        outputs: torch.Tensor = self.layers(torch.cat([numeric, *embedded], dim=1))
        return outputs


def _samples(residence: Residence, rows: Rows) -> Samples:
    parts = [
        Column(residence, "numeric", rows.numeric),
        Column(residence, "categorical", rows.categorical, torch.int64),
        Column(residence, LABELS, rows.target),
    ]
    return Samples(residence, parts, [np.ones(len(rows.target), dtype=np.int64)])


class TabularWorkload:
    """A perceptron with a table's rows on a device (a `workload.Workload`)."""

    def __init__(self, data: TabularData, settings: TabularSettings, setup: Setup) -> None:
        self._device = torch.device(setup.device)
        self._data, self._settings = data, settings
        self._classes = data.encoding.classes
        cardinalities = [len(names) for names in data.encoding.categorical.values()]
        outputs = 1 if self._classes is None else len(self._classes)
        seed_everything(derive(setup.seed, Use.WEIGHTS))
        model = Perceptron(data.train.numeric.shape[1], cardinalities, outputs, settings)
        self.model: nn.Module = model.to(self._device)
        self.lengths: Ints = np.ones(len(data.train.target), dtype=np.int64)
        residence = Residence.of(data, self._device)
        self.samples, self._validation = (_samples(residence, rows) for rows in (data.train, data.validation))
        self._eval_order = np.arange(len(data.validation.target))

    def batch(self, rows: Ints) -> Batch:
        """The training rows `rows`."""
        return self.samples.batch(rows)

    def loss_sum(self, batch: Batch) -> torch.Tensor:
        """The sum of the rows' cross-entropies, or of their squared errors in deviations of the target."""
        return self._loss_sum(self._outputs(batch), batch, self._settings.label_smoothing)

    def _outputs(self, batch: Batch) -> torch.Tensor:
        outputs: torch.Tensor = self.model(**batch.inputs).float()
        return outputs.squeeze(1) if self._classes is None else outputs

    def _loss_sum(self, outputs: torch.Tensor, batch: Batch, smoothing: float) -> torch.Tensor:
        if self._classes is None:
            return nn.functional.mse_loss(outputs, batch.labels, reduction="sum")
        return nn.functional.cross_entropy(outputs, batch.labels, reduction="sum", label_smoothing=smoothing)

    def weight(self, rows: Ints) -> float:
        """One target a row."""
        return float(len(rows))

    def evaluate(self, precision: Precision) -> dict[str, float]:
        """Loss (without smoothing), and the metrics of classes or of quantities, of the validation rows."""
        parts = evaluation.cut(self._eval_order, self._settings.eval_batch_size)
        with evaluation.evaluating(self.model):
            results = distributed.current().spread(parts, lambda part: self._evaluate_batch(part, precision))
        outputs = torch.cat([output for _, output in results]).cpu().numpy()
        loss = evaluation.total([loss for loss, _ in results]) / len(self._eval_order)
        target = self._data.validation.target
        if self._classes is not None:
            return {"loss": loss, **metrics.classification(target.astype(np.int64), outputs, len(self._classes))}
        return {"loss": loss, **self._quantities(target.astype(np.float64), outputs.astype(np.float64))}

    def _quantities(self, truth: npt.NDArray[np.float64], found: npt.NDArray[np.float64]) -> dict[str, float]:
        """The errors in the target's own unit, and the share of its variance that is explained."""
        if not np.isfinite(found).all():
            return dict.fromkeys(("rmse", "mae", "r2"), float("nan"))
        unit = self._data.encoding.target_deviation
        explained = float(scores.r2_score(truth, found)) if len(truth) > 1 else float("nan")
        return {
            "rmse": float(scores.root_mean_squared_error(truth, found)) * unit,
            "mae": float(scores.mean_absolute_error(truth, found)) * unit,
            "r2": explained,
        }

    def evaluate_longest(self, precision: Precision) -> None:
        """Evaluate a batch of validation rows: all are of one length."""
        with evaluation.evaluating(self.model):
            loss, _ = self._evaluate_batch(self._eval_order[: self._settings.eval_batch_size], precision)
        loss.item()  # waits for the device

    def _evaluate_batch(self, rows: Ints, precision: Precision) -> tuple[torch.Tensor, torch.Tensor]:
        """The sum of losses, and the predicted classes or quantities; both on the device."""
        batch = self._validation.batch(rows)
        with precision.autocast():
            outputs = self._outputs(batch)
        return self._loss_sum(outputs, batch, 0.0), outputs if self._classes is None else outputs.argmax(dim=-1)

    def weights(self) -> Weights:
        """The network's weights."""
        return {MODEL: self.model.state_dict()}

    def write(self, folder: Path, weights: Weights) -> None:
        """Write the weights, and beside them how a table becomes the model's inputs."""
        write(weights, folder)
        shape = {name: getattr(self._settings, name) for name in ("depth", "width", "embedding", "dropout")}
        content = {"encoding": dataclasses.asdict(self._data.encoding), "model": shape}
        (folder / DESCRIPTION).write_text(json.dumps(content, indent=1), encoding="utf-8")

    def read(self, folder: Path) -> None:
        """Load the weights of a checkpoint."""
        safetensors.torch.load_model(self.model, str(folder / MODEL), device=str(self._device))
