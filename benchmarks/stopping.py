"""What another hour was said to bring, what it brought, and what ending a study by that saves.

    python benchmarks/stopping.py [--tasks FILE] [--data DIR]
                                  [--family NAMES] [--split develop|report|all]
                                  [--trials 40] [--workers 4] [--seeds 1] [--json FILE] [--quick]

Studies run as in `anytime.py`, whose tasks and halves these are, to the end of their budget. At
each fiftieth of it, `Searcher.gain` says what 1, 2, 4 and 8 further full trainings bring. What they
brought is the difference of the true ends of the configurations that `hpsearch best` names before
and after. All of it is a share of the distance from the best value to the median one.

The last table stops each study afterwards, by several rules: `lost` is what the rest of the budget
would have brought, and `budget` the share of it that was used.
"""

import os
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before numpy is imported

import optuna
from optuna.terminator import EMMREvaluator, MedianErrorEvaluator, Terminator

from hpsearch.brain.next_hour import FEWEST, FEWEST_IN_FULL, GROWTH, STEADY
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


@dataclass
class Look:
    """A study at one moment."""

    spent: float  # the share of its budget
    regret: float  # of the configuration that is recommended
    ended: int
    in_full: list[tuple[dict[str, Any], float]]  # configurations and values of complete trials
    gains: dict[int, tuple[float, float]]
    """By full trainings to come, the gain that is expected and the scale of its chances."""


def watched(task: Task, terms: Terms, seed: int) -> list[Look]:
    """The looks at one study."""
    curves, ends, looks = task.curves(), moments(task, terms), list[Look]()
    judge, due = Judge(task, curves), moments(task, terms)[1::2]
    unit = task.median - task.best

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
            for hour in HOURS:
                found = study._context.searcher.gain(hour, so_far) if hour <= so_far else None
                if found is not None:
                    gains[hour] = found[0] / unit, found[1] / unit
        in_full = [(trial.params, trial.value or 0.0) for trial in complete]
        regret = judge.of(ours.recommended(study))
        looks.append(Look(now / ends[-1], regret, ended, in_full, gains))

    spec = ours.study_file(task, terms, seed, {})
    simulate(spec, curves, terms.workers, moments=ends, watch=look)
    return looks


def told(studies: Sequence[Sequence[Look]], trials: int) -> list[tuple[float, float, float]]:
    """What was said, its scale, and what came."""
    found = []
    for looks in studies:
        for look in looks:
            for hour, (said, scale) in look.gains.items():
                until = look.spent + hour / trials - 1e-9
                later = next((each for each in looks if each.spent >= until), None)
                if later is not None:
                    found.append((said, scale, look.regret - later.regret))
    return sorted(found)


def sums(found: Sequence[tuple[float, float, float]]) -> list[dict[str, Any]]:
    """Said and came, over ranges of what was said; and how often more than some gains came."""
    rows = []
    for place in range(RANGES):
        some = found[place * len(found) // RANGES : (place + 1) * len(found) // RANGES]
        row: dict[str, Any] = {"looks": len(some)}
        row |= {"said": fmean(each[0] for each in some), "came": fmean(each[2] for each in some)}
        for more in LARGER:
            row[f"chance_{more}"] = fmean(chance_of(said, scale, more) for said, scale, _ in some)
            row[f"came_{more}"] = fmean(came > more for _, _, came in some)
        rows.append(row)
    return rows


Rule = Callable[[Sequence[Look]], Look]


def worth(least: float) -> Rule:
    """A study's own rule."""

    def stop(looks: Sequence[Look]) -> Look:
        below = before = 0
        for look in looks:
            if OF not in look.gains or look.ended <= before or look.ended < GROWTH * before:
                continue
            before = look.ended
            below = below + 1 if look.gains[OF][0] < least else 0
            if below == STEADY:
                return look
        return looks[-1]

    return stop


def patience(trials: int) -> Rule:
    """Stop when so many trials have ended since the best complete one."""

    def stop(looks: Sequence[Look]) -> Look:
        best, since = float("inf"), 0
        for look in looks:
            now = min((value for _, value in look.in_full), default=best)
            best, since = (now, look.ended) if now < best else (best, since)
            if look.in_full and look.ended - since >= trials:
                return look
        return looks[-1]

    return stop


def terminator(space: dict[str, Any]) -> Rule:
    """Optuna's, by what it may know without cross-validation: EMMR beside the median error."""

    def stop(looks: Sequence[Look]) -> Look:
        rule = EMMREvaluator()
        judge = Terminator(rule, MedianErrorEvaluator(rule), min_n_trials=FEWEST)
        before = 0
        for look in looks:
            if len(look.in_full) <= before:
                continue
            before = len(look.in_full)
            study = optuna.create_study()
            for params, value in look.in_full:
                study.add_trial(
                    optuna.trial.create_trial(params=params, distributions=space, value=value)
                )
            if judge.should_terminate(study):
                return look
        return looks[-1]

    return stop


def stopped(studies: Sequence[Sequence[Look]], name: str, rules: Sequence[Rule]) -> dict[str, Any]:
    """What a rule loses and saves, with one rule for each study."""
    pairs = [(looks, rule(looks)) for looks, rule in zip(studies, rules, strict=True)]
    lost = [at.regret - looks[-1].regret for looks, at in pairs]
    spent = [at.spent for _, at in pairs]
    return {
        "rule": name,
        "lost": fmean(lost),
        "above_0.01": fmean(each > 0.01 for each in lost),
        "budget": fmean(spent),
    }


def main() -> None:
    """Run the studies and print the tables."""
    given = arguments(
        __doc__,
        {"family": ["recorded"], "trials": [20]},
        tasks=Path,
        data=Path,
        family=["all"],
        split=SPLITS,
        trials=[40],
        workers=[4],
        seeds=1,
    )
    warnings.simplefilter("ignore")
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    tasks = split(tasks_of(given.family, given.tasks, given.data), given.split)
    found, studies, spaces = [], [], []
    for task in tasks[:2] if given.quick else tasks:
        for most in given.trials:
            trials = next((n for n in range(most, SMALLEST - 1, -1) if is_fair(task, n)), 0)
            for workers in given.workers:
                for seed in range(given.seeds if trials else 0):
                    note(f"{task.name}, {trials} trials, {workers} workers, seed {seed}")
                    looks = watched(task, Terms(trials, workers), seed)
                    found += told([looks], trials)
                    studies.append(looks)
                    spaces.append(distributions(parameters(task.space)))
    rows = sums(sorted(found))
    show("Gains: said and what came", rows, None)
    rules = {f"worth {least:g} of {OF}": [worth(least)] * len(studies) for least in WORTH}
    rules |= {f"patience {n}": [patience(n)] * len(studies) for n in PATIENCE}
    rules |= {"Optuna's terminator": [terminator(space) for space in spaces]}
    rules |= {"half": [lambda looks: looks[len(looks) // 2]] * len(studies)}
    ends = [stopped(studies, name, each) for name, each in rules.items()]
    show("\nStudies that are stopped", ends, None)
    write([*rows, *ends], given.json)


if __name__ == "__main__":
    main()
