"""The GPU that this process is given: its name, and why torch cannot use it.

Nothing here needs torch: a program of the user's may bring a library of its own.
"""

import os
import re
import sys
from pathlib import Path

from trials.devices.memory import is_out_of_memory
from trials.foreign import line_of

VISIBLE = "CUDA_VISIBLE_DEVICES"
ON_CPUS = "or set resources.gpu: 0 in the study file, to train on CPUs"
_MODELS = Path("/proc/driver/nvidia/gpus")
_OF_A_GPU = re.compile(r"cuda|nvidia|\bgpu", re.IGNORECASE)


def can_be_used() -> bool:
    try:
        import torch
    except ImportError:
        return False
    return torch.cuda.is_available()


def default_device() -> str:
    return "cuda" if can_be_used() else "cpu"


def fault(device: str) -> str | None:
    """The reason why torch cannot compute on a GPU, and the remedy; None if it can."""
    try:
        import torch
    except ImportError as error:
        return f"torch cannot be imported ({line_of(error)}): install it, built for CUDA"
    version = f"torch {torch.__version__}"
    if not torch.backends.cuda.is_built():  # type: ignore[no-untyped-call]
        return f"{version} is built without CUDA: install one that is built for it (pytorch.org)"
    try:
        torch.ones(1, device=device).add(1)
    except Exception as error:  # noqa: BLE001 - each driver has errors of its own
        if is_out_of_memory(error):
            return None
        visible = os.environ.get(VISIBLE, "not set")
        return f"{version} cannot use {device} ({VISIBLE}: {visible}): {line_of(error)}"
    return None


def fault_behind(failure: str) -> str | None:
    """The reason why torch finds no GPU, if that is the cause of a failure with such a text."""
    if "torch" not in sys.modules or not _OF_A_GPU.search(failure) or can_be_used():
        return None
    return fault("cuda:0")


def installed() -> list[str]:
    """The models of this machine's GPUs of NVIDIA, by its driver; without those that are hidden."""
    visible = os.environ.get(VISIBLE)
    most = None
    if visible is not None:
        most = 0 if visible in ("", "-1") else len(visible.split(","))
    texts = [file.read_text() for file in sorted(_MODELS.glob("*/information"))]
    found = [re.search(r"^Model:\s*(.+)$", text, re.MULTILINE) for text in texts[:most]]
    return [each[1].strip() if each else "GPU" for each in found]


def count() -> int:
    if not can_be_used():
        return len(installed())
    import torch

    return torch.cuda.device_count()


def name() -> str:
    """The name of this process's GPU, of torch if it can use it."""
    if can_be_used():
        import torch

        return torch.cuda.get_device_name(0)
    return next(iter(installed()), "GPU")
