"""A new study in the database, with the environment that it runs in; study files of old ones."""

import platform
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from hpsearch.domain.facts import SHARING, EarlierStudy
from hpsearch.domain.history import History
from hpsearch.domain.records import Environment, StudyRecord
from hpsearch.errors import StudyExists
from hpsearch.running.checkpoint_folders import new_uid
from hpsearch.running.creation.seal import Seal, git, seal_of
from hpsearch.store.store import Store
from hpsearch.store.study_texts import content_of
from hpsearch.study_file.levels import step_scale
from hpsearch.study_file.models import StudySpec
from hpsearch.study_file.reading import parse
from hpsearch.study_file.types import SHARE
from trials.running.arithmetic import versions_of

RECORDED_PACKAGES = (
    "hpsearch",
    "torch",
    "transformers",
    "optuna",
    "ray",
    "numpy",
    "scikit-learn",
    "tokenizers",
)


def create_study(
    store: Store,
    spec: StudySpec,
    checkpoints: Path | str | None,
    uid: str | None = None,
    earlier: Sequence[EarlierStudy] = (),
    attrs: Mapping[str, Any] = MappingProxyType({}),
) -> History:
    """Write a new study into the database. Raises StudyExists if the name is taken.

    Args:
        checkpoints: The study's own folder of checkpoints, an absolute path or a URL; None if it
            keeps none.
        uid: None for a new one.
        earlier: The evidence that it starts from, see `creation.warm_start`.
        attrs: Its system attributes.
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
        system_attrs={**_sharing_of_like(store, spec), **attrs},
    )
    try:
        return History(store.create_study(record))
    except StudyExists as error:
        what = f"study {spec.study} is already in {store.display_url}"
        hint = f"continue it with: hpsearch resume {spec.study} - or give the new one another name"
        raise StudyExists(what, hint) from error


def _sharing_of_like(store: Store, spec: StudySpec) -> dict[str, Any]:
    """How many trials share a GPU in the latest study with the same task, settings and space, as a
    system attribute; empty where nothing is known."""
    if spec.resources.gpu != SHARE:
        return {}
    base, own = str(spec.base.absolute()), content_of(spec.text)
    for record in reversed(store.studies()):
        if record.base != base or SHARING not in record.system_attrs:
            continue
        content = content_of(record.spec)
        if all(content.get(key) == own.get(key) for key in ("task", "settings", "space")):
            return {SHARING: record.system_attrs[SHARING]}
    return {}


def spec_of(record: StudyRecord) -> StudySpec:
    """The study file that a study was created from. Raises SpecError if it has mistakes by now."""
    name = f"{record.name} (study file)"
    return parse(record.spec, base=Path(record.base or "."), name=name, recorded=True)


def environment(spec: StudySpec, device: str, seal: Seal | None = None) -> Environment:
    """The environment of this driver's session. Reads all the files that the task names, and the
    modules beside them that they import, unless `seal` has them."""
    packages = {**versions_of(RECORDED_PACKAGES), "python": platform.python_version()}
    seal = seal or seal_of(spec)
    now, revision = time.time(), revision_of(spec.base)
    return Environment(now, revision, packages, device, seal.fingerprint, dict(seal.files))


def revision_of(folder: Path) -> str | None:
    """The state of a folder by git's name; None if git does not know it."""
    return git(folder, "describe", "--always", "--dirty", "--abbrev=40").strip() or None
