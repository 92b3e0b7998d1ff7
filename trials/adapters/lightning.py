"""Reports a training by the `Trainer` of Lightning, and lets it be paused and continued.

See docs/training-libraries.md. At each level of the trial the Trainer validates, and the callback
saves a checkpoint of Lightning's into one of the trial, and reports. A trial that is paused there
continues from that checkpoint.

Lightning's checkpoint holds neither the random generators nor the place in the data, so they are
added here. The generators at the beginning of the epoch give the order of its data, and trained
batches are skipped; then the generators are set to their state at the pause. The state is saved at
the beginning of the batch or the epoch after a report, when the effects of its validation, such as
a lower learning rate, have happened.
"""

import random
import sys
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from lightning.pytorch import Callback, Trainer

from trials.adapters.pace import Pace
from trials.contract import Note, TrialStopped, Unit
from trials.running.randomness import seed_everything
from trials.running.reported import numbers_among
from trials.script import running
from trials.tasks.function.trial import FunctionTrial

_FILE = "lightning.ckpt"
_OWN_CHECKPOINTS = "lightning"
"""The folder in the trial's for checkpoints that Lightning saves by itself."""
_NEVER = sys.maxsize  # epochs between validations
_NOT_RESUMABLE = "You're resuming from a checkpoint that ended before the epoch ended"
"""The beginning of Lightning's warning about a continued epoch."""


class LightningReports(Callback):  # type: ignore[misc] # lightning is not followed
    """Reports the validations of a `Trainer` to its trial, each with a checkpoint.

    It decides when the Trainer validates, and seeds the random generators with the trial's seed. A
    report has all values of `self.log`, under their names. Metrics of `Trainer.test` after the
    training are added to the last report.

    Args:
        trial: The second argument of the training function. None for the running trial, whose
            budget the Trainer then takes; outside of a study, nothing happens.
    """

    def __new__(cls, trial: FunctionTrial | None = None) -> Any:
        if trial is None and running() is None:
            return _Nothing()
        return super().__new__(cls)

    def __init__(self, trial: FunctionTrial | None = None) -> None:
        here = trial or running()
        assert here is not None
        self._trial = here
        self._takes_over = trial is None
        self._is_over = False
        self._pace: Pace | None = None
        self._levels: dict[int, float] = {}
        self._due: float | None = None
        self._restored: dict[str, Any] | None = None
        self._epoch_began: dict[str, Any] = {}
        self._now: dict[str, Any] = {}
        self._begins_epoch: bool | None = None

    @property
    def checkpoint(self) -> Path | None:
        """The checkpoint to pass as `ckpt_path`; None for a new trial."""
        if self._trial.checkpoint is None:
            return None
        return self._trial.checkpoint / _FILE

    def setup(self, trainer: Trainer, pl_module: Any, stage: str) -> None:
        """Give the Trainer the trial's budget, checkpoint and folder."""
        if stage != "fit" or not self._takes_over:
            return
        trial, loop = self._trial, trainer.fit_loop
        if trial.unit is Unit.EPOCHS and isinstance(trial.budget, int):
            loop.max_epochs, loop.epoch_loop.max_steps = trial.budget, -1
        elif trial.unit is Unit.STEPS:
            loop.max_epochs, loop.epoch_loop.max_steps = -1, trial.budget
        if isinstance(trial.folder, Path):
            _keep_own_checkpoints(trainer, trial.folder / _OWN_CHECKPOINTS)
        connector = trainer._checkpoint_connector
        begin = connector.resume_start

        def begin_at_trial(checkpoint_path: Any = None, weights_only: Any = None) -> None:
            begin(self.checkpoint, weights_only=weights_only)
            del connector.resume_start  # a later test may load another one

        connector.resume_start = begin_at_trial

    def on_train_start(self, trainer: Trainer, pl_module: Any) -> None:
        """Turn the levels of the trial into steps, and put data and random generators in place.
        Raises ValueError if the Trainer does not train for the trial's full budget, or does not
        continue from its checkpoint."""
        is_restored = self._restored is not None
        if is_restored != (self._trial.checkpoint is not None):
            what = "the Trainer begins afresh, but the trial continues"
            if is_restored:
                what = "the Trainer continues, but the trial begins afresh"
            raise ValueError(f"{what}; write trainer.fit(..., ckpt_path=reports.checkpoint)")
        self._pace = _pace_of(trainer, self._trial, is_script=self._takes_over)
        self._levels = self._pace.levels()
        trainer.check_val_every_n_epoch = _NEVER
        self._place_data(trainer)

    def _place_data(self, trainer: Trainer) -> None:
        """Begin the epoch's data again in its order, after the trained batches. Lightning has begun
        it already, with generators in any state."""
        restored, self._restored = self._restored, None
        if restored is None:
            seed_everything(self._trial.seed)
            now = _generators()
            restored = {"epoch_began": now, "now": now}
        loop = trainer.fit_loop
        self._epoch_began = restored["epoch_began"]
        _set_generators(self._epoch_began)
        if _resumes_itself(trainer):
            _set_generators(restored["now"])
            return
        fetcher = loop._data_fetcher
        iter(fetcher)
        done = loop.epoch_loop.batch_progress.current.completed
        if done == 0:
            return
        for _ in range(done):
            next(fetcher)
        fetcher.fetched -= done  # Lightning adds them
        _set_generators(restored["now"])
        warnings.filterwarnings("ignore", message=_NOT_RESUMABLE)

    def on_train_epoch_start(self, trainer: Trainer, pl_module: Any) -> None:
        """Make the report that was due at the end of the epoch before."""
        self._report(trainer, begins_epoch=True)
        loop = trainer.fit_loop
        is_resuming = loop.is_resuming or loop.epoch_loop.restarting
        if trainer.current_epoch > 0 and not is_resuming:  # Lightning begins the data next
            self._epoch_began = _generators()

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: Any, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Ask for a validation at the trial's levels alone. Raises TrialStopped if it is over."""
        if self._trial.stopped:
            raise TrialStopped
        self._due = self._level_at(trainer, batch_idx)
        if self._due is None:
            trainer.check_val_every_n_epoch = _NEVER
            return
        trainer.check_val_every_n_epoch = 1
        trainer.val_check_batch = 1
        self._now = _generators()

    def _level_at(self, trainer: Trainer, batch_idx: int) -> float | None:
        """The level that a batch reaches, also if another callback ends the training there."""
        assert self._pace is not None
        batches, accumulated = batch_idx + 1, trainer.accumulate_grad_batches
        if batches % accumulated and not trainer.is_last_batch:
            return None
        step = trainer.global_step
        if self._pace.epoch_steps is not None:
            step = trainer.current_epoch * self._pace.epoch_steps + -(-batches // accumulated)
        if trainer.should_stop and trainer.fit_loop._can_stop_early:
            return self._levels.get(step, self._pace.resource_after(step))
        return self._levels.get(step)

    def on_validation_end(self, trainer: Trainer, pl_module: Any) -> None:
        self._now = _generators()

    def on_train_batch_start(
        self, trainer: Trainer, pl_module: Any, batch: Any, batch_idx: int
    ) -> None:
        self._report(trainer, begins_epoch=False)

    def on_train_end(self, trainer: Trainer, pl_module: Any) -> None:
        self._report(trainer, begins_epoch=None)
        self._is_over = True

    def on_test_end(self, trainer: Trainer, pl_module: Any) -> None:
        if self._is_over:
            self._trial.note(Note(metrics=numbers_among(trainer.callback_metrics)))

    def _report(self, trainer: Trainer, *, begins_epoch: bool | None) -> None:
        """Save, and make the report that is due. Raises TrialStopped if the trial is paused or
        stopped. `begins_epoch`: whether an epoch begins, or a batch; None after the training."""
        due, self._due = self._due, None
        if due is None:
            return
        if begins_epoch:
            self._epoch_began = self._now = _generators()
        with self._trial.save() as folder:
            self._begins_epoch = begins_epoch
            trainer.save_checkpoint(folder / _FILE)
            self._begins_epoch = None
        self._trial.report(due, numbers_among(trainer.callback_metrics))

    def state_dict(self) -> dict[str, Any]:
        return {"epoch_began": self._epoch_began, "now": self._now}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self._restored = state_dict

    def on_save_checkpoint(
        self, trainer: Trainer, pl_module: Any, checkpoint: dict[str, Any]
    ) -> None:
        """Take back Lightning's count of the batch or the epoch that begins. Otherwise it would
        find the epoch complete, and begin with the one after it."""
        if self._begins_epoch is None:
            return
        loop = checkpoint["loops"]["fit_loop"]
        batches = loop["epoch_loop.batch_progress"]
        begun = loop["epoch_progress"] if self._begins_epoch else batches
        for counts in (begun["total"], begun["current"]):
            counts["ready"] -= 1
        if self._begins_epoch:
            batches["current"] = dict.fromkeys(batches["current"], 0)
            batches["is_last_batch"] = False


class _Nothing(Callback):  # type: ignore[misc] # lightning is not followed
    """Stands in for `LightningReports` outside of a study."""

    checkpoint = None


def _keep_own_checkpoints(trainer: Trainer, folder: Path) -> None:
    for callback in trainer.checkpoint_callbacks:
        if getattr(callback, "dirpath", folder) is None:
            callback.dirpath = str(folder)


def _pace_of(trainer: Trainer, trial: FunctionTrial, *, is_script: bool) -> Pace:
    accumulated = trainer.accumulate_grad_batches
    batches = trainer.num_training_batches
    epoch_steps = None
    if batches != float("inf"):
        epoch_steps = -(-int(batches) // accumulated)
    samples = getattr(trainer.train_dataloader, "batch_size", None)
    if samples is None and trial.unit is Unit.SAMPLES:
        what = "per_trial counts samples, but the batch size of the training data is not known"
        raise ValueError(f"{what}; state per_trial in steps or epochs")
    pace = Pace(trial, epoch_steps, (samples or 1) * accumulated * trainer.world_size)
    advice = f"write Trainer(max_steps={pace.total_steps})"
    if trial.unit is Unit.EPOCHS and isinstance(trial.budget, int):
        advice = "write Trainer(max_epochs=trial.budget) without max_steps"
    if trial.unit is Unit.STEPS:
        advice = "write Trainer(max_steps=trial.budget) without max_epochs"
    if is_script:
        advice = "state per_trial in whole epochs or in steps"
    pace.require(trainer.estimated_stepping_batches, advice=advice)
    return pace


def _resumes_itself(trainer: Trainer) -> bool:
    """True if Lightning restores the place in the data, which the loaders keep."""
    loaders = trainer.fit_loop._combined_loader.flattened
    return all(hasattr(loader, "load_state_dict") for loader in loaders)


def _generators() -> dict[str, Any]:
    """The state of the random generators, in types that `torch.load` reads without pickle."""
    numpy = np.random.get_state(legacy=False)
    assert isinstance(numpy, dict)
    numpy["state"]["key"] = numpy["state"]["key"].tolist()
    state = {"torch": torch.get_rng_state(), "python": random.getstate(), "numpy": numpy}
    if torch.cuda.is_available():
        state["cuda"] = torch.cuda.get_rng_state_all()
    return state


def _set_generators(state: Mapping[str, Any]) -> None:
    torch.set_rng_state(state["torch"])
    version, internal, gauss = state["python"]
    random.setstate((version, tuple(internal), gauss))
    np.random.set_state(state["numpy"])
    if "cuda" in state and torch.cuda.is_available():
        torch.cuda.set_rng_state_all(state["cuda"])
