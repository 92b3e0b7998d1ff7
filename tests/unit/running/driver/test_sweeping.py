"""What a trial has on the disk while it trains, waits and continues, and when it has ended; and who
dies on the way."""

import csv
import json
import math
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import transformers
import yaml

from hpsearch.brain.attempts import Slot
from hpsearch.brain.study import Study
from hpsearch.domain import events as ev
from hpsearch.domain.history import Changes, History
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import Trial
from hpsearch.running.checkpoint_folders import Mark, StudyFolder
from hpsearch.running.creation.study import create_study
from hpsearch.running.driver.loop import Driver
from hpsearch.running.driver.sweeping import Sweeper
from hpsearch.running.study_run.brain import build_study
from hpsearch.running.study_run.on_ray import claim_folder
from hpsearch.running.study_run.ownership import owning
from hpsearch.running.study_run.workers import worker_config
from hpsearch.store.audit.checkpoints import unusable
from hpsearch.store.store import Store
from hpsearch.study_file.levels import trial_budget
from hpsearch.study_file.models import StudySpec
from hpsearch.study_file.reading import parse
from support.files.checkpoints import saved, three_saved
from support.running.local_executor import LocalExecutor
from support.studies.small import brain, budget_of, search_by, spec_with
from trials import tasks
from trials.checkpoints.checkpoint_folder import CheckpointFolder
from trials.checkpoints.checkpoints import Checkpoints
from trials.checkpoints.disk_folder import DiskFolder
from trials.checkpoints.folders import used_bytes
from trials.checkpoints.manifests import CheckpointError, check
from trials.contract import Goal, Setup
from trials.data import cache
from trials.loop import saves
from trials.running.runner import Runner

TASK = {
    "kind": "text_classification",
    "train": "train.csv",
    "validation": 0.25,
    "text": "text",
    "label": "topic",
    "model": {"scratch": {"layers": 1, "width": 32, "heads": 2, "vocabulary": 120}},
}
WHOLE = {
    *("config.json", "manifest.json", "model.safetensors", "state.pt"),
    *("text.json", "tokenizer.json", "tokenizer_config.json"),
}
WEIGHTS = WHOLE - {"state.pt"}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "cache"))
    monkeypatch.setattr(
        saves, "WORTH_S", math.inf
    )  # however slow the disk is: each report names its own checkpoint
    with (tmp_path / "train.csv").open("w", newline="") as file:
        rows = [(f"please help with my {word} today", word) for word in ("card", "rate", "fee")]
        csv.writer(file).writerows([("text", "topic"), *rows * 32])
    return tmp_path


def spec_in(folder: Path, **changes: Any) -> StudySpec:
    """Trials whose best report is the second: the objective is a learning rate that rises for two
    epochs of nine."""
    study = {
        "study": "topics",
        "seed": 3,
        "task": TASK,
        "settings": {"schedule": "cosine", "warmup": 0.2, "batch_size": 24},
        "space": {"learning_rate": {"type": "float", "low": 1e-4, "high": 1e-3, "log": True}},
        "objective": {"metric": "learning_rate", "direction": "maximize"},
        "budget": budget_of(3),
        "search": {"sampler": "random", "pruner": {"kind": "promotion", "pause": True}},
        "resources": {"gpu": 0},
    }
    return parse(yaml.safe_dump({**study, **changes}), base=folder)


def on_disk(trial: Trial, checkpoints: Path) -> dict[str, set[str]]:
    """The checkpoints of a trial by name, each with its files; whatever else there is by its name
    alone."""
    found = {}
    for path in (checkpoints / f"trial-{trial.number:05d}").iterdir():
        if not path.is_symlink():
            found[path.name] = {file.name for file in path.iterdir()} if path.is_dir() else set()
    return found


def name_of(checkpoint: str | None) -> str:
    assert checkpoint is not None
    return Path(checkpoint).name


def sweeper_of(checkpoints: Path) -> Sweeper:
    """The sweeper of a study with this folder, which it has marked."""
    home = StudyFolder(Mark("topics", "1"), str(checkpoints))
    home.claim()
    return Sweeper(home)


@dataclass
class ByHand:
    """A study of real trainings that is stopped between a commit and the orders that follow it."""

    spec: StudySpec
    checkpoints: Path
    study: Study = field(init=False)
    executor: LocalExecutor = field(init=False)
    orders: list[ev.Command] = field(default_factory=list)
    now: float = 0.0

    def __post_init__(self) -> None:
        self.study = brain(self.spec)
        self.executor = LocalExecutor(worker_config(self.spec, self.checkpoints))
        self.study.begin(0.0)

    def until(self, reached: Callable[[Trial], bool]) -> Trial:
        """Go on until a trial is so, and let all be removed that may be by then."""
        for _ in range(4000):
            for order in self.orders:
                getattr(self.executor, type(order).__name__.lower())(order)
            self.now += 1.0
            self.orders = [
                order
                for event in self.executor.poll(0.05)
                for order in self.study.on_event(event, self.now)
            ]
            self.orders += self.study.on_tick(self.now)
            for report in self.study.history.drain().reports:
                self.executor.recorded(report.trial, report.attempt or 0, report.resource)
            for trial in self.study.history.trials:
                if reached(trial):
                    self.slim()
                    return trial
            if self.study.finished:
                break
        raise AssertionError(
            [(trial.number, trial.state, trial.error_text) for trial in self.study.history.trials]
        )

    def slim(self) -> None:
        sweeper = sweeper_of(self.checkpoints)
        sweeper.begin(self.study.history.trials)
        sweeper.close()


def test_a_trial_that_waits_keeps_its_state_and_its_best_weights_and_one_that_ended_those_alone(
    folder,
):
    checkpoints = folder / "checkpoints"
    study = ByHand(spec_in(folder, budget=budget_of(4)), checkpoints)

    first = study.until(lambda trial: trial.state is State.PAUSED)
    assert on_disk(first, checkpoints) == {name_of(first.checkpoint): WHOLE}
    assert first.best_checkpoint == first.checkpoint
    whole = used_bytes(checkpoints / f"trial-{first.number:05d}")
    assert first.checkpoint_bytes == whole

    waiting = study.until(lambda trial: trial.state is State.PAUSED and trial.resource == 3.0)
    newest, best = name_of(waiting.checkpoint), name_of(waiting.best_checkpoint)
    assert (newest, best) == ("step-9", "step-6")
    assert on_disk(waiting, checkpoints) == {newest: WHOLE, best: WEIGHTS}
    home = checkpoints / f"trial-{waiting.number:05d}"
    weights = used_bytes(home / best)
    assert weights < 0.5 * used_bytes(home / newest)
    assert waiting.checkpoint_bytes == used_bytes(home) == weights + used_bytes(home / newest)
    check(str(waiting.checkpoint), whole=True)
    check(str(waiting.best_checkpoint))

    complete = study.until(lambda trial: trial.state is State.COMPLETE)
    home = checkpoints / f"trial-{complete.number:05d}"
    assert [attempt.start_resource for attempt in complete.attempts][-1] == 3.0, (
        "it went on from its state"
    )
    assert on_disk(complete, checkpoints) == {best: WEIGHTS}
    assert name_of(complete.checkpoint) == best
    assert complete.checkpoint_bytes == used_bytes(home) == weights
    assert {(home / pointer).resolve().name for pointer in ("last", "best")} == {best}
    check(str(complete.checkpoint))
    transformers.AutoModelForSequenceClassification.from_pretrained(complete.checkpoint)
    with pytest.raises(CheckpointError, match=r"state\.pt is missing"):
        check(str(complete.checkpoint), whole=True)


def test_a_trial_that_trains_keeps_the_newest_whole_and_of_the_best_before_them_the_weights(folder):
    spec, home = spec_in(folder), folder / "trial-00000"
    task = tasks.load(spec.task, folder)
    params = {**spec.settings, "learning_rate": 1e-3, "monitor": "learning_rate"}
    setup = Setup(params, 3, trial_budget(spec), home, goal=Goal("learning_rate", maximize=True))
    runner = Runner(task, task.prepare(params), setup)
    for report in runner.advance(9.0):
        assert report.best == home / f"step-{min(3 * int(report.resource), 6)}"
        runner.recorded(report.resource)
    assert on_disk(Trial(0, State.RUNNING, {}), folder) == {
        "step-6": WEIGHTS,
        "step-24": WHOLE,
        "step-27": WHOLE,
    }
    assert runner.best == home / "step-6"
    runner.close()


def test_a_trial_that_a_pruner_stops_keeps_the_weights_of_its_best_report(folder):
    checkpoints = folder / "checkpoints"
    pruner = {"kind": "threshold", "upper": 0.0, "n_warmup_steps": 4}
    study = ByHand(spec_in(folder, search=search_by(pruner=pruner)), checkpoints)
    pruned = study.until(lambda trial: trial.state is State.PRUNED and not held(study.study, trial))
    assert 4.0 <= pruned.resource < 9.0
    assert on_disk(pruned, checkpoints) == {"step-6": WEIGHTS}
    assert name_of(pruned.checkpoint) == "step-6"
    assert pruned.checkpoint_bytes == used_bytes(checkpoints / "trial-00000")


def held(study: Study, trial: Trial) -> bool:
    return any(
        slot.holds is not None and slot.holds[0] == trial.number for slot in study.slots.values()
    )


FUNCTION = """
def train(params, trial):
    (trial.folder.mkdir(parents=True, exist_ok=True))
    (trial.folder / "notes.txt").write_text("mine")
    for epoch, accuracy in enumerate((0.1, 0.9, 0.3, 0.2), start=1):
        with trial.save() as folder:
            (folder / "weights").write_text("w" * 100)
            (folder / "state.pt").write_text("s" * 200)
        trial.report(epoch, {"accuracy": accuracy})
"""


def test_of_a_training_function_the_best_checkpoint_stays_as_it_was_written(folder):
    (folder / "slim_task.py").write_text(FUNCTION)
    spec = spec_in(
        folder,
        task={"kind": "slim_task:train"},
        settings={},
        objective={"metric": "accuracy", "direction": "maximize"},
        budget=budget_of(1, 4),
        search=search_by(),
    )
    checkpoints = folder / "checkpoints"
    study = ByHand(spec, checkpoints)
    trial = study.until(
        lambda trial: trial.state is State.COMPLETE and not held(study.study, trial)
    )
    assert name_of(trial.checkpoint) == "epoch-2"
    kept = on_disk(trial, checkpoints)
    assert set(kept) == {"epoch-2", "notes.txt"}
    assert {"weights", "state.pt", "manifest.json"} <= kept["epoch-2"]
    check(str(trial.checkpoint), whole=True)
    assert trial.checkpoint_bytes == used_bytes(checkpoints / "trial-00000" / "epoch-2")


def test_what_a_worker_still_holds_is_waited_for(tmp_path):
    home = tmp_path / "trial-00000"
    for name in ("step-1", "step-2"):
        (home / name).mkdir(parents=True)
        (home / name / "manifest.json").write_text(json.dumps({"files": {}}))
    study = brain(spec_with())
    study.slots["w"] = Slot("w", "node", "cpu", 1.0, holds=(0, 1))
    over = Trial(0, State.PRUNED, {}, checkpoint=str(home / "step-1"))
    sweeper = sweeper_of(tmp_path)
    sweeper.watch(study, Changes(trials=[over]), 0.0)
    sweeper.close()
    assert sorted(path.name for path in home.iterdir()) == ["step-1", "step-2"]
    sweeper = sweeper_of(tmp_path)
    sweeper.watch(study, Changes(trials=[over]), 0.0)
    study.slots["w"].holds = None
    sweeper.watch(study, Changes(), 1.0)
    sweeper.close()
    assert sorted(path.name for path in home.iterdir()) == ["step-1"]


def test_a_slow_removal_leaves_what_a_trial_writes_that_went_on_from_an_older_checkpoint(
    tmp_path, monkeypatch
):
    """As it does where the newest is damaged: what it writes then comes before that one."""
    checkpoints = Checkpoints(tmp_path / "trial-00000")
    newest = [saved(checkpoints, step, lambda draft: None) for step in (1, 9)][-1]
    begun, may_list = threading.Event(), threading.Event()

    older_than = CheckpointFolder.older_than

    def slowly(where: CheckpointFolder, name: str) -> list[str]:
        begun.set()
        assert may_list.wait(60)
        return older_than(where, name)

    monkeypatch.setattr(CheckpointFolder, "older_than", slowly)
    study, sweeper = brain(spec_with()), sweeper_of(tmp_path)
    waits = Trial(0, State.PAUSED, {}, checkpoint=str(newest))
    sweeper.watch(study, Changes(trials=[waits]), 0.0)
    assert begun.wait(60)
    goes_on = Trial(0, State.RUNNING, {}, checkpoint=str(newest))
    sweeper.watch(study, Changes(trials=[goes_on]), 1.0)
    written = saved(checkpoints, 2, lambda draft: None)
    may_list.set()
    sweeper.close()
    check(written)


def test_nothing_outside_the_studys_own_folders_is_touched(tmp_path):
    elsewhere = tmp_path / "of-another-study" / "trial-00000"
    for name in ("step-1", "step-2"):
        (elsewhere / name).mkdir(parents=True)
    sweeper = sweeper_of(tmp_path / "own")
    sweeper.begin([Trial(0, State.COMPLETE, {}, checkpoint=str(elsewhere / "step-2"))])
    sweeper.close()
    assert len(list(elsewhere.iterdir())) == 2


# ------------------------------------------------------------------------------------------------
# dying on the way


class KilledError(Exception):
    """Stands for the end of the driver's process."""


@pytest.fixture
def store(folder: Path) -> Iterator[Store]:
    with closing(Store.open(f"sqlite:///{folder}/study.db")) as opened:
        yield opened


def drive(store: Store, spec: StudySpec, history: History, checkpoints: Path) -> None:
    assert history.study.uid is not None
    home = StudyFolder(Mark(history.study.name, history.study.uid), str(checkpoints))
    with owning(store, history.study, 45.0) as lease:
        store.refresh(history, -1)
        claim_folder(store, history, home, lease)
        study = build_study(history, spec)
        with closing(Sweeper(home)) as sweeper:
            sweeper.begin(history.trials)
            executor = LocalExecutor(worker_config(spec, checkpoints))
            Driver(study, executor, store, lease, sweeper.watch).run()


def ends_a_trial(changes: Changes) -> bool:
    return any(trial.state is State.COMPLETE for trial in changes.trials)


def dies_before_the_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    commit = Store.commit

    def dying(self: Store, study_id: int, changes: Changes, *more: Any) -> bool:
        if ends_a_trial(changes):
            raise KilledError
        return commit(self, study_id, changes, *more)

    monkeypatch.setattr(Store, "commit", dying)


def dies_after_the_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    watch = Sweeper.watch

    def dying(self: Sweeper, study: Study, changes: Changes, now: float) -> None:
        if ends_a_trial(changes):
            raise KilledError
        watch(self, study, changes, now)

    monkeypatch.setattr(Sweeper, "watch", dying)


def dies_while_it_removes(monkeypatch: pytest.MonkeyPatch) -> None:
    remove, watch = DiskFolder.remove, Sweeper.watch
    removed: list[str] = []

    def once(self: DiskFolder, name: str) -> None:
        if name.startswith("step-") and removed:
            raise KilledError
        removed.append(name)
        remove(self, name)

    def dying(self: Sweeper, study: Study, changes: Changes, now: float) -> None:
        if not ends_a_trial(changes):
            watch(self, study, changes, now)
            return
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(DiskFolder, "remove", once)
            patch.setattr(DiskFolder, "strip", once)
            over = Sweeper(self._home)
            over.begin([trial for trial in changes.trials if trial.state is State.COMPLETE])
            over.close()
        raise KilledError

    monkeypatch.setattr(Sweeper, "watch", dying)


@pytest.mark.parametrize(
    "dies", [dies_before_the_commit, dies_after_the_commit, dies_while_it_removes]
)
def test_a_driver_that_dies_between_saving_committing_and_removing_loses_nothing(
    store, folder, dies
):
    spec, checkpoints = spec_in(folder), folder / "checkpoints"
    history = create_study(store, spec, checkpoints)
    with pytest.MonkeyPatch.context() as patch:
        dies(patch)
        with pytest.raises(KilledError):
            drive(store, spec, history, checkpoints)
    assert unusable(store) == []
    history = store.load(spec.study)
    drive(store, spec, history, checkpoints)
    assert unusable(store) == []
    loaded = store.load(spec.study).trials
    complete = [trial for trial in loaded if trial.state is State.COMPLETE]
    assert complete
    for trial in complete:
        assert sorted(trial.reports) == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]
        assert on_disk(trial, checkpoints) == {"step-6": WEIGHTS}
    left = [trial for trial in loaded if trial.left_as is not None]
    assert left
    assert len(left) + len(complete) == 3
    for trial in left:
        assert set(on_disk(trial, checkpoints)) == {name_of(trial.checkpoint)}
        check(str(trial.checkpoint), whole=True)


def test_a_study_that_is_given_more_goes_on_from_what_its_waiting_trials_kept(store, folder):
    spec, checkpoints = spec_in(folder), folder / "checkpoints"
    history = create_study(store, spec, checkpoints)
    drive(store, spec, history, checkpoints)
    reopened = spec_in(folder, budget=budget_of(6))
    drive(store, reopened, store.load(spec.study), checkpoints)
    loaded = store.load(spec.study).trials
    assert unusable(store) == []
    continued = [trial for trial in loaded[:3] if len(trial.attempts) > 1]
    again = [trial for trial in continued if trial.attempts[-1].started > loaded[3].created]
    assert again, "one of those that waited came back"
    assert all(trial.attempts[-1].start_resource >= 1.0 for trial in again)


def test_a_waiting_trial_without_its_state_is_damage_and_an_ended_one_is_not(store, folder):
    spec, checkpoints = spec_in(folder), folder / "checkpoints"
    drive(store, spec, create_study(store, spec, checkpoints), checkpoints)
    left = next(trial for trial in store.load(spec.study).trials if trial.left_as is not None)
    assert unusable(store) == []
    (Path(str(left.checkpoint)) / "state.pt").unlink()
    (found,) = unusable(store)
    assert found.trial == left.number
    assert "state.pt is missing" in found.what


def test_nothing_is_removed_where_the_folder_of_a_trial_is_a_link(tmp_path, caplog):
    _, paths = three_saved(tmp_path / "elsewhere")
    home = tmp_path / "home"
    sweeper = sweeper_of(home)
    linked = home / "trial-00000"
    linked.symlink_to(tmp_path / "elsewhere")
    trials = [
        Trial(0, State.COMPLETE, {}, checkpoint=str(linked / "step-1")),
        Trial(1, State.COMPLETE, {}, checkpoint=str(home / "trial-00001" / "..")),
    ]
    _, beside = three_saved(home / "trial-00001")
    sweeper.begin(trials)
    sweeper.close()
    for path in (*paths, *beside):
        check(path, whole=True)
    assert "trial-00000 is a link" in caplog.text
