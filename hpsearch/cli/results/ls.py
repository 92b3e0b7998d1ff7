"""`hpsearch ls`: the studies of a database."""

from __future__ import annotations

from typing import Any

from hpsearch.cli.opening import viewing
from hpsearch.cli.output import Format, emit, note, show, terminal_width
from hpsearch.ranking.selection import Ranked
from hpsearch.store.reading.queries import TrialRow
from hpsearch.store.reading.standing import StudySummary, list_studies
from hpsearch.terminal import tables


def print_studies(storage: str, format_: Format) -> None:
    """Print all studies, the newest first."""
    with viewing(storage) as connection:
        studies = list_studies(connection)
    if format_ is not Format.TABLE:
        emit([as_plain(each) for each in studies], format_)
    elif studies:
        show(tables.studies(studies, terminal_width()))
    else:
        note("no studies yet; start one with: hpsearch run STUDY.yaml")


def as_plain(summary: StudySummary) -> dict[str, Any]:
    """A study's summary as plain values."""
    best = summary.best
    return {
        "study": summary.head.name,
        "state": summary.state,
        "driver": summary.driver,
        "reason": summary.head.reason,
        "trials": {state.value: n for state, n in sorted(summary.trials.items())},
        "best": None if best is None else _best(best),
        "gpu_seconds": summary.gpu_seconds,
        "created": summary.head.created,
        "ended": summary.head.ended,
    }


def _best(best: Ranked[TrialRow]) -> dict[str, Any]:
    trial = best.trial
    return {
        "number": trial.number,
        "value": best.value,
        "expected": trial.expected,
        "expected_deviation": trial.expected_deviation,
        "expected_low": trial.expected_low,
        "expected_high": trial.expected_high,
    }
