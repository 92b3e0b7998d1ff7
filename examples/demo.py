"""A real study in about two minutes: which library does this sentence come from?

Makes a data set from the docstrings of installed libraries, searches the settings of a small
transformer that is trained on it from scratch, and shows what the search gained. All files are in
./demo afterwards; those of earlier demos move to ./demo/earlier.

    make demo
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

import demo_data
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import Trial
from hpsearch.errors import HpsearchError
from hpsearch.store.store import Store
from trials import tasks

FOLDER = Path("demo")
EARLIER = "earlier"

STUDY = """\
# Which library does this sentence come from? Written by examples/demo.py. To experiment, change
# this file and run it under another study name.
study: sentences
seed: 1
task:
  kind: text_classification
  train: sentences.csv
  validation: 0.2
  text: text
  label: label
  model: {scratch: {layers: 2, width: 64, heads: 4}}
settings:
  max_length: 48
space:
  learning_rate: {type: float, low: 1.0e-4, high: 1.0e-2, log: true}
  batch_size: {type: categorical, choices: [16, 32, 64, 128]}
  warmup: {type: float, low: 0.0, high: 0.3}
  schedule: {type: categorical, choices: [linear, cosine, one_cycle]}
  weight_decay: {type: float, low: 1.0e-3, high: 0.3, log: true}
  label_smoothing: {type: float, low: 0.0, high: 0.3}
objective: {metric: accuracy, direction: maximize}
budget:
  trials: 24
  wall_clock: 2m
  per_trial: {epochs: 6}
search:
  sampler: curve_gp
  pruner: {kind: promotion, eta: 3}
resources: {workers: auto, cpu: 1}
"""


@dataclass(frozen=True)
class TrainingTime:
    """Seconds of training spent, and what the full budget would have taken for every trial."""

    spent: float
    full: float
    stopped: int
    """How many trials stopped short of the full budget."""

    @property
    def saved(self) -> float:
        """Seconds that pruning saved."""
        return self.full - self.spent


def main() -> int:
    """Make the data, run the study and print its results."""
    start_afresh(FOLDER)
    study, data, database = FOLDER / "study.yaml", FOLDER / "sentences.csv", FOLDER / "hpsearch.db"
    storage = f"sqlite:///{database}"
    try:
        counts = demo_data.build(data)
    except HpsearchError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    study.write_text(STUDY, encoding="utf-8")
    print(
        f"{sum(counts.values())} sentences of {len(counts)} libraries: {', '.join(counts)}",
        flush=True,
    )

    command = [
        "run",
        str(study),
        "--storage",
        storage,
        "--checkpoints",
        str(FOLDER / "checkpoints"),
    ]
    print(f"$ hpsearch {' '.join(command)}", flush=True)
    if code := hpsearch(*command):
        return code
    name = yaml.safe_load(STUDY)["study"]
    print(f"\n$ hpsearch best {name} --top 5 --storage {storage}", flush=True)
    if code := hpsearch("best", name, "--top", "5", "--storage", storage):
        return code
    store = Store.open(storage, create=False)
    try:
        print("\n".join(summary(store.load(name).trials, yaml.safe_load(STUDY), FOLDER)))
    finally:
        store.close()
    print("\n".join(next_commands(name, storage)))
    return 0


def start_afresh(folder: Path) -> None:
    """Make an empty demo folder; move an earlier demo to a numbered folder in `earlier`."""
    folder.mkdir(exist_ok=True)
    left = [path for path in folder.iterdir() if path.name != EARLIER]
    if not left:
        return
    earlier = folder / EARLIER
    number = 1 + max((int(path.name) for path in earlier.glob("[0-9]*")), default=0)
    target = earlier / str(number)
    target.mkdir(parents=True)
    for path in left:
        path.rename(target / path.name)
    print(f"the previous demo was moved to {target}")


def hpsearch(*arguments: str) -> int:
    """Run the installed command as a user would, and return its exit code."""
    return subprocess.run(
        [str(Path(sys.executable).with_name("hpsearch")), *arguments], check=False
    ).returncode


def summary(trials: list[Trial], study: dict[str, Any], folder: Path) -> list[str]:
    """What the search gained over the default settings and over guessing, and the time it saved.

    Args:
        trials: All trials of the study.
        study: The study file.
        folder: The folder that its relative paths start from.
    """
    total = float(study["budget"]["per_trial"]["epochs"])
    best = max(t.value for t in trials if t.state is State.COMPLETE and t.value is not None)
    default = next((t.value for t in trials if t.role == "default" and t.value is not None), None)
    times = training_time(trials, total)
    held_out = study["task"]["validation"]
    lines = ["", f"accuracy on the same {held_out:.0%} of the sentences, held out from training:"]
    lines.append(f"  {best:6.1%}  the best configuration found")
    if default is not None:
        lines.append(f"  {default:6.1%}  the task's default settings (the study's first trial)")
    lines.append(
        f"  {majority_share(study['task'], folder):6.1%}  always guessing the most frequent library"
    )
    lines += [
        "",
        f"pruning saved {times.saved:.0f} of {times.full:.0f} seconds of training "
        f"({times.saved / times.full:.0%}):",
        f"  {len(trials)} trials trained {times.spent:.0f} s, "
        f"{times.stopped} of them less than {total:g} epochs;",
        "  the saved time is what those would have needed for the rest, at the speed of each",
    ]
    return lines


def training_time(trials: Iterable[Trial], total: float) -> TrainingTime:
    """Training time spent, and the time that all trials would have taken for the full budget.

    Each trial has its own speed: the resource of its last report divided by its training time until
    then, without evaluation and start-up. Trials without a report are left out.

    Args:
        trials: The trials.
        total: The full trial budget.
    """
    spent = full = 0.0
    stopped = 0
    for trial in trials:
        last = max(trial.reports.values(), key=lambda report: report.resource, default=None)
        if last is None or not last.elapsed:
            continue
        spent += last.elapsed
        full += last.elapsed * max(1.0, total / last.resource)
        stopped += last.resource < total
    return TrainingTime(spent, full, stopped)


def majority_share(task: dict[str, Any], folder: Path) -> float:
    """The accuracy of always predicting the most frequent label of the validation data."""
    labels = Counter(tasks.load(task, folder).prepare({}).validation_labels.tolist())
    return max(labels.values()) / labels.total()


def next_commands(name: str, storage: str) -> list[str]:
    """Commands to try on the finished study."""
    commands = {
        f"hpsearch status {name}": "how the study went",
        f"hpsearch trials {name} --where 'batch_size = 16'": "query the trials",
        f"hpsearch show {name} 0": "one trial and the decisions about it",
        f"hpsearch report {name} -o {FOLDER}/report.html": "what happened, on one page",
        f"hpsearch dashboard {name}": "the same as live pages, with every trial",
        f"hpsearch best {name} --format yaml > {FOLDER}/best.yaml": "the best settings as a file",
        f"python -m trials {FOLDER}/best.yaml --out {FOLDER}/model": "train them again",
    }
    width = max(map(len, commands))
    lines = [f"  {command:{width}}  # {why}" for command, why in commands.items()]
    programs = Path(sys.executable).parent
    found = shutil.which("hpsearch")
    if found is None or Path(found).parent != programs:
        lines.insert(0, f"  source {os.path.relpath(programs)}/activate")
    return ["", "to try next:", f"  export HPSEARCH_STORAGE={storage}", *lines]


if __name__ == "__main__":
    sys.exit(main())
