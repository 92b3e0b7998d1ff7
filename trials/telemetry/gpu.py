"""What a GPU says about its work: utilisation and energy by NVML, and the share of its peak
arithmetic that was used.

All of this is optional: a run on the CPU reports none of it, and what a device or driver does not
provide is left out. NVML is read through `pynvml`, where that is installed.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from statistics import fmean
from typing import Any

import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

PEAK_FLOPS: tuple[tuple[str, float | None, float | None], ...] = (
    # Part of the name, dense fp16 or bf16 with fp32 sums, fp32; from NVIDIA's data sheets. The
    # first match counts.
    ("B200", 2250e12, None),
    ("H200", 989e12, 67e12),
    ("H100 PCIe", 756e12, 51e12),
    ("H100", 989e12, 67e12),
    ("A100", 312e12, 19.5e12),
    ("L40S", 362e12, 91.6e12),
    ("L4", 121e12, 30.3e12),
    ("A10G", 70e12, 35e12),
    ("A10", 125e12, 31.2e12),
    ("V100", 125e12, 15.7e12),
    ("T4", 65e12, 8.1e12),
    ("RTX 4090", 165e12, 82.6e12),
    ("RTX 3090", 71e12, 35.6e12),
)
"""Peak FLOP/s of common GPUs. fp32 is without TF32, as torch multiplies by default."""
ENERGY = "energy_joules"


def peak_flops(device_name: str, precision: str) -> float | None:
    """The peak FLOP/s of a GPU; None if it is not in the table."""
    words = set(device_name.upper().replace("-", " ").split())
    for name, half, full in PEAK_FLOPS:
        part = name.upper().split()
        if words.issuperset(part):
            return full if precision == "fp32" else half
    return None


def training_flops(model: nn.Module, loss: Callable[[], torch.Tensor]) -> int:
    """FLOPs of a forward and a backward pass, as torch counts them: those of products of matrices,
    convolutions and attention. Frozen weights cost no gradients of their own, and what
    `gradient_checkpointing` computes again is not counted."""
    with _nothing_computed_again(model), FlopCounterMode(display=False) as counter:
        loss().backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
    return int(counter.get_total_flops())


@contextmanager
def _nothing_computed_again(model: nn.Module) -> Iterator[None]:
    """Within it the modules keep their activations, as transformers calls it."""
    modules = []
    for module in model.modules():
        if getattr(module, "gradient_checkpointing", False) is True:
            modules.append(module)
    for module in modules:
        # A number to torch's types.
        module.gradient_checkpointing = False  # type: ignore[assignment]
    try:
        yield
    finally:
        for module in modules:
            module.gradient_checkpointing = True  # type: ignore[assignment]


def together(readings: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The metrics of the GPUs that train one trial: the sum of their energies, and the mean of
    their shares."""
    of_each = [set(reading) for reading in readings]
    names = set.intersection(*of_each)
    metrics = {}
    for name in sorted(names):
        values = [reading[name] for reading in readings]
        merge = math.fsum if name == ENERGY else fmean
        metrics[name] = merge(values)
    return metrics


class Gpu:
    """Watches the GPU that a run trains on.

    Args:
        device: Where the run trains; other devices than CUDA report nothing.
        precision: bf16, fp16 or fp32.
        nvml: The NVML interface, `pynvml`; looked for where None.
    """

    def __init__(self, device: torch.device, precision: str, nvml: Any = None) -> None:
        self._utilization: list[float] = []
        self._flops: float | None = None
        self._peak: float | None = None
        self._nvml: Any = None
        if device.type != "cuda":
            return
        properties = torch.cuda.get_device_properties(device)
        self._peak = peak_flops(properties.name, precision)
        self._nvml = nvml or _nvml()
        if self._nvml is not None:
            self._open(str(properties.uuid))

    def _open(self, uuid: str) -> None:
        try:
            self._nvml.nvmlInit()
            # By its UUID: NVML numbers all GPUs of the machine, torch those it may see.
            self._handle = self._nvml.nvmlDeviceGetHandleByUUID(f"GPU-{uuid}".encode())
        except self._nvml.NVMLError:
            self._nvml = None
            return
        self._energy = self._read_energy()

    @property
    def wants_flops(self) -> bool:
        """Whether its peak is known, and not yet what a token takes of it."""
        return self._peak is not None and self._flops is None

    def take_flops(self, flops_per_token: float) -> None:
        """Learn how many FLOPs it takes to train on one token."""
        self._flops = flops_per_token

    def sample(self) -> None:
        """Note the utilisation now."""
        if self._nvml is None:
            return
        try:
            rates = self._nvml.nvmlDeviceGetUtilizationRates(self._handle)
        except self._nvml.NVMLError:
            return  # a slice of a GPU has none
        self._utilization.append(rates.gpu / 100)

    def read(self, tokens_per_second: float) -> dict[str, float]:
        """The metrics since the last reading, as far as the device reports them.

        Args:
            tokens_per_second: Tokens that this GPU trained on, without padding.

        Returns: `gpu_utilization` (share of time with work), `mfu` (share of peak FLOP/s) and
            `energy_joules` (of the whole device, including other programs).
        """
        metrics = {}
        if self._peak is not None and self._flops is not None:
            metrics["mfu"] = self._flops * tokens_per_second / self._peak
        if self._nvml is None:
            return metrics
        self.sample()
        if self._utilization:
            metrics["gpu_utilization"] = fmean(self._utilization)
            self._utilization = []
        before, now = self._energy, self._read_energy()
        if now is not None and before is not None:
            metrics[ENERGY] = now - before
        self._energy = now
        return metrics

    def _read_energy(self) -> float | None:
        try:
            millijoules = self._nvml.nvmlDeviceGetTotalEnergyConsumption(self._handle)
        except self._nvml.NVMLError:
            return None
        return float(millijoules) / 1000


def _nvml() -> Any:
    try:
        return importlib.import_module("pynvml")
    except ImportError:
        return None
