"""Data files: what is read, and what is wrong with files that cannot be."""

import json

import numpy as np
import pandas as pd
import pytest

from trials.tasks.datasets import tables
from trials.tasks.datasets.prepared import digest_of

GOOD = [("my card is lost", "card"), ("what a rate", "rate"), ("why this fee", "fee")] * 4


@pytest.mark.parametrize("name", ["data.csv", "data.tsv", "data.parquet", "data.jsonl"])
def test_every_format_gives_the_same_data(lab, name):
    lab.write("reference.csv", GOOD)
    lab.write(name, GOOD)
    a, b = (lab.task(train=file, validation=file).prepare({}) for file in ("reference.csv", name))
    assert digest_of(a) == digest_of(b)
    assert np.array_equal(a.train.tokens, b.train.tokens)
    assert a.labels == ("card", "fee", "rate")


@pytest.mark.cases(6)
@pytest.mark.parametrize("name", ["data.csv", "data.tsv"])
@pytest.mark.parametrize(
    ("separator", "encoding"), [(";", "utf-8-sig"), ("\t", "utf-16"), (",", "utf-8")]
)
def test_every_separator_and_marked_encoding_gives_the_same_data(lab, name, separator, encoding):
    good = [(f"{text}, où?; ja", topic) for text, topic in GOOD]
    path = lab.write("reference.parquet", good)
    pd.read_parquet(path).to_csv(lab.folder / name, sep=separator, encoding=encoding, index=False)
    part = {"train": name, "validation": name, "test": name}
    assert lab.problems(**part) == {}
    reference = lab.task(train="reference.parquet", validation="reference.parquet").prepare({})
    assert digest_of(lab.task(**part).prepare({})) == digest_of(reference)


def test_lines_of_text_are_read_in_a_marked_encoding(tmp_path):
    path = tmp_path / "lines.txt"
    path.write_bytes("où\r\n京都\n".encode("utf-16"))
    assert tables.lines_of(path, "task.train") == ["où", "京都"]


def test_a_missing_file_names_its_neighbour(lab):
    found = lab.problems(train="trian.csv")
    assert found["task.train"] == f"no such file: {lab.folder}/trian.csv; did you mean train.csv?"
    found = lab.problems(train="deta/train.csv")
    assert "paths are relative to the study file" in found["task.train"]


def test_a_missing_column_names_those_there_are(lab):
    found = lab.problems(text="texts", label="class")
    assert found["task.text"].endswith(
        "has no column 'texts', it has text, topic; did you mean text?"
    )
    assert found["task.label"].endswith(
        "has no column 'class', it has text, topic; name one of them"
    )


@pytest.mark.parametrize("content", ["", "text,topic\n"])
def test_an_empty_file_is_told(lab, content):
    (lab.folder / "empty.csv").write_text(content)
    assert "name a file with data" in lab.problems(train="empty.csv")["task.train"]


def test_rows_without_text_or_label_are_counted_and_the_first_named(lab):
    rows = [*GOOD, *[("", "card"), ("  ", "fee")] * 4, ("a text", None)]
    path = lab.write("gaps.csv", rows)
    assert lab.problems(train="gaps.csv") == {
        "task.text": f"8 rows of {path} without 'text': rows 13, 14, 15, 16, 17, ... "
        "(the first after the header is row 1); fill or remove them",
        "task.label": f"1 row of {path} without 'topic': row 21 "
        "(the first after the header is row 1); fill or remove them",
    }


def test_an_unreadable_encoding_or_format_is_told(lab):
    (lab.folder / "latin.csv").write_bytes("text,topic\ncafé,card\n".encode("latin-1"))
    assert (
        "is not UTF-8 text (byte 0xe9); save it as UTF-8, such as with: iconv -f WINDOWS-1252"
        in lab.problems(train="latin.csv")["task.train"]
    )
    (lab.folder / "no.parquet").write_text("text,topic")
    assert "cannot be read as PARQUET" in lab.problems(train="no.parquet")["task.train"]
    (lab.folder / "no.jsonl").write_text('{"text": "a", "topic": "b"}\n{"text"\n')
    assert "cannot be read as JSONL: line 2: " in lab.problems(train="no.jsonl")["task.train"]
    (lab.folder / "data.xlsx").write_text("")
    assert (
        "use a file that ends in .csv, .tsv, .parquet, .jsonl"
        in lab.problems(train="data.xlsx")["task.train"]
    )


def test_words_for_nothing_are_texts(lab):
    lab.write("na.csv", [("NA", "null"), ("none", "None")] * 4)
    assert lab.problems(train="na.csv") == {}


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
    assert lab.problems(train="odd.jsonl") == {}
    table = tables.read(lab.folder / "odd.jsonl", "task.train")
    assert table["text"].tolist() == texts


@pytest.mark.parametrize("odd", ODD_BREAKS)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_line_of_text_ends_at_a_line_feed_only(tmp_path, odd, end):
    path = tmp_path / "lines.txt"
    path.write_bytes(f"one{odd}two{end}{end}three{end}".encode())
    assert tables.lines_of(path, "task.train") == [f"one{odd}two", "", "three"]
