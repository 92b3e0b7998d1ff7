"""The code and data that a version of a study is sealed with: what counts, and what never does."""

import subprocess
import sys

import pytest

from hpsearch.running.creation.seal import differing, seal_of
from hpsearch.study_file.reading import parse
from trials.tasks.function import own

FUNCTION = "{kind: 'train:fit', args: {data: x.csv}}"
COMMAND = "{kind: command, run: 'python train.py --x {x} --config c.yaml --log log.txt --to out'}"


def sealed(folder, task: str):
    """The seal of a study of a task with one parameter."""
    name = "dropout" if "image" in task else "x"
    text = f"""
study: s
task: {task}
space: {{{name}: {{type: float, low: 0.0, high: 0.9}}}}
objective: {{metric: loss, direction: minimize}}
budget: {{trials: 4, per_trial: {{epochs: 5}}}}
"""
    return seal_of(parse(text, base=folder))


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "train.py").write_text("import model\ndef fit(params, trial): pass\n")
    (tmp_path / "model.py").write_text("from parts import layers\n")
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "layers.py").write_text("")
    (tmp_path / "plots.py").write_text("")
    for name in ("x.csv", "c.yaml", "log.txt"):
        (tmp_path / name).write_text("")
    return tmp_path


def changed(folder, task: str, *names: str) -> list[str]:
    """What differs once these files have changed."""
    before = sealed(folder, task).binding
    for name in names:
        (folder / name).parent.mkdir(exist_ok=True)
        with (folder / name).open("a") as file:
            file.write("# more\n")
    return differing(before, sealed(folder, task).binding)


def test_a_function_is_sealed_with_what_it_imports_and_the_files_of_its_args(folder):
    every = ["model.py", "parts/layers.py", "train.py", "x.csv"]
    assert changed(folder, FUNCTION, *every, "plots.py") == every


def test_a_command_is_sealed_with_its_sources_and_not_with_what_it_may_write(folder):
    every = ["c.yaml", "model.py", "parts/layers.py", "train.py"]
    assert changed(folder, COMMAND, *every, "log.txt", "plots.py") == every


def test_what_trials_write_beside_their_code_changes_nothing(folder):
    written = ("out/model.py", "parts/__pycache__/layers.pyc", "study.db", "train.log", "new.py")
    for task in (FUNCTION, COMMAND):
        assert changed(folder, task, *written) == []


@pytest.mark.parametrize(
    "run",
    ["python -m pack.go {x}", "torchrun -m pack.go {x}", "bash run.sh {x}", "./tool {x}"],
)
def test_a_program_is_found_however_it_is_started(folder, run):
    (folder / "src" / "pack").mkdir(parents=True)
    (folder / "src" / "pack" / "go.py").write_text("from pack import rate\n")
    (folder / "src" / "pack" / "rate.py").write_text("")
    (folder / "run.sh").write_text("cd . && python src/pack/go.py $1\n")
    (folder / "tool").write_text("#!/bin/sh\n")
    name = "tool" if "tool" in run else "src/pack/rate.py"
    assert changed(folder, f"{{kind: command, run: '{run}'}}", name) == [name]


def test_all_that_git_tracks_is_sealed_where_imports_are_by_names_made_up(folder):
    (folder / "model.py").write_text("import importlib\nimportlib.import_module('pl' + 'ots')\n")
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    subprocess.run(["git", "add", "*.py"], cwd=folder, check=True)
    assert changed(folder, COMMAND, "plots.py", "other.py", "x.csv") == ["plots.py"]


def test_a_folder_of_data_is_sealed_by_the_names_and_sizes_of_its_files(folder):
    task = "{kind: image_classification, train: images, validation: 0.5}"
    (folder / "images" / "cats").mkdir(parents=True)
    (folder / "images" / "cats" / "1.png").write_text("1")
    assert list(sealed(folder, task).binding) == ["images"]
    assert changed(folder, task, "images/.cache") == []
    assert changed(folder, task, "images/2.png") == ["images"]


def test_a_program_that_is_not_text_or_has_an_error_is_sealed_as_it_is(folder):
    (folder / "train.py").write_bytes(b"\xff\x00 not python")
    assert changed(folder, COMMAND, "train.py", "model.py") == ["train.py"]
    assert changed(folder, f"{{kind: command, run: '{sys.executable} {{x}}'}}", "train.py") == []


def test_a_module_is_read_once_however_many_import_it(folder, monkeypatch):
    names = [f"m{n}" for n in range(20)]
    for name in names:
        (folder / f"{name}.py").write_text(f"import {', '.join(names)}\n")
    (folder / "model.py").write_text("import m0, importlib\n")
    read = []
    imports_of = own.imports_of
    monkeypatch.setattr(own, "imports_of", lambda file: read.append(file) or imports_of(file))
    assert len(sealed(folder, FUNCTION).binding) == 23
    assert len(read) == len(set(read)) == 22
