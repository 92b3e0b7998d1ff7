"""Does a prior help when it is right, and do harm when it is wrong?

    python benchmarks/priors.py [--data DIR] [--tasks FILE] [--split develop|report|all]
                                [--seeds 5] [--trials 40] [--workers 8] [--sampler curve_gp]
                                [--confidences low,medium,high] [--jobs N] [--json FILE]
                                [--quick]

Every study runs on the recorded workloads and, with --data and --tasks, on LCBench, as in
`anytime.py`: with the real brain on a virtual clock, over a budget of --trials mean full trials.
All parameters have priors, which together are one configuration:

- `good`: the best of a fifth of the configurations in the table, drawn at random (on LCBench: of a
  fifth of 200 random configurations)
- `misleading`: one of the worst quarter of all of them, drawn at random

Each seed draws its own. The regret is that of `anytime.py`: of the configuration that the study
recommends, by that configuration's own final value; 0 is the best one known and 1 is the median.
`gain` is by how much the regret is lower than that of the study without priors on the same task
and seed, with the standard error over all races. Columns are shares of the budget.

--split develop takes the tasks that the weights of the priors were chosen on, and report the
others: `table-cancer` and `images`, and every other task of LCBench, are for development.
"""

from __future__ import annotations

import argparse
import math
import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Any, cast

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before numpy is imported: one thread per job

import numpy as np

from hpsearch.search.proposals import derived_seed
from hpsearch.simulation.curves import RecordedCurves
from races import ours
from races.curves import Task, random_configurations, tasks_in
from races.race import FULL_TRIALS, Judge, Result
from races.schedule import SPLITS, note
from races.scores import OURS
from tables import show

DEVELOPED_ON = ("images", "table-cancer")
"""Recorded workloads that the weights of priors were chosen on; of LCBench, every other task."""

MARKS = (10, 20, 50, 100)
"""The shares of the budget, in percent, at which studies are compared."""
FIFTH = 0.2
"""The share of the configurations of which a good prior is the best."""
WORST = 0.25
"""The share of the configurations that are misleading."""
SAMPLE = 200
"""How many random configurations stand for those of a table, where there is no table."""


@dataclass(frozen=True)
class Case:
    """What is believed: which configuration, and how firmly."""

    belief: str
    confidence: str


NOTHING = Case("none", "-")
ALL = "all"
"""Stands for all families together."""
BELIEFS = ("good", "misleading")
CONFIDENCES = ("low", "medium", "high")


class Believed:
    """A task whose parameters have priors."""

    def __init__(self, task: Task, values: Mapping[str, Any], confidence: str) -> None:
        self._task = task
        self._values = values
        self._confidence = confidence

    def __getattr__(self, name: str) -> Any:
        return getattr(self._task, name)

    @cached_property
    def space(self) -> dict[str, dict[str, Any]]:
        """The task's space, with priors."""
        space = {}
        for name, parameter in self._task.space.items():
            space[name] = dict(parameter)
            if name in self._values:
                belief = {"prior": self._values[name], "confidence": self._confidence}
                space[name].update(belief)
        return space


@dataclass(frozen=True)
class Study:
    """One study to run."""

    family: str
    task: str
    seed: int
    case: Case


@dataclass(frozen=True)
class Terms:
    """What all studies share."""

    tasks: Path | None
    data: Path | None
    trials: int
    workers: int
    sampler: str


@lru_cache
def _task(terms: Terms, family: str, name: str) -> Task:
    tasks = tasks_in(terms.tasks, terms.data, family, "accuracy")
    return next(task for task in tasks if task.name == name)


@lru_cache
def _known(terms: Terms, family: str, name: str) -> tuple[list[dict[str, Any]], np.ndarray]:
    """Configurations of a task, and their final losses."""
    task = _task(terms, family, name)
    curves = task.curves()
    if isinstance(curves, RecordedCurves):
        configurations = list(curves.configurations)
    else:
        seed = derived_seed("priors", name)
        configurations = random_configurations(task.space, SAMPLE, seed)
    judge = Judge(task, curves)
    losses = [judge.value(params, task.total)[0] for params in configurations]
    return configurations, np.array(losses)


def believed(terms: Terms, study: Study) -> dict[str, Any]:
    """The configuration that the priors of a study name."""
    configurations, losses = _known(terms, study.family, study.task)
    seed = derived_seed("priors", study.case.belief, study.task, study.seed)
    rng = np.random.default_rng(seed)
    count = len(losses)
    if study.case.belief == "good":
        some = rng.choice(count, size=math.ceil(FIFTH * count), replace=False)
        chosen = some[np.argmin(losses[some])]
    else:
        worst = np.argsort(losses)[-math.ceil(WORST * count) :]
        chosen = rng.choice(worst)
    return dict(configurations[chosen])


def run(study: Study, terms: Terms) -> list[float]:
    """The regret of a study at each of the marks, in any process."""
    warnings.simplefilter("ignore")  # warnings of libraries do not concern the reader
    task = _task(terms, study.family, study.task)
    if study.case != NOTHING:
        task = cast(Task, Believed(task, believed(terms, study), study.case.confidence))
    result = Result(
        OURS, study.task, study.family, study.seed, terms.workers, "accuracy", budget=terms.trials
    )
    seed = derived_seed("anytime", study.task, study.seed)
    done = ours.race(task, seed, {"sampler": {"kind": terms.sampler}}, result)
    return [done.regret[mark - 1] for mark in MARKS]


def run_all(
    studies: Sequence[Study], terms: Terms, jobs: int
) -> Iterator[tuple[Study, list[float]]]:
    """Run studies in parallel, each as soon as a process is free."""
    if jobs == 1:
        for study in studies:
            yield study, run(study, terms)
        return
    with ProcessPoolExecutor(jobs) as pool:
        futures = {pool.submit(partial(run, study, terms)): study for study in studies}
        for future in as_completed(futures):
            yield futures[future], future.result()


def rows_of(results: Mapping[Study, list[float]], cases: Sequence[Case]) -> list[dict[str, Any]]:
    """A row for each family and case, and for all families if there are several: mean regrets,
    and gains over no prior."""
    rows = []
    families = list(dict.fromkeys(study.family for study in results))
    if len(families) > 1:
        families.append(ALL)
    for family in families:
        for case in cases:
            rows.append(_row(results, family, case))
    return rows


def _row(results: Mapping[Study, list[float]], family: str, case: Case) -> dict[str, Any]:
    regrets = []
    gains = []
    for study, regret in results.items():
        if family not in (study.family, ALL) or study.case != case:
            continue
        without = Study(study.family, study.task, study.seed, NOTHING)
        regrets.append(regret)
        gains.append(np.subtract(results[without], regret))
    row: dict[str, Any] = {"prior": f"{case.belief} {case.confidence}", "family": family}
    row["studies"] = len(regrets)
    for i, mark in enumerate(MARKS):
        row[f"{mark}%"] = float(np.mean(regrets, axis=0)[i])
    for i, mark in enumerate(MARKS):
        column = np.array(gains)[:, i]
        spread = column.std(ddof=1) if len(column) > 1 else 0.0
        row[f"gain_{mark}%"] = float(column.mean())
        row[f"error_{mark}%"] = float(spread / math.sqrt(len(column)))
    return row


def verdicts(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Whether each prior keeps what is asked of it."""
    for row in rows:
        name = f"{row['family']}, {row['prior']}"
        if row["prior"].startswith("good"):
            gain, error = row["gain_10%"], row["error_10%"]
            helps = "helps" if gain > 2 * error else "does not clearly help"
            yield f"{name}: {helps} at 10% of the budget ({gain:+.3f} ± {error:.3f})"
        if row["prior"].startswith("misleading"):
            harmful = [
                mark for mark in MARKS[1:] if row[f"gain_{mark}%"] < -2 * row[f"error_{mark}%"]
            ]
            where = ", ".join(f"{mark}%" for mark in harmful)
            does = f"does harm at {where}" if harmful else "does no harm from 20% on"
            yield f"{name}: {does}"


def chosen_tasks(arguments: argparse.Namespace) -> list[Task]:
    """The tasks of the command line."""
    recorded = tasks_in(None, None, "recorded", "accuracy")
    lcbench: list[Task] = []
    if arguments.data is not None:
        lcbench = tasks_in(arguments.tasks, arguments.data, "lcbench", "accuracy")
        lcbench.sort(key=lambda task: task.name)
    developed = {*DEVELOPED_ON, *(task.name for task in lcbench[::2])}
    tasks = [*recorded, *lcbench]
    if arguments.split == "develop":
        tasks = [task for task in tasks if task.name in developed]
    if arguments.split == "report":
        tasks = [task for task in tasks if task.name not in developed]
    return tasks[:2] if arguments.quick else tasks


def arguments_given() -> argparse.Namespace:
    """The parsed command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, metavar="DIR", help="folder with `lcbench`")
    parser.add_argument("--tasks", type=Path, metavar="FILE", help="JSON with LCBench's tasks")
    parser.add_argument("--split", choices=SPLITS, default="all", help="which of the tasks")
    parser.add_argument("--seeds", type=int, default=5, help="studies of each case and task")
    parser.add_argument("--trials", type=int, default=FULL_TRIALS, help="in mean full trials")
    parser.add_argument("--workers", type=int, default=8, help="trials in parallel")
    parser.add_argument("--sampler", choices=("curve_gp", "random"), default="curve_gp")
    parser.add_argument(
        "--confidences",
        type=lambda text: text.split(","),
        default=CONFIDENCES,
        help=f"some of {','.join(CONFIDENCES)}",
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="studies in parallel")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the rows here")
    parser.add_argument(
        "--quick",
        action="store_true",
        help="two tasks, two seeds, medium confidence, half of the budget",
    )
    arguments = parser.parse_args()
    if (arguments.data is None) != (arguments.tasks is None):
        parser.error("--data and --tasks go together")
    for path in (arguments.data, arguments.tasks):
        if path is not None and not path.exists():
            parser.error(f"{path} does not exist")
    if min(arguments.seeds, arguments.trials, arguments.workers, arguments.jobs) < 1:
        parser.error("numbers must be at least 1")
    for confidence in arguments.confidences:
        if confidence not in CONFIDENCES:
            parser.error(f"unknown confidence {confidence}; known are {', '.join(CONFIDENCES)}")
    if arguments.quick:
        arguments.seeds = 2
        arguments.confidences = ["medium"]
        arguments.trials = arguments.trials // 2 or 1
    return arguments


def main() -> None:
    """Run the studies, print the table and what it says."""
    arguments = arguments_given()
    terms = Terms(
        arguments.tasks, arguments.data, arguments.trials, arguments.workers, arguments.sampler
    )
    believing = [Case(belief, each) for belief in BELIEFS for each in arguments.confidences]
    cases = [NOTHING, *believing]
    studies = [
        Study(task.family, task.name, seed, case)
        for seed in range(arguments.seeds)
        for task in chosen_tasks(arguments)
        for case in cases
    ]
    results: dict[Study, list[float]] = {}
    for study, regret in run_all(studies, terms, arguments.jobs):
        results[study] = regret
        shown = " / ".join(f"{each:.2f}" for each in regret)
        about = f"{study.task}  {study.case.belief} {study.case.confidence}  seed {study.seed}"
        note(f"{len(results)}/{len(studies)}  {about}: {shown}")
    rows = rows_of(results, cases)
    setup = f"{arguments.sampler}, {arguments.trials} full trials, {arguments.workers} workers"
    show(f"Regret with and without priors ({setup})", rows, arguments.json)
    for verdict in verdicts(rows):
        print(verdict)


if __name__ == "__main__":
    main()
