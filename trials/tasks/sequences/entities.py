"""Entities in sequences of tags, and their precision, recall and F1, as seqeval counts them.

A tag is ``O``, or a letter with a type (``B-PER``) or without one (``B``). The beginnings and ends
of entities follow the script of the CoNLL-2000 shared task (conlleval; Tjong Kim Sang and Buchholz
2000), as in seqeval's default mode: an ``I-PER`` after ``O`` or after another type begins an
entity. This reads IOB1, IOB2, IOE1, IOE2 and IOBES (BIOES). BILOU has the letters ``L`` and ``U``,
which that script does not know, so it is read as in seqeval's strict mode: only ``U-PER``, and
``B-PER`` up to ``L-PER`` with nothing but ``I-PER`` between, are entities.

A tag of another form is a type of its own; equal neighbours are one entity.
"""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

Entity = tuple[str, int, int]  # type, first place, and the place after the last

OUTSIDE = "O"
_TAG = re.compile("([BIESLU])(?:[-_](.*))?")


def is_bilou(tags: Iterable[str]) -> bool:
    """True if the different tags of some data are of BILOU."""
    letters = {_parts(tag)[0] for tag in tags}
    return bool(letters & {"L", "U"}) and not letters & {"E", "S"}


def entities(tags: Sequence[str], *, bilou: bool = False) -> list[Entity]:
    """The entities in a sequence of tags, in their order."""
    parts = [_parts(tag) for tag in tags]
    return _strict(parts) if bilou else _lenient(parts)


def _parts(tag: str) -> tuple[str, str]:
    if tag == OUTSIDE:
        return OUTSIDE, ""
    found = _TAG.fullmatch(tag)
    return (found[1], found[2] or "") if found else ("I", tag)


def _lenient(parts: Sequence[tuple[str, str]]) -> list[Entity]:
    found: list[Entity] = []
    began = 0
    before, before_type = OUTSIDE, ""
    for place, (prefix, kind) in enumerate([*parts, (OUTSIDE, "")]):
        outside = prefix == OUTSIDE
        new = prefix in "BS" or before in "OES" or kind != before_type
        begins = new and not outside
        if before != OUTSIDE and (begins or outside):
            found.append((before_type, began, place))
        if begins:
            began = place
        before, before_type = prefix, kind
    return found


def _strict(parts: Sequence[tuple[str, str]]) -> list[Entity]:
    found: list[Entity] = []
    began: int | None = None
    open_type = ""
    for place, (prefix, kind) in enumerate(parts):
        if prefix in "BU":
            began, open_type = place, kind
        elif prefix == OUTSIDE or kind != open_type:
            began = None
        if prefix in "LU":
            if began is not None:
                found.append((kind, began, place + 1))
            began = None
    return found


class Counts(NamedTuple):
    correct: int  # predicted with their type and both ends right
    existing: int  # in the truth
    proposed: int  # predicted

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


def count(
    truth: Iterable[Sequence[str]], predicted: Iterable[Sequence[str]], *, bilou: bool = False
) -> Counts:
    """Count the entities of true and predicted tags, sequence by sequence."""
    correct = existing = proposed = 0
    for one, other in zip(truth, predicted, strict=True):
        real = set(entities(one, bilou=bilou))
        guessed = set(entities(other, bilou=bilou))
        correct += len(real & guessed)
        existing += len(real)
        proposed += len(guessed)
    return Counts(correct, existing, proposed)
