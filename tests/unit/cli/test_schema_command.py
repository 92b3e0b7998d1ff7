"""`hpsearch check --schema`, and how an editor finds it from a study file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hpsearch.cli.init import write_starter
from hpsearch.cli.main import main
from hpsearch.cli.options import DataOptions, StudyOptions
from hpsearch.study_file.schema import study_file_schema

SCHEMA = study_file_schema()


def call(*arguments: str) -> int | str | None:
    with pytest.raises(SystemExit) as ended:
        main(["check", "--schema", *arguments])
    return ended.value.code


def test_it_is_printed_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert not call()
    out, err = capsys.readouterr()
    assert json.loads(out) == SCHEMA
    assert not err


def test_a_study_file_beside_it_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert call("study.yaml") == 2
    assert "--schema goes without a study file" in capsys.readouterr().err


def test_a_new_study_file_names_the_schema_that_stands_beside_it(tmp_path: Path) -> None:
    write_starter(tmp_path / "mine.yaml", "tabular", DataOptions(), StudyOptions())
    first = (tmp_path / "mine.yaml").read_text().splitlines()[0]
    comment, _, name = first.partition("$schema=")
    assert comment == "# yaml-language-server: "
    assert json.loads((tmp_path / name).read_text()) == SCHEMA
