"""The final training: one configuration at its full budget, as a model to use.

The folder in the making (`trials.tasks.final.versions`) is named after everything that decides on
the weights: settings, seed, budget, data. Only the same training continues an interrupted one.
"""

import hashlib
import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trials.checkpoints.checkpoints import Checkpoints
from trials.checkpoints.disk.whole_folders import digest_of_file
from trials.contract import Budget, Goal, Report, Setup, Task, TaskError
from trials.running.arithmetic import Arithmetic
from trials.running.runner import Runner
from trials.tasks.final.parts import FinalParts
from trials.tasks.final.versions import checkpoints_in, model_in, put_next, workplace
from trials.tasks.workloads.trained_task import BuiltInTask

ABOUT = "training.json"  # the file beside the model with its origin and its metrics


@dataclass(frozen=True)
class Plan:
    """A final training."""

    params: Mapping[str, Any]
    seed: int
    budget: Budget
    joined: bool
    """Train on training and validation data together, to the end: without validation data it
    neither stops early nor chooses a checkpoint."""
    device: str
    provenance: Mapping[str, Any]
    """More facts for `training.json`, such as the origin of the configuration."""
    arithmetic: Arithmetic
    goal: Goal | None = None


@dataclass(frozen=True)
class _Job:
    task: BuiltInTask[Any]
    parts: FinalParts
    plan: Plan
    params: Mapping[str, Any]
    data: Any
    test: Any | None


def train(
    task: Task,
    plan: Plan,
    home: Path,
    say: Callable[[str], None],
    should_stop: Callable[[], bool] = lambda: False,
    watch: Callable[[Report], None] = lambda _: None,
) -> Path | None:
    """Train, evaluate and write the next version. Returns the version's folder; None if
    `should_stop` ended the training, which the same call continues. Raises TaskError if the task
    cannot be trained like this, its data or its settings do not fit, or another process trains the
    same.

    Args:
        say: Receives the progress, one line at a time.
        should_stop: Called after every step.
    """
    job = _job(task, plan)
    files = {key: sha256(path) for key, path in job.parts.files.items()}
    fingerprints = {"data": job.parts.fingerprint(job.data), "files": files}
    with workplace(home, _identity(plan, fingerprints)) as place:
        folder = checkpoints_in(place)
        last = Checkpoints(folder).last
        setup = Setup(job.params, plan.seed, plan.budget, folder, last, plan.device, plan.goal)
        outcome = _run(job, setup, say, should_stop, watch)
        if outcome is None:
            return None
        with model_in(place, newest=plan.joined) as model:
            about = _complete(job, model, setup)
            about |= {"fingerprint": fingerprints, **outcome}
            text = json.dumps(about, indent=2, default=str) + "\n"
            file = model / ABOUT
            file.write_text(text, encoding="utf-8")
            version = put_next(model, home)
    # The version is on the disk, so its checkpoints may go.
    shutil.rmtree(place, ignore_errors=True)
    return version


def _job(task: Task, plan: Plan) -> _Job:
    if not isinstance(task, BuiltInTask):
        what = "has no final training; train it with python -m trials"
        raise TaskError.at("task.kind", what)
    parts = FinalParts(task)
    params = dict(plan.params)
    if plan.joined:
        params["patience"] = None
    data = task.prepare(params)
    test = parts.on_test(params)
    return _Job(task, parts, plan, params, data, test)


def _run(
    job: _Job,
    setup: Setup,
    say: Callable[[str], None],
    should_stop: Callable[[], bool],
    watch: Callable[[Report], None],
) -> dict[str, Any] | None:
    """Train to the end. Returns the reason of the end, and findings; None if it was stopped, and
    has saved itself."""
    if setup.resume_from is not None:
        say("continuing where the same training was interrupted")
    data = job.parts.joined(job.data) if job.plan.joined else job.data
    runner = Runner(job.task, data, setup)
    try:
        for report in runner.advance(float("inf"), should_stop):
            runner.recorded(report.resource)
            watch(report)
            progress = _progress(report, job.plan)
            say(progress)
        if runner.finished is None:
            runner.save()
            return None
        findings = None
        # The loss on validation data that was trained on shows nothing.
        if not job.plan.joined:
            findings = [finding.as_plain() for finding in runner.findings()]
        return {"finished": runner.finished, "findings": findings}
    finally:
        runner.close()


def _progress(report: Report, plan: Plan) -> str:
    names = ["train_loss"]
    if not plan.joined:
        monitored = plan.params.get("monitor", "loss")
        names += ["loss", str(monitored)]
    values = []
    for name in dict.fromkeys(names):
        value = report.metrics.get(name)
        if value is not None:
            values.append(f"{name} {value:.4g}")
    metrics = ", ".join(values)
    budget = plan.budget
    reached = f"{report.resource:g} of {budget.total:g} {budget.unit.value}"
    return f"{reached}: {metrics}"


def _complete(job: _Job, model: Path, setup: Setup) -> dict[str, Any]:
    plan, task, budget = job.plan, job.task, job.plan.budget
    task.complete(model, job.data, setup)
    validation = test = None
    if not plan.joined:
        validation = task.evaluate(model, job.data, setup)
    if job.test is not None:
        test = task.evaluate(model, job.test, setup)
    return {
        **plan.provenance,
        "data": "train+validation" if plan.joined else "train",
        "settings": _settings(job),
        "seed": plan.seed,
        "budget": {budget.unit.value: budget.total},
        "device": plan.device,
        "arithmetic": plan.arithmetic.as_plain(),
        "metrics": {"validation": validation, "test": test},
    }


def _settings(job: _Job) -> dict[str, Any]:
    table = job.task.settings or {}
    defaults = {name: setting.default for name, setting in table.items()}
    return {**defaults, **job.params}


def _identity(plan: Plan, fingerprints: Mapping[str, Any]) -> str:
    budget = plan.budget
    levels = [budget.unit.value, budget.total, budget.report_at]
    computed = plan.arithmetic.as_plain()
    params = dict(plan.params)
    deciding = [params, plan.seed, levels, plan.joined, plan.device, computed, fingerprints]
    text = json.dumps(deciding, sort_keys=True, default=str)
    digest = hashlib.sha256(text.encode())
    return digest.hexdigest()[:16]


def sha256(path: Path) -> str:
    """The SHA-256 of a file, or of the names and contents of a folder's files."""
    if not path.is_dir():
        return digest_of_file(path)
    files = sorted(file for file in path.rglob("*") if file.is_file())
    lines = [f"{digest_of_file(file)} {file.relative_to(path).as_posix()}\n" for file in files]
    text = "".join(lines)
    return hashlib.sha256(text.encode()).hexdigest()
