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


def save(saves, step, content=CONTENT, best=False, can_wait=False):
    saves.save(Position(step, reported=float(step)), lambda: content, best, can_wait)


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


# ------------------------------------------------------------------------ no more than is worth it

NO_WRITING = "a checkpoint that is left out is not even copied"


def offer(saves, slow, step, best=False):
    """A report at a second and step, whose checkpoint nothing needs yet."""
    slow.clock.now = float(step)
    save(saves, step, best=best, can_wait=True)


def steps_in(folder):
    return sorted(int(path.name.removeprefix("step-")) for path in folder.glob("step-*"))


def paced(tmp_path, cost=1.0):
    """Saves of which the first took `cost` seconds of the clock, which begins with it."""
    slow = Slow(tmp_path, Clock(), cost)
    saves = saves_on(slow)
    offer(saves, slow, 0)
    return saves, slow


def test_saves_that_nothing_needs_take_a_twentieth_of_the_time(tmp_path):
    saves, slow = paced(tmp_path)
    for step in range(3, 100, 3):
        offer(saves, slow, step)
        saves.named_by_report(float(step), is_last=False)
        if saves._flight is not None:
            saves._flight.result()
    saves.close()
    assert steps_in(tmp_path) == [0, 21, 42, 63, 84]


def test_a_slower_storage_is_written_to_more_rarely(tmp_path):
    saves, slow = paced(tmp_path)
    slow.seconds = 3.0
    for step in (21, 42, 63, 82):
        offer(saves, slow, step)
        saves._landed()
    assert steps_in(tmp_path) == [0, 21, 82]


def test_what_is_left_out_costs_nothing(tmp_path):
    saves, _ = paced(tmp_path)
    saves.save(Position(3), lambda: pytest.fail(NO_WRITING), best=False, can_wait=True)
    assert not saves.is_saved(Position(3))


def test_a_cheap_save_is_never_left_out(tmp_path, monkeypatch):
    monkeypatch.setattr(saves_module, "WORTH_S", 1.0)
    saves, slow = paced(tmp_path)
    slow.seconds = 0.0
    offer(saves, slow, 1)
    assert steps_in(tmp_path) == [0, 1]


def test_nothing_waits_for_a_save_in_flight_that_takes_long(tmp_path):
    saves, slow = paced(tmp_path)
    slow.gate.clear()
    offer(saves, slow, 21)
    offer(saves, slow, 90)
    newest, _ = saves.named_by_report(90.0, is_last=False)
    assert newest.name == "step-0"
    slow.gate.set()
    assert saves.join(Position(90)).name == "step-21"
    saves.close()


def test_the_best_so_far_is_kept_until_it_is_time_and_replaced_by_a_better_one(tmp_path):
    saves, slow = paced(tmp_path)
    offer(saves, slow, 3, best=True)
    offer(saves, slow, 6, best=True)
    offer(saves, slow, 9)
    newest, best = saves.named_by_report(9.0, is_last=False)
    assert (newest.name, best) == ("step-0", None)
    assert steps_in(tmp_path) == [0]
    offer(saves, slow, 21)
    saves._flight.result()
    newest, best = saves.named_by_report(21.0, is_last=False)
    assert newest == best == slow.best == slow.last == tmp_path / "step-6"
    assert saves.newest_level == 6.0
    assert steps_in(tmp_path) == [0, 6]
    saves.close()


def test_a_better_one_at_its_time_is_written_in_place_of_the_one_that_is_kept(tmp_path):
    saves, slow = paced(tmp_path)
    offer(saves, slow, 3, best=True)
    offer(saves, slow, 21, best=True)
    saves.close()
    assert steps_in(tmp_path) == [0, 21]
    assert saves.best == tmp_path / "step-21"


def test_what_is_kept_is_of_its_own_moment(tmp_path):
    saves, slow = paced(tmp_path)
    weights = torch.ones(2)
    content = Content({"model.safetensors": {"w": weights}}, {"step": 3})
    save(saves, 3, content, best=True, can_wait=True)
    weights.add_(41)
    saved = saves.join(Position(3, reported=3.0))
    assert (saved / "weights").read_text() == "[1.0, 1.0]"
    assert len(slow.threads) == 2
    saves.close()


def test_it_is_copied_once(tmp_path, monkeypatch):
    saves, slow = paced(tmp_path)
    copies = []
    monkeypatch.setattr(
        saves_module, "host_copy", lambda value: copies.append(slow.clock.now) or value
    )
    offer(saves, slow, 3, best=True)
    offer(saves, slow, 21)
    saves.close()
    assert copies == [3.0]


@pytest.mark.parametrize("ends", ["join", "close"])
def test_the_end_of_a_run_writes_what_is_kept(tmp_path, ends):
    saves, slow = paced(tmp_path)
    offer(saves, slow, 3, best=True)
    assert saves.is_saved(Position(3, reported=3.0))
    offer(saves, slow, 6)
    if ends == "join":
        assert saves.join(Position(6, reported=6.0)) == tmp_path / "step-3"
    saves.close()
    assert saves.best == slow.best == slow.last == tmp_path / "step-3"


def test_a_save_that_is_needed_comes_after_the_one_that_is_kept(tmp_path):
    saves, slow = paced(tmp_path)
    offer(saves, slow, 3, best=True)
    save(saves, 6)
    newest, best = saves.named_by_report(6.0, is_last=True)
    assert (newest.name, best.name) == ("step-6", "step-3")
    saves.recorded(6.0)
    saves.close()
    assert slow.best.name == "step-3"


def test_checkpoints_stay_until_what_was_kept_is_on_record(tmp_path):
    saves, slow = paced(tmp_path)
    saves.named_by_report(0.0, is_last=False)
    offer(saves, slow, 3, best=True)
    saves.named_by_report(3.0, is_last=False)
    offer(saves, slow, 21)
    saves.join(Position(21, reported=21.0))
    saves.recorded(3.0)
    assert steps_in(tmp_path) == [0, 3]
    assert (tmp_path / "step-0" / STATE).exists()
    saves.close()


def test_what_is_kept_and_cannot_be_written_fails_the_report_that_it_was_due_at(
    tmp_path, monkeypatch
):
    saves, slow = paced(tmp_path)
    offer(saves, slow, 3, best=True)
    monkeypatch.setattr(checkpoints_module, "seal", full)
    offer(saves, slow, 21)
    saves._flight.exception()
    with pytest.raises(OSError, match="disk full"):
        saves.named_by_report(21.0, is_last=False)
    saves.close()
    assert steps_in(tmp_path) == [0]


class Rank(Group):
    """One of two ranks in one process: the second hears what the first has said."""

    def __init__(self, rank, said):
        super().__init__(rank, 2)
        self.said = said

    def agree(self, value):
        if self.first:
            self.said.append(value)
            return value
        return self.said.pop(0)


def test_ranks_leave_out_what_the_first_one_leaves_out(tmp_path):
    said = []
    slow = Slow(tmp_path, Clock(), 1.0)
    setup = Setup({}, 3, budget_from({"steps": 9}), tmp_path)
    settings = Settings.parse({})
    late = Clock()
    first = RunSaves(setup, settings, write, Rank(0, said), slow.clock)
    second = RunSaves(setup, settings, write, Rank(1, said), late)
    first._checkpoints = slow
    written = []
    for step, best in ((0, False), (3, True), (6, False), (21, False), (50, False)):
        late.now += 1000
        for saves in (first, second):
            offer(saves, slow, step, best)
        first._landed()
        here = Position(step, reported=float(step))
        assert first.is_saved(here) == second.is_saved(here)
        written.append(first.is_saved(here))
        assert not said
    assert written == [True, True, False, False, True]
    first.close()
    second.close()
    assert steps_in(tmp_path) == [0, 3, 50]


# -------------------------------------------------------------------------------- in the loop


SLOWLY = {"batch_size": 16, "learning_rate": 1.0, "schedule": "constant"}
"""So fast that the best report is the fourth of six."""


def slowly(tmp_path, monkeypatch, name, resume_from=None):
    """A run that has no time for a second save between the first one and its end."""
    monkeypatch.setattr(saves_module, "WRITING", 1e-9)
    budget = {"steps": 6, "report_every": 1}
    return run_of(Points(), tmp_path / name, budget, resume_from, **SLOWLY)


def test_a_run_without_time_for_saves_ends_with_its_best_and_its_last(tmp_path, monkeypatch):
    run = slowly(tmp_path, monkeypatch, "run")
    reports = [item for item in run if item is not None]
    assert [report.checkpoint.name for report in reports] == 5 * ["step-1"] + ["step-6"]
    assert [report.saved_at for report in reports] == [1, 1, 1, 1, 1, 6]
    best = min(reports, key=lambda report: report.metrics["loss"])
    assert best is reports[3]
    assert run.best.name == reports[-1].best.name == "step-4"
    run.close()


def test_a_run_that_dies_with_its_best_in_memory_comes_to_the_same_results(tmp_path, monkeypatch):
    whole = [item for item in slowly(tmp_path, monkeypatch, "whole") if item]
    lost = [
        item
        for item, _ in zip(slowly(tmp_path, monkeypatch, "lost"), range(9), strict=False)
        if item
    ]
    again = slowly(tmp_path, monkeypatch, "lost", lost[-1].checkpoint)
    assert again.position.step == 1
    rest = [item for item in again if item]
    assert [item.metrics["loss"] for item in rest] == [item.metrics["loss"] for item in whole[1:]]
    assert rest[-1].best.name == whole[-1].best.name == "step-4"
    again.close()


@pytest.mark.parametrize("items", [7, 8, 9])  # to step 4, its report, or step 5
def test_a_run_that_is_stopped_goes_on_from_where_it_stopped(tmp_path, monkeypatch, items):
    whole = [item for item in slowly(tmp_path, monkeypatch, "whole") if item]
    run = slowly(tmp_path, monkeypatch, "run")
    reports = [item for _, item in zip(range(items), run, strict=False) if item]
    saved = run.save()
    assert saved.name == f"step-{(items + 1) // 2}"
    assert (run.best.name == "step-4") == (items > 7)
    run.close()
    again = slowly(tmp_path, monkeypatch, "run", saved)
    rest = [item.metrics["loss"] for item in again if item]
    assert rest == [item.metrics["loss"] for item in whole[len(reports) :]]
    again.close()


def test_reports_name_a_whole_checkpoint_and_the_last_one_its_own(tmp_path, monkeypatch):
    monkeypatch.setattr(saves_module, "WRITING", math.inf)
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
