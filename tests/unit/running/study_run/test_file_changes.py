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
        ("high: 1.0", "high: 2.0", "space.x.high"),
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


def test_a_raised_limit_stays_and_a_stated_default_is_no_change(tmp_path):
    found = changes_between(
        file_with(tmp_path, "trials: 40", "trials: 80"),
        file_with(tmp_path, "study: s", "study: s\nseed: 0"),
    )
    assert (found.allowed, found.refused) == ({}, {})
    assert "trials: 80" in found.text
