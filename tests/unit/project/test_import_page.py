"""The page on imports: what it shows is run, and what it says is printed is printed."""

import re
import shlex
from pathlib import Path

import optuna
import pytest
from optuna.storages import RDBStorage

from hpsearch.cli.main import main
from hpsearch.plugins.optuna.storages import UNPOOLED
from hpsearch.running.loading import inspect
from hpsearch.study_file import reading
from support.files import pages
from support.files.past_runs import command

PAGE = pages.read("import")
FILES = {"text": ["runs.csv", "printed.txt"], "yaml": ["sweep.yaml", "becomes.yaml"]}
"""The names of the files that the page shows, in its order."""
WANDB = (
    '"Name","State","Created","Runtime","lr","batch_size","val_loss"\n'
    '"a","finished","2026-01-02T03:04:05.000Z","9","0.1","16","0.5"\n'
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with all files of the page, and those that it takes for given."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HPSEARCH_STORAGE", f"sqlite:///{tmp_path}/hpsearch.db")
    for language, names in FILES.items():
        for name, text in zip(names, pages.texts("import", language), strict=True):
            (tmp_path / name).write_text(text)
    (tmp_path / "project.csv").write_text(WANDB)
    study = optuna.create_study(
        study_name="digits", storage=RDBStorage("sqlite:///optuna.db", UNPOOLED)
    )
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=2)
    return tmp_path


def test_every_command_of_the_page_works_and_prints_what_it_says(folder, capsys):
    lines = "".join(pages.texts("import", "sh")).splitlines()
    assert len(lines) >= 6
    said = {}
    for line in lines:
        program, *words = shlex.split(line)
        assert program == "hpsearch"
        assert command(*words) == 0, line
        said[line] = capsys.readouterr()
    printed = (folder / "printed.txt").read_text()
    assert printed in said[lines[0]].err
    made = (folder / "study.yaml").read_text()
    _, _, made = made.partition("\n")  # where editors find the schema
    assert made == (folder / "becomes.yaml").read_text()


def test_the_study_file_that_is_made_has_no_mistakes(folder):
    (folder / "train.py").touch()
    assert command("init", "made.yaml", "--from", "sweep.yaml") == 0
    reading.load(folder / "made.yaml", inspect=inspect)


def test_every_option_and_key_is_named(capsys):
    with pytest.raises(SystemExit):
        main(["import", "--help"])
    for option in re.findall(r"--[a-z-]+", capsys.readouterr().out):
        assert f"`{option}`" in PAGE or option in ("--help", "--storage"), option
