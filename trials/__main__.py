"""Train one configuration without a study: ``python -m trials SETTINGS.yaml --out DIR [--resume]``.

The file is a study file; of it `task`, `settings`, `budget.per_trial` and `seed` are used. Reports go to stdout as JSON
lines, everything else to stderr. `DIR/best` and `DIR/last` are checkpoints. On several GPUs it starts with
``torchrun --nproc-per-node 2 -m trials SETTINGS.yaml --out DIR``.

Exit codes: 0 done, 1 the training failed, 2 a mistake in the file or the arguments, 130 interrupted with all saved.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from trials import tasks
from trials.budgets import budget_from
from trials.contract import Problem, Report, Setup, Task, TaskError
from trials.interruption import Interruption
from trials.runner import Runner, failure_of
from trials.settings import nearest

if TYPE_CHECKING:
    from trials.distributed import Group

USED = ("task", "settings", "budget", "seed")
IGNORED = ("study", "space", "objective", "constraints", "search", "resources")
BUDGET_KEYS = ("trials", "gpu_hours", "wall_clock", "per_trial")


def main(arguments: list[str] | None = None) -> int:
    """Parse, train, print; the exit code."""
    options = _parser().parse_args(arguments)
    try:
        study = _read(options.file)
        task = tasks.load(study["task"], options.file.parent)
        _refuse_to_share(study["task"]["kind"])
        setup = _setup(study, options)
        data = task.prepare(setup.params)
    except TaskError as mistake:
        return _say_mistakes(options.file, mistake)
    from trials import distributed

    with distributed.joined(setup.device) as group:
        return _train(task, data, setup, options.file, group)


def _refuse_to_share(kind: str) -> None:
    """Training code of one's own knows nothing of other processes: each would train the whole into the same folder.

    Raises:
        TaskError: It was started as one of several.
    """
    if kind not in tasks.BUILT_IN and int(os.environ.get("WORLD_SIZE", "1")) > 1:
        what = "is training code of one's own, which is not shared out among processes; start it without torchrun"
        raise TaskError([Problem("task.kind", what)])


def _train(task: Task, data: Any, setup: Setup, file: Path, group: Group) -> int:
    try:
        runner = Runner(task, data, setup)
        try:
            with Interruption() as interruption:
                return _follow(runner, setup.budget.total, interruption, group)
        finally:
            runner.close()
    except TaskError as mistake:
        return _say_mistakes(file, mistake)
    except Exception as error:  # noqa: BLE001 - a failed training is a result: it is told, not raised
        failure = failure_of(error)
        if failure.kind == "error":
            _say(failure.details.rstrip())
        _say(f"the training failed: {failure.kind}: {failure.text}")
        return 1


def _follow(runner: Runner, total: float, interruption: Interruption, group: Group) -> int:
    """Print the reports of a run until its end, or until it is interrupted on any rank; the exit code."""
    for report in runner.advance(total, lambda: group.any(interruption.asked)):
        if group.first:
            print(_as_json(report), flush=True)  # noqa: T201 - this is the program's output
        runner.recorded(report.resource)
    if group.any(interruption.asked) and runner.finished is None:
        saved = runner.save()
        if group.first:
            _say("interrupted; --resume continues" + (f" from {saved}" if saved else " from the last checkpoint"))
        return 130
    if group.first:
        _say(f"done: {runner.finished}")
    return 0


def _setup(study: Mapping[str, Any], options: argparse.Namespace) -> Setup:
    last = options.out / "last"
    if last.is_symlink() and not options.resume:
        what = f"{options.out} holds a run already; add --resume to continue it, or name another folder"
        raise TaskError([Problem("--out", what)])
    if options.resume and not last.is_symlink():
        _say(f"nothing to resume in {options.out}; starting afresh")
    budget = budget_from(study["budget"]["per_trial"])
    if problems := tasks.describe(study["task"].get("kind")).problems_with_budget(budget.unit):
        raise TaskError(problems)
    return Setup(
        params=study.get("settings") or {},
        seed=study.get("seed", 0),
        budget=budget,
        folder=options.out,
        resume_from=last if last.is_symlink() else None,
        device=options.device or _best_device(),
    )


def _read(file: Path) -> dict[str, Any]:
    """The study file's parts that are used; its other parts are named on stderr.

    Raises:
        TaskError: It cannot be read, or a part is missing, unknown or of the wrong shape.
    """
    try:
        study = yaml.safe_load(file.read_text())
    except OSError as error:
        raise TaskError([Problem("file", f"cannot be read: {error.strerror}; check the path")]) from None
    except yaml.YAMLError as error:
        raise TaskError([Problem("file", f"is no YAML: {error}; mend it there")]) from None
    if not isinstance(study, dict):
        raise TaskError([Problem("file", "must be a mapping with task, settings, budget and seed")])
    if problems := _problems_with(study):
        raise TaskError(problems)
    if ignored := [key for key in IGNORED if key in study]:
        _say(f"note: a single training does without {', '.join(ignored)}")
    return study


def _problems_with(study: Mapping[Any, Any]) -> list[Problem]:
    known = (*USED, *IGNORED)
    problems = [Problem(str(k), f"is no part of a study file; {nearest(k, known)}") for k in study if k not in known]
    budget = study.get("budget")
    if not isinstance(study.get("task"), dict):
        problems.append(Problem("task", "must be a mapping; say what to train"))
    if not isinstance(study.get("settings") or {}, dict):
        problems.append(Problem("settings", "must be a mapping of settings to values"))
    if not isinstance(budget, dict) or not isinstance(budget.get("per_trial"), dict):
        problems.append(Problem("budget.per_trial", "must say how far to train, such as {epochs: 3}"))
    else:
        problems += [
            Problem(f"budget.{k}", f"is no part of a budget; {nearest(k, BUDGET_KEYS)}")
            for k in budget
            if k not in BUDGET_KEYS
        ]
    seed = study.get("seed", 0)
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        problems.append(Problem("seed", f"must be a whole number of at least 0, not {seed!r}"))
    return problems


def _as_json(report: Report) -> str:
    checkpoint = None if report.checkpoint is None else str(report.checkpoint)
    return json.dumps(
        {
            "resource": report.resource,
            "step": report.step,
            "elapsed": report.elapsed,
            "metrics": dict(report.metrics),
            "checkpoint": checkpoint,
        }
    )


def _best_device() -> str:
    from trials import distributed

    return distributed.device()


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)  # noqa: T201 - messages of a command


def _say_mistakes(file: Path, mistake: TaskError) -> int:
    for problem in mistake.problems:
        _say(f"{file}: {problem.where}: {problem.what}")
    return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m trials", description="Train one configuration.")
    parser.add_argument("file", type=Path, metavar="SETTINGS.yaml", help="a study file; its search is ignored")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="the folder for checkpoints")
    parser.add_argument("--resume", action="store_true", help="continue from DIR/last")
    parser.add_argument("--device", help="a torch device name (default: cuda where there is a GPU, else cpu)")
    return parser


if __name__ == "__main__":
    code = main()
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        # Threads of Gloo outlive the process group. One that is caught in the interpreter's own ending aborts a process
        # that has done its work, and the launcher would tell of a failure.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)
