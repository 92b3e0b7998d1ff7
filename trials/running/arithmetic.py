"""The arithmetic of a training: what its sums depend on, besides settings, seed and data.

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

from trials.contract import TaskError
from trials.settings import nearest

LIBRARIES = ("torch", "transformers", "numpy")
"""The libraries whose version decides how something is computed."""

PRECISION = "precision"
"""The setting whose value `auto` stands for what the device does best."""

_PRECISIONS = ("bf16", "fp16", "fp32")
_FORMER = ("deterministic", "float32_matmul")
"""Keys that records of earlier versions have."""


@dataclass(frozen=True)
class Arithmetic:
    """How a process computes.

    Args:
        threads: Threads that share one operation on the CPU.
        precision: What `precision: auto` stood for: bf16, fp16 or fp32; None if the task has no
            such setting.
        device: The processor with its vector instructions, or the GPU; None if nobody recorded
            it.
        versions: Of the libraries that compute.
    """

    threads: int
    precision: str | None = None
    device: str | None = None
    versions: Mapping[str, str] = field(default_factory=dict)

    def as_plain(self) -> dict[str, Any]:
        """As plain values, for events, files and databases."""
        return asdict(self)

    @classmethod
    def from_plain(cls, plain: Any) -> Arithmetic:
        """The reverse of `as_plain`, for values from a file that a person may have edited.

        Raises:
            TaskError: They are something else.
        """
        if not isinstance(plain, Mapping):
            what = "must be a mapping, as `hpsearch best --format yaml` writes it"
            raise TaskError.at("arithmetic", what)
        values = {key: value for key, value in plain.items() if key not in _FORMER}
        known = [each.name for each in fields(cls)]
        for key in values:
            if key not in known:
                what = f"is not a part of it; {nearest(key, known)}"
                raise TaskError.at(f"arithmetic.{key}", what)
        threads, precision = values.get("threads"), values.get("precision")
        if type(threads) is not int or threads < 1:
            what = f"must be a whole number of at least 1, not {threads!r}"
            raise TaskError.at("arithmetic.threads", what)
        if precision is not None and precision not in _PRECISIONS:
            what = f"must be one of {', '.join(_PRECISIONS)}, not {precision!r}"
            raise TaskError.at("arithmetic.precision", what)
        return cls(**values)


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
    return settings, _here(wanted_threads, precision, device)


def differences(before: Arithmetic, now: Arithmetic) -> list[str]:
    """A phrase for each part that is not the same as before, as far as that is known."""
    phrases = []
    for name in ("threads", "precision", "device"):
        was = getattr(before, name)
        is_now = getattr(now, name)
        if was is not None and was != is_now:
            phrases.append(f"{name} {is_now} instead of {was}")
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
    if path.is_file():
        for line in path.read_text(errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


@lru_cache(maxsize=1)
def _versions() -> dict[str, str]:
    found = {}
    for name in LIBRARIES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found
