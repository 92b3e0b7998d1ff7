"""One trial on two processes: the same batches, losses and checkpoints as on one."""

import dataclasses
import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml

from support.running.programs import run_program
from trials.devices.processes import Group, StepCounts, launched, use

SETTINGS = {
    "precision": "fp32",
    "batch_size": 16,
    "micro_batch": 3,
    "learning_rate": 0.01,
    "dropout": 0.0,
    "eval_batch_size": 5,
}
PER_TRIAL = {"epochs": 2, "report_every": 0.5}
NAMES = ("train_loss", "loss", "accuracy", "macro_f1", "grad_norm", "learning_rate")


def with_two_processes(folder: Path, *more: str) -> list[dict[str, Any]]:
    """Train study.yaml into the folder `two`; the reports that were printed."""
    lines = in_processes(
        folder, 2, "-m", "trials", "study.yaml", "--out", "two", "--device", "cpu", *more
    )
    return [json.loads(line) for line in lines]


def in_processes(folder: Path, count: int, *program: str) -> list[str]:
    """Run a program as so many processes of one thread each; the lines that were printed."""
    launcher = (
        ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(count)]
        if count > 1
        else []
    )
    done = run_program(
        [sys.executable, *launcher, *program],
        cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONFAULTHANDLER": "1"},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def reports_of_two_processes(lab):
    """What two processes printed that trained into the folder `two`; it is what one would have."""
    # 73 samples in batches of 16: the last batch of an epoch has nine rows, five for one rank and
    # four for the other.
    task = lab.task()
    run = task.start(lab.setup("one", PER_TRIAL, **SETTINGS), task.prepare(SETTINGS))
    expected = [
        (item.step, [item.metrics[name] for name in NAMES]) for item in run if item is not None
    ]
    study = {
        "task": lab.part(),
        "settings": SETTINGS,
        "budget": {"per_trial": PER_TRIAL},
        "seed": 5,
    }
    (lab.folder / "study.yaml").write_text(yaml.safe_dump(study))

    reports = with_two_processes(lab.folder)
    assert [report["step"] for report in reports] == [step for step, _ in expected]
    for report, (_, values) in zip(reports, expected, strict=True):
        assert [report["metrics"][name] for name in NAMES] == pytest.approx(
            values, rel=1e-4, abs=1e-6
        )
    return reports


@pytest.mark.thorough
def test_two_processes_train_and_resume_as_one_would(lab):
    reports = reports_of_two_processes(lab)
    assert len(reports) == 4, "only the first prints"
    # By its step: while a save is slow, a report names the checkpoint before, which is gone when
    # the run has ended.
    (lab.folder / "two" / "last").unlink()
    (lab.folder / "two" / "last").symlink_to(f"step-{reports[2]['step']}")
    (again,) = with_two_processes(lab.folder, "--resume")
    names = [*NAMES, "padding_ratio"]
    assert [again["metrics"][name] for name in names] == [
        reports[3]["metrics"][name] for name in names
    ]


EVALUATE = """
import json, os, sys
from pathlib import Path
import torch
from trials import tasks; from trials.devices import processes
from trials.running.report_grid import budget_from
from trials.contract import Setup
from trials.devices.precision import Precision

with processes.joined("cpu") as group:
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


@pytest.mark.thorough
def test_two_processes_measure_each_their_share_of_the_validation_data(tmp_path):
    rng = np.random.default_rng(0)
    words = [f"word{rng.integers(9)} " * rng.integers(1, 6) for _ in range(43)]
    (tmp_path / "train.txt").write_text("\n\n".join(words))
    sentences = (
        "\n".join(f"{word}\t{rng.choice(['O', 'B-X', 'I-X'])}" for word in text.split())
        for text in words
    )
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
        [
            json.loads(line)
            for line in in_processes(tmp_path, count, "evaluate.py", json.dumps(parts))
        ]
        for count in (1, 2)
    )
    assert together == [[found, found] for (found,) in alone]
    assert {"loss", "perplexity", "f1", "accuracy", "mcc"} <= {
        name for (found,) in alone for name in found
    }


NORMED = """
import json, os, sys
from pathlib import Path
import torch
from torch import nn, distributed as collectives
from trials.devices import processes
from trials.running.report_grid import budget_from
from trials.contract import Setup
from trials.loop.training import TrainingRun
from trials.settings import Settings
from trials.data.workload import Batch

class Normed:
    \"\"\"Points of one token, with a batch norm, \
a module that counts its rows, and constants.\"\"\"

    def __init__(self):
        torch.manual_seed(0)
        self.inputs = torch.randn(64, 2)
        self.labels = (self.inputs.sum(dim=1) > 0).long()
        self.lengths = torch.ones(64, dtype=torch.int64).numpy()
        self.model = nn.Sequential(nn.Linear(2, 8), nn.BatchNorm1d(8), nn.Linear(8, 2))
        self.model.register_parameter("unused", nn.Parameter(torch.zeros(3)))
        self.model.register_buffer("constant", torch.tensor([1 / 3, float("-inf")]))
        self.model.register_buffer("seen", torch.zeros(2))

    def batch(self, rows):
        return Batch({"x": self.inputs[rows]}, self.labels[rows], \
tokens=len(rows), cells=2 * len(rows))

    def loss_sum(self, batch):
        self.model.seen += batch.inputs["x"].detach().mean(dim=0)
        return nn.functional.cross_entropy(self.model(batch.inputs["x"]), \
batch.labels, reduction="sum")

    def weight(self, rows):
        return float(len(rows))

    def evaluate(self, precision):
        evaluated.append({name: buffer.tolist() for name, buffer in self.model.named_buffers()})
        return {"loss": 1.0}

    def weights(self):
        return {"model.pt": self.model.state_dict()}

    def write(self, folder, weights):
        torch.save(dict(weights["model.pt"]), folder / "model.pt")

    def read(self, folder):
        self.model.load_state_dict(torch.load(folder / "model.pt", weights_only=True))

exchanges, evaluated = [], []
for name in ("all_reduce", "broadcast", "all_gather", "broadcast_object_list", "all_gather_object"):
    def counted(*given, do=getattr(collectives, name), name=name, **more):
        if not more.get("async_op"):  # gradients are added up while the backward pass goes on
            exchanges.append(name)
        return do(*given, **more)
    setattr(collectives, name, counted)

with processes.joined("cpu") as group:
    params = {"batch_size": 16, "precision": "fp32", "learning_rate": 0.01, \
**json.loads(sys.argv[1])}
    per_trial = {"steps": 12, "report_every": 6}
    setup = Setup(params, 3, budget_from(per_trial), Path(f"run{group.size}"))
    run = TrainingRun(Normed(), Settings.parse(params), setup)
    steps = []
    for item in run:
        if item is None:
            steps.append(list(exchanges))
        exchanges.clear()
    saved = torch.load(Path(f"run{group.size}") / "last" / "model.pt", weights_only=True)
    kept = {name: saved[name].tolist() for name in evaluated[-1]}
    found = group.gather({"evaluated": evaluated, "steps": steps})
    if group.first:
        print(json.dumps({"ranks": found, "saved": kept}), flush=True)
os._exit(0)  # as `python -m trials` does
"""


@pytest.mark.thorough
@pytest.mark.parametrize("more", [{}, {"ema": 0.9}])
def test_all_ranks_measure_and_save_the_same_statistics_of_batches(tmp_path, more):
    (tmp_path / "normed.py").write_text(NORMED)
    params = json.dumps({"learning_rate": 1e-3, **more})
    (shared,) = in_processes(tmp_path, 2, "normed.py", params)
    both = json.loads(shared)
    first, second = (rank["evaluated"] for rank in both["ranks"])
    assert first == second
    assert both["saved"] == first[-1]
    assert first[-1]["constant"][0] == pytest.approx(1 / 3)


@pytest.fixture(scope="module")
def ranks(tmp_path_factory):
    """What two processes told of a training that saves at its reports alone."""
    folder = tmp_path_factory.mktemp("ranks")
    (folder / "normed.py").write_text(NORMED)
    (line,) = in_processes(folder, 2, "normed.py", json.dumps({}))
    return json.loads(line)["ranks"]


@pytest.mark.thorough
def test_ranks_talk_once_a_step_beside_their_gradients(ranks):
    for rank in ranks:
        assert rank["steps"] == [["all_reduce"]] * 12


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
    said = StepCounts(1, 2, 3.0)
    assert alone.agree_on(said) == said
    asked = iter([False, True])
    alone.listen(lambda: next(asked))
    assert [alone.stopping, alone.stopping] == [False, True]


@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16, torch.float64])
def test_ranks_whose_parameters_differ_in_a_bit_refuse_to_go_on(kind):
    class Two(Group):
        """Rank 0, and a rank 1 with the checksums that are given."""

        def gather(self, value):
            self.own = value
            return [value, others or value]

    model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Linear(2, 1)).to(kind)
    others = None
    group = Two(0, 2)
    group.require_equal(model)
    others = group.own
    with torch.no_grad():
        last = model[1].bias
        last.copy_(torch.nextafter(last, torch.ones_like(last)))
    with pytest.raises(RuntimeError, match=r"parameter 1\.bias of rank 0 differs"):
        group.require_equal(model)
    last.requires_grad = False  # a frozen one is not compared
    others = others[:-1]
    group.require_equal(model)


def test_a_launcher_is_told_by_the_environment():
    environment = {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "localhost", "MASTER_PORT": "1"}
    assert launched(environment)
    assert not launched({**environment, "WORLD_SIZE": "1"})
    assert not launched({})


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU: tests/gpu tries it there")
def test_a_gpu_with_a_number_becomes_the_current_one_before_anything_is_put_on_it(lab, monkeypatch):
    chosen = []
    monkeypatch.setattr(torch.cuda, "set_device", lambda device: chosen.append(device))
    for name in ("cpu", "cuda", "cuda:1"):
        use(torch.device(name))
    assert chosen == [torch.device("cuda:1")]
    task = lab.task()
    setup = dataclasses.replace(lab.setup("run", {"steps": 1}), device="cuda:1")
    with pytest.raises((RuntimeError, AssertionError)):  # there is no such GPU
        task.start(setup, task.prepare({}))
    assert chosen == [torch.device("cuda:1")] * 2
