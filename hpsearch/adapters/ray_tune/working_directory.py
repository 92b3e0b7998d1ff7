"""The working directory of a trial, as Ray Tune has it: its own folder, for all of its attempts."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from trials.checkpoints.folders import is_url, split
from trials.checkpoints.trimming import WORKING
from trials.tasks.function.trial import FunctionTrial

SWITCH, ORIGINAL = "RAY_CHDIR_TO_TRIAL_DIR", "TUNE_ORIG_WORKING_DIR"
"""Ray Tune's variables: 0 leaves the working directory as it was; where that was."""

_originals: list[str] = []
"""The directory that this process was in, once for each trial that runs in it."""


def working_directory(trial: FunctionTrial) -> Path:
    """The trial's folder; where that is a URL, a folder of this machine that is its own."""
    if not is_url(trial.folder):
        return Path(trial.folder).absolute()
    study, name = split(trial.folder)
    own = hashlib.sha256(str(study).encode()).hexdigest()[:12]
    return Path(tempfile.gettempdir(), f"hpsearch-working-{os.getuid()}", own, name)


@contextmanager
def working_in(trial: FunctionTrial) -> Iterator[None]:
    """Change into a trial's working directory, and back. A file that is missing there, but not
    where the process was before, is an error that says so."""
    folder = working_directory(trial)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / WORKING).touch()
    original = _originals[0] if _originals else os.getcwd()  # noqa: PTH109 - as a text
    _originals.append(original)
    os.environ[ORIGINAL] = original
    try:
        if os.environ.get(SWITCH, "1") != "0":
            os.chdir(folder)
        yield
    except FileNotFoundError as error:
        if (text := _explained(error.filename, original, folder)) is not None:
            raise FileNotFoundError(text) from error
        raise
    finally:
        _originals.pop()
        os.chdir(original)
        if not _originals:
            del os.environ[ORIGINAL]


def _explained(name: object, original: str, folder: Path) -> str | None:
    if not isinstance(name, str) or Path(name).is_absolute():
        return None
    if not Path(original, name).exists() or (folder / name).exists():
        return None
    how = f'Path(__file__).parent / "{name}", or from os.environ["{ORIGINAL}"], or set {SWITCH}=0'
    return f"{name} is in {original}, and the trial runs in a folder of its own: read it from {how}"
