"""Records to rows and back.

The columns of a table have the names of its record's fields, and a record is built from a row by position; so each
`..._COLUMNS` here lists a record's fields in order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from optuna.distributions import distribution_to_json
from sqlalchemy import Column, Table

from hpsearch.lifecycle import State
from hpsearch.records import Attempt, Decision, Environment, Outcome, Report, StudyRecord, StudyState, Trial
from hpsearch.store import codec, schema, shapes

Values = dict[str, Any]
"""The columns of a row, by name."""

_ELSEWHERE = {"reports", "attempts"}  # fields of a trial that are tables of their own
_RENAMED = {"values": "objective_values"}


def _columns(table: Table, record: type) -> tuple[Column[Any], ...]:
    names = [field.name for field in fields(record) if field.name not in _ELSEWHERE]
    return tuple(table.c[_RENAMED.get(name, name)] for name in names)


STUDY_COLUMNS = _columns(schema.studies, StudyRecord)
TRIAL_COLUMNS = _columns(schema.trials, Trial)
ATTEMPT_COLUMNS = _columns(schema.attempts, Attempt)
REPORT_COLUMNS = _columns(schema.reports, Report)

# ---------------------------------------------------------------------------------------------- rows to records


def study_record(row: Sequence[Any]) -> StudyRecord:
    """The record of a row of `STUDY_COLUMNS`."""
    record = StudyRecord(*row)
    record.directions = tuple(record.directions)
    record.state = codec.member(StudyState, record.state)
    return record


def trial_record(row: Sequence[Any]) -> Trial:
    """The record of a row of `TRIAL_COLUMNS`, without its attempts and reports.

    Raises:
        Damaged: Its state is none, or a parameter is not of its distribution.
    """
    trial = Trial(*row)
    trial.state = codec.member(State, trial.state)
    # The column holds texts: decoding it gave a dict of them.
    texts: dict[str, Any] = trial.distributions
    trial.distributions = {name: shapes.distribution_of(text) for name, text in texts.items()}
    if (found := shapes.unlike(trial.params, trial.distributions)) is not None:
        raise codec.Damaged(str(found))
    return trial


def attempt_record(row: Sequence[Any]) -> Attempt:
    """The record of a row of `ATTEMPT_COLUMNS`."""
    attempt = Attempt(*row)
    attempt.outcome = None if attempt.outcome is None else codec.member(Outcome, attempt.outcome)
    return attempt


def report_record(row: Sequence[Any]) -> Report:
    """The record of a row of `REPORT_COLUMNS`."""
    return Report(*row)


# ---------------------------------------------------------------------------------------------- records to rows


def study_values(record: StudyRecord) -> Values:
    """The columns of a study that its record holds, but for its id."""
    return {
        "name": record.name,
        "spec": record.spec,
        "directions": list(record.directions),
        "state": record.state.value,
        "reason": record.reason,
        "created": record.created,
        "ended": record.ended,
        "active_seconds": record.active_seconds,
        "user_attrs": record.user_attrs,
        "system_attrs": record.system_attrs,
    }


def trial_values(study_id: int, trial: Trial, revision: int) -> Values:
    """A row of `trials`."""
    return {
        "study_id": study_id,
        "number": trial.number,
        "state": trial.state.value,
        "params": trial.params,
        "seed": trial.seed,
        "value": _number(trial.value),
        "resource": trial.resource,
        "rung": trial.rung,
        "error_kind": trial.error_kind,
        "error_text": trial.error_text,
        "checkpoint": trial.checkpoint,
        "gpu_seconds": trial.gpu_seconds,
        "cost": trial.cost,
        "speed": trial.speed,
        "created": trial.created,
        "started": trial.started,
        "ended": trial.ended,
        "role": trial.role,
        "repeats": trial.repeats,
        "objective_values": trial.values,
        "distributions": {name: distribution_to_json(each) for name, each in trial.distributions.items()},
        "user_attrs": trial.user_attrs,
        "system_attrs": trial.system_attrs,
        "revision": revision,
    }


def attempt_values(study_id: int, attempt: Attempt) -> Values:
    """A row of `attempts`."""
    return {
        "study_id": study_id,
        "trial": attempt.trial,
        "number": attempt.number,
        "worker": attempt.worker,
        "started": attempt.started,
        "start_resource": attempt.start_resource,
        "reserved_gpu_seconds": attempt.reserved_gpu_seconds,
        "node": attempt.node,
        "device": attempt.device,
        "ended": attempt.ended,
        "outcome": None if attempt.outcome is None else attempt.outcome.value,
        "gpu_seconds": attempt.gpu_seconds,
        "note": attempt.note,
    }


def report_values(study_id: int, report: Report) -> Values:
    """A row of `reports`; a value that is not a number is NULL."""
    return {
        "study_id": study_id,
        "trial": report.trial,
        "resource": report.resource,
        "value": _number(report.value),
        "metrics": report.metrics,
        "attempt": report.attempt,
        "step": report.step,
        "elapsed": report.elapsed,
        "created": report.created,
    }


def decision_values(study_id: int, decision: Decision) -> Values:
    """A row of `decisions`, without its id."""
    return {
        "study_id": study_id,
        "trial": decision.trial,
        "kind": decision.kind,
        "why": decision.why,
        "resource": decision.resource,
        "against": decision.against,
        "created": decision.created,
    }


def environment_values(study_id: int, environment: Environment) -> Values:
    """A row of `environments`, without its id."""
    return {
        "study_id": study_id,
        "created": environment.created,
        "revision": environment.revision,
        "packages": environment.packages,
        "device": environment.device,
        "data_fingerprint": environment.data_fingerprint,
    }


def _number(value: float | None) -> float | None:
    """The value, or None where it is not a number: SQLite has no NaN."""
    return None if value is None or value != value else float(value)
