"""Entities and their scores against cases counted by hand."""

from __future__ import annotations

import pytest

from trials.tasks.tokens.entities import Counts, count, entities


@pytest.mark.parametrize(
    ("tags", "found"),
    [
        ("O O", []),
        ("B-PER I-PER O B-LOC", [("PER", 0, 2), ("LOC", 3, 4)]),
        ("B-PER B-PER", [("PER", 0, 1), ("PER", 1, 2)]),
        ("I-PER I-PER O I-PER", [("PER", 0, 2), ("PER", 3, 4)]),  # an I after O begins an entity
        ("B-PER I-LOC I-LOC", [("PER", 0, 1), ("LOC", 1, 3)]),  # so does another type
        (
            "S-PER S-PER B-LOC I-LOC E-LOC I-LOC",
            [("PER", 0, 1), ("PER", 1, 2), ("LOC", 2, 5), ("LOC", 5, 6)],
        ),
        ("NOUN NOUN VERB O", [("NOUN", 0, 2), ("VERB", 2, 3)]),
        ("B-first-name I-first-name", [("first-name", 0, 2)]),
        ("", []),
    ],
)
def test_entities_begin_and_end_as_in_the_conll_script(tags, found):
    assert entities(tags.split()) == found


def test_an_entity_counts_only_if_type_and_both_ends_agree():
    truth = [["O", "O", "O", "B-MISC", "I-MISC", "I-MISC", "O"], ["B-PER", "I-PER", "O"]]
    predicted = [["O", "O", "B-MISC", "I-MISC", "I-MISC", "I-MISC", "O"], ["B-PER", "I-PER", "O"]]
    assert count(truth, predicted).scores() == {"precision": 0.5, "recall": 0.5, "f1": 0.5}
    more = count([["B-PER", "O", "B-LOC"]], [["B-PER", "O", "O"]]).scores()
    assert more == {"precision": 1.0, "recall": 0.5, "f1": pytest.approx(2 / 3)}


def test_nothing_to_find_and_nothing_found_scores_zero():
    assert count([["O"]], [["O"]]).scores() == {"precision": 0.0, "recall": 0.0, "f1": 0.0}


def test_counts_of_parts_add_up_to_those_of_the_whole():
    truth = [["B-PER", "I-PER", "O"], ["B-LOC", "O"], ["O", "B-PER"]]
    predicted = [["B-PER", "I-PER", "B-LOC"], ["B-PER", "O"], ["O", "B-PER"]]
    whole = count(truth, predicted)
    parts = [count(truth[:1], predicted[:1]), count(truth[1:], predicted[1:])]
    assert whole == Counts(correct=2, existing=3, proposed=4)
    assert whole == Counts(*map(sum, zip(*parts, strict=True)))
