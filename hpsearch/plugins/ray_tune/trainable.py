"""The base of class trainables, as Ray Tune has it, and how one is driven.

`setup`, `step`, `save_checkpoint`, `load_checkpoint` and `cleanup` mean what they mean there. A
class is saved at the levels at which its study wants a report, and continues from there where it is
paused. A dictionary that `save_checkpoint` returns is kept as tensors and plain values, because
nothing is unpickled here.
"""

import copy
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hpsearch.errors import UserError
from hpsearch.plugins.ray_tune.session import Session, here, trial_id

_DICTIONARY = "_dict_checkpoint.pt"  # the file of a dictionary that `save_checkpoint` returned


class Trainable:
    """A training that a study drives step by step. Override `setup`, `step`, `save_checkpoint` and
    `load_checkpoint`.

    Args:
        parameters: Given by `with_parameters`, passed to `setup`.

    Attributes:
        iteration: The iterations trained, over all attempts.
        trial_id: The trial's number, as five digits.
        logdir: The trial's folder.
    """

    def __init__(self, config: Mapping[str, Any] | None = None, **parameters: Any) -> None:
        self.config: dict[str, Any] = dict(config or {})
        self.iteration = 0
        session = here()
        self.trial_id = "default" if session is None else trial_id(session.trial)
        self.logdir = "." if session is None else str(session.trial.folder)
        self.setup(copy.deepcopy(self.config), **parameters)

    @property
    def training_iteration(self) -> int:
        """The same as `iteration`."""
        return self.iteration

    def setup(self, config: dict[str, Any]) -> None:
        """Build what trains. Gets the parameters of `with_parameters` by name."""

    def step(self) -> dict[str, Any]:
        """Train one iteration and return its metrics; ``done: True`` ends the trial."""
        raise NotImplementedError

    def save_checkpoint(self, checkpoint_dir: str) -> Any:
        """Write files into a folder, or return a dictionary of tensors and plain values."""
        raise NotImplementedError

    def load_checkpoint(self, checkpoint: Any) -> None:
        """Continue from a folder, or from the dictionary that `save_checkpoint` returned."""
        raise NotImplementedError

    def cleanup(self) -> None:
        """Release what `setup` took."""


def drive(
    kind: type[Trainable],
    config: Mapping[str, Any],
    session: Session,
    parameters: Mapping[str, Any],
) -> None:
    trainable = kind(config, **parameters)
    saves = kind.save_checkpoint is not Trainable.save_checkpoint
    try:
        if session.checkpoint is not None:
            with session.checkpoint.as_directory() as folder:
                dictionary = Path(folder, _DICTIONARY)
                trainable.iteration = session.iteration
                trainable.load_checkpoint(_read(dictionary) if dictionary.is_file() else folder)
        while session.iteration < session.trial.budget:
            result = trainable.step()
            if not isinstance(result, dict):
                what = f"{kind.__name__}.step() returned {result!r}"
                raise UserError(what, "return a dict of metrics")
            trainable.iteration += 1
            due = trainable.iteration in session.trial.report_at
            if saves and (due or result.get("should_checkpoint")):
                with session.saving() as place:
                    _save(trainable, place)
            session.hand_over(result)
            if result.get("done"):
                return
    finally:
        trainable.cleanup()


def _save(trainable: Trainable, folder: Path) -> None:
    """Save a trainable into a folder, and see that a dictionary can be read again."""
    name = type(trainable).__name__
    returned = trainable.save_checkpoint(str(folder))
    if returned is None or (isinstance(returned, str | Path) and Path(returned) == folder):
        return
    if not isinstance(returned, dict):
        what = f"{name}.save_checkpoint returned {returned!r}"
        raise UserError(what, "return nothing, the folder that was given, or a dict")
    import torch  # here: a class that writes files of its own does not need it

    file = folder / _DICTIONARY
    torch.save(returned, file)
    try:
        _read(file)
    except Exception as error:
        what = f"{name}.save_checkpoint returned a dict with more than tensors and plain values"
        hint = "return their state_dict(), or write files into checkpoint_dir and return nothing"
        raise UserError(what, hint) from error


def _read(file: Path) -> Any:
    """A dictionary of tensors, numpy arrays and plain values: nothing in these runs code."""
    import numpy as np
    import torch

    kinds = [type(np.dtype(name)) for name in ("bool", "int32", "int64", "float32", "float64")]
    makers: list[Any] = [each.__reduce__()[0] for each in (np.float64(0.0), np.zeros(1))]
    with torch.serialization.safe_globals([np.ndarray, np.dtype, *makers, *kinds]):
        return torch.load(file, weights_only=True)
