"""Code that is written for a library: how a study file names it, and how its task is built."""

import pickle
import sys
from types import ModuleType

import pytest

from hpsearch.errors import SpecError
from hpsearch.running import loading
from hpsearch.study_file.reading import parse
from trials import tasks
from trials.contract import Budget, Problem, Setup, TaskError, Unit

THEIRS = "def objective(given):\n    return given['a'] + 1\nscalar = 7\n"
STUDY = """\
study: theirs
task: {kind: theirs:objective, library: LIBRARY}
space: {a: {type: float, low: 0, high: 1}}
objective: {metric: value, direction: maximize}
budget: {trials: 3, per_trial: {epochs: 1}}
"""


def adapt(found, task):
    """Reports once what a function of one argument returns."""
    if not callable(found):
        raise TaskError([Problem("task.kind", f"{task['kind']} cannot be called")])
    return lambda params, trial: trial.report(1, {"value": found(params)})


@pytest.fixture
def base(tmp_path, monkeypatch):
    """A folder with a module of another library's, and an adapter in place of Optuna's."""
    (tmp_path / "theirs.py").write_text(THEIRS)
    adapter = ModuleType("adapter")
    adapter.adapt = adapt
    monkeypatch.setitem(sys.modules, "hpsearch.plugins.optuna.objective", adapter)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield tmp_path
    sys.modules.pop("theirs", None)


def reports_of(task, folder):
    setup = Setup({"a": 2}, 1, Budget(Unit.EPOCHS, 1.0, (1.0,)), folder / "trial")
    run = task.start(setup, None)
    reports = [each.metrics for each in run if each is not None]
    run.close()
    return reports


def test_code_for_a_library_is_adapted_and_again_in_another_process(base):
    task = loading.load({"kind": "theirs:objective", "library": "optuna"}, base)
    assert reports_of(task, base) == [{"value": 3.0}]
    assert reports_of(pickle.loads(pickle.dumps(task)), base) == [{"value": 3.0}]


def test_what_an_adapter_refuses_is_a_mistake_in_the_study_file(base):
    part = {"kind": "theirs:scalar", "library": "optuna"}
    assert loading.inspect(part, base) == [Problem("task.kind", "theirs:scalar cannot be called")]


def test_a_task_without_a_library_is_built_as_before(base):
    (problem,) = loading.inspect({"kind": "theirs:objective"}, base)
    assert "cannot be called with (params, trial)" in problem.what
    with pytest.raises(TaskError, match="cannot be called with"):
        _ = loading.load({"kind": "theirs:objective"}, base).function


def test_an_unknown_library_is_told_with_its_line(base):
    with pytest.raises(SpecError) as caught:
        parse(STUDY.replace("LIBRARY", "ray_tuna"), base=base, inspect=loading.inspect)
    assert str(caught.value).endswith(
        "task.library: 'ray_tuna' is not a library that is known; did you mean ray_tune?"
    )
    (problem,) = loading.inspect({"kind": "theirs:objective", "library": 3}, base)
    assert problem == Problem("task.library", "must be text, not 3")


def test_trials_alone_do_not_adapt_and_say_so(base):
    (problem,) = tasks.inspect({"kind": "theirs:objective", "library": "optuna"}, base)
    assert problem.where == "task.library"
    assert "trains in a study" in problem.what
