"""A perceptron for tables: trained on the rows of a table, and in use without the task."""

import dataclasses
import itertools
import json
from pathlib import Path

import numpy as np
import pandas as pd
import safetensors.torch
import torch
from torch import nn

from trials.checkpoints.weights import MODEL
from trials.contract import Setup, TaskError
from trials.data.batching import Ints
from trials.data.residence import Residence
from trials.data.samples import LABELS, Column, Samples
from trials.data.workload import Batch
from trials.descriptions.tabular import METRICS, TabularSettings
from trials.descriptions.text import CLASS, NUMBER
from trials.running.randomness import Use, derive, seed_everything
from trials.tasks.datasets import tables
from trials.tasks.tabular.columns import numbers_in
from trials.tasks.tabular.encoding import TabularEncoding, TabularRows, inputs
from trials.tasks.tabular.table_task import TabularData
from trials.tasks.workloads.heads import ClassHead, Head, NumberHead, of_quantities
from trials.tasks.workloads.in_use import ModelInUse, described, in_batches
from trials.tasks.workloads.workload import NetworkFiles, OneTargetWorkload, SampleSet

SHAPE = ("depth", "width", "embedding", "dropout")
"""The settings that a perceptron is built from."""
DESCRIPTION = "table.json"
"""The file of a checkpoint with the encoding and the model's shape."""


class Perceptron(nn.Module):
    """Hidden layers (linear, normalised, ReLU, dropout) over numbers and embedded classes.
    `classes` has the number of classes of each column, without 0 (missing or unknown)."""

    def __init__(
        self, numbers: int, classes: list[int], outputs: int, settings: TabularSettings
    ) -> None:
        super().__init__()
        self.embeddings = nn.ModuleList(
            nn.Embedding(count + 1, settings.embedding) for count in classes
        )
        inputs = numbers + len(classes) * settings.embedding
        widths = [inputs] + [settings.width] * settings.depth
        layers: list[nn.Module] = []
        for before, after in itertools.pairwise(widths):
            layers += [
                nn.Linear(before, after),
                nn.LayerNorm(after),
                nn.ReLU(),
                nn.Dropout(settings.dropout or 0.0),
            ]
        self.layers = nn.Sequential(*layers, nn.Linear(widths[-1], outputs))

    def forward(self, numeric: torch.Tensor, categorical: torch.Tensor) -> torch.Tensor:
        """Numbers (n, numbers) and classes (n, columns) to outputs (n, outputs)."""
        embedded = [embed(categorical[:, column]) for column, embed in enumerate(self.embeddings)]
        outputs: torch.Tensor = self.layers(torch.cat([numeric, *embedded], dim=1))
        return outputs


class TabularWorkload(OneTargetWorkload):
    """A perceptron with a table's rows on a device (a `workload.Workload`)."""

    def __init__(
        self, model: None, data: TabularData, settings: TabularSettings, setup: Setup
    ) -> None:
        if settings.monitor not in METRICS[data.objective]:
            metric = f"{settings.monitor!r} is not a metric of {data.objective}"
            what = f"{metric}, which the target asks for; choose another"
            raise TaskError.at("settings.monitor", what)
        device = torch.device(setup.device)
        encoding = data.encoding
        cardinalities = [len(names) for names in encoding.categorical.values()]
        outputs = 1 if encoding.classes is None else len(encoding.classes)
        seed_everything(derive(setup.seed, Use.WEIGHTS))
        numbers = data.train.numeric.shape[1]
        network = Perceptron(numbers, cardinalities, outputs, settings).to(device)

        def describe(folder: Path) -> None:
            shape = {name: getattr(settings, name) for name in SHAPE}
            content = {"encoding": dataclasses.asdict(encoding), "model": shape}
            (folder / DESCRIPTION).write_text(json.dumps(content, indent=1), encoding="utf-8")

        residence = Residence.of(data, device)
        train, validation = _split(residence, data.train), _split(residence, data.validation)
        self._targets = data.validation.target
        self._head: Head
        if encoding.classes is None:
            self._head = NumberHead(encoding.target_deviation, of_quantities)
        else:
            self._head = ClassHead()
        files = NetworkFiles(network, device, describe)
        self.baked = (data.objective,)
        super().__init__(network, files, train, validation, settings, device)

    def outputs(self, batch: Batch) -> torch.Tensor:
        """The scores of the classes, or a standardised quantity, shape (rows, outputs)."""
        outputs: torch.Tensor = self.model(**batch.inputs).float()
        return outputs


def _split(residence: Residence, rows: TabularRows) -> SampleSet:
    parts = [
        Column(residence, "numeric", rows.numeric),
        Column(residence, "categorical", rows.categorical, torch.int64),
        Column(residence, LABELS, rows.target),
    ]
    lengths = np.ones(len(rows.target), dtype=np.int64)
    return SampleSet(Samples(residence, parts), lengths)


class TableModel(ModelInUse):
    """A trained perceptron with the encoding of its table. It reads a file (CSV, TSV, Parquet,
    JSON lines) as the training data were read; or a frame, in which pandas may have made `NA` a
    missing value. `folder`: the model of a final training, or a checkpoint of a tabular task."""

    def __init__(self, folder: Path | str, device: str = "cpu") -> None:
        description = described(folder, DESCRIPTION)
        encoding = TabularEncoding(**description["encoding"])
        numbers = len(encoding.numeric) + len(encoding.flagged)
        classes = [len(names) for names in encoding.categorical.values()]
        outputs = 1 if encoding.classes is None else len(encoding.classes)
        shape = TabularSettings(**description["model"])
        network = Perceptron(numbers, classes, outputs, shape)
        safetensors.torch.load_model(network, Path(folder) / MODEL)
        self.encoding = encoding
        self.labels = tuple(encoding.classes or ())
        self._target = NUMBER if encoding.classes is None else CLASS
        self._mean, self._deviation = encoding.target_mean, encoding.target_deviation
        self.network = network.eval().to(device)
        self._device = torch.device(device)

    def _outputs(self, table: pd.DataFrame | Path | str, batch_size: int) -> torch.Tensor:
        rows = table if isinstance(table, pd.DataFrame) else _read(Path(table))
        rows = rows.rename(columns=str)
        self._check(rows)
        numeric, categorical = inputs(self.encoding, rows)
        numbers = torch.from_numpy(numeric)
        classes = torch.from_numpy(categorical.astype(np.int64))

        def scores(part: Ints) -> torch.Tensor:
            batch = numbers[part].to(self._device), classes[part].to(self._device)
            outputs: torch.Tensor = self.network(*batch)
            return outputs

        width = max(len(self.labels), 1)
        return in_batches(np.arange(len(rows)), batch_size, width, scores)

    def _check(self, table: pd.DataFrame) -> None:
        encoding = self.encoding
        wanted = [*encoding.numeric, *encoding.categorical]
        for column in wanted:
            if column not in table.columns:
                reads = ", ".join(wanted)
                raise ValueError(f"the table has no column {column!r}; the model reads {reads}")
        for column in encoding.numeric:
            _, others = numbers_in(table, column)
            if others:
                what = f"column {column!r} is not a number in row {others[0] + 1}"
                raise ValueError(f"{what}; correct it, or leave it empty")


def _read(path: Path) -> pd.DataFrame:
    try:
        return tables.read(path, "table")
    except TaskError as error:
        raise ValueError(error.problems[0].what) from None
