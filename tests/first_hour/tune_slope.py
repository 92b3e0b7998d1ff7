"""Searches a learning rate with Ray Tune."""

from pathlib import Path

from ray import tune
from ray.tune.schedulers import ASHAScheduler


def train(config):
    weight = 0.0
    for _ in range(4):
        gradient = 2 * (weight - 3.0)
        weight -= config["lr"] * gradient
        tune.report({"loss": (weight - 3.0) ** 2})


tuner = tune.Tuner(
    train,
    param_space={"lr": tune.loguniform(1e-3, 1.0), "momentum": 0.0},
    tune_config=tune.TuneConfig(
        metric="loss",
        mode="min",
        num_samples=4,
        scheduler=ASHAScheduler(max_t=4, grace_period=2, reduction_factor=2),
    ),
    run_config=tune.RunConfig(name="slope", storage_path=Path("results").resolve()),
)
results = tuner.fit()
best = results.get_best_result()
print(f"best lr: {best.config['lr']:.4f} with loss {best.metrics['loss']:.4f}")
