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
    for kind, (fits, fails) in learnt.items():
        fits_too, fails_too = result.get(kind, (0, None))
        most = max(fits or 0, fits_too or 0)
        least = min((size for size in (fails, fails_too) if size is not None), default=None)
        result[kind] = [most if least is None else min(most, least - 1), least]
    return result


def aged(known: Facts) -> dict[str, list[int | None]]:
    """Facts without the sizes that did not fit: devices may be others by now, or less used."""
    return {kind: [fits, None] for kind, (fits, _) in known.items() if fits}
