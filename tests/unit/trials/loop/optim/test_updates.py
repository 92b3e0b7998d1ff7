"""What is done to gradients and weights at a step's end: clipping, skipped steps, averaging."""

import functools
import math

import pytest
import torch
from safetensors.torch import load_file
from torch import nn

from trials.devices import graphs
from trials.devices.precision import Precision
from trials.loop import captured
from trials.loop.optim import optimizers
from trials.loop.optim.averaging import Average
from trials.loop.optim.updates import Updates
from trials.settings import OPTIMIZERS, Settings
from unit.trials.loop.test_training import Points, reports_of, run_of

CPU = torch.device("cpu")


def updates_of(model: nn.Module, precision: str = "fp32", **params: object) -> Updates:
    return Updates(model, Settings.parse(params), Precision(precision, CPU))


def take_step(updates: Updates, loss: torch.Tensor) -> None:
    (loss * updates.scale()).backward()
    updates.apply(0.1)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_a_skipped_step_changes_nothing_and_is_counted(optimizer):
    model = Points().model
    updates = updates_of(model, "fp16", optimizer=optimizer, ema=0.9)
    before = [p.detach().clone() for p in model.parameters()]
    take_step(updates, model(torch.ones(4, 2)).sum() * math.inf)
    assert all(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))
    assert updates.skipped == 1
    updates.zero_grad()
    take_step(updates, model(torch.ones(3, 2)).square().sum())
    assert not all(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))
    assert updates.skipped == 1


class Frozen(graphs.Graph):
    """A graph that knows the gradients there were when it was captured, as on a GPU."""

    def __init__(self, work, pool, parameters):
        super().__init__(work, pool)
        self.others = [p for p in parameters if p.grad is None]

    def replay(self):
        later = [p.grad for p in self.others]
        for parameter in self.others:
            parameter.grad = None
        results = super().replay()
        for parameter, gradient in zip(self.others, later, strict=True):
            parameter.grad = gradient
        return results


def test_a_weight_whose_first_gradient_comes_late_is_trained_by_captured_updates(monkeypatch):
    early, late = (nn.Parameter(torch.ones(2)) for _ in range(2))
    model = nn.ParameterList([early, late])
    monkeypatch.setattr(captured, "CAPTURING", {"cpu"})
    frozen = functools.partial(Frozen, parameters=[early, late])
    monkeypatch.setattr("trials.loop.optim.updates.Graph", frozen)
    updates = updates_of(model)
    for number in range(6):
        updates.zero_grad(in_place=True)
        take_step(updates, (early + late if number > 3 else early).square().sum())
    assert early[0] < late[0] < 1


class Overflowing(Points):
    """Points whose first gradients are infinite, so that as many steps are skipped."""

    def __init__(self, count: int, overflows: int) -> None:
        super().__init__(count)
        self.overflows = overflows

    def loss_sum(self, batch):
        self.overflows -= 1
        return super().loss_sum(batch) + (
            (self.model[0].weight.sum() * 0).sqrt() if self.overflows >= 0 else 0
        )


@pytest.mark.parametrize(
    "optimizer", ["adamw", "adafactor"]
)  # one skips in its kernel, the other is not called
def test_skipped_steps_are_reported(tmp_path, optimizer):
    params = {"precision": "fp16", "batch_size": 16, "optimizer": optimizer}
    run = run_of(Overflowing(64, 3), tmp_path, {"steps": 8}, **params)
    *_, last = run
    assert last.metrics["skipped_steps"] == 3


def test_the_average_starts_fast_and_ends_at_its_decay():
    model = nn.Linear(1, 1, bias=False)
    nn.init.zeros_(model.weight)
    average = Average(model, decay=0.25)
    nn.init.ones_(model.weight)
    average.update()  # keeps 2/11 of the mean
    average.update()  # keeps 1/4 of it: (1 + 2) / (10 + 2)
    average.update()  # and so from now on, where the warm-up would say 4/13
    with average.in_place():
        assert model.weight.item() == pytest.approx(1 - 2 / 11 / 16)
    assert model.weight.item() == 1.0


def test_averaged_weights_are_evaluated_and_saved_while_the_raw_ones_train(tmp_path):
    params = {"learning_rate": 0.05, "batch_size": 16, "schedule": "constant"}
    plain, averaged = Points(), Points()
    without = reports_of(run_of(plain, tmp_path / "a", {"steps": 9, "report_every": 3}, **params))
    reports = reports_of(
        run_of(averaged, tmp_path / "b", {"steps": 9, "report_every": 3}, ema=0.9, **params)
    )
    assert [r.metrics["train_loss"] for r in reports] == [r.metrics["train_loss"] for r in without]
    assert [r.metrics["loss"] for r in reports] != [r.metrics["loss"] for r in without]
    for one, other in zip(plain.model.parameters(), averaged.model.parameters(), strict=True):
        assert torch.equal(one, other)
    averaged.read(reports[-1].checkpoint)
    assert averaged.evaluate(None)["loss"] == reports[-1].metrics["loss"]


def test_a_checkpoint_of_an_averaged_run_holds_both_weights(lab):
    settings = {"ema": 0.9, "learning_rate": 0.01}
    task = lab.task()
    run = task.start(lab.setup("a", {"steps": 4}, **settings), task.prepare(settings))
    *_, last = run
    name, raw = next((n, p) for n, p in run._workload.model.named_parameters())
    state = torch.load(last.checkpoint / "state.pt", weights_only=True)
    assert torch.equal(state["updates"]["average"]["raw"][0], raw.detach())
    assert not torch.equal(load_file(last.checkpoint / "model.safetensors")[name], raw.detach())


def test_the_factor_of_a_group_multiplies_the_rate_of_the_step():
    model = nn.ModuleDict({"layers": nn.ModuleList([nn.Linear(1, 1)]), "head": nn.Linear(1, 1)})
    updates = updates_of(model, layer_decay=0.5)
    take_step(updates, sum(p.sum() for p in model.parameters()))
    groups = updates._optimizer.param_groups
    assert {(group[optimizers.FACTOR], group["lr"]) for group in groups} == {
        (1.0, 0.1),
        (0.5, 0.05),
    }
