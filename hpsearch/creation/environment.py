"""What a study runs on, for the record: packages, device, code and data."""

from __future__ import annotations

import hashlib
import platform
import subprocess
import time
from importlib import metadata
from pathlib import Path

from hpsearch.domain.records import Environment
from hpsearch.study_file.models import StudySpec
from trials.descriptions.builtin import BUILT_IN
from trials.descriptions.command import COMMAND
from trials.descriptions.command_line import CommandLine

RECORDED_PACKAGES = (
    "hpsearch",
    "torch",
    "transformers",
    "optuna",
    "ray",
    "numpy",
    "scikit-learn",
    "tokenizers",
)

CHUNK_BYTES = 1 << 20
GIT_S = 10  # how long git may take to name a revision


def environment(spec: StudySpec, device: str) -> Environment:
    """What this driver's session runs on. Reads all the files that the task names."""
    return Environment(time.time(), _revision(spec.base), _packages(), device, _fingerprint(spec))


def _packages() -> dict[str, str]:
    packages = {}
    for name in RECORDED_PACKAGES:
        try:
            packages[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    packages["python"] = platform.python_version()
    return packages


def _revision(folder: Path) -> str | None:
    """How git names the state of a folder; None if git does not know it."""
    command = ["git", "-C", str(folder), "describe", "--always", "--dirty", "--abbrev=40"]
    try:
        git = subprocess.run(  # noqa: S603 - a fixed command
            command, capture_output=True, text=True, check=False, timeout=GIT_S
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return git.stdout.strip() or None


def _fingerprint(spec: StudySpec) -> str | None:
    """The SHA-256 of the files that the task names; None if it names none."""
    files = _files(spec)
    if not files:
        return None
    digest = hashlib.sha256()
    for path in files:
        with path.open("rb") as file:
            while chunk := file.read(CHUNK_BYTES):
                digest.update(chunk)
    return digest.hexdigest()


def _files(spec: StudySpec) -> list[Path]:
    """The files that the task names, in the order of the names of their settings, or of the words
    of its command; the module of a function last."""
    if spec.task["kind"] == COMMAND.kind:
        folder = spec.base / spec.task.get("cwd", ".")
        words = CommandLine(spec.task["run"]).plain_words
        return [folder / word for word in words if _is_file(folder / word)]
    files = []
    named = {**spec.task.get("args", {}), **spec.task} if is_function(spec) else spec.task
    for setting, value in sorted(named.items()):
        if not isinstance(value, str) or setting == "kind":
            continue
        path = spec.base / value
        if _is_file(path):
            files.append(path)
    return [*files, *_modules(spec)]


def is_function(spec: StudySpec) -> bool:
    """True if the study searches a function of the user's own."""
    return spec.task["kind"] not in BUILT_IN


def _modules(spec: StudySpec) -> list[Path]:
    """The module of a function, where it is beside the study file; what it imports is not read."""
    if not is_function(spec):
        return []
    module, _, _ = spec.task["kind"].partition(":")
    path = spec.base.joinpath(*module.split("."))
    candidates = (path.with_suffix(".py"), path / "__init__.py")
    return [candidate for candidate in candidates if _is_file(candidate)]


def _is_file(path: Path) -> bool:
    """True if there is a file of this name; a word may be too long for one."""
    try:
        return path.is_file()
    except OSError:
        return False
