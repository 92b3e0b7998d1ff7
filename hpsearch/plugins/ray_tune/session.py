"""The trial that runs, for `tune.report`, `tune.get_checkpoint` and `tune.get_context`, and its
checkpoints and its working directory as Ray Tune's users know them.

Each report of a trainable is one training iteration, and that is the resource of its trial. The
folder that comes with a report becomes the trial's checkpoint of that report, complete or not at
all, with the number of the iteration beside it.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from hpsearch.errors import UserError
from trials.checkpoints import folders
from trials.checkpoints.folders import is_url, split
from trials.checkpoints.trimming import WORKING
from trials.running.reported import numbers_among
from trials.tasks.function.trial import FunctionTrial

FOLDER = "checkpoint"  # in a checkpoint of a trial: the folder with what the trainable saved
ITERATION = "iteration.json"  # in a checkpoint of a trial: the training iteration of its report
OF_TUNE = frozenset(
    {
        "done", "should_checkpoint", "training_iteration", "trial_id", "config",
        "time_this_iter_s", "time_total_s",
    }
)  # fmt: skip
"""Keys of a result that are Ray Tune's own: a report has its iteration and time anyway."""

SWITCH, ORIGINAL = "RAY_CHDIR_TO_TRIAL_DIR", "TUNE_ORIG_WORKING_DIR"
"""Ray Tune's variables: 0 leaves the working directory as it was; where that was."""

_originals: list[str] = []
"""The directory that this process was in, once for each trial that runs in it."""
_current: ContextVar[Session] = ContextVar("tune_session")
_running: list[Session] = []


class Checkpoint:
    """A folder with files of a trainable: a local one, or the URL of one in an object store."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)

    @classmethod
    def from_directory(cls, path: str | os.PathLike[str]) -> Checkpoint:
        """The checkpoint that a folder is."""
        return cls(path)

    def to_directory(self, path: str | os.PathLike[str] | None = None) -> str:
        """Copy the files into a folder, else into a new temporary one, and return its path."""
        target = Path(tempfile.mkdtemp(prefix="checkpoint_")) if path is None else Path(path)
        with self.as_directory() as files:
            shutil.copytree(files, target, dirs_exist_ok=True)
        return str(target)

    @contextmanager
    def as_directory(self) -> Iterator[str]:
        """A local folder with the files, to be read only: the folder itself where it is local."""
        if not folders.is_url(self.path):
            yield self.path
            return
        whole, _, inner = self.path.rpartition("/")
        folder, name = folders.split(whole)
        with folders.folder_at(folder).local(name) as files:
            yield str(files / inner)

    def __fspath__(self) -> str:
        return self.path

    def __repr__(self) -> str:
        return f"Checkpoint({self.path!r})"


class Ended(BaseException):
    """Ends a trainable that has reported that it is done. Not an `Exception`, as `TrialStopped`."""


class Session:
    """One attempt to train a trainable, with the training iterations so far, over all attempts."""

    def __init__(self, trial: FunctionTrial) -> None:
        self.trial = trial
        self.iteration = 0
        if trial.checkpoint is not None:
            self.iteration = json.loads((trial.checkpoint / ITERATION).read_text())

    @property
    def checkpoint(self) -> Checkpoint | None:
        """The checkpoint reported last, or to continue from; None if it starts afresh."""
        newest = self.trial.saved or self.trial.checkpoint
        return None if newest is None else Checkpoint(folders.inside(newest, FOLDER))

    def report(self, metrics: Mapping[str, Any], checkpoint: Any = None) -> None:
        """Report metrics of one training iteration, and wait for the go-ahead; see `report`. Raises
        Ended if the metrics say that the trial is done."""
        if not isinstance(metrics, Mapping):
            what = f"tune.report takes a dict of metrics, not {metrics!r}"
            raise UserError(what, 'write tune.report({"accuracy": accuracy})')
        if checkpoint is not None:
            with self.saving() as folder:
                _copy(checkpoint, folder)
        self.hand_over(metrics)

    @contextmanager
    def saving(self) -> Iterator[Path]:
        """A folder to save into; it becomes the checkpoint of the next report."""
        with self.trial.save() as whole:
            (whole / ITERATION).write_text(json.dumps(self.iteration + 1))
            folder = whole / FOLDER
            folder.mkdir()
            yield folder

    def hand_over(self, metrics: Mapping[str, Any]) -> None:
        """Report the next iteration, and wait for the go-ahead. Raises Ended if it is the last."""
        self.iteration += 1
        is_done = bool(metrics.get("done"))
        self.trial.report(self.iteration, numbers_in(metrics), is_last=is_done)
        if is_done or self.iteration >= self.trial.budget:
            raise Ended  # as Ray Tune's own stop conditions do


def _copy(checkpoint: Any, folder: Path) -> None:
    """Copy what a checkpoint holds: its own folder is often a temporary one."""
    source = getattr(checkpoint, "path", checkpoint)
    if not isinstance(source, str | os.PathLike) or not Path(source).is_dir():
        what = f"tune.report got the checkpoint {checkpoint!r}, which is not a folder"
        raise UserError(what, "give tune.Checkpoint.from_directory(folder)")
    shutil.copytree(source, folder, dirs_exist_ok=True)


def numbers_in(metrics: Mapping[str, Any]) -> dict[str, float]:
    """The metrics that are numbers, by flat names; others are left out."""
    named = flat(metrics, "/").items()
    return numbers_among({name: value for name, value in named if name not in OF_TUNE})


def flat(nested: Mapping[str, Any], between: str) -> dict[str, Any]:
    """A nested mapping as one level, its names joined."""
    found: dict[str, Any] = {}
    for name, value in nested.items():
        if not isinstance(value, Mapping):
            found[str(name)] = value
            continue
        for inner, each in flat(value, between).items():
            found[f"{name}{between}{inner}"] = each
    return found


@contextmanager
def running(session: Session) -> Iterator[None]:
    """Let code of this thread find its session."""
    token = _current.set(session)
    _running.append(session)
    try:
        yield
    finally:
        _running.remove(session)
        _current.reset(token)


def here() -> Session | None:
    """The session of this code's trial; None if no trial runs here. A thread that a trainable has
    started finds it if the process trains nothing else."""
    only = _running[0] if len(_running) == 1 else None
    return _current.get(only)


def current(call: str) -> Session:
    """The session of this code's trial; raises UserError if no trial runs here."""
    found = here()
    if found is not None:
        return found
    message = f"{call} was called outside of a trial"
    raise UserError(message, "it works in a trainable that tune.Tuner or hpsearch run trains")


def report(metrics: Mapping[str, Any], *, checkpoint: Any = None) -> None:
    """Report metrics of one training iteration, and wait for the go-ahead.

    Args:
        metrics: Numbers by name; nested ones are joined with a slash, as Ray Tune does.
        checkpoint: A `Checkpoint`, or anything else that names a local folder, which is copied.

    Raises:
        UserError: No trial runs here, or the checkpoint is not a folder.
        TrialStopped: The trial is over; `finally` blocks run.
    """
    current("tune.report").report(metrics, checkpoint)


def get_checkpoint() -> Checkpoint | None:
    """The checkpoint reported last; None to start afresh. Raises UserError outside of a trial."""
    return current("tune.get_checkpoint").checkpoint


class TuneContext:
    """The facts of a trial that its trainable can ask for."""

    def __init__(self, trial: FunctionTrial) -> None:
        self._trial = trial

    def get_trial_id(self) -> str:
        """The trial's number in its study, as five digits."""
        return trial_id(self._trial)

    def get_trial_name(self) -> str:
        """The name of the trial's folder."""
        return folders.split(self._trial.folder)[1]

    def get_trial_dir(self) -> str:
        """The trial's own folder, or its URL where checkpoints go to a store."""
        return str(self._trial.folder)

    def get_experiment_name(self) -> str:
        """The name of the study's folder."""
        study, _ = folders.split(self._trial.folder)
        return folders.split(study)[1]


def get_context() -> TuneContext:
    """The facts of a trial for its trainable. Raises UserError if no trial runs here."""
    return TuneContext(current("tune.get_context").trial)


def __getattr__(name: str) -> Any:
    """The functions of `ray.air.session` that a context has, such as `get_trial_id`."""
    if name.startswith("get_") and hasattr(TuneContext, name):
        return lambda: getattr(get_context(), name)()
    raise AttributeError(f"tune.session has no {name}")


def trial_id(trial: FunctionTrial) -> str:
    """A trial's number as five digits."""
    return f"{trial.number:05d}"


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
