"""One trial on two processes: the same batches, losses and checkpoints as on one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from trials.distributed import Group, launched

SETTINGS = {
    "precision": "fp32",
    "batch_size": 16,
    "micro_batch": 3,
    "learning_rate": 0.01,
    "dropout": 0.0,
    "eval_batch_size": 5,
    "data_workers": 1,
}
PER_TRIAL = {"epochs": 2, "report_every": 0.5}
NAMES = ("train_loss", "loss", "accuracy", "macro_f1", "grad_norm", "learning_rate")


def with_two_processes(folder: Path, *more: str) -> list[dict[str, Any]]:
    """Train study.yaml into the folder `two`; the reports that were printed."""
    lines = in_processes(folder, 2, "-m", "trials", "study.yaml", "--out", "two", "--device", "cpu", *more)
    return [json.loads(line) for line in lines]


def in_processes(folder: Path, count: int, *program: str) -> list[str]:
    """Run a program as so many processes of one thread each; the lines that were printed."""
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(count)] if count > 1 else []
    done = subprocess.run(
        [sys.executable, *launcher, *program],
        cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONFAULTHANDLER": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_two_processes_train_and_resume_as_one_would_and_only_the_first_prints(lab):
    # 73 samples in batches of 16: the last batch of an epoch has nine rows, five for one rank and four for the other.
    task = lab.task()
    run = task.start(lab.setup("one", PER_TRIAL, **SETTINGS), task.prepare(SETTINGS))
    expected = [(item.step, [item.metrics[name] for name in NAMES]) for item in run if item is not None]
    study = {"task": lab.part(), "settings": SETTINGS, "budget": {"per_trial": PER_TRIAL}, "seed": 5}
    (lab.folder / "study.yaml").write_text(yaml.safe_dump(study))

    reports = with_two_processes(lab.folder)
    assert [report["step"] for report in reports] == [step for step, _ in expected]
    for report, (_, values) in zip(reports, expected, strict=True):
        assert [report["metrics"][name] for name in NAMES] == pytest.approx(values, rel=1e-4, abs=1e-6)

    # By its step: while a save is slow, a report names the checkpoint before, which is gone when the run has ended.
    (lab.folder / "two" / "last").unlink()
    (lab.folder / "two" / "last").symlink_to(f"step-{reports[2]['step']:08d}")
    (again,) = with_two_processes(lab.folder, "--resume")
    names = [*NAMES, "padding_ratio"]
    assert [again["metrics"][name] for name in names] == [reports[3]["metrics"][name] for name in names]


EVALUATE = """
import json, os, sys
from pathlib import Path
import torch
from trials import distributed, tasks
from trials.budgets import budget_from
from trials.contract import Setup
from trials.precision import Precision

with distributed.joined("cpu") as group:
    for part in json.loads(sys.argv[1]):
        task = tasks.load(part, Path())
        setup = Setup({"eval_batch_size": 3}, 5, budget_from({"epochs": 1}), Path("out"))
        data = task.prepare(setup.params)
        workload = task.workload(data, task.SETTINGS.parse(setup.params), setup)
        found = group.gather(workload.evaluate(Precision("fp32", torch.device("cpu"))))
        if group.first:
            print(json.dumps(found), flush=True)
os._exit(0)  # as `python -m trials` does
"""


def test_two_processes_measure_each_their_share_of_the_validation_data(tmp_path):
    rng = np.random.default_rng(0)
    words = [f"word{rng.integers(9)} " * rng.integers(1, 6) for _ in range(43)]
    (tmp_path / "train.txt").write_text("\n\n".join(words))
    sentences = ("\n".join(f"{word}\t{rng.choice(['O', 'B-X', 'I-X'])}" for word in text.split()) for text in words)
    (tmp_path / "train.conll").write_text("\n\n".join(sentences))
    images = rng.integers(0, 256, (43, 8, 8), dtype=np.uint8)
    np.savez(tmp_path / "train.npz", images=images, labels=np.arange(43) % 3)
    model = {"scratch": {"layers": 1, "width": 16, "heads": 2, "vocabulary": 300}}
    parts = [
        {"kind": "language_modeling", "train": "train.txt", "validation": 0.5, "model": model},
        {"kind": "token_classification", "train": "train.conll", "validation": 0.5, "model": model},
        {"kind": "image_classification", "train": "train.npz", "validation": 0.5},
    ]
    (tmp_path / "evaluate.py").write_text(EVALUATE)
    (alone, together) = (
        [json.loads(line) for line in in_processes(tmp_path, count, "evaluate.py", json.dumps(parts))]
        for count in (1, 2)
    )
    assert together == [[found, found] for (found,) in alone]
    assert {"loss", "perplexity", "f1", "accuracy", "mcc"} <= {name for (found,) in alone for name in found}


@pytest.mark.parametrize("rows", [1, 2, 5, 16])
def test_every_row_is_trained_by_exactly_one_rank(rows):
    batch = np.arange(100, 100 + rows)
    shares = [Group(rank, 4).share(batch, weight=7.0) for rank in range(4)]
    assert sorted(row for mine, weight in shares if weight == 7.0 for row in mine) == batch.tolist()
    assert all(len(mine) == 1 for mine, weight in shares if weight == float("inf"))


def test_one_process_without_a_launcher_is_a_group_of_its_own():
    alone = Group()
    assert alone.first
    assert alone.gather("x") == ["x"]
    assert alone.agree("x") == alone.once(lambda: "x") == "x"
    assert alone.added(1, 2) == [1, 2]
    assert [alone.any(value) for value in (True, False)] == [True, False]


def test_a_launcher_is_told_by_the_environment():
    environment = {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "localhost", "MASTER_PORT": "1"}
    assert launched(environment)
    assert not launched({**environment, "WORLD_SIZE": "1"})
    assert not launched({})
