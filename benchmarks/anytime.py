"""Compare searches: what each method would recommend at every moment of the same budget.

    python benchmarks/anytime.py [--tasks FILE] [--data DIR]
                                 [--family lcbench,taskset,recorded|all]
                                 [--split develop|report|all] [--trials 10,40,200]
                                 [--workers 1,2,8,32] [--seeds 10] [--methods a,b,...]
                                 [--environments DIR] [--jobs N] [--json FILE] [--quick]

FILE is JSON such as {"tasks": ["3945", "189906"]}: numbers of LCBench tasks, and names of TaskSet
tables and of recorded workloads unless all of them are meant. DIR contains `lcbench` (model.onnx,
encoding.json) and `taskset` (tables, *.npz). Recorded workloads need neither.

The budget is a number of mean full trials over all workers together: 40, or those of --trials. The
score is the normalised regret of the configuration that a method recommends at 5, 10, 25, 50 and
100% of the budget: 0 is the best of 2,000 random configurations in full (or of the table), 1 is
their median. `race.py` defines what is recommended, and `curves.py` defines the tasks. A table has
races only over budgets of at most half as many full trials as it has configurations: 10 trials need
20 configurations, 40 need 80, and 200 need 400. A budget of fewer trials than workers ends before a
mean trial is complete.

--split takes one half of each family: its tasks, sorted by name, belong to `develop` and `report`
in turn. What is chosen by looking at one half is reported on the other. So keep to one FILE: a
list with other tasks is halved differently.

With --json, every race is written as a line of FILE when it ends, and the same command later runs
only the races that are missing. To run races again, delete the file, or the lines of a method.

After the tables of each family, budget and number of workers come the targets: whether hpsearch is
behind random search in full, TPE in full or ASHA by more than twice the standard error of the
paired differences, its rank over all families, and how early it reaches the best peer's final
regret.

LCBench needs onnxruntime, and the `syne` peers need syne-tune: pip install ".[benchmarks]".
The peers neps-priorband, smac-mf, ax, ax-early-stopping and hebo run in environments of their own,
with the packages that `races/peer_environments` pins. The first race of such a peer makes that
in --environments, with pip. A peer whose packages cannot be installed is left out, and the reason
is printed; so is a method that failed in some races. The slow peers, with 50 ms per decision or
more, race over 40 trials with 8 workers only: optuna-gp, syne-cqr, syne-bore, syne-asha-cqr,
syne-asha-bore, smac-mf, ax, ax-early-stopping and hebo.

Methods are `hpsearch` (a study file that leaves `search` at its defaults) and the peers that --help
lists. Other settings of hpsearch follow its name:
--methods "hpsearch sampler=tpe pruner=promotion pruner.first_rung=3".
"""

from __future__ import annotations

import argparse
import json
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before numpy is imported: one thread per job

import yaml

from hpsearch.domain.seeds import derived_seed
from races import environments
from races.curves import LCBENCH_METRICS, Task, tasks_in
from races.peers import APART, PEERS, contender
from races.race import FULL_TRIALS, Race, Result, Terms
from races.remote_peers import Died
from races.report import report
from races.schedule import FAMILIES, SPLITS, Entry, entry_of, note, races, split, tasks_of
from races.scores import OURS

QUICK_METHODS = [OURS, "random"]


@dataclass(frozen=True)
class Places:
    """Where things are on this machine."""

    tasks: Path | None
    data: Path | None
    environments: Path


def search_of(method: str) -> dict[str, Any]:
    """The `search` section of a study file, from words like ``pruner.first_rung=3``."""
    search: dict[str, Any] = {}
    for word in method.split()[1:]:
        key, _, value = word.partition("=")
        part, _, argument = key.partition(".")
        entry = search.setdefault(part, {})
        entry[argument or "kind"] = yaml.safe_load(value)
    return search


def run(entry: Entry, places: Places) -> Result:
    """Run one race, in any process."""
    task = _tasks(places.tasks, places.data, entry.family, entry.metric)[entry.task]
    seed = derived_seed("anytime", task.name, entry.seed)
    result = Result(
        entry.method,
        task.name,
        task.family,
        entry.seed,
        entry.terms.workers,
        entry.metric,
        budget=entry.terms.trials,
    )
    if entry.method.split()[0] == OURS:
        from races import ours

        return ours.race(task, seed, search_of(entry.method), result)
    with contender(entry.method, task, seed, entry.terms, places.environments) as peer:
        return Race(peer, task, result).run()


@lru_cache
def _tasks(file: Path | None, data: Path | None, family: str, metric: str) -> dict[str, Task]:
    return {task.name: task for task in tasks_in(file, data, family, metric)}


def race_all(entries: Sequence[Entry], places: Places, jobs: int) -> Iterator[Result]:
    """Run races in parallel, each as soon as a process is free; without those whose peer dies."""
    if jobs == 1:
        for entry in entries:
            yield from _unless_died(partial(run, entry, places))
        return
    with ProcessPoolExecutor(jobs, initializer=warnings.simplefilter, initargs=("ignore",)) as pool:
        futures = [pool.submit(run, entry, places) for entry in entries]
        try:
            for future in as_completed(futures):
                yield from _unless_died(future.result)
        finally:
            # An error or Ctrl-C waits only for races that have begun.
            pool.shutdown(wait=False, cancel_futures=True)


def _unless_died(result: Callable[[], Result]) -> Iterator[Result]:
    try:
        found = result()
    except Died as reason:
        note(f"a race is left out: {reason}")
        return
    yield found


def known_results(file: Path | None) -> dict[Entry, Result]:
    """The results that a file already has; those without a budget had `FULL_TRIALS`."""
    if file is None or not file.exists():
        return {}
    results = [Result(**json.loads(line)) for line in file.read_text().splitlines()]
    return {entry_of(result): result for result in results}


def able(entries: Sequence[Entry], cache: Path) -> list[Entry]:
    """The races whose peers can run on this machine, with their environments made."""
    without: set[str] = set()
    for method in dict.fromkeys(entry.method for entry in entries):
        if method not in APART:
            continue
        try:
            environments.prepare(APART[method].environment, cache)
        except environments.Unavailable as reason:
            note(f"{method} is left out: {reason}")
            without.add(method)
    return [entry for entry in entries if entry.method not in without]


def arguments_given() -> argparse.Namespace:
    """The parsed command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tasks", type=Path, metavar="FILE", help="JSON file with the tasks")
    parser.add_argument("--data", type=Path, metavar="DIR", help="folder with the tables")
    parser.add_argument(
        "--family", type=_words, default="all", help=f"some of {', '.join(FAMILIES)}, or all"
    )
    parser.add_argument("--split", choices=SPLITS, default="all", help="a half of each family")
    parser.add_argument(
        "--trials", type=_counts, default=str(FULL_TRIALS), help="budgets, in mean full trials"
    )
    parser.add_argument("--workers", type=_counts, default="8", help="trials in parallel")
    parser.add_argument("--seeds", type=int, default=10, help="number of seeds, from 0")
    parser.add_argument(
        "--methods",
        type=_words,
        default=",".join([OURS, *PEERS]),
        help=f"some of {OURS}, {', '.join(PEERS)}",
    )
    parser.add_argument(
        "--lcbench-metric",
        choices=LCBENCH_METRICS,
        default="accuracy",
        help="the metric to search for",
    )
    parser.add_argument(
        "--environments",
        type=Path,
        metavar="DIR",
        default=environments.CACHE,
        help="folder for the environments of peers (%(default)s)",
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="races in parallel")
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="file for the results, one per line"
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="one seed, two tasks per family, the first budget and number of workers, "
        + " and ".join(QUICK_METHODS),
    )
    arguments = parser.parse_args()
    for path in (arguments.tasks, arguments.data):
        if path is not None and not path.exists():
            parser.error(f"{path} does not exist")
    for family in arguments.family:
        if family not in (*FAMILIES, "all"):
            parser.error(f"unknown family {family}; known are {', '.join(FAMILIES)} and all")
    if arguments.quick:
        arguments.methods = QUICK_METHODS
        arguments.seeds = 1
        arguments.trials, arguments.workers = arguments.trials[:1], arguments.workers[:1]
    for name in arguments.methods:
        if name not in PEERS and name.split()[0] != OURS:
            parser.error(f"unknown method {name}; known are {OURS}, {', '.join(PEERS)}")
    return arguments


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _counts(text: str) -> list[int]:
    words = _words(text)
    counts = [int(word) for word in words if word.isdecimal()]
    if not counts or len(counts) < len(words) or min(counts) < 1:
        raise argparse.ArgumentTypeError("give whole numbers above 0, such as 10,40,200")
    return counts


def main() -> None:
    """Run the races that are missing, and print the tables."""
    arguments = arguments_given()
    warnings.simplefilter("ignore")  # warnings of peers do not concern the reader
    places = Places(arguments.tasks, arguments.data, arguments.environments)
    metric = arguments.lcbench_metric
    tasks = split(tasks_of(arguments.family, places.tasks, places.data, metric), arguments.split)
    if arguments.quick:
        tasks = [task for f in FAMILIES for task in [t for t in tasks if t.family == f][:2]]
    terms = [Terms(t, w) for t in arguments.trials for w in arguments.workers]
    wanted = races(arguments.methods, tasks, range(arguments.seeds), terms, metric)
    results = known_results(arguments.json)
    missing = able([entry for entry in wanted if entry not in results], places.environments)
    for count, result in enumerate(race_all(missing, places, arguments.jobs), 1):
        results[entry_of(result)] = result
        where = f"{result.task}  {result.budget} trials, {result.workers} workers"
        race = f"{result.method}  {where}  seed {result.seed}"
        note(f"{count}/{len(missing)}  {race}: {result.regret[-1]:.2f}")
        if arguments.json is not None:
            with arguments.json.open("a") as file:
                file.write(json.dumps(asdict(result)) + "\n")
    report([results[entry] for entry in wanted if entry in results], arguments.methods)


if __name__ == "__main__":
    main()
