"""What an imported study is good for, and what refuses it."""

from contextlib import closing
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from hpsearch.running.creation.warm_start import earlier_studies
from hpsearch.store import contents
from hpsearch.store.store import Store
from hpsearch.study_file.reading import parse
from support.files.past_runs import command, imported

OPTIONS = ("--params", "x", "--metric", "loss", "--direction", "minimize")
NEW = """\
study: new
task: {kind: "code:train"}
space: {x: {type: float, low: 0, high: 1}, y: {type: float, low: 0, high: 1}}
objective: {metric: loss, direction: minimize}
budget: {trials: 12, per_trial: {epochs: 3}}
"""


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "runs.csv"
    rows = [f"{i / 10},{(i / 10 - 0.3) ** 2}" for i in range(10)]
    path.write_text("\n".join(["x,loss", *rows, ""]))
    return path


@pytest.fixture
def study_file(tmp_path: Path) -> Path:
    path = tmp_path / "study.yaml"
    path.write_text(NEW)
    return path


@pytest.mark.parametrize(("warm_start", "told"), [("[old]", ["old"]), ("auto", [])])
def test_it_is_evidence_of_a_warm_start(
    warm_start, told, table, study_file, sqlite_url, monkeypatch
):
    monkeypatch.chdir(study_file.parent)
    imported(sqlite_url, table, *OPTIONS)
    spec = parse(f"{NEW}search: {{warm_start: {warm_start}}}\n", base=study_file.parent)
    with closing(Store.open(sqlite_url, create=False)) as store:
        found = earlier_studies(store, spec)
    assert [study.name for study in found] == told
    if found:
        assert found[0].trials[0].params == {"x": 0.3}


def test_queries_show_it_and_what_would_train_refuses_it(table, tmp_path, sqlite_url, capsys):
    imported(sqlite_url, table, *OPTIONS)
    place = ("--storage", sqlite_url)
    capsys.readouterr()
    for words in (["best", "old"], ["trials", "old"], ["show", "old", "3"], ["ls"]):
        assert command(*words, *place) == 0
    assert "0.3" in capsys.readouterr().out
    assert command("status", "old", *place) == 0
    told = "".join(
        capsys.readouterr().out.split()
    )  # long facts take several lines, whatever the folder's name
    assert f"finished:importedfromatable:{table}" in told
    for suffix, read in ((".csv", pd.read_csv), (".parquet", pd.read_parquet)):
        out = tmp_path / f"out{suffix}"
        assert command("export", "old", "--to", str(out), *place) == 0
        assert read(out).set_index("number").at[3, "x"] == 0.3
    for words in (["resume", "old"], ["resume", "old", "--trials", "99"]):
        assert command(*words, *place) == 2
        assert "it cannot be resumed" in capsys.readouterr().err
    assert command("train", "old", *place) == 2
    assert "was imported, so it has no task to train" in capsys.readouterr().err
    assert command("best", "old", "--format", "yaml", *place) == 2
    assert "has no task to train" in capsys.readouterr().err
    assert command("rm", "old", "--yes", *place) == 0


def test_an_import_that_dies_leaves_nothing(table, sqlite_url, monkeypatch):
    def dies(*arguments: Any, **others: Any) -> None:
        real(*arguments, **others)
        raise KeyboardInterrupt

    real = contents.write
    with closing(Store.open(sqlite_url)) as store:
        monkeypatch.setattr(contents, "write", dies)
        words = ("import", str(table), "--name", "old", "--storage", sqlite_url, *OPTIONS)
        assert command(*words) != 0
        monkeypatch.undo()
        assert store.study_names() == []
    assert imported(sqlite_url, table, *OPTIONS).trials


def test_postgresql_takes_the_same(table, postgresql_url):
    history = imported(postgresql_url, table, *OPTIONS)
    assert len(history.trials) == 10
