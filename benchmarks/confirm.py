"""The gain by confirmation, and how often intervals hold what they promise.

    python benchmarks/confirm.py [--studies 200] [--quick] [--json FILE]

Each study searches a known landscape with the real brain on a virtual clock, within the same GPU
time. A trial measures its true value plus noise, as if a model were trained again. Without
confirmation the whole budget is used for the search, and the trial with the best value is
recommended: the luckiest of many. With confirmation, `search.confirm` reserves part of the budget
and trains the leaders again.

The table shows, in standard deviations of the noise:

- the true values of the recommended configurations (0 is the best possible; lower is better), with
  their standard errors,
- the difference between the two kinds of study, seed by seed,
- by how much the value that is stated for the winner is too good,
- how often the 90% interval of the winner, and those of all confirmed trials, hold the end of one
  more training.

The second table is of recorded workloads of which configurations were trained with a second seed,
by the halves of `races`: studies that train each configuration once, and studies that repeat three
of them three or five times. It shows how often the interval of the winner, and those of the trials
that are tied with it, hold the second seed. Where a study repeats, that one and the repeats are the
mean of both recorded ends, plus the difference of the two ends of a configuration that is about as
good, over the root of two, with a random sign.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import yaml

from hpsearch.domain.facts import Role
from hpsearch.domain.history import History
from hpsearch.domain.lifecycle import State
from hpsearch.search.ranking.selection import Ranked, rank
from hpsearch.study_file.models import Confirm, StudySpec
from hpsearch.study_file.reading import parse
from races.curves import Recorded, recorded_tasks
from races.schedule import SPLITS, split
from simulation.curves import Curve, RecordedCurves
from simulation.running import simulate
from tables import arguments, show, standard_error, write

EPOCHS = 9
SECONDS_PER_EPOCH = 10.0
FULL_TRIALS = 40
"""The budget of a study, in full trials."""
WORKERS = 4
CONFIRM = {"top": 3, "seeds": 3}
NOISES = (0.05, 0.1, 0.2, 0.4)
"""Standard deviations of the noise. That of random configurations' true values is about 0.2."""


@dataclass(frozen=True)
class Noisy:
    """Loss curves that fall towards (x - 0.3)^2 + (y - 0.6)^2, plus noise of their own."""

    noise: float

    def measure(self, params: Mapping[str, Any], seed: int, resource: float) -> Mapping[str, float]:
        """The loss at a resource: the true value, what is still to be learned, and noise."""
        drawn = np.random.default_rng([seed, *(int(1e9 * params[name]) for name in "xy")]).normal()
        return {"loss": truth(params) + 0.3 * (1 - resource / EPOCHS) + self.noise * float(drawn)}

    def seconds(self, params: Mapping[str, Any], resource: float) -> float:
        """Every epoch takes the same time."""
        return resource * SECONDS_PER_EPOCH


def truth(params: Mapping[str, Any]) -> float:
    """The mean final loss of a configuration over seeds; 0 is the best possible."""
    return float((params["x"] - 0.3) ** 2 + (params["y"] - 0.6) ** 2)


def study(
    seed: int, confirm: Mapping[str, int] | None, full_trials: float = FULL_TRIALS
) -> StudySpec:
    """A study with a budget of that many full trials of GPU time."""
    unit = {"type": "float", "low": 0.0, "high": 1.0}
    written = {
        "study": "noisy",
        "seed": seed,
        "task": {"kind": "recorded.curves:train"},
        "space": {"x": unit, "y": unit},
        "objective": {"metric": "loss", "direction": "minimize"},
        "budget": {
            "gpu_hours": full_trials * EPOCHS * SECONDS_PER_EPOCH / 3600,
            "per_trial": {"epochs": EPOCHS, "report_every": 3},
        },
        "search": {"sampler": "random", "pruner": "none", "confirm": confirm and dict(confirm)},
    }
    return parse(yaml.safe_dump(written), base=Path.cwd())


@dataclass(frozen=True)
class Outcome:
    """The recommendation of one study."""

    true: float
    stated: float
    """Its expected value when it is trained again."""
    covered: bool | None
    """True if the winner's interval holds one more training; None without repeats."""
    intervals: int
    covering: int
    repeats: int
    gpu_seconds: float


def outcome(history: History, noise: float) -> Outcome:
    """Evaluate the winner of a study, and all intervals."""
    ranked = rank(history.trials, "minimize")
    winner, hits = ranked[0], [hit for each in ranked if (hit := covers(each, noise)) is not None]
    return Outcome(
        true=truth(winner.trial.params),
        stated=winner.value if winner.again is None else winner.again.mean,
        covered=covers(winner, noise),
        intervals=len(hits),
        covering=sum(hits),
        repeats=sum(trial.role is Role.CONFIRM for trial in history.trials),
        gpu_seconds=sum(trial.gpu_seconds for trial in history.trials),
    )


def covers(ranked: Ranked[Any], noise: float) -> bool | None:
    """True if a trial's interval holds one more training; None if it was not confirmed."""
    confirmed, trial = ranked.confirmed, ranked.trial
    if confirmed is None or confirmed.low is None or confirmed.high is None:
        return None
    again = noise * float(np.random.default_rng([trial.seed, trial.number]).normal())
    return confirmed.low <= truth(trial.params) + again <= confirmed.high


def outcomes(
    noise: float, confirm: Mapping[str, int] | None, studies: int, full_trials: float
) -> list[Outcome]:
    """Run that many studies with different seeds."""
    curves = Noisy(noise)
    return [
        outcome(simulate(study(seed, confirm, full_trials), curves, WORKERS), noise)
        for seed in range(studies)
    ]


def compare(
    noise: float,
    studies: int,
    confirm: Mapping[str, int] = CONFIRM,
    full_trials: float = FULL_TRIALS,
) -> dict[str, Any]:
    """Both kinds of study at one noise level; the top of this file describes the fields."""
    raw = outcomes(noise, None, studies, full_trials)
    confirmed = outcomes(noise, confirm, studies, full_trials)
    gain = np.array([r.true - c.true for r, c in zip(raw, confirmed, strict=True)]) / noise
    return {
        "noise": noise,
        "raw": mean_and_error(np.array([each.true for each in raw]) / noise),
        "confirmed": mean_and_error(np.array([each.true for each in confirmed]) / noise),
        "gain": mean_and_error(gain),
        "raw_flatters": float(np.mean([each.true - each.stated for each in raw])) / noise,
        "confirmed_flatters": float(np.mean([each.true - each.stated for each in confirmed]))
        / noise,
        "winner_covered": float(np.mean([bool(each.covered) for each in confirmed])),
        "covered": sum(each.covering for each in confirmed)
        / max(1, sum(each.intervals for each in confirmed)),
        "repeats": float(np.mean([each.repeats for each in confirmed])),
        "raw_gpu_seconds": float(np.mean([each.gpu_seconds for each in raw])),
        "confirmed_gpu_seconds": float(np.mean([each.gpu_seconds for each in confirmed])),
    }


def mean_and_error(values: np.ndarray[Any, np.dtype[np.float64]]) -> tuple[float, float]:
    """The mean, and its standard error."""
    return float(values.mean()), standard_error(list(map(float, values)))


# ------------------------------------------------------------------------ recorded second seeds

NEAR = 5
"""The configurations on either side in the order of ends whose differences are drawn from."""


class Drawn(RecordedCurves):
    """Recorded curves whose further seeds are drawn from the two recorded ones of each."""

    def __init__(self, task: Recorded, size: int, seed: int) -> None:
        recorded, self._metric = task._file, task._spec.objective.metric
        rows = [n for n, runs in enumerate(recorded.runs) if self._is_usable(runs)]
        self._draw = np.random.default_rng(seed)
        chosen = self._draw.choice(rows, min(size, len(rows)), replace=False)
        super().__init__(
            task._spec.space,
            [recorded.configurations[n] for n in chosen],
            [recorded.runs[n] for n in chosen],
        )
        self.ends = np.array([[self._end(run) for run in runs[:2]] for runs in self.runs])
        self._order = list(np.argsort(self.ends.mean(axis=1)))
        self._shifts: dict[tuple[int, int], float] = {}
        self._firsts: dict[int, int] = {}

    def _end(self, curve: Curve) -> float:
        return float(curve.metrics[self._metric][-1])

    def _is_usable(self, runs: Sequence[Curve]) -> bool:
        return len(runs) > 1 and all(math.isfinite(self._end(run)) for run in runs[:2])

    def drawn(self, row: int) -> float:
        """The end of a further training of a configuration."""
        place = self._order.index(row)
        near = self._order[max(0, place - NEAR) : place + NEAR + 1]
        one, other = self.ends[self._draw.choice(near)]
        sign = self._draw.choice([-1.0, 1.0])
        return float(self.ends[row].mean() + sign * (one - other) / math.sqrt(2))

    def measure(self, params: Mapping[str, Any], seed: int, resource: float) -> Mapping[str, float]:
        """The first recorded curve, for other seeds moved to an end that is drawn."""
        row = self._row(params)
        first = self._firsts.setdefault(row, seed)
        found = dict(self.runs[row][0].at(resource))
        if seed != first:
            end = self.ends[row][0]
            shift = self._shifts.setdefault((row, seed), self.drawn(row) - end)
            found[self._metric] += shift
        return found


def held(task: Recorded, seed: int, seeds: int) -> tuple[list[bool], list[bool]]:
    """By interval of a study's winner, and of complete trials that are tied with it, whether it
    holds one more training."""
    curves = Drawn(task, 60, seed)
    spec = task._spec
    trials = min(20, len(curves.runs) * 2 // 3)
    confirm = Confirm(top=3, seeds=seeds) if seeds else None
    search = spec.search.model_copy(update={"confirm": confirm})
    if seed % 2:  # half of the studies train every trial in full
        search = search.model_copy(
            update={"pruner": search.pruner.model_copy(update={"kind": "none"})}
        )
    budget = spec.budget.model_copy(update={"trials": trials})
    spec = spec.model_copy(update={"seed": seed, "budget": budget, "search": search})
    history = simulate(spec, curves, WORKERS)
    objective = spec.objective
    ranked = rank(history.trials, objective.direction, objective.metric)
    winner: list[bool] = []
    ties: list[bool] = []
    for place, each in enumerate(ranked):
        again = each.again
        if each.trial.state is not State.COMPLETE or again is None or again.low is None:
            continue
        row = curves._row(each.trial.params)
        end = curves.drawn(row) if seeds else curves.ends[row][1]
        if place == 0 or each.tied:
            (ties if place else winner).append(again.low <= end <= (again.high or end))
    return winner, ties


def recorded_rows(studies: int, most: int | None) -> list[dict[str, Any]]:
    """For each half and number of repeats, the shares of intervals that hold: the means over
    workloads, of which a number may be the most in each half."""
    rows = []
    for half in SPLITS[1:]:
        tasks = [t for t in split(recorded_tasks(), half) if any(len(r) > 1 for r in t._file.runs)]
        for seeds in (0, 3, 5):
            row: dict[str, Any] = {"half": half, "repeats": seeds}
            of_workloads = []
            for task in tasks[:most]:
                found = [held(task, seed, seeds) for seed in range(studies)]
                shares = {}
                for name, part in (("winner", 0), ("ties", 1)):
                    hits = [hit for each in found for hit in each[part]]
                    shares[name] = fmean(hits) if hits else math.nan
                of_workloads.append(shares)
            for name in ("winner", "ties"):
                known = [shares[name] for shares in of_workloads]
                known = [share for share in known if not math.isnan(share)]
                row[name] = fmean(known) if known else math.nan
            rows.append(row)
    return rows


def main() -> None:
    """Print the table."""
    given = arguments(__doc__, {"studies": 2}, studies=200)
    each = f"{FULL_TRIALS} full trials on {WORKERS} workers"
    title = f"{given.studies} studies per line, each of {each}; {CONFIRM}"
    rows = [compare(noise, given.studies) for noise in (NOISES[:1] if given.quick else NOISES)]
    show(title, [{name: _text(value) for name, value in row.items()} for row in rows], None)
    recorded = recorded_rows(max(2, given.studies // 8), 1 if given.quick else None)
    show("90% intervals that hold one more training", recorded, None)
    write([*rows, *recorded], given.json)


def _text(value: float | tuple[float, float]) -> float | str:
    """A number, or a mean with its error."""
    return f"{value[0]:.3f} ± {value[1]:.3f}" if isinstance(value, tuple) else value


if __name__ == "__main__":
    main()
