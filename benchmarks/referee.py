"""What a referee of changed code keeps, beside greedy keep-if-better and a test by an oracle.

    python benchmarks/referee.py [--runs 40] [--campaigns 200] [--quick] [--json FILE]

Two small trainings, of a language model on the pages of `docs/` and of a table (scikit-learn's
digits), run with as many seeds as `--runs` as they are and with each of three changes that are
better. Campaigns then draw their runs from these pools, the two sides of a pair apart.

- *nulls*: 300 changes that change nothing but the luck of each run. Greedy keeps a change whose one
  run is better than the best so far. Of both: the changes kept in a campaign, and the campaigns
  that keep any.
- *gains*: 100 changes of which ten are of a kind that is better. The oracle knows the gain, and
  takes the fewest pairs for which a paired t-test at the level of `level_of` finds it eight times
  in ten; the column after it is of a t-test at 5% for this change alone.
"""

import math
import random
import warnings
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import torch
from scipy import stats
from sklearn.datasets import load_digits
from sklearn.metrics import log_loss
from sklearn.neural_network import MLPClassifier

from hpsearch.domain.facts import CodeVerdict
from hpsearch.search.ranking.verdicts.referee import level_of, ruling
from tables import arguments, show

DOCS = Path(__file__).parents[1] / "docs"
CHANGES: Mapping[str, tuple[Mapping[str, Any], ...]] = {
    "language": ({"steps": 130}, {"rate": 0.014}, {"width": 80}),
    "table": ({"max_iter": 24}, {"batch_size": 24}, {"hidden": 24}),
}
Pool = list[float]


def language(seed: int, steps: int = 120, width: int = 48, rate: float = 0.01) -> float:
    """The loss on held-out text of a network that guesses a letter by the eight before it."""
    torch.manual_seed(seed)
    windows, letters = _windows()
    model = torch.nn.Sequential(
        torch.nn.Embedding(letters, 12),
        torch.nn.Flatten(),
        torch.nn.Linear(96, width),
        torch.nn.ReLU(),
        torch.nn.Linear(width, letters),
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    for _ in range(steps):
        batch = windows[torch.randint(0, 40_000, (128,))]
        loss = torch.nn.functional.cross_entropy(model(batch[:, :-1]), batch[:, -1])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        held_out = windows[50_000:54_000]
        return float(torch.nn.functional.cross_entropy(model(held_out[:, :-1]), held_out[:, -1]))


@cache
def _windows() -> tuple[torch.Tensor, int]:
    text = "".join(path.read_text() for path in sorted(DOCS.glob("*.md")))[:60_000]
    numbers = {letter: at for at, letter in enumerate(sorted(set(text)))}
    return torch.tensor([numbers[letter] for letter in text]).unfold(0, 9, 1), len(numbers)


def table(seed: int, hidden: int = 16, max_iter: int = 20, batch_size: int = 32) -> float:
    """The log loss on held-out digits of a network trained on 600 of them."""
    inputs, digits = load_digits(return_X_y=True)
    model = MLPClassifier(
        (hidden,), random_state=seed, max_iter=max_iter, batch_size=batch_size, n_iter_no_change=99
    )
    model.fit(inputs[:600] / 16, digits[:600])
    return float(log_loss(digits[600:], model.predict_proba(inputs[600:] / 16)))


def campaign(base: Pool, sides: list[Pool], draw: random.Random) -> list[tuple[bool, int, float]]:
    """Of each change: whether it is kept, its pairs, and its level."""
    found, kept = [], 0
    for number, pool in enumerate(sides, 1):
        before, changed = [], []
        level, verdict = level_of(number, kept), CodeVerdict.OPEN
        while verdict is CodeVerdict.OPEN:
            before.append(draw.choice(base))
            changed.append(draw.choice(pool))
            verdict = ruling(changed, before, 1.0, level).verdict
        kept += verdict is CodeVerdict.KEEP
        found.append((verdict is CodeVerdict.KEEP, len(before), level))
    return found


def greedy(base: Pool, draw: random.Random) -> int:
    best, kept = draw.choice(base), 0
    for _ in range(300):
        value = draw.choice(base)
        kept += value < best
        best = min(best, value)
    return kept


@cache
def oracle(effect: float, level: float) -> int:
    """The pairs with which a t-test finds an effect, in deviations, eight times in ten."""
    pairs = 2
    while True:
        beyond = stats.t.ppf(1 - level, pairs - 1)
        if stats.nct.sf(beyond, pairs - 1, effect * math.sqrt(pairs)) >= 0.8:
            return pairs
        pairs += 1


def main() -> None:
    quick = {"runs": 4, "campaigns": 2}
    options = arguments(__doc__, quick, runs=40, campaigns=200)
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")  # that the table's networks are trained for a short time
    nulls, gains = [], []
    for name, train in (("language", language), ("table", table)):
        base = [train(seed) for seed in range(options.runs)]
        luck = random.Random(0)
        kept = [campaign(base, [base] * 300, luck) for _ in range(options.campaigns)]
        by_greed = [greedy(base, luck) for _ in range(options.campaigns)]
        nulls.append(
            {
                "training": name,
                "kept of 300": fmean(sum(keep for keep, *_ in each) for each in kept),
                "campaigns that keep any": fmean(any(keep for keep, *_ in each) for each in kept),
                "pairs a change": fmean(pairs for each in kept for _, pairs, _ in each),
                "greedy keeps": fmean(by_greed),
                "campaigns where it keeps any": fmean(map(bool, by_greed)),
            }
        )
        for change in CHANGES[name]:
            better = [train(seed + options.runs, **change) for seed in range(options.runs)]
            noise = math.hypot(stdev(base), stdev(better))
            effect = round((fmean(base) - fmean(better)) / noise, 2)
            sides = ([base] * 9 + [better]) * 10
            rounds = [
                campaign(base, sides, luck)[9::10] for _ in range(options.campaigns // 10 + 1)
            ]
            real = [each for found in rounds for each in found]
            knows = [oracle(effect, float(f"{level:.1g}")) for *_, level in real if effect > 0.3]
            gains.append(
                {
                    "training": name,
                    "change": ", ".join(f"{key} {value}" for key, value in change.items()),
                    "gain": effect,
                    "found": fmean(keep for keep, *_ in real),
                    "pairs": fmean(pairs for _, pairs, _ in real),
                    "oracle's pairs": fmean(knows or [math.nan]),
                    "at 5% alone": oracle(effect, 0.05) if knows else math.nan,
                }
            )
    show("nulls", nulls, options.json)
    show("gains (in deviations of a pair's difference)", gains, options.json)


if __name__ == "__main__":
    main()
