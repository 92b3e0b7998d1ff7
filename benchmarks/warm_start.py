"""Do earlier studies help a study that is like them, and do they harm one that is not?

    python benchmarks/warm_start.py [--data DIR] [--tasks FILE] [--split develop|report|all]
                                    [--seeds 2] [--trials 40] [--workers 8] [--sources N]
                                    [--jobs N] [--json FILE] [--quick]

Every study runs on the recorded workloads and, with --data and --tasks, on LCBench, as in
`anytime.py`: with the real brain on a virtual clock, over a budget of --trials mean full trials.
Its earlier studies are those of the other tasks of its family, run in the same way without any,
with seeds of their own. Spaces of recorded workloads differ: a study is told of the parameters that
it has in common with the others.

- `cold`: no earlier studies
- `one`: the study of one other task
- `all`: those of all others, at most --sources
- `scrambled`: as `all`, with the standings of the configurations dealt out at random
- `reversed`: as `all`, with the best standing for the worst configuration, and so on

The regret is that of `anytime.py`: of the configuration that the study recommends, by that
configuration's own final value; 0 is the best one known and 1 is the median. `gain` is by how much
the regret is lower than that of the cold study on the same task and seed, with the standard error
over all races. Columns are shares of the budget.

--split develop takes the tasks that the method was developed on, and report the others:
`table-cancer` and `images`, and every other task of LCBench, are for development. The earlier
studies are those of all tasks.
"""

from __future__ import annotations

import argparse
import math
import os
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before numpy is imported: one thread per job

import numpy as np

from hpsearch.domain.facts import EarlierStudy
from hpsearch.domain.history import History
from hpsearch.domain.seeds import derived_seed
from hpsearch.search.curve_model.earlier import earlier_study_of
from hpsearch.simulation.running import simulate
from races import ours
from races.curves import Task, parameters, tasks_in
from races.race import FULL_TRIALS, Result
from races.race import Terms as RaceTerms
from races.schedule import SPLITS, note
from races.scores import OURS
from tables import show

DEVELOPED_ON = ("images", "table-cancer")
"""Recorded workloads that the method was developed on; of LCBench, every other task."""
EARLIER_TRIALS = 2
"""An earlier study tries so many times as many configurations as fit into the budget in full."""
MARKS = (10, 25, 50, 100)
"""The shares of the budget, in percent, at which studies are compared."""
COLD = "cold"
CASES = (COLD, "one", "all", "scrambled", "reversed")
ALL = "all families"
"""Stands for all families together."""


@dataclass(frozen=True)
class Study:
    """One study to run."""

    family: str
    task: str
    seed: int
    case: str


Source = tuple[str, str, int]
"""The family, task and seed of an earlier study."""
Sources = Mapping[Source, History]


@dataclass(frozen=True)
class Terms:
    """What all studies share."""

    tasks: Path | None
    data: Path | None
    trials: int
    workers: int
    sources: int


@lru_cache
def _tasks(terms: Terms, family: str) -> list[Task]:
    return tasks_in(terms.tasks, terms.data, family, "accuracy")


def _task(terms: Terms, family: str, name: str) -> Task:
    return next(task for task in _tasks(terms, family) if task.name == name)


def finished(source: Source, terms: Terms) -> History:
    """A study of a task that started cold, given the family, the task and a seed."""
    family, name, seed = source
    warnings.simplefilter("ignore")  # warnings of libraries do not concern the reader
    task = _task(terms, family, name)
    drawn = derived_seed("earlier", name, seed)
    race_terms = RaceTerms(terms.trials, terms.workers)
    spec = ours.study_file(task, race_terms, drawn, {}, EARLIER_TRIALS * terms.trials)
    spec = spec.model_copy(update={"study": name})
    return simulate(spec, task.curves(), terms.workers)


def told(terms: Terms, study: Study, sources: Sources) -> list[EarlierStudy]:
    """What the earlier studies of a study tell it."""
    if study.case == COLD:
        return []
    names = [task.name for task in _tasks(terms, study.family) if task.name != study.task]
    rng = np.random.default_rng(derived_seed("sources", study.task, study.seed))
    rng.shuffle(names)
    names = names[: 1 if study.case == "one" else terms.sources]
    space = parameters(_task(terms, study.family, study.task).space)
    found = []
    for name in names:
        earlier = earlier_study_of(sources[study.family, name, study.seed], space)
        if earlier is not None:
            found.append(_changed(earlier, study.case, rng))
    return found


def _changed(earlier: EarlierStudy, case: str, rng: np.random.Generator) -> EarlierStudy:
    """What an earlier study tells, with its standings exchanged where the case says so."""
    order = np.arange(len(earlier.trials))
    if case == "scrambled":
        order = rng.permutation(order)
    elif case == "reversed":
        order = order[::-1]
    trials = []
    for trial, place in zip(earlier.trials, order, strict=True):
        trials.append(replace(trial, params=earlier.trials[place].params))
    return replace(earlier, trials=trials)


def run(study: Study, terms: Terms, sources: Sources) -> dict[str, Any]:
    """The regret of a study at each of the marks, and the time of a decision, in any process."""
    warnings.simplefilter("ignore")  # warnings of libraries do not concern the reader
    task = _task(terms, study.family, study.task)
    result = Result(
        OURS, study.task, study.family, study.seed, terms.workers, "accuracy", budget=terms.trials
    )
    seed = derived_seed("anytime", study.task, study.seed)
    done = ours.race(task, seed, {}, result, told(terms, study, sources))
    regret = [done.regret[mark - 1] for mark in MARKS]
    return {"regret": regret, "decision_ms": 1e3 * done.deciding_s / max(1, done.decisions)}


def run_task(
    studies: Sequence[Study], terms: Terms, sources: Sources
) -> list[tuple[Study, dict[str, Any]]]:
    """Run all studies of one task, in any process."""
    return [(study, run(study, terms, sources)) for study in studies]


def run_all(
    by_task: Sequence[Sequence[Study]], wanted: Sequence[Source], terms: Terms, jobs: int
) -> Iterator[tuple[Study, dict[str, Any]]]:
    """Run the earlier studies, and then those of each task as soon as a process is free."""
    with ProcessPoolExecutor(jobs) as pool:
        histories = pool.map(partial(finished, terms=terms), wanted)
        sources = dict(zip(wanted, histories, strict=True))
        note(f"{len(sources)} earlier studies")
        futures = [pool.submit(run_task, studies, terms, sources) for studies in by_task]
        for future in as_completed(futures):
            yield from future.result()


def rows_of(results: Mapping[Study, dict[str, Any]], cases: Sequence[str]) -> list[dict[str, Any]]:
    """A row for each family and case, and for all families if there are several: mean regrets,
    and gains over the cold study."""
    families = list(dict.fromkeys(study.family for study in results))
    if len(families) > 1:
        families.append(ALL)
    return [_row(results, family, case) for family in families for case in cases]


def _row(results: Mapping[Study, dict[str, Any]], family: str, case: str) -> dict[str, Any]:
    regrets = []
    gains = []
    decisions = []
    for study, found in results.items():
        if family not in (study.family, ALL) or study.case != case:
            continue
        cold = results[replace(study, case=COLD)]
        regrets.append(found["regret"])
        gains.append(np.subtract(cold["regret"], found["regret"]))
        decisions.append(found["decision_ms"])
    row: dict[str, Any] = {"earlier": case, "family": family, "studies": len(regrets)}
    for i, mark in enumerate(MARKS):
        row[f"{mark}%"] = float(np.mean(regrets, axis=0)[i])
    for i, mark in enumerate(MARKS):
        column = np.array(gains)[:, i]
        spread = column.std(ddof=1) if len(column) > 1 else 0.0
        row[f"gain_{mark}%"] = float(column.mean())
        row[f"error_{mark}%"] = float(spread / math.sqrt(len(column)))
    row["decision_ms"] = float(np.mean(decisions))
    return row


def verdicts(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Whether earlier studies keep what is asked of them."""
    for row in rows:
        name = f"{row['family']}, {row['earlier']}"
        if row["earlier"] in ("one", "all"):
            gain, error = row["gain_10%"], row["error_10%"]
            helps = "helps" if gain > 2 * error else "does not clearly help"
            yield f"{name}: {helps} at 10% of the budget ({gain:+.3f} ± {error:.3f})"
        if row["earlier"] in ("scrambled", "reversed"):
            harmful = [mark for mark in MARKS if row[f"gain_{mark}%"] < -2 * row[f"error_{mark}%"]]
            where = ", ".join(f"{mark}%" for mark in harmful)
            does = f"does harm at {where}" if harmful else "does no clear harm"
            yield f"{name}: {does}"


def chosen_tasks(arguments: argparse.Namespace) -> list[Task]:
    """The tasks of the command line."""
    tasks: list[Task] = []
    for family in arguments.family:
        if family == "recorded":
            tasks += tasks_in(None, None, family, "accuracy")
        elif arguments.data is not None:
            tasks += sorted(
                tasks_in(arguments.tasks, arguments.data, family, "accuracy"),
                key=lambda task: task.name,
            )
    lcbench = [task.name for task in tasks if task.family == "lcbench"]
    developed = {*DEVELOPED_ON, *lcbench[::2]}
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
    parser.add_argument(
        "--family",
        type=lambda text: text.split(","),
        default=["recorded", "lcbench"],
        help="recorded, lcbench or both",
    )
    parser.add_argument("--seeds", type=int, default=2, help="studies of each case and task")
    parser.add_argument("--trials", type=int, default=FULL_TRIALS, help="in mean full trials")
    parser.add_argument("--workers", type=int, default=8, help="trials in parallel")
    parser.add_argument("--sources", type=int, default=8, help="earlier studies at most")
    parser.add_argument(
        "--cases",
        type=lambda text: text.split(","),
        default=list(CASES),
        help=f"some of {','.join(CASES)}",
    )
    parser.add_argument("--jobs", type=int, default=1, help="studies at the same time")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows to this file")
    parser.add_argument("--quick", action="store_true", help="two tasks, within a minute")
    return parser.parse_args()


def main() -> None:
    """Run all studies and print the table."""
    arguments = arguments_given()
    if arguments.quick:
        arguments.seeds, arguments.trials, arguments.sources = 1, 10, 2
    began = time.monotonic()
    terms = Terms(
        arguments.tasks, arguments.data, arguments.trials, arguments.workers, arguments.sources
    )
    cases = list(dict.fromkeys([COLD, *arguments.cases]))
    tasks = chosen_tasks(arguments)
    by_task = []
    for task in tasks:
        kinds = [(seed, case) for seed in range(arguments.seeds) for case in cases]
        by_task.append([Study(task.family, task.name, *kind) for kind in kinds])
    wanted = []
    for family in dict.fromkeys(task.family for task in tasks):
        for task in _tasks(terms, family):
            wanted += [(family, task.name, seed) for seed in range(arguments.seeds)]
    results: dict[Study, dict[str, Any]] = {}
    for study, found in run_all(by_task, wanted, terms, arguments.jobs):
        results[study] = found
        regrets = " ".join(f"{regret:.2f}" for regret in found["regret"])
        elapsed = time.monotonic() - began
        note(f"{elapsed:.0f} s  {study.task} {study.seed} {study.case}: {regrets}")
    rows = rows_of(results, cases)
    setup = f"{arguments.trials} full trials, {arguments.workers} workers"
    show(f"Regret with and without earlier studies ({setup})", rows, arguments.json)
    for verdict in verdicts(rows):
        print(verdict)


if __name__ == "__main__":
    main()
