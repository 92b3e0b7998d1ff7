"""Train one configuration without a study: ``python -m trials SETTINGS.yaml --out DIR [--resume]``.

The file is a study file, with the `arithmetic` of a trial if this training is to compute in the
same way, and as `base` the folder of the task's modules if they are not beside it. Reports go to
stdout as JSON lines, everything else to stderr. `DIR/best` and `DIR/last` are checkpoints. On
several GPUs:

    torchrun --nproc-per-node 2 -m trials SETTINGS.yaml --out DIR

Exit codes: 0 done, 1 the training failed, 2 a mistake in the file or the arguments, 130 interrupted
with all saved.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext, redirect_stdout, suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from trials import tasks
from trials.checkpoints.disk.whole_folders import whole_file
from trials.contract import ROUNDS, Goal, Note, Problem, Report, Setup, Task, TaskError, Unit
from trials.data.files import text_of
from trials.descriptions import yaml_source
from trials.descriptions.builtin import BUILT_IN, describe, with_folds
from trials.devices import gpu
from trials.running import arithmetic
from trials.running.arithmetic import Arithmetic
from trials.running.interruption import interruption
from trials.running.report_grid import budget_from
from trials.running.runner import Runner, failure_of
from trials.settings import nearest

if TYPE_CHECKING:
    from trials.devices.processes import Group

ARITHMETIC = "arithmetic.json"  # the file in the folder of a run with its arithmetic
USED = ("task", "settings", "budget", "seed", "objective", "arithmetic", "base")
IGNORED = ("study", "space", "constraints", "search", "resources")
DIRECTIONS = ("minimize", "maximize")


def main(arguments: list[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    try:
        study = _read_study(options.file)
        per_trial = study["budget"]["per_trial"]
        study["task"] = with_folds(study["task"], per_trial.get(Unit.FOLDS))
        task = tasks.load(study["task"], Path(study.get("base", options.file.parent)))
        _refuse_to_share(study["task"]["kind"])
        setup, computed = _in_its_arithmetic(
            task, _setup(study, options), study.get("arithmetic"), options.out
        )
        data = task.prepare(setup.params)
    except TaskError as mistake:
        return _say_mistakes(options.file, mistake)
    with _joined(study["task"]["kind"], setup.device) as group:
        if group.first:
            options.out.mkdir(parents=True, exist_ok=True)
            text = json.dumps(computed.as_plain(), indent=1) + "\n"
            with whole_file(options.out / ARITHMETIC) as file:
                file.write_text(text)
        return _train(task, data, setup, options.file, group)


class _Alone:
    """This process without a group of torch, which the user's own code may not use."""

    first = True

    def listen(self, asked: Callable[[], bool]) -> None:
        self._asked = asked

    @property
    def stopping(self) -> bool:
        return self._asked()


def _joined(kind: str, device: str) -> AbstractContextManager[Group | _Alone]:
    if kind not in BUILT_IN:
        return nullcontext(_Alone())
    from trials.devices import processes  # imported here: it brings torch

    return processes.joined(device)


def _refuse_to_share(kind: str) -> None:
    """Refuse the user's own code under torchrun: each process would train everything."""
    if kind not in BUILT_IN and int(os.environ.get("WORLD_SIZE", "1")) > 1:
        what = (
            "is your own training code, which cannot be divided among processes; "
            "start it without torchrun"
        )
        raise TaskError.at("task.kind", what)


def _train(task: Task, data: Any, setup: Setup, file: Path, group: Group | _Alone) -> int:
    results = sys.stdout

    def note_metrics(note: Note) -> None:
        if note.metrics:  # as reports
            print(json.dumps({"metrics": dict(note.metrics)}), file=results, flush=True)

    try:
        with redirect_stdout(sys.stderr):
            runner = Runner(task, data, setup, note=note_metrics)
            try:
                with interruption() as asked:
                    group.listen(asked)
                    return _follow(runner, group, results)
            finally:
                runner.close()
    except TaskError as mistake:
        return _say_mistakes(file, mistake)
    except Exception as error:  # noqa: BLE001 - a failed training is a result, not a bug
        failure = failure_of(error)
        if failure.kind == "error":
            _say(failure.details.rstrip())
        _say(f"the training failed: {failure.kind}: {failure.text}")
        return 1


def _follow(runner: Runner, group: Group | _Alone, results: TextIO) -> int:
    for report in runner.advance(math.inf, lambda: group.stopping):
        if group.first:
            print(_as_json(report), file=results, flush=True)
        runner.recorded(report.resource)
    if group.stopping and runner.finished is None:
        saved = runner.save()
        if group.first:
            _say(f"interrupted; --resume continues from {saved or 'the last checkpoint'}")
        return 130
    if group.first:
        _say(f"done: {runner.finished}")
    return 0


def _setup(study: Mapping[str, Any], options: argparse.Namespace) -> Setup:
    last = _to_resume(options)
    budget = budget_from(study["budget"]["per_trial"])
    description = describe(study["task"].get("kind"))
    problems = description.problems_with_budget(budget.unit)
    if problems:
        raise TaskError(problems)
    goal = _goal_of(study.get("objective"))
    params = dict(study.get("settings") or {})
    known = description.settings or {}
    if goal is not None and "monitor" in known:
        params.setdefault("monitor", goal.metric)
    return Setup(
        params=params,
        seed=study.get("seed", 0),
        budget=budget,
        folder=options.out,
        resume_from=last,
        device=options.device or _device_for(description.kind),
        goal=goal,
    )


def _device_for(kind: str) -> str:
    if kind not in BUILT_IN:
        return gpu.default_device()
    from trials.devices import processes

    return processes.device()


def _read_study(file: Path) -> dict[str, Any]:
    try:
        source = yaml_source.read(text_of(file))
    except OSError as error:
        what = f"cannot be read: {error.strerror}; check the path"
        raise TaskError.at("file", what) from None
    except ValueError as error:
        raise TaskError.at("file", f"cannot be read: {error}") from None
    study = source.value
    if source.problems:
        lines = [f"line {source.line_of(each.where)}" for each in source.problems]
        texts = [each.what for each in source.problems]
        raise TaskError(list(map(Problem, lines, texts)))
    if not isinstance(study, dict):
        raise TaskError.at("file", "must be a mapping with task, settings, budget and seed")
    problems = _problems_with(study)
    if problems:
        raise TaskError(problems)
    ignored = [key for key in IGNORED if key in study]
    ignored += [unit.value for unit in ROUNDS if unit in study["budget"]["per_trial"]]
    if ignored:
        _say(f"note: a single training ignores {', '.join(ignored)}")
    return study


def _problems_with(study: Mapping[Any, Any]) -> list[Problem]:
    problems = []
    known = (*USED, *IGNORED)
    for key in study:
        if key not in known:
            what = f"is not a part of a study file; {nearest(key, known)}"
            problems.append(Problem(str(key), what))
    if not isinstance(study.get("task"), dict):
        problems.append(Problem("task", "must be a mapping; say what to train"))
    if not isinstance(study.get("base", ""), str):
        problems.append(Problem("base", "must be the folder of the task's modules"))
    settings = study.get("settings") or {}
    if not isinstance(settings, dict):
        problems.append(Problem("settings", "must be a mapping of settings to values"))
    budget = study.get("budget")
    if not isinstance(budget, dict) or not isinstance(budget.get("per_trial"), dict):
        what = "must say how far to train, such as {epochs: 3}"
        problems.append(Problem("budget.per_trial", what))
    seed = study.get("seed", 0)
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        problems.append(Problem("seed", f"must be a whole number of at least 0, not {seed!r}"))
    return problems


def _goal_of(objective: Any) -> Goal | None:
    """The first objective of a study file; None if it has none."""
    if not objective:
        return None
    if isinstance(objective, list):
        where, first = "objective[0]", objective[0]
    else:
        where, first = "objective", objective
    stated = first if isinstance(first, dict) else {}
    metric, direction = stated.get("metric"), stated.get("direction")
    if not isinstance(metric, str) or direction not in DIRECTIONS:
        example = "{metric: accuracy, direction: maximize}"
        what = f"must have a metric and a direction (minimize or maximize), such as {example}"
        raise TaskError.at(where, what)
    return Goal(metric, maximize=direction == "maximize")


def _to_resume(options: argparse.Namespace) -> Path | None:
    last: Path = options.out / "last"
    if not last.is_symlink():
        if options.resume:
            _say(f"nothing to resume in {options.out}; starting afresh")
        return None
    if not options.resume:
        what = "already holds a run; add --resume to continue it, or name another folder"
        raise TaskError.at("--out", f"{options.out} {what}")
    return last


def _in_its_arithmetic(task: Task, setup: Setup, given: Any, out: Path) -> tuple[Setup, Arithmetic]:
    """Compute as the run in the folder has so far, or else as the file says."""
    recorded = None
    if given is not None:
        recorded = Arithmetic.from_plain(given)
    if setup.resume_from is not None:
        recorded = _remembered(out / ARITHMETIC) or recorded
    params, now = arithmetic.adopt(
        recorded, setup.params, setup.device, threads=None, known=task.settings
    )
    changes = [] if recorded is None else arithmetic.differences(recorded, now)
    if changes:
        _say(f"note: not computed as before, so metrics may differ: {', '.join(changes)}")
    return replace(setup, params=params), now


def _remembered(file: Path) -> Arithmetic | None:
    try:
        plain = json.loads(file.read_text())
        return Arithmetic.from_plain(plain)
    except (OSError, ValueError, TaskError):
        return None


def _as_json(report: Report) -> str:
    plain = asdict(report)
    del plain["best"], plain["is_last"], plain["samples"]
    return json.dumps(plain, default=str)


def _say(text: str) -> None:
    """Write a message; it is lost if nobody reads it any more, or the disk is full."""
    with suppress(OSError):
        print(text, file=sys.stderr, flush=True)  # noqa: T201 - messages of a command


def _say_mistakes(file: Path, mistake: TaskError) -> int:
    for problem in mistake.problems:
        _say(f"{file}: {problem.where}: {problem.what}")
    return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m trials", description="Train one configuration."
    )
    parser.add_argument(
        "file", type=Path, metavar="SETTINGS.yaml", help="a study file; its search is ignored"
    )
    parser.add_argument(
        "--out", type=Path, required=True, metavar="DIR", help="the folder for checkpoints"
    )
    parser.add_argument("--resume", action="store_true", help="continue from DIR/last")
    parser.add_argument(
        "--device", help="a torch device name (default: cuda where there is a GPU, else cpu)"
    )
    return parser
