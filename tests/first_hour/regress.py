"""Fits a sine with Lightning, keeps the best epoch, and tests it."""

import argparse

import lightning
import torch
from lightning.pytorch.callbacks import ModelCheckpoint
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Regressor(lightning.LightningModule):
    def __init__(self, lr):
        super().__init__()
        self.save_hyperparameters()
        self.layers = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 1))

    def loss_of(self, batch):
        x, y = batch
        return nn.functional.mse_loss(self.layers(x), y)

    def training_step(self, batch, index):
        loss = self.loss_of(batch)
        self.log("train_loss", loss, on_step=False, on_epoch=True)
        return loss

    def validation_step(self, batch, index):
        self.log("val_loss", self.loss_of(batch))

    def test_step(self, batch, index):
        self.log("test_loss", self.loss_of(batch))

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.hparams.lr)


def loader(count, seed, shuffle=False):
    x = torch.rand(count, 1, generator=torch.Generator().manual_seed(seed)) * 6 - 3
    return DataLoader(TensorDataset(x, torch.sin(x)), batch_size=16, shuffle=shuffle)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, default=0.01)
    args = parser.parse_args()
    lightning.seed_everything(0)
    trainer = lightning.Trainer(
        max_epochs=3,
        accelerator="auto",
        callbacks=[ModelCheckpoint(monitor="val_loss")],
        log_every_n_steps=1,
    )
    model = Regressor(lr=args.lr)
    trainer.fit(model, loader(128, 1, shuffle=True), loader(64, 2))
    (results,) = trainer.test(model, loader(64, 3), ckpt_path="best")
    print(f"test loss: {results['test_loss']:.4f}")


if __name__ == "__main__":
    main()
