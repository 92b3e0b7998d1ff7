"""Sizes of micro-batches that fit in memory, as workers find them out.

`Facts` are plain data: by the kind of run, the largest micro-batch that fits for sure, and the
smallest one that does not (None if that was not seen).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hpsearch.domain import events as ev
from hpsearch.domain.history import History

Facts = Mapping[str, Sequence[int | None]]


def note_memory(history: History, event: ev.Learned) -> None:
    """Keep what a worker has learnt about memory."""
    study = history.study
    study.memory = merged(study.memory, event.facts)
    history.touch_study()


def forget_shortages(history: History) -> None:
    """Let what did not fit in memory be tried again, once, when a driver takes over the study."""
    study = history.study
    if study.memory:
        study.memory = aged(study.memory)
        history.touch_study()


def merged(known: Facts, learnt: Facts) -> dict[str, list[int | None]]:
    """Two sets of facts as one; where they disagree, what does not fit counts."""
    result = {kind: list(fact) for kind, fact in known.items()}
    for kind, fact in learnt.items():
        before = result.get(kind, (0, None))
        result[kind] = _joined(fact, before)
    return result


def _joined(one: Sequence[int | None], other: Sequence[int | None]) -> list[int | None]:
    """Two facts about one kind of run as one."""
    one_fits, one_fails = one
    other_fits, other_fails = other
    most = max(one_fits or 0, other_fits or 0)
    shortages = [size for size in (one_fails, other_fails) if size is not None]
    if not shortages:
        return [most, None]
    least = min(shortages)
    return [min(most, least - 1), least]


def aged(known: Facts) -> dict[str, list[int | None]]:
    """Facts without what did not fit: the devices may be different ones by now, or have fewer
    users."""
    result: dict[str, list[int | None]] = {}
    for kind, (fits, _) in known.items():
        if fits:
            result[kind] = [fits, None]
    return result
