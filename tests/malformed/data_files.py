"""Data files that cannot be: encodings, broken formats, rows and columns that do not fit, things
that are no files."""

import gzip
import io
import os
import socket
from pathlib import Path
from typing import Any

import numpy as np

from malformed import ROWS, TABLE, Case, Make, both, changed, replaced, written

TRAIN = "data/train.csv"
AT_TRAIN = "study.yaml:5: task.train:"
TEXT_TASK = """\
  kind: text_classification
  train: data/train.csv
  validation: 0.25
  text: text
  label: label
  model: {scratch: {layers: 1, width: 16}}
"""


def train(content: bytes | str) -> Make:
    """Training data of this content."""
    return written(TRAIN, content)


def other_train(name: str, content: bytes | str) -> Make:
    """Training data in a file of another name."""
    return both(written(f"data/{name}", content), changed(("train.csv", name)))


def validation(content: bytes | str) -> Make:
    """Validation data of this content."""
    return both(written("data/validation.csv", content), changed(("0.25", "data/validation.csv")))


def test(content: bytes | str) -> Make:
    """Test data of this content."""
    return both(
        written("data/test.csv", content),
        changed(("  text: text", "  test: data/test.csv\n  text: text")),
    )


def task(
    kind: str, name: str, content: bytes | str | None, *lines: str, metric: str = "accuracy"
) -> Make:
    """A study of another kind, with its training data; None for none."""
    text = "".join(
        f"  {line}\n"
        for line in (f"kind: {kind}", f"train: data/{name}", "validation: 0.25", *lines)
    )
    study = changed((TEXT_TASK, text), ("metric: accuracy", f"metric: {metric}"))
    return study if content is None else both(study, written(f"data/{name}", content))


SCRATCH = "model: {scratch: {layers: 1, width: 16}}"
NUMBERS = "x,y\n" + "".join(f"{i},{2 * i}\n" for i in range(20))


def regression(content: str, *lines: str) -> Make:
    """A regression of column y."""
    return task(
        "tabular",
        "t.csv",
        content,
        "target: y",
        "objective_kind: regression",
        *lines,
        metric="loss",
    )


def conll(content: bytes | str, name: str = "t.conll") -> Make:
    """A token classification."""
    return task("token_classification", name, content, SCRATCH, metric="f1")


def pairs(content: str) -> Make:
    """A sequence to sequence task from column a to column b."""
    return task(
        "sequence_to_sequence", "t.csv", content, "source: a", "target: b", SCRATCH, metric="loss"
    )


def texts(
    content: str, *lines: str, kind: str = "text_classification", metric: str = "loss"
) -> Make:
    """A task on the texts, or pairs of texts, of a table."""
    return task(kind, "t.csv", content, *lines, SCRATCH, metric=metric)


def documents(content: bytes | str) -> Make:
    """A language model."""
    return task("language_modeling", "t.txt", content, SCRATCH, metric="loss")


def images(*makes: Make) -> Make:
    """A folder of images."""
    return both(
        task("image_classification", "images", None),
        lambda folder: (folder / "data/images/a").mkdir(parents=True),
        *makes,
    )


def npz(content: bytes | None = None, **arrays: Any) -> Make:
    """An archive of arrays, or what is to pass for one."""
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return task(
        "image_classification", "images.npz", buffer.getvalue() if content is None else content
    )


def bind(path: Path) -> None:
    """A socket in a file's place; its path would be too long for one."""
    here = Path.cwd()
    os.chdir(path.parent)
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(path.name)
    os.chdir(here)


MARKS = "x,y,p,q\na,b,0,1\nc,d,1,0\ne,f,0,0\ng,h,1,1\n"
RECORD = '{"text": "a", "label": "b"}\n'
# A case a line, however long: a table is read by its columns.
# fmt: off
CASES = [
    # not text in UTF-8
    Case("empty", train(""), AT_TRAIN, "name a file with data"),
    Case("blank lines", train("\n\n  \n"), AT_TRAIN, "name a file with data"),
    Case("a header alone", train("text,label\n"), AT_TRAIN, "name a file with data"),
    Case("a byte order mark alone", train(b"\xef\xbb\xbf"), AT_TRAIN, "name a file with data"),
    Case("UTF-16 without a mark", train(TABLE.encode("utf-16-le")), f"{AT_TRAIN} ", "(byte 0x00); save it as UTF-8, such as with: iconv -f UTF-16LE"),
    Case("Latin-1", train(TABLE.replace("good", "g\xf6d").encode("latin-1")), "byte 0xf6", "iconv -f WINDOWS-1252 -t UTF-8"),
    Case("Windows-1252", train(TABLE.replace("good", "“good”").encode("cp1252")), "byte 0x93", "save it as UTF-8"),
    Case("gzip", train(gzip.compress(TABLE.encode())), "byte 0x8b", "save it as UTF-8"),
    Case("an image", train(b"\x89PNG\r\n\x1a\n" + bytes(100)), AT_TRAIN, "save it as UTF-8"),
    Case("a web page", train("<!DOCTYPE html><html>not found</html>"), "study.yaml:7: task.text:", "name one of them"),
    # rows and columns
    Case("a row of more fields", train(f"{TABLE}a,b,c,d\n"), "line 18, saw 4", "fix the file"),
    Case("a row of fewer fields", train(f"{TABLE}alone\n"), "row 17", "fill or remove"),
    Case("rows of more fields", train("text,label\n" + "".join(f"{row},more\n" for row in ROWS)), AT_TRAIN, "fix"),
    Case("a quote that is never closed", train(f'{TABLE}"never,up\n'), "row 17", "fix the file"),
    Case("a column's name of 1 MB", train("x" * (1 << 20) + ",label\na,b\n"), "task.text:", "name one of them"),
    Case("200 columns, none of them right", train(",".join(f"c{i}" for i in range(200)) + "\n"), "180 more", "name one"),
    Case("a column twice", train(TABLE.replace("text,label", "text,text,label")), "'text' twice", "fix the file"),
    Case("no column of texts", train(TABLE.replace("text,", "txt,")), "study.yaml:7: task.text:", "did you mean txt?"),
    Case("no column of labels", train(TABLE.replace("label", "lable")), "study.yaml:8: task.label:", "did you mean"),
    Case("spaces", train(TABLE.replace(",", " ")), "study.yaml:7: task.text:", "name one of them, or separate them by commas, semicolons, tabs or bars"),
    Case("one class", train(TABLE.replace("down", "up")), "study.yaml:8: task.label:", "two are needed"),
    Case("one row", train("text,label\na,b\n"), "study.yaml:8: task.label:", "two are needed"),
    Case("every row its own class", train("text,label\n" + "".join(f"a,c{i}\n" for i in range(9))), "no class has two rows", "add rows, or name a file"),
    Case("a label missing", train(f"{TABLE}a,\n"), "row 17", "fill or remove them"),
    Case("a text missing", train(f"{TABLE},up\n"), "row 17", "fill or remove them"),
    Case("a text of blanks", train(f'{TABLE}"   ",up\n'), "row 17", "fill or remove them"),
    Case("a tiny fraction", changed(("0.25", "0.0001")), "study.yaml:6: task.validation:", "give a larger one"),
    # no files
    Case("missing", replaced(TRAIN, lambda path: None), "no such file", "relative to the study file"),
    Case("misspelt", changed(("train.csv", "trian.csv")), "no such file", "did you mean train.csv?"),
    Case("a folder", replaced(TRAIN, os.mkdir), "is a folder", "name a file"),
    Case("a pipe", replaced(TRAIN, os.mkfifo), "is not a plain file", "name a file"),
    Case("a socket", replaced(TRAIN, bind), "not a plain file", "name a file"),
    Case("a device", replaced(TRAIN, lambda path: path.symlink_to("/dev/zero")), "not a plain file", "name a file"),
    Case("a link to nothing", replaced(TRAIN, lambda path: path.symlink_to("x.csv")), "no such file", "did you mean train.csv?"),
    Case("a link to itself", replaced(TRAIN, lambda path: path.symlink_to(path.name)), AT_TRAIN, "check the path"),
    Case("an unknown ending", other_train("train.xlsx", TABLE), "unknown format", "ends in .csv"),
    Case("no ending", other_train("train", TABLE), "unknown format", "ends in .csv"),
    # Parquet and JSON lines
    Case("Parquet that is CSV", other_train("t.parquet", TABLE), "cannot be read as PARQUET", "fix the file"),
    Case("Parquet of nothing", other_train("t.parquet", ""), "cannot be read as PARQUET", "fix the file"),
    Case("Parquet cut short", other_train("t.parquet", b"PAR1" + bytes(50) + b"\xff\xff\xff\x7fPAR1"), AT_TRAIN, "fix"),
    Case("JSON lines of nothing", other_train("t.jsonl", ""), AT_TRAIN, "name a file with data"),
    Case("JSON lines of a list", other_train("t.jsonl", "[1, 2]\n"), "line 1: is not an object", "fix the file"),
    Case("JSON lines cut short", other_train("t.jsonl", RECORD + '{"text":'), "line 2", "fix the file"),
    Case("JSON lines without end", other_train("t.jsonl", "[" * 100_000), "line 1", "fix the file"),
    Case("JSON lines of 5,000 digits", other_train("t.jsonl", '{"text": ' + "9" * 5000 + "}"), "line 1", "fix the file"),
    Case("JSON lines on many lines", other_train("t.jsonl", '{\n"text": "a"\n}\n'), "line 1", "fix the file"),
    Case("JSON lines in Latin-1", other_train("t.jsonl", '{"text": "\xe4"}'.encode("latin-1")), AT_TRAIN, "UTF-8"),
    Case("JSON lines of half a surrogate pair", other_train("t.jsonl", '{"text": "\\ud800"}'), AT_TRAIN, "fix the file"),
    Case("JSON lines of nested texts", other_train("t.jsonl", '{"text": {"a": 1}, "label": "b"}\n' * 4), "row", "fill"),
    # what does not fit the training data
    Case("validation is missing", changed(("0.25", "data/none.csv")), "study.yaml:6: task.validation:", "relative to"),
    Case("validation is empty", validation(""), "study.yaml:6: task.validation:", "name a file with data"),
    Case("validation is packed", validation(gzip.compress(b"x")), "study.yaml:6: task.validation:", "save it as UTF-8"),
    Case("validation of other columns", validation(TABLE.replace("label", "class")), "task.label:", "name one of them"),
    Case("validation of an unseen class", validation(f"{TABLE}a,new\n"), "study.yaml:6: task.validation:", "train them"),
    Case("test of an unseen class", test(f"{TABLE}a,new\n"), "study.yaml:7: task.test:", "train them"),
    Case("test in Latin-1", test(TABLE.replace("good", "g\xf6d").encode("latin-1")), "task.test:", "save it as UTF-8"),
    # pairs, several labels, numbers
    Case("no second text", texts(MARKS + "a,,1,0\n", "text: [x, y]", "label: p"), "row 5", "fill or remove them"),
    Case("a mark of 2", texts(MARKS + "a,b,2,0\n", "text: x", "label: [p, q]"), "row 5 ('2')", "correct or remove them"),
    Case("a label of none", texts("x,p\na,0\nb,0\n", "text: x", "label: [p]"), "study.yaml:8: task.label:", "name another"),
    Case("a word among numbers", texts(MARKS + "a,b,1,?\n", "text: x", "label: q", kind="text_regression"), "row 5 ('?')", "correct or"),
    Case("accuracy of a number", texts(MARKS, "text: x", "label: q", kind="text_regression", metric="accuracy"), "objective.metric:", "known are"),
    # the other kinds of tasks
    Case("a word for a number", regression(f"{NUMBERS}1,many\n"), "row 21: 'many'", "correct them"),
    Case("an infinite number", regression(f"{NUMBERS}1,inf\n"), "row 21: 'inf'", "correct them"),
    Case("a number too large", regression(f"{NUMBERS}1,1e300\n"), "row 21: '1e300'", "correct them"),
    Case("a target missing", regression(f"{NUMBERS}1,\n"), "row 21", "fill or remove them"),
    Case("no column to predict from", regression("x,y\n" + "1,2\n" * 20), AT_TRAIN, "add some"),
    Case("a column that is none", regression(NUMBERS, "numeric: [q]"), "task.numeric:", "name one of them"),
    Case("the target among the inputs", regression(NUMBERS, "numeric: [y]"), "task.numeric:", "keep it in one place"),
    Case("a number's column twice", regression("x,x,y\n" + "1,2,3\n" * 9), "'x' twice", "fix the file"),
    Case("words without tags", conll("word\nword\n\n" * 5), "line 1", "write both"),
    Case("no sentences", conll(""), AT_TRAIN, "name a file with data"),
    Case("sentences in Latin-1", conll("w\xe4 B-X\n".encode("latin-1")), AT_TRAIN, "save it as UTF-8"),
    Case("fewer tags than words", conll('{"tokens": ["a", "b"], "tags": ["O"]}\n', "t.jsonl"), "row 1", "one tag"),
    Case("words that are no list", conll('{"tokens": "a b", "tags": ["O"]}\n', "t.jsonl"), "row 1", "write a list"),
    Case("one tag", conll("word O\n\n" * 20), "task.tags:", "two are needed"),
    Case("no documents", documents(""), AT_TRAIN, "name a file with data"),
    Case("one document", documents("one two three"), "there is only one document", "add documents, or name a file"),
    Case("documents in UTF-16", documents("one\n\ntwo".encode("utf-16-be")), AT_TRAIN, "save it as UTF-8"),
    Case("nothing to write", pairs("a,b\n" + "x,y\n" * 9 + "x,\n"), "row 10", "fill or remove them"),
    Case("no column to write", pairs("a,c\n" + "x,y\n" * 9), "task.target:", "name one of them"),
    Case("no images", images(), AT_TRAIN, "a folder of its name"),
    Case("images that are none", images(written("data/images/a/x.png", "none")), "x.png", "fix or remove it"),
    Case("images that are pipes", images(lambda folder: os.mkfifo(folder / "data/images/a/x.png")), "x.png", "name a"),
    Case("no folder of images", task("image_classification", "images", None), "there is no folder", "or a .npz file"),
    Case("arrays of nothing", npz(b""), "cannot be read as NPZ", "write it with numpy.savez"),
    Case("arrays that are text", npz(b"text"), "cannot be read as NPZ", "write it with numpy.savez"),
    Case("arrays of pickled objects", npz(images=np.array([{1: 2}], dtype=object), labels=np.array(["a"])),
         "cannot be read as NPZ", "write it with numpy.savez"),
    Case("arrays of other names", npz(x=np.zeros((2, 4, 4), np.uint8)), "lacks an array", "images and labels"),
    Case("arrays of floats", npz(images=np.zeros((2, 4, 4)), labels=np.array([0, 1])), "float64", "give bytes"),
    Case("more labels than images", npz(images=np.zeros((2, 4, 4), np.uint8), labels=np.arange(3)), "shape (3,)", "one")
]
