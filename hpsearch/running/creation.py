"""A new study: from a study file into the database, with the environment that it runs in, and the
evidence of earlier studies.

That evidence is read once, before the study is created, and kept in the study's record. So a study
that is resumed proposes what it would have proposed, whatever becomes of the others.
"""

import hashlib
import platform
import subprocess
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from hpsearch.domain.facts import EarlierRung, EarlierStudy
from hpsearch.domain.history import History
from hpsearch.domain.records import Environment, StudyRecord, StudyState
from hpsearch.errors import StudyExists, UserError
from hpsearch.running.checkpoint_folders import new_uid
from hpsearch.search.curve_model.earlier import FEWEST_TRIALS, earlier_study_of
from hpsearch.store.reading.queries import find_study
from hpsearch.store.reading.trust import study_trust
from hpsearch.store.store import Store
from hpsearch.store.study_texts import content_of
from hpsearch.study_file.levels import step_scale
from hpsearch.study_file.models import StudySpec
from hpsearch.study_file.reading import parse
from hpsearch.study_file.types import AUTO
from trials.descriptions.builtin import BUILT_IN
from trials.descriptions.command import COMMAND, line_of
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

CHUNK_BYTES = 1 << 20

GIT_S = 10  # how long git may take to name a revision

MOST_EARLIER = 8  # so many studies are found by themselves, the latest ones

DIGITS = 4  # of a rung's share and correlation

SHARED_SPACE = 0.5  # they search at least this share of the study's parameters


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


def environment(spec: StudySpec, device: str) -> Environment:
    """The environment of this driver's session. Reads all the files that the task names."""
    packages = {**versions_of(RECORDED_PACKAGES), "python": platform.python_version()}
    return Environment(time.time(), _revision(spec.base), packages, device, _fingerprint(spec))


def _revision(folder: Path) -> str | None:
    """The state of a folder by git's name; None if git does not know it."""
    command = ["git", "-C", str(folder), "describe", "--always", "--dirty", "--abbrev=40"]
    try:
        git = subprocess.run(  # noqa: S603 - a fixed command
            command, capture_output=True, text=True, check=False, timeout=GIT_S
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return git.stdout.strip() or None


def _fingerprint(spec: StudySpec) -> str | None:
    files = [spec.base / name for name in _names(spec) if _is_file(spec.base / name)]
    if not files:
        return None
    digest = hashlib.sha256()
    for path in files:
        with path.open("rb") as file:
            while chunk := file.read(CHUNK_BYTES):
                digest.update(chunk)
    return digest.hexdigest()


def _names(spec: StudySpec) -> list[str]:
    """The texts of the task that may name files: the words of a command, or the values of the
    settings in the order of their names, and last the module of a function."""
    task = spec.task
    if task["kind"] == COMMAND.kind:
        folder = Path(task.get("cwd", "."))
        return [str(folder / word) for word in line_of(task).plain_words]
    settings = {**task.get("args", {}), **task}
    names = [value for _, value in sorted(settings.items()) if isinstance(value, str)]
    if task["kind"] not in BUILT_IN:
        module, _, _ = task["kind"].partition(":")
        path = module.replace(".", "/")
        names += [f"{path}.py", f"{path}/__init__.py"]
    return names


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a word may be too long for a name
        return False


def earlier_studies(store: Store, spec: StudySpec) -> list[EarlierStudy]:
    """The evidence of the earlier studies that a study file names; empty where it starts cold.
    Raises StudyNotFound if one is not in the database, UserError if one has no evidence."""
    wanted = spec.search.warm_start
    if wanted is None:
        return []
    if wanted == AUTO:
        return _alike(store, spec)
    return [_evidence_of(store, spec, name) for name in dict.fromkeys(wanted)]


def summary_of_earlier(earlier: list[EarlierStudy]) -> str:
    """The studies whose results a study starts from, as one line for people."""
    if not earlier:
        return "warm_start: no earlier study fits, so the study starts without any"
    names = ", ".join(f"{each.name} ({len(each.trials)} trials)" for each in earlier)
    return f"warm_start: evidence of {names}"


def _evidence_of(store: Store, spec: StudySpec, name: str) -> EarlierStudy:
    history = store.load(name)
    if history.study.directions not in (("minimize",), ("maximize",)):
        raise _unusable(name, "has no single objective, so its trials have no order")
    if history.study.state is StudyState.RUNNING:
        raise _unusable(name, "is still running, and what it tells would depend on the moment")
    evidence = earlier_study_of(history, spec.space)
    if evidence is None:
        lacking = f"has no {FEWEST_TRIALS} trials with a result within the space of {spec.study}"
        raise _unusable(name, lacking)
    return _with_rungs(store, evidence)


def _unusable(name: str, why: str) -> UserError:
    return UserError(
        f"search.warm_start: study {name} {why}",
        f"remove {name} from warm_start, or use warm_start: {AUTO}",
    )


def _alike(store: Store, spec: StudySpec) -> list[EarlierStudy]:
    """The latest finished studies of the same kind of task and the same objective."""
    found: list[EarlierStudy] = []
    for record in reversed(store.studies()):
        if len(found) < MOST_EARLIER and _is_alike(record, spec):
            evidence = earlier_study_of(store.load(record.name), spec.space)
            found += [] if evidence is None else [_with_rungs(store, evidence)]
    return found


def _with_rungs(store: Store, evidence: EarlierStudy) -> EarlierStudy:
    """The evidence of a study with how well its rungs told the end, as far as that is known."""
    with store.reading() as connection:
        trust = study_trust(connection, find_study(connection, evidence.name))
    if trust.spec is None:
        return evidence
    total = trust.spec.budget.per_trial.total
    rungs = []
    for rung in trust.rungs:
        found = rung.correlation
        if found is not None:
            share = round(rung.level / total, DIGITS)
            rungs.append(EarlierRung(share, round(found.value, DIGITS), found.trials))
    return replace(evidence, rungs=rungs)


def _is_alike(record: StudyRecord, spec: StudySpec) -> bool:
    """True if a finished study trains the same kind of task for the same objective, over at least
    half of the parameters."""
    if record.state is not StudyState.FINISHED or record.name == spec.study:
        return False
    content = content_of(record.spec)
    kind = _key_of(content.get("task"), "kind")
    space = content.get("space")
    objective = content.get("objective")
    if isinstance(objective, list) and len(objective) == 1:
        (objective,) = objective
    measured = _key_of(objective, "metric"), _key_of(objective, "direction")
    wanted = spec.objective.metric, spec.objective.direction
    if kind != spec.task["kind"] or measured != wanted or not isinstance(space, dict):
        return False
    shared = space.keys() & spec.space.keys()
    return len(shared) >= SHARED_SPACE * len(spec.space)


def _key_of(section: Any, key: str) -> Any:
    return section.get(key) if isinstance(section, dict) else None
