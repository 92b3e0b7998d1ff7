"""Why a training that is repeated may give something else, the most likely first."""

from __future__ import annotations

from hpsearch.domain.records import Environment
from hpsearch.study_file.models import StudySpec
from trials.descriptions.builtin import BUILT_IN
from trials.descriptions.command import COMMAND
from trials.running.arithmetic import Arithmetic, differences

COMPUTING = ("python", "tokenizers", "scikit-learn")
"""Packages whose versions may matter, besides those that `Arithmetic` has."""
MOST_LIKELY = ("device", "precision", "threads", "torch")
"""Differences in the arithmetic, by how much they change as a rule."""
DIRTY = "-dirty"
"""Ends a revision of a folder with changes that were not committed."""


def causes(
    spec: StudySpec,
    sessions: tuple[Environment | None, Environment],
    arithmetic: tuple[Arithmetic | None, Arithmetic],
) -> list[str]:
    """Everything that is not as it was, in phrases, the likeliest cause of a difference first.

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


def _short(digest: str | None) -> str:
    return "none" if digest is None else digest[:12]
