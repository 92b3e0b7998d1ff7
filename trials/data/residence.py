"""The place of a run's samples: its device if they fit, else the machine's memory.

Resident samples are gathered on the device, and only the numbers of their rows are sent at each
step. The others are gathered in the machine's memory, by the same code, and sent from pinned memory
without waiting for the steps before. On the CPU both are one place, and nothing is copied.
"""

from __future__ import annotations

import dataclasses
import logging
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from trials.data.batching import Ints
from trials.devices import memory

log = logging.getLogger(__name__)

SHARE = 0.1
"""The share of a device's free memory that samples may take: the optimizer needs the rest."""


@dataclass(frozen=True)
class Residence:
    """The place of samples, and the device that needs them."""

    device: torch.device
    resident: bool

    @staticmethod
    def of(data: Any, device: torch.device) -> Residence:
        """On the device, if the arrays in `data` fit."""
        if device.type == "cpu":
            return Residence(device, resident=True)
        size, free = size_bytes(data), free_bytes(device)
        resident = free is not None and size <= SHARE * free
        if not resident:
            mib = size >> 20
            log.info("%d MiB of samples are sent to the device batch by batch", mib)
        return Residence(device, resident)

    @property
    def _place(self) -> torch.device:
        return self.device if self.resident else torch.device("cpu")

    def hold(self, array: npt.NDArray[np.generic]) -> torch.Tensor:
        """An array in the place of the samples; on the CPU it is not copied."""
        with warnings.catch_warnings():
            # Prepared data may be mapped into memory read-only; torch warns, but nothing writes.
            warnings.filterwarnings("ignore", "The given NumPy array is not writable", UserWarning)
            tensor = torch.from_numpy(array)
            return tensor.to(self._place)

    def index(self, rows: Ints) -> torch.Tensor:
        """Row numbers in the place of the samples, int64."""
        numbers = np.ascontiguousarray(rows, dtype=np.int64)
        tensor = torch.from_numpy(numbers)
        return to_device(tensor, self._place)

    def sent(self, tensor: torch.Tensor) -> torch.Tensor:
        """A gathered tensor, on the device."""
        return tensor if self.resident else to_device(tensor, self.device)


def to_device(tensor: torch.Tensor, device: torch.device) -> torch.Tensor:
    """Send a tensor to a device, without waiting for the steps before."""
    if device.type != "cuda":
        return tensor.to(device)
    return tensor.pin_memory().to(device, non_blocking=True)


def free_bytes(device: torch.device) -> int | None:
    """The bytes that this process may still take of a GPU; None for other devices."""
    if device.type != "cuda":
        return None
    free, _ = torch.cuda.mem_get_info(device)
    held = torch.cuda.memory_reserved(device)
    most = memory.entitled_bytes(device)
    return memory.left_bytes(int(free), int(held), most)


def size_bytes(data: Any) -> int:
    """The bytes of all arrays in a dataclass, and in the dataclasses and tuples in it."""
    if isinstance(data, np.ndarray):
        return int(data.nbytes)
    parts: list[Any] = []
    if isinstance(data, tuple):
        parts += data
    elif dataclasses.is_dataclass(data):
        parts += [getattr(data, field.name) for field in dataclasses.fields(data)]
    return sum(size_bytes(part) for part in parts)
