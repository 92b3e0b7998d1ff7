"""Entities in sequences of tags, and their precision, recall and F1.

Tags are BIO or BIOES (``B-PER``, ``I-PER``, ``E-PER``, ``S-PER``, ``O``). The beginnings and ends
of entities follow the script of the CoNLL-2000 shared task (conlleval; Tjong Kim Sang and Buchholz
2000), as in seqeval: an ``I-PER`` after ``O`` or after another type begins an entity. A tag without
such a prefix is a type of its own; equal neighbours are one entity.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

Entity = tuple[str, int, int]
"""Type, first place, and the place after the last."""

OUTSIDE = "O"


def entities(tags: Sequence[str]) -> list[Entity]:
    """The entities in a sequence of tags, in their order."""
    found: list[Entity] = []
    began = 0
    before, before_type = OUTSIDE, ""
    for place, tag in enumerate([*tags, OUTSIDE]):
        prefix, kind = _parts(tag)
        outside = prefix == OUTSIDE
        new = prefix in "BS" or before in "OES" or kind != before_type
        begins = new and not outside
        if before != OUTSIDE and (begins or outside):
            found.append((before_type, began, place))
        if begins:
            began = place
        before, before_type = prefix, kind
    return found


def _parts(tag: str) -> tuple[str, str]:
    if tag == OUTSIDE:
        return OUTSIDE, ""
    prefix, dash, kind = tag.partition("-")
    return (prefix, kind) if dash and prefix in ("B", "I", "E", "S") else ("I", tag)


class Counts(NamedTuple):
    """Counts of entities in some sequences, which add up."""

    correct: int
    """Predicted with their type and both ends right."""
    existing: int
    """In the truth."""
    proposed: int
    """Predicted."""

    def scores(self) -> dict[str, float]:
        """`precision`, `recall` and `f1`; 0 without entities."""
        correct, existing, proposed = self
        return {
            "precision": _share(correct, proposed),
            "recall": _share(correct, existing),
            "f1": _share(2 * correct, existing + proposed),
        }


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


def count(truth: Iterable[Sequence[str]], predicted: Iterable[Sequence[str]]) -> Counts:
    """Count the entities of true and predicted tags, sequence by sequence."""
    correct = existing = proposed = 0
    for one, other in zip(truth, predicted, strict=True):
        real, guessed = set(entities(one)), set(entities(other))
        correct += len(real & guessed)
        existing += len(real)
        proposed += len(guessed)
    return Counts(correct, existing, proposed)
