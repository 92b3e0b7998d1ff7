"""Lightning's Trainer in a training function: what is reported, and what a pause changes."""

import warnings
from pathlib import Path

import lightning
import pytest
import torch
from lightning.pytorch.callbacks import ModelCheckpoint
from torch import nn

from support.running.function_runs import raises_in_training
from trials.adapters.lightning import LightningReports
from trials.tasks.function.function_task import find

ROWS, BATCH = 22, 4
STEPS = 6
"""In an epoch: the last has two rows."""


@pytest.fixture(autouse=True)
def _lightning_warns_of_few_workers_and_steps():
    with warnings.catch_warnings():
        for module in ("lightning", "torch"):
            warnings.filterwarnings("ignore", module=rf"{module}\.")
        yield


class Rows(torch.utils.data.Dataset):
    """Points of two classes. Reading one adds noise, as an augmentation would."""

    def __init__(self, count: int, seed: int) -> None:
        draw = torch.Generator().manual_seed(seed)
        self.points = torch.randn(count, 4, generator=draw)
        self.labels = (self.points.sum(dim=1) > 0).long()

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, row: int):
        return self.points[row] + 0.1 * torch.randn(4), self.labels[row]


class Classifier(lightning.LightningModule):
    """With a dropout, and a schedule that is lowered by the validation or by the step."""

    def __init__(self, losses: list[tuple[int, float]], schedule: str) -> None:
        super().__init__()
        self.network = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.2), nn.Linear(8, 2))
        self.losses = losses
        self.schedule = schedule

    def training_step(self, batch, batch_idx):
        points, labels = batch
        loss = nn.functional.cross_entropy(self.network(points), labels)
        self.losses.append((self.current_epoch, batch_idx, loss.item()))
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch, batch_idx):
        points, labels = batch
        self.log("val_loss", nn.functional.cross_entropy(self.network(points), labels))

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=1e-2)
        if self.schedule == "plateau":
            plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0, threshold=1)
            return [optimizer], [{"scheduler": plateau, "monitor": "val_loss", "strict": False}]
        cosine = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 18)
        return [optimizer], [{"scheduler": cosine, "interval": "step"}]


def training(losses, schedule="cosine", **arguments):
    """A training function whose Trainer has these arguments."""

    def train(params, trial):
        lightning.seed_everything(trial.seed, verbose=False)
        module = Classifier(losses, schedule)
        arguments_of_all = {
            "accelerator": "cpu",
            "logger": False,
            "enable_checkpointing": False,
            "enable_progress_bar": False,
            "enable_model_summary": False,
        }
        if "max_steps" not in arguments:
            arguments_of_all["max_epochs"] = trial.budget
        reports = LightningReports(trial)
        callbacks = [*arguments.get("callbacks", ()), reports]
        all_of_them = {**arguments_of_all, **arguments, "callbacks": callbacks}
        trainer = lightning.Trainer(**all_of_them)
        data = torch.utils.data.DataLoader(Rows(ROWS, 1), BATCH, shuffle=True)
        held_out = torch.utils.data.DataLoader(Rows(9, 2), BATCH)
        trainer.fit(module, data, held_out, ckpt_path=reports.checkpoint)

    return train


def test_each_validation_is_reported_under_the_names_of_the_module(drive):
    trial = drive(training([]), {"epochs": 3})
    trial.attempt()
    assert trial.levels == [1.0, 2.0, 3.0]
    assert {"train_loss", "val_loss"} == trial.reports[-1].metrics.keys()


@pytest.mark.parametrize(
    ("per_trial", "arguments", "pauses"),
    [
        ({"epochs": 3, "report_every": 0.5}, {}, [0.5, 1.0, 2.5]),
        ({"epochs": 3}, {"schedule": "plateau"}, [1.0, 2.0]),
        ({"steps": 14, "report_every": 4}, {"max_steps": 14}, [4, 8, 12]),
        ({"epochs": 2, "report_every": 0.4}, {"accumulate_grad_batches": 2}, [0.4, 1.6]),
        ({"epochs": 2}, {"precision": "bf16-mixed"}, [1.0]),
    ],
)
def test_a_training_that_was_paused_has_the_losses_of_one_that_was_not(
    drive, per_trial, arguments, pauses
):
    whole, parts = [], []
    never = drive(training(whole, **arguments), per_trial)
    never.attempt()
    paused = drive(training(parts, **arguments), per_trial)
    for level in [*pauses, None]:
        paused.attempt(until=level)
    assert parts == whole
    assert paused.levels == never.levels
    assert paused.metrics("val_loss", "train_loss") == never.metrics("val_loss", "train_loss")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            {"max_epochs": 5},
            r"set to 30 steps.*3 epochs, which are 18 steps; write Trainer\(max_ep",
        ),
        ({"max_steps": 5}, r"set to 5 steps.*3 epochs, which are 18 steps; write Trainer\(max_ep"),
    ],
)
def test_a_trainer_that_contradicts_the_trial_is_told(drive, arguments, said):
    trial = drive(training([], **arguments), {"epochs": 3})
    with raises_in_training(said):
        trial.attempt()


def test_a_trainer_that_does_not_continue_from_the_trials_checkpoint_is_told(drive, monkeypatch):
    trial = drive(training([]), {"epochs": 2})
    trial.attempt(until=1)
    monkeypatch.setattr(LightningReports, "checkpoint", None)
    with raises_in_training("begins afresh, but the trial continues; write trainer"):
        trial.attempt()


def test_a_module_without_validation_is_reported_with_what_it_logs(drive):
    train = training([], limit_val_batches=0, max_steps=5)
    trial = drive(train, {"steps": 5, "report_every": 2})
    trial.attempt(until=2)
    trial.attempt()
    assert trial.levels == [2.0, 4.0, 5.0]
    assert trial.reports[-1].metrics.keys() == {"train_loss"}


class Stops(lightning.Callback):
    """Ends the training at a step."""

    def on_train_batch_start(self, trainer, pl_module, batch, batch_idx):
        if trainer.global_step == 7:
            trainer.should_stop = True


def test_a_training_that_ends_early_is_reported_there(drive):
    trial = drive(training([], callbacks=[Stops()]), {"epochs": 3})
    trial.attempt()
    assert trial.levels == [1.0, pytest.approx(8 / STEPS)]
    assert "val_loss" in trial.reports[-1].metrics


def test_the_example_learns_and_continues(drive):
    examples = Path(__file__).parents[4] / "examples"
    train = find("modules:train", examples)
    trial = drive(train, {"epochs": 4}, learning_rate=1e-2, width=64)
    trial.attempt(until=2)
    trial.attempt()
    assert trial.levels == [1.0, 2.0, 3.0, 4.0]
    assert trial.reports[-1].metrics["val_accuracy"] > 0.85


def test_a_script_needs_the_callback_alone(drive, monkeypatch, tmp_path):
    steps, best = [], []

    def main():
        lightning.seed_everything(1, verbose=False)
        module = Classifier(steps, "cosine")
        module.test_step = lambda batch: module.log("test_loss", 0.25)
        trainer = lightning.Trainer(
            max_epochs=1,
            accelerator="cpu",
            logger=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            callbacks=[LightningReports(), ModelCheckpoint(monitor="val_loss")],
        )
        data = torch.utils.data.DataLoader(Rows(ROWS, 1), BATCH, shuffle=True)
        held_out = torch.utils.data.DataLoader(Rows(9, 2), BATCH)
        trainer.fit(module, data, held_out)
        trainer.test(module, held_out, ckpt_path="best", verbose=False)
        best.append(Path(trainer.checkpoint_callback.best_model_path).parent)

    monkeypatch.chdir(tmp_path)
    main()
    assert len(steps) == STEPS, "by hand, it trains for as long as it says"
    steps.clear()

    def train(params, trial):
        main()

    trial = drive(train, {"epochs": 2})
    trial.attempt(until=1)
    trial.attempt()
    assert trial.levels == [1.0, 2.0]
    assert [epoch for epoch, *_ in steps] == [0] * STEPS + [1] * STEPS
    assert trial.notes[-1].metrics["test_loss"] == 0.25
    assert best == [tmp_path / "checkpoints", trial.folder / "lightning"]
    uncounted = drive(train, {"samples": 10})
    with raises_in_training("state per_trial in whole epochs or in steps"):
        uncounted.attempt()
