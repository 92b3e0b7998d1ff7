"""What training data says of the study that searches it: its kind, columns and metric, how long
its texts are, how many rows validate, and how long a trial trains."""

from __future__ import annotations

import math
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pandas as pd

from hpsearch.adapters import loading
from hpsearch.errors import UserError
from hpsearch.study_file import space
from hpsearch.study_file.levels import trial_budget
from hpsearch.study_file.models import StudySpec
from hpsearch.study_run.workers import goal_of
from hpsearch.words.numbers import duration
from trials.contract import Rehearsed, Setup, TaskError
from trials.descriptions.builtin import describe
from trials.tasks.datasets import tables

WORDS_OF_A_TEXT = 5
"""A column whose middle cell has so many words holds texts."""
ENOUGH_TO_VALIDATE = 1000
LARGEST_SHARE, SMALLEST_SHARE = 0.3, 0.05
"""Of the rows, for validation."""
RARE = 1 / 3
"""A class that has less than this of an equal share of the rows is rare."""
TEXTS_FROM_SCRATCH = 500
"""Fewer texts teach a model from scratch little."""
BYTES_A_TOKEN = 3
SHORTEST, LONGEST = 16, 512
"""Tokens of a text."""
EPOCHS = (9, 27, 81)
"""Budgets of a trial whose model starts from scratch: rungs at a ninth, a third and the whole."""
NEEDED_SAMPLES = 40_000
"""Samples, counted in every epoch, that such a model needs to have learnt something."""
LONGEST_TRIAL_S = 400
"""A trial of a first study trains at most so long: 20 of them, most of which pause, take an hour on
one worker."""
HUB_S = 5
"""So long the hub has to answer."""
USUAL = 0.75
"""Such a share of the texts is no longer than what a step is measured on."""
MEASURED_ROWS, MEASURED_STEPS, MEASURED_S = 2000, 5, 10
"""A step is measured on so many rows, so often, and not again after so many seconds."""


@dataclass(frozen=True)
class DataFacts:
    """What a table of training data shows.

    Args:
        rows: How many it has.
        rare: Whether a class is rare beside the others; False where there are no classes.
        tokens: About so many tokens has a long text; 0 without texts.
    """

    rows: int
    rare: bool
    tokens: int

    @property
    def validation(self) -> float:
        """The share of the rows that validates a study."""
        share = ENOUGH_TO_VALIDATE / max(self.rows, 1)
        return round(min(max(share, SMALLEST_SHARE), LARGEST_SHARE), 2)

    @property
    def max_length(self) -> int:
        """Tokens that a text may have."""
        sixteens = math.ceil(self.tokens / 16)
        return min(max(16 * sixteens, SHORTEST), LONGEST)


def read(train: Path) -> pd.DataFrame:
    """The table of a data file.

    Raises:
        UserError: It cannot be read.
    """
    try:
        table = tables.read(train, "--train")
    except TaskError as error:
        raise UserError(error.problems[0].what, "check the path, or leave out --train") from None
    table.columns = table.columns.map(str)
    if table.empty:
        raise UserError(f"{train} has no rows", "it needs a header and rows")
    return table


def holds_texts(table: pd.DataFrame, column: str) -> bool:
    """Whether a column holds texts, and not words, classes or numbers."""
    words = [len(text.split()) for text in tables.texts_in(table, column) if text is not None]
    return bool(words) and sorted(words)[len(words) // 2] >= WORDS_OF_A_TEXT


def can_be_had(model: str) -> bool:
    """Whether a model of the Hugging Face hub is on this machine, or the hub answers for it."""
    from huggingface_hub import constants, try_to_load_from_cache

    if isinstance(try_to_load_from_cache(model, "config.json"), str):
        return True
    if constants.HF_HUB_OFFLINE:
        return False
    address = f"{constants.ENDPOINT}/{model}/resolve/main/config.json"
    try:
        with urlopen(Request(address, method="HEAD"), timeout=HUB_S):  # noqa: S310 - hub's own
            return True
    except (OSError, HTTPException):
        return False


def facts_of(table: pd.DataFrame, texts: tuple[str, ...], classes: str | None) -> DataFacts:
    """What a table shows.

    Args:
        table: The training data.
        texts: The columns with texts, which a sample has all of.
        classes: The column with classes; None if there is none.
    """
    counts: Counter[str | None] = Counter()
    if classes is not None:
        counts = Counter(tables.texts_in(table, classes))
        counts.pop(None, None)
    equal_share = counts.total() / max(len(counts), 1)
    rare = any(count < RARE * equal_share for count in counts.values())
    columns = [tables.texts_in(table, column) for column in texts]
    sizes = [len("".join(map(str, row)).encode()) for row in zip(*columns, strict=True)]
    long = sorted(sizes)[len(sizes) * 99 // 100] if sizes else 0
    return DataFacts(len(table), rare, math.ceil(long / BYTES_A_TOKEN))


def step_seconds(spec: StudySpec, table: pd.DataFrame) -> tuple[float, int]:
    """How long a training step takes here, on the longest samples of some rows, and how many.

    Raises:
        TaskError: The data or the model do not fit the task.
    """
    import torch

    settings = describe(spec.task["kind"]).settings or {}
    params: Mapping[str, Any] = {
        **spec.settings,
        **space.completed(spec.space, space.defaults(spec.space, settings) or {}),
    }
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # a worker has one
    try:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            task = loading.load(_some_rows(spec.task, table, folder), spec.base)
            assert isinstance(task, Rehearsed), "every built-in task is"
            device = "cuda:0" if torch.cuda.is_available() else "cpu"
            budget = trial_budget(spec)
            setup = Setup(params, 0, budget, folder, device=device, goal=goal_of(spec))
            data = task.prepare(params)
            took: list[float] = []
            end = time.monotonic() + MEASURED_S
            # The first step also loads libraries, and others may wait for other processes.
            while len(took) < MEASURED_STEPS and (len(took) < 2 or time.monotonic() < end):
                took.append(task.rehearse(setup, data)["step_seconds"])
    finally:
        torch.set_num_threads(threads)
    batch_size = params.get("batch_size", settings["batch_size"].default)
    return min(took), min(batch_size, len(table), MEASURED_ROWS)


def _some_rows(task: Mapping[str, Any], table: pd.DataFrame, folder: Path) -> dict[str, Any]:
    """A task on some rows of its data, without the longest texts; on all rows of a small table."""
    if len(table) <= MEASURED_ROWS:
        return dict(task)
    if "text" in task:
        stated = task["text"]
        texts = table[[stated] if isinstance(stated, str) else list(stated)]
        letters = texts.astype(str).apply(lambda column: column.str.len()).sum(axis=1)
        table = table[letters <= letters.quantile(USUAL)]
    path = folder / "some.csv"
    table.sample(min(MEASURED_ROWS, len(table)), random_state=0).to_csv(path, index=False)
    return {**task, "train": str(path)}


def budget(
    names: Mapping[str, str], table: pd.DataFrame, step_s: float, samples: int
) -> dict[str, str]:
    """What a starter names of a trial's budget: enough for a model from scratch to have learnt
    something, and no more than a first study has time for.

    Args:
        names: What the starter names so far. A budget that it has is lowered, and not raised.
        table: The training data.
        step_s: How long a step takes, in seconds.
        samples: How many samples it trains.
    """
    rows = len(table)
    enough = next((epochs for epochs in EPOCHS if epochs * rows >= NEEDED_SAMPLES), EPOCHS[-1])
    epoch_s = step_s * rows / samples
    affordable = max(
        (each for each in EPOCHS if each * epoch_s <= LONGEST_TRIAL_S), default=EPOCHS[0]
    )
    total = min(int(names.get("total", enough)), affordable)
    first = {"first": f", first_rung: {total // 9}"} if total > 9 else {}
    expected = f"; about {duration(total * epoch_s)} here"
    return {"total": str(total), "expected": expected, **first}
