"""What confirmation gains: simulated noisy studies with and without it, at equal total budget.

    python benchmarks/confirm.py [--studies 200] [--json FILE]

Each study searches a known landscape with the real brain on a virtual clock, within the same GPU
time. A trial measures its true value plus noise that is drawn from its seed, as if a model were
trained again. Without confirmation the whole budget is used for the search, and the trial with the
best value is recommended: the luckiest of many. With confirmation, `search.confirm` reserves part
of the budget and trains the leaders again.

The table shows, in standard deviations of the noise:

- the true values of the recommended configurations (0 is the best possible; lower is better), with
  their standard errors,
- the difference between the two kinds of study, seed by seed,
- by how much the value that is stated for the winner is too good,
- how often the 90% interval of the winner, and those of all confirmed trials, cover the true value.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from hpsearch.domain.facts import Role
from hpsearch.domain.history import History
from hpsearch.ranking.selection import Ranked, rank
from hpsearch.simulation.running import simulate
from hpsearch.study_file.models import StudySpec
from hpsearch.study_file.reading import parse

EPOCHS = 9
SECONDS_PER_EPOCH = 10.0
FULL_TRIALS = 40
"""The budget of a study, in full trials."""
WORKERS = 4
CONFIRM = {"top": 3, "seeds": 3}
NOISES = (0.05, 0.1, 0.2, 0.4)
"""Standard deviations of the noise. That of random configurations' true values is about 0.2."""

HEADINGS = (
    "noise   raw winner      confirmed       gain           stated too good by  winner's 90%"
    "  all 90%  repeats"
)


@dataclass(frozen=True)
class Noisy:
    """Loss curves that fall towards (x - 0.3)^2 + (y - 0.6)^2, plus noise drawn from the seed."""

    noise: float

    def measure(self, params: Mapping[str, Any], seed: int, resource: float) -> Mapping[str, float]:
        """The loss at a resource: the true value, what is still to be learned, and noise."""
        drawn = np.random.default_rng(seed).normal()
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
    """What one study recommended."""

    true: float
    stated: float
    """The confirmed mean, or the value from the search."""
    covered: bool | None
    """Whether the winner's interval covers its true value; None without an interval."""
    intervals: int
    covering: int
    repeats: int
    gpu_seconds: float


def outcome(history: History) -> Outcome:
    """Evaluate the winner of a study, and all intervals."""
    ranked = rank(history.trials, "minimize")
    winner, hits = ranked[0], [hit for each in ranked if (hit := covers(each)) is not None]
    return Outcome(
        true=truth(winner.trial.params),
        stated=winner.value if winner.confirmed is None else winner.confirmed.mean,
        covered=covers(winner),
        intervals=len(hits),
        covering=sum(hits),
        repeats=sum(trial.role is Role.CONFIRM for trial in history.trials),
        gpu_seconds=sum(trial.gpu_seconds for trial in history.trials),
    )


def covers(ranked: Ranked[Any]) -> bool | None:
    """Whether a trial's interval covers its true value; None if it has no interval."""
    confirmed = ranked.confirmed
    if confirmed is None or confirmed.low is None or confirmed.high is None:
        return None
    return confirmed.low <= truth(ranked.trial.params) <= confirmed.high


def outcomes(
    noise: float, confirm: Mapping[str, int] | None, studies: int, full_trials: float
) -> list[Outcome]:
    """Run that many studies with different seeds."""
    curves = Noisy(noise)
    return [
        outcome(simulate(study(seed, confirm, full_trials), curves, WORKERS))
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
    return float(values.mean()), float(values.std(ddof=1) / math.sqrt(len(values)))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--studies",
        type=int,
        default=200,
        help="studies of each kind at each noise level (default 200)",
    )
    parser.add_argument("--json", type=Path, help="also write all numbers to this file")
    arguments = parser.parse_args()
    rows = []
    each = f"{FULL_TRIALS} full trials on {WORKERS} workers"
    print(f"{arguments.studies} studies per line, each of {each}; {CONFIRM}")
    print(HEADINGS)
    for noise in NOISES:
        row = compare(noise, arguments.studies)
        rows.append(row)
        told = "  ".join(
            f"{row[name][0]:6.3f} ± {row[name][1]:.3f}" for name in ("raw", "confirmed", "gain")
        )
        flatters = f"{row['raw_flatters']:5.2f} / {row['confirmed_flatters']:5.2f}"
        covered = f"{row['winner_covered']:11.1%}  {row['covered']:6.1%}"
        print(f"{noise:5.2f}  {told}  {flatters:>17}  {covered}  {row['repeats']:7.1f}")
        sys.stdout.flush()
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
