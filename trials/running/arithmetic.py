"""What the sums of a training depend on, besides its settings, its seed and its data.

The same training on another number of threads, in another precision or with other libraries adds
the same numbers in another order, and after some epochs its metrics differ. What a training
computes with is therefore recorded with it. A training that repeats it, or continues it elsewhere,
computes in the same way as far as the machine can. What cannot be the same (the processor or GPU,
the libraries) is reported.
"""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field, fields
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import Any

from trials.contract import Problem, TaskError
from trials.settings import nearest

LIBRARIES = ("torch", "transformers", "numpy")
"""The libraries whose version decides how something is computed."""

PRECISION = "precision"
"""The setting whose value `auto` stands for what the device does best."""

_TYPES: dict[str, type] = {
    "threads": int,
    "precision": str,
    "deterministic": bool,
    "float32_matmul": str,
    "device": str,
    "versions": dict,
}


_CHOICES = {
    "precision": ("bf16", "fp16", "fp32"),
    "float32_matmul": ("highest", "high", "medium"),
}


@dataclass(frozen=True)
class Arithmetic:
    """How a process computes.

    Args:
        threads: Threads that share one operation on the CPU.
        precision: What `precision: auto` stood for: bf16, fp16 or fp32; None if the task has no
            such setting.
        deterministic: Whether torch was restricted to deterministic algorithms.
        float32_matmul: torch's precision of float32 matrix products: highest, high (TensorFloat32)
            or medium.
        device: The processor with its vector instructions, or the GPU; None if nobody recorded
            it.
        versions: Of the libraries that compute.
    """

    threads: int
    precision: str | None = None
    deterministic: bool = False
    float32_matmul: str = "highest"
    device: str | None = None
    versions: Mapping[str, str] = field(default_factory=dict)

    def as_plain(self) -> dict[str, Any]:
        """As plain values, for events, files and databases."""
        return asdict(self)

    @classmethod
    def from_plain(cls, plain: Any) -> Arithmetic:
        """What `as_plain` gave, perhaps from a file that a person has edited.

        Raises:
            TaskError: It is something else.
        """
        if not isinstance(plain, Mapping):
            what = "must be a mapping, as `hpsearch best --format yaml` writes it"
            raise TaskError.at("arithmetic", what)
        problems = []
        for key, value in plain.items():
            problem = _problem_with(key, value)
            if problem is not None:
                problems.append(problem)
        if "threads" not in plain:
            problems.append(Problem("arithmetic.threads", "is missing; give the number of threads"))
        if problems:
            raise TaskError(problems)
        return cls(**plain)


def _problem_with(key: Any, value: Any) -> Problem | None:
    where = f"arithmetic.{key}"
    if key not in _TYPES:
        return Problem(where, f"is not a part of it; {nearest(key, _TYPES)}")
    if key in ("precision", "device") and value is None:
        return None
    wanted = _TYPES[key]
    is_bool_for_int = wanted is int and isinstance(value, bool)
    if not isinstance(value, wanted) or is_bool_for_int:
        return Problem(where, f"must be of type {wanted.__name__}, not {value!r}")
    if key == "threads" and isinstance(value, int) and value < 1:
        return Problem(where, f"must be at least 1, not {value}")
    choices = _CHOICES.get(key)
    if choices is not None and value not in choices:
        listed = ", ".join(choices)
        return Problem(where, f"must be one of {listed}, not {value!r}")
    return None


def adopt(
    recorded: Arithmetic | None,
    settings: Mapping[str, Any],
    device: str,
    *,
    threads: int | None,
    known: Collection[str] | None,
) -> tuple[dict[str, Any], Arithmetic]:
    """Let this process compute as recorded, as far as it can.

    Args:
        recorded: How the training has computed so far; None for one that begins.
        settings: Of the training.
        device: A torch device name.
        threads: For a training that begins; None for as many as torch takes by itself.
        known: The settings that the task understands; None if it takes any. One without a
            precision has none.

    Returns:
        The settings with the precision that is computed in, and how this process computes now.
    """
    precise = known is not None and PRECISION in known
    if precise:
        # Before the threads are set: torch would take fewer from its environment than it is given.
        import torch  # noqa: F401
    wanted_threads = recorded.threads if recorded is not None else threads
    if wanted_threads is not None:
        _use_threads(wanted_threads)
    settings = dict(settings)
    precision = None
    if precise:
        precision = _precision(recorded, settings.get(PRECISION, "auto"), device)
        settings[PRECISION] = precision
    if "torch" in sys.modules:
        _set_flags(recorded)
    return settings, _here(wanted_threads, precision, device)


def differences(before: Arithmetic, now: Arithmetic) -> list[str]:
    """What is not the same as before, as far as that is known, each in a phrase."""
    phrases = []
    for each in fields(Arithmetic):
        if each.name == "versions":
            continue
        was = getattr(before, each.name)
        is_now = getattr(now, each.name)
        if was is not None and was != is_now:
            what = each.name.replace("_", " ")
            phrases.append(f"{what} {is_now} instead of {was}")
    for name, version in sorted(before.versions.items()):
        installed = now.versions.get(name, "not installed")
        if version != installed:
            phrases.append(f"{name} {installed} instead of {version}")
    return phrases


def _precision(recorded: Arithmetic | None, setting: str, device: str) -> str:
    """What to compute in: as set, or else as recorded, or else what the device does best."""
    import torch

    from trials.optim.precision import best_for

    if setting != "auto":
        return setting
    where = torch.device(device)
    if recorded is None or recorded.precision is None:
        return best_for(where)
    loss_scaling_is_missing = recorded.precision == "fp16" and where.type != "cuda"
    if loss_scaling_is_missing:
        return best_for(where)
    return recorded.precision


def _set_flags(recorded: Arithmetic | None) -> None:
    """Set torch's flags as recorded, or back to those that this process had of its own."""
    import torch

    deterministic, float32_matmul = _own_flags()
    if recorded is not None:
        deterministic, float32_matmul = recorded.deterministic, recorded.float32_matmul
    torch.use_deterministic_algorithms(deterministic)
    torch.set_float32_matmul_precision(float32_matmul)


@lru_cache(maxsize=1)
def _own_flags() -> tuple[bool, str]:
    """torch's deterministic and float32 flags as this process had them before it adopted any."""
    import torch

    return torch.are_deterministic_algorithms_enabled(), torch.get_float32_matmul_precision()


def _use_threads(count: int) -> None:
    """For torch as it is, or as the user's own training code will import it."""
    environment, text = os.environ, str(count)
    environment["OMP_NUM_THREADS"] = text
    environment["MKL_NUM_THREADS"] = text
    environment["MKL_DYNAMIC"] = "FALSE"  # which would take no more threads than there are cores
    torch = sys.modules.get("torch")
    if torch is not None and torch.get_num_threads() != count:
        torch.set_num_threads(count)


def _here(threads: int | None, precision: str | None, device: str) -> Arithmetic:
    torch = sys.modules.get("torch")
    if torch is None:
        count = threads or os.cpu_count() or 1
        return Arithmetic(count, precision, device=_processor(), versions=_versions())
    on_cpu = torch.device(device).type == "cpu"
    return Arithmetic(
        threads=torch.get_num_threads(),
        precision=precision,
        deterministic=torch.are_deterministic_algorithms_enabled(),
        float32_matmul=torch.get_float32_matmul_precision(),
        device=_processor() if on_cpu else _gpu(device),
        versions=_versions(),
    )


def _gpu(device: str) -> str:
    import torch

    if not torch.cuda.is_available():
        return device
    return torch.cuda.get_device_name(device)


def _processor() -> str:
    torch = sys.modules.get("torch")
    if torch is None:
        return _processor_model()
    return f"{_processor_model()} ({torch.backends.cpu.get_cpu_capability()})"


@lru_cache(maxsize=1)
def _processor_model() -> str:
    path = Path("/proc/cpuinfo")
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        text = ""
    model = ""
    for line in text.split("\n"):
        if line.startswith("model name"):
            _, _, model = line.partition(":")
            break
    return model.strip() or platform.processor() or platform.machine()


@lru_cache(maxsize=1)
def _versions() -> dict[str, str]:
    found = {}
    for name in LIBRARIES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found
