"""How many studies call a trial better than the defaults, where it is and where it is not.

    python benchmarks/certify.py [--studies 1000] [--banking CSV] [--quick] [--json FILE]

First, studies of 12 trials on recorded workloads, with further seeds drawn as in `confirm.py`. All
are as good as the defaults, or half of them are better by so many standard deviations of a seed.
Beside `search.certify` stand the same winners with five fixed pairs and a paired t-test at 5%, and
the best trial taken as it is.

Then, with `--banking`, a folder with `train.csv` and `test.csv`: 16 text classifiers that are about
equally good, each trained with 12 seeds. A study takes the best one on 200 validation samples that
are drawn from the test set; the defaults are the truly best one. With and without results by
sample.
"""

import math
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import pandas as pd

from confirm import Drawn
from hpsearch.brain.confirmation import Confirmation
from hpsearch.domain.facts import Role
from hpsearch.domain.history import History
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import StudyRecord, Trial
from hpsearch.search.ranking.repeats import t_below
from hpsearch.search.ranking.selection import leading
from hpsearch.search.ranking.verdicts.certificate import Certificate
from hpsearch.study_file.models import PAIRS
from races.curves import Recorded, recorded_tasks
from tables import arguments, show, write
from trials.running.reported import note_of_samples

LEVEL, TRIALS, FIXED = 0.95, 12, 5


def recorded(task: Recorded, seed: int, gain: float) -> dict[str, float]:
    """What each way says of one study: its trials, and the repeats that the brain asks for."""
    curves, sign = Drawn(task, 60, seed), task._spec.objective.sign
    losses = sign * curves.ends.mean(axis=1)
    order = np.argsort(losses)
    near = curves.ends[order[: len(order) // 2]]
    deviation = float(np.median(np.abs(near[:, 0] - near[:, 1])) / 0.6745 / math.sqrt(2))
    defaults = int(np.argmin(np.abs(losses - losses[order[0]] - gain * deviation)))
    rows = [defaults if number % 2 == 0 else int(order[0]) for number in range(TRIALS)]
    search = task._spec.search.model_copy(update={"certify": LEVEL, "confirm": None})
    spec = task._spec.model_copy(update={"seed": seed, "search": search})
    history = History(StudyRecord(1, "recorded", "", (spec.objective.direction,)))
    for number, row in enumerate(rows):
        role = Role.SEARCH if number else Role.DEFAULT
        _add(history, curves.drawn(row), role)
    best = leading(history.trials, spec.objective.direction)
    assert best is not None
    confirmation = Confirmation(spec, history, lambda: None)
    confirmation.refresh()
    while (leader := confirmation.next_leader()) is not None:
        seed_of_pair = confirmation.seed_for(leader)
        repeat = _add(history, curves.drawn(rows[leader.number]), Role.CONFIRM)
        repeat.repeats, repeat.seed = leader.number, seed_of_pair
        confirmation.refresh()
    word = Certificate(history.trials, 0, sign, LEVEL, len(rows)).last_word()
    row = rows[best.number]
    pairs = [sign * (curves.drawn(defaults) - curves.drawn(row)) for _ in range(FIXED)]
    t = fmean(pairs) / (np.std(pairs, ddof=1) / math.sqrt(FIXED) or math.inf)
    return {
        "truly better by": float((losses[defaults] - losses[row]) / deviation),
        "certified": float(word is not None and word.is_shown),
        "repeats": float(len(history.repeats)),
        "fixed": float(best.number > 0 and t_below(FIXED - 1, t) > LEVEL),
        "taken": float(best.number > 0),
    }


def _add(history: History, value: float, role: Role) -> Trial:
    number = len(history.trials)
    trial = Trial(number, State.COMPLETE, {}, value=value, expected=value, resource=1.0, role=role)
    return history.add_trial(trial)


def answers(folder: Path) -> np.ndarray[Any, Any]:
    """The right answers of text classifiers, shape (configurations, seeds, samples)."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.naive_bayes import ComplementNB

    train, test = (pd.read_csv(folder / f"{part}.csv") for part in ("train", "test"))
    vectors = TfidfVectorizer(min_df=3, sublinear_tf=True)
    features, tested = vectors.fit_transform(train["text"]), vectors.transform(test["text"])
    right = np.zeros((16, 12, len(test)), dtype=bool)
    for one in range(16):
        kept = np.random.default_rng(one).random(features.shape[1]) < 0.9
        for seed in range(12):
            rows = np.random.default_rng([one, seed]).choice(len(train), len(train))
            model = ComplementNB().fit(features[rows][:, kept], train["category"].to_numpy()[rows])
            right[one, seed] = model.predict(tested[:, kept]) == test["category"].to_numpy()
    return right


def resampled(right: np.ndarray[Any, Any], seed: int, samples: int, *, gain: float) -> list[bool]:
    """What is certified of a winner on samples that were drawn, with results by sample and without,
    if the defaults are the truly best one, or are right so much less often."""
    draw = np.random.default_rng(seed)
    defaults = int(right.mean(axis=(1, 2)).argmax())
    rows = draw.choice(right.shape[2], samples)
    spoilt = draw.random((12, samples)) < gain
    validation = right[:, :, rows]
    of_defaults = validation[defaults] & ~spoilt
    winner = int(validation[:, 0].mean(axis=1).argmax())
    said = []
    for by_sample in (True, False):
        repeats: list[Trial] = []
        for place in range(1, PAIRS + 1):
            for repeated, found in ((1, validation[winner][place]), (0, of_defaults[place])):
                trial = Trial(len(repeats), State.COMPLETE, {}, float(found.mean()), seed=place)
                trial.role, trial.repeats = Role.CONFIRM, repeated
                trial.system_attrs = dict(note_of_samples(list(found)).kept) if by_sample else {}
                repeats.append(trial)
            word = Certificate(repeats, 0, -1.0, LEVEL, len(right)).last_word()
            if word is not None and word.is_shown:
                break
        said.append(word is not None and word.is_shown and (gain > 0 or winner != defaults))
    return said


def main() -> None:
    """Print both tables."""
    given = arguments(
        __doc__, {"studies": 30}, studies=1000, banking=Path("../shared/data/banking77")
    )
    tasks = [task for task in recorded_tasks() if any(len(run) > 1 for run in task._file.runs)]
    rows = []
    for gain, studies in (
        (0.0, given.studies),
        *((g, given.studies // 5) for g in (1.0, 2.0, 4.0)),
    ):
        found = [recorded(tasks[seed % len(tasks)], seed, gain) for seed in range(studies)]
        means = {name: fmean(each[name] for each in found) for name in found[0]}
        rows.append({"gain": gain, "studies": studies, **means})
    show("recorded workloads", rows, None)
    if given.banking.exists():
        right = answers(given.banking)
        for gain in (0.0, 0.05, 0.2):
            said = [resampled(right, n, 200, gain=gain) for n in range(given.studies)]
            by_sample, seeds_alone = map(fmean, zip(*said, strict=True))
            rows.append({"worse by": gain, "by sample": by_sample, "seeds alone": seeds_alone})
        show("resampled", rows[-3:], None)
    write(rows, given.json)


if __name__ == "__main__":
    main()
