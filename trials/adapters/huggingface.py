"""Reports a training by the `Trainer` of Transformers, and lets it be paused and continued.

See docs/training-libraries.md. At each level of the trial the Trainer evaluates and saves itself
into a checkpoint of the trial, and the callback reports. A trial that is paused there continues
from that checkpoint, with the state of the optimizer, the schedule, the loss scaling, the random
generators and the order of the data.
"""

import enum
import json
import math
import numbers
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from transformers import Trainer, TrainerCallback, set_seed
from transformers.trainer_utils import SaveStrategy, has_length
from transformers.utils import SAFE_WEIGHTS_INDEX_NAME, SAFE_WEIGHTS_NAME

from trials.adapters.pace import Pace
from trials.contract import Note, TrialStopped, Unit
from trials.running.reported import numbers_among
from trials.script import running
from trials.tasks.function.trial import FunctionTrial

_STATE = "trainer_state.json"  # the file of a Trainer's checkpoint with its step
_OWN_NAMES = "weights_own_names.pt"
"""The file of weights under the model's own names, if the Trainer's file has others."""
_STATE_FILES = ("optimizer.pt", "scheduler.pt", "scaler.pt", "rng_state.pth", _OWN_NAMES)
"""Files that only a training needs, and not the model."""
_SEARCHED = (
    "learning_rate", "weight_decay", "adam_beta1", "adam_beta2", "adam_epsilon", "max_grad_norm",
    "warmup_steps", "lr_scheduler_type", "optim", "per_device_train_batch_size",
    "gradient_accumulation_steps",
)  # fmt: skip
"""Arguments that a Trainer reads only when it trains, so that a trial's parameters may set them."""


class TrainerReports(TrainerCallback):  # type: ignore[misc] # transformers is not followed
    """Reports the evaluations of a `Trainer` to its trial, each with a checkpoint.

    It decides when the Trainer evaluates and saves, and gives it the trial's seed. A report has all
    numbers of `Trainer.evaluate`, under their names, and `train_loss`, the mean training loss since
    the log before. Metrics of evaluations and predictions after the training are added to the last
    report.

    Args:
        trial: The second argument of the training function. None for the running trial, whose
            parameters and budget the Trainer then takes; outside of a study, nothing happens.
    """

    def __new__(cls, trial: FunctionTrial | None = None) -> Any:
        if trial is None and running() is None:
            return TrainerCallback()
        return super().__new__(cls)

    def __init__(self, trial: FunctionTrial | None = None) -> None:
        here = trial or running()
        assert here is not None
        self._trial = here
        self._takes_over = trial is None
        self._is_over = False
        self._is_set_up = False
        self._pace: Pace | None = None
        self._levels: dict[int, float] = {}
        self._reported_step = 0
        self._metrics: dict[str, float] = {}
        self._saving = ExitStack()
        self._draft: Path | None = None
        self._output_dir: str | None = None
        self._stop: TrialStopped | None = None

    def on_init_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        args.save_only_model = False  # a paused trial continues from the rest
        if self._takes_over:
            self._set_up_by_trial(args)
        args.save_strategy = SaveStrategy.NO
        args.restore_callback_states_from_checkpoint = True
        args.seed = self._trial.seed
        set_seed(args.seed)
        self._is_set_up = True

    def _set_up_by_trial(self, args: Any) -> None:
        trial = self._trial
        for name in _SEARCHED:
            before = getattr(args, name)
            value = trial.get(name, before)
            setattr(args, name, type(before)(value) if isinstance(before, enum.Enum) else value)
        if trial.unit is Unit.EPOCHS:
            args.num_train_epochs, args.max_steps = trial.budget, -1
        else:
            of_step = args.train_batch_size * args.gradient_accumulation_steps * args.world_size
            samples = of_step if trial.unit is Unit.SAMPLES else 1
            args.max_steps = math.ceil(trial.budget / samples)
        if isinstance(trial.folder, Path):
            args.output_dir = str(trial.folder)
        trainer = _trainer_being_built()
        trainer._train_batch_size = args.train_batch_size
        train, checkpoint = trainer.train, trial.checkpoint

        def train_on(resume_from_checkpoint: Any = None, **others: Any) -> Any:
            return train(resume_from_checkpoint=checkpoint, **others)

        trainer.train = train_on

    def on_train_begin(
        self, args: Any, state: Any, control: Any, model: Any, train_dataloader: Any, **_: Any
    ) -> None:
        """Turn the levels of the trial into steps. Raises ValueError if the Trainer does not train
        for the trial's full budget, or does not continue from its checkpoint."""
        if not self._is_set_up:
            what = "TrainerReports was added to a Trainer that was already built"
            raise ValueError(f"{what}; write Trainer(..., callbacks=[TrainerReports(trial)])")
        accumulated = args.gradient_accumulation_steps
        epoch_steps = None
        if has_length(train_dataloader):
            epoch_steps = max(-(-len(train_dataloader) // accumulated), 1)
        batch = state.train_batch_size or args.train_batch_size
        pace = Pace(self._trial, epoch_steps, batch * accumulated * args.world_size)
        pace.require(state.max_steps, advice=_advice(pace))
        self._require_continued(state)
        if self._trial.checkpoint is not None:
            _load_own_names(model, self._trial.checkpoint)
        self._note_best(state)
        self._pace = pace
        self._levels = pace.levels()
        self._reported_step = state.global_step

    def _require_continued(self, state: Any) -> None:
        checkpoint = self._trial.checkpoint
        step = 0
        if checkpoint is not None:
            file = checkpoint / _STATE
            if not file.is_file():
                what = f"{checkpoint} is not a checkpoint of a Trainer"
                raise ValueError(f"{what}; do not call trial.save beside TrainerReports")
            step = json.loads(file.read_text())["global_step"]
        if state.global_step != step:
            begins = f"the Trainer begins at step {state.global_step}"
            advice = "write trainer.train(resume_from_checkpoint=trial.checkpoint)"
            raise ValueError(f"{begins}, but the trial is at step {step}; {advice}")

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> Any:
        self._ask(control, state.global_step in self._levels)
        if self._trial.stopped:
            self._end(control, TrialStopped())
        return control

    def on_epoch_end(self, args: Any, state: Any, control: Any, **_: Any) -> Any:
        """Report if the training ends between two levels."""
        ends = control.should_training_stop and self._stop is None
        self._ask(control, ends and state.global_step > self._reported_step)
        return control

    def _ask(self, control: Any, reports: bool) -> None:
        control.should_evaluate = reports
        control.should_save = reports
        control.should_log = control.should_log or reports

    def on_log(self, args: Any, state: Any, control: Any, logs: Any, **_: Any) -> None:
        loss = logs.get("loss")
        if isinstance(loss, numbers.Real):
            self._metrics["train_loss"] = float(loss)

    def on_evaluate(self, args: Any, state: Any, control: Any, metrics: Any, **_: Any) -> None:
        """Note the metrics of a data set, and let the Trainer save itself into a new checkpoint."""
        if self._is_over:
            self._trial.note(Note(metrics=_numbers_in(metrics)))
        if not control.should_save or state.global_step <= self._reported_step:
            return
        self._metrics |= _numbers_in(metrics)
        if self._draft is not None:
            return
        of_ranks = [f"rng_state_{rank}.pth" for rank in range(args.world_size)]
        try:
            self._draft = self._saving.enter_context(
                self._trial.save(state=[*_STATE_FILES, *of_ranks])
            )
        except TrialStopped as stop:
            self._end(control, stop)
            return
        self._output_dir, args.output_dir = args.output_dir, str(_of_first(self._draft))

    def on_save(self, args: Any, state: Any, control: Any, model: Any, **_: Any) -> Any:
        """Seal the checkpoint and report. A trial that is paused here ends its training."""
        if self._draft is None:
            return control
        draft, self._draft = self._draft, None
        args.output_dir = self._output_dir
        if torch.distributed.is_initialized():
            torch.distributed.barrier()  # all ranks have written their part
        if self._trial.rank == 0:
            _move_up(draft / f"checkpoint-{state.global_step}")
            _save_own_names(model, draft)
        self._saving.close()
        metrics, self._metrics = self._metrics, {}
        self._reported_step = state.global_step
        try:
            self._trial.report(self._resource(state.global_step), metrics)
        except TrialStopped as stop:
            self._end(control, stop)
        else:
            self._note_best(state)
        return control

    def _note_best(self, state: Any) -> None:
        """Let `load_best_model_at_end` load the best by the objective."""
        best = self._trial.best
        if isinstance(best, Path):
            state.best_model_checkpoint = str(best)

    def on_predict(self, args: Any, state: Any, control: Any, metrics: Any, **_: Any) -> None:
        if self._is_over:
            self._trial.note(Note(metrics=_numbers_in(metrics)))

    def _resource(self, step: int) -> float:
        level = self._levels.get(step)
        if level is not None:
            return level
        assert self._pace is not None
        return self._pace.resource_after(step)

    def _end(self, control: Any, stop: TrialStopped) -> None:
        """End the training by the Trainer, so that other callbacks end too."""
        self._stop = stop
        self._ask(control, False)
        control.should_training_stop = True

    def on_train_end(self, args: Any, state: Any, control: Any, model: Any, **_: Any) -> None:
        """End the training function of a paused or stopped trial, by TrialStopped."""
        if self._stop is not None:
            raise self._stop
        self._is_over = True
        best = state.best_model_checkpoint
        if args.load_best_model_at_end and best is not None:
            _load_own_names(model, Path(best))


def _of_first(draft: Path) -> Path:
    """The draft of rank 0, where this rank can see it: each rank saves its random state."""
    if not torch.distributed.is_initialized():
        return draft
    drafts = [draft]
    torch.distributed.broadcast_object_list(drafts, src=0)
    return drafts[0] if drafts[0].is_dir() else draft


def _trainer_being_built() -> Trainer:
    """The Trainer that calls its callbacks, which it does not pass to them."""
    frame = sys._getframe()
    while not isinstance(frame.f_locals.get("self"), Trainer):
        assert frame.f_back is not None, "on_init_end is called by a Trainer"
        frame = frame.f_back
    trainer: Trainer = frame.f_locals["self"]
    return trainer


def _numbers_in(metrics: Mapping[str, Any]) -> dict[str, float]:
    return numbers_among({name: metrics[name] for name in metrics if name != "epoch"})


def _save_own_names(model: torch.nn.Module, folder: Path) -> None:
    """Save the weights under the model's own names, too, if a Trainer has used others.

    Some models are saved under the names of published weights. `from_pretrained` knows both names,
    but a Trainer that continues would leave such weights as they were initialised (Transformers'
    issue 48805)."""
    weights = model.state_dict()
    if not _names_in(folder) <= weights.keys():
        torch.save(weights, folder / _OWN_NAMES)


def _load_own_names(model: torch.nn.Module, folder: Path) -> None:
    file = folder / _OWN_NAMES
    if file.is_file():
        weights = torch.load(file, map_location="cpu", weights_only=True)
        model.load_state_dict(weights)


def _names_in(folder: Path) -> set[str]:
    """The names of a model's weights that a Trainer has saved; empty if it saved adapters."""
    index = folder / SAFE_WEIGHTS_INDEX_NAME
    if index.is_file():
        return set(json.loads(index.read_text())["weight_map"])
    file = folder / SAFE_WEIGHTS_NAME
    if not file.is_file():
        return set()
    with safe_open(file, "pt") as weights:
        return set(weights.keys())


def _move_up(folder: Path) -> None:
    for path in folder.iterdir():
        path.rename(folder.parent / path.name)
    folder.rmdir()


def _advice(pace: Pace) -> str:
    match pace.trial.unit:
        case Unit.EPOCHS:
            return "write TrainingArguments(num_train_epochs=trial.budget) without max_steps"
        case Unit.STEPS:
            return "write TrainingArguments(max_steps=trial.budget)"
        case _:
            steps = f"math.ceil(trial.budget / {pace.step_samples})"
            return f"a step has {pace.step_samples}, so write TrainingArguments(max_steps={steps})"
