"""Virtual environments for the peers whose packages cannot be installed beside hpsearch's.

`peer_environments/NAME.txt` pins every package of one. An environment is made when a race first
needs it, and is used again as long as the pins and the version of Python stay the same.
"""

from __future__ import annotations

import fcntl
import hashlib
import subprocess
import sys
import venv
from pathlib import Path

CACHE = Path("~/.cache/hpsearch-benchmarks").expanduser()
"""Where environments are made if the command names no other folder."""

PINS = Path(__file__).parent / "peer_environments"
READY = "ready"
"""The file that is written into an environment at the end, when everything is installed."""


class Unavailable(Exception):
    """An environment cannot be made on this machine; the text says why."""


def python_of(name: str, cache: Path) -> Path:
    """The interpreter of an environment, whether it exists or not."""
    pins = (PINS / f"{name}.txt").read_bytes()
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    digest = hashlib.sha256(pins).hexdigest()[:8]
    return cache / f"{name}-{version}-{digest}" / "bin" / "python"


def prepare(name: str, cache: Path) -> None:
    """Make an environment if it is not complete; two commands that need the same one take turns.

    Raises:
        Unavailable: pip could not install the pinned packages.
    """
    python = python_of(name, cache)
    folder = python.parent.parent
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if (folder / READY).exists():
            return
        print(f"making the environment of {name} in {folder}", file=sys.stderr)
        venv.create(folder, clear=True, with_pip=True)
        _install(python, PINS / f"{name}.txt")
        (folder / READY).touch()


def _install(python: Path, pins: Path) -> None:
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    done = subprocess.run(
        [*pip, "--requirement", str(pins)], capture_output=True, text=True, check=False
    )
    if done.returncode == 0:
        return
    errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
    reason = " ".join(errors) or done.stderr[-300:].strip()
    raise Unavailable(f"pip cannot install {pins.name}: {reason}")
