"""What docs/security.md claims, tried: nothing that others can write is run."""

import ast
import os
import pickle
import re
from collections.abc import Iterator
from dataclasses import fields
from inspect import signature
from pathlib import Path

import pytest
import torch

from hpsearch.cli.commands.results import dashboard
from hpsearch.running.executors.worker_config import WorkerConfig
from hpsearch.running.study_run.workers import worker_config
from hpsearch.study_file.reading import parse
from support.files.study_files import GOOD

ROOT = Path(__file__).parents[3]
SOURCES = sorted([*(ROOT / "hpsearch").rglob("*.py"), *(ROOT / "trials").rglob("*.py")])
UNPICKLERS = ("pickle", "cPickle", "_pickle", "dill", "cloudpickle", "marshal", "shelve", "joblib")


class Evil:
    """Unpickling it makes a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __reduce__(self) -> tuple[object, ...]:
        return os.mkdir, (str(self.folder),)


def calls() -> Iterator[tuple[Path, str, ast.Call]]:
    """Every call in the sources, by the name it has there."""
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                yield path, ast.unparse(node.func), node


def keywords(call: ast.Call) -> dict[str | None, str]:
    return {keyword.arg: ast.unparse(keyword.value) for keyword in call.keywords}


OWN_PROCESSES = {"child.py", "function_task.py"}
"""Modules of `trials.tasks.function` that unpickle: what a worker sends to the process that it has
started, over a pipe that no other process has."""


def test_no_module_imports_what_unpickles():
    for path in SOURCES:
        if path.parent.name == "function" and path.name in OWN_PROCESSES:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not any(name.split(".")[0] in UNPICKLERS for name in names), path


def test_everything_that_could_unpickle_is_told_not_to():
    found = {"torch.load": 0, "np.load": 0}
    for path, name, call in calls():
        if name == "torch.load":
            assert keywords(call).get("weights_only") == "True", path
        if name == "np.load":
            assert keywords(call).get("allow_pickle") == "False", path
        assert name not in ("pd.read_pickle", "eval", "exec", "yaml.load", "yaml.unsafe_load"), path
        found[name] = found.get(name, 0) + 1
    assert found["torch.load"] >= 1, "the rule above looks at something"
    assert found["np.load"] >= 1


def test_a_models_code_runs_by_the_study_files_word_alone():
    loaded = 0
    for path, name, call in calls():
        given = keywords(call)
        if name.lower().startswith(("auto", "transformers.auto")) and name.endswith(
            ".from_pretrained"
        ):
            assert "trust_remote_code" in given, f"{path} lets transformers ask on the terminal"
            loaded += given["trust_remote_code"] == "model.trusted"
        assert given.get("trust_remote_code", "False") in ("False", "model.trusted"), path
        if name == "Pretrained":
            trusted = [ast.unparse(value) for value in call.args[1:]] + [
                given.get("trusted", "False")
            ]
            assert "True" not in trusted, path
    assert loaded >= 3, "the rule above looks at something"


def test_a_checkpoints_state_that_would_run_code_is_refused(tmp_path):
    torch.save({"step": 1, "evil": Evil(tmp_path / "owned")}, tmp_path / "state.pt")
    with pytest.raises(pickle.UnpicklingError):
        torch.load(tmp_path / "state.pt", map_location="cpu", weights_only=True)
    assert not (tmp_path / "owned").exists()


def test_workers_are_told_nothing_of_the_database():
    spec = parse(GOOD, base=ROOT)
    assert not {field.name for field in fields(WorkerConfig)} & {
        "storage",
        "url",
        "database",
        "password",
    }
    assert not re.search(r"(sqlite|postgresql)://", repr(worker_config(spec, "/checkpoints")))


def test_the_dashboard_listens_on_loopback_unless_it_is_told_otherwise():
    assert signature(dashboard).parameters["host"].default == "127.0.0.1"
