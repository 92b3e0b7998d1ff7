"""Captured steps on a GPU: exact resumes, warm trials, the losses of plain steps, and what cannot
be captured."""

import gc
import logging
import random
import weakref

import numpy as np
import pytest
import torch
from torch import nn

from trials import tasks
from trials.contract import Setup
from trials.devices.graphs import Graph, NotCapturableError, new_pool
from trials.loop import captured
from trials.running.report_grid import budget_from

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")


@pytest.fixture(autouse=True)
def nothing_kept(monkeypatch):
    """Forgets what other tests have captured."""
    monkeypatch.setattr(captured, "_kept", {})
    monkeypatch.setattr(captured, "_refused", set())


def texts(folder, rng):
    lines = ["text,label"]
    for _ in range(300):
        label = rng.choice(["good", "bad"])
        words = " ".join(rng.choices(["a", "the", "day"], k=rng.randint(1, 29)))
        lines.append(f"{label} {words},{label}")
    (folder / "train.csv").write_text("\n".join(lines) + "\n")
    return {"kind": "text_classification", "model": "scratch", "text": "text", "label": "label"}


def images(folder, rng):
    pixels = np.random.default_rng(0).integers(0, 256, (120, 8, 8, 3), dtype=np.uint8)
    labels = np.arange(120) % 2
    pixels[labels == 1, :4] //= 4
    np.savez(folder / "train.npz", images=pixels, labels=labels)
    return {"kind": "image_classification", "train": "train.npz"}


@pytest.fixture(params=[texts, images], ids=lambda make: make.__name__)
def start(request, tmp_path):
    part = {"train": "train.csv", "validation": 0.25}
    task = tasks.load({**part, **request.param(tmp_path, random.Random(0))}, tmp_path)

    def start(name, resume_from=None, seed=1, **params):
        params = {"learning_rate": 1e-3, "batch_size": 16, **params}
        setup = Setup(
            params, seed, budget_from({"epochs": 3}), tmp_path / name, resume_from, device="cuda"
        )
        return task.start(setup, task.prepare(params))

    return start


def finished(run):
    reports = [item for item in run if item is not None]
    run.close()
    names = ("train_loss", "loss", "accuracy", "captured")
    return [[report.metrics.get(name) for name in names] for report in reports]


@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp16"])
def test_a_resumed_run_equals_one_that_never_stopped(start, precision):
    whole = finished(start("whole", precision=precision, micro_batch=8))
    assert whole[-1][-1] == 1.0, "it was captured"
    run = start("stopped", precision=precision, micro_batch=8)
    for _ in run:
        if run.position.step == 8:
            break
    checkpoint = run.save()
    run.close()
    captured._kept.clear()
    resumed = finished(start("stopped", checkpoint, precision=precision, micro_batch=8))
    assert resumed == whole[-len(resumed) :]


def test_the_next_trial_replays_the_graphs_of_the_one_before(start):
    alone = finished(start("alone", seed=2))
    captured._kept.clear()
    finished(start("first", seed=1))
    (places,) = captured._kept.values()
    graphs = dict(places.graphs)
    assert finished(start("second", seed=2)) == alone
    assert places.graphs == graphs


@pytest.mark.parametrize("optimizer", ["adamw", "sgd", "muon", "adafactor"])
def test_captured_losses_are_those_of_plain_steps(start, optimizer):
    params = {"dropout": 0.0, "optimizer": optimizer, "precision": "fp32"}
    plain = finished(start("plain", compile="never", **params))
    found = finished(start("captured", **params))
    for (loss, *_), (expected, *_) in zip(found, plain, strict=True):
        assert loss == pytest.approx(expected, rel=0.02, abs=1e-3)


class Waits(nn.Module):
    """Waits for the device, as a loss that reads a number does."""

    def forward(self, x):
        return x * 1.0 if float(x.detach().sum()) > 0 else x


def test_a_model_that_waits_for_the_device_trains_plainly_and_so_does_the_next(start, caplog):
    for name in ("first", "second"):
        run = start(name)
        model = run._workload.model
        *_, (last, head) = model.named_children()
        setattr(model, last, nn.Sequential(head, Waits()))
        with caplog.at_level(logging.WARNING):
            reports = finished(run)
        assert reports[-1][-1] == 0.0
    assert "steps are not captured" in caplog.text
    assert finished(start("another", dropout=0.1))[-1][-1] == 1.0


class KeepsOneLength(nn.Module):
    """Keeps numbers for one length, and makes them anew for another, as some rotary embeddings."""

    def __init__(self, embeddings):
        super().__init__()
        self.embeddings, self.kept = embeddings, torch.zeros(0)

    def forward(self, **given):
        found = self.embeddings(**given)
        if self.kept.shape[:1] != found.shape[1:2]:
            self.kept = torch.arange(found.shape[1], device=found.device) / 30
        return found * (1 + self.kept[None, :, None])


@pytest.mark.parametrize("start", [texts], indirect=True)
def test_what_a_model_keeps_of_one_length_is_read_where_it_was(start):
    def course(name, **params):
        run = start(name, dropout=0.0, precision="fp32", **params)
        bert = run._workload.model.bert
        bert.embeddings = KeepsOneLength(bert.embeddings)
        reports = []
        for item in run:
            # What the model has dropped goes to whoever asks next.
            [torch.full((length,), 9.0, device="cuda") for length in range(1, 40)]
            reports += [] if item is None else [item.metrics]
        run.close()
        return [(each["train_loss"], each["loss"]) for each in reports], reports[-1].get("captured")

    plain, _ = course("plain", compile="never")
    found, is_captured = course("captured")
    assert is_captured == 1.0
    assert found == [pytest.approx(each, rel=1e-2) for each in plain]


class CopiesFromTheHost(nn.Module):
    """Copies a number that grows with each call from the processor's memory, without a wait."""

    calls = 0

    def forward(self, x):
        self.calls += 1
        grown = torch.full((1,), 1 + self.calls / 100).pin_memory()
        return x * grown.to(x.device, non_blocking=True)


def test_a_model_that_copies_from_the_host_trains_plainly(start, caplog):
    run = start("run")
    *_, (last, head) = run._workload.model.named_children()
    setattr(run._workload.model, last, nn.Sequential(head, CopiesFromTheHost()))
    with caplog.at_level(logging.WARNING):
        reports = finished(run)
    assert reports[-1][-1] == 0.0
    assert "copies from the processor's memory" in caplog.text


def test_a_closed_run_is_freed_while_its_graphs_are_kept(start):
    run = start("run")
    finished(run)
    workload = weakref.ref(run._workload)
    model = weakref.ref(run._workload.model)
    (places,) = captured._kept.values()
    del run
    gc.collect()
    assert (workload(), model()) == (None, None)
    held = len(places.graphs)
    finished(start("next", seed=2))
    assert len(places.graphs) == held


def test_the_next_run_replays_though_the_first_and_its_constants_are_gone(start):
    alone = finished(start("alone", seed=2))
    captured._kept.clear()
    finished(start("first"))
    gc.collect()
    torch.cuda.empty_cache()
    filled = [torch.full((1 << 16,), 9.0, device="cuda") for _ in range(256)]
    assert finished(start("second", seed=2)) == alone
    assert len(filled) == 256


def test_after_a_capture_that_failed_the_device_draws_and_allocates_as_before():
    x = torch.randn(64, 64, device="cuda")

    def waits():
        return (nn.functional.dropout(x, 0.5).sum().cpu(),)

    def draws():
        return (nn.functional.dropout(x, 0.5),)

    torch.manual_seed(1)
    (expected,) = draws()
    with pytest.raises(NotCapturableError):
        Graph(waits, new_pool(x.device))
    torch.manual_seed(1)
    assert torch.equal(draws()[0], expected)
    graph = Graph(draws, new_pool(x.device))
    torch.manual_seed(1)
    assert torch.equal(graph.replay()[0], expected)
    with pytest.raises(torch.OutOfMemoryError):
        torch.empty(2**50, device="cuda")
    torch.cuda.empty_cache()
