"""What another hour was said to bring, what it brought, and what ending a study by that saves.

    python benchmarks/stopping.py [--tasks FILE] [--data DIR]
                                  [--family NAMES] [--split develop|report|all]
                                  [--trials 40] [--workers 4] [--seeds 1] [--json FILE] [--quick]

Studies run as in `anytime.py`, whose tasks and halves these are, to the end of their budget. At
each fiftieth of it, `Searcher.gain` says what 1, 2, 4 and 8 further full trainings bring. What they
brought is the difference of the true ends of the configurations that `hpsearch best` names before
and after. All of it is a share of the distance from the best value to the median one.

The last table stops each study afterwards, by several rules: `lost` is what the rest of the budget
would have brought, and `budget` the share of it that was used. In its last row every study ends at
the moment that, known afterwards, uses least of the budget and loses less than 0.01 on average.
"""

import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before numpy is imported

import numpy as np
import optuna
from optuna.terminator import EMMREvaluator, MedianErrorEvaluator, Terminator
from optuna.trial import FrozenTrial, create_trial

from hpsearch.brain.budget.next_hour import FEWEST, FEWEST_IN_FULL, GROWTH, STEADY
from hpsearch.brain.study import Study
from hpsearch.domain.history import Changes
from hpsearch.domain.lifecycle import State
from hpsearch.search.next_hour import chance_of
from hpsearch.study_file.space import distributions
from races import ours
from races.curves import Task, parameters
from races.race import Judge, Terms, moments
from races.schedule import SPLITS, is_fair, note, split, tasks_of
from simulation.running import simulate
from tables import arguments, show, write

HOURS = (1, 2, 4, 8)  # full trainings that are foretold
RANGES = 8  # of what was said, each with as many looks
LARGER = (0.005, 0.02, 0.1)  # the gains of which chances are told
WORTH, OF = (0.01, 0.02, 0.03), 4  # the least gains of so many full trainings
PATIENCE = (20, 40, 80)  # trials that end without a better one
SMALLEST = 10  # full trainings
LOST = 0.01  # what ending a study may lose


@dataclass
class Look:
    """A study at one moment."""

    spent: float  # the share of its budget
    regret: float  # of the configuration that is recommended
    ended: int
    in_full: list[FrozenTrial]  # the complete trials
    gains: dict[int, tuple[float, float]]
    """By full trainings to come, the gain that is expected and the scale of its chances."""


def watched(task: Task, terms: Terms, seed: int) -> list[Look]:
    """The looks at one study."""
    curves, ends, looks = task.curves(), moments(task, terms), list[Look]()
    judge, due = Judge(task, curves), moments(task, terms)[1::2]
    unit, space = task.median - task.best, distributions(parameters(task.space))

    def look(study: Study, changes: Changes, now: float) -> None:
        if not due or now < due[0]:
            return
        while due and now >= due[0]:
            due.pop(0)
        trials, states = study.history.trials, study.history.states
        so_far = sum(trial.resource for trial in trials) / task.total
        ended = len(trials) - states[State.RUNNING] - states[State.QUEUED]
        complete = [trial for trial in trials if trial.state is State.COMPLETE]
        gains = {}
        if ended >= FEWEST and len(complete) >= FEWEST_IN_FULL:
            spent = terms.trials * now / ends[-1]
            for hour in (n for n in HOURS if n <= spent):
                found = study._context.searcher.gain(hour / spent * so_far, so_far)
                if found is not None:
                    gains[hour] = found[0] / unit, found[1] / unit
        in_full = [
            create_trial(params=t.params, distributions=space, value=t.value) for t in complete
        ]
        regret = judge.of(ours.recommended(study))
        looks.append(Look(now / ends[-1], regret, ended, in_full, gains))

    spec = ours.study_file(task, terms, seed, {})
    simulate(spec, curves, terms.workers, moments=ends, watch=look)
    return looks


def told(looks: Sequence[Look], trials: int) -> Iterator[tuple[float, float, float]]:
    """What was said, its scale, and what came."""
    for look in looks:
        for hour, (said, scale) in look.gains.items():
            until = look.spent + hour / trials - 1e-9
            later = next((each for each in looks if each.spent >= until), None)
            if later is not None:
                yield said, scale, look.regret - later.regret


def sums(found: Sequence[tuple[float, float, float]]) -> list[dict[str, Any]]:
    """Said and came, over ranges of what was said; and how often more than some gains came."""
    rows = []
    for some in np.array_split(np.array(sorted(found)), RANGES):
        said, scales, came = some.T
        row = {"looks": len(some), "said": float(said.mean()), "came": float(came.mean())}
        for more in LARGER:
            chances = [chance_of(*each, more) for each in zip(said, scales, strict=True)]
            row |= {f"chance_{more}": fmean(chances), f"came_{more}": float((came > more).mean())}
        rows.append(row)
    return rows


def worth(looks: Sequence[Look], least: float) -> Look:
    """A study's own rule."""
    below = before = 0
    for look in looks:
        if OF in look.gains and look.ended >= max(before + 1, GROWTH * before):
            before = look.ended
            below = below + 1 if look.gains[OF][0] < least else 0
        if below == STEADY:
            return look
    return looks[-1]


def patience(looks: Sequence[Look], trials: int) -> Look:
    """Where so many trials have ended since the best complete one."""
    best, since = float("inf"), 0
    for look in looks:
        now = min((trial.value or 0.0 for trial in look.in_full), default=best)
        best, since = (now, look.ended) if now < best else (best, since)
        if look.in_full and look.ended - since >= trials:
            return look
    return looks[-1]


def terminator(looks: Sequence[Look]) -> Look:
    """Optuna's, by what it may know without cross-validation: EMMR beside the median error."""
    rule = EMMREvaluator()
    judge, before = Terminator(rule, MedianErrorEvaluator(rule), min_n_trials=FEWEST), 0
    for look in looks:
        if len(look.in_full) > before:
            before, study = len(look.in_full), optuna.create_study()
            study.add_trials(look.in_full)
            if judge.should_terminate(study):
                return look
    return looks[-1]


def by_hindsight(studies: Sequence[Sequence[Look]]) -> list[Look]:
    """The looks that use least of the budget and lose less than `LOST` on average."""
    at = [looks[-1] for looks in studies]
    for price in np.geomspace(1000, 0.01, 200):  # of a loss, in budgets
        least = [min(looks, key=lambda each: each.spent + price * each.regret) for looks in studies]
        if fmean(lost_by(least, studies)) >= LOST:
            break
        at = least
    return at


def lost_by(at: Sequence[Look], studies: Sequence[Sequence[Look]]) -> list[float]:
    """What studies that end at these looks lose."""
    return [each.regret - looks[-1].regret for each, looks in zip(at, studies, strict=True)]


def main() -> None:
    """Run the studies and print the tables."""
    quick = {"family": ["recorded"], "trials": 20}
    usual: dict[str, Any] = {
        "family": ["all"],
        "split": SPLITS,
        "trials": 40,
        "workers": 4,
        "seeds": 1,
    }
    given = arguments(__doc__, quick, tasks=Path, data=Path, **usual)
    warnings.simplefilter("ignore")
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    tasks = split(tasks_of(given.family, given.tasks, given.data), given.split)
    found, studies = list[tuple[float, float, float]](), list[list[Look]]()
    for task in tasks[:2] if given.quick else tasks:
        trials = next((n for n in range(given.trials, SMALLEST - 1, -1) if is_fair(task, n)), 0)
        for seed in range(given.seeds if trials else 0):
            note(f"{task.name}, {trials} trials, seed {seed}")
            looks = watched(task, Terms(trials, given.workers), seed)
            found += told(looks, trials)
            studies.append(looks)
    rows = sums(found)
    show("Gains: said and what came", rows, None)
    rules: dict[str, Callable[[Sequence[Look]], Look]] = {
        **{f"worth {n:g} of {OF}": partial(worth, least=n) for n in WORTH},
        **{f"patience {n}": partial(patience, trials=n) for n in PATIENCE},
        "Optuna's terminator": terminator,
        "half": lambda looks: looks[len(looks) // 2],
    }
    stopped = {name: [rule(looks) for looks in studies] for name, rule in rules.items()}
    ends = []
    for name, at in {**stopped, "with hindsight": by_hindsight(studies)}.items():
        lost = lost_by(at, studies)
        row = {"rule": name, "lost": fmean(lost), "above_0.01": fmean(n > LOST for n in lost)}
        ends.append({**row, "budget": fmean(each.spent for each in at)})
    show("\nStudies that are stopped", ends, None)
    write([*rows, *ends], given.json)


if __name__ == "__main__":
    main()
