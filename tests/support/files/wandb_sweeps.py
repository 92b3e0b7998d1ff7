"""Sweeps of W&B in the shapes that people write them in, each with its script and one
configuration. The scripts know nothing of hpsearch."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class SweepCase:
    """A sweep and its script.

    Args:
        sweep: The file of the sweep.
        params: The parameters of one trial, as the study has them.
        config: The same with all constants, as W&B has it.
        metric: The name of what is compared.
        script: What is in `train.py`.
        reports: How many reports a trial makes.
    """

    sweep: str
    params: dict[str, Any]
    config: dict[str, Any]
    metric: str
    script: str
    reports: int


CONFIG_ALONE = SweepCase(
    """
program: train.py
name: config alone
project: demo
method: bayes
metric: {name: val_loss, goal: minimize}
parameters:
  lr: {distribution: log_uniform_values, min: 1e-4, max: 0.1}
  dropout: {min: 0.0, max: 0.7}
  optimizer: {values: [adam, sgd]}
  epochs: {value: 4}
early_terminate: {type: hyperband, min_iter: 2, eta: 2}
run_cap: 3
""",
    {"lr": 0.01, "dropout": 0.25, "optimizer": "adam"},
    {"lr": 0.01, "dropout": 0.25, "optimizer": "adam", "epochs": 4},
    "val_loss",
    """
import wandb

wandb.login()
wandb.init(project="demo", config={"lr": 0.5, "dropout": 0.5, "optimizer": "none", "width": 3})
settings = wandb.config
wandb.config.update({"momentum": 0.9})
known = dict(wandb.config)
assert known["width"] == 3 and known["momentum"] == 0.9 and settings.get("nothing", 7) == 7
for epoch in range(settings.epochs):
    penalty = 0.0 if settings["optimizer"] == "adam" else 1.0
    loss = settings.lr * 10 + settings.get("dropout") + penalty + 1 / (epoch + 1)
    wandb.log({"train_loss": loss / 2}, step=epoch)
    wandb.log({"val_loss": loss, "text": "is left out"}, step=epoch)
""",
    reports=4,
)

ARGUMENTS = SweepCase(
    """
program: train.py
method: random
metric: {name: "Valid Acc", goal: maximize}
parameters:
  learning-rate: {min: 0.001, max: 0.1}
  batch_size: {distribution: q_log_uniform_values, q: 8, min: 16, max: 64}
run_cap: 2
""",
    {"learning-rate": 0.02, "batch_size": 32},
    {"learning-rate": 0.02, "batch_size": 32},
    "Valid Acc",
    """
import argparse
import wandb

parser = argparse.ArgumentParser()
parser.add_argument("--learning-rate", type=float, default=0.5)
parser.add_argument("--batch_size", type=int, default=1)
given = parser.parse_args()
with wandb.init(config=vars(given)) as run:
    for epoch in range(3):
        run.log({"epoch": epoch}, commit=False)
        run.log({"Valid Acc": given.learning_rate + given.batch_size + epoch})
""",
    reports=4,
)

OWN_AGENT = SweepCase(
    """
program: train.py
command: ["${interpreter}", "${program}"]
method: random
metric: {name: loss, goal: minimize}
parameters:
  size: {distribution: q_uniform, min: 8, max: 32, q: 8}
  rate: {distribution: uniform, min: 1e-3, max: 1}
  steps: {value: 2}
""",
    {"size": 24, "rate": 0.2},
    {"size": 24, "rate": 0.2, "steps": 2},
    "loss",
    """
import wandb


def train(config=None):
    with wandb.init(config=config):
        config = wandb.config
        for step in range(config.steps):
            wandb.log({"loss": config.size * config.rate / (step + 1)})


if __name__ == "__main__":
    wandb.login()
    wandb.agent(wandb.sweep({"method": "random"}, project="demo"), train, count=2)
""",
    reports=3,
)

NESTED = SweepCase(
    """
program: train.py
method: grid
metric: {name: accuracy, goal: maximize}
command: ["${env}", "${interpreter}", "${program}"]
parameters:
  model:
    parameters:
      depth: {values: [1, 2, 3]}
      kind: {value: mlp}
      inner: {parameters: {rate: {values: [!!float 1, 0.5]}}}
  layers: {values: [[8, 8], [16]]}
""",
    {"model.depth": 2, "model.inner.rate": 0.5, "layers": [8, 8]},
    {"model": {"depth": 2, "kind": "mlp", "inner": {"rate": 0.5}}, "layers": [8, 8]},
    "accuracy",
    """
import sys
import wandb

assert len(sys.argv) == 1
run = wandb.init(config={"model": {"depth": 9, "extra": 1}})
run.define_metric("accuracy", summary="max")
model = wandb.config.model
assert model["extra"] == 1 and model["kind"] == "mlp"
for epoch, gain in enumerate((0.1, 0.9, 0.3)):
    width = sum(wandb.config.layers)
    wandb.log({"accuracy": gain * model["depth"] * model["inner"]["rate"] / width})
""",
    reports=4,
)

HYDRA = SweepCase(
    """
program: train.py
method: bayes
metric: {name: test.loss}
command: ["${env}", python, "${program}", run=1, "${args_no_hyphens}"]
parameters:
  optim.lr: {distribution: uniform, min: 0.01, max: 0.5}
  optim.name: {values: [adam]}
""",
    {"optim.lr": 0.25, "optim.name": "adam"},
    {"optim.lr": 0.25, "optim.name": "adam"},
    "test.loss",
    """
import sys
import wandb

given = dict(word.split("=", 1) for word in sys.argv[1:])
assert given["run"] == "1" and given["optim.name"] == "adam"
wandb.init()
assert wandb.config["optim.lr"] == float(given["optim.lr"])
for epoch in range(2):
    wandb.log({"test": {"loss": float(given["optim.lr"]) + epoch}})
""",
    reports=3,
)

SUMMARY_ALONE = SweepCase(
    """
program: train.py
method: random
metric: {name: best_loss, goal: minimize}
command: ["${env}", NAME=of a run, "${interpreter}", "${program}", "--file", "${args_json_file}",
          "--home=${envvar:SWEEP_HOME}", "${args_no_boolean_flags}"]
parameters:
  wide: {values: [true, false]}
  rate: {min: 0.0, max: 1.0}
  seed: {value: 3}
""",
    {"wide": True, "rate": 0.5},
    {"wide": True, "rate": 0.5, "seed": 5},
    "best_loss",
    """
import argparse, json, os
import wandb

parser = argparse.ArgumentParser()
parser.add_argument("--file")
parser.add_argument("--home")
parser.add_argument("--wide", action="store_true")
parser.add_argument("--rate", type=float)
parser.add_argument("--seed", type=int)
given = parser.parse_args()
assert given.home == "here and there" and os.environ["NAME"] == "of a run"
with wandb.init(mode="online") as run:
    assert json.load(open(given.file)) == dict(wandb.config)
    for epoch in range(3):
        wandb.log({"loss": given.rate})
    run.summary["nothing"] = 1
    wandb.run.summary.update({"best_loss": given.rate + given.wide + given.seed})
""",
    reports=1,
)

CASES = {
    "config alone": CONFIG_ALONE,
    "arguments": ARGUMENTS,
    "own agent": OWN_AGENT,
    "nested": NESTED,
    "hydra": HYDRA,
    "summary alone": SUMMARY_ALONE,
}
