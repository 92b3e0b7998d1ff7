"""What is made of a study file: where checkpoints go, and how long a driver waits."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpsearch import wiring
from hpsearch.driver import Patience
from hpsearch.errors import UserError
from hpsearch.spec import StudySpec
from hpsearch.spec_file import parse

STUDY = """
study: flowers
task: {kind: "own_task:train"}
space: {x: {type: float, low: 0.0, high: 1.0}}
objective: {metric: loss, direction: minimize}
budget: {trials: 2, per_trial: {epochs: 4}}
"""


def spec_of(base: Path, more: str = "") -> StudySpec:
    return parse(STUDY + more, base=base, name="study.yaml")


def test_they_go_beside_the_study_file_by_default(tmp_path: Path) -> None:
    assert wiring.checkpoint_folder(spec_of(tmp_path), None) == str(tmp_path / "hpsearch-studies" / "flowers")


def test_a_relative_folder_of_the_study_file_starts_there_and_one_asked_for_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = spec_of(tmp_path / "studies", "checkpoints: saved")
    monkeypatch.chdir(tmp_path)
    assert wiring.checkpoint_folder(spec, None) == str(tmp_path / "studies" / "saved")
    assert wiring.checkpoint_folder(spec, "elsewhere") == str(tmp_path / "elsewhere")


@pytest.mark.parametrize("url", ["memory://studies/flowers", "file:///mnt/studies/flowers"])
def test_a_url_stays_a_url_to_the_folder_of_every_trial(tmp_path: Path, url: str) -> None:
    for folder in (
        wiring.checkpoint_folder(spec_of(tmp_path), url),
        wiring.checkpoint_folder(spec_of(tmp_path, f"checkpoints: {url}/"), None),
    ):
        assert folder == url
        config = wiring.worker_config(spec_of(tmp_path), folder)
        assert config.folder(3) == f"{url}/trial-00003"


def test_a_url_that_nothing_here_can_write_is_refused_before_anything_starts(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="nonsense://bucket") as refused:
        wiring.checkpoint_folder(spec_of(tmp_path), "nonsense://bucket")
    assert "give a folder that all workers share" in str(refused.value)


def test_a_driver_waits_as_long_as_the_study_file_says(tmp_path: Path) -> None:
    more = "resources: {lease: 11s, database_patience: 12s, stop_grace: 13s}"
    assert wiring.patience_of(spec_of(tmp_path, more).resources) == Patience(11.0, 12.0, 13.0)
    assert wiring.patience_of(spec_of(tmp_path).resources) == Patience()
