"""Training code of `table-restarts`, `table-cooldown` and `table-warmup`: a perceptron on digits as
a table, whose reports on the way say little of the end because of its schedule.

- `restarts`: the rate falls in cosines and begins anew (Loshchilov and Hutter 2017). Before each
  restart the model is good, and after one it is bad.
- `cooldown`: the rate stays high and falls in a line at the end (Hägele et al. 2024). The higher it
  is, the worse is the model until then, and often the better afterwards.
- `warmup`: the rate rises for up to nine tenths of all steps, and falls after that. The longer it
  rises, the later the model learns.
"""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import nn

ROWS = 150
"""Rows to train on; the others are for validation."""

Steps = Callable[[torch.optim.Optimizer, int], torch.optim.lr_scheduler.LRScheduler]
"""Makes the schedule of an optimizer for so many steps."""


def restarts(params: Mapping[str, Any], trial: Any) -> None:
    """Train at a rate with warm restarts."""

    def schedule(optimizer: torch.optim.Optimizer, steps: int) -> Any:
        first = max(1, round(params["first_cycle"] * steps))
        longer = params["longer"]
        return torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, first, longer)

    _train(params, trial, schedule)


def cooldown(params: Mapping[str, Any], trial: Any) -> None:
    """Train at a rate that stays, and falls to 0 in a last share of all steps."""

    def schedule(optimizer: torch.optim.Optimizer, steps: int) -> Any:
        falling = max(1.0, params["cooldown"] * steps)
        return torch.optim.lr_scheduler.LambdaLR(
            optimizer, lambda step: min(1.0, (steps - step) / falling)
        )

    _train(params, trial, schedule)


def warmup(params: Mapping[str, Any], trial: Any) -> None:
    """Train at a rate that rises in a line for a first share of all steps, and falls to 0."""

    def schedule(optimizer: torch.optim.Optimizer, steps: int) -> Any:
        rising = max(1.0, params["warmup"] * steps)
        return torch.optim.lr_scheduler.LambdaLR(
            optimizer, lambda step: min((step + 1) / rising, (steps - step) / (steps - rising))
        )

    _train(params, trial, schedule)


def _train(params: Mapping[str, Any], trial: Any, schedule_of: Steps) -> None:
    """Train a perceptron, and report at the levels of its trial."""
    from sklearn.datasets import load_digits

    torch.manual_seed(trial.seed)
    table = load_digits()
    features = torch.tensor(table.data, dtype=torch.float32) / 16
    labels = torch.tensor(table.target)
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(0))
    known, unknown = order[:ROWS], order[ROWS:]
    width = params["width"]
    model = nn.Sequential(
        nn.Linear(64, width), nn.ReLU(), nn.Dropout(params["dropout"]),
        nn.Linear(width, width), nn.ReLU(), nn.Dropout(params["dropout"]),
        nn.Linear(width, 10),
    )  # fmt: skip
    optimizer = torch.optim.SGD(
        model.parameters(), params["learning_rate"], params["momentum"], weight_decay=1e-4
    )
    steps = -(-ROWS // params["batch_size"])
    schedule = schedule_of(optimizer, round(trial.budget * steps))
    measure = nn.CrossEntropyLoss(label_smoothing=params["label_smoothing"])
    levels = list(trial.report_at)
    for epoch in range(int(trial.budget)):
        mixed = known[torch.randperm(ROWS)]
        for step in range(steps):
            rows = mixed[step * params["batch_size"] : (step + 1) * params["batch_size"]]
            model.train()
            loss = measure(model(features[rows]), labels[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            trained = epoch + (step + 1) / steps
            while levels and trained >= levels[0] - 1e-9:
                trial.report(
                    levels.pop(0), _measured(model, features[unknown], labels[unknown], loss)
                )


def _measured(
    model: nn.Module, features: torch.Tensor, labels: torch.Tensor, loss: torch.Tensor
) -> dict[str, float]:
    """The accuracy and the loss on validation rows, and the loss of the last batch."""
    model.eval()
    with torch.no_grad():
        scores = model(features)
    return {
        "accuracy": float((scores.argmax(1) == labels).float().mean()),
        "loss": float(nn.functional.cross_entropy(scores, labels)),
        "train_loss": float(loss.detach()),
    }
