"""How fast a trial trains: hpsearch's loop, its floor, Trainer, Accelerate and a tutorial's loop.

    python benchmarks/loop.py [--data DIR] [--model PATH] [--samples 1280] [--repeats 3]
                              [--quick] [--json FILE]

All contenders train one epoch over the same texts (DIR/train.csv with columns text and category),
from the same weights, with the same batch size, learning rate and clipping. There are two jobs: a
pretrained model (a local folder, --model), and a small transformer from scratch. Without --data the
texts are generated. Contenders take turns. On a CPU every measurement runs in its own process; on
a GPU all run in one, where each contender trains once before it is measured, since kernels are
loaded as each is first needed. Contenders that need Accelerate are left out if it is not installed.

The floor is the least work possible: forward, backward, clipping and a fused step over batches that
are ready on the device. Before the measurements, hpsearch's losses are compared with the floor's
over a whole epoch: they must agree.

Columns: samples and real tokens per second after the first steps; the share of padding; accuracy on
DIR/test.csv; peak memory of the process (of the GPU if there is one); and the seconds from the
start of a trial until its model first gets a batch, cold (a new process, including imports and
tokenising; not on a GPU) and warm (the next trial in that process).
"""

import argparse
import contextlib
import csv
import importlib.util
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tables import show

BEGAN = time.perf_counter()
WARM_UP = 2
"""Steps before throughput is measured."""
TEST_ROWS = 400


class EnoughError(Exception):
    """A trial has taken all steps that are needed of it."""


class FirstStep:
    """The moment when any module first computes, after this object was created."""

    def __init__(self) -> None:
        from torch.nn.modules.module import register_module_forward_pre_hook

        self.at: float | None = None
        self._hook = register_module_forward_pre_hook(self._asked)

    def _asked(self, module: Any, arguments: Any) -> None:
        self.at = time.perf_counter()
        self._hook.remove()


class Watch:
    """Records when the first steps of a trial and its last one ended."""

    def __init__(self, device: str, steps: int, stop_after: int | None = None) -> None:
        self._device, self._steps, self._stop_after = device, steps, stop_after
        self.taken = 0
        self.ends: dict[int, float] = {}

    def __call__(self) -> None:
        """Record that a step has ended."""
        self.taken += 1
        if self.taken in (1, WARM_UP, self._steps):
            if self._device != "cpu":
                import torch

                torch.cuda.synchronize()
            self.ends[self.taken] = time.perf_counter()
        if self.taken == self._stop_after:
            raise EnoughError


def measure(contender: str, folder: Path) -> dict[str, float]:
    """Measure one contender in this process, which is new."""
    from loops.contenders import CONTENDERS, Job

    job, cold = Job(folder, device()), FirstStep()
    found = trained(CONTENDERS[contender](job), job)
    assert cold.at is not None
    return {**found, "cold_s": cold.at - BEGAN}


def in_one_process(
    contenders: list[str], folder: Path, repeats: int
) -> list[dict[str, dict[str, float]]]:
    """Measure all contenders in this process, after each has trained once; what each turn found."""
    from loops.contenders import CONTENDERS, Job

    job = Job(folder, device())
    built = {contender: CONTENDERS[contender](job) for contender in contenders}
    for one in built.values():
        one.train(lambda: None)
    return [{name: trained(one, job) for name, one in built.items()} for _ in range(repeats)]


def trained(contender: Any, job: Any) -> dict[str, float]:
    """Train a trial of a contender, and the next one's first step; returns what they took."""
    from trials.devices import memory

    texts, _ = job.rows("train.csv")
    torch_device = _torch_device(job.device)
    memory.start_peak(torch_device)
    watch = Watch(job.device, steps=-(-len(texts) // job.batch_size))
    began = time.perf_counter()
    contender.train(lambda: None)
    first_s = time.perf_counter() - began
    outcome = contender.train(watch)
    peak = memory.peak_bytes(torch_device)
    again = Watch(job.device, steps=0, stop_after=1)
    began = time.perf_counter()
    with contextlib.suppress(EnoughError):
        contender.train(again)
    seconds = watch.ends[watch.taken] - watch.ends[WARM_UP]
    return {
        "samples_s": (len(texts) - WARM_UP * job.batch_size) / seconds,
        "cells": outcome.cells,
        "accuracy": outcome.accuracy,
        "peak_MB": peak / 1e6,
        "warm_s": again.ends[1] - began,
        "first_s": first_s,
    }


def check_losses(folder: Path) -> None:
    """Without dropout, the losses of hpsearch's loop and of the floor must agree over an epoch."""
    from loops.contenders import Floor, Hpsearch, Job

    job = Job(folder, device(), dropout=0.0)
    floor = Floor(job).train(lambda: None)
    eager = Hpsearch(job, compile="never").train(lambda: None)
    captured = Hpsearch(job).train(lambda: None)
    assert floor.loss is not None
    for ours, rounding in ((eager, 1e-4), (captured, 1e-4 if job.device == "cpu" else 5e-3)):
        assert ours.loss is not None
        assert abs(ours.loss - floor.loss) < rounding * floor.loss, (
            f"hpsearch's loss {ours.loss} differs from the floor's {floor.loss}"
        )
    assert eager.cells == floor.cells, "hpsearch's batches differ from the floor's"


def device() -> str:
    """The device that everything trains on."""
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def _torch_device(name: str) -> Any:
    import torch

    return torch.device(name)


def make_job(folder: Path, data: Path | None, model: Path | None, samples: int) -> float:
    """Write the job's data and its classifier; returns the mean tokens of a training text."""
    from loops.contenders import Job
    from trials.descriptions.models import Pretrained, Scratch

    rng = random.Random(0)
    rows = {name: _rows(data, name, rng) for name in ("train.csv", "test.csv")}
    train, test = rows["train.csv"][:samples], rows["test.csv"]
    labels = tuple(sorted({category for _, category in train}))
    write(folder / "train.csv", train)
    known = [row for row in test if row[1] in labels]
    write(folder / "test.csv", known[: min(TEST_ROWS, samples)])
    source = Scratch() if model is None else Pretrained(str(model))
    texts = [text for text, _ in train]
    tokenizer = save_classifier(folder / "model", source, texts, labels, Job.max_length)
    encoded = tokenizer(texts, truncation=True, max_length=Job.max_length)["input_ids"]
    return statistics.mean(map(len, encoded))


def save_classifier(
    folder: Path, source: Any, texts: list[str], labels: tuple[str, ...], max_length: int
) -> Any:
    """Write a classifier that is not trained yet, with its tokenizer, as `from_pretrained` reads
    them; returns the tokenizer.

    Args:
        folder: Where to.
        source: A `Pretrained` or a `Scratch` of `trials.descriptions.models`.
        texts: The training texts, which the tokenizer of a model from scratch learns from.
        labels: The names of the classes.
        max_length: The longest text, in tokens.
    """
    import transformers

    from trials.tasks.huggingface import tokenizer as text_tokenizer
    from trials.tasks.huggingface.templates import ModelKind, small_bert, template

    tokenizer = text_tokenizer.load(source, texts, max_length)
    transformers.set_seed(0)
    transformers.utils.logging.disable_progress_bar()
    padding = text_tokenizer.padding_of(tokenizer)
    kind = ModelKind(transformers.AutoModelForSequenceClassification, labels, padding)
    built = template(source, kind, lambda shape: small_bert(shape, kind, len(tokenizer))).model
    built.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return tokenizer


def _rows(data: Path | None, name: str, rng: random.Random) -> list[tuple[str, str]]:
    """The rows of a file in a random order; generated if there is no data."""
    if data is None:
        return made_up(rng, 4000)
    with (data / name).open(newline="") as file:
        rows = [(row["text"], row["category"]) for row in csv.DictReader(file)]
    rng.shuffle(rows)
    return rows


def made_up(rng: random.Random, count: int) -> list[tuple[str, str]]:
    """Sentences of 3 to 60 words, mostly short, whose category is determined by one word."""
    words = [
        f"{a}{b}"
        for a in ("ba", "ko", "mi", "tu", "re")
        for b in ("lan", "sor", "pit", "nek", "dum")
    ]
    rows = []
    for _ in range(count):
        sentence = rng.choices(words, k=min(2 + int(rng.lognormvariate(2.3, 0.6)), 60))
        category = rng.randrange(8)
        sentence.insert(rng.randrange(len(sentence)), f"topic{'abcdefgh'[category]}")
        rows.append((" ".join(sentence), f"category-{category}"))
    return rows


def write(path: Path, rows: list[tuple[str, str]]) -> None:
    """Write texts with their categories as a CSV file."""
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([("text", "category"), *rows])


def measured(contender: str, folder: Path) -> dict[str, float]:
    """Measure one contender in a new process."""
    call = [sys.executable, __file__, "--one", contender, "--folder", str(folder)]
    with tempfile.TemporaryDirectory() as cache:  # a new, empty one, so that cold starts are cold
        environment = {**os.environ, "HPSEARCH_CACHE": cache}
        done = subprocess.run(call, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{contender} failed:\n{done.stderr}")
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def in_new_processes(
    contenders: list[str], folder: Path, repeats: int
) -> list[dict[str, dict[str, float]]]:
    """Measure all contenders, each time in a new process; what each turn found."""
    return [{name: measured(name, folder) for name in contenders} for _ in range(repeats)]


def compare(
    name: str, folder: Path, tokens: float, repeats: int, contenders: list[str]
) -> list[dict[str, Any]]:
    """Measure all contenders on one job in turn; returns medians."""
    measure_all = in_new_processes if device() == "cpu" else in_one_process
    turns = measure_all(contenders, folder, repeats)
    found = {contender: [turn[contender] for turn in turns] for contender in contenders}
    with (folder / "train.csv").open(newline="") as file:
        real = tokens * (sum(1 for _ in csv.reader(file)) - 1)
    rows = []
    for contender, several in found.items():
        middle = {key: statistics.median(one[key] for one in several) for key in several[0]}
        pairs = zip(several, found["floor"], strict=True)
        rows.append(
            {
                "contender": contender,
                "model": name,
                "samples_s": middle["samples_s"],
                "tokens_s": middle["samples_s"] * tokens,
                "of_floor": statistics.median(
                    one["samples_s"] / floor["samples_s"] for one, floor in pairs
                ),
                "padding": 1 - real / middle["cells"],
                **{
                    key: middle.get(key)
                    for key in ("accuracy", "peak_MB", "cold_s", "warm_s", "first_s")
                },
                "repeats": repeats,
            }
        )
    return rows


def main() -> None:
    """Check that losses agree, measure the contenders in turn, and print medians."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--data", type=Path, metavar="DIR", help="a folder with train.csv and test.csv"
    )
    parser.add_argument("--model", type=Path, metavar="PATH", help="a pretrained model's folder")
    parser.add_argument("--samples", type=int, default=1280, help="number of training texts")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument(
        "--only", nargs="+", metavar="CONTENDER", help="measure only these, and the floor"
    )
    parser.add_argument(
        "--quick", action="store_true", help="one repeat on 128 texts, from scratch only"
    )
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one == "check":
        check_losses(arguments.folder)
        print("{}")
        return
    if arguments.one:
        print(json.dumps(measure(arguments.one, arguments.folder)))
        return
    from loops.contenders import CONTENDERS, NEED_A_GPU, NEED_ACCELERATE

    installed = importlib.util.find_spec("accelerate") is not None
    contenders = [c for c in CONTENDERS if installed or c not in NEED_ACCELERATE]
    if device() == "cpu":
        contenders = [c for c in contenders if c not in NEED_A_GPU]
    if arguments.only:
        contenders = [c for c in contenders if c == "floor" or c in arguments.only]
    samples, repeats = (128, 1) if arguments.quick else (arguments.samples, arguments.repeats)
    models = [None] if arguments.quick or arguments.model is None else [None, arguments.model]
    rows = []
    for model in models:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            tokens = make_job(folder, arguments.data, model, samples)
            measured("check", folder)
            title = "scratch" if model is None else "pretrained"
            rows += compare(title, folder, tokens, repeats, contenders)
        show(f"Training {samples} texts for one epoch", rows, arguments.json)


if __name__ == "__main__":
    main()
