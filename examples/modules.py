"""A LightningModule learns digits. Searched by modules.yaml; needs the extra `lightning`."""

import lightning
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from trials.adapters.lightning import LightningReports


class Digits(lightning.LightningModule):
    def __init__(self, width, learning_rate):
        super().__init__()
        self.network = nn.Sequential(nn.Linear(64, width), nn.ReLU(), nn.Linear(width, 10))
        self.learning_rate = learning_rate

    def training_step(self, batch, _):
        loss = nn.functional.cross_entropy(self.network(batch[0]), batch[1])
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch, _):
        right = self.network(batch[0]).argmax(dim=1) == batch[1]
        self.log("val_accuracy", right.float().mean())

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=self.learning_rate)


def train(params, trial):
    lightning.seed_everything(trial.seed)
    images, labels = map(torch.tensor, load_digits(return_X_y=True))
    images = images.float() / 16
    data = DataLoader(TensorDataset(images[400:], labels[400:]), 32, shuffle=True)
    held_out = DataLoader(TensorDataset(images[:400], labels[:400]), 400)
    reports = LightningReports(trial)
    quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False}
    trainer = lightning.Trainer(max_epochs=trial.budget, callbacks=[reports], **quiet)
    module = Digits(params["width"], params["learning_rate"])
    trainer.fit(module, data, held_out, ckpt_path=reports.checkpoint)
