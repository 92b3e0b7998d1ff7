"""Hugging Face's Trainer on the samples, in the order and with the settings of a run of ours."""

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
import transformers
from torch.optim.lr_scheduler import LambdaLR
from transformers import Trainer, TrainingArguments

from trials.data.batching import Ints, cut
from trials.data.workload import Batch
from trials.loop.training import TrainingRun

Inputs = dict[str, torch.Tensor]
ToInputs = Callable[[Batch], Inputs]


@dataclass
class Course:
    """The record of each step, and the weights at the end."""

    rates: list[float] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)
    norms: list[float] = field(default_factory=list)
    weights: Mapping[str, torch.Tensor] = field(default_factory=dict)


def course_of(run: TrainingRun) -> Course:
    """Train a run of ours to its end."""
    course, take = Course(), run._step

    def step(rows: Ints, rate: float) -> Any:
        taken, gradients = take(rows, rate)
        course.rates.append(rate)
        course.losses.append(taken.loss.item())
        course.norms.append(taken.norm.item())
        return taken, gradients

    run._step = step  # type: ignore[method-assign]
    for _ in run:
        pass
    course.weights = copy.deepcopy(run._workload.model.state_dict())
    return course


class _Ordered(Trainer):
    """Trains batches that are given, by a schedule that is read halfway through each step."""

    def __init__(self, batches: list[Inputs], schedule: Callable[[float], float], **given: Any):
        self._batches, self._schedule = batches, schedule
        super().__init__(**given)

    def get_train_dataloader(self) -> Any:
        return torch.utils.data.DataLoader(
            self._batches,  # type: ignore[arg-type]
            batch_size=None,
            shuffle=False,
        )

    def create_scheduler(self, num_training_steps: int, optimizer: Any = None) -> Any:
        self.lr_scheduler = LambdaLR(optimizer or self.optimizer, lambda n: self._schedule(n + 0.5))
        return self.lr_scheduler


class _Steps(transformers.TrainerCallback):
    def __init__(self, course: Course) -> None:
        self._course = course

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
        if "loss" in logs:
            self._course.losses.append(logs["loss"])
            self._course.norms.append(float(logs["grad_norm"]))

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        self._course.rates.append(given["optimizer"].param_groups[0]["lr"])


def beside(
    run: TrainingRun, to_inputs: ToInputs, folder: Path, steps: int, micro_batch: int | None = None
) -> Course:
    """The course of Hugging Face's Trainer from the weights of a run that has not begun, on the
    same batches, with AdamW and the same schedule, decay and clipping.

    Args:
        to_inputs: The arguments of the model of transformers for a batch of ours.
        micro_batch: Samples in one forward pass, by accumulation; None for the whole batch.
    """
    workload: Any = run._workload
    settings = run._horizon._settings
    order = run._order
    batches = []
    for step in range(steps):
        rows = order.rows(step)
        for part in cut(rows, micro_batch or len(rows)):
            batches.append(to_inputs(workload.batch(part)))
    arguments = TrainingArguments(
        output_dir=str(folder / "trainer"),
        num_train_epochs=1,
        gradient_accumulation_steps=len(batches) // steps,
        learning_rate=settings.learning_rate,
        weight_decay=settings.weight_decay,
        adam_beta1=settings.beta1,
        adam_beta2=settings.beta2,
        adam_epsilon=settings.epsilon,
        max_grad_norm=settings.max_grad_norm or 0.0,
        logging_steps=1,
        save_strategy="no",
        report_to="none",
        use_cpu=True,
        disable_tqdm=True,
        remove_unused_columns=False,
    )
    course = Course()
    model = copy.deepcopy(workload.model)
    trainer = _Ordered(
        batches,
        schedule_of(settings, steps),
        model=model,
        args=arguments,
        callbacks=[_Steps(course)],
    )
    trainer.remove_callback(transformers.PrinterCallback)
    trainer.train()
    course.weights = model.state_dict()
    return course


def schedule_of(settings: Any, steps: int) -> Callable[[float], float]:
    """The schedule of transformers for some settings of ours, from steps (and parts of them) to a
    share of the learning rate."""
    name = {"wsd": "warmup_stable_decay", "constant": "constant_with_warmup"}.get(
        settings.schedule, settings.schedule
    )
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    warmup = round(settings.warmup * steps)
    specific = {}
    if name == "warmup_stable_decay":
        specific = {
            "num_decay_steps": round(settings.decay_fraction * steps),
            "decay_type": "linear",
            "warmup_type": "linear",
        }
    scheduler: Any = transformers.get_scheduler(
        name, optimizer, warmup, steps, scheduler_specific_kwargs=specific
    )
    shape: Callable[[float], float] = scheduler.lr_lambdas[0]
    return shape


def plain(batch: Batch) -> Inputs:
    """The arguments of a classifier of texts or of words."""
    return {**batch.inputs, "labels": batch.labels}


def shifted(batch: Batch) -> Inputs:
    """The arguments of a causal model, which compares the scores of each token with the label of
    the next."""
    found = {}
    for name, tensor in batch.inputs.items():
        last = torch.ones_like(tensor[:, :1])
        found[name] = torch.cat([tensor, last], dim=1)
    none = torch.full_like(batch.labels[:, :1], -100)
    return {**found, "labels": torch.cat([none, batch.labels], dim=1)}


def of_pairs(batch: Batch) -> Inputs:
    """The arguments of an encoder and decoder, which makes the decoder's inputs itself."""
    inputs = {name: value for name, value in batch.inputs.items() if not name.startswith("decoder")}
    return {**inputs, "labels": batch.labels}


def pixels(batch: Batch) -> Inputs:
    """The arguments of a classifier of images whose processor says a half for everything."""
    shares = batch.inputs["images"].permute(0, 3, 1, 2).float() / 255
    return {"pixel_values": (shares - 0.5) / 0.5, "labels": batch.labels}
