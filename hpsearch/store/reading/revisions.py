"""The changes of a command's code that a study has tested."""

import hashlib
from collections import defaultdict
from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import Connection

from hpsearch.domain.facts import Role
from hpsearch.domain.records import Revision, Trial
from hpsearch.store.contents import records, revisions_of
from hpsearch.store.schema import TRIAL


@dataclass(frozen=True)
class Tested:
    """A change, and the GPU-seconds of its test so far."""

    revision: Revision
    gpu_seconds: float

    def as_plain(self) -> dict[str, Any]:
        """All of it, with the digest of its patch, for programs."""
        digest = hashlib.sha256(self.revision.patch.encode()).hexdigest()
        fields = {**asdict(self.revision), "verdict": self.revision.verdict.value}
        return {**fields, "digest": digest, "gpu_seconds": self.gpu_seconds}


def tested(connection: Connection, study_id: int) -> list[Tested]:
    """All changes of a study's code, in order."""
    found = revisions_of(connection, study_id)
    is_run = (TRIAL.role == Role.CONFIRM.value) & TRIAL.repeats.is_(None)
    took: defaultdict[int, float] = defaultdict(float)
    for trial in records(connection, Trial, TRIAL.study_id == study_id, is_run) if found else ():
        if trial.revision_run is not None:
            took[trial.revision_run.revision] += trial.gpu_seconds
    return [Tested(each, took[each.number]) for each in found]
