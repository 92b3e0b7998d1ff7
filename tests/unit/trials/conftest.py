"""Tiny data and models, made on the spot."""

import csv
import math
import os
import random
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch
import transformers

from support.running.runs import Lab
from trials.contract import Report, Setup
from trials.devices import precision
from trials.loop import saves
from trials.running.report_grid import budget_from

TOPICS = {
    "card": ["card", "plastic", "chip", "pin"],
    "rate": ["exchange", "rate", "euro", "dollar"],
    "fee": ["fee", "charge", "cost", "price"],
}
FILLER = ["the", "my", "is", "when", "please", "why", "a", "new", "help", "with", "today"]


THREADS = int(os.environ["OMP_NUM_THREADS"])
"""One, unless the tests are to run with more; adopted arithmetic changes the variable."""


@pytest.fixture(autouse=True)
def _threads() -> None:
    torch.set_num_threads(THREADS)


@pytest.fixture(autouse=True)
def _exact_arithmetic(monkeypatch: pytest.MonkeyPatch) -> None:
    """Float32 on every processor: what is to be equal would be so to bfloat16's rounding only."""
    monkeypatch.setattr(precision, "cpu_has_bf16", lambda: False)


@pytest.fixture(autouse=True)
def _saves_in_the_foreground(monkeypatch: pytest.MonkeyPatch) -> None:
    """However slow the disk is: which checkpoint a report names would depend on it."""
    monkeypatch.setattr(saves, "WORTH_S", math.inf)


def sentences(count: int, seed: int = 0) -> list[tuple[str, str]]:
    """Sentences of different lengths, each with the topic whose word stands in it."""
    rng = random.Random(seed)
    rows = []
    for _ in range(count):
        label = rng.choice(sorted(TOPICS))
        words = [*rng.choices(FILLER, k=rng.randint(2, 12)), rng.choice(TOPICS[label])]
        rng.shuffle(words)
        rows.append((" ".join(words), label))
    return rows


def write_csv(path: Path, rows: list[tuple[str, str]]) -> Path:
    """Write texts and labels under the columns text and topic."""
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([("text", "topic"), *rows])
    return path


PART = {
    "kind": "text_classification",
    "train": "train.csv",
    "validation": 0.25,
    "text": "text",
    "label": "topic",
    "model": {"scratch": {"layers": 1, "width": 16, "heads": 2, "vocabulary": 120}},
}


class TextLab(Lab):
    """Text classifications, with a budget of any unit."""

    def __init__(self, folder: Path, plain: Mapping[str, Any] = PART) -> None:
        super().__init__(folder, plain, {})

    def setup(  # type: ignore[override]
        self, out: str, per_trial: dict[str, Any], resume_from: Path | None = None, **params: Any
    ) -> Setup:
        """A setup whose checkpoints go to the folder `out`."""
        return Setup(params, 5, budget_from(per_trial), self.folder / out, resume_from)

    def write(self, name: str, rows: Sequence[tuple[str | None, Any]]) -> Path:
        """Write texts and topics, in the format that the file's name says."""
        path = self.folder / name
        frame = pd.DataFrame(rows, columns=["text", "topic"])
        match path.suffix:
            case ".csv":
                frame.to_csv(path, index=False)
            case ".tsv":
                frame.to_csv(path, index=False, sep="\t")
            case ".parquet":
                frame.to_parquet(path)
            case ".jsonl":
                frame.to_json(path, orient="records", lines=True)
        return path


@pytest.fixture
def lab(tmp_path: Path) -> TextLab:
    """97 sentences: no batch size divides what a validation fraction leaves of them."""
    write_csv(tmp_path / "train.csv", sentences(97))
    return TextLab(tmp_path)


@pytest.fixture
def pretrained(lab: TextLab) -> Path:
    """A local folder as `save_pretrained` writes it: a body with another classifier on it."""
    task = lab.task()
    run = task.start(lab.setup("pretraining", {"epochs": 1}), task.prepare({}))
    *_, last = run
    folder = lab.folder / "pretrained"
    shutil.copytree(last.checkpoint, folder)
    transformers.logging.disable_progress_bar()
    config = transformers.AutoConfig.from_pretrained(folder)
    body = transformers.BertModel.from_pretrained(folder, config=config)
    body.save_pretrained(folder)
    return folder


TIMINGS = ("samples_per_second", "tokens_per_second", "peak_memory_bytes")


@pytest.fixture
def without_timings() -> Callable[[list[Report]], list[tuple[float, int | None, dict[str, float]]]]:
    """Turns reports into what must not differ between two equal runs."""

    def strip(reports: list[Report]) -> list[tuple[float, int | None, dict[str, float]]]:
        return [
            (
                r.resource,
                r.step,
                {name: value for name, value in r.metrics.items() if name not in TIMINGS},
            )
            for r in reports
        ]

    return strip


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Path]]:
    """Writes a module into the study file's folder; gone with its name after the test."""
    monkeypatch.setattr(sys, "path", [*sys.path])

    def write(text: str, name: str = "their_training") -> Path:
        (tmp_path / f"{name}.py").write_text(text)
        monkeypatch.delitem(sys.modules, name, raising=False)
        return tmp_path

    yield write
    sys.modules.pop("their_training", None)
