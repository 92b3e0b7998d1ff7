"""Waiting and ended trials keep the checkpoints that they need."""

import pytest

from support.files.checkpoints import names_in, three_saved
from trials.checkpoints.disk.whole_folders import MANIFEST
from trials.checkpoints.folders import folder_at, inside, split, used_bytes
from trials.checkpoints.manifests import CheckpointError, check
from trials.checkpoints.trimming import sizes_of, trim_ended, trim_waiting
from trials.contract import CheckpointSizes


def manifest_bytes(source):
    return len(folder_at(split(source)[0]).read(split(source)[1], MANIFEST))


def pointer_bytes(folder):
    """In a store a pointer is a small file."""
    return sum(size for name, size in folder_at(folder).sizes().items() if name in ("last", "best"))


def test_one_that_waits_keeps_its_newest_whole_and_the_weights_of_its_best(folder):
    _, (best, _, newest) = three_saved(folder)
    trim_waiting(newest, best)
    assert names_in(folder) == ["step-1", "step-3"]
    check(newest, whole=True)
    check(best)
    with pytest.raises(CheckpointError, match=r"state\.pt is missing"):
        check(best, whole=True)
    assert sizes_of(newest, best).waiting == sizes_of(newest, best).now - pointer_bytes(folder)
    trim_waiting(newest, best)
    assert names_in(folder) == ["step-1", "step-3"]


def test_what_is_newer_than_the_record_is_not_touched_while_a_trial_waits(folder):
    _, (_, recorded, newest) = three_saved(folder)
    trim_waiting(recorded, None)
    assert names_in(folder) == ["step-1", "step-2", "step-3"], "best is pointed at"
    check(newest, whole=True)
    check(recorded, whole=True)


def test_one_that_ended_keeps_the_weights_of_its_best_alone(folder):
    checkpoints, (best, _, newest) = three_saved(folder)
    sizes = sizes_of(newest, best)
    assert sizes.ended == 300 + 1 + manifest_bytes(best)
    assert sizes.waiting == sizes.ended + 900 + 1 + manifest_bytes(newest)
    trim_ended(best)
    assert names_in(folder) == ["step-1"]
    assert (checkpoints.best, checkpoints.last) == (best, best)
    check(best)
    assert used_bytes(folder) - pointer_bytes(folder) == sizes.ended
    assert sizes_of(best, best) == CheckpointSizes(
        now=used_bytes(folder), waiting=sizes.ended, ended=sizes.ended
    )


def test_nothing_is_removed_for_a_checkpoint_that_is_not_there(folder):
    _, (best, _, _) = three_saved(folder)
    trim_ended(inside(folder, "step-9"))
    trim_waiting(inside(folder, "step-9"), best)
    assert len(names_in(folder)) == 3


def test_a_waiting_trial_that_was_started_meanwhile_keeps_everything(folder):
    _, (best, _, newest) = three_saved(folder)
    trim_waiting(newest, best, lambda: False)
    assert len(names_in(folder)) == 3
    check(best, whole=True)
