"""The base of class trainables, as Ray Tune has it, and how one is driven.

`setup`, `step`, `save_checkpoint`, `load_checkpoint`, `reset_config` and `cleanup` mean what they
mean there. A class is saved at the levels at which its study wants a report: where it is paused, it
continues from there. A dictionary that `save_checkpoint` returns is kept as tensors and plain
values, because nothing is unpickled here.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hpsearch.adapters.ray_tune.session import Session, here, trial_id
from hpsearch.errors import UserError

_DICTIONARY = "_dict_checkpoint.pt"
"""What `save_checkpoint` returned as a dictionary."""


class Trainable:
    """A training that a study drives step by step. Override `setup`, `step`, `save_checkpoint` and
    `load_checkpoint`.

    Args:
        config: The trial's parameters and constants.
        parameters: What `with_parameters` gave, passed to `setup`.
    """

    def __init__(self, config: Mapping[str, Any] | None = None, **parameters: Any) -> None:
        self.config: dict[str, Any] = dict(config or {})
        self._begin()
        self.setup(copy.deepcopy(self.config), **parameters)

    def _begin(self) -> None:
        """Before the first step: nothing is trained, and the trial has its name and folder."""
        self._iteration, self._time_total = 0, 0.0
        session = here()
        self.trial_id = "default" if session is None else trial_id(session.trial)
        self.trial_name = self.trial_id
        self.logdir = "." if session is None else str(session.trial.folder)

    # What a subclass overrides.

    def setup(self, config: dict[str, Any]) -> None:
        """Build what trains. Given what `with_parameters` gave, by name."""

    def step(self) -> dict[str, Any]:
        """Train one iteration and return its metrics; ``done: True`` ends the trial."""
        raise NotImplementedError

    def save_checkpoint(self, checkpoint_dir: str) -> Any:
        """Write files into a folder; return nothing, or a dictionary of tensors and plain values
        instead."""
        raise NotImplementedError

    def load_checkpoint(self, checkpoint: Any) -> None:
        """Continue from a folder, or from the dictionary that `save_checkpoint` returned."""
        raise NotImplementedError

    def reset_config(self, new_config: dict[str, Any]) -> bool:
        """Become the trainable of another trial; False if a new one must be made."""
        return False

    def log_result(self, result: dict[str, Any]) -> None:
        """Called with each result, in the worker."""

    def cleanup(self) -> None:
        """Release what `setup` took."""

    # What a subclass may ask and call.

    @property
    def iteration(self) -> int:
        """The iterations trained, over all attempts."""
        return self._iteration

    @property
    def training_iteration(self) -> int:
        """The same as `iteration`."""
        return self._iteration

    def get_config(self) -> dict[str, Any]:
        """The config."""
        return self.config

    def train(self) -> dict[str, Any]:
        """Train one iteration; its metrics, with `training_iteration` and the time it took."""
        began = time.perf_counter()
        result = self.step()
        if not isinstance(result, dict):
            what = f"{type(self).__name__}.step() returned {result!r}"
            raise UserError(what, "return a dict of metrics")
        took_s = time.perf_counter() - began
        self._iteration += 1
        self._time_total += took_s
        filled = {
            "time_this_iter_s": took_s,
            "time_total_s": self._time_total,
            "training_iteration": self._iteration,
            "done": False,
            **result,
        }
        self.log_result(filled)
        return filled

    def save(self, checkpoint_dir: str) -> str:
        """Save into a folder, and return it.

        Raises:
            UserError: `save_checkpoint` returned something that cannot be kept.
        """
        folder = Path(checkpoint_dir)
        returned = self.save_checkpoint(str(folder))
        if isinstance(returned, dict):
            _write(returned, folder / _DICTIONARY, type(self).__name__)
        elif returned is not None and Path(returned) != folder:
            what = f"{type(self).__name__}.save_checkpoint returned {returned!r}"
            raise UserError(what, "return nothing, the folder that was given, or a dict")
        return checkpoint_dir

    def restore(self, checkpoint_path: str, iteration: int = 0) -> None:
        """Continue from a folder that `save` wrote into.

        Args:
            checkpoint_path: The folder.
            iteration: The iterations trained by then.
        """
        self._iteration = iteration
        dictionary = Path(checkpoint_path) / _DICTIONARY
        if dictionary.is_file():
            self.load_checkpoint(_read(dictionary))
        else:
            self.load_checkpoint(str(checkpoint_path))

    def reset(self, new_config: Mapping[str, Any]) -> bool:
        """Become the trainable of another trial; False if `reset_config` cannot do that."""
        self.config = dict(new_config)
        self._begin()
        return bool(self.reset_config(copy.deepcopy(self.config)))

    def stop(self) -> None:
        """Release everything."""
        self.cleanup()

    @classmethod
    def default_resource_request(cls, config: dict[str, Any]) -> Any:
        """Not asked: `with_resources` says what a trial takes."""
        return None


def _write(state: dict[str, Any], file: Path, name: str) -> None:
    """Keep a dictionary, and see that it can be read again.

    Raises:
        UserError: It cannot, because it holds more than tensors, arrays and plain values.
    """
    import torch  # here: a class that writes files of its own does not need it

    torch.save(state, file)
    try:
        _read(file)
    except Exception as error:
        what = f"{name}.save_checkpoint returned a dict with more than tensors and plain values"
        hint = "return their state_dict(), or write files into checkpoint_dir and return nothing"
        raise UserError(what, hint) from error


def _read(file: Path) -> Any:
    import torch

    with torch.serialization.safe_globals(_numpy()):
        return torch.load(file, weights_only=True)


def _numpy() -> list[Any]:
    """What a numpy array or number is made of: nothing in it runs code."""
    import numpy as np

    kinds = [type(np.dtype(name)) for name in ("bool", "int32", "int64", "float32", "float64")]
    scalar = np.float64(0.0).__reduce__()[0]
    rebuild = np.zeros(1).__reduce__()[0]
    return [np.ndarray, np.dtype, scalar, rebuild, *kinds]


_idle: dict[type[Trainable], Trainable] = {}
"""Trainables that have ended a trial and may become another's, one of each class."""


def drive(
    kind: type[Trainable],
    config: Mapping[str, Any],
    session: Session,
    parameters: Mapping[str, Any],
    reuse: bool,
) -> None:
    """Train a class trainable until its trial is over.

    Args:
        kind: The class.
        config: The trial's.
        session: The trial's.
        parameters: For its `setup`.
        reuse: Whether a trainable of the trial before may be reset.
    """
    trainable = _made(kind, config, parameters, reuse)
    try:
        if session.checkpoint is not None:
            with session.checkpoint.as_directory() as folder:
                trainable.restore(folder, session.iteration)
        _train(trainable, session)
    except Exception:
        reuse = False
        raise
    finally:
        if reuse:
            _idle[kind] = trainable
        else:
            trainable.stop()


def _made(
    kind: type[Trainable], config: Mapping[str, Any], parameters: Mapping[str, Any], reuse: bool
) -> Trainable:
    """The trainable of a trial: one that can be reset, or a new one."""
    before = _idle.pop(kind, None) if reuse else None
    if before is not None:
        if before.reset(config):
            return before
        before.stop()
    return kind(config, **parameters)


def _train(trainable: Trainable, session: Session) -> None:
    levels = session.trial.report_at
    saves = type(trainable).save_checkpoint is not Trainable.save_checkpoint
    while session.iteration < session.trial.budget:
        result = trainable.train()
        due = session.iteration + 1 in levels or result.get("should_checkpoint")
        if saves and due:
            with session.saving() as folder:
                trainable.save(str(folder))
        session.hand_over(result)
        if result.get("done"):
            return
