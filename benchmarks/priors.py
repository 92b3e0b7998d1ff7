"""What a study gains by priors and by earlier studies when they are right, and loses when wrong.

    python benchmarks/priors.py [--about priors|earlier] [--data DIR] [--tasks FILE]
                                [--split all|develop|report] [--seeds 2] [--trials 40]
                                [--workers 8] [--confidences low,medium,high] [--sources 8]
                                [--jobs N] [--json FILE] [--quick]

Every study runs on the recorded workloads and, with --data and --tasks, on LCBench, as in
`anytime.py`: with the real brain on a virtual clock, over a budget of --trials mean full trials.

With --about priors all parameters have priors, which together are one configuration:

- `good`: the best of a fifth of the configurations in the table, drawn at random (on LCBench: of a
  fifth of 200 random configurations)
- `misleading`: one of the worst quarter of all of them, drawn at random

With --about earlier a study knows the studies of other tasks of its family, run in the same way
without any, with seeds of their own. Spaces of recorded workloads differ: a study is told of the
parameters that it has in common with the others.

- `one`: the study of one other task
- `all`: those of all others, at most --sources
- `scrambled`: as `all`, with the standings of the configurations dealt out at random
- `reversed`: as `all`, with the best standing for the worst configuration, and so on

The regret is that of `anytime.py`. `gain` is by how much it is lower than that of the study that
knows nothing on the same task and seed, with the standard error over all races. Columns are shares
of the budget.

--split develop takes the tasks that the method was developed on, and report the others:
`table-cancer` and `images`, and every other task of LCBench, are for development. The earlier
studies are those of all tasks.
"""

from __future__ import annotations

import argparse
import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Any, cast

import numpy as np

import tables
from hpsearch.domain.facts import EarlierStudy
from hpsearch.domain.history import History
from hpsearch.domain.seeds import derived_seed
from hpsearch.search.curve_model.earlier import earlier_study_of
from races import ours, race
from races.curves import Task, parameters, random_configurations, tasks_in
from races.report import OURS, place
from races.schedule import SPLITS, note
from simulation.curves import RecordedCurves
from simulation.running import simulate

DEVELOPED_ON = ("images", "table-cancer")
"""Recorded workloads that the methods were developed on; of LCBench, every other task."""
MARKS = (10, 20, 25, 50, 100)
"""The shares of the budget, in percent, at which studies are compared."""
FIFTH = 0.2
"""The share of the configurations of which a good prior is the best."""
WORST = 0.25
"""The share of the configurations that are misleading."""
SAMPLE = 200
"""How many random configurations stand for those of a table, where there is no table."""
EARLIER_TRIALS = 2
"""An earlier study tries so many times as many configurations as fit into the budget in full."""
NOTHING = "nothing"
BELIEFS = ("good", "misleading")
EARLIER = ("one", "all", "scrambled", "reversed")
CONFIDENCES = ["low", "medium", "high"]
ALL = "all families"
"""Stands for all families together."""


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
    """One study to run. Its case is what it knows: `NOTHING`, a belief with a confidence, or one
    of `EARLIER`."""

    family: str
    task: str
    seed: int
    case: str


@dataclass(frozen=True)
class Terms:
    """What all studies share."""

    tasks: Path | None
    data: Path | None
    trials: int
    workers: int
    sources: int


Source = tuple[str, str, int]
"""The family, task and seed of an earlier study."""
Sources = Mapping[Source, History]


@lru_cache
def _tasks(terms: Terms, family: str) -> dict[str, Task]:
    return {task.name: task for task in tasks_in(terms.tasks, terms.data, family)}


@lru_cache
def _known(terms: Terms, family: str, name: str) -> tuple[list[dict[str, Any]], np.ndarray]:
    """Configurations of a task, and their final losses."""
    task = _tasks(terms, family)[name]
    curves = task.curves()
    if isinstance(curves, RecordedCurves):
        configurations = list(curves.configurations)
    else:
        configurations = random_configurations(task.space, SAMPLE, derived_seed("priors", name))
    judge = race.Judge(task, curves)
    losses = [judge.value(params, task.total)[0] for params in configurations]
    return configurations, np.array(losses)


def believed(terms: Terms, study: Study) -> dict[str, Any]:
    """The configuration that the priors of a study name."""
    configurations, losses = _known(terms, study.family, study.task)
    belief = study.case.split()[0]
    rng = np.random.default_rng(derived_seed("priors", belief, study.task, study.seed))
    if belief == "good":
        some = rng.choice(len(losses), size=math.ceil(FIFTH * len(losses)), replace=False)
        return dict(configurations[some[np.argmin(losses[some])]])
    worst = np.argsort(losses)[-math.ceil(WORST * len(losses)) :]
    return dict(configurations[rng.choice(worst)])


def finished(source: Source, terms: Terms) -> History:
    """The study of a task that knew nothing, given the family, the task and a seed."""
    family, name, seed = source
    warnings.simplefilter("ignore")  # warnings of libraries do not concern the reader
    task = _tasks(terms, family)[name]
    drawn = derived_seed("earlier", name, seed)
    race_terms = race.Terms(terms.trials, terms.workers)
    spec = ours.study_file(task, race_terms, drawn, {}, EARLIER_TRIALS * terms.trials)
    spec = spec.model_copy(update={"study": name})
    return simulate(spec, task.curves(), terms.workers)


def earlier_ones(terms: Terms, study: Study, rng: np.random.Generator) -> list[Source]:
    """The earlier studies that a study knows."""
    if study.case not in EARLIER:
        return []
    names = [name for name in _tasks(terms, study.family) if name != study.task]
    rng.shuffle(names)
    names = names[: 1 if study.case == "one" else terms.sources]
    return [(study.family, name, study.seed) for name in names]


def told(terms: Terms, study: Study, sources: Sources) -> list[EarlierStudy]:
    """What the earlier studies of a study tell it."""
    rng = _draw(study)
    space = parameters(_tasks(terms, study.family)[study.task].space)
    found = []
    for source in earlier_ones(terms, study, rng):
        earlier = earlier_study_of(sources[source], space)
        if earlier is not None:
            found.append(_changed(earlier, study.case, rng))
    return found


def _draw(study: Study) -> np.random.Generator:
    return np.random.default_rng(derived_seed("sources", study.task, study.seed))


def _changed(earlier: EarlierStudy, case: str, rng: np.random.Generator) -> EarlierStudy:
    """What an earlier study tells, with its standings exchanged where the case says so."""
    order = np.arange(len(earlier.trials))
    if case == "scrambled":
        order = rng.permutation(order)
    elif case == "reversed":
        order = order[::-1]
    trials = []
    for trial, number in zip(earlier.trials, order, strict=True):
        trials.append(replace(trial, params=earlier.trials[number].params))
    return replace(earlier, trials=trials)


def run(study: Study, terms: Terms, sources: Sources) -> list[float]:
    """The regret of a study at each of the marks, in any process."""
    warnings.simplefilter("ignore")  # warnings of libraries do not concern the reader
    task = _tasks(terms, study.family)[study.task]
    belief, *confidence = study.case.split()
    if belief in BELIEFS:
        task = cast(Task, Believed(task, believed(terms, study), *confidence))
    result = race.Result(OURS, study.task, study.family, study.seed, terms.workers)
    result.budget = terms.trials
    seed = derived_seed("anytime", study.task, study.seed)
    done = ours.race(task, seed, {}, result, told(terms, study, sources))
    return [done.regret[place(mark)] for mark in MARKS]


def run_task(
    studies: Sequence[Study], terms: Terms, sources: Sources
) -> list[tuple[Study, list[float]]]:
    """Run all studies of one task, in any process."""
    return [(study, run(study, terms, sources)) for study in studies]


def run_all(
    by_task: Sequence[Sequence[Study]], terms: Terms, jobs: int
) -> Iterator[tuple[Study, list[float]]]:
    """Run the earlier studies, and then those of each task as soon as a process is free."""
    wanted: dict[Source, None] = {}
    for study in (study for studies in by_task for study in studies):
        wanted |= dict.fromkeys(earlier_ones(terms, study, _draw(study)))
    with ProcessPoolExecutor(jobs) as pool:
        histories = pool.map(partial(finished, terms=terms), wanted)
        sources = dict(zip(wanted, histories, strict=True))
        futures = [pool.submit(run_task, studies, terms, sources) for studies in by_task]
        for future in as_completed(futures):
            yield from future.result()


def rows_of(results: Mapping[Study, list[float]], cases: Sequence[str]) -> list[dict[str, Any]]:
    """A row for each family and case, and for all families if there are several: mean regrets,
    and gains over the study that knows nothing."""
    families = list(dict.fromkeys(study.family for study in results))
    if len(families) > 1:
        families.append(ALL)
    return [_row(results, family, case) for family in families for case in cases]


def _row(results: Mapping[Study, list[float]], family: str, case: str) -> dict[str, Any]:
    regrets, gains = [], []
    for study, regret in results.items():
        if family in (study.family, ALL) and study.case == case:
            regrets.append(regret)
            gains.append(np.subtract(results[replace(study, case=NOTHING)], regret))
    row: dict[str, Any] = {"case": case, "family": family, "studies": len(regrets)}
    for mark, regret in zip(MARKS, np.mean(regrets, axis=0), strict=True):
        row[f"{mark}%"] = float(regret)
    for mark, gain in zip(MARKS, np.transpose(gains), strict=True):
        row[f"gain_{mark}%"] = float(gain.mean())
        row[f"error_{mark}%"] = tables.standard_error(list(map(float, gain)))
    return row


def chosen_tasks(given: argparse.Namespace, terms: Terms) -> list[Task]:
    """The tasks of the command line."""
    recorded = list(_tasks(replace(terms, tasks=None, data=None), "recorded").values())
    lcbench = [] if given.data is None else list(_tasks(terms, "lcbench").values())
    lcbench.sort(key=lambda task: task.name)
    developed = {*DEVELOPED_ON, *(task.name for task in lcbench[::2])}
    tasks = [*recorded, *lcbench]
    if given.split != SPLITS[0]:
        is_chosen = given.split == "develop"
        tasks = [task for task in tasks if (task.name in developed) is is_chosen]
    return tasks[:2] if given.quick else tasks


def main() -> None:
    """Run the studies, and print the table."""
    given = tables.arguments(
        __doc__,
        {"seeds": 1, "trials": 6, "sources": 2, "confidences": ["medium"]},
        about=("priors", "earlier"),
        data=Path,
        tasks=Path,
        split=SPLITS,
        seeds=2,
        trials=race.FULL_TRIALS,
        workers=8,
        confidences=CONFIDENCES,
        sources=8,
        jobs=1,
    )
    if (given.data is None) != (given.tasks is None):
        raise SystemExit("--data and --tasks go together")
    terms = Terms(given.tasks, given.data, given.trials, given.workers, given.sources)
    firm = [f"{belief} {confidence}" for belief in BELIEFS for confidence in given.confidences]
    cases = [NOTHING, *(firm if given.about == "priors" else EARLIER)]
    by_task = []
    for task in chosen_tasks(given, terms):
        kinds = [(seed, case) for seed in range(given.seeds) for case in cases]
        by_task.append([Study(task.family, task.name, *kind) for kind in kinds])
    results: dict[Study, list[float]] = {}
    for study, regret in run_all(by_task, terms, given.jobs):
        results[study] = regret
        shown = " / ".join(f"{each:.2f}" for each in regret)
        note(f"{study.task}, {study.case}, seed {study.seed}: {shown}")
    setup = f"{given.trials} full trials, {given.workers} workers"
    tables.show(f"Regret by what studies know ({setup})", rows_of(results, cases), given.json)


if __name__ == "__main__":
    main()
