"""When a run saves, and who waits for it."""

import math
import threading

import pytest
import torch

from trials.checkpoints import checkpoints as checkpoints_module
from trials.checkpoints.checkpoints import Checkpoints
from trials.checkpoints.manifests import STATE, verify
from trials.contract import Setup
from trials.devices.processes import Group
from trials.loop import saves as saves_module
from trials.loop.position import Position
from trials.loop.saves import Content, RunSaves
from trials.loop.training import TrainingRun
from trials.running.report_grid import budget_from
from trials.settings import Settings
from unit.trials.loop.test_training import Points


def run_of(workload, folder, per_trial, resume_from=None, **params):
    setup = Setup(params, 3, budget_from(per_trial), folder / "run", resume_from)
    return TrainingRun(workload, Settings.parse(params), setup)


class Clock:
    """Seconds that pass when told to."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


class Slow(Checkpoints):
    """A disk that takes `seconds` of the clock, and waits at a gate that can be closed."""

    def __init__(self, folder, clock, seconds):
        super().__init__(folder)
        self.folder, self.clock, self.seconds = folder, clock, seconds
        self.gate = threading.Event()
        self.gate.set()
        self.threads = []

    def commit(self, *args, **more):
        self.threads.append(threading.current_thread())
        assert self.gate.wait(60)
        self.clock.now += self.seconds
        return super().commit(*args, **more)


@pytest.fixture(autouse=True)
def _any_cost_is_worth_it(monkeypatch):
    monkeypatch.setattr(saves_module, "WORTH_S", 0.0)


CONTENT = Content({"model.safetensors": {"w": torch.ones(3)}}, {"step": 1})


def write(folder, weights):
    (folder / "weights").write_text(str(weights["model.safetensors"]["w"].tolist()))


def saves_on(slow, **params):
    setup = Setup(params, 3, budget_from({"steps": 9}), slow.folder)
    saves = RunSaves(setup, Settings.parse(params), write, Group(), slow.clock)
    saves._checkpoints = slow
    return saves


def save(saves, step, content=CONTENT, best=False):
    saves.save(Position(step), lambda: content, best)


def in_background(tmp_path, cost, interval):
    slow = Slow(tmp_path, Clock(), cost)
    saves = saves_on(slow)
    for step in (1, 2, 3):
        save(saves, step)
        saves.join(Position(step))
        slow.clock.now += interval
    saves.close()
    return [thread is not threading.main_thread() for thread in slow.threads]


def test_only_a_save_of_more_than_a_hundredth_of_the_time_goes_to_the_background(tmp_path):
    assert in_background(tmp_path, cost=2.0, interval=100.0) == [False, True, True]
    assert in_background(tmp_path, cost=0.9, interval=100.0) == [False, False, False]


def started(tmp_path):
    """Saves with one whole checkpoint and one in flight that waits at the gate."""
    slow = Slow(tmp_path, Clock(), 1.0)
    saves = saves_on(slow)
    save(saves, 1)
    slow.gate.clear()
    save(saves, 2, best=True)
    return saves, slow


def test_a_report_names_the_newest_that_is_whole(tmp_path):
    saves, slow = started(tmp_path)
    newest, best = saves.named_by_report(0.5, is_last=False)
    assert newest.name == "step-1"
    assert best is slow.best is None
    slow.gate.set()
    newest, best = saves.named_by_report(1.0, is_last=True)
    assert newest.name == "step-2"
    assert newest == best == slow.best == slow.last == saves.best
    saves.close()


def test_the_snapshot_is_taken_before_training_goes_on(tmp_path):
    saves, slow = started(tmp_path)
    tensors = {"w": torch.ones(2), "of the optimizer": torch.zeros(1)}
    slow.gate.set()
    saves.join(Position(2))
    slow.gate.clear()
    content = Content(
        {"model.safetensors": tensors}, {"optimizer": [{"moment": tensors["of the optimizer"]}]}
    )
    save(saves, 3, content)
    for tensor in tensors.values():
        tensor.add_(41)
    slow.gate.set()
    saved = saves.join(Position(3))
    assert (saved / "weights").read_text() == "[1.0, 1.0]"
    assert torch.load(saved / STATE)["optimizer"][0]["moment"].item() == 0
    saves.close()


def test_one_save_is_in_flight_at_most(tmp_path):
    saves, slow = started(tmp_path)
    threading.Timer(0, slow.gate.set).start()
    save(saves, 3)
    assert verify(tmp_path / "step-2") is None
    saves.close()
    verify(tmp_path / "step-3")


def full(*args, **more):
    raise OSError("disk full")


@pytest.mark.parametrize("surfaces", ["save", "join", "report"])
def test_what_the_writer_raised_comes_out_at_the_next_call(tmp_path, monkeypatch, surfaces):
    saves, slow = started(tmp_path)
    monkeypatch.setattr(checkpoints_module, "seal", full)
    slow.gate.set()
    saves._flight.exception()  # wait for it
    calls = {
        "save": lambda: save(saves, 3),
        "join": lambda: saves.join(Position(3)),
        "report": lambda: saves.named_by_report(1.0, is_last=False),
    }
    with pytest.raises(OSError, match="disk full"):
        calls[surfaces]()
    saves.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["last", "step-1"]


def test_a_writer_that_fails_at_the_very_end_is_in_the_log(tmp_path, monkeypatch, caplog):
    saves, slow = started(tmp_path)
    monkeypatch.setattr(checkpoints_module, "seal", full)
    slow.gate.set()
    saves.close()
    assert "the last checkpoint could not be written: disk full" in caplog.text


# -------------------------------------------------------------------------------- in the loop


def test_reports_name_a_whole_checkpoint_and_the_last_one_its_own(tmp_path):
    run = run_of(Points(), tmp_path, {"steps": 6, "report_every": 1}, batch_size=16)
    run._saves._cost_s = 1e9  # so that all saves go to the background
    for report in run:
        if report is not None and report.checkpoint is not None:
            verify(report.checkpoint)
            number = int(report.checkpoint.name.removeprefix("step-"))
            assert report.step - 1 <= number <= report.step
            assert report.saved_at == number
            run.recorded(report.resource)
    assert run.save() == tmp_path / "run" / "step-6"
    run.close()
    assert not list((tmp_path / "run").glob(".writing-*"))


def test_a_save_asked_for_waits_until_it_is_whole(tmp_path):
    run = run_of(Points(), tmp_path, {"steps": 6, "report_every": 3}, batch_size=16)
    run._saves._cost_s = 1e9
    for _, _ in zip(run, range(2), strict=False):
        pass
    verify(run.save())
    run.close()


def test_saves_between_reports_by_steps(tmp_path):
    run = run_of(
        Points(), tmp_path, {"steps": 7, "report_every": 7}, batch_size=16, save_every_steps=2
    )
    list(run)
    assert sorted(path.name for path in (tmp_path / "run").glob("step-*")) == [
        f"step-{step}" for step in (2, 4, 6, 7)
    ]


@pytest.mark.parametrize("heard", [0, 1])
def test_an_attempt_that_was_lost_goes_on_from_what_it_saved_after_its_last_report(
    tmp_path, heard, monkeypatch
):
    monkeypatch.setattr(
        saves_module, "WORTH_S", math.inf
    )  # its last report names its own checkpoint
    settings = {"batch_size": 16, "learning_rate": 0.01, "save_every_steps": 2}
    budget = {"steps": 12, "report_every": 4}
    whole = [item for item in run_of(Points(), tmp_path / "whole", budget, **settings) if item]
    lost = iter(run_of(Points(), tmp_path / "lost", budget, **settings))
    reports = []
    for _ in range(3 + heard * 5):  # to step 3 before the first report, or step 7 after it
        reports += [item for item in [next(lost)] if item]
    source = reports[-1].checkpoint if heard else None
    again = run_of(Points(), tmp_path / "lost", budget, resume_from=source, **settings)
    assert again.position.step == (6 if heard else 2)
    rest = [item.metrics["train_loss"] for item in again if item]
    assert rest == [item.metrics["train_loss"] for item in whole[heard:]]


def test_another_configuration_does_not_go_on_from_it(tmp_path):
    settings = {"batch_size": 16, "save_every_steps": 2}
    for _, _ in zip(run_of(Points(), tmp_path, {"steps": 9}, **settings), range(4), strict=False):
        pass
    assert (
        run_of(Points(), tmp_path, {"steps": 9}, learning_rate=0.5, **settings).position.step == 0
    )
