"""The trust in the rungs of a study, from its reports at and above the lowest rung.

A study of several objectives has no single standing, and one without rungs has nothing to trust.
"""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Select, func, null, select

from hpsearch.domain.facts import Role
from hpsearch.domain.records import ReportRecord
from hpsearch.errors import SpecError
from hpsearch.search.ranking.no_effect import MOST as FIRST
from hpsearch.search.ranking.no_effect import Course
from hpsearch.search.ranking.trust import RungTrust, TrialCurve, trust
from hpsearch.search.worth import Scoring
from hpsearch.store.reading.names import numbered
from hpsearch.store.reading.queries import StudyHead
from hpsearch.store.schema import REPORT, TRIAL
from hpsearch.study_file.levels import rung_levels
from hpsearch.study_file.methods import PROMOTION
from hpsearch.study_file.models import StudySpec

MOST = 500
"""The most trials that trust is measured on: an interval from so many is narrow, and commands that
show it have to answer at once."""


@dataclass(frozen=True, slots=True)
class StudyTrust:
    """The trust in the rungs of a study."""

    rungs: list[RungTrust] = field(default_factory=list)
    """Lowest first; empty if there are none, and where nothing can be said: with several
    objectives, or without a study file that can be read."""
    spec: StudySpec | None = None  # the study file; None if there is none, or it cannot be read

    @property
    def weakest(self) -> RungTrust | None:
        """The least trusted rung of those at which a trial has stayed."""
        pausing = [rung for rung in self.rungs if rung.paused + rung.pruned]
        return min(pausing, key=_lower_bound, default=None)


def _lower_bound(rung: RungTrust) -> float:
    return -math.inf if rung.correlation is None else rung.correlation.low


def study_trust(connection: Connection, study: StudyHead) -> StudyTrust:
    """The trust in the rungs of a study."""
    spec = spec_of(study)
    levels = trusted_levels(spec)
    if spec is None or not levels:
        return StudyTrust([], spec)
    curves = _curves(connection, study, spec, levels[0])
    return StudyTrust(trust(curves, levels), spec)


def trusted_levels(spec: StudySpec | None) -> tuple[float, ...]:
    """The rungs that may be trusted, ascending, the full budget last; empty where nothing can be
    said."""
    if spec is None or spec.search.pruner.kind != PROMOTION or len(spec.objectives) > 1:
        return ()
    return rung_levels(spec)


def spec_of(study: StudyHead) -> StudySpec | None:
    """The study file; None if there is none that can be read."""
    # Imported here: `ls` and `show` do without, and it brings all tasks' descriptions.
    from hpsearch.study_file.reading import parse

    try:
        return parse(study.spec, base=Path(study.base or ""), recorded=True)
    except SpecError:
        return None


def first_courses(connection: Connection, study: StudyHead) -> list[Course]:
    """The reports of a study's first trials, without repeats, for `no_effect`; nothing where no
    two trials have the same value."""
    ours = TRIAL.study_id == study.id, TRIAL.role != Role.CONFIRM.value
    columns = TRIAL.number, TRIAL.params, TRIAL.value
    first = select(*columns).where(*ours, TRIAL.value.is_not(None)).order_by(TRIAL.number)
    rows = connection.execute(first.limit(FIRST)).all()
    if len({row.value for row in rows}) == len(rows):
        return []
    found: dict[int, dict[float, Any]] = {row.number: {} for row in rows}
    of_these = REPORT.study_id == study.id, REPORT.trial.in_(numbered(list(found)))
    facts = select(REPORT.trial, REPORT.resource, REPORT.metrics)
    for report in connection.execute(facts.where(*of_these)):
        found[report.trial][report.resource] = report.metrics or {}
    return [Course(row.params, found[row.number]) for row in rows]


def _curves(
    connection: Connection, study: StudyHead, spec: StudySpec, lowest: float
) -> list[TrialCurve]:
    """The trials that reached the lowest rung, without repeats; of more than `MOST` trials those
    with evenly spaced numbers."""
    of_study = TRIAL.study_id == study.id
    last = connection.scalar(select(func.max(TRIAL.number)).where(of_study))
    step = math.ceil((last or 0) / MOST) or 1
    numbers = range(0, (last or 0) + 1, step)
    facts = select(TRIAL.number, TRIAL.state, TRIAL.rung)
    searched = facts.where(of_study, TRIAL.role != Role.CONFIRM.value)
    scoring = Scoring(spec)
    scores: defaultdict[int, dict[float, float]] = defaultdict(dict)
    for row in connection.execute(_reports_from(study, spec, lowest, numbers)):
        report = ReportRecord(row.trial, row.resource, row.value, row.metrics or {})
        scores[row.trial][row.resource] = scoring.score(report)
    return [
        TrialCurve(row.number, row.state, row.rung, scores[row.number])
        for row in connection.execute(searched.where(TRIAL.number.in_(numbered(numbers))))
        if row.number in scores
    ]


def _reports_from(
    study: StudyHead, spec: StudySpec, lowest: float, numbers: Sequence[int]
) -> Select[Any]:
    """The reports of some trials at and above the lowest rung; their metrics only where they are
    needed, as most of the time goes into reading them."""
    metrics = REPORT.metrics if spec.constraints else null().label("metrics")
    return select(REPORT.trial, REPORT.resource, REPORT.value, metrics).where(
        REPORT.study_id == study.id,
        REPORT.trial.in_(numbered(numbers)),
        REPORT.resource >= lowest,
    )
