"""Modules of the user's own that have the name of something installed."""

import multiprocessing
import sys

import pytest

from support.running.function_runs import problem_of, reports_of, setup_in
from trials import tasks
from trials.tasks.function.function_task import remarks

TRAIN = """
import multiprocessing
from factor_of import FACTOR

def twice(x):
    return 2 * x * FACTOR

def train(params, trial):
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        trial.report(1, {"loss": pool.map(twice, [3])[0]})
"""


@pytest.mark.parametrize("name", ["trials", "random", "yaml", "types", "queue.inner"])
def test_a_module_with_the_name_of_an_installed_one_is_loaded_and_spawns(tmp_path, module, name):
    base = module("FACTOR = 5\n", "factor_of")
    file = base.joinpath(*name.split(".")).with_suffix(".py")
    file.parent.mkdir(exist_ok=True)
    file.write_text(TRAIN)
    installed = {each: sys.modules.get(each) for each in ("trials", "random", "types", "queue")}
    task = tasks.load({"kind": f"{name}:train"}, base)
    run = task.start(setup_in(tmp_path), task.prepare({}))
    assert reports_of(run)[0].metrics == {"loss": 30.0}
    assert installed == {each: sys.modules.get(each) for each in installed}
    assert multiprocessing.active_children() == []


def test_files_beside_a_function_are_not_run_in_place_of_what_is_installed(tmp_path, module):
    for name in ("colorsys", "torch", "this"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('the file of the user was run')")
    base = module("import colorsys, torch\ndef train(params, trial): trial.report(1, {'a': 1})\n")
    assert tasks.inspect({"kind": "their_training:train"}, base) == []
    said = remarks("their_training:train", base)
    assert [each.partition(": import ")[2].split()[0] for each in said] == ["colorsys", "torch"]


@pytest.mark.parametrize("text", ["from trials import made_here\n", "import trials.made_here\n"])
def test_an_import_of_a_file_that_cannot_be_found_under_its_name_names_it(tmp_path, module, text):
    (tmp_path / "trials.py").write_text("made_here = 1\n")
    said = problem_of("their_training:train", module(text))
    assert f"trials is the name of an installed module, too: rename trials in {tmp_path}" in said
