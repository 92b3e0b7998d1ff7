"""Hugging Face's Trainer in a training function: what is reported, and what a pause changes."""

from __future__ import annotations

import peft
import pytest
import torch
import transformers
from transformers import Trainer, TrainingArguments

from trials.adapters.huggingface import TrainerReports

ROWS, BATCH = 22, 4
STEPS = 6
"""In an epoch: the last has two rows."""


PLATEAU = {
    "bf16": True,
    "lr_scheduler_type": "reduce_lr_on_plateau",
    "metric_for_best_model": "loss",
    "eval_strategy": "epoch",
    "save_strategy": "best",
}
"""What has a state of its own, and strategies that the callback replaces."""


class Rows(torch.utils.data.Dataset):
    """Short texts of two classes, as a tokenizer leaves them."""

    def __init__(self, count: int, seed: int) -> None:
        draw = torch.Generator().manual_seed(seed)
        self.tokens = torch.randint(2, 30, (count, 6), generator=draw)
        self.labels = (self.tokens > 20).sum(dim=1) % 2

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, row: int) -> dict[str, torch.Tensor]:
        return {"input_ids": self.tokens[row], "labels": self.labels[row]}


class Losses(transformers.TrainerCallback):
    """Remembers the training loss of each step."""

    def __init__(self, losses: list[tuple[int, float]]) -> None:
        self.losses = losses

    def on_log(self, args, state, control, logs=None, **_):
        if "loss" in logs:
            self.losses.append((state.global_step, logs["loss"]))


def accuracy(predicted):
    right = predicted.predictions.argmax(-1) == predicted.label_ids
    return {"accuracy": right.mean(), "a_list": [1, 2], "classes": {"a": 1}}


def tiny_model():
    config = transformers.DistilBertConfig(
        vocab_size=30, dim=8, n_layers=1, n_heads=2, hidden_dim=16, max_position_embeddings=8
    )
    return transformers.DistilBertForSequenceClassification(config)


def tiny_adapters():
    lora = peft.LoraConfig(target_modules=["q_lin", "v_lin"], r=2, lora_dropout=0.1)
    return peft.get_peft_model(tiny_model(), lora)


def tiny_model_that_is_saved_under_other_names():
    """Its code was rewritten, and its weights are saved as those on the hub are."""
    config = transformers.ViTConfig(
        image_size=4,
        patch_size=2,
        num_channels=1,
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=8,
    )
    return transformers.ViTForImageClassification(config)


class Pixels(Rows):
    """The same as pictures."""

    def __getitem__(self, row: int) -> dict[str, torch.Tensor]:
        pixels = self.tokens[row].float().repeat(3)[:16] / 30
        return {"pixel_values": pixels.view(1, 4, 4), "labels": self.labels[row]}


def training(tmp_path, losses, model=tiny_model, rows=Rows, **arguments):
    """A training function whose Trainer has these arguments."""

    def train(params, trial):
        transformers.set_seed(trial.seed)
        arguments_of_all = {
            "output_dir": str(tmp_path / "output"),
            "per_device_train_batch_size": BATCH,
            "learning_rate": 1e-2,
            "warmup_steps": 3,
            "logging_steps": 1,
            "disable_tqdm": True,
            "use_cpu": True,
            "num_train_epochs": trial.budget,
        }
        trainer = Trainer(
            model(),
            TrainingArguments(**{**arguments_of_all, **arguments}),
            train_dataset=rows(ROWS, 1),
            eval_dataset=rows(9, 2),
            compute_metrics=accuracy,
            callbacks=[Losses(losses), TrainerReports(trial)],
        )
        trainer.train(resume_from_checkpoint=trial.checkpoint)

    return train


def test_each_evaluation_is_reported_under_the_names_of_the_trainer(drive, tmp_path):
    losses = []
    trial = drive(training(tmp_path, losses), {"epochs": 2})
    last = trial.attempt()
    assert trial.levels == [1.0, 2.0]
    assert {"eval_loss", "eval_accuracy", "eval_runtime", "train_loss"} <= last.metrics.keys()
    assert {"epoch", "eval_a_list", "eval_classes"}.isdisjoint(last.metrics)
    second = [loss for step, loss in losses if step > STEPS]
    assert last.metrics["train_loss"] == pytest.approx(sum(second) / STEPS)
    assert not list((tmp_path / "output").iterdir()), "checkpoints belong to the trial"


OTHER_NAMES = {"model": tiny_model_that_is_saved_under_other_names, "rows": Pixels}


@pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing` is deprecated:FutureWarning")
@pytest.mark.parametrize(
    ("per_trial", "arguments", "pauses"),
    [
        ({"epochs": 3, "report_every": 0.5}, {}, [0.5, 1.0, 2.5]),
        ({"steps": 14, "report_every": 4}, {"max_steps": 14}, [4, 12]),
        ({"epochs": 2, "report_every": 0.4}, {"gradient_accumulation_steps": 2}, [0.4, 1.6]),
        ({"epochs": 2}, PLATEAU, [1.0]),
        ({"epochs": 2}, {"model": tiny_adapters}, [1.0]),
        ({"epochs": 2}, OTHER_NAMES, [1.0]),
    ],
)
def test_a_training_that_was_paused_has_the_losses_of_one_that_was_not(
    drive, tmp_path, per_trial, arguments, pauses
):
    whole, parts = [], []
    never = drive(training(tmp_path, whole, **arguments), per_trial)
    never.attempt()
    paused = drive(training(tmp_path, parts, **arguments), per_trial)
    for level in [*pauses, None]:
        paused.attempt(until=level)
    assert parts == whole
    names = ("eval_loss", "eval_accuracy", "train_loss")
    assert paused.metrics(*names) == never.metrics(*names)
    assert paused.levels == never.levels
