"""A study file that was changed since its study began: what goes on, and what is refused."""

import pytest

from hpsearch.errors import UserError
from hpsearch.running.study_run.file_changes import changes_between
from hpsearch.study_file.models import StudySpec
from hpsearch.study_file.reading import parse

FILE = """
study: s
task: {kind: command, run: 'python t.py --x {x}'}
space: {x: {type: float, low: 0.0, high: 1.0}}
objective: {metric: acc, direction: maximize}
budget: {trials: 40, per_trial: {epochs: 5}}
"""


def file_with(tmp_path, old: str = "", new: str = "") -> StudySpec:
    assert old in FILE
    return parse(FILE.replace(old, new, 1), base=tmp_path)


@pytest.mark.parametrize(
    ("old", "new", "key"),
    [
        ("{kind: command", "{kind: command, ends_early: false", "task.ends_early"),
        ("{kind: command", "{kind: command, report: 'e {resource} {acc}'", "task.report"),
        ("epochs: 5", "epochs: 5, time_limit: 1h", "budget.per_trial.time_limit"),
        ("trials: 40", "trials: 50", "budget.trials"),
        ("trials: 40", "trials: 40, worth: {gain: 0.1}", "budget.worth"),
        ("study: s", "study: s\nresources: {retries: 5}", "resources"),
    ],
)
def test_what_steers_how_trials_run_may_change(tmp_path, old, new, key):
    found = changes_between(file_with(tmp_path), file_with(tmp_path, old, new))
    assert (list(found.allowed), found.refused) == ([key], {})
    found.refuse("s")


@pytest.mark.parametrize(
    ("old", "new", "key"),
    [
        ("metric: acc", "metric: f1", "objective.metric"),
        ("epochs: 5", "epochs: 6", "budget.per_trial.epochs"),
        ("t.py", "u.py", "task.run"),
        ("study: s", "study: s\nseed: 3", "seed"),
    ],
)
def test_what_the_search_rests_on_is_refused_by_name(tmp_path, old, new, key):
    found = changes_between(file_with(tmp_path), file_with(tmp_path, old, new))
    with pytest.raises(UserError, match=f"study s cannot go on with this file: {key} was "):
        found.refuse("s")


@pytest.mark.parametrize(
    ("old", "new", "keys"),
    [
        ("high: 1.0", "high: 2.0", ["space.x.high"]),
        ("low: 0.0", "low: 0.5, prior: 0.7", ["space.x.low", "space.x.prior"]),
        ("study: s", "study: s\nconstraints: {memory: {max: 3}}", ["constraints"]),
        ("study: s", "study: s\nrequires: ['x < 0.9']", ["requires"]),
    ],
)
def test_the_space_and_limits_may_change_as_a_new_version(tmp_path, old, new, keys):
    found = changes_between(file_with(tmp_path), file_with(tmp_path, old, new))
    assert (list(found.widened), found.allowed, found.refused) == (keys, {}, {})


MORE = "y: {type: float, low: 0.0, high: 1.0"


def grown(tmp_path, parameter: str, run: str = "--x {x} --y {y}", more: str = "") -> StudySpec:
    """The study file with one parameter more."""
    space = f"space: {{{parameter}, x:" if parameter else "space: {x:"
    text = FILE.replace("--x {x}", run).replace("space: {x:", space)
    return parse(f"{text}{more}", base=tmp_path)


def test_a_parameter_that_is_new_says_what_trials_without_it_count_with(tmp_path):
    before = file_with(tmp_path)
    found = changes_between(before, grown(tmp_path, f"{MORE}, was: 0.0}}"))
    assert (list(found.widened), found.refused) == (["space.y"], {})
    fixed = grown(tmp_path, "", more="settings: {y: 0.5}\n")
    moved = changes_between(fixed, grown(tmp_path, f"{MORE}}}"))
    assert (list(moved.widened), moved.refused) == (["space.y"], {})
    silent = changes_between(before, grown(tmp_path, f"{MORE}}}"))
    with pytest.raises(UserError, match=r"space.y is new, and nothing says .*\n.*was: 0.0"):
        silent.refuse("s")


def test_a_parameter_that_is_gone_is_fixed_to_a_value(tmp_path):
    before = grown(tmp_path, f"{MORE}}}")
    fixed = grown(tmp_path, "", more="settings: {y: 0.5}\n")
    found = changes_between(before, fixed)
    assert (list(found.widened), found.refused) == (["space.y"], {})
    with pytest.raises(UserError, match=r"space.y is gone.*\n.*fix it under settings"):
        changes_between(before, file_with(tmp_path)).refuse("s")


def test_a_command_changes_for_its_new_parameters_alone(tmp_path):
    after = grown(tmp_path, f"{MORE}, was: 0.0}}", run="--x {x} --fast --y {y}")
    assert list(changes_between(file_with(tmp_path), after).refused) == ["task.run"]


def test_a_raised_limit_stays_and_a_stated_default_is_no_change(tmp_path):
    found = changes_between(
        file_with(tmp_path, "trials: 40", "trials: 80"),
        file_with(tmp_path, "study: s", "study: s\nseed: 0"),
    )
    assert (found.allowed, found.refused) == ({}, {})
    assert "trials: 80" in found.text
