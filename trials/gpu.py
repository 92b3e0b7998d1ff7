"""What a GPU says of its work: utilisation and energy by NVML, and the share of its peak arithmetic that was used.

All of it is extra: a run on the CPU reports none, and what a device or driver does not tell is left out. NVML is read
through `pynvml`, where that is installed.
"""

from __future__ import annotations

import importlib
from statistics import fmean
from typing import Any

import torch
from torch import nn

PEAK_FLOPS: tuple[tuple[str, float | None, float | None], ...] = (
    # Part of the name, dense fp16 or bf16 with fp32 sums, fp32; from NVIDIA's data sheets. The first match counts.
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


def peak_flops(device_name: str, precision: str) -> float | None:
    """The peak FLOP/s of a GPU; None where it is not in the table.

    Args:
        device_name: As torch names it, such as ``NVIDIA A100-SXM4-80GB``.
        precision: bf16, fp16 or fp32.
    """
    words = device_name.upper().replace("-", " ")
    for name, half, full in PEAK_FLOPS:
        if set(name.upper().split()) <= set(words.split()):
            return full if precision == "fp32" else half
    return None


def flops_per_token(model: nn.Module) -> float:
    """FLOPs that training on one token takes: 6 a trained weight, 2 a frozen one (forward only), embeddings none.

    The count of Kaplan et al. 2020 (Scaling Laws, section 2.1); attention's share, which grows with the length, is
    left out.
    """
    embeddings = {id(p) for module in model.modules() if isinstance(module, nn.Embedding) for p in module.parameters()}
    weights = [p for p in model.parameters() if id(p) not in embeddings]
    return float(sum((6 if p.requires_grad else 2) * p.numel() for p in weights))


class Gpu:
    """Watches the GPU that a run trains on.

    Args:
        device: Where the run trains; anything but CUDA has nothing to tell.
        model: What it trains.
        precision: bf16, fp16 or fp32.
        nvml: The NVML interface, `pynvml`; looked for where None.
    """

    def __init__(self, device: torch.device, model: nn.Module, precision: str, nvml: Any = None) -> None:
        self._utilization: list[float] = []
        self._flops = flops_per_token(model)
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

    def sample(self) -> None:
        """Note the utilisation now."""
        if self._nvml is None:
            return
        try:
            self._utilization.append(self._nvml.nvmlDeviceGetUtilizationRates(self._handle).gpu / 100)
        except self._nvml.NVMLError:
            return  # a slice of a GPU has none

    def read(self, tokens_per_second: float) -> dict[str, float]:
        """The metrics since the last reading, as far as the device tells them.

        Args:
            tokens_per_second: Tokens trained on, without padding.

        Returns: `gpu_utilization` (share of time with work), `mfu` (share of peak FLOP/s) and `energy_joules`
            (of the whole device, whoever else works on it).
        """
        metrics = {}
        if self._peak is not None:
            metrics["mfu"] = self._flops * tokens_per_second / self._peak
        if self._nvml is None:
            return metrics
        self.sample()
        if self._utilization:
            metrics["gpu_utilization"] = fmean(self._utilization)
            self._utilization = []
        energy = self._read_energy()
        if energy is not None and self._energy is not None:
            metrics["energy_joules"] = energy - self._energy
        self._energy = energy
        return metrics

    def _read_energy(self) -> float | None:
        """Joules since the driver was loaded; None where the device does not count them."""
        try:
            return float(self._nvml.nvmlDeviceGetTotalEnergyConsumption(self._handle)) / 1000
        except self._nvml.NVMLError:
            return None


def _nvml() -> Any:
    try:
        return importlib.import_module("pynvml")
    except ImportError:
        return None
