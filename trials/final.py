"""The final training: one configuration at its full budget, kept as a model to use.

    models/NAME/
      v1/                    config.json, model.safetensors, tokenizer files, training.json
      v2/                    the next one; a version is never overwritten
      .training-3f2a9c…/     one in the making, with its checkpoints: the same request continues it

The folder in the making is named after everything that decides on the weights (settings, seed, budget, data), so that
what continues an interrupted training is the same training. A version is renamed into its place once it is whole.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from trials.checkpoint import Checkpoints
from trials.contract import Budget, Problem, Report, Setup, Task, TaskError
from trials.export import Export
from trials.places import MANIFEST
from trials.runner import Runner

ABOUT = "training.json"
"""Beside the model: how it came to be, and how good it is."""
_OF_THE_RUN = (MANIFEST, "state.pt")
"""Files of a checkpoint that only a run needs."""


class Parts(Protocol):
    """What a task provides for a final training."""

    @property
    def files(self) -> Mapping[str, Path]:
        """The data files, or folders, by the key that names them."""

    def fingerprint(self, data: Any) -> str:
        """SHA-256 of the prepared training and validation data."""

    def joined(self, data: Any) -> Any:
        """Data that trains on the validation samples too."""

    def on_test(self, data: Any, params: Mapping[str, Any]) -> Any | None:
        """Data with the test samples where the validation samples were; None without a test file."""

    def evaluate(self, folder: Path, data: Any, setup: Setup) -> dict[str, float]:
        """The metrics of the model in `folder` on the validation samples of `data`."""

    def export(self, folder: Path, data: Any, setup: Setup, format_: Export) -> dict[str, Any]:
        """Write the model in `folder` in another format beside it, and say what was written."""


@runtime_checkable
class Finishable(Protocol):
    """A task whose configurations can be trained for good."""

    def final(self) -> Parts:
        """Its parts."""


@dataclass(frozen=True)
class Plan:
    """A final training.

    Args:
        params: Every setting of the run.
        seed: Everything random in it derives from this.
        budget: The full trial budget.
        joined: Train on training and validation data together. Nothing is left then to choose a checkpoint or to stop
            early by: it trains to the end and keeps the last state.
        device: A torch device name.
        export: Write the model in this format too.
        provenance: What else to write into `training.json`, such as where the configuration comes from.
    """

    params: Mapping[str, Any]
    seed: int
    budget: Budget
    joined: bool
    device: str
    export: Export | None
    provenance: Mapping[str, Any]


def train(
    task: Task, plan: Plan, home: Path, say: Callable[[str], None], should_stop: Callable[[], bool] = lambda: False
) -> Path | None:
    """Train, evaluate and write the next version.

    Args:
        task: The training job.
        plan: What to train.
        home: The folder of the versions; made where it is missing.
        say: Is told how it goes, a line at a time.
        should_stop: Asked after every step.

    Returns: The version's folder; None where `should_stop` ended it, everything saved for the same call to go on.

    Raises:
        TaskError: The task cannot be trained like this, its data or its settings do not fit, or another process is
            training the same.
        ExportError: The model cannot be exported; its training is kept for a call that asks for something else.
    """
    if not isinstance(task, Finishable):
        raise TaskError([Problem("task.kind", "has no final training; train it with python -m trials")])
    parts = task.final()
    params = {**plan.params, "patience": None} if plan.joined else dict(plan.params)
    data = task.prepare(params)
    test = parts.on_test(data, params)  # before anything is trained, so that its mistakes are found now
    prints = {"data": parts.fingerprint(data), "files": {key: sha256(path) for key, path in parts.files.items()}}
    with _workplace(home, _identity(plan, prints)) as place:
        last = Checkpoints(place / "checkpoints").last
        setup = Setup(params, plan.seed, plan.budget, place / "checkpoints", last, plan.device)
        if last is not None:
            say("going on where the same training was interrupted")
        outcome = _run(task, setup, parts.joined(data) if plan.joined else data, plan, say, should_stop)
        if outcome is None:
            return None
        model = _model_from(place, plan.joined)
        metrics = {
            "validation": None if plan.joined else parts.evaluate(model, data, setup),
            "test": None if test is None else parts.evaluate(model, test, setup),
        }
        about = {
            **plan.provenance,
            "data": "train+validation" if plan.joined else "train",
            "settings": _settings(task, params),
            "seed": plan.seed,
            "budget": {plan.budget.unit.value: plan.budget.total},
            "device": plan.device,
            "fingerprint": prints,
            **outcome,
            "metrics": metrics,
            "export": parts.export(model, data, setup, plan.export) if plan.export is not None else None,
        }
        (model / ABOUT).write_text(json.dumps(about, indent=2, default=str) + "\n", encoding="utf-8")
        version = _publish(model, home)
    shutil.rmtree(place, ignore_errors=True)
    return version


def _run(
    task: Task, setup: Setup, data: Any, plan: Plan, say: Callable[[str], None], should_stop: Callable[[], bool]
) -> dict[str, Any] | None:
    """Train to the end, or save where it is asked to stop (None); why it ended, and what its course showed."""
    runner = Runner(task, data, setup)
    try:
        for report in runner.advance(float("inf"), should_stop):
            runner.recorded(report.resource)
            say(_progress(report, plan))
        if runner.finished is None:
            runner.save()
            return None
        # With the validation data trained on, what its loss shows is nothing.
        findings = None if plan.joined else [finding.as_plain() for finding in runner.findings()]
        return {"finished": runner.finished, "findings": findings}
    finally:
        runner.close()


def _progress(report: Report, plan: Plan) -> str:
    names = ["train_loss"] if plan.joined else ["train_loss", "loss", str(plan.params.get("monitor", "loss"))]
    told = [f"{name} {report.metrics[name]:.4g}" for name in dict.fromkeys(names) if name in report.metrics]
    return f"{report.resource:g} of {plan.budget.total:g} {plan.budget.unit.value}: {', '.join(told)}"


def _settings(task: Task, params: Mapping[str, Any]) -> dict[str, Any]:
    """Every setting with the value it had, defaults included."""
    return {**{name: setting.default for name, setting in (task.settings or {}).items()}, **params}


# ------------------------------------------------------------------------------------------------------- folders


def _identity(plan: Plan, prints: Mapping[str, Any]) -> str:
    """A name for what decides on the weights."""
    budget = [plan.budget.unit.value, plan.budget.total, plan.budget.report_at]
    deciding = [dict(plan.params), plan.seed, budget, plan.joined, plan.device, prints]
    return hashlib.sha256(json.dumps(deciding, sort_keys=True, default=str).encode()).hexdigest()[:16]


@contextmanager
def _workplace(home: Path, identity: str) -> Iterator[Path]:
    """The folder of a model in the making, to oneself.

    Raises:
        TaskError: Another process is at work in it.
    """
    place = home / f".training-{identity}"
    place.mkdir(parents=True, exist_ok=True)
    with (place / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            what = f"another process is training this in {place}; wait for it, or stop it"
            raise TaskError([Problem("--out", what)]) from None
        yield place


def _model_from(place: Path, joined: bool) -> Path:
    """Copy the chosen checkpoint's model, without what only a run needs."""
    checkpoints = Checkpoints(place / "checkpoints")
    source = checkpoints.last if joined else checkpoints.best or checkpoints.last
    assert source is not None, "a finished run has saved itself"
    model = place / "model"
    shutil.rmtree(model, ignore_errors=True)  # of an attempt that did not come to its end
    shutil.copytree(source, model, ignore=shutil.ignore_patterns(*_OF_THE_RUN))
    return model


def _publish(model: Path, home: Path) -> Path:
    """Move a whole model to the next version that is free."""
    taken = [int(path.name[1:]) for path in home.glob("v*") if path.name[1:].isdecimal()]
    number = max(taken, default=0) + 1
    while True:
        version = home / f"v{number}"
        try:
            version.mkdir()  # takes the number: of two processes, one
        except FileExistsError:
            number += 1
            continue
        return model.rename(version)  # replaces an empty folder only


def sha256(path: Path) -> str:
    """The SHA-256 of a file; of a folder, that of its files' names and contents."""
    if path.is_dir():
        files = sorted(file for file in path.rglob("*") if file.is_file())
        listed = "".join(f"{sha256(file)} {file.relative_to(path).as_posix()}\n" for file in files)
        return hashlib.sha256(listed.encode()).hexdigest()
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
