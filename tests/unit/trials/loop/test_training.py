"""The training loop against a plain reference, and what it reports when."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from trials.contract import Diverged, Setup
from trials.data.batching import epoch_batches
from trials.data.workload import Batch
from trials.loop.optim.schedules import multiplier
from trials.loop.training import TrainingRun
from trials.running.report_grid import budget_from
from trials.settings import Settings


class Points:
    """A workload of two-dimensional points that a straight line separates; each is a text of one
    token."""

    def __init__(self, count: int = 50, poison: int | None = None) -> None:
        rng = np.random.default_rng(0)
        self.inputs = torch.from_numpy(rng.normal(size=(count, 2)).astype(np.float32))
        self.labels = (self.inputs.sum(dim=1) > 0).long()
        if poison is not None:
            self.inputs[poison] = math.nan
        self.lengths = np.ones(count, dtype=np.int64)
        torch.manual_seed(0)
        self.model: nn.Module = nn.Sequential(
            nn.Linear(2, 8), nn.LayerNorm(8), nn.Tanh(), nn.Linear(8, 2)
        )

    def batch(self, rows: Any) -> Batch:
        return Batch(
            {"x": self.inputs[rows]}, self.labels[rows], tokens=len(rows), cells=2 * len(rows)
        )

    def loss_sum(self, batch: Batch) -> torch.Tensor:
        return nn.functional.cross_entropy(
            self.model(batch.inputs["x"]), batch.labels, reduction="sum"
        )

    def weight(self, rows: Any) -> float:
        return float(len(rows))

    def evaluate(self, precision: Any) -> dict[str, float]:
        with torch.inference_mode():
            clean = torch.nan_to_num(self.inputs)
            return {"loss": float(nn.functional.cross_entropy(self.model(clean), self.labels))}

    def evaluate_longest(self, precision: Any) -> None:
        self.evaluate(precision)

    def weights(self) -> Any:
        return {"model.pt": self.model.state_dict()}

    def write(self, folder: Any, weights: Any) -> None:
        torch.save(dict(weights["model.pt"]), folder / "model.pt")

    def read(self, folder: Any) -> None:
        self.model.load_state_dict(torch.load(folder / "model.pt", weights_only=True))


def run_of(
    workload: Points, tmp_path: Any, per_trial: dict[str, Any], clock: Any = None, **params: Any
) -> TrainingRun:
    setup = Setup(params, 3, budget_from(per_trial), tmp_path / "run")
    more = {} if clock is None else {"clock": clock}
    return TrainingRun(workload, Settings.parse(params), setup, **more)


def reports_of(run: TrainingRun) -> list[Any]:
    return [item for item in run if item is not None]


def test_losses_equal_a_plain_reference_loop(tmp_path):
    params = {
        "learning_rate": 0.01,
        "batch_size": 16,
        "schedule": "cosine",
        "warmup": 0.2,
        "weight_decay": 0.1,
    }
    run = run_of(Points(), tmp_path, {"steps": 12, "report_every": 1}, **params)
    losses = [report.metrics["train_loss"] for report in reports_of(run)]

    reference = Points()
    matrices = [p for p in reference.model.parameters() if p.ndim == 2]
    vectors = [p for p in reference.model.parameters() if p.ndim == 1]
    groups = [{"params": matrices, "weight_decay": 0.1}, {"params": vectors, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=0.01)
    batches = [
        b
        for epoch in range(3)
        for b in epoch_batches(reference.lengths, 16, 3, epoch, bucketing=True)
    ]
    expected = []
    for step, rows in enumerate(batches):
        loss = nn.functional.cross_entropy(
            reference.model(reference.inputs[rows]), reference.labels[rows]
        )
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(reference.model.parameters(), 1.0)
        for group in optimizer.param_groups:
            group["lr"] = 0.01 * multiplier("cosine", (step + 0.5) / 12, 0.2)
        optimizer.step()
        expected.append(loss.item())
    assert losses == pytest.approx(expected, rel=1e-6)


class Weighted(Points):
    """Samples with different numbers of targets."""

    counts = np.arange(50) % 7 + 1

    def weight(self, rows: Any) -> float:
        return float(self.counts[rows].sum())

    def batch(self, rows: Any) -> Any:
        return super().batch(np.repeat(rows, self.counts[rows]))


@pytest.mark.parametrize("micro_batch", [1, 5, 7, 16, 100])
@pytest.mark.parametrize("kind", [Points, Weighted])
def test_micro_batches_add_up_to_their_batch_also_in_the_last_partial_one(
    tmp_path, kind, micro_batch
):
    # 50 samples in batches of 16: the last batch of an epoch has two.
    params = {"learning_rate": 0.01, "batch_size": 16}
    whole, parts = kind(), kind()
    a = reports_of(run_of(whole, tmp_path, {"epochs": 3}, **params))
    b = reports_of(run_of(parts, tmp_path, {"epochs": 3}, micro_batch=micro_batch, **params))
    assert [r.metrics["train_loss"] for r in a] == pytest.approx(
        [r.metrics["train_loss"] for r in b], rel=1e-5
    )
    for one, other in zip(whole.model.parameters(), parts.model.parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-6)


def test_a_report_stands_at_exactly_its_level(tmp_path):
    run = run_of(
        Points(), tmp_path, {"epochs": 1, "report_every": 0.1}, batch_size=16
    )  # four steps an epoch
    reports = reports_of(run)
    assert tuple(r.resource for r in reports) == run._horizon._budget.report_at
    assert [r.step for r in reports] == [1, 1, 2, 2, 2, 3, 3, 4, 4, 4]
    assert run.finished == "budget used"


def test_patience_counts_a_step_that_reaches_several_levels_once(tmp_path):
    workload = Points()
    workload.evaluate = lambda precision: {"loss": 1.0}
    per_trial = {"epochs": 3, "report_every": 0.05}  # four steps an epoch, of five levels each
    reports = reports_of(run_of(workload, tmp_path, per_trial, batch_size=16, patience=3))
    # The first evaluation is the best so far, and three more are no better.
    assert reports[-1].step == 4


def test_a_run_that_continues_within_a_step_does_not_count_it_again(tmp_path):
    workload = Points()
    workload.evaluate = lambda precision: {"loss": 1.0}
    per_trial, params = {"epochs": 3, "report_every": 0.05}, {"batch_size": 16, "patience": 3}
    first = run_of(workload, tmp_path, per_trial, **params)
    reports = (item for item in first if item is not None)
    paused = [next(reports) for _ in range(8)][-1]
    setup = Setup(
        params, 3, budget_from(per_trial), tmp_path / "run", resume_from=paused.checkpoint
    )
    again = TrainingRun(workload, Settings.parse(params), setup)
    assert paused.step == 2
    assert reports_of(again)[-1].step == 4


def test_steps_epochs_and_samples_count_what_they_say(tmp_path):
    for per_trial, steps in (
        ({"steps": 6}, 6),
        ({"epochs": 1.5}, 6),
        ({"samples": 100}, 8),
        ({"samples": 33}, 3),
    ):
        run = run_of(Points(), tmp_path, per_trial, batch_size=16, bucketing=False)
        assert list(run)[-1].step == steps
        assert run.position.step == steps


def test_tokens_count_what_was_trained_and_the_schedule_follows_them(tmp_path):
    per_trial = {"tokens": 400, "report_every": 100}
    reports = reports_of(
        run_of(Points(), tmp_path, per_trial, batch_size=10, warmup=0.0, schedule="linear")
    )
    assert [(r.resource, r.step) for r in reports] == [(100, 10), (200, 20), (300, 30), (400, 40)]
    rates = [r.metrics["learning_rate"] / 1e-4 for r in reports]
    assert rates == pytest.approx([1 - 95 / 400, 1 - 195 / 400, 1 - 295 / 400, 1 - 395 / 400])


def test_a_run_that_continues_counts_its_tokens_on(tmp_path):
    per_trial = {"tokens": 400, "report_every": 100}
    first = run_of(Points(), tmp_path, per_trial, batch_size=10)
    for report in first:
        if report is not None and report.resource == 200:
            break
    setup = Setup(
        {"batch_size": 10}, 3, budget_from(per_trial), tmp_path / "run", resume_from=first.save()
    )
    again = TrainingRun(Points(), Settings.parse({"batch_size": 10}), setup)
    assert [(r.resource, r.step) for r in reports_of(again)] == [(300, 30), (400, 40)]


def test_seconds_count_training_only(tmp_path):
    ticks = iter(range(10_000))
    workload = Points()
    evaluate = workload.evaluate
    workload.evaluate = lambda precision: [next(ticks) for _ in range(100)] and evaluate(precision)
    run = run_of(
        workload, tmp_path, {"seconds": 10, "report_every": 5}, clock=lambda: float(next(ticks))
    )
    reports = reports_of(run)
    assert [r.resource for r in reports] == [5.0, 10.0]
    assert (
        reports[-1].elapsed == run.position.step + 2
    )  # a tick a step, and one for each wait for the device before a report


def test_control_comes_back_after_every_step(tmp_path):
    items = list(run_of(Points(), tmp_path, {"steps": 6, "report_every": 3}))
    assert [item if item is None else item.resource for item in items] == [
        *(None, None, None, 3.0, None, None, None, 6.0),
    ]


def test_a_loss_that_is_not_a_number_names_its_step_and_learning_rate(tmp_path):
    run = run_of(Points(poison=7), tmp_path, {"epochs": 1}, batch_size=50)
    with pytest.raises(
        Diverged,
        match=r"loss became nan at step 1 \(learning rate 5\.56e-05, last gradient norm none\)",
    ):
        list(run)


def test_divergence_is_seen_within_twenty_steps_without_a_report(tmp_path):
    run = run_of(Points(poison=7), tmp_path, {"steps": 1000, "report_every": 1000}, batch_size=16)
    with pytest.raises(Diverged):
        list(run)
    assert run.position.step <= 20


def test_a_learning_rate_that_is_far_too_high_diverges(tmp_path):
    class Cubic(Points):
        def loss_sum(self, batch):
            return super().loss_sum(batch) + (self.model[0].weight ** 4).sum()

    params = {
        "optimizer": "sgd",
        "learning_rate": 10.0,
        "schedule": "constant",
        "warmup": 0.0,
        "max_grad_norm": None,
    }
    with pytest.raises(Diverged, match="try a lower learning rate"):
        list(run_of(Cubic(), tmp_path, {"steps": 100}, **params))


def test_a_diverged_state_is_not_saved(tmp_path):
    run = run_of(Points(poison=7), tmp_path, {"steps": 1000}, batch_size=50)
    next(iter(run))
    with pytest.raises(Diverged):
        run.save()
    assert not (tmp_path / "run").exists()


def test_best_follows_the_monitored_metric_and_last_the_run(tmp_path):
    workload = Points()
    values = iter([0.9, 0.3, 0.5, 0.7])
    workload.evaluate = lambda precision: {"loss": next(values)}
    run = run_of(workload, tmp_path, {"steps": 4, "report_every": 1})
    reports = reports_of(run)
    run.recorded(4)
    assert (tmp_path / "run" / "best").resolve() == reports[1].checkpoint
    assert (tmp_path / "run" / "last").resolve() == reports[3].checkpoint
    kept = {path.name for path in (tmp_path / "run").iterdir() if not path.is_symlink()}
    assert kept == {"step-2", "step-3", "step-4"}


def test_a_scaled_step_with_an_infinite_gradient_is_skipped_and_no_divergence(tmp_path):
    workload = Points()
    run = run_of(
        workload, tmp_path, {"steps": 4, "report_every": 4}, precision="fp16", learning_rate=0.01
    )
    run._precision.scaler.load_state_dict({**run._precision.scaler.state_dict(), "scale": 2.0**127})
    before = [p.clone() for p in workload.model.parameters()]
    next(iter(run))
    assert all(torch.equal(a, b) for a, b in zip(before, workload.model.parameters(), strict=True))
    assert run._precision.scaler.get_scale() == 2.0**126
    run._telemetry.settle()


def test_gradients_that_stay_infinite_under_a_scaler_are_a_divergence(tmp_path):
    class Infinite(Points):
        def loss_sum(self, batch):
            return super().loss_sum(batch) + (self.model[0].weight.sum() * 0).sqrt()

    with pytest.raises(Diverged, match="gradient norm became"):
        list(run_of(Infinite(), tmp_path, {"steps": 100, "report_every": 100}, precision="fp16"))


@pytest.mark.parametrize("precision", ["bf16", "fp16", "fp32"])
def test_every_precision_learns(tmp_path, precision):
    run = run_of(
        Points(), tmp_path, {"epochs": 20}, precision=precision, learning_rate=0.05, batch_size=16
    )
    assert reports_of(run)[-1].metrics["loss"] < 0.25


def test_a_rehearsal_measures_and_leaves_no_trace(tmp_path):
    run = run_of(Points(), tmp_path, {"epochs": 1})
    found = run.rehearse()
    measured = {"step_seconds", "evaluation_seconds", "parameters", "peak_memory_bytes"}
    assert found.keys() == measured | {"weights_bytes", "checkpoint_bytes"}
    assert found["weights_bytes"] == 4 * found["parameters"]
    assert found["checkpoint_bytes"] >= 3 * found["weights_bytes"], (
        "AdamW remembers two numbers of each"
    )
    assert found["parameters"] == 58
    assert found["peak_memory_bytes"] > 0
    assert not (tmp_path / "run").exists()
