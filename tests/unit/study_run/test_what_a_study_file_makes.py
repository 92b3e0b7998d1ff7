"""What is made of a study file: where checkpoints go, and how long a driver waits."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from hpsearch.checkpoint_folders import checkpoint_root, folder_of_new
from hpsearch.domain.records import StudyRecord
from hpsearch.driver.journal import Patience
from hpsearch.errors import UserError
from hpsearch.store.leases import Lease
from hpsearch.store.store import Store
from hpsearch.study_file.models import StudySpec
from hpsearch.study_file.reading import parse
from hpsearch.study_run.on_ray import patience_of
from hpsearch.study_run.ownership import owning
from hpsearch.study_run.workers import worker_config

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
    assert checkpoint_root(spec_of(tmp_path), None) == str(tmp_path / "hpsearch-studies")
    home = folder_of_new(spec_of(tmp_path), None)
    assert home.folder == str(tmp_path / "hpsearch-studies" / f"flowers-{home.mark.uid[:12]}")


def test_a_relative_folder_of_the_study_file_starts_there_and_one_asked_for_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = spec_of(tmp_path / "studies", "checkpoints: saved")
    monkeypatch.chdir(tmp_path)
    assert checkpoint_root(spec, None) == str(tmp_path / "studies" / "saved")
    assert checkpoint_root(spec, "elsewhere") == str(tmp_path / "elsewhere")


def test_a_folder_may_stand_beside_its_limit(tmp_path: Path) -> None:
    both = spec_of(tmp_path, "checkpoints: {folder: saved, max_gb: 20}")
    assert checkpoint_root(both, None) == str(tmp_path / "saved")
    limit = spec_of(tmp_path, "checkpoints: {max_gb: 0.5}")
    assert checkpoint_root(limit, None) == str(tmp_path / "hpsearch-studies")
    assert (both.checkpoints.max_gb, limit.checkpoints.max_gb) == (20, 0.5)


@pytest.mark.parametrize("url", ["memory://studies/flowers", "file:///mnt/studies/flowers"])
def test_a_url_stays_a_url_to_the_folder_of_every_trial(tmp_path: Path, url: str) -> None:
    for folder in (
        checkpoint_root(spec_of(tmp_path), url),
        checkpoint_root(spec_of(tmp_path, f"checkpoints: {url}/"), None),
    ):
        assert folder == url
        config = worker_config(spec_of(tmp_path), folder)
        assert config.folder(3) == f"{url}/trial-00003"


def test_a_url_that_nothing_here_can_write_is_refused_before_anything_starts(
    tmp_path: Path,
) -> None:
    with pytest.raises(UserError, match="nonsense://bucket") as refused:
        checkpoint_root(spec_of(tmp_path), "nonsense://bucket")
    assert "give a folder that all workers share" in str(refused.value)


def test_all_trials_are_scored_at_the_largest_length_that_is_searched(tmp_path: Path) -> None:
    study = """
study: translations
task: {kind: sequence_to_sequence, train: pairs.csv, validation: 0.2, model: scratch}
settings: {max_length: 32}
space: {max_target_length: {type: categorical, choices: [16, 64, 32]}}
objective: {metric: loss, direction: minimize}
budget: {trials: 2, per_trial: {epochs: 4}}
"""
    config = worker_config(parse(study, base=tmp_path, name="study.yaml"), tmp_path)
    assert config.settings["scored_target_length"] == 64
    stated = study.replace("max_length: 32", "max_length: 32, scored_target_length: 20")
    config = worker_config(parse(stated, base=tmp_path, name="study.yaml"), tmp_path)
    assert config.settings["scored_target_length"] == 20


def test_a_driver_waits_as_long_as_the_study_file_says(tmp_path: Path) -> None:
    more = "resources: {lease: 11s, database_patience: 12s, stop_grace: 13s}"
    assert patience_of(spec_of(tmp_path, more).resources) == Patience(11.0, 12.0, 13.0)
    assert patience_of(spec_of(tmp_path).resources) == Patience()


def test_a_stop_that_is_asked_for_in_the_moment_of_owning_is_not_forgotten(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    acquire = Store.acquire

    def acquire_and_be_asked(store: Store, *arguments: Any) -> Lease:
        lease = acquire(store, *arguments)
        with closing(Store.open(sqlite_url)) as of_another:
            of_another.request_stop("flowers")
        return lease

    monkeypatch.setattr(Store, "acquire", acquire_and_be_asked)
    with closing(Store.open(sqlite_url)) as store:
        record = store.create_study(StudyRecord(0, "flowers", ""))
        with owning(store, record, 60.0) as lease:
            assert store.renew(lease, 60.0).stop_requested is True
