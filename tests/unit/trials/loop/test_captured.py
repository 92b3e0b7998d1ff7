"""Captured steps, where a replay does the work again on the CPU: the same places, ladder and keys
as on a GPU, whose graphs `tests/gpu` captures."""

import logging
import math
import random

import numpy as np
import pytest
from torch import nn

from trials import tasks
from trials.contract import Setup
from trials.devices import memory
from trials.loop import captured
from trials.running.report_grid import budget_from

BUDGET = {"epochs": 2}
SMALL = {"scratch": {"layers": 2, "width": 32, "heads": 2}}
HARD = {"dropout": 0.3, "batch_size": 16, "micro_batch": 6, "learning_rate": 3e-3}


@pytest.fixture(autouse=True)
def capturing(monkeypatch):
    """Lets runs on the CPU be captured, and forgets what other tests have captured."""
    monkeypatch.setattr(captured, "CAPTURING", {"cuda", "cpu"})
    monkeypatch.setattr(captured, "_kept", {})
    monkeypatch.setattr(captured, "_refused", set())


@pytest.fixture(scope="module")
def task(tmp_path_factory):
    """Texts of 2 to 30 words whose class they name; precision is fp32 on every processor."""
    rng = random.Random(0)
    folder = tmp_path_factory.mktemp("texts")
    lines = ["text,label"]
    for _ in range(130):
        label = rng.choice(["good", "bad"])
        words = " ".join(rng.choices(["a", "the", "day"], k=rng.randint(1, 29)))
        lines.append(f"{label} {words},{label}")
    (folder / "train.csv").write_text("\n".join(lines) + "\n")
    part = {"train": "train.csv", "validation": 0.25, "text": "text", "label": "label"}
    return tasks.load({"kind": "text_classification", "model": SMALL, **part}, folder)


@pytest.fixture
def start(task, tmp_path):
    def start(name, resume_from=None, seed=1, **params):
        params = {"learning_rate": 1e-3, "batch_size": 16, "precision": "fp32", **params}
        setup = Setup(params, seed, budget_from(BUDGET), tmp_path / name, resume_from)
        return task.start(setup, task.prepare(params))

    return start


def finished(run):
    """The reports of a run, which is closed, without what depends on time."""
    reports = [item for item in run if item is not None]
    run.close()
    names = ("train_loss", "loss", "accuracy", "grad_norm")
    return [[report.metrics[name] for name in names] for report in reports]


def stopped(run, step):
    """The checkpoint of a run that was stopped and closed after so many steps."""
    for _ in run:
        if run.position.step == step:
            break
    checkpoint = run.save()
    run.close()
    return checkpoint


def test_captured_losses_are_those_of_plain_steps(start):
    plain = finished(start("plain", compile="never", dropout=0.0))
    found = finished(start("captured", dropout=0.0))
    assert found == [pytest.approx(each, rel=1e-3) for each in plain]


@pytest.mark.parametrize("optimizer", ["adamw", "sgd", "adafactor"])
def test_an_optimizer_takes_the_steps_it_takes_uncaptured(start, optimizer):
    params = {"dropout": 0.0, "optimizer": optimizer, "learning_rate": 3e-3}
    plain = finished(start("plain", compile="never", **params))
    found = finished(start("captured", **params))
    assert found == [pytest.approx(each, rel=1e-2) for each in plain]


def test_a_resumed_run_equals_one_that_never_stopped_bit_for_bit(start):
    whole = finished(start("whole", **HARD))
    checkpoint = stopped(start("stopped", **HARD), step=9)
    captured._kept.clear()  # as in another process
    resumed = finished(start("stopped", checkpoint, **HARD))
    assert resumed == whole[-len(resumed) :]


def test_the_next_trial_replays_the_graphs_of_the_one_before_with_its_own_weights(start):
    alone = []
    for seed in (1, 2):
        captured._kept.clear()
        alone.append(finished(start(f"alone-{seed}", seed=seed)))
    captured._kept.clear()
    first = finished(start("first", seed=1))
    (places,) = captured._kept.values()
    graphs = dict(places.graphs)
    second = finished(start("second", seed=2))
    assert [first, second] == alone
    assert captured._kept == {next(iter(captured._kept)): places}
    assert places.graphs == graphs


@pytest.mark.parametrize("other", [{"dropout": 0.5}, {"label_smoothing": 0.2}])
def test_a_trial_that_computes_something_else_gets_graphs_of_its_own(start, other):
    finished(start("first"))
    kept = dict(captured._kept)
    finished(start("other", **other))
    assert len(captured._kept) == 1
    assert captured._kept.keys().isdisjoint(kept)


def test_what_is_kept_for_the_next_trial_is_not_taken_for_a_leak(start):
    finished(start("first"))
    assert memory.keeps_more()
    finished(start("second"))
    assert not memory.keeps_more()
    finished(start("plain", compile="never"))
    assert not captured._kept


def test_a_model_that_fills_the_device_is_not_kept(start, monkeypatch):
    monkeypatch.setattr(captured.CapturedRun, "_device_bytes", lambda run: 1 << 20)
    finished(start("first"))
    assert not captured._kept


def test_shapes_are_few_and_the_rest_of_an_epoch_is_computed_plainly(start):
    run = start("run")
    *_, report = run
    shapes = {key for key in run._captured._places.graphs if key[0] == "training"}
    assert 1 <= len(shapes) <= 8
    assert all(shape[1][:2] == ("input_ids", 16) for shape in shapes)
    assert report.metrics["captured"] == 1.0
    *_, plain = start("plain", compile="never")
    filled, of_plain = (1 - each.metrics["padding_ratio"] for each in (report, plain))
    assert of_plain / filled - 1 < 0.15


def test_accumulated_micro_batches_have_a_second_graph(start):
    run = start("run", micro_batch=8)
    list(run)
    assert {key[0] for key in run._captured._places.graphs} >= {"training", "accumulation"}


class DrawsOnTheHost(nn.Module):
    """Scales by a number that a replay would not draw again."""

    def forward(self, x):
        return x * (1 + np.random.random() / 100)


def test_a_model_that_draws_outside_the_device_trains_plainly_and_says_so(start, caplog):
    run = start("run")
    run._workload.model.classifier = nn.Sequential(run._workload.model.classifier, DrawsOnTheHost())
    with caplog.at_level(logging.WARNING):
        *_, report = run
    assert report.metrics["captured"] == 0.0
    (said,) = [record.message for record in caplog.records if "captured" in record.message]
    assert said.endswith("draws random numbers on the processor")
    assert report.metrics["accuracy"] > 0.4


def on_the_host(start, name, checkpoint=None):
    """A run whose classifier draws on the host, in a process that does not know of it."""
    captured._refused.clear()
    run = start(name, checkpoint, **HARD)
    run._workload.model.classifier.register_forward_hook(lambda _, __, out: DrawsOnTheHost()(out))
    return run


def test_a_run_that_cannot_be_captured_resumes_bit_for_bit_too(start):
    whole = finished(on_the_host(start, "whole"))
    checkpoint = stopped(on_the_host(start, "stopped"), step=9)
    resumed = finished(on_the_host(start, "stopped", checkpoint))
    assert resumed == whole[-len(resumed) :]


def test_a_run_that_cannot_be_captured_has_no_gradients_that_a_step_does_not_use(start):
    run = on_the_host(start, "run")
    list(run)
    run._updates.zero_grad(in_place=run._captured.captures)
    assert all(parameter.grad is None for parameter in run._workload.model.parameters())


def test_a_replay_that_differs_is_given_up(start, monkeypatch, caplog):
    replay = captured.Graph.replay
    monkeypatch.setattr(
        captured.Graph, "replay", lambda self: tuple(1.1 * each for each in replay(self))
    )
    run = start("run", dropout=0.0)
    list(run)
    assert "a loss of a replay differs by 10.0%" in caplog.text
    assert not run._captured.captures


def test_a_replay_that_is_not_a_number_is_given_up(start, monkeypatch, caplog):
    replay = captured.Graph.replay
    monkeypatch.setattr(
        captured.Graph, "replay", lambda self: tuple(math.nan * each for each in replay(self))
    )
    run = start("run", dropout=0.0)
    *_, report = run
    assert "a loss of a replay differs" in caplog.text
    assert report.metrics["captured"] == 0.0
    assert math.isfinite(report.metrics["train_loss"])


def test_a_micro_batch_that_cannot_be_captured_adds_to_those_before(start, monkeypatch):
    params = {"dropout": 0.0, "micro_batch": 8}
    plain = finished(start("plain", compile="never", **params))
    made = []

    class OneFits(captured.Graph):
        def __init__(self, *args):
            super().__init__(*args)
            made.append(self)

        def replay(self):
            if self is not made[0]:
                raise MemoryError
            return super().replay()

    monkeypatch.setattr(captured, "Graph", OneFits)
    assert finished(start("captured", **params)) == [
        pytest.approx(each, rel=1e-3) for each in plain
    ]
    assert len(made) == 2


def test_graphs_give_their_memory_back_before_a_micro_batch_is_halved(start, caplog):
    run = start("run")
    loss_sum, failed = run._workload.loss_sum, []

    def short_of_memory(batch):
        if len(batch.labels) < 16 and not failed:  # the rest of an epoch, which is not captured
            failed.append(True)
            raise MemoryError
        return loss_sum(batch)

    run._replica._loss_sum = short_of_memory
    *_, report = run
    assert failed
    assert (report.metrics["captured"], report.metrics["micro_batch"]) == (0.0, 16)
    assert "memory is short" in caplog.text


def test_where_memory_is_short_steps_are_plain(start, monkeypatch, caplog):
    def short(*_):
        raise MemoryError

    monkeypatch.setattr(captured, "Graph", short)
    *_, report = start("run")
    assert report.metrics["captured"] == 0.0
    assert "memory is short" in caplog.text


def test_averaged_weights_are_evaluated_plainly(start):
    run = start("run", ema=0.9)
    list(run)
    assert {key[0] for key in run._captured._places.graphs} == {"training"}


@pytest.mark.parametrize("params", [{"compile": "never"}, {"gradient_checkpointing": True}])
def test_uncaptured_runs_say_nothing_of_it(start, params):
    *_, report = start("run", **params)
    assert "captured" not in report.metrics


def test_a_rehearsal_captures_nothing(task, tmp_path):
    params = {"batch_size": 16, "precision": "fp32"}
    setup = Setup(params, 1, budget_from(BUDGET), tmp_path / "run")
    assert task.rehearse(setup, task.prepare(params))["step_seconds"] > 0
    assert not captured._kept


def test_by_default_a_run_on_the_cpu_is_not_captured(monkeypatch, start):
    monkeypatch.undo()
    run = start("run")
    assert not run._captured.captures
    run.close()
