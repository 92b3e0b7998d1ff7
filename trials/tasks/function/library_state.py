"""The parts of the state of numpy and torch: how each is read, and put back."""

import sys
from collections.abc import Callable, Mapping
from typing import Any

from trials.tasks.function.python_state import StatePart, attribute, pair


def _of_numpy(numpy: Any) -> list[StatePart]:
    return [
        StatePart("numpy.seterr", numpy.geterr, lambda before: numpy.seterr(**before)),
        StatePart(
            "numpy's print options",
            numpy.get_printoptions,
            lambda before: numpy.set_printoptions(**before),
        ),
    ]


def _of_torch(torch: Any) -> list[StatePart]:
    backends, cuda = torch.backends, torch.backends.cuda
    parts = [
        pair(torch, "get_default_dtype", "set_default_dtype"),
        StatePart(
            "torch's default device", lambda: _default_device(torch), torch.set_default_device
        ),
        StatePart(
            "torch's determinism",
            lambda: (
                torch.are_deterministic_algorithms_enabled(),
                torch.is_deterministic_algorithms_warn_only_enabled(),
            ),
            lambda before: torch.use_deterministic_algorithms(before[0], warn_only=before[1]),
        ),
        attribute(torch.utils.deterministic, "fill_uninitialized_memory"),
        pair(torch, "get_num_threads", "set_num_threads", "torch's threads"),
        pair(torch, "is_grad_enabled", "set_grad_enabled", "torch's grad mode"),
        pair(torch, "get_float32_matmul_precision", "set_float32_matmul_precision"),
        pair(torch, "is_warn_always_enabled", "set_warn_always"),
        StatePart(
            "torch's anomaly mode",
            lambda: (torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled()),
            lambda before: torch.set_anomaly_enabled(*before),
        ),
        StatePart(
            "torch's print options",
            lambda: dict(vars(torch._tensor_str.PRINT_OPTS)),
            lambda before: vars(torch._tensor_str.PRINT_OPTS).update(before),
        ),
        attribute(backends.mkldnn, "enabled", "mkldnn.enabled"),
    ]
    for name in ("enabled", "benchmark", "benchmark_limit", "deterministic", "allow_tf32"):
        parts.append(attribute(backends.cudnn, name, f"cudnn.{name}"))
    for name in ("tf32", "fp16_reduced_precision_reduction", "bf16_reduced_precision_reduction"):
        parts.append(attribute(cuda.matmul, f"allow_{name}", f"matmul.allow_{name}"))
    for name in ("flash", "mem_efficient", "math", "cudnn"):
        parts.append(pair(cuda, f"{name}_sdp_enabled", f"enable_{name}_sdp"))
    for device in ("cpu", "cuda"):
        parts += _autocast(torch, device)
    sharing = sys.modules.get("torch.multiprocessing")
    if sharing is not None:
        parts.append(pair(sharing, "get_sharing_strategy", "set_sharing_strategy"))
    return parts


def _default_device(torch: Any) -> Any:
    context = getattr(torch._GLOBAL_DEVICE_CONTEXT, "device_context", None)
    return None if context is None else context.device


def _autocast(torch: Any, device: str) -> list[StatePart]:
    return [
        StatePart(
            f"autocast on {device}",
            lambda: torch.is_autocast_enabled(device),
            lambda is_on: torch.set_autocast_enabled(device, is_on),
        ),
        StatePart(
            f"the dtype of autocast on {device}",
            lambda: torch.get_autocast_dtype(device),
            lambda dtype: torch.set_autocast_dtype(device, dtype),
        ),
    ]


OF_LIBRARIES: Mapping[str, Callable[[Any], list[StatePart]]] = {
    "numpy": _of_numpy,
    "torch": _of_torch,
}
"""The parts of a library, by its name."""
