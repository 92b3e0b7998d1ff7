"""The separator and the encoding of a table, found in its first bytes and rows."""

import csv
import io
import shlex
import subprocess
from pathlib import Path

import pandas as pd
import pytest

from trials.data import files

ROWS = [["text", "label"], ["nice, really; nice|ly", "pos"], ['she said "no, never;"', "neg"]] * 2


def table(rows: list[list[str]], separator: str, quoting: int = csv.QUOTE_MINIMAL) -> str:
    out = io.StringIO()
    csv.writer(out, delimiter=separator, quoting=quoting).writerows(rows)
    return out.getvalue()


def read(path: Path, content: str, encoding: str = "utf-8") -> list[list[str]]:
    path.write_bytes(content.encode(encoding))
    usual = "\t" if path.suffix == ".tsv" else ","
    frame = pd.read_csv(path, header=None, dtype=str, **files.table_format(path, usual))
    found: list[list[str]] = frame.to_numpy().tolist()
    return found


@pytest.mark.cases(16)
@pytest.mark.parametrize("name", ["t.csv", "t.tsv"])
@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize("quoting", [csv.QUOTE_MINIMAL, csv.QUOTE_ALL])
def test_the_separator_is_found_whatever_is_inside_the_cells(tmp_path, name, separator, quoting):
    assert read(tmp_path / name, table(ROWS, separator, quoting)) == ROWS


@pytest.mark.cases(11)
@pytest.mark.parametrize(
    ("content", "separator"),
    [
        ("id;comment, optional;label\n1;a;b\n2;c, d;e\n", ";"),
        ("a;b;c,label\nx,pos\ny,neg\n", ","),
        ("width;label\n1,5;a\n2,5;b\n", ";"),
        ("text\nfirst; second\nthird; fourth\n", ","),
        ("\n\ntext;label\na;b\n", ";"),
        ('text;label\n"two\nlines, one cell";a\nb;c\n', ";"),
        ("text;label\na;b;c\nd;e\n", ";"),
        ('text;label\n"never closed;a\n', ";"),
        ("", ","),
        ("sep=;\ntext;label\n", ";"),
        ('"sep=|"\r\ntext|label\r\n', "|"),
    ],
)
def test_the_separator_is_that_of_the_header_and_most_rows(tmp_path, content, separator):
    path = tmp_path / "t.csv"
    path.write_bytes(content.encode())
    assert files.table_format(path)["sep"] == separator


@pytest.mark.cases(12)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_the_mark_at_the_beginning_of_a_file_names_its_encoding(tmp_path, encoding, separator):
    rows = [["Größe", "où"], ["京都, 日本", "ж"]]
    assert read(tmp_path / "t.csv", table(rows, separator), encoding) == rows


@pytest.mark.cases(4)
@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "utf-16-le", "utf-16-be"])
def test_the_advice_for_any_other_encoding_converts_the_file(tmp_path, encoding):
    path, text = tmp_path / "my data.csv", "name;città\nGrößé;ü\n"
    path.write_bytes(text.encode(encoding))
    with pytest.raises(UnicodeDecodeError) as caught:
        files.table_format(path)
    what = files.not_utf_8(path, caught.value)
    assert "save it as UTF-8" in what
    command = what.split(" with: ")[1].removesuffix(" (-f names its encoding)")
    subprocess.run(command, shell=True, check=True)
    converted = tmp_path / "my data-utf8.csv"
    assert shlex.quote(str(converted)) in command
    assert converted.read_text(encoding="utf-8") == text
