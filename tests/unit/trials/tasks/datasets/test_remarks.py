"""Sentences on data that can be used and may not be what its owner believes, of every kind."""

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from trials import tasks
from trials.tasks.datasets import labels
from trials.tasks.datasets import remarks as told

SCRATCH = {"scratch": {"layers": 1, "width": 16, "heads": 2, "vocabulary": 280}}
KINDS: dict[str, dict[str, Any]] = {
    "text_classification": {"text": "text", "label": "topic", "model": SCRATCH},
    "text_regression": {"text": ["text", "words"], "label": "size", "model": SCRATCH},
    "sequence_to_sequence": {"source": "text", "target": "words", "model": SCRATCH},
    "tabular": {"target": "topic"},
    "language_modeling": {"model": SCRATCH},
    "token_classification": {"model": SCRATCH},
    "image_classification": {"size": 4},
}
HEADER = ("text", "words", "size", "topic")
Row = tuple[str, str, str, str]


def rows(*numbers: int) -> list[Row]:
    """A row for each number, which differs from all others."""
    return [(f"text {n}", f"some words {n}", str(n * 1.5), ("ay", "bee")[n % 2]) for n in numbers]


def write(folder: Path, kind: str, name: str, found: list[Row]) -> str:
    """Rows as the data of a kind; their path."""
    match kind:
        case "token_classification":
            place = folder / f"{name}.conll"
            lines = [f"{text}\tB-{topic}\nend\tO\n" for text, _, _, topic in found]
            place.write_text("\n".join(lines))
        case "language_modeling":
            place = folder / f"{name}.jsonl"
            place.write_text("".join(json.dumps({"text": row[0]}) + "\n" for row in found))
        case "image_classification":
            place = folder / name
            for number, (text, _, _, topic) in enumerate(found):
                pixels = np.random.default_rng(int(text.split()[1])).integers(0, 255, (4, 4, 3))
                (place / topic).mkdir(parents=True, exist_ok=True)
                image = Image.fromarray(pixels.astype(np.uint8))
                image.save(place / topic / f"{number}.png")
        case _:
            place = folder / f"{name}.csv"
            with place.open("w", newline="") as file:
                csv.writer(file).writerows([HEADER, *found])
    return place.name


def remarks(folder: Path, kind: str, **part: Any) -> list[str]:
    """The remarks on data without problems."""
    found: list[str] = []
    assert (
        tasks.inspect(
            {"kind": kind, **KINDS[kind], **part},
            folder,
            lambda *remark: found.append(": ".join(remark)),
        )
        == []
    )
    return found


def about(found: list[str], place: str) -> list[str]:
    return [each.removeprefix(f"{place}: ") for each in found if each.startswith(place)]


@pytest.mark.cases(len(KINDS))
@pytest.mark.parametrize("kind", KINDS)
def test_rows_of_the_training_file_are_found_in_every_other_file(tmp_path, kind):
    train = write(tmp_path, kind, "train", rows(*range(40)))
    copied = write(tmp_path, kind, "copied", rows(*reversed(range(40))))
    other = write(tmp_path, kind, "other", rows(*range(100, 120)))
    mixed = write(tmp_path, kind, "mixed", rows(*range(36, 40), *range(100, 104)))

    assert about(remarks(tmp_path, kind, train=train, validation=other), "task.validation") == []
    (whole,) = about(remarks(tmp_path, kind, train=train, validation=train), "task.validation")
    assert whole.startswith("all 40 ")
    assert whole.endswith(" are in task.train too: what is measured on them is learnt by heart")
    (again,) = about(remarks(tmp_path, kind, train=train, validation=copied), "task.validation")
    assert again == whole
    found = remarks(tmp_path, kind, train=train, validation=other, test=mixed)
    assert about(found, "task.validation") == []
    in_train, in_validation = about(found, "task.test")
    assert in_train.startswith("4 of 8 ")
    assert " are in task.train too" in in_train
    assert in_validation.startswith("4 of 8 ")
    assert in_validation.endswith(" are in task.validation too: the search chooses by them")


@pytest.mark.cases(len(KINDS))
@pytest.mark.parametrize("kind", KINDS)
def test_duplicates_on_both_sides_of_the_split_are_counted(tmp_path, kind):
    once = write(tmp_path, kind, "once", rows(*range(40)))
    assert about(remarks(tmp_path, kind, train=once, validation=0.25), "task.validation") == []
    twice = write(tmp_path, kind, "twice", rows(*range(40)) * 2)
    (found,) = about(remarks(tmp_path, kind, train=twice, validation=0.25), "task.validation")
    assert "of 20 " in found
    assert " have a duplicate that is trained: what is measured on them is learnt by heart" in found


CLASSES = ("text_classification", "tabular", "image_classification")


def with_topics(*topics: str) -> list[Row]:
    plain = rows(*range(len(topics)))
    return [(*row[:3], topic) for row, topic in zip(plain, topics, strict=True)]


@pytest.mark.cases(len(CLASSES))
@pytest.mark.parametrize("kind", CLASSES)
def test_classes_that_may_be_a_mistake_are_named(tmp_path, kind):
    topics = ["ay"] * 57 + ["Ay", "Ay", "bee"]
    train = write(tmp_path, kind, "train", with_topics(*topics))
    found = "\n".join(remarks(tmp_path, kind, train=train, validation=0.25))
    assert "1 class has one" in found
    assert "too few to train and to validate: 'bee'" in found
    assert "classes that are written differently and may be one: 'Ay' and 'ay'" in found
    assert "57 of 60" in found
    assert "have the class 'ay', an accuracy that needs no learning" in found


def test_tags_that_may_be_a_mistake_are_named(tmp_path):
    topics = ["per"] * 20 + ["Per"] * 10 + ["loc"]
    train = write(tmp_path, "token_classification", "train", with_topics(*topics))
    found = remarks(tmp_path, "token_classification", train=train, validation=0.25)
    assert about(found, "task.tags") == [
        "1 class has one word only, too few to train and to validate: 'B-loc'",
        "classes that are written differently and may be one: 'B-Per' and 'B-per'",
    ]


@pytest.mark.parametrize(
    "names",
    [
        ("pos", "pos ", " pos"),
        ("Pos", "pos", "POS"),
        ("1", "1.0", "01", "1e0"),
        ("e\u0301t\u00e9", "\u00e9t\u00e9"),
        ("not sure", "not_sure", "notsure"),
        ("a\u00a0b", "a b"),
        ("ok", "o\u200bk"),
        ("\uff11\uff12", "12"),
    ],
)
def test_names_that_people_do_not_tell_apart_are_alike(names):
    assert labels.alike([*names, "another", "B-", "B", "-1", "-2"]) == [sorted(names)]


def test_classes_of_another_file_that_are_only_written_differently_are_named(tmp_path):
    write(tmp_path, "tabular", "train", with_topics(*["yes", "no"] * 10))
    write(tmp_path, "tabular", "other", with_topics("Yes", "no"))
    part = {"kind": "tabular", "target": "topic", "train": "train.csv", "validation": "other.csv"}
    (problem,) = tasks.inspect(part, tmp_path)
    assert problem.what.endswith("write them as in training: 'Yes' and 'yes' may be one")


def test_numbers_that_may_be_a_mistake_are_named(tmp_path):
    sizes = ["0"] * 57 + ["1", "2", "1e9"]
    train = [(*row[:2], size, row[3]) for row, size in zip(rows(*range(60)), sizes, strict=True)]
    write(tmp_path, "text_regression", "train", train)
    found = remarks(tmp_path, "text_regression", train="train.csv", validation=0.25)
    constant, far = about(found, "task.label")
    assert constant == "57 of 60 texts have one number, 0"
    assert far.startswith("1 text lies far from the others, which go from 0 to 2 (the farthest is")


def test_labels_that_cannot_be_learnt_are_named(tmp_path):
    lines = [f"text {n},{n % 2},0,1,{int(n == 3)}" for n in range(20)]
    (tmp_path / "train.csv").write_text("\n".join(["text,some,none,all,once", *lines]))
    part = {"label": ["some", "none", "all", "once"], "train": "train.csv", "validation": 0.25}
    assert about(remarks(tmp_path, "text_classification", **part), "task.label") == [
        "no text has the label 'none': it cannot be learnt",
        "all texts have the label 'all': it cannot be learnt",
        "only 1 text has the label 'once': it cannot be learnt",
    ]


def test_a_text_that_has_its_class_in_it_gives_it_away(tmp_path):
    train = [(f"{row[0]} was a {row[3].upper()}", *row[1:]) for row in rows(*range(40))]
    train = [(*row[:3], "joy" if row[3] == "ay" else row[3]) for row in train]
    train = [(row[0].replace("AY", "enJOYed"), *row[1:]) for row in train]
    write(tmp_path, "text_classification", "train", train)
    found = remarks(tmp_path, "text_classification", train="train.csv", validation=0.25)
    assert about(found, "task.text") == [
        "40 of 40 texts have the name of their class in them, and give it away"
    ]


def test_good_data_has_no_remarks(tmp_path):
    for kind in KINDS:
        train = write(tmp_path, kind, f"{kind}-train", rows(*range(60)))
        other = write(tmp_path, kind, f"{kind}-other", rows(*range(100, 120)))
        for validation in (0.25, other):
            found = remarks(tmp_path, kind, train=train, validation=validation)
            assert [each for each in found if not each.startswith("task.train: col")] == []


def test_a_long_name_is_cut(tmp_path):
    train = write(tmp_path, "tabular", "train", with_topics(*["ay"] * 20, "x" * 100_000))
    assert max(map(len, remarks(tmp_path, "tabular", train=train, validation=0.25))) < 400


CUT = {
    "text_classification": ("max_length", {"max_length": 8}),
    "token_classification": ("max_length", {"max_length": 8}),
    "sequence_to_sequence": ("max_target_length", {"max_length": 64, "max_target_length": 8}),
}


@pytest.mark.cases(len(CUT))
@pytest.mark.parametrize("kind", CUT)
def test_texts_that_are_cut_are_counted(tmp_path, kind):
    name, params = CUT[kind]
    long = " ".join("abcdefgh") * 2
    if kind == "token_classification":
        long = "a\tO\n" * 9 + "b"
    train = rows(*range(40))
    for number in (3, 5, 8):
        train[number] = (f"{long} {number}", f"{long} {number}", *train[number][2:])
    if kind == "token_classification":
        train = [(row[0].replace(" ", "_"), *row[1:]) for row in train]
    file = write(tmp_path, kind, "train", train)
    task: Any = tasks.load(
        {"kind": kind, **KINDS[kind], "train": file, "validation": 0.25}, tmp_path
    )
    more = {**params, "max_length": 64, "max_target_length": 64}
    if kind != "sequence_to_sequence":
        del more["max_target_length"]
    assert task.remarks(more, task.prepare(more)) == []
    (found,) = task.remarks(params, task.prepare(params))
    assert found == f"settings.{name}: 3 of 40 texts are longer than 8 tokens, and are cut"


@pytest.mark.parametrize(
    ("usual", "far"),
    [
        (np.linspace(0, 1, 50), 1e9),
        (np.repeat([0.0, 1.0], [95, 5]), 1e6),
        (np.zeros(50), 7.0),
        (np.exp(np.random.default_rng(0).normal(0, 1, 800)), 1e4),
    ],
)
def test_only_what_is_far_from_all_others_is_out_of_the_usual_range(usual, far):
    low, high = told.usual_range(np.append(usual, far))
    assert low <= usual.min() <= usual.max() <= high
    assert far > high or not usual.any()


def test_no_numbers_have_the_range_of_zero():
    assert told.usual_range(np.array([])) == (0.0, 0.0)
