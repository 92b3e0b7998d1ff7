"""Batches on a GPU: the same from data that lies there and from data that is sent, and nothing
waits for the device."""

import warnings

import numpy as np
import pytest
import torch

from trials import tasks
from trials.contract import Setup
from trials.data.batching import Sequences
from trials.data.residence import Residence, free_bytes
from trials.data.samples import LABELS, Column, Padded, Samples
from trials.running.report_grid import budget_from

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")


def texts(residence):
    """500 texts of different lengths, each its own class."""
    rng = np.random.default_rng(0)
    sequences = Sequences.of(
        [rng.integers(0, 99, rng.integers(1, 40)).tolist() for _ in range(500)]
    )
    parts = [
        Padded(residence, "ids", sequences, 7, "mask"),
        Column(residence, LABELS, np.arange(500)),
    ]
    return Samples(residence, parts, parts[:1])


@pytest.fixture
def cuda():
    return torch.device("cuda", torch.cuda.current_device())


@pytest.mark.parametrize("resident", [True, False])
def test_a_batch_is_that_of_the_cpu_and_no_step_of_it_waits_for_the_device(cuda, resident):
    samples, expected = (
        texts(Residence(cuda, resident)),
        texts(Residence(torch.device("cpu"), True)),
    )
    rows = np.random.default_rng(1).permutation(500)[:32]
    samples.batch(rows)  # the first one loads kernels
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch says that the mode is a prototype
        torch.cuda.set_sync_debug_mode("error")
        try:
            batch = samples.batch(rows)
        finally:
            torch.cuda.set_sync_debug_mode("default")
    wanted = expected.batch(rows)
    assert batch.labels.is_cuda
    assert torch.equal(batch.labels.cpu(), wanted.labels)
    assert all(
        torch.equal(batch.inputs[name].cpu(), wanted.inputs[name]) for name in ("ids", "mask")
    )
    assert (batch.tokens, batch.cells) == (wanted.tokens, wanted.cells)


def test_data_that_fits_lies_on_the_gpu(cuda):
    assert Residence.of(np.zeros(1000), cuda).resident
    assert free_bytes(cuda) > 0


def test_a_run_is_fed_the_same_from_memory_and_from_the_gpu(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (120, 8, 8), dtype=np.uint8)
    np.savez(tmp_path / "train.npz", images=images, labels=np.arange(120) % 3)
    task = tasks.load(
        {"kind": "image_classification", "train": "train.npz", "validation": 0.2}, tmp_path
    )
    data = task.prepare({})
    params = {"flip": True, "shift": 2, "batch_size": 16, "precision": "fp32"}

    def batches(name):
        setup = Setup(params, 3, budget_from({"epochs": 1}), tmp_path / name, device="cuda")
        run, seen = task.start(setup, data), []
        batch = run._workload.samples.batch
        run._workload.samples.batch = lambda rows: seen.append(batch(rows)) or seen[-1]
        assert [report for report in run if report is not None]
        assert run.close()
        return [batch.inputs["images"].cpu() for batch in seen]

    resident = batches("resident")
    monkeypatch.setattr(
        Residence, "of", staticmethod(lambda data, device: Residence(device, resident=False))
    )
    sent = batches("sent")
    assert len(resident) == len(sent) > 5
    assert all(torch.equal(one, other) for one, other in zip(resident, sent, strict=True))
