"""The patience of a driver, from a study file."""

from __future__ import annotations

from pathlib import Path

from hpsearch.driver.journal import Patience
from hpsearch.study_file.models import StudySpec
from hpsearch.study_file.reading import parse
from hpsearch.study_run.on_ray import patience_of

STUDY = """
study: flowers
task: {kind: "own_task:train"}
space: {x: {type: float, low: 0.0, high: 1.0}}
objective: {metric: loss, direction: minimize}
budget: {trials: 2, per_trial: {epochs: 4}}
"""


def spec_of(base: Path, more: str = "") -> StudySpec:
    return parse(STUDY + more, base=base, name="study.yaml")


def test_a_driver_waits_as_long_as_the_study_file_says(tmp_path: Path) -> None:
    more = "resources: {lease: 11s, database_patience: 12s, stop_grace: 13s}"
    assert patience_of(spec_of(tmp_path, more).resources) == Patience(11.0, 12.0, 13.0)
    assert patience_of(spec_of(tmp_path).resources) == Patience()
