"""Fewer reports of studies that finished long ago.

A study can have millions of reports, which nobody looks at one by one any more. Those stay that say
how its trials came out and in which rank, what its rungs told, what a model of its curves is shown,
and the shape of each curve.
"""

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import Connection, delete, select, update

from hpsearch.domain.facts import Role
from hpsearch.domain.history import History
from hpsearch.domain.records import THINNED, StudyState, Trial, sign_of
from hpsearch.errors import StudyHeld
from hpsearch.search.curve_model.curves import DIGITS, at_marks
from hpsearch.search.ranking.trust import counting
from hpsearch.search.worth import Scoring
from hpsearch.store import leases
from hpsearch.store.reading.queries import StudyHead, study_heads
from hpsearch.store.reading.trust import spec_of, trusted_levels
from hpsearch.store.schema import REPORT, TRIAL, reports, trials
from hpsearch.store.store import Store
from hpsearch.study_file.models import StudySpec

MOST_SPREAD = 20
"""The most reports of a trial that stay only because they are evenly spread along its curve. A
trial with no more than that keeps all."""
TRIALS_AT_ONCE = 20  # the trials of one transaction
REST_S = 0.05  # the pause after each transaction, in which drivers write


@dataclass(frozen=True)
class ThinnedStudy:
    """The reports of one study that stay."""

    study: StudyHead
    revision: int  # the revision of the study that it was read at
    staying: Mapping[int, set[float]]
    """The resources of the reports of each trial that loses some, by its number."""
    before: int  # the number of reports of the study
    going: int  # the number of those that go


def finished_before(connection: Connection, moment: float) -> list[StudyHead]:
    """The studies that finished before a moment, and that nobody works on. All others may be
    continued as they are: interrupted ones, and those that gave up."""
    return [
        study
        for study in study_heads(connection)
        if study.state is StudyState.FINISHED
        and study.driver is None
        and study.ended is not None
        and study.ended < moment
    ]


def thinning_of(store: Store, study: StudyHead) -> ThinnedStudy:
    """The reports of a study that would stay."""
    history = History(store.find_study(study.name))
    revision = store.refresh(history, -1)
    rule = _Rule(spec_of(study), sign_of(history.study.directions[0]))
    staying = {}
    before = going = 0
    for trial in history.trials:
        n = len(trial.reports)
        before += n
        if n > MOST_SPREAD and trial.system_attrs.get(THINNED) != n:
            staying[trial.number] = rule.staying(trial)
            going += n - len(staying[trial.number])
    return ThinnedStudy(study, revision, staying, before, going)


def thin(store: Store, thinning: ThinnedStudy) -> None:
    """Remove the reports of a study that do not stay, a few trials at a time: if it is interrupted,
    the next one goes on. Raises StudyHeld if somebody has worked on the study since it was read,
    and leaves it as it is then."""
    revision = thinning.revision
    numbers = list(thinning.staying)
    for begin in range(0, len(numbers), TRIALS_AT_ONCE):
        with store.writing() as connection:
            revision += 1
            if leases.enter_free(connection, thinning.study.id).revision != revision:
                raise StudyHeld(f"study {thinning.study.name} was continued, and is left as it is")
            for number in numbers[begin : begin + TRIALS_AT_ONCE]:
                _thin(connection, thinning, number, revision)
        time.sleep(REST_S)


def _thin(connection: Connection, thinning: ThinnedStudy, number: int, revision: int) -> None:
    staying = thinning.staying[number]
    of_trial = (REPORT.study_id == thinning.study.id) & (REPORT.trial == number)
    connection.execute(delete(reports).where(of_trial, REPORT.resource.not_in(staying)))
    same = (TRIAL.study_id == thinning.study.id) & (TRIAL.number == number)
    attributes = connection.execute(select(TRIAL.system_attrs).where(same)).scalar_one()
    marked = {**attributes, THINNED: len(staying)}
    touched = update(trials).where(same).values(system_attrs=marked, revision=revision)
    connection.execute(touched)


class _Rule:
    """Says which reports of a trial stay."""

    def __init__(self, spec: StudySpec | None, sign: float) -> None:
        self._levels = trusted_levels(spec)
        self._scoring = Scoring(spec) if spec is not None and self._levels else None
        self._total = None if spec is None else spec.budget.per_trial.total
        self._sign = sign

    def staying(self, trial: Trial) -> set[float]:
        """The resources of the reports of a trial that stay."""
        resources = sorted(trial.reports)
        # A power of two, so that trials that reported at the same levels keep common ones.
        stride = 2 ** math.ceil(math.log2(len(resources) / MOST_SPREAD))
        staying = {resources[0], resources[-1], *resources[stride - 1 :: stride]}
        staying |= self._of_its_value(trial)
        staying |= self._at_rungs(trial)
        return staying

    def _of_its_value(self, trial: Trial) -> set[float]:
        """The report that first showed its value, the best one, and those at the marks of the
        curve model."""
        values = {}
        for resource, report in sorted(trial.reports.items()):
            if report.value is not None and math.isfinite(report.value):
                values[resource] = self._sign * report.value
        if not values:
            return set()
        staying = {min(values, key=values.__getitem__)}
        if trial.seen_at is not None:
            staying.add(trial.seen_at)
        if self._total is not None:
            by_share = {round(at / self._total, DIGITS): at for at in values}
            staying |= {by_share[share] for share in at_marks(list(by_share))}
        return staying

    def _at_rungs(self, trial: Trial) -> set[float]:
        if self._scoring is None or trial.role is Role.CONFIRM:
            return set()
        scores = {}
        for resource, report in trial.reports.items():
            if resource >= self._levels[0]:
                scores[resource] = self._scoring.score(report)
        return counting(scores, self._levels)
