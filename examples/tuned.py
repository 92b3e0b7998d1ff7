"""A script for Ray Tune, with one import changed: a network learns digits, as a class trainable."""

import torch
from sklearn.datasets import load_digits
from torch import nn

from hpsearch import tune  # it was: from ray import tune


class Digits(tune.Trainable):
    def setup(self, config):
        images, labels = load_digits(return_X_y=True)
        self.images, self.labels = torch.tensor(images).float() / 16, torch.tensor(labels)
        self.held_out = torch.arange(len(labels)) % 5 == 0
        width, learning_rate = config["model"]["width"], config["learning_rate"]
        self.model = nn.Sequential(nn.Linear(64, width), nn.ReLU(), nn.Linear(width, 10))
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=learning_rate)

    def step(self):
        for batch in torch.randperm(int((~self.held_out).sum())).split(64):
            guess = self.model(self.images[~self.held_out][batch])
            loss = nn.functional.cross_entropy(guess, self.labels[~self.held_out][batch])
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
        right = self.model(self.images[self.held_out]).argmax(1) == self.labels[self.held_out]
        return {"accuracy": right.float().mean().item(), "loss": loss.item()}

    def save_checkpoint(self, checkpoint_dir):
        return {"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict()}

    def load_checkpoint(self, checkpoint):
        self.model.load_state_dict(checkpoint["model"])
        self.optimizer.load_state_dict(checkpoint["optimizer"])
