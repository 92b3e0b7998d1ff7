"""Where the samples of a run lie: on its device where they fit, else in the machine's memory.

Samples that are resident are gathered on the device, and only the numbers of their rows travel at each step. The others
are gathered in the machine's memory, by the same code, and sent: from pinned memory, without waiting for the steps
before. On the CPU both are one place, and samples stay the arrays they are.
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

from trials.batching import Ints

log = logging.getLogger(__name__)

SHARE = 0.1
"""The share of a device's free memory that samples may take. The model is on the device already, but neither the
optimizer's state nor any activation; other workers may hold shares of the same GPU and ask the same question."""
MIB = 1 << 20


@dataclass(frozen=True)
class Residence:
    """Where samples lie, and the device that needs them.

    Args:
        device: Where batches are needed.
        resident: Whether samples lie on it.
    """

    device: torch.device
    resident: bool

    @staticmethod
    def of(data: Any, device: torch.device) -> Residence:
        """On the device, where the arrays in `data` (a dataclass, or several in a tuple) fit.

        Args:
            data: Prepared data.
            device: Where batches are needed; its free memory is asked for now.
        """
        size, free = size_bytes(data), free_bytes(device)
        resident = fits(size, free)
        if not resident and free is not None:
            what = (
                "%.0f MiB of samples are more than %.0f%% of the device's free %.0f MiB: they are sent batch by batch"
            )
            log.info(what, size / MIB, SHARE * 100, free / MIB)
        return Residence(device, resident or device.type == "cpu")

    @property
    def _place(self) -> torch.device:
        return self.device if self.resident else torch.device("cpu")

    def hold(self, array: npt.NDArray[np.generic]) -> torch.Tensor:
        """An array where samples lie; on the CPU the array itself, which is not written to."""
        with warnings.catch_warnings():
            # Prepared data may be mapped into memory, read-only: torch warns of what nobody does.
            warnings.filterwarnings("ignore", "The given NumPy array is not writable", UserWarning)
            return torch.from_numpy(array).to(self._place)

    def index(self, rows: Ints) -> torch.Tensor:
        """Row numbers where samples lie, int64."""
        return to_device(torch.from_numpy(np.ascontiguousarray(rows, dtype=np.int64)), self._place)

    def staged(self, tensor: torch.Tensor) -> torch.Tensor:
        """What was gathered, in memory that it can be sent from without waiting."""
        return tensor.pin_memory() if self.device.type == "cuda" and not self.resident else tensor

    def sent(self, tensor: torch.Tensor) -> torch.Tensor:
        """What was gathered and staged, on the device."""
        return tensor.to(self.device, non_blocking=True)


def to_device(tensor: torch.Tensor, device: torch.device) -> torch.Tensor:
    """A tensor of the machine's memory on a device, without waiting for the steps before."""
    return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor.to(device)


def fits(size: int, free: int | None) -> bool:
    """Whether samples of `size` bytes may lie on a device that has `free` bytes; not where that is not known."""
    return free is not None and size <= SHARE * free


def free_bytes(device: torch.device) -> int | None:
    """The free memory of a GPU, in bytes; None of devices that do not tell."""
    return int(torch.cuda.mem_get_info(device)[0]) if device.type == "cuda" else None


def size_bytes(data: Any) -> int:
    """The bytes of all arrays in a dataclass, also in the dataclasses and tuples in it."""
    if isinstance(data, np.ndarray):
        return int(data.nbytes)
    if isinstance(data, tuple):
        return sum(map(size_bytes, data))
    if dataclasses.is_dataclass(data):
        return sum(size_bytes(getattr(data, field.name)) for field in dataclasses.fields(data))
    return 0
