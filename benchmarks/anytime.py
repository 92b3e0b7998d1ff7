"""Compare searches: what each method would recommend at every moment of the same budget.

    python benchmarks/anytime.py [--tasks FILE] [--data DIR]
                                 [--family lcbench,taskset,recorded|all]
                                 [--split develop|report|all] [--trials 10,40,200]
                                 [--workers 1,2,8,32] [--seeds 10] [--methods a,b,...]
                                 [--jobs N] [--json FILE] [--quick]

FILE is JSON such as {"tasks": ["3945", "189906"]}: numbers of LCBench tasks, and names of TaskSet
tables and of recorded workloads unless all of them are meant. DIR contains `lcbench` (model.onnx,
encoding.json) and `taskset` (tables, *.npz). Recorded workloads need neither.

The budget is a number of mean full trials over all workers together: 40, or those of --trials. The
score is the normalised regret of the configuration that a method recommends at 5, 10, 25, 50 and
100% of the budget: 0 is the best of 2,000 random configurations in full (or of the table), 1 is
their median. `race.py` defines what is recommended, and `curves.py` defines the tasks. A table has
races only over budgets of at most half as many full trials as it has configurations.

--split takes one half of each family: its tasks, sorted by name, belong to `develop` and `report`
in turn. What is chosen by looking at one half is reported on the other. So keep to one FILE: a
list with other tasks is halved differently.

With --json, every race is written as a line of FILE when it ends, and the same command later runs
only the races that are missing. To run races again, delete the file, or the lines of a method.

The last tables compare hpsearch with each peer, by every rule of recommending: behind or ahead by
more than twice the standard error of the paired differences, and ranks over all families.

Methods are `hpsearch` (a study file that leaves `search` at its defaults) and the names in
`races/peers.py`, by default random, optuna-tpe and syne-asha. Other settings of hpsearch follow its
name: --methods "hpsearch sampler=tpe pruner=promotion pruner.first_rung=3". LCBench needs
onnxruntime, and other programs' methods need these: pip install ".[benchmarks]". syne-mobster,
syne-hypertune and syne-dyhpo need an environment of their own (README.md). They write to the same
FILE, and decide slowly: race them on fewer tasks, and name them without others for the tables.
"""

import argparse
import json
import os
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before numpy is imported: one thread per job

import yaml

import tables
from hpsearch.domain.seeds import derived_seed
from races import ours
from races.curves import Task, tasks_in
from races.peers import PEERS
from races.race import FULL_TRIALS, Race, Result, Terms
from races.report import OURS, report
from races.schedule import ALL, FAMILIES, SPLITS, Entry, entry_of, note, races, split, tasks_of


@dataclass(frozen=True)
class Places:
    """Where things are on this machine."""

    tasks: Path | None
    data: Path | None


def search_of(method: str) -> dict[str, Any]:
    """The `search` section of a study file, from words like ``pruner.first_rung=3``."""
    search: dict[str, Any] = {}
    for word in method.split()[1:]:
        key, _, value = word.partition("=")
        part, _, argument = key.partition(".")
        entry = search.setdefault(part, {})
        entry[argument or "kind"] = yaml.safe_load(value)
    return search


def run(entries: Sequence[Entry], places: Places) -> Sequence[Result]:
    """Run the races of a method that differ in the budget alone, in any process."""
    entry = entries[0]
    task = _tasks(places.tasks, places.data, entry.family)[entry.task]
    seed = derived_seed("anytime", task.name, entry.seed)
    blank = partial(Result, entry.method, task.name, task.family, entry.seed, entry.terms.workers)
    results = [blank(budget=each.terms.trials) for each in entries]
    if entry.method.split()[0] == OURS:
        return [ours.race(task, seed, search_of(entry.method), each) for each in results]
    return Race(PEERS[entry.method](task, seed), task, *results).run()


def together(entries: Sequence[Entry]) -> list[list[Entry]]:
    """Races in groups that `run` takes."""
    groups: dict[Entry, list[Entry]] = {}
    for entry in entries:
        is_ours = entry.method.split()[0] == OURS  # it knows its budget
        terms = entry.terms if is_ours else replace(entry.terms, trials=0)
        groups.setdefault(replace(entry, terms=terms), []).append(entry)
    return list(groups.values())


@lru_cache
def _tasks(file: Path | None, data: Path | None, family: str) -> dict[str, Task]:
    return {task.name: task for task in tasks_in(file, data, family)}


def race_all(entries: Sequence[Entry], places: Places, jobs: int) -> Iterator[Result]:
    """Run races in parallel, each as soon as a process is free."""
    groups = together(entries)
    if jobs == 1:
        for group in groups:
            yield from run(group, places)
        return
    with ProcessPoolExecutor(jobs, initializer=warnings.simplefilter, initargs=("ignore",)) as pool:
        futures = [pool.submit(run, group, places) for group in groups]
        try:
            for future in as_completed(futures):
                yield from future.result()
        finally:
            # An error or Ctrl-C waits only for races that have begun.
            pool.shutdown(cancel_futures=True)


def known_results(file: Path | None) -> dict[Entry, Result]:
    """The results that a file already has."""
    if file is None or not file.exists():
        return {}
    results = [Result(**json.loads(line)) for line in file.read_text().splitlines()]
    return {entry_of(result): result for result in results}


def arguments_given() -> argparse.Namespace:
    """The parsed command line."""
    given = tables.arguments(
        __doc__,
        {"seeds": 1, "trials": [10], "workers": [8], "methods": [OURS, "random"]},
        tasks=Path,
        data=Path,
        family=[ALL],
        split=SPLITS,
        trials=[FULL_TRIALS],
        workers=[8],
        seeds=10,
        methods=[OURS, "random", "optuna-tpe", "syne-asha"],
        jobs=os.cpu_count() or 1,
    )
    for path in (given.tasks, given.data):
        if path is not None and not path.exists():
            raise SystemExit(f"{path} does not exist")
    if not given.trials or not given.workers or min(*given.trials, *given.workers) < 1:
        raise SystemExit("--trials and --workers are whole numbers above 0, such as 10,40,200")
    for name in given.methods:
        if name not in PEERS and name.split()[0] != OURS:
            raise SystemExit(f"unknown method {name}; known are {OURS}, {', '.join(PEERS)}")
    return given


def main() -> None:
    """Run the races that are missing, and print the tables."""
    given = arguments_given()
    warnings.simplefilter("ignore")  # warnings of peers do not concern the reader
    places = Places(given.tasks, given.data)
    tasks = split(tasks_of(given.family, places.tasks, places.data), given.split)
    if given.quick:
        tasks = [task for f in FAMILIES for task in [t for t in tasks if t.family == f][:2]]
    terms = [Terms(trials, workers) for trials in given.trials for workers in given.workers]
    wanted = races(given.methods, tasks, range(given.seeds), terms)
    results = known_results(given.json)
    missing = [entry for entry in wanted if entry not in results]
    for count, result in enumerate(race_all(missing, places, given.jobs), 1):
        results[entry_of(result)] = result
        where = f"{result.task}  {result.budget} trials, {result.workers} workers"
        race = f"{result.method}  {where}  seed {result.seed}"
        note(f"{count}/{len(missing)}  {race}: {result.regret[-1]:.2f}")
        if given.json is not None:
            with given.json.open("a") as file:
                file.write(json.dumps(asdict(result)) + "\n")
    report([results[entry] for entry in wanted if entry in results], given.methods)


if __name__ == "__main__":
    main()
