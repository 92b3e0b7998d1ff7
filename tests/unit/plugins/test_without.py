"""Without any one of our own plugins the rest works: nothing of the core needs it."""

import configparser
import os
import shutil
import sys
from importlib.metadata import distribution
from pathlib import Path

import pytest

from hpsearch.domain.plugins.door import GROUP
from support.running.programs import run_program
from trials.descriptions import programs

ROOT = Path(__file__).parents[3]
OURS = sorted(each.parent.name for each in (ROOT / "hpsearch" / "plugins").glob("*/__init__.py"))
STUDY = """
study: tiny
task: {kind: "tiny:train"}
space: {x: {type: float, low: 0.0, high: 1.0}}
objective: {metric: loss, direction: minimize}
budget: {trials: 1, per_trial: {epochs: 1}}
resources: {workers: 1, cpu: 1, gpu: 0}
"""
TASK = """
def train(params, trial):
    trial.report(1, {"loss": params["x"]})
"""
SCRIPT = """
import importlib, pkgutil, sys
from pathlib import Path
import hpsearch
from hpsearch.cli.main import main
from hpsearch.study_file.reading import parse
from hpsearch.study_file.trackers import TRACKERS

without, study = sys.argv[1:]
assert hpsearch.__file__.startswith(sys.path[1]), hpsearch.__file__
parse(study + f"track: {list(TRACKERS)}", base=Path())
print("trackers:", *TRACKERS)
for module in pkgutil.walk_packages(hpsearch.__path__, "hpsearch."):
    try:
        importlib.import_module(module.name)
    except ModuleNotFoundError as error:
        if not error.name.startswith("hpsearch"):
            continue  # a library that is not installed
        assert (module.name, without) == ("hpsearch.tune", "ray_tune"), module.name
for words in ("--help", "run --help", "check study.yaml"):
    try:
        main(words.split())
    except SystemExit as ended:
        assert not ended.code, words
"""


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with both packages and what their installation says of them."""
    folder = tmp_path_factory.mktemp("copy")
    for package in ("hpsearch", "trials"):
        shutil.copytree(ROOT / package, folder / package)
    about = folder / "hpsearch-0.dist-info"
    about.mkdir()
    for name in ("METADATA", "entry_points.txt"):
        (about / name).write_text(distribution("hpsearch").read_text(name) or "")
    return folder


@pytest.mark.parametrize("name", OURS)
def test_without_a_plugin_the_rest_works(name, copy, tmp_path):
    listed = copy / "hpsearch-0.dist-info" / "entry_points.txt"
    before, folder = listed.read_text(), copy / "hpsearch" / "plugins" / name
    entries = configparser.ConfigParser(delimiters="=")
    entries.read_string(before)
    for group in (GROUP, programs.GROUP, programs.REPORTS):
        for entry, value in dict(entries[group]).items():
            if value.startswith((f"hpsearch.plugins.{name}:", f"hpsearch.plugins.{name}.")):
                del entries[group][entry]
    with listed.open("w") as file:
        entries.write(file)
    folder.rename(tmp_path / "left out")
    (tmp_path / "study.yaml").write_text(STUDY)
    (tmp_path / "tiny.py").write_text(TASK)
    try:
        script = [sys.executable, "-c", SCRIPT, name, STUDY]
        environment = {**os.environ, "PYTHONPATH": str(copy), "PYTHONWARNINGS": "ignore"}
        done = run_program(script, cwd=tmp_path, env=environment)
    finally:
        (tmp_path / "left out").rename(folder)
        listed.write_text(before)
    assert done.returncode == 0, done.stderr
    assert "study.yaml: no mistakes found" in done.stderr
    assert "left out" not in done.stderr
    trackers = {"mlflow", "tensorboard", "trackio", "wandb"} - {name}
    assert f"trackers: {' '.join(sorted(trackers))}\n" in done.stdout
