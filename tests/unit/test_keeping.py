"""Which checkpoints a study keeps, and how the others go."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from hpsearch import keeping
from hpsearch.keeping import BEST, Keeping
from hpsearch.lifecycle import State
from hpsearch.records import Attempt, Changes, Trial
from hpsearch.reopening import leave
from hpsearch.slots import Slot
from hpsearch.sweeping import Sweeper
from studies import Simulation, brain, history_for, spec_with
from trials.places import used_bytes


def kept(*trials: Trial) -> list[int]:
    """Numbers of the trials that keep their checkpoint; each is given one."""
    spec = spec_with()
    history = history_for(spec)
    for trial in trials:
        trial.checkpoint = "somewhere"
        history.add_trial(trial)
    Keeping(spec, history).give_up()
    return [trial.number for trial in trials if trial.checkpoint is not None]


def test_failed_trials_and_repeats_keep_nothing() -> None:
    repeat = Trial(1, State.COMPLETE, {}, value=0.1, role="confirm", repeats=0)
    assert kept(Trial(0, State.COMPLETE, {}, value=0.2), repeat, Trial(2, State.FAILED, {}, value=0.1)) == [0]


def test_the_best_that_ended_keep_theirs_and_the_surpassed_do_not() -> None:
    ended = [Trial(n, State.COMPLETE if n % 2 else State.PRUNED, {}, value=n / 100) for n in range(BEST + 5)]
    assert kept(*ended) == list(range(BEST))


def test_what_may_come_back_keeps_its_checkpoint() -> None:
    left = Trial(BEST + 1, State.PAUSED, {}, value=9.0)
    leave(left)
    left.state = State.PRUNED
    others = [Trial(n, State.COMPLETE, {}, value=n / 100) for n in range(BEST + 1)]
    assert kept(*others, left) == [*range(BEST), BEST + 1]


def test_so_many_wait_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeping, "WAITING", 5)
    study = Simulation(spec_with(budget={"trials": 60, "per_trial": {"epochs": 9}}))
    most = 0
    while not study.study.finished:
        study.tick()
        most = max(most, sum(trial.state is State.PAUSED for trial in study.history.trials))
    assert most == 5
    study.study.close(study.executor.now)
    held = [trial for trial in study.history.trials if trial.checkpoint is not None]
    assert len(held) <= BEST + 5
    best = min(study.history.trials, key=lambda trial: trial.value if trial.value is not None else 9.0)
    assert best in held


def changes_of(*trials: Trial) -> Changes:
    return Changes(trials=list(trials))


def ended(number: int, **more: Any) -> Trial:
    return Trial(number, State.FAILED, {}, attempts=[Attempt(number, 1, "w", 0.0)], **more)


def test_files_of_trials_that_keep_nothing_are_removed_and_others_stay(tmp_path: Path) -> None:
    for number in (3, 4):
        (tmp_path / f"trial-{number:05d}" / "step-1").mkdir(parents=True)
        (tmp_path / f"trial-{number:05d}" / "step-1" / "weights").write_bytes(b"x" * 1000)
    assert used_bytes(tmp_path) == 2000
    sweeper = Sweeper(tmp_path)
    sweeper.watch(brain(spec_with()), changes_of(ended(3), ended(4, checkpoint="kept")), 0.0)
    sweeper.close()
    assert [path.name for path in tmp_path.iterdir()] == ["trial-00004"]
    assert used_bytes(tmp_path) == 1000


def test_a_trial_that_a_worker_holds_is_waited_for(tmp_path: Path) -> None:
    (tmp_path / "trial-00003").mkdir()
    study = brain(spec_with())
    study.slots["w"] = Slot("w", "node", "cpu", 1.0, holds=(3, 1))
    sweeper = Sweeper(tmp_path)
    sweeper.watch(study, changes_of(ended(3)), 0.0)
    study.slots["w"].holds = None
    held = threading.active_count()
    assert (tmp_path / "trial-00003").exists()
    sweeper.watch(study, changes_of(), 1.0)
    sweeper.close()
    assert not (tmp_path / "trial-00003").exists()
    assert threading.active_count() < held


def test_what_a_driver_that_died_had_not_removed_the_next_one_does(tmp_path: Path) -> None:
    (tmp_path / "trial-00003").mkdir()
    sweeper = Sweeper(tmp_path)
    sweeper.begin([ended(3)])
    sweeper.watch(brain(spec_with()), changes_of(), 0.0)
    sweeper.close()
    assert not (tmp_path / "trial-00003").exists()


def test_a_folder_in_a_store_is_removed_too() -> None:
    import fsspec

    files = fsspec.filesystem("memory")
    files.pipe_file("/sweeping/trial-00003/step-1/manifest.json", b"{}")
    files.pipe_file("/sweeping/trial-00003/last", b"step-1")
    assert used_bytes("memory://sweeping") == 8
    sweeper = Sweeper("memory://sweeping")
    sweeper.begin([ended(3)])
    sweeper.watch(brain(spec_with()), changes_of(), 0.0)
    sweeper.close()
    assert used_bytes("memory://sweeping") == 0
