"""The data of a text classification task, and what is said of data that cannot be used."""

from __future__ import annotations

import hashlib
import json
import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trials import tasks
from trials.contract import TaskError
from trials.tasks.datasets import tables
from trials.tasks.datasets.data_set import stratified
from trials.tasks.datasets.entries import digest_of
from trials.tasks.datasets.labels import class_names

GOOD = [("my card is lost", "card"), ("what a rate", "rate"), ("why this fee", "fee")] * 4


def write(path, rows):
    frame = pd.DataFrame(rows, columns=["text", "topic"])
    match path.suffix:
        case ".csv":
            frame.to_csv(path, index=False)
        case ".tsv":
            frame.to_csv(path, index=False, sep="\t")
        case ".parquet":
            frame.to_parquet(path)
        case ".jsonl":
            frame.to_json(path, orient="records", lines=True)
    return path


def problems(lab, **changes):
    return {p.where: p.what for p in tasks.inspect(lab.part(**changes), lab.folder)}


def test_good_data_has_no_problems(lab):
    write(lab.folder / "test.csv", GOOD)
    assert problems(lab, test="test.csv") == {}


@pytest.mark.parametrize("name", ["data.csv", "data.tsv", "data.parquet", "data.jsonl"])
def test_every_format_gives_the_same_data(lab, name):
    write(lab.folder / "reference.csv", GOOD)
    write(lab.folder / name, GOOD)
    a, b = (lab.task(train=file, validation=file).prepare({}) for file in ("reference.csv", name))
    assert digest_of(a) == digest_of(b)
    assert np.array_equal(a.train.tokens, b.train.tokens)
    assert a.labels == ("card", "fee", "rate")


def test_a_missing_file_names_its_neighbour(lab):
    found = problems(lab, train="trian.csv")
    assert found["task.train"] == f"no such file: {lab.folder}/trian.csv; did you mean train.csv?"
    found = problems(lab, train="deta/train.csv")
    assert "paths are relative to the study file" in found["task.train"]


def test_a_missing_column_names_those_there_are(lab):
    found = problems(lab, text="texts", label="class")
    assert found["task.text"].endswith(
        "has no column 'texts', it has text, topic; did you mean text?"
    )
    assert found["task.label"].endswith(
        "has no column 'class', it has text, topic; name one of them"
    )


@pytest.mark.parametrize("content", ["", "text,topic\n"])
def test_an_empty_file_is_told(lab, content):
    (lab.folder / "empty.csv").write_text(content)
    assert "name a file with data" in problems(lab, train="empty.csv")["task.train"]


def test_a_single_class_is_told(lab):
    write(lab.folder / "one.csv", [("a text", "card")] * 5)
    assert problems(lab, train="one.csv") == {
        "task.label": "all training rows have one class, 'card'; two are needed"
    }


def test_rows_without_text_or_label_are_counted_and_the_first_named(lab):
    rows = [*GOOD, *[("", "card"), ("  ", "fee")] * 4, ("a text", None)]
    path = write(lab.folder / "gaps.csv", rows)
    assert problems(lab, train="gaps.csv") == {
        "task.text": f"8 rows of {path} without 'text': rows 13, 14, 15, 16, 17, ... "
        "(the first after the header is row 1); fill or remove them",
        "task.label": f"1 row of {path} without 'topic': row 21 "
        "(the first after the header is row 1); fill or remove them",
    }


def test_labels_unseen_in_training_are_named(lab):
    write(lab.folder / "other.csv", [*GOOD, ("where is my loan", "loan"), ("a loan", "loan")])
    found = problems(lab, train="train.csv", validation="other.csv", test="other.csv")
    said = "has 1 class that no training row has: 'loan' (rows: 2); remove them, or train them too"
    assert found == {"task.validation": said, "task.test": said}


def test_an_unreadable_encoding_or_format_is_told(lab):
    (lab.folder / "latin.csv").write_bytes("text,topic\ncafé,card\n".encode("latin-1"))
    assert (
        "is not UTF-8 text (byte 0xe9); save it as UTF-8"
        in problems(lab, train="latin.csv")["task.train"]
    )
    (lab.folder / "no.parquet").write_text("text,topic")
    assert "cannot be read as PARQUET" in problems(lab, train="no.parquet")["task.train"]
    (lab.folder / "no.jsonl").write_text('{"text": "a", "topic": "b"}\n{"text"\n')
    assert "cannot be read as JSONL: line 2: " in problems(lab, train="no.jsonl")["task.train"]
    (lab.folder / "data.xlsx").write_text("")
    assert (
        "use a file that ends in .csv, .tsv, .parquet, .jsonl"
        in problems(lab, train="data.xlsx")["task.train"]
    )


def test_a_broken_validation_file_does_not_hide_a_broken_training_file(lab):
    assert problems(lab, train="no.csv", validation="neither.csv").keys() == {
        "task.train",
        "task.validation",
    }


def test_preparing_raises_what_inspecting_says(lab):
    with pytest.raises(TaskError, match=r"task\.train: no such file"):
        lab.task(train="no.csv").prepare({})


def test_numbers_are_labels_in_the_order_of_numbers(lab):
    write(lab.folder / "numbers.parquet", [(f"text {n}", n) for n in (10, 9, 2, 1)] * 3)
    assert lab.task(train="numbers.parquet").prepare({}).labels == ("1", "2", "9", "10")


def test_words_for_nothing_are_texts(lab):
    write(lab.folder / "na.csv", [("NA", "null"), ("none", "None")] * 4)
    assert problems(lab, train="na.csv") == {}


def test_the_split_is_stratified_and_the_same_for_every_trial():
    labels = ["a"] * 60 + ["b"] * 30 + ["c"] * 10 + ["d"]
    taken = stratified(labels, 0.2, seed=0)
    assert [
        sum(taken[i] for i, label in enumerate(labels) if label == name) for name in "abcd"
    ] == [12, 6, 2, 0]
    assert np.array_equal(taken, stratified(labels, 0.2, seed=0))
    assert not np.array_equal(taken, stratified(labels, 0.2, seed=1))


def test_many_small_classes_still_give_their_share():
    labels = [f"class {i % 40}" for i in range(120)]
    assert stratified(labels, 0.1, seed=0).sum() == 12


def test_the_tokenizer_learns_from_training_texts_only(lab):
    write(lab.folder / "train2.csv", GOOD)
    write(lab.folder / "validation.csv", [("zzzz qqqq", "card")])
    data = lab.task(train="train2.csv", validation="validation.csv").prepare({})
    pieces = json.loads(data.tokenizer_files["tokenizer.json"])["model"]["vocab"]
    assert "z" not in pieces
    assert "card" in pieces
    unknown = pieces["[UNK]"]
    assert data.validation.tokens.tolist() == [pieces["[CLS]"], unknown, unknown, pieces["[SEP]"]]


def test_texts_are_lower_cased_and_cut_at_the_longest_length(lab):
    write(lab.folder / "upper.csv", [("CARD card Card " * 20, "card"), ("rate", "rate")] * 4)
    data = lab.task(train="upper.csv").prepare({"max_length": 8})
    assert data.train.lengths.max() == 8
    assert len(set(data.train.tokens[1:7].tolist())) == 1


def test_data_is_keyed_by_what_changes_it(lab):
    task = lab.task()
    assert task.data_key({"learning_rate": 1e-3}) == task.data_key({"batch_size": 8})
    assert task.data_key({"max_length": 64}) != task.data_key({})
    assert task.data_key({}) != lab.task(split_seed=1).data_key({})


def test_a_tokenizer_from_scratch_is_the_same_in_every_process(lab):
    program = (
        "import sys; from pathlib import Path; from trials.tasks import load; "
        "import hashlib, json\n"
        "data = load(json.loads(sys.argv[1]), Path(sys.argv[2])).prepare({})\n"
        "print(hashlib.sha256(data.tokenizer_files['tokenizer.json']).hexdigest())"
    )
    here = lab.task().prepare({}).tokenizer_files["tokenizer.json"]
    command = [sys.executable, "-c", program, json.dumps(lab.part()), str(lab.folder)]
    there = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    assert hashlib.sha256(here).hexdigest() == there


def test_prepared_data_pickles_without_copying_its_arrays(lab):
    data = lab.task().prepare({})
    buffers = []
    pickle.dumps(data, protocol=5, buffer_callback=buffers.append)
    assert {buffer.raw().nbytes for buffer in buffers} >= {
        data.train.tokens.nbytes,
        data.train_labels.nbytes,
    }


@pytest.mark.parametrize(
    ("changes", "where", "said"),
    [
        (
            {"lable": "x"},
            "task.lable",
            "is not a key of a text_classification task; did you mean label?",
        ),
        (
            {"validation": 1.5},
            "task.validation",
            "must be a fraction between 0 and 1 or a file, not 1.5",
        ),
        (
            {"validation": 1},
            "task.validation",
            "must be a fraction between 0 and 1 or a file, not 1",
        ),
        ({"validation": True}, "task.validation", "must be a number or text, not True"),
        (
            {"model": {"scratch": {"layer": 1}}},
            "task.model.scratch.layer",
            "is not a size of a model",
        ),
        (
            {"model": {"scratch": {"width": 0}}},
            "task.model.scratch.width",
            "must be a whole number above 0, not 0",
        ),
        (
            {"model": {"scratch": {"width": 30, "heads": 4}}},
            "task.model.scratch.heads",
            "do not divide the width",
        ),
        ({"model": {"scratch": 5}}, "task.model.scratch", "must be a mapping of sizes such as"),
        ({"split_seed": -1}, "task.split_seed", "must be 0 or more, not -1"),
        (
            {"model": {"layers": 3}},
            "task.model",
            "as a mapping has the one key scratch, not layers",
        ),
        ({"model": "./nowhere"}, "task.model", "write a folder's path or a hub id"),
        ({"model": "."}, "task.model", "name a folder that save_pretrained wrote"),
        ({"kind": "text_clasification"}, "task.kind", "did you mean text_classification?"),
    ],
)
def test_a_mistake_in_the_task_part_says_where_and_what(lab, changes, where, said):
    found = problems(lab, **changes)
    assert said in found[where]


def test_a_missing_key_is_told_with_its_meaning(lab):
    part = lab.part()
    del part["label"]
    (problem,) = tasks.inspect(part, lab.folder)
    assert (problem.where, problem.what) == (
        "task.label",
        "is missing; the column with the classes, or a list of columns of 0 and 1, "
        "one for each label",
    )


def test_longer_texts_than_the_model_can_read_are_refused(lab):
    with pytest.raises(TaskError, match=r"settings\.max_length: must be at most 512"):
        lab.task().prepare({"max_length": 600})


# ------------------------------------------------------------------------------------------ lines
# and classes

ODD_BREAKS = "\u2028\u2029\x85\x0b\x0c\x1c\x1d\x1e"
"""What Python takes for the end of a line, and no file format here does."""


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_json_line_ends_at_a_line_feed_only(lab, end):
    texts = [f"my card{odd}is lost" for odd in "\u2028\u2029\x85"] * 2
    rows = [
        json.dumps({"text": text, "topic": topic}, ensure_ascii=False)
        for text, topic in zip(texts, ["card", "fee"] * 3, strict=True)
    ]
    (lab.folder / "odd.jsonl").write_bytes((end.join(rows) + end).encode())
    assert problems(lab, train="odd.jsonl") == {}
    table = tables.read(lab.folder / "odd.jsonl", "task.train")
    assert table["text"].tolist() == texts


@pytest.mark.parametrize("odd", ODD_BREAKS)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_line_of_text_ends_at_a_line_feed_only(tmp_path, odd, end):
    path = tmp_path / "lines.txt"
    path.write_bytes(f"one{odd}two{end}{end}three{end}".encode())
    assert tables.lines_of(path, "task.train") == [f"one{odd}two", "", "three"]


CLASSES_IN_A_PROCESS = """
from trials.tasks.datasets.labels import class_names
print(class_names(["001", "1", "7", "01", "-0", "0", "00", "+"][:{count}]))
"""


@pytest.mark.parametrize("count", [7, 8])
def test_classes_have_the_same_order_in_every_process(count):
    code = CLASSES_IN_A_PROCESS.format(count=count)
    found = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": str(seed)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in range(5)
    }
    assert len(found) == 1


@given(
    st.lists(st.from_regex(r"-?0{0,3}[0-9]", fullmatch=True), unique=True).flatmap(
        lambda names: st.tuples(st.just(names), st.permutations(names))
    )
)
def test_the_order_of_classes_is_that_of_their_names_alone(both):
    names, shuffled = both
    assert class_names(names) == class_names(shuffled)
    assert [int(name) for name in class_names(names)] == sorted(map(int, names))


def test_trials_of_different_lengths_are_scored_on_the_same_texts_and_classes(lab):
    short, long = (lab.task().prepare({"max_length": length}) for length in (4, 64))
    assert len(short.validation.lengths) == len(long.validation.lengths)
    assert np.array_equal(short.validation_labels, long.validation_labels)
