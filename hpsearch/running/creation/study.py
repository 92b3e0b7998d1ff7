"""New studies in the database, and the study files of those that are there."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from hpsearch.domain.facts import EarlierStudy
from hpsearch.domain.history import History
from hpsearch.domain.records import StudyRecord
from hpsearch.errors import StudyExists
from hpsearch.running.checkpoint_folders import new_uid
from hpsearch.store.store import Store
from hpsearch.study_file.levels import step_scale
from hpsearch.study_file.models import StudySpec
from hpsearch.study_file.reading import parse


def create_study(
    store: Store,
    spec: StudySpec,
    checkpoints: Path | str | None,
    uid: str | None = None,
    earlier: Sequence[EarlierStudy] = (),
) -> History:
    """Write a new study into the database. Raises StudyExists if the name is taken.

    Args:
        checkpoints: The study's own folder of checkpoints, an absolute path or a URL; None if it
            keeps none.
        uid: None for a new one.
        earlier: The evidence that it starts from, see `creation.warm_start`.
    """
    record = StudyRecord(
        id=0,
        name=spec.study,
        spec=spec.text,
        directions=tuple(objective.direction for objective in spec.objectives),
        created=time.time(),
        base=str(spec.base.absolute()),
        checkpoints=None if checkpoints is None else str(checkpoints),
        step_scale=step_scale(spec),
        uid=uid or new_uid(),
        warm_start=list(earlier),
    )
    try:
        return History(store.create_study(record))
    except StudyExists as error:
        what = f"study {spec.study} is already in {store.display_url}"
        hint = f"continue it with: hpsearch resume {spec.study} - or give the new one another name"
        raise StudyExists(what, hint) from error


def spec_of(record: StudyRecord) -> StudySpec:
    """The study file that a study was created from. Raises SpecError if this version of the program
    finds mistakes in it."""
    base = Path(record.base or ".")
    return parse(record.spec, base=base, name=f"{record.name} (study file)")
