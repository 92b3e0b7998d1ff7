"""The time and the disk that a study will take, by the first report of one trial."""

from __future__ import annotations

from collections.abc import Mapping

from hpsearch.forecast import footprint, plan
from hpsearch.search.time_left import TimeLeft
from hpsearch.study_file.methods import PROMOTION
from hpsearch.study_file.models import StudySpec
from hpsearch.words.numbers import count, duration, number, size


def sentence(spec: StudySpec, measured: Mapping[str, float], workers: int) -> str:
    """The time and disk that the study will take, and the basis of the estimate.

    Args:
        measured: The measurements of a step and of a first report, as `hpsearch check` has them.
        workers: The number of trials that run side by side.
    """
    on = f"on {count(workers, 'worker')}"
    disk = _disk(spec, measured, workers)
    pace = plan.pace_of(spec, measured)
    start_up_s = measured.get("start_up_seconds", 0.0)
    prices = spec.budget.cost_per_gpu_hour
    cheapest = min(prices, key=lambda name: prices[name]) if isinstance(prices, dict) else None
    work_s, limit_s = TimeLeft(spec, (), [cheapest] * workers).in_all_s(pace or 0.0, start_up_s)
    if limit_s is not None and (pace is None or work_s is None or limit_s < work_s):
        return f"the study will take at most {duration(limit_s)} {on}{disk}: its budget ends it"
    if pace is None:
        return "how long the study will take is not known: no report has arrived"
    if work_s is None:
        return "how long the study will take is not known: its number of trials is not limited"
    total_s = measured.get("process_seconds", 0.0) + work_s
    about = "about" if _is_expected(spec) else "at most about"
    return f"the study will take {about} {duration(total_s)} {on}{disk}: {_basis(spec, measured)}"


def _is_expected(spec: StudySpec) -> bool:
    """True if the number of trials that train in full is known beforehand."""
    ends_early = spec.task.get("ends_early", False) or spec.budget.target is not None
    return spec.search.pruner.kind in (PROMOTION, "none") and not ends_early


def _disk(spec: StudySpec, measured: Mapping[str, float], workers: int) -> str:
    checkpoint = plan.checkpoint_of(measured)
    if checkpoint is None:
        return ""
    peak = round(footprint.peak_bytes(spec, checkpoint, workers))
    return f", at most {size(peak)} of checkpoints"


def _basis(spec: StudySpec, measured: Mapping[str, float]) -> str:
    trials = count(spec.budget.trials or 0, "trial")
    per_trial = spec.budget.per_trial
    unit = per_trial.unit.value
    if "reported_at" in measured:
        at = f"{number(measured['reported_at'])} of {number(per_trial.total)} {unit}"
        took = duration(measured["reported_after_s"])
        return f"{trials} as fast as this one, which took {took} to {at}"
    return f"{trials} of {number(per_trial.total)} {unit}"
