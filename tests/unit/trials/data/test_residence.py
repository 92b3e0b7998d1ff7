"""Samples on the device, and those that are sent to it."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from trials.data.residence import Residence, size_bytes

CPU = torch.device("cpu")


class Sent(Residence):
    """Samples that do not fit, with a note of everything that was sent, as to a GPU."""

    def __init__(self) -> None:
        super().__init__(CPU, resident=False)
        self.__dict__["tensors"] = []

    def sent(self, tensor: torch.Tensor) -> torch.Tensor:
        self.__dict__["tensors"].append(tensor)
        return tensor.clone()


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
