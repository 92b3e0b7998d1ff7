"""Mixed precision: a device's best arithmetic, with its context and scaler."""

from contextlib import AbstractContextManager, nullcontext

import torch

AMPERE = (8, 0)  # the first CUDA compute capability with bfloat16 in hardware

_DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}


class Precision:
    """The arithmetic of a run's forward passes. Weights that train, and optimizer state, stay in
    fp32; autocast runs matrix products in the chosen type. Only fp16 scales the loss, so that small
    gradients do not vanish. `name`: bf16, fp16, fp32, or auto for the device's best."""

    def __init__(self, name: str, device: torch.device) -> None:
        self.name = best_for(device) if name == "auto" else name
        self.device = device
        self.scaler = torch.amp.GradScaler(device.type, enabled=self.name == "fp16")

    @property
    def dtype(self) -> torch.dtype:
        return _DTYPES.get(self.name, torch.float32)

    @property
    def scales(self) -> bool:
        """True if the loss is scaled: a step with an infinite gradient is then skipped."""
        return self.scaler.is_enabled()

    def autocast(self) -> AbstractContextManager[object]:
        if self.name == "fp32":
            return nullcontext()
        return torch.autocast(self.device.type, dtype=_DTYPES[self.name])


def best_for(device: torch.device) -> str:
    """bf16 on GPUs and processors that have it natively, fp16 on older GPUs, else fp32."""
    if device.type == "cuda":
        return "bf16" if torch.cuda.get_device_capability(device) >= AMPERE else "fp16"
    return "bf16" if device.type == "cpu" and cpu_has_bf16() else "fp32"


def cpu_has_bf16() -> bool:
    """True if this processor multiplies bfloat16 natively (AMX, AVX-512 BF16)."""
    return torch.cpu._is_amx_tile_supported() or torch.cpu._is_avx512_bf16_supported()
