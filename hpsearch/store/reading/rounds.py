"""How sure the values of trials are that are means over folds or seeds.

A report is the mean over the rounds so far, so that two of them tell a round's own value.
"""

import math
from collections import defaultdict
from itertools import pairwise
from statistics import fmean, stdev

from sqlalchemy import Connection, select

from hpsearch.domain.lifecycle import State
from hpsearch.search.ranking.again import Again
from hpsearch.search.ranking.metric_bounds import bounds_of
from hpsearch.search.ranking.repeats import BEHIND, Repeats, t_quantile
from hpsearch.store.reading.queries import StudyHead
from hpsearch.store.schema import REPORT, TRIAL, Condition
from trials.contract import ROUNDS, Unit


def over_rounds(connection: Connection, study: StudyHead, number: int) -> Again | None:
    """The mean over a trial's rounds, with a 90% interval; None without two of them. Folds train on
    sets that overlap (Nadeau and Bengio, "Inference for the Generalization Error", 2003)."""
    values = _rounds(connection, study, TRIAL.number == number).get(number, [])
    if len(values) < 2 or study.budget is None:
        return None
    rounds, per_trial = len(values), study.budget.per_trial
    overlap = 1 / (per_trial.total - 1) if per_trial.unit is Unit.FOLDS else 0.0
    mean, deviation = fmean(values), stdev(values) * math.sqrt(1 / rounds + overlap)
    reach = t_quantile(rounds - 1, 1 - BEHIND) * deviation
    lowest, highest = bounds_of(study.metric, values)
    return Again(mean, max(mean - reach, lowest), min(mean + reach, highest), rounds)


def noise_of_rounds(connection: Connection, study: StudyHead) -> Repeats:
    """How far the means of complete trials vary: by what is left of the value of each round after
    the mean of all trials there, as folds are the same for all."""
    complete = _rounds(connection, study, TRIAL.state == State.COMPLETE.value)
    most = max(map(len, complete.values()), default=0)
    whole = {number: row for number, row in complete.items() if len(row) == most}
    of_round = [fmean(column) for column in zip(*whole.values(), strict=True)]
    runs = {}
    for number, row in whole.items() if len(whole) > 1 else ():
        left = zip(row, of_round, strict=True)
        runs[number] = [(value - mean) / math.sqrt(most) for value, mean in left]
    return Repeats(runs, "minimize")


def _rounds(connection: Connection, study: StudyHead, which: Condition) -> dict[int, list[float]]:
    """The values of the rounds of some trials, by number, of which all are finite."""
    budget = study.budget if study.has_best else None
    if budget is None or budget.per_trial.unit not in ROUNDS:
        return {}
    numbers = select(TRIAL.number).where(TRIAL.study_id == study.id, which).scalar_subquery()
    read = select(REPORT.trial, REPORT.value).order_by(REPORT.trial, REPORT.resource)
    read = read.where(REPORT.study_id == study.id, REPORT.trial.in_(numbers))
    sums: defaultdict[int, list[float]] = defaultdict(lambda: [0.0])
    for number, value in connection.execute(read):
        sums[number].append(len(sums[number]) * (math.nan if value is None else value))
    finite = {number: row for number, row in sums.items() if all(map(math.isfinite, row))}
    return {number: [b - a for a, b in pairwise(row)] for number, row in finite.items()}
