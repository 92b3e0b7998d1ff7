"""Why a training that is repeated may give something else, the most likely first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hpsearch.domain.records import Environment
from hpsearch.study_file.models import StudySpec
from trials.contract import Unit
from trials.descriptions.builtin import BUILT_IN
from trials.descriptions.command import COMMAND
from trials.running.arithmetic import Arithmetic, differences

COMPUTING = ("python", "tokenizers", "scikit-learn")
"""Packages whose versions may matter, besides those that `Arithmetic` has."""
MOST_LIKELY = ("device", "precision", "float32", "threads", "deterministic", "torch")
"""Differences in the arithmetic, by how much they change as a rule."""
DIRTY = "-dirty"
"""Ends a revision of a folder with changes that were not committed."""


def causes(
    spec: StudySpec,
    sessions: tuple[Environment | None, Environment],
    arithmetic: tuple[Arithmetic | None, Arithmetic],
) -> list[str]:
    """What is not as it was, each in a phrase, the most likely cause of a difference first.

    Args:
        spec: The study.
        sessions: What the trial ran on, as far as it is recorded, and what this process runs on.
        arithmetic: How the trial computed, as far as it is recorded, and how this process does.
    """
    before, now = sessions
    found = []
    if before is not None:
        found += _of_files(spec, before, now)
    computed, computes = arithmetic
    if computed is not None:
        found += sorted(differences(computed, computes), key=_likelihood)
    if before is not None:
        found += _of_packages(before, now)
    return found


def _likelihood(phrase: str) -> int:
    """The place of a difference in the arithmetic among the others."""
    places = (place for place, name in enumerate(MOST_LIKELY) if phrase.startswith(name))
    return next(places, len(MOST_LIKELY))


def _of_files(spec: StudySpec, before: Environment, now: Environment) -> list[str]:
    found = []
    was, is_now = before.data_fingerprint, now.data_fingerprint
    if was is not None and was != is_now:
        what = "have changed" if is_now is not None else "are not there any more"
        found.append(f"{_files(spec)} {what} (SHA-256 {_short(was)} then, {_short(is_now)} now)")
    if before.revision is not None and before.revision != now.revision:
        found.append(f"the code is of git revision {now.revision} instead of {before.revision}")
    elif before.revision is not None and before.revision.endswith(DIRTY):
        found.append("the code had changes that were not committed, and may have others now")
    hpsearch = before.packages.get("hpsearch")
    if hpsearch is not None and hpsearch != now.packages.get("hpsearch"):
        found.append(f"hpsearch {now.packages.get('hpsearch')} instead of {hpsearch}")
    return found


def _files(spec: StudySpec) -> str:
    kind = spec.task["kind"]
    if kind == COMMAND.kind:
        return "the files that the command names"
    if kind in BUILT_IN:
        return "the data files"
    return "the module of the function, or the files that its args name,"


def _of_packages(before: Environment, now: Environment) -> list[str]:
    found = []
    for name in COMPUTING:
        was = before.packages.get(name)
        is_now = now.packages.get(name, "not installed")
        if was is not None and was != is_now:
            found.append(f"{name} {is_now} instead of {was}")
    return found


def of_the_course(attempts: Sequence[Mapping[str, Any]], unpaused: Sequence[float]) -> list[str]:
    """What no repetition can do in the same way.

    Args:
        attempts: The trial's.
        unpaused: Where it could not be paused and continued as the trial was.
    """
    found = []
    recorded = [each["arithmetic"] for each in attempts if each["arithmetic"] is not None]
    for each in recorded[1:]:
        changes = differences(Arithmetic.from_plain(recorded[0]), Arithmetic.from_plain(each))
        if changes:
            found.append(f"an attempt of the trial was continued with {', '.join(changes)}")
    if unpaused:
        levels = ", ".join(f"{level:g}" for level in unpaused)
        found.append(f"the trial was continued at {levels}, and this had no checkpoint there")
    return found


def of_chance(spec: StudySpec, device: str) -> list[str]:
    """What is never recorded and may differ each time."""
    kind = spec.task["kind"]
    found = []
    if spec.budget.per_trial.unit is Unit.SECONDS:
        found.append("the trial budget is in seconds: how far it trains depends on the machine")
    if kind == COMMAND.kind:
        found.append("the program's own randomness: it must draw from {seed} alone")
    elif kind not in BUILT_IN:
        found.append("the function's own randomness: it must draw from trial.seed alone")
    if device != "cpu":
        found.append("a GPU adds in another order each time, unless torch is deterministic")
    return found


def _short(digest: str | None) -> str:
    return "none" if digest is None else digest[:12]
