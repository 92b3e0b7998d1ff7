"""Which races a command runs: on which tasks, over which budgets, and with which methods."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from hpsearch.simulation.curves import RecordedCurves
from races.curves import RECORDED, LCBench, Task, tasks_in
from races.peers import SLOW, SLOW_TERMS
from races.race import Result, Terms

FAMILIES = ("lcbench", "taskset", "recorded")
SPLITS = ("develop", "report", "all")

TABLE_SHARE = 0.5
"""The largest budget on a table, in full trials, as a share of its configurations."""


@dataclass(frozen=True)
class Entry:
    """A race to run."""

    method: str
    family: str
    task: str
    seed: int
    terms: Terms
    metric: str
    """The metric that is searched for on LCBench."""


def entry_of(result: Result) -> Entry:
    """The race that a result belongs to."""
    return Entry(
        result.method, result.family, result.task, result.seed, result.terms, result.metric
    )


def tasks_of(
    families: Sequence[str], file: Path | None, data: Path | None, metric: str
) -> list[Task]:
    """The tasks of some families, as `tasks_in` finds them; of all families, those that have any.

    Raises:
        SystemExit: A family that was named has no tasks, or none of all has any.
    """
    if "all" not in families:
        return [task for family in families for task in tasks_in(file, data, family, metric)]
    tasks: list[Task] = []
    for family in FAMILIES:
        try:
            tasks += tasks_in(file, data, family, metric)
        except SystemExit as reason:
            missing = reason
            note(f"{family} is left out: {reason}")
    if not tasks:
        raise missing
    return tasks


def split(tasks: Sequence[Task], half: str) -> list[Task]:
    """One half of each family, or all tasks.

    The tasks of a family, sorted by name, belong to `develop` and `report` in turn. What is chosen
    by looking at races on one half is reported on the other. Recorded workloads without a table
    have their turn as well, so that recording them moves no other one.
    """
    if half == "all":
        return list(tasks)
    names: defaultdict[str, set[str]] = defaultdict(set)
    names["recorded"] = {study.stem for study in RECORDED.glob("*.yaml")}
    for task in tasks:
        names[task.family].add(task.name)
    chosen = {family: sorted(known)[SPLITS.index(half) :: 2] for family, known in names.items()}
    return [task for task in tasks if task.name in chosen[task.family]]


def configurations(task: Task) -> int | None:
    """How many configurations a task's table has; None if every configuration can be measured."""
    if isinstance(task, LCBench):  # its model is loaded only by the processes that race
        return None
    curves = task.curves()
    return len(curves.configurations) if isinstance(curves, RecordedCurves) else None


def is_fair(task: Task, trials: int) -> bool:
    """Whether a budget leaves something to search for.

    A table with 64 configurations has nothing to find after 64 full trials, by any method, and
    random search is hard to beat long before. So a budget of full trials is at most half of the
    table. A method that stops trials early may still look at the whole table, and is then offered
    configurations again that it knows; how many trials each method started stands in the tables.
    """
    size = configurations(task)
    return size is None or trials <= TABLE_SHARE * size


def races(
    methods: Sequence[str],
    tasks: Sequence[Task],
    seeds: Iterable[int],
    terms: Sequence[Terms],
    metric: str,
) -> list[Entry]:
    """All races of a command, with a note on those that are left out."""
    for each in sorted({one.trials for one in terms}):
        too_small = [task.name for task in tasks if not is_fair(task, each)]
        if too_small:
            note(f"no races over {each} trials on small tables: {', '.join(too_small)}")
    slow = [method for method in methods if method in SLOW]
    if slow and any(each != SLOW_TERMS for each in terms):
        only = f"{SLOW_TERMS.trials} trials and {SLOW_TERMS.workers} workers"
        note(f"slow, so only in races of {only}: {', '.join(slow)}")
    return list(_races(methods, tasks, list(seeds), terms, metric))


def _races(
    methods: Sequence[str],
    tasks: Sequence[Task],
    seeds: Sequence[int],
    terms: Sequence[Terms],
    metric: str,
) -> Iterator[Entry]:
    for each in terms:
        fair = [task for task in tasks if is_fair(task, each.trials)]
        able = [method for method in methods if method not in SLOW or each == SLOW_TERMS]
        for seed in seeds:
            for task in fair:
                for method in able:
                    yield Entry(method, task.family, task.name, seed, each, metric)


def note(text: str) -> None:
    """Say something that is not part of the tables."""
    print(text, file=sys.stderr)
