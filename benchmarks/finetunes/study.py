"""A fine-tune that is searched: its study file, its data, and the loops that train it.

A folder has `study.yaml` and `data/`, in which everything lies that the study file names. For
contenders without the built-in loop, `data/peers` has the same texts and the same untrained
classifier, as `from_pretrained` reads it.
"""

from __future__ import annotations

import json
import random
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import pandas as pd
from optuna.distributions import BaseDistribution

from hpsearch.running.study_run.workers import worker_config
from hpsearch.search.proposals import derived_seed
from hpsearch.study_file.models import StudySpec
from hpsearch.study_file.reading import load, parse
from hpsearch.study_file.space import distribution_of
from hpsearch.study_file.text.editing import with_budget
from recorded import data as recorded_data
from trials.contract import Diverged, Setup
from trials.running import arithmetic
from trials.running.report_grid import budget_from
from trials.running.runner import Runner

FOLDER = Path(__file__).parent
"""Where the study files are."""
STUDY, DATA, PEERS = "study.yaml", "data", "peers"
MADE_UP = {"data/made-up-train.csv": 960, "data/made-up-test.csv": 240}
"""Files of generated sentences, and how many."""
SHARED_MEMORY = Path("/dev/shm")


@dataclass(frozen=True)
class FineTune:
    """A study file in a folder, beside its data."""

    folder: Path

    @cached_property
    def spec(self) -> StudySpec:
        return load(self.folder / STUDY)

    @property
    def epochs(self) -> float:
        """How far a trial trains in full."""
        return self.spec.budget.per_trial.total

    @property
    def metric(self) -> str:
        return self.spec.objective.metric

    @property
    def space(self) -> dict[str, BaseDistribution]:
        """The parameters, in Optuna's terms."""
        return {name: distribution_of(each) for name, each in self.spec.space.items()}

    @property
    def max_length(self) -> int:
        return int(self.spec.settings["max_length"])

    @property
    def peers(self) -> Path:
        """The folder for contenders without the built-in loop."""
        return self.folder / DATA / PEERS

    def seed_of(self, params: Mapping[str, Any]) -> int:
        """The seed that a configuration is trained with where its searcher states none."""
        return derived_seed(self.spec.seed, json.dumps(params, sort_keys=True))


def make_data(name: str, folder: Path, sources: recorded_data.Sources) -> None:
    """Write the data of a study file into a folder, in all forms that contenders read.

    Args:
        name: The study file's, in `finetunes`.
        folder: What its relative paths start from.
        sources: Where to take data from.

    Raises:
        SystemExit: A source was not given.
    """
    import loop
    from trials.descriptions.models import parse_model

    spec = parse((FOLDER / f"{name}.yaml").read_text(), base=folder)
    task = spec.task
    (folder / DATA).mkdir()
    for file, count in MADE_UP.items():
        if file in task.values():
            loop.write(folder / file, loop.made_up(random.Random(count), count))
    recorded_data.make(task, folder, sources)
    if isinstance(task["model"], str):
        recorded_data.make({"model": task["model"]}, folder, sources)
    peers = folder / DATA / PEERS
    peers.mkdir()
    for file, part in (("train.csv", "train"), ("test.csv", "validation")):
        (peers / file).symlink_to(folder / task[part])
    frame = pd.read_csv(folder / task["train"])
    texts = list(frame[task["text"]])
    labels = tuple(sorted(set(frame[task["label"]])))
    model = parse_model(task["model"], folder, False)
    max_length = int(spec.settings["max_length"])
    loop.save_classifier(peers / "model", model, texts, labels, max_length)


def make_folder(name: str, data: Path, folder: Path, seed: int, wall_clock_s: float) -> FineTune:
    """Write a study file for one run into a new folder, beside a link to its data.

    Args:
        name: The study file's, in `finetunes`.
        data: The folder that `make_data` wrote to.
        folder: The new folder.
        seed: The study's.
        wall_clock_s: The time that the study may take, in seconds.
    """
    folder.mkdir(parents=True)
    (folder / DATA).symlink_to(data / DATA)
    text = (FOLDER / f"{name}.yaml").read_text()
    text = with_budget(text, {"wall_clock": wall_clock_s})
    text = text.replace("\nseed: 1\n", f"\nseed: {seed}\n")
    (folder / STUDY).write_text(text)
    made = FineTune(folder)
    assert made.spec.seed == seed
    return made


# ------------------------------------------------------------------------------------- loops


@dataclass(frozen=True)
class Measured:
    """What one evaluation showed.

    Args:
        epochs: How far the training was.
        value: The objective's metric.
        began: When the training began, in seconds since the epoch: what comes before it is
            start-up.
    """

    epochs: float
    value: float
    began: float


class Loop(Protocol):
    """Trains configurations in this process, one after another. Evaluates after every epoch."""

    def train(self, params: Mapping[str, Any], seed: int) -> Iterator[Measured]:
        """Train a configuration in full."""


class BuiltInLoop:
    """hpsearch's own loop, without hpsearch. The data are prepared and the model is read once.

    A training that diverges has the accuracy 0 at its end.
    """

    def __init__(self, study: FineTune) -> None:
        self._study = study
        self._config = worker_config(study.spec, "")
        self._task = self._config.load_task()
        self._budget = budget_from({"epochs": study.epochs, "report_every": 1})
        self._data: dict[str, Any] = {}

    def train(self, params: Mapping[str, Any], seed: int) -> Iterator[Measured]:
        """Train a configuration in full."""
        config = self._config
        settings, _ = arithmetic.adopt(
            None,
            {**config.settings, **params},
            "cpu",
            threads=config.threads,
            known=self._task.settings,
        )
        key = self._task.data_key(settings)
        if key not in self._data:
            self._data[key] = self._task.prepare(settings)
        fastest = SHARED_MEMORY if SHARED_MEMORY.is_dir() else None
        folder = Path(tempfile.mkdtemp(prefix="finetune-", dir=fastest))
        setup = Setup(settings, seed, self._budget, folder / "run", goal=config.goal)
        try:
            yield from self._course(setup, self._data[key])
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _course(self, setup: Setup, data: Any) -> Iterator[Measured]:
        began = time.time()
        runner = Runner(self._task, data, setup)
        try:
            for report in runner.advance(setup.budget.total):
                value = report.metrics[self._study.metric]
                yield Measured(report.resource, value, began)
                runner.recorded(report.resource)
        except Diverged:
            yield Measured(setup.budget.total, 0.0, began)
        finally:
            while not runner.close():
                pass


class PlainLoop:
    """The loop that a user writes: a DataLoader, AdamW, transformers' cosine schedule.

    It has the built-in loop's precision, and pads each batch to its longest text.
    """

    def __init__(self, study: FineTune) -> None:
        from loops.contenders import Job, tokenised

        self._epochs = int(study.epochs)
        self._job = Job(study.peers, "cpu", max_length=study.max_length)
        self._samples: Any = tokenised(self._job)

    def train(self, params: Mapping[str, Any], seed: int) -> Iterator[Measured]:
        """Train a configuration in full."""
        import torch
        import transformers

        from loops.contenders import CountingCollator, accuracy, best_precision, classifier

        began = time.time()
        torch.manual_seed(seed)
        job = self._job
        collate = CountingCollator(job, pads_to_maximum=False)
        loader = torch.utils.data.DataLoader(
            self._samples, int(params["batch_size"]), shuffle=True, collate_fn=collate
        )
        model = classifier(job)
        optimizer = torch.optim.AdamW(
            model.parameters(), params["learning_rate"], weight_decay=params["weight_decay"]
        )
        steps = self._epochs * len(loader)
        warm_up = round(params["warmup"] * steps)
        schedule = transformers.get_cosine_schedule_with_warmup(optimizer, warm_up, steps)
        is_bf16 = best_precision(job) == "bf16"
        for epoch in range(1, self._epochs + 1):
            model.train()
            for batch in loader:
                with torch.autocast("cpu", torch.bfloat16, enabled=is_bf16):
                    loss = model(**batch).loss
                loss.backward()
                torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                schedule.step()
                optimizer.zero_grad()
            with torch.autocast("cpu", torch.bfloat16, enabled=is_bf16):
                reached = accuracy(model, job)
            yield Measured(epoch, reached, began)
