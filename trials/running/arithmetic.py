"""The arithmetic of a training: threads, precision, device and libraries.

The same training on another number of threads, in another precision or with other libraries adds
the same numbers in another order, and after some epochs its metrics differ. Its arithmetic is
therefore recorded with it. A training that repeats it, or continues it elsewhere, computes in the
same way as far as the machine can, and reports the differences.
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

LIBRARIES = ("torch", "transformers", "lightgbm", "numpy")  # the libraries that compute
PRECISION = "precision"  # the setting with a value `auto`, for the device's best precision
_PRECISIONS = ("bf16", "fp16", "fp32")


@dataclass(frozen=True)
class Arithmetic:
    """The arithmetic of a process."""

    threads: int  # threads that share one operation on the CPU
    precision: str | None = None  # bf16, fp16 or fp32; None if the task has no such setting
    device: str | None = None
    """The processor with its vector instructions, or the GPU; None if it is unknown."""
    versions: Mapping[str, str] = field(default_factory=dict)

    def as_plain(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_plain(cls, plain: Any) -> Arithmetic:
        """The reverse of `as_plain`, for values from a file that a person may have edited. Raises
        TaskError if a value does not fit."""
        if not isinstance(plain, Mapping):
            what = "must be a mapping, as `hpsearch best --format yaml` writes it"
            raise TaskError.at("arithmetic", what)
        known = [each.name for each in fields(cls)]
        for key in plain:
            if key not in known:
                what = f"is not a part of it; {nearest(key, known)}"
                raise TaskError.at(f"arithmetic.{key}", what)
        threads, precision = plain.get("threads"), plain.get("precision")
        if type(threads) is not int or threads < 1:
            what = f"must be a whole number of at least 1, not {threads!r}"
            raise TaskError.at("arithmetic.threads", what)
        if precision is not None and precision not in _PRECISIONS:
            what = f"must be one of {', '.join(_PRECISIONS)}, not {precision!r}"
            raise TaskError.at("arithmetic.precision", what)
        return cls(**plain)


def adopt(
    recorded: Arithmetic | None,
    settings: Mapping[str, Any],
    device: str,
    *,
    threads: int | None,
    known: Collection[str] | None,
) -> tuple[dict[str, Any], Arithmetic]:
    """Let this process compute as recorded, as far as it can. Returns the settings with the
    precision that is used, and the arithmetic of this process.

    Args:
        recorded: The arithmetic of the training so far; None for a new one.
        threads: For a new training; None for torch's own choice.
        known: The settings of the task; None if it takes any.
    """
    precise = known is not None and PRECISION in known
    if precise:
        # Before the threads are set: torch would take fewer from its environment than it is given.
        import torch  # noqa: F401
    wanted_threads = recorded.threads if recorded is not None else threads
    if wanted_threads is not None:
        count = str(wanted_threads)
        os.environ["OMP_NUM_THREADS"] = os.environ["MKL_NUM_THREADS"] = count
        os.environ["MKL_DYNAMIC"] = "FALSE"  # otherwise MKL uses at most one thread a core
        use_threads(os.environ)
    settings = dict(settings)
    precision = None
    if precise:
        precision = _precision(recorded, settings.get(PRECISION, "auto"), device)
        settings[PRECISION] = precision
    return settings, _here(wanted_threads, precision, device)


def differences(before: Arithmetic, now: Arithmetic) -> list[str]:
    """A phrase for each known part that is not the same as before."""
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
    import torch

    from trials.devices.precision import best_for

    if setting != "auto":
        return setting
    where = torch.device(device)
    precision = None if recorded is None else recorded.precision
    lacks_loss_scaling = precision == "fp16" and where.type != "cuda"
    if precision is None or lacks_loss_scaling:
        return best_for(where)
    return precision


def use_threads(environment: Mapping[str, str]) -> None:
    """Let torch use the threads that the environment states, if torch is imported: by itself, it
    reads that only then."""
    torch, stated = sys.modules.get("torch"), environment.get("OMP_NUM_THREADS", "")
    if torch is not None and stated.isdigit() and torch.get_num_threads() != int(stated):
        torch.set_num_threads(int(stated))


def _here(threads: int | None, precision: str | None, device: str) -> Arithmetic:
    torch, versions = sys.modules.get("torch"), versions_of(LIBRARIES)
    if torch is None:
        return Arithmetic(threads or os.cpu_count() or 1, precision, _processor(), versions)
    on_cpu = torch.device(device).type == "cpu"
    where = _processor() if on_cpu else _gpu(device)
    return Arithmetic(torch.get_num_threads(), precision, where, versions)


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


@lru_cache
def versions_of(packages: tuple[str, ...]) -> dict[str, str]:
    """The versions of those packages that are installed, by name."""
    found = {}
    for name in packages:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found
