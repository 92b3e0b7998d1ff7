"""The changes of a command's code that a study tests."""

from collections import defaultdict
from dataclasses import asdict
from hashlib import sha256
from typing import Any

from sqlalchemy import Connection

from hpsearch.domain.facts import Role
from hpsearch.domain.records import Trial
from hpsearch.store.contents import records, revisions_of
from hpsearch.store.schema import TRIAL


def revision_rows(connection: Connection, study_id: int) -> list[dict[str, Any]]:
    """All changes of a study's code, in order: the fields of each `Revision`, the digest of its
    patch, and the GPU-seconds that its test took so far."""
    is_run = (TRIAL.role == Role.CONFIRM.value) & TRIAL.repeats.is_(None)
    took: defaultdict[int, float] = defaultdict(float)
    for trial in records(connection, Trial, TRIAL.study_id == study_id, is_run):
        if trial.revision_run is not None:
            took[trial.revision_run.revision] += trial.gpu_seconds
    rows = []
    for each in revisions_of(connection, study_id):
        more = {"digest": sha256(each.patch.encode()).hexdigest(), "gpu_seconds": took[each.number]}
        rows.append({**asdict(each), "verdict": each.verdict.value, **more})
    return rows
