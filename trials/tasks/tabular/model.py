"""The workload of a tabular task: a perceptron over a table's rows."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import torch

from trials.contract import Setup
from trials.data.residence import Residence
from trials.data.samples import LABELS, Column, Samples
from trials.data.workload import Batch
from trials.descriptions.tabular import TabularSettings
from trials.running.randomness import Use, derive, seed_everything
from trials.tasks.tabular.data import TabularData
from trials.tasks.tabular.encoding import TabularRows
from trials.tasks.tabular.table_model import DESCRIPTION, Perceptron
from trials.tasks.workloads import metrics
from trials.tasks.workloads.heads import ClassHead, Head, NumberHead
from trials.tasks.workloads.network_files import NetworkFiles
from trials.tasks.workloads.workload import OneTargetWorkload, SampleSet

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
        train, validation = _split(residence, data.train), _split(residence, data.validation)
        self._targets = data.validation.target
        self._head: Head
        if encoding.classes is None:
            self._head = NumberHead(encoding.target_deviation, metrics.of_quantities)
        else:
            self._head = ClassHead()
        files = NetworkFiles(model, device, describe)
        super().__init__(model, files, train, validation, settings, device)

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
    return SampleSet(Samples(residence, parts, []), lengths)
