"""What the stated trust in rungs is worth: simulated studies whose curves are known to the end.

    python benchmarks/trust.py [--studies 200] [--trials 100] [--quick] [--json FILE]

Each study searches at random with the real brain on a virtual clock. Every configuration has a
quality, and each rung shows it with noise, so that the correlation of a rung with the end is known:
none, moderate, high, or perfect. The noise is either new at each rung, or goes on from rung to rung
(`walk`), as the luck of a training does.

After each study, the ends of all its trials are read from the curves, also of those that paused.
The table compares what `hpsearch.search.ranking.trust` says with that at each rung: the correlation
among all trials that reached the rung, the truth and what is stated, as means, and how often the
stated 90% interval covers the truth of its study.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import yaml

from hpsearch.domain.history import History
from hpsearch.domain.seeds import derived_seed
from hpsearch.search.ranking.trust import RungTrust, TrialCurve, rank_correlation, trust
from hpsearch.simulation.running import simulate
from hpsearch.study_file.levels import rung_levels
from hpsearch.study_file.models import StudySpec
from hpsearch.study_file.reading import parse

EPOCHS = 9
WORKERS = 4
CORRELATIONS = (0.0, 0.5, 0.9, 1.0)
KINDS = ("new", "walk")

HEADINGS = "noise  rho  rung  known  correlation  stated  covered  90% is wide"


@dataclass(frozen=True)
class Known:
    """Losses that fall in the same way, plus a quality and noise, both drawn from the
    configuration.

    Args:
        correlation: Of what the first rung shows with the quality.
        kind: `new` noise at each rung, or a `walk` that ends at the quality.
    """

    correlation: float
    kind: str

    def measure(self, params: Mapping[str, Any], seed: int, resource: float) -> Mapping[str, float]:
        """The loss at a resource."""
        drawn = np.random.default_rng(int(params["x"] * 2**52))
        quality, *noises = drawn.normal(size=2 + EPOCHS)
        epoch = int(resource)
        left = 1 - (resource - 1) / (EPOCHS - 1)
        if self.kind == "walk":
            # Noise of which a part is taken away with each epoch, until nothing is left.
            noise = math.fsum(noises[epoch + 1 :]) / math.sqrt(EPOCHS - 1)
        else:
            noise = noises[epoch] * math.sqrt(left)
        spread = _noise_for(self.correlation)
        shown = quality + spread * noise if spread < math.inf else noise if left else quality
        return {"loss": float(shown) + 1000 / (1 + resource)}

    def seconds(self, params: Mapping[str, Any], resource: float) -> float:
        """Every epoch takes the same time."""
        return resource * 10.0


def _noise_for(correlation: float) -> float:
    """How much noise, in spreads of the quality, leaves so much correlation."""
    if correlation == 0:
        return math.inf
    return math.sqrt(1 / correlation**2 - 1)


def study(seed: int, trials: int) -> StudySpec:
    """A study of so many trials with two rungs."""
    written = {
        "study": "known",
        "seed": seed,
        "task": {"kind": "recorded.curves:train"},
        "space": {"x": {"type": "float", "low": 0.0, "high": 1.0}},
        "objective": {"metric": "loss", "direction": "minimize"},
        "budget": {"trials": trials, "per_trial": {"epochs": EPOCHS}},
        "search": {"sampler": "random"},
    }
    return parse(yaml.safe_dump(written), base=Path.cwd())


@dataclass(frozen=True)
class Seen:
    """What one study says of a rung, and what is true of it."""

    stated: RungTrust
    correlation: float | None


def seen(history: History, spec: StudySpec, curves: Known) -> list[Seen]:
    """What a study says of each of its rungs, beside the truth."""
    levels = rung_levels(spec)
    shown = []
    for trial in history.trials:
        scores = {}
        for resource, report in trial.reports.items():
            scores[resource] = math.nan if report.value is None else report.value
        shown.append(TrialCurve(trial.number, trial.state, trial.rung, scores))
    found = []
    for index, stated in enumerate(trust(shown, levels)):
        level = levels[index]
        at: dict[int, float] = {}
        end: dict[int, float] = {}
        for trial in history.trials:
            if level in trial.reports:
                losses = [curves.measure(trial.params, 0, n)["loss"] for n in range(1, EPOCHS + 1)]
                at[trial.number] = losses[int(level) - 1]
                end[trial.number] = min(losses[int(level) :])
        order = list(at)
        truth = rank_correlation([at[n] for n in order], [end[n] for n in order])
        found.append(Seen(stated, truth))
    return found


@dataclass(frozen=True)
class Row:
    """The studies of one setting, at one rung."""

    noise: str
    rho: float
    rung: int
    known: float
    """The share of studies that state a correlation."""
    correlation: float
    stated_correlation: float
    correlation_covered: float
    width: float


def rows(kind: str, rho: float, studies: int, trials: int) -> list[Row]:
    """Run studies of one setting with different seeds."""
    curves = Known(rho, kind)
    by_rung: list[list[Seen]] = [[], []]
    for number in range(studies):
        spec = study(derived_seed("trust", number), trials)
        history = simulate(spec, curves, WORKERS)
        for index, each in enumerate(seen(history, spec, curves)):
            by_rung[index].append(each)
    return [_row(kind, rho, index, all_seen) for index, all_seen in enumerate(by_rung)]


def _row(kind: str, rho: float, rung: int, all_seen: list[Seen]) -> Row:
    pairs = [(s.correlation, s.stated.correlation) for s in all_seen]
    known = [(true, said) for true, said in pairs if true is not None and said is not None]
    return Row(
        noise=kind,
        rho=rho,
        rung=rung,
        known=len(known) / len(all_seen),
        correlation=_mean([true for true, _ in known]),
        stated_correlation=_mean([said.value for _, said in known]),
        correlation_covered=_mean([said.low <= true <= said.high for true, said in known]),
        width=_mean([said.high - said.low for _, said in known]),
    )


def _mean(values: list[float] | list[bool]) -> float:
    return fmean(values) if values else math.nan


def _line(row: Row) -> str:
    return (
        f"{row.noise:5}  {row.rho:.1f}  {row.rung:4d}  {row.known:5.0%}"
        f"  {row.correlation:11.2f}  {row.stated_correlation:6.2f}  {row.correlation_covered:7.0%}"
        f"  {row.width:11.2f}"
    )


def main(arguments: list[str]) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--studies", type=int, default=200, help="for each line")
    parser.add_argument("--trials", type=int, default=100, help="in each study")
    parser.add_argument("--quick", action="store_true", help="few studies, within a minute")
    parser.add_argument("--json", type=Path, help="write the rows to this file")
    options = parser.parse_args(arguments)
    studies = 3 if options.quick else options.studies
    trials = 40 if options.quick else options.trials
    correlations = (0.0, 0.9) if options.quick else CORRELATIONS
    print(HEADINGS)
    done: list[Row] = []
    for kind in KINDS:
        for rho in correlations:
            found = rows(kind, rho, studies, trials)
            for row in found:
                print(_line(row), flush=True)
            done += found
    if options.json:
        options.json.write_text(json.dumps([asdict(row) for row in done], indent=2))


if __name__ == "__main__":
    main(sys.argv[1:])
