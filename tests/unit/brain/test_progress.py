"""A full disk is no trial's fault: it is told for what it is, waited for, and costs no trial
anything."""

import errno
import os
from collections import namedtuple
from pathlib import Path

import pytest

from hpsearch.brain.progress import DISK_PAUSE_S
from hpsearch.brain.study import Study
from hpsearch.domain import events as ev
from hpsearch.domain.facts import ErrorKind
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import Outcome, StudyState
from hpsearch.study_file.models import Resources
from support.files.checkpoints import saved
from support.studies.small import brain, spec_with
from trials.checkpoints.checkpoints import Checkpoints
from trials.checkpoints.disk import whole_folders
from trials.running.runner import failure_of

FULL = ev.Failed(0, 1, ErrorKind.DISK_FULL, "no room")
PATIENCE_S = Resources().disk_patience_s


def begun(**resources: str) -> Study:
    study = brain(spec_with(resources=resources))
    study.begin(0.0)
    study.on_event(ev.SlotUp("w0", "node", "cpu", 0.0), 0.0)
    assert len(study.on_tick(0.0)) == 1
    return study


def test_a_trial_that_could_not_save_goes_on_once_there_may_be_room():
    study = begun()
    study.on_event(FULL, 1.0)
    trial = study.history.trials[0]
    assert (trial.state, trial.attempts[0].outcome) == (State.QUEUED, Outcome.INTERRUPTED)
    assert study.on_tick(1.0 + DISK_PAUSE_S / 2) == []
    assert not study.finished
    (launch,) = study.on_tick(1.0 + DISK_PAUSE_S)
    assert isinstance(launch, ev.Launch)
    assert (launch.trial, launch.attempt) == (0, 2)


def fill_for(study: Study, seconds: float, saving: bool) -> float:
    """Attempt after attempt finds no room; the time when that ends."""
    now, attempt = 1.0, 1
    while now <= seconds and not study.finished:
        if saving:
            study.on_event(
                ev.Reported(0, attempt, attempt / 1e3, {"loss": 1.0}, checkpoint=f"step-{attempt}"),
                now,
            )
        study.on_event(ev.Failed(0, attempt, ErrorKind.DISK_FULL, "no room"), now)
        now, attempt = now + DISK_PAUSE_S, attempt + 1
        study.on_tick(now)
    return now


def test_a_disk_that_stays_full_interrupts_the_study_resumably():
    study = begun()
    now = fill_for(study, 2 * PATIENCE_S, saving=False)
    assert study.finished
    study.close(now)
    assert study.history.study.state is StudyState.INTERRUPTED
    assert (
        study.history.study.reason == "checkpoints cannot be written: no room; make room and resume"
    )
    assert study.history.trials[0].state is State.QUEUED


def test_a_disk_that_has_room_now_and_then_interrupts_nothing():
    study = begun()
    fill_for(study, 2 * PATIENCE_S, saving=True)
    assert not study.finished


@pytest.mark.parametrize(("patience", "seconds"), [("40s", 40.0), ("2h", 7200.0)])
def test_the_study_file_says_how_long_a_full_disk_is_waited_for(patience, seconds):
    ended = fill_for(begun(disk_patience=patience), 2 * seconds, saving=False)
    assert seconds < ended <= seconds + 3 * DISK_PAUSE_S


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)),
        OSError(errno.EDQUOT, os.strerror(errno.EDQUOT)),
        RuntimeError("I/O error: No space left on device (os error 28)"),
    ],
)
def test_a_full_disk_is_told_from_other_errors(error):
    assert failure_of(error).kind == ErrorKind.DISK_FULL
    assert failure_of(OSError(errno.EACCES, "no")).kind == "error"


def test_a_writer_that_does_not_say_so_is_asked_about_the_disk(tmp_path, monkeypatch):
    usage = namedtuple("usage", "total used free")

    def fill(folder: Path) -> None:
        raise RuntimeError("file write failed")

    with pytest.raises(RuntimeError, match="file write failed"):
        saved(Checkpoints(tmp_path / "a"), 1, fill)
    monkeypatch.setattr(whole_folders.shutil, "disk_usage", lambda folder: usage(10, 10, 0))
    with pytest.raises(OSError) as caught, Checkpoints(tmp_path / "b").drafting() as folder:
        fill(folder)
    assert caught.value.errno == errno.ENOSPC
    assert list((tmp_path / "b").iterdir()) == []
