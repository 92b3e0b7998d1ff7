"""The evidence of earlier studies for a new one.

It is read once, before the study is created, and kept in the study's record. So a study that is
resumed proposes what it would have proposed, whatever becomes of the others.
"""

from dataclasses import replace
from typing import Any

from hpsearch.domain.facts import EarlierRung, EarlierStudy
from hpsearch.domain.records import StudyRecord, StudyState
from hpsearch.errors import UserError
from hpsearch.search.curve_model.earlier import FEWEST_TRIALS, MOST_TRIALS, earlier_study_of
from hpsearch.store.reading.queries import find_study
from hpsearch.store.reading.trust import study_trust
from hpsearch.store.store import Store
from hpsearch.store.study_texts import content_of
from hpsearch.study_file.models import StudySpec
from hpsearch.study_file.types import AUTO

MOST_EARLIER = 8  # so many studies are found by themselves, the latest ones
DIGITS = 4  # of a rung's share and correlation
SHARED = 0.5  # they search at least this share of the study's parameters


def earlier_studies(store: Store, spec: StudySpec) -> list[EarlierStudy]:
    """The evidence of the earlier studies that a study file names; empty where it starts cold.
    Raises StudyNotFound if one is not in the database, UserError if one has no evidence."""
    wanted = spec.search.warm_start
    if wanted is None:
        return []
    if wanted == AUTO:
        return _found(store, spec)
    return [_evidence_of(store, spec, name) for name in dict.fromkeys(wanted)]


def summary(earlier: list[EarlierStudy]) -> str:
    """The studies whose results a study starts from, as one line for people."""
    if not earlier:
        return "warm_start: no earlier study fits, so the study starts without any"
    names = ", ".join(f"{each.name} ({_extent(each)})" for each in earlier)
    return f"warm_start: evidence of {names}"


def _extent(study: EarlierStudy) -> str:
    trials = len(study.trials)
    most = " of its trials, the most that are used" if trials == MOST_TRIALS else " trials"
    return f"{trials}{most}"


def _evidence_of(store: Store, spec: StudySpec, name: str) -> EarlierStudy:
    history = store.load(name)
    if history.study.directions not in (("minimize",), ("maximize",)):
        raise _refusal(name, "has no single objective, so its trials have no order")
    if history.study.state is StudyState.RUNNING:
        raise _refusal(name, "is still running, and what it tells would depend on the moment")
    evidence = earlier_study_of(history, spec.space)
    if evidence is None:
        lacking = f"has no {FEWEST_TRIALS} trials with a result within the space of {spec.study}"
        raise _refusal(name, lacking)
    return _with_rungs(store, evidence)


def _refusal(name: str, why: str) -> UserError:
    return UserError(
        f"search.warm_start: study {name} {why}",
        f"remove {name} from warm_start, or use warm_start: {AUTO}",
    )


def _found(store: Store, spec: StudySpec) -> list[EarlierStudy]:
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
    """True if a finished study has this kind of task, objective, and half of the parameters."""
    if record.state is not StudyState.FINISHED or record.name == spec.study:
        return False
    content = content_of(record.spec)
    kind = _part(content.get("task"), "kind")
    space = content.get("space")
    objective = content.get("objective")
    if isinstance(objective, list) and len(objective) == 1:
        (objective,) = objective
    measured = _part(objective, "metric"), _part(objective, "direction")
    wanted = spec.objective.metric, spec.objective.direction
    if kind != spec.task["kind"] or measured != wanted or not isinstance(space, dict):
        return False
    shared = space.keys() & spec.space.keys()
    return len(shared) >= SHARED * len(spec.space)


def _part(section: Any, key: str) -> Any:
    return section.get(key) if isinstance(section, dict) else None
