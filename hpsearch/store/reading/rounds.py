"""What the folds, or the seeds, of a study tell of the values of its trials, the means over them.

A report is the mean over the rounds so far, so that two of them tell a round's own value. What is
left of these, after the mean of each complete trial and that of each round, is how far a training
varies: folds are the same in all trials. The interval of a mean over folds is corrected for
training sets that overlap (Nadeau and Bengio, "Inference for the Generalization Error", 2003).
"""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean, stdev, variance

from sqlalchemy import Connection, select

from hpsearch.domain.lifecycle import State
from hpsearch.search.ranking.again import Noise
from hpsearch.search.ranking.metric_bounds import bounds_of
from hpsearch.search.ranking.repeats import BEHIND, t_quantile
from hpsearch.store.reading.queries import StudyHead
from hpsearch.store.schema import REPORT, TRIAL
from trials.contract import ROUNDS, Unit

LATEST = 64  # the latest complete trials that are looked at


@dataclass(frozen=True, slots=True)
class OverRounds:
    """The value of a trial as the mean over its rounds, with a 90% interval."""

    mean: float
    low: float
    high: float
    rounds: int
    unit: Unit


def over_rounds(connection: Connection, study: StudyHead, number: int) -> OverRounds | None:
    """What the rounds of a trial tell of its value; None without two of them."""
    unit, total = _unit_of(study)
    values = _own(_means(connection, study, TRIAL.number == number).get(number, [])) if unit else []
    if unit is None or len(values) < 2:
        return None
    mean, rounds = fmean(values), len(values)
    share = 1 / rounds + (1 / (total - 1) if unit is Unit.FOLDS else 0.0)
    reach = t_quantile(rounds - 1, 1 - BEHIND) * stdev(values) * math.sqrt(share)
    lowest, highest = bounds_of(study.metric, values)
    return OverRounds(mean, max(mean - reach, lowest), min(mean + reach, highest), rounds, unit)


def noise_of_rounds(connection: Connection, study: StudyHead) -> Noise:
    """How far the means of complete trials vary, by their rounds."""
    unit, total = _unit_of(study)
    if unit is None:
        return Noise()
    latest = select(TRIAL.number).where(
        TRIAL.study_id == study.id, TRIAL.state == State.COMPLETE.value
    )
    latest = latest.order_by(TRIAL.number.desc()).limit(LATEST)
    means = _means(connection, study, TRIAL.number.in_(latest.scalar_subquery()))
    own = [values for values in map(_own, means.values()) if len(values) == total]
    if len(own) < 2:
        return Noise()
    of_round = [fmean(column) for column in zip(*own, strict=True)]
    left = [[value - at for value, at in zip(row, of_round, strict=True)] for row in own]
    squares = math.fsum(variance(row) * (len(row) - 1) for row in left)
    return Noise(squares / total, (len(own) - 1) * (int(total) - 1))


def _unit_of(study: StudyHead) -> tuple[Unit | None, float]:
    budget = study.budget if study.has_best else None
    if budget is None or budget.per_trial.unit not in ROUNDS:
        return None, 0.0
    return budget.per_trial.unit, budget.per_trial.total


def _means(connection: Connection, study: StudyHead, which: object) -> dict[int, list[float]]:
    """The values of all reports of some trials, by number, in order."""
    found = defaultdict(list)
    of_these = TRIAL.study_id == study.id, which
    numbers = select(TRIAL.number).where(*of_these).scalar_subquery()
    read = select(REPORT.trial, REPORT.value).order_by(REPORT.trial, REPORT.resource)
    read = read.where(REPORT.study_id == study.id, REPORT.trial.in_(numbers))
    for row in connection.execute(read):
        found[row.trial].append(math.nan if row.value is None else row.value)
    return dict(found)


def _own(means: Sequence[float]) -> list[float]:
    """The value of each round, by the means up to each; empty if one is not finite."""
    if not all(map(math.isfinite, means)):
        return []
    sums = [0.0, *(rounds * mean for rounds, mean in enumerate(means, start=1))]
    return [after - before for before, after in pairwise(sums)]
