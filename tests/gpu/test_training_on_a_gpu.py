"""The training loop on a GPU: every precision, a resume, and memory that does not suffice."""

import random
import sys

import pytest
import torch

from support.running.programs import run_program
from trials import tasks
from trials.contract import Setup
from trials.devices.memory import release_memory
from trials.running.report_grid import budget_from
from trials.running.runner import Runner, failure_of

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")


@pytest.fixture
def start(tmp_path):
    """Starts a run on sentences whose first word tells their class."""
    rng = random.Random(0)
    rows = [
        (rng.choice(["good", "bad"]), " ".join(rng.choices(["a", "the", "day"], k=6)))
        for _ in range(200)
    ]
    lines = ["text,label", *(f"{label} {rest},{label}" for label, rest in rows)]
    (tmp_path / "train.csv").write_text("\n".join(lines) + "\n")
    part = {"train": "train.csv", "validation": 0.25, "text": "text", "label": "label"}
    task = tasks.load({"kind": "text_classification", "model": "scratch", **part}, tmp_path)

    def start(name, resume_from=None, **params):
        params = {"learning_rate": 1e-3, "batch_size": 16, **params}
        budget = budget_from({"epochs": 6})
        setup = Setup(params, 1, budget, tmp_path / name, resume_from, device="cuda")
        return Runner(task, task.prepare(params), setup)

    return start


@pytest.mark.parametrize("precision", ["auto", "bf16", "fp16", "fp32"])
def test_every_precision_learns_and_measures_its_memory(start, precision):
    runner = start("run", precision=precision)
    *_, last = runner.advance(6)
    assert last.metrics["accuracy"] > 0.9
    assert last.metrics["peak_memory_bytes"] > 0
    runner.close()


@pytest.mark.parametrize("precision", ["bf16", "fp16", "fp32"])
def test_a_resumed_run_goes_on_as_the_undisturbed_one(start, precision):
    reports = list(start("a", precision=precision).advance(6))
    first = list(start("b", precision=precision).advance(3))
    resumed = list(start("b", first[-1].checkpoint, precision=precision).advance(6))
    assert [r.resource for r in resumed] == [4.0, 5.0, 6.0]
    # A GPU adds in no fixed order.
    assert resumed[0].metrics["train_loss"] == pytest.approx(
        reports[3].metrics["train_loss"], rel=0.05, abs=0.01
    )


def test_memory_that_does_not_suffice_is_told_as_that_and_released():
    with pytest.raises(RuntimeError) as caught:
        torch.empty(2**50, device="cuda")
    assert failure_of(caught.value).kind == "out_of_memory"
    release_memory()


def test_the_utilization_is_a_share(start):
    runner = start("run")
    *_, last = runner.advance(6)
    assert 0 <= last.metrics.get("gpu_utilization", 0.5) <= 1
    runner.close()


PART = """
import torch
from trials.devices import memory
memory.keep_to_share("cuda:0", 0.25)
device = torch.device("cuda:0")
most = memory.entitled_bytes(device)
torch.empty(int(most * 0.9), dtype=torch.uint8, device=device)
torch.cuda.empty_cache()
try:
    torch.empty(int(most * 1.1), dtype=torch.uint8, device=device)
except torch.OutOfMemoryError:
    print("kept")
"""


def test_a_process_cannot_take_more_than_its_share():
    release_memory()
    done = run_program([sys.executable, "-c", PART], check=True)
    assert done.stdout == "kept\n"
