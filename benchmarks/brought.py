"""Programs that somebody brings: what it takes to search them, and if what is told of them is so.

    python benchmarks/brought.py [--shapes NAMES] [--trials 12] [--json FILE] [--quick]

Each program imitates how a public training script starts, prints, keeps or does not keep its state,
and ends: a graph network that imports for seconds, Keras' bars, skorch's table, PPO's blocks,
LightGBM's rounds, Optuna with early stopping, a grid in a shell, and more. It is taken over as the
documentation says: `hpsearch init`, the pattern that `hpsearch check` proposes, `hpsearch run`.

For each program: the lines of the study file that were changed by hand, the attempts begun, the
wall clock as a share of that of the same trials in full (`pruner: none`), the time
that `check` told as a share of what `run` then took with Ray's start, if that lies in its range,
and if the winner ends at the value that is shown when it runs by itself.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import yaml

import tables

HPSEARCH = Path(sys.executable).with_name("hpsearch")
TRIALS = 12
TOLD = re.compile(
    r"the study will take (?:at most )?(?:about )?(.+?) on \d+ workers?, between (.+?) and (.+?):"
)
PARTS = {"h": 3600.0, "min": 60.0, "s": 1.0, "ms": 0.001}

COMMON = """
import argparse, math, random, sys, time

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0.1)
parser.add_argument("--hidden", type=int, default=64)
parser.add_argument("--epochs", type=int, default=9)
parser.add_argument("--log-interval", type=int, default=10)
options, _ = parser.parse_known_args()


def accuracy(epoch):
    best = 0.9 - 0.15 * math.log10(options.lr / 0.03) ** 2 + 0.02 * math.log2(options.hidden / 64)
    return best * (1 - math.exp(-0.7 * epoch)) - 0.004 * max(0, epoch - 7)


def epochs():
    time.sleep(START)
    for epoch in range(1, options.epochs + 1):
        time.sleep(PACE)
        yield epoch, 1.2 - accuracy(epoch), accuracy(epoch)


"""
"""A training whose validation accuracy falls a little at its end."""


class Shape(NamedTuple):
    """How a program prints.

    Args:
        code: What it does with each epoch, its loss and its validation accuracy.
        metric: The metric that its author looks at.
        start_s: The seconds until its first step.
        grid: A script of a shell that calls it; None if it is called by its command line.
        file: The study file for its function; None if it is a command or a script of Optuna's.
    """

    code: str
    metric: str = "accuracy"
    start_s: float = 0.5
    grid: str | None = None
    file: str | None = None


BY_HAND = """
if len(sys.argv) > 1:
    for epoch, loss, value in epochs():
        print(f"{value:.6f}")
"""
FUNCTION = """
study: brought
task: {kind: program:train}
space:
  lr: {type: float, low: 0.01, high: 1.0, log: true}
  hidden: {type: int, low: 16, high: 256, log: true}
objective: {metric: accuracy, direction: maximize}
budget: {trials: 20, per_trial: {epochs: 9}}
search: {pruner: {kind: promotion, eta: 3, first_rung: 1}}
resources: {workers: auto, cpu: 1, gpu: 0}
"""
TRAINER = """
import torch
from transformers import Trainer, TrainerCallback, TrainingArguments

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.rows = torch.nn.Linear(1, 1)

    def forward(self, x, labels=None):
        y = self.rows(x)
        return {"loss": ((y - labels) ** 2).mean(), "logits": y}

def train(params, trial):
    options.lr, options.hidden = params["lr"], params["hidden"]
    told = epochs()

    class Told(TrainerCallback):
        def on_epoch_end(self, *given, **more):
            epoch, loss, value = next(told)
            trial.report(epoch, {"accuracy": round(value, 6)})

    given = TrainingArguments("unused", num_train_epochs=9, save_strategy="no", report_to=[],
                              logging_strategy="no", disable_tqdm=True, use_cpu=True)
    rows = [{"x": torch.ones(1), "labels": torch.ones(1)}] * 8
    Trainer(Model(), given, train_dataset=rows, callbacks=[Told()]).train()
"""


SHAPES = {
    "graph network": Shape(
        'for epoch, loss, value in epochs(): print(f"Epoch: {epoch:03d}, Loss: {loss:.4f}, '
        'Train: {value + 0.05:.4f}, Val: {value:.6f}", flush=True)',
        start_s=4.0,
    ),
    "Keras bars": Shape(
        "for epoch, loss, value in epochs():\n"
        '    print(f"Epoch {epoch}/{options.epochs}")\n'
        "    for part in range(3):\n"
        '        print(f"\\r{part + 1}/3 [=====>....] - ETA: 0s - accuracy: {value + 0.05:.4f} - '
        'loss: {loss:.4f}", end="")\n'
        '    print(f"\\r3/3 [==========] - 0s 5ms/step - accuracy: {value + 0.05:.4f} - '
        'loss: {loss:.4f} - val_accuracy: {value:.6f} - val_loss: {loss + 0.1:.4f}", flush=True)\n'
    ),
    "Keras lines": Shape(
        "for epoch, loss, value in epochs():\n"
        '    print(f"Epoch {epoch}/{options.epochs}")\n'
        '    print(f"3/3 - 1s - 300ms/step - accuracy: {value + 0.05:.4f} - loss: {loss:.4f} - '
        'val_accuracy: {value:.6f} - val_loss: {loss + 0.1:.4f}", flush=True)\n'
    ),
    "skorch": Shape(
        'print("  epoch    train_loss    valid_acc    valid_loss     dur")\n'
        'print("-------  ------------  -----------  ------------  ------")\n'
        "for epoch, loss, value in epochs():\n"
        '    print(f"{epoch:7d}        \\x1b[36m{loss:.4f}\\x1b[0m     \\x1b[32m{value:.6f}\\x1b[0m'
        '        {loss + 0.1:.4f}  0.1234", flush=True)\n'
    ),
    "Lightning bar": Shape(
        "for epoch, loss, value in epochs():\n"
        "    for part in (1, 2):\n"
        '        print(f"\\rEpoch {epoch - 1}: {50 * part}%|####| {part}/2 [00:01<00:00, 1.00it/s, '
        'v_num=0, train_acc={value + 0.05:.3f}, val_acc={value:.6f}]", end="", flush=True)\n'
        "print()\n",
    ),
    "Hugging Face": Shape(
        "for epoch, loss, value in epochs():\n"
        "    print({'loss': round(loss, 4), 'learning_rate': options.lr, 'epoch': float(epoch)})\n"
        "    print({'eval_loss': round(loss + 0.1, 4), 'eval_accuracy': round(value, 6), "
        "'eval_runtime': 0.5, 'epoch': float(epoch)}, flush=True)\n"
    ),
    "logging": Shape(
        "for epoch, loss, value in epochs():\n"
        '    stamp = f"2026-01-31 12:00:{epoch:02d},123 INFO [rank0] train.py:42"\n'
        '    print(f"{stamp} epoch {epoch} | loss {loss:.4f} | acc_train {value + 0.05:.4f} | '
        'acc_val {value:.6f}", flush=True)\n'
    ),
    "PPO": Shape(
        "for epoch, loss, value in epochs():\n"
        '    print("-" * 40)\n'
        '    print(f"| rollout/           |             |")\n'
        '    print(f"|    ep_rew_mean     | {value:.6f}    |")\n'
        '    print(f"| time/              |             |")\n'
        '    print(f"|    iterations      | {epoch}           |")\n'
        '    print("-" * 40, flush=True)\n',
        metric="ep_rew_mean",
    ),
    "boosting": Shape(
        "for epoch, loss, value in epochs():\n"
        "    print(f\"[{epoch}]\\ttrain's auc: {value + 0.05:.6f}\\tvalid_0's auc: {value:.6f}\", "
        "flush=True)\n",
        metric="auc",
    ),
    "JSON": Shape(
        "import json\n"
        "for epoch, loss, value in epochs():\n"
        '    print(json.dumps({"epoch": epoch, "train_accuracy": value + 0.05, '
        '"val_accuracy": round(value, 6)}), flush=True)\n'
    ),
    "CSV": Shape(
        'print("epoch,train_loss,val_accuracy")\n'
        "for epoch, loss, value in epochs():\n"
        '    print(f"{epoch},{loss:.4f},{value:.6f}", flush=True)\n'
    ),
    "a grid in a shell": Shape(
        'for epoch, loss, value in epochs(): print(f"epoch={epoch} loss={loss:.4f} '
        'val_accuracy={value:.6f}", flush=True)',
        grid="for lr in 0.3 0.1 0.03 0.01; do\n  for hidden in 32 64 128; do\n"
        "    PYTHON program.py --lr=$lr --hidden=$hidden --epochs 9\n  done\ndone\n",
    ),
    "an objective of Optuna": Shape(
        BY_HAND + "import optuna\n"
        "def objective(trial):\n"
        '    options.lr = trial.suggest_float("lr", 0.01, 1.0, log=True)\n'
        '    options.hidden = trial.suggest_int("hidden", 16, 256, log=True)\n'
        "    for epoch, loss, value in epochs():\n"
        "        trial.report(round(value, 6), epoch)\n"
        "        if trial.should_prune(): raise optuna.TrialPruned\n"
        "    return round(value, 6)\n"
        "if len(sys.argv) == 1:\n"
        '    study = optuna.create_study(study_name="brought", direction="maximize")\n'
        "    study.optimize(objective, n_trials=20)\n",
    ),
    "a function": Shape(
        BY_HAND + "def train(params, trial):\n"
        '    options.lr, options.hidden = params["lr"], params["hidden"]\n'
        "    for epoch, loss, value in epochs():\n"
        '        trial.report(epoch, {"accuracy": round(value, 6)})\n',
        file=FUNCTION,
    ),
    "Trainer that saves nothing": Shape(BY_HAND + TRAINER, file=FUNCTION),
}
PACE_S = 0.25


def run(name: str, trials: int, folder: Path) -> dict[str, Any]:
    """Take one program over and search it."""
    shape = SHAPES[name]
    code = COMMON.replace("START", str(shape.start_s)).replace("PACE", str(PACE_S)) + shape.code
    (folder / "program.py").write_text(code)
    command = f"{sys.executable} program.py --lr 0.1 --hidden 64 --epochs 9 --log-interval 10"
    words = ["--command", command]
    if shape.grid is not None:
        (folder / "grid.sh").write_text(shape.grid.replace("PYTHON", sys.executable))
        words = ["--from", "grid.sh"]
    row: dict[str, Any] = {"program": name, "changed": 0}
    row |= {"starts": None, "of_full": None, "told": None, "in_range": None, "value": "not run"}
    words += ["--metric", shape.metric]
    if "optuna" in code:
        words = ["--from", "program.py"]
    file = folder / "study.yaml"
    if shape.file is None:
        _call(folder, "init", str(file), *words, "--name", "brought")
    else:
        file.write_text(shape.file)
    text = file.read_text().replace("trials: 20", f"trials: {trials}")
    text = text.replace("resources: {workers: auto, cpu: 1", "resources: {workers: 2, cpu: 0.5")
    file.write_text(text)
    said = _call(folder, "check", "study.yaml")
    proposed = re.search(r"^.*?(report: .+?)\s*(?:#.*)?$", said, re.MULTILINE)
    if TOLD.search(said) is None and proposed is not None:
        file.write_text(text.replace("task:\n", f"task:\n  {proposed[1]}\n", 1))
        row["changed"] = 1
        said = _call(folder, "check", "study.yaml")
    begun = time.monotonic()
    _call(folder, "run", "study.yaml")
    real_s = time.monotonic() - begun
    status = _json(folder, "status", "brought")
    trained = _json(folder, "trials", "brought")
    if not trained:
        return row
    row["starts"] = _attempts(folder)
    took_s = status["budget"]["wall_clock_seconds"]["used"]
    told = TOLD.search(said)
    if told is not None:
        about_s, low_s, high_s = map(_seconds, told.groups())
        row |= {"told": about_s / real_s, "in_range": low_s <= real_s <= high_s}
    row["value"] = _verdict(folder, shape)
    parsed = yaml.safe_load(file.read_text())
    parsed |= {"study": "in-full", "search": {"pruner": "none"}}
    (folder / "full.yaml").write_text(yaml.safe_dump(parsed, sort_keys=False))
    _call(folder, "run", "full.yaml")
    in_full = _json(folder, "status", "in-full")["budget"]["wall_clock_seconds"]["used"]
    row["of_full"] = took_s / in_full
    return row


def _verdict(folder: Path, shape: Shape) -> str:
    """If the winner's value is what its program prints by itself."""
    best = _json(folder, "best", "brought")[0]
    params = [word for name, value in best["params"].items() for word in (f"--{name}", str(value))]
    by_hand = [sys.executable, "program.py", *params, "--epochs", "9"]
    printed = subprocess.run(by_hand, cwd=folder, capture_output=True, text=True, check=True)
    shown = f"{best['value']:.6f}".rstrip("0")
    return "right" if shown in printed.stdout else f"{shown} is not printed"


def _call(folder: Path, *words: str) -> str:
    environment = {**os.environ, "HPSEARCH_STORAGE": f"sqlite:///{folder}/studies.db"}
    command = [str(HPSEARCH), *words]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    return done.stdout + done.stderr


def _json(folder: Path, *words: str) -> Any:
    environment = {**os.environ, "HPSEARCH_STORAGE": f"sqlite:///{folder}/studies.db"}
    command = [str(HPSEARCH), *words, "--format", "json"]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    return json.loads(done.stdout) if done.returncode == 0 else None


def _attempts(folder: Path) -> int:
    import sqlite3

    with sqlite3.connect(folder / "studies.db") as database:
        (count,) = database.execute("SELECT count(*) FROM attempts").fetchone()
    return int(count)


def _seconds(text: str) -> float:
    parts = re.findall(r"([\d.]+) (h|min|ms|s)\b", text)
    return sum(float(number) * PARTS[unit] for number, unit in parts)


def main() -> None:
    """Run the programs and print a table."""
    given = tables.arguments(__doc__, {"shapes": ["JSON"], "trials": 4}, shapes=[""], trials=TRIALS)
    names = [name for name in given.shapes if name] or list(SHAPES)
    rows = []
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            rows.append(run(name, given.trials, Path(folder)))
        print(rows[-1], file=sys.stderr, flush=True)
    tables.show("Programs that somebody brings", rows, given.json)


if __name__ == "__main__":
    main()
