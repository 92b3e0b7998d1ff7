"""The environment of a study, for the record: packages, device, code and data."""

from __future__ import annotations

import hashlib
import platform
import subprocess
import time
from pathlib import Path

from hpsearch.domain.records import Environment
from hpsearch.study_file.models import StudySpec
from trials.descriptions.builtin import BUILT_IN
from trials.descriptions.command import COMMAND, line_of
from trials.running.arithmetic import versions_of

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
    """The environment of this driver's session. Reads all the files that the task names."""
    packages = {**versions_of(RECORDED_PACKAGES), "python": platform.python_version()}
    return Environment(time.time(), _revision(spec.base), packages, device, _fingerprint(spec))


def _revision(folder: Path) -> str | None:
    """The state of a folder by git's name; None if git does not know it."""
    command = ["git", "-C", str(folder), "describe", "--always", "--dirty", "--abbrev=40"]
    try:
        git = subprocess.run(  # noqa: S603 - a fixed command
            command, capture_output=True, text=True, check=False, timeout=GIT_S
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return git.stdout.strip() or None


def _fingerprint(spec: StudySpec) -> str | None:
    """The SHA-256 of the files that the task names; None without such files."""
    files = [spec.base / name for name in _names(spec) if _is_file(spec.base / name)]
    if not files:
        return None
    digest = hashlib.sha256()
    for path in files:
        with path.open("rb") as file:
            while chunk := file.read(CHUNK_BYTES):
                digest.update(chunk)
    return digest.hexdigest()


def _names(spec: StudySpec) -> list[str]:
    """The texts of the task that may name files: the words of a command, or the values of the
    settings in the order of their names, and last the module of a function."""
    task = spec.task
    if task["kind"] == COMMAND.kind:
        folder = Path(task.get("cwd", "."))
        return [str(folder / word) for word in line_of(task).plain_words]
    settings = {**task.get("args", {}), **task}
    names = [value for _, value in sorted(settings.items()) if isinstance(value, str)]
    if task["kind"] not in BUILT_IN:
        module, _, _ = task["kind"].partition(":")
        path = module.replace(".", "/")
        names += [f"{path}.py", f"{path}/__init__.py"]
    return names


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a word may be too long for a name
        return False
