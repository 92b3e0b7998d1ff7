"""Hugging Face's Trainer in a training function: what is reported, and what a pause changes."""

import copy
import gc
import threading
import time

import peft
import pytest
import torch
import transformers
from transformers import Trainer, TrainingArguments

from support.running.function_runs import raises_in_training
from trials.adapters.huggingface import TrainerReports
from trials.contract import Goal

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


def training(tmp_path, losses, model=tiny_model, rows=Rows, callbacks=(), **arguments):
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
            callbacks=[Losses(losses), *copy.deepcopy(callbacks), TrainerReports(trial)],
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
    assert last.metrics["train_loss"] == pytest.approx(losses[-1][1])
    assert not list((tmp_path / "output").iterdir()), "checkpoints belong to the trial"


OTHER_NAMES = {"model": tiny_model_that_is_saved_under_other_names, "rows": Pixels}


@pytest.mark.cases(1)
@pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing` is deprecated:FutureWarning")
@pytest.mark.parametrize(
    ("per_trial", "arguments", "pauses"),
    [
        ({"epochs": 3, "report_every": 0.5}, {}, [0.5, 1.0, 2.5]),
        ({"steps": 14, "report_every": 4}, {"max_steps": 14}, [4, 12]),
        ({"epochs": 2, "report_every": 0.4}, {"gradient_accumulation_steps": 2}, [1.6]),
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


# ------------------------------------------------------------------------- ending in other ways


class Ends(transformers.TrainerCallback):
    """Ends the training at a step."""

    def on_step_end(self, args, state, control, **_):
        control.should_training_stop = state.global_step == 8


def test_a_training_that_ends_between_two_levels_is_reported_there(drive, tmp_path):
    trial = drive(training(tmp_path, [], callbacks=[Ends()]), {"epochs": 3})
    trial.attempt()
    assert trial.levels == [1.0, pytest.approx(8 / STEPS)]
    assert trial.reports[-1].checkpoint is not None


@pytest.mark.parametrize("pauses", [[], [2.0]])
def test_the_patience_of_early_stopping_survives_a_pause(drive, tmp_path, pauses):
    stopping = {
        "callbacks": [transformers.EarlyStoppingCallback(early_stopping_patience=2)],
        "metric_for_best_model": "loss",
        "greater_is_better": False,
        "eval_strategy": "steps",
        "learning_rate": 0.0,
    }
    trial = drive(training(tmp_path, [], **stopping), {"epochs": 9})
    for level in [*pauses, None]:
        trial.attempt(until=level)
    assert trial.levels == [1.0, 2.0, 3.0]


def test_a_trial_that_is_stopped_ends_after_its_step(drive, tmp_path):
    stepping = threading.Event()
    losses = []

    def train(params, trial):
        class Waits(transformers.TrainerCallback):
            def on_step_end(self, args, state, control, **_):
                if state.global_step == 3:
                    stepping.set()
                    while not trial.stopped:
                        time.sleep(0.001)

        training(tmp_path, losses, callbacks=[Waits()])(params, trial)

    run = drive(train, {"epochs": 2}).run()
    for _ in run:
        if stepping.is_set():
            break
    assert run.close()
    assert [step for step, _ in losses] == [1, 2, 3]


def test_a_save_that_fails_leaves_nothing(drive, tmp_path, monkeypatch):
    def fails(trainer, folder):
        raise OSError("no optimizer today")

    trial = drive(training(tmp_path, []), {"epochs": 2})
    trial.attempt(until=1)
    monkeypatch.setattr(Trainer, "_save_optimizer_and_scheduler", fails)
    with raises_in_training("no optimizer today"):
        trial.attempt()
    gc.collect()
    left = {path.name for path in (tmp_path / "trial-0").iterdir()}
    assert left == {"last", trial.reports[0].checkpoint.name}


# -------------------------------------------------------------------------------------- mistakes


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"num_train_epochs": 2}, r"set to 12 steps.*3 epochs, which are 18 steps; write Training"),
        ({"max_steps": 5}, r"set to 5 steps.*num_train_epochs=trial\.budget\) without max_steps"),
    ],
)
def test_a_trainer_that_contradicts_the_trial_is_told(drive, tmp_path, arguments, said):
    trial = drive(training(tmp_path, [], **arguments), {"epochs": 3})
    with raises_in_training(said):
        trial.attempt()


def test_a_trainer_that_does_not_continue_from_the_trials_checkpoint_is_told(
    drive, tmp_path, monkeypatch
):
    trial = drive(training(tmp_path, []), {"epochs": 2})
    trial.attempt(until=1)
    afresh = Trainer.train
    monkeypatch.setattr(Trainer, "train", lambda trainer, **_: afresh(trainer))
    with raises_in_training("begins at step 0, but the trial is at step 6; write tra"):
        trial.attempt()


# ---------------------------------------------------------------------------------- as a script


def script(tmp_path, losses, reloaded):
    """An ordinary script: the callback is all that it knows of studies."""

    def main():
        transformers.set_seed(42)
        arguments = TrainingArguments(
            output_dir=str(tmp_path / "output"),
            num_train_epochs=1,
            learning_rate=1e-5,
            per_device_train_batch_size=BATCH,
            logging_steps=1,
            eval_strategy="epoch",
            save_strategy="epoch",
            save_only_model=True,
            load_best_model_at_end=True,
            metric_for_best_model="accuracy",
            disable_tqdm=True,
            use_cpu=True,
        )
        trainer = Trainer(
            tiny_model(),
            arguments,
            train_dataset=Rows(ROWS, 1),
            eval_dataset=Rows(9, 2),
            compute_metrics=accuracy,
            callbacks=[Losses(losses), TrainerReports()],
        )
        trainer.train()
        reloaded.append(trainer.state.best_model_checkpoint)
        trainer.predict(Rows(9, 3))
        trainer.save_model()
        return trainer

    return main


def driven_script(drive, main, **params):
    """A trial of a script, as a study runs it: the script has to read all parameters."""

    def train(params, trial):
        trial.unread = set(params)
        main()

    goal = Goal("eval_accuracy", maximize=True)
    return drive(train, {"epochs": 2}, goal=goal, **params)


def test_a_script_with_the_callback_runs_alone_as_before(tmp_path):
    losses = []
    trainer = script(tmp_path, losses, [])()
    assert trainer.state.global_step == len(losses) == STEPS
    assert trainer.args.learning_rate == 1e-5
    assert (tmp_path / "output" / f"checkpoint-{STEPS}").is_dir()


def test_a_script_is_given_the_parameters_budget_and_checkpoint_of_its_trial(drive, tmp_path):
    whole, parts, reloaded = [], [], []
    params = {"learning_rate": 1e-2, "lr_scheduler_type": "constant"}
    never = driven_script(drive, script(tmp_path, whole, reloaded), **params)
    never.attempt()
    paused = driven_script(drive, script(tmp_path, parts, reloaded), **params)
    paused.attempt(until=1.0)
    paused.attempt()
    assert parts == whole
    assert len(whole) == 2 * STEPS
    assert paused.levels == never.levels == [1.0, 2.0]
    best_of_each = [str(never.reports[-1].best), str(paused.reports[-1].best)]
    assert reloaded == best_of_each
    assert {"test_loss", "test_accuracy"} <= paused.notes[-1].metrics.keys()
    assert (paused.folder / "model.safetensors").is_file()


def test_a_parameter_that_a_script_does_not_use_is_an_error(drive, tmp_path):
    trial = driven_script(drive, script(tmp_path, [], []), width=3)
    with raises_in_training("has not read width of the study file"):
        trial.attempt()
