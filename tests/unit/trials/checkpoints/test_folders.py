"""Names of folders, by paths and URLs."""

from pathlib import Path

import pytest

from trials.checkpoints.checkpoint_folder import FolderError
from trials.checkpoints.folders import absolute, folder_at, inside, is_there, split, trial_of


def test_names_of_folders_survive_the_way_to_another_process(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert absolute("s3://bucket/studies/") == "s3://bucket/studies"
    assert absolute("studies") == str(tmp_path / "studies")
    assert inside("s3://bucket/studies", "trial-1") == "s3://bucket/studies/trial-1"
    assert inside("studies", "trial-1") == Path("studies/trial-1")
    assert split("memory://a/b/step-1") == ("memory://a/b", "step-1")


def test_a_url_that_nothing_can_read_is_refused():
    with pytest.raises(FolderError, match="nonsense://bucket"):
        folder_at("nonsense://bucket/x")


@pytest.mark.parametrize(
    ("name", "number"),
    [("trial-00003", 3), ("trial-123456", 123456), ("trial-3", None), ("trial-000003", None),
     ("trial-00003.old", None),
     ("trial-०००००", None)],
)  # fmt: skip
def test_only_the_name_that_a_trial_is_given_is_its_folders(name, number):
    assert trial_of(name) == number


def test_nothing_is_at_a_path_that_cannot_be(tmp_path):
    assert is_there(tmp_path)
    for name in ("a", "a" * 300, "a/" * 3000, "a\0"):
        assert not is_there(tmp_path / name)
