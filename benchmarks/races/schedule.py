"""Which races a command runs: on which tasks, over which budgets, and with which methods."""

import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from races.curves import RECORDED, LCBench, Task, tasks_in
from races.race import Result, Terms
from simulation.curves import RecordedCurves

FAMILIES = ("lcbench", "taskset", "recorded")
ALL = "all"
SPLITS = (ALL, "develop", "report")

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


def entry_of(result: Result) -> Entry:
    """The race that a result belongs to."""
    return Entry(result.method, result.family, result.task, result.seed, result.terms)


def tasks_of(families: Sequence[str], file: Path | None, data: Path | None) -> list[Task]:
    """The tasks of some families, as `tasks_in` finds them; of all families, those that have any.

    Raises:
        SystemExit: A family is unknown, or has no tasks, or none of all has any.
    """
    unknown = {*families} - {*FAMILIES, ALL}
    if unknown:
        raise SystemExit(f"unknown family {unknown.pop()}; known are {', '.join(FAMILIES)} and all")
    if ALL not in families:
        return [task for family in families for task in tasks_in(file, data, family)]
    tasks: list[Task] = []
    for family in FAMILIES:
        try:
            tasks += tasks_in(file, data, family)
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
    if half == ALL:
        return list(tasks)
    names: defaultdict[str, set[str]] = defaultdict(set)
    names["recorded"] = {study.stem for study in RECORDED.glob("*.yaml")}
    for task in tasks:
        names[task.family].add(task.name)
    first = SPLITS.index(half) - 1
    chosen = {family: sorted(known)[first::2] for family, known in names.items()}
    return [task for task in tasks if task.name in chosen[task.family]]


def is_fair(task: Task, trials: int) -> bool:
    """Whether a budget leaves something to search for.

    A table with 64 configurations has nothing to find after 64 full trials, by any method, and
    random search is hard to beat long before. So a budget of full trials is at most half of the
    table. A method that stops trials early may still look at the whole table, and is then offered
    configurations again that it knows; how many trials each method started stands in the tables.
    """
    if isinstance(task, LCBench):  # its model is loaded only by the processes that race
        return True
    curves = task.curves()
    if not isinstance(curves, RecordedCurves):
        return True
    return trials <= TABLE_SHARE * len(curves.configurations)


def races(
    methods: Sequence[str], tasks: Sequence[Task], seeds: Iterable[int], terms: Sequence[Terms]
) -> list[Entry]:
    """All races of a command, with a note on those that are left out."""
    seeds = list(seeds)
    fair: dict[int, list[Task]] = {}
    for trials in sorted({each.trials for each in terms}):
        fair[trials] = [task for task in tasks if is_fair(task, trials)]
        too_small = [task.name for task in tasks if task not in fair[trials]]
        if too_small:
            note(f"no races over {trials} trials on small tables: {', '.join(too_small)}")
    return [
        Entry(method, task.family, task.name, seed, each)
        for each in terms
        for seed in seeds
        for task in fair[each.trials]
        for method in methods
    ]


def note(text: str) -> None:
    """Say something that is not part of the tables."""
    print(text, file=sys.stderr)
