"""Hugging Face's Trainer: a small vision transformer learns digits. Searched by vision.yaml."""

import torch
from sklearn.datasets import load_digits
from transformers import Trainer, TrainingArguments, ViTConfig, ViTForImageClassification, set_seed

from trials.adapters.huggingface import TrainerReports

SMALL = {"image_size": 8, "patch_size": 2, "num_channels": 1, "hidden_size": 48}
LAYERS = {"num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 96}


def accuracy(predicted):
    return {"accuracy": (predicted.predictions.argmax(-1) == predicted.label_ids).mean()}


def train(params, trial):
    set_seed(trial.seed)
    digits = load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32)[:, None] / 16
    rows = [
        {"pixel_values": image, "labels": label}
        for image, label in zip(images, digits.target, strict=True)
    ]
    config = ViTConfig(**SMALL, **LAYERS, num_labels=10, hidden_dropout_prob=params["dropout"])
    arguments = TrainingArguments(
        output_dir=trial.folder,
        num_train_epochs=trial.budget,
        per_device_train_batch_size=64,
        learning_rate=params["learning_rate"],
        warmup_steps=params["warmup"],
        use_cpu=trial.device == "cpu",
        disable_tqdm=True,
    )
    trainer = Trainer(
        ViTForImageClassification(config),
        arguments,
        train_dataset=rows[400:],
        eval_dataset=rows[:400],
        compute_metrics=accuracy,
        callbacks=[TrainerReports(trial)],
    )
    trainer.train(resume_from_checkpoint=trial.checkpoint)
