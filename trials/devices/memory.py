"""A device's memory: its use, the share of this process, and errors that say that it has run out.

A worker whose trial does not need torch does not import it for this.
"""

from __future__ import annotations

import errno
import gc
import re
import resource
import sys
from typing import TYPE_CHECKING

from trials.foreign import MOST_OF_A_TRACEBACK, text_of

if TYPE_CHECKING:
    import torch

CONTEXT_BYTES = 512 << 20
"""Bytes that a process takes of a GPU before its first tensor, which torch does not count."""
LEAK_BYTES = 128 << 20
"""GPU memory that may be left after an attempt: cuBLAS keeps some tens of MiB."""
_OUT_OF_MEMORY = re.compile(
    r"out of memory|outofmemory|error_out_of_memory|memoryallocation"  # torch, CUDA, HIP, drivers
    r"|_alloc_failed"  # cuBLAS, cuDNN, cuSOLVER, cuSPARSE, hipBLAS, MIOpen: their workspaces
    r"|internal_error.*\balloc"  # cuDNN, where it names the cause
    r"|can't allocate memory|cannot allocate memory|not enough memory",  # torch on the CPU
    re.IGNORECASE | re.DOTALL,
)

_keeps_more = False  # whether this process has begun to keep memory for its next trials
_shares: dict[str, float] = {}
"""The share of a GPU that this process keeps to, by the device's name; 1 if it is missing."""


def is_out_of_memory(error: BaseException) -> bool:
    if isinstance(error, MemoryError):
        return True
    # By its name, so that a trial without torch does not import it only to fail.
    name = type(error).__name__
    if name == "OutOfMemoryError":
        return True
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM
    if isinstance(error, RuntimeError):
        return _OUT_OF_MEMORY.search(text_of(error, MOST_OF_A_TRACEBACK)) is not None
    return False


def release_memory() -> None:
    """Give back unused memory: of reference cycles, and of a GPU what torch keeps for later."""
    gc.collect()
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        torch.cuda.empty_cache()


def allocated_bytes(device: str) -> int | None:
    """The bytes of a GPU that tensors of this process hold now; None on other devices."""
    torch = sys.modules.get("torch")
    if torch is None or not device.startswith("cuda"):
        return None
    return int(torch.cuda.memory_allocated(device))


def keep_more() -> None:
    """Note that this process keeps memory from now on, for its next trials."""
    global _keeps_more
    _keeps_more = True


def keeps_more() -> bool:
    """True once after this process has begun to keep memory: it has not leaked."""
    global _keeps_more
    found, _keeps_more = _keeps_more, False
    return found


def start_peak(device: torch.device) -> None:
    import torch

    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)


def peak_bytes(device: torch.device) -> int:
    """The most bytes in use: by tensors on a GPU since `start_peak`, or by this process."""
    import torch

    if device.type == "cuda":
        return int(torch.cuda.max_memory_allocated(device))
    unit = 1 if sys.platform == "darwin" else 1024
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_maxrss * unit


def keep_to_share(device: str, share: float) -> None:
    """Keep this process to its share (above 0) of a GPU's memory, once torch is imported."""
    torch = sys.modules.get("torch")
    share = min(share, 1.0)
    if torch is None or not device.startswith("cuda") or _shares.get(device, 1.0) == share:
        return
    if not torch.cuda.is_available():
        return  # Ray calls it a GPU, and torch cannot use it
    total = _total_bytes(torch.device(device))
    fraction = entitled(total, share) / total if share < 1 else 1.0
    torch.cuda.set_per_process_memory_fraction(fraction, device)
    _shares[device] = share


def entitled(total: int, share: float) -> int:
    """The bytes that tensors of a process may take, by its share of a GPU with `total` bytes."""
    own = int(total * min(share, 1.0))
    return max(own - CONTEXT_BYTES, own // 2)


def entitled_bytes(device: torch.device) -> int:
    """The bytes that tensors of this process may take of a GPU."""
    share = _shares.get(str(device), 1.0)
    return entitled(_total_bytes(device), share)


def left_bytes(free: int, held: int, most: int) -> int:
    """The bytes that a process may still take of a GPU. `free`: bytes that no process holds.
    `held`: bytes that this process holds."""
    return max(min(free, most - held), 0)


def _total_bytes(device: torch.device) -> int:
    import torch

    properties = torch.cuda.get_device_properties(device)
    return int(properties.total_memory)
