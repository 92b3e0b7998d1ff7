"""The trust in the rungs of a study, from its reports at and above the lowest rung.

A study of several objectives has no single standing, and one without rungs has nothing to trust.
"""

import math
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, and_, func, null, select

from hpsearch.domain.facts import OF_SEARCH
from hpsearch.domain.records import ReportRecord
from hpsearch.errors import SpecError
from hpsearch.search.ranking.no_effect import FIRST_TRIALS, TrialReports
from hpsearch.search.ranking.trust import RungTrust, TrialCurve, trust
from hpsearch.search.worth import Scoring
from hpsearch.store.reading.names import numbered
from hpsearch.store.reading.queries import StudyHead
from hpsearch.store.schema import REPORT, TRIAL
from hpsearch.study_file.levels import rung_levels
from hpsearch.study_file.methods import PROMOTION
from hpsearch.study_file.models import StudySpec

MOST_TRIALS = 500
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
    spec = spec_of(study)
    if spec is None or spec.search.pruner.kind != PROMOTION or len(spec.objectives) > 1:
        return StudyTrust([], spec)
    levels = rung_levels(spec)
    curves = _curves(connection, study, spec, levels[0])
    return StudyTrust(trust(curves, levels), spec)


def spec_of(study: StudyHead) -> StudySpec | None:
    """The study file; None if there is none that can be read."""
    # Imported here: `ls` and `show` do without, and it brings all tasks' descriptions.
    from hpsearch.study_file.reading import parse

    try:
        return parse(study.spec, base=Path(study.base or ""), recorded=True)
    except SpecError:
        return None


def first_reports(connection: Connection, study: StudyHead) -> list[TrialReports]:
    """The reports of a study's first trials, without repeats, for `no_effect`; nothing where no
    two trials have the same value."""
    is_searched = and_(TRIAL.study_id == study.id, TRIAL.role.in_(OF_SEARCH))
    trials = select(TRIAL.number, TRIAL.params, TRIAL.value)
    trials = trials.where(is_searched, TRIAL.value.is_not(None)).order_by(TRIAL.number)
    rows = connection.execute(trials.limit(FIRST_TRIALS)).all()
    if len({row.value for row in rows}) == len(rows):
        return []
    found: dict[int, dict[float, Any]] = {row.number: {} for row in rows}
    is_of_these = and_(REPORT.study_id == study.id, REPORT.trial.in_(numbered(list(found))))
    reports = select(REPORT.trial, REPORT.resource, REPORT.metrics).where(is_of_these)
    for report in connection.execute(reports):
        found[report.trial][report.resource] = report.metrics or {}
    return [TrialReports(row.params, found[row.number]) for row in rows]


def _curves(
    connection: Connection, study: StudyHead, spec: StudySpec, lowest: float
) -> list[TrialCurve]:
    """The trials at the lowest rung, without repeats; of very many some, evenly spaced."""
    highest = select(func.max(TRIAL.number)).where(TRIAL.study_id == study.id)
    last = connection.scalar(highest) or 0
    step = math.ceil(last / MOST_TRIALS) or 1
    chosen = numbered(range(0, last + 1, step))
    scores = _scores(connection, study, spec, lowest, chosen)
    is_searched = and_(TRIAL.study_id == study.id, TRIAL.role.in_(OF_SEARCH))
    trials = select(TRIAL.number, TRIAL.state, TRIAL.rung)
    trials = trials.where(is_searched, TRIAL.number.in_(chosen))
    curves = []
    for row in connection.execute(trials):
        if row.number in scores:
            curves.append(TrialCurve(row.number, row.state, row.rung, scores[row.number]))
    return curves


def _scores(
    connection: Connection, study: StudyHead, spec: StudySpec, lowest: float, numbers: Any
) -> dict[int, dict[float, float]]:
    """The scores of some trials at and above the lowest rung, by resource."""
    # Their metrics only where they are needed: most of the time goes into reading them.
    metrics = REPORT.metrics if spec.constraints else null().label("metrics")
    reports = select(REPORT.trial, REPORT.resource, REPORT.value, metrics)
    reports = reports.where(REPORT.study_id == study.id, REPORT.trial.in_(numbers))
    scoring = Scoring(spec)
    scores: defaultdict[int, dict[float, float]] = defaultdict(dict)
    for row in connection.execute(reports.where(REPORT.resource >= lowest)):
        report = ReportRecord(row.trial, row.resource, row.value, row.metrics or {})
        scores[row.trial][row.resource] = scoring.score(report)
    return scores
