"""Files that a trial writes where all trials of its study do, as `hpsearch check` finds them."""

import subprocess
from pathlib import Path
from subprocess import PIPE

import pytest

from hpsearch.running.rehearsal.shared_files import SharedFiles
from hpsearch.study_file.models import StudySpec
from hpsearch.study_file.reading import parse
from support.patience import wait_until

STUDY = """\
study: writes
task: TASK
space: {x: {type: float, low: 0, high: 1}}
objective: {metric: loss, direction: minimize}
budget: {trials: 5, per_trial: {steps: 3}}
"""
COMMAND = '{kind: command, run: "python train.py {x}", cwd: code}'


@pytest.fixture
def spec(tmp_path: Path) -> StudySpec:
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "data.csv").write_text("1")
    (tmp_path / "old.bin").write_text("1")
    return parse(STUDY.replace("TASK", COMMAND), base=tmp_path)


def remarks(files: SharedFiles) -> str:
    return "\n".join(files.remarks())


def test_what_appears_or_changes_is_named_with_what_to_do(spec, tmp_path):
    files = SharedFiles(spec)
    assert remarks(files) == ""
    (tmp_path / "code" / "out").mkdir()
    (tmp_path / "code" / "out" / "model.pt").write_text("weights")
    (tmp_path / "old.bin").write_text("another")
    said = remarks(files)
    assert "the trial writes code/out/model.pt, old.bin, which all trials share" in said
    assert "let the command write into {folder}" in said


def test_the_working_directory_counts_too(spec, tmp_path, monkeypatch):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    own = parse(STUDY.replace("TASK", '{kind: "a:b"}'), base=tmp_path / "code")
    files = SharedFiles(own)
    for n in range(5):
        (elsewhere / f"{n}.txt").write_text("x")
    said = remarks(files)
    assert f"{elsewhere / '0.txt'}" in said
    assert "and 2 more" in said
    assert "write into trial.folder" in said


def test_what_programs_keep_for_themselves_is_left_out(spec, tmp_path):
    files = SharedFiles(spec)
    ours = ("hpsearch.db", "mine.sqlite3-wal")
    for name in ("__pycache__/a.pyc", ".cache/x", "wandb/run/y", *ours):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    assert remarks(files) == ""


def test_a_folder_that_cannot_be_read_or_goes_meanwhile_is_no_error(spec, tmp_path):
    (tmp_path / "gone").symlink_to(tmp_path / "nowhere")
    files = SharedFiles(spec)
    (tmp_path / "code" / "data.csv").unlink()
    assert remarks(files) == ""


def test_what_others_write_meanwhile_is_not_the_trials(spec, tmp_path):
    files = SharedFiles(spec)
    with (
        (tmp_path / "check.log").open("w") as log,
        subprocess.Popen(["tee", tmp_path / "tee.log"], stdin=PIPE, stdout=log, text=True) as tee,
    ):
        assert tee.stdin is not None
        tee.stdin.write("what check says\n")
        tee.stdin.flush()
        wait_until(lambda: (tmp_path / "tee.log").exists() and (tmp_path / "tee.log").read_text())
        assert remarks(files) == ""
    (tmp_path / "closed.log").write_text("x")
    assert "closed.log" in remarks(files)
