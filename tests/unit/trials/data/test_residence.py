"""Samples that lie on the device, and those that are sent to it: the same batches."""

from __future__ import annotations

import dataclasses
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from trials.checkpoints import weights
from trials.data.batching import Sequences
from trials.data.residence import Residence, size_bytes
from trials.data.samples import LABELS, Column, Padded, Samples
from trials.devices.processes import use

CPU = torch.device("cpu")
TOKENS = st.lists(st.lists(st.integers(0, 1000), min_size=1, max_size=30), min_size=1, max_size=40)


class Sent(Residence):
    """Samples that do not fit, with a note of everything that was sent, as to a GPU."""

    def __init__(self) -> None:
        super().__init__(CPU, resident=False)
        self.__dict__["tensors"] = []

    def sent(self, tensor: torch.Tensor) -> torch.Tensor:
        self.__dict__["tensors"].append(tensor)
        return tensor.clone()


def texts(residence: Residence, tokens: list[list[int]]) -> Samples:
    sequences = Sequences.of(tokens)
    labels = np.arange(len(tokens), dtype=np.int64)
    parts = [Padded(residence, "ids", sequences, 7, "mask"), Column(residence, LABELS, labels)]
    return Samples(residence, parts, [sequences.lengths])


@given(TOKENS, st.randoms(use_true_random=False))
def test_a_batch_is_the_same_wherever_its_samples_lie_and_as_numpy_pads_it(tokens, random):
    rows = np.array(random.choices(range(len(tokens)), k=random.randint(1, 9)))
    resident, sent = (
        texts(residence, tokens).batch(rows) for residence in (Residence(CPU, True), Sent())
    )
    padded, mask = Sequences.of(tokens).padded(rows, 7)
    for batch in (resident, sent):
        assert np.array_equal(batch.inputs["ids"].numpy(), padded)
        assert np.array_equal(batch.inputs["mask"].numpy(), mask)
        assert batch.inputs["ids"].dtype == batch.inputs["mask"].dtype == torch.int64
        assert batch.labels.tolist() == rows.tolist()
        assert (batch.tokens, batch.cells) == (mask.sum(), mask.size)


def test_every_tensor_of_a_batch_is_sent_once_and_finished_on_the_device():
    residence = Sent()
    columns = [
        Column(residence, "x", np.arange(6, dtype=np.float32)),
        Column(residence, LABELS, np.arange(6)),
    ]
    finished = []
    samples = Samples(
        residence,
        columns,
        [np.ones(6, dtype=np.int64)],
        lambda batch: finished.append(batch) or batch,
    )
    batch = samples.batch(np.array([4, 1]))
    assert [tensor.tolist() for tensor in residence.tensors] == [[4.0, 1.0], [4, 1]]
    assert finished == [batch]
    assert (batch.tokens, batch.cells) == (2, 2)


def test_a_column_may_have_another_type_in_a_batch_than_where_it_lies():
    column = Column(Residence(CPU, True), "x", np.arange(4, dtype=np.int32), torch.int64)
    assert column.gather(np.array([3]), torch.tensor([3]))["x"].dtype == torch.int64


def test_arrays_that_must_not_be_written_to_are_held_without_a_copy_or_a_warning():
    array = np.arange(5)
    array.flags.writeable = False
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        held = Residence(CPU, resident=True).hold(array)
    assert held.data_ptr() == array.ctypes.data


def test_data_that_fits_stays_on_its_device_and_other_data_does_not(monkeypatch):
    data = np.zeros(100, dtype=np.uint8)
    monkeypatch.setattr("trials.data.residence.free_bytes", lambda device: 1000)
    assert Residence.of(data, torch.device("cuda")).resident
    monkeypatch.setattr("trials.data.residence.free_bytes", lambda device: 999)
    assert not Residence.of(data, torch.device("cuda")).resident
    assert Residence.of(data, CPU).resident, "on the CPU there is nowhere else"


def test_the_size_of_data_is_that_of_its_arrays_however_deep():
    @dataclass(frozen=True)
    class Data:
        arrays: Any
        name: str = "text"

    nested = Data((Data(np.zeros(3, np.int64)), np.zeros((2, 2), np.uint8)))
    assert size_bytes(nested) == 28


def test_a_run_on_data_that_is_sent_is_the_run_on_resident_data(lab, without_timings, monkeypatch):
    task = lab.task()
    params = {"batch_size": 16, "micro_batch": 5, "dropout": 0.2}
    data = task.prepare(params)
    resident = [
        r for r in task.start(lab.setup("a", {"epochs": 2}, **params), data) if r is not None
    ]
    monkeypatch.setattr(Residence, "of", staticmethod(lambda data, device: Sent()))
    sent = [r for r in task.start(lab.setup("b", {"epochs": 2}, **params), data) if r is not None]
    assert without_timings(sent) == without_timings(resident)


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


def test_every_gpu_that_tensors_are_copied_from_is_waited_for_by_its_number(monkeypatch):
    waited = []
    monkeypatch.setattr(torch.cuda, "synchronize", lambda device=None: waited.append(device))
    devices = {torch.device("cpu"), torch.device("cuda:0"), torch.device("cuda:1")}
    weights.wait_for(devices)
    assert set(waited) == {torch.device("cuda:0"), torch.device("cuda:1")}
