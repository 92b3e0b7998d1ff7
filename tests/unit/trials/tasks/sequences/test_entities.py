"""Entities and their scores against cases counted by hand, and against seqeval."""

import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st
from seqeval import metrics, scheme
from seqeval.metrics import sequence_labeling

from trials.tasks.sequences.entities import Counts, count, entities, is_bilou


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


SCHEMES = {"IOB": "BI", "IOE": "IE", "IOBES": "BIES", "BILOU": "BILU"}
TYPES = {
    "typed": ["-PER", "-LOC", "-first-name"],
    "of one type": ["-PER"],
    "untyped": [""],
    "with underscores": ["_PER", "_LOC"],
}


def tags_of(name, types):
    return ["O", *(f"{letter}{kind}" for letter in SCHEMES[name] for kind in TYPES[types])]


def sequences(tags):
    """True and predicted tags of some sentences, well-formed or not."""
    pairs = st.lists(st.tuples(st.sampled_from(tags), st.sampled_from(tags)), max_size=12)
    return st.lists(pairs, min_size=1, max_size=4)


def both(drawn):
    truth = [[one for one, _ in sentence] for sentence in drawn]
    return truth, [[other for _, other in sentence] for sentence in drawn]


@pytest.mark.cases(12)
@pytest.mark.parametrize("types", TYPES)
@pytest.mark.parametrize("name", ["IOB", "IOE", "IOBES"])
@given(data=st.data())
def test_the_entities_of_every_scheme_are_those_of_seqeval(name, types, data):
    truth, predicted = both(data.draw(sequences(tags_of(name, types))))
    assert not is_bilou(tags_of(name, types))
    for tags in [*truth, *predicted]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of B_PER, which it reads
            expected = sequence_labeling.get_entities(tags)
        assert [(begin, end - 1) for _, begin, end in entities(tags)] == [
            (begin, end) for _, begin, end in expected
        ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = sequence_labeling.precision_recall_fscore_support(
            truth, predicted, average="micro"
        )
    assert tuple(count(truth, predicted).scores().values()) == pytest.approx(expected[:3])


@pytest.mark.cases(3)
@pytest.mark.parametrize("types", ["typed", "of one type", "untyped"])
@given(data=st.data())
def test_bilou_is_counted_as_in_seqevals_strict_mode_the_only_one_that_reads_it(types, data):
    tags = tags_of("BILOU", types)
    assert is_bilou(tags)
    truth, predicted = both(data.draw(sequences(tags)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of sentences without entities
        expected = [
            score(truth, predicted, mode="strict", scheme=scheme.BILOU, average="micro")
            for score in (metrics.precision_score, metrics.recall_score, metrics.f1_score)
        ]
    assert tuple(count(truth, predicted, bilou=True).scores().values()) == pytest.approx(expected)
    found = scheme.Entities(truth, scheme.BILOU).entities
    for sentence, of_seqeval in zip(truth, found, strict=True):
        assert [(begin, end) for _, begin, end in entities(sentence, bilou=True)] == [
            (entity.start, entity.end) for entity in of_seqeval
        ]


@pytest.mark.parametrize(
    ("tags", "found"),
    [
        ("U-PER U-PER O B-LOC L-LOC", [("PER", 0, 1), ("PER", 1, 2), ("LOC", 3, 5)]),
        ("B-LOC I-LOC O", []),
        ("B-LOC L-PER U-PER", [("PER", 2, 3)]),
        ("B I L U", [("", 0, 3), ("", 3, 4)]),
    ],
)
def test_an_entity_of_bilou_is_whole_or_none(tags, found):
    assert entities(tags.split(), bilou=True) == found
