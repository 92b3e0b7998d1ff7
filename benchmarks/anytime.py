"""Compare searches: what each method would recommend at every moment of the same budget.

    python benchmarks/anytime.py --tasks FILE --data DIR [--workers 8] [--seeds 10]
                                 [--methods a,b,...] [--family lcbench|taskset|both|recorded]
                                 [--jobs N] [--json FILE] [--quick]

FILE is JSON such as {"tasks": ["3945", "189906"]}: numbers of LCBench tasks, and names of TaskSet
tables unless all of them are meant. DIR contains `lcbench` (model.onnx, encoding.json) and
`taskset` (tables, *.npz).

The budget is 40 mean full trials over all workers together. The score is the normalised regret of
the configuration that a method recommends at 5, 10, 25, 50 and 100% of the budget: 0 is the best of
2,000 random configurations in full, 1 is their median. `race.py` defines what is recommended, and
`curves.py` defines the tasks.

With --json, every race is written as a line of FILE when it ends, and the same command later runs
only the races that are missing. To run races again, delete the file, or the lines of a method.

LCBench needs onnxruntime, and the `syne` peers need syne-tune: pip install hpsearch[benchmarks].
The slow peers, with a quarter of a second per decision or more, are optuna-gp, syne-cqr, syne-bore,
syne-asha-cqr and syne-asha-bore.

Methods are `hpsearch` (a study file that leaves `search` at its defaults) and the peers that --help
lists. Other settings of hpsearch follow its name:
--methods "hpsearch sampler=tpe pruner=promotion pruner.first_rung=3".
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import warnings
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before numpy is imported: one thread per job

import yaml

from curves import LCBENCH_METRICS, Task, tasks_in
from hpsearch.search.proposals import derived_seed
from peers import PEERS
from race import Race, Result, moments
from scores import OURS, report

QUICK_METHODS = [OURS, "random"]


@dataclass(frozen=True)
class Entry:
    """A race to run."""

    method: str
    task: str
    seed: int
    workers: int
    metric: str
    """The metric that is searched for on LCBench."""


def search_of(method: str) -> dict[str, Any]:
    """The `search` section of a study file, from words like ``pruner.first_rung=3``."""
    search: dict[str, Any] = {}
    for word in method.split()[1:]:
        key, _, value = word.partition("=")
        part, _, argument = key.partition(".")
        entry = search.setdefault(part, {})
        entry[argument or "kind"] = yaml.safe_load(value)
    return search


def run(entry: Entry, file: Path, data: Path, family: str) -> Result:
    """Run one race, in any process."""
    task = _tasks(file, data, family, entry.metric)[entry.task]
    seed = derived_seed("anytime", task.name, entry.seed)
    result = Result(entry.method, task.name, task.family, entry.seed, entry.workers, entry.metric)
    if entry.method.split()[0] == OURS:
        import ours

        return ours.race(task, entry.workers, seed, search_of(entry.method), result)
    contender = PEERS[entry.method](task, seed)
    return Race(contender, task, entry.workers, result).run(moments(task, entry.workers))


@lru_cache(maxsize=1)
def _tasks(file: Path, data: Path, family: str, metric: str) -> dict[str, Task]:
    return {task.name: task for task in tasks_in(file, data, family, metric)}


def race_all(entries: list[Entry], arguments: argparse.Namespace) -> Iterator[Result]:
    """Run races in parallel, each as soon as a process is free."""
    where = (arguments.tasks, arguments.data, arguments.family)
    if arguments.jobs == 1:
        yield from (run(entry, *where) for entry in entries)
        return
    with ProcessPoolExecutor(
        arguments.jobs, initializer=warnings.simplefilter, initargs=("ignore",)
    ) as pool:
        futures = [pool.submit(run, entry, *where) for entry in entries]
        try:
            yield from (future.result() for future in as_completed(futures))
        finally:
            # An error or Ctrl-C waits only for races that have begun.
            pool.shutdown(wait=False, cancel_futures=True)


def known_results(file: Path | None) -> dict[Entry, Result]:
    """The results that a file already has."""
    if file is None or not file.exists():
        return {}
    results = [Result(**json.loads(line)) for line in file.read_text().splitlines()]
    return {entry_of(result): result for result in results}


def entry_of(result: Result) -> Entry:
    """The race that a result belongs to."""
    return Entry(result.method, result.task, result.seed, result.workers, result.metric)


def arguments_given() -> argparse.Namespace:
    """The parsed command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--tasks", type=Path, required=True, metavar="FILE", help="JSON file with the tasks"
    )
    parser.add_argument(
        "--data", type=Path, required=True, metavar="DIR", help="folder with the tables"
    )
    parser.add_argument("--workers", type=int, default=8, help="trials in parallel")
    parser.add_argument("--seeds", type=int, default=10, help="number of seeds, from 0")
    parser.add_argument(
        "--methods", default=",".join([OURS, *PEERS]), help=f"some of {OURS}, {', '.join(PEERS)}"
    )
    parser.add_argument(
        "--family", choices=["lcbench", "taskset", "both", "recorded"], default="both"
    )
    parser.add_argument(
        "--lcbench-metric",
        choices=LCBENCH_METRICS,
        default="accuracy",
        help="the metric to search for",
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="races in parallel")
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="file for the results, one per line"
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help=f"one seed, two tasks per family, {' and '.join(QUICK_METHODS)}",
    )
    arguments = parser.parse_args()
    for path in (arguments.tasks, arguments.data):
        if not path.exists():
            parser.error(f"{path} does not exist")
    arguments.methods = (
        QUICK_METHODS
        if arguments.quick
        else [name.strip() for name in arguments.methods.split(",")]
    )
    for name in arguments.methods:
        if name not in PEERS and name.split()[0] != OURS:
            parser.error(f"unknown method {name}; known are {OURS}, {', '.join(PEERS)}")
    return arguments


def main() -> None:
    """Run the races that are missing, and print the tables."""
    arguments = arguments_given()
    warnings.simplefilter("ignore")  # warnings of peers do not concern the reader
    tasks = tasks_in(arguments.tasks, arguments.data, arguments.family, arguments.lcbench_metric)
    if arguments.quick:
        tasks = [
            t
            for family in ("lcbench", "taskset", "recorded")
            for t in [t for t in tasks if t.family == family][:2]
        ]
    seeds = range(1 if arguments.quick else arguments.seeds)
    same = (arguments.workers, arguments.lcbench_metric)
    wanted = [Entry(m, t.name, s, *same) for s in seeds for t in tasks for m in arguments.methods]
    results = known_results(arguments.json)
    missing = [entry for entry in wanted if entry not in results]
    for count, result in enumerate(race_all(missing, arguments), 1):
        results[entry_of(result)] = result
        race = f"{result.method}  {result.task}  seed {result.seed}"
        print(f"{count}/{len(missing)}  {race}: {result.regret[-1]:.2f}", file=sys.stderr)
        if arguments.json is not None:
            with arguments.json.open("a") as file:
                file.write(json.dumps(asdict(result)) + "\n")
    report([results[entry] for entry in wanted], arguments.methods)


if __name__ == "__main__":
    main()
