"""Runs that continue another run under other settings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from support.running.runs import reports_of
from trials import tasks
from trials.contract import Setup
from trials.running.report_grid import budget_from

SETTINGS = {"learning_rate": 0.01, "batch_size": 16, "width": 8, "depth": 1}


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A task on a small table, its data, and a run of two of six epochs with its checkpoint."""
    folder = tmp_path_factory.mktemp("taking_over")
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(rng.normal(size=(90, 3)), columns=["a", "b", "c"])
    rows["kind"] = np.where(rows["a"] + rows["b"] > 0, "up", "down")
    rows.to_csv(folder / "rows.csv", index=False)
    part = {"kind": "tabular", "train": "rows.csv", "validation": 0.25, "target": "kind"}
    task = tasks.load(part, folder)
    data = task.prepare(SETTINGS)

    def run(out: str, source: Any = None, seed: int = 5, **changes: Any) -> Any:
        budget = budget_from({"epochs": 6})
        settings = {**SETTINGS, **changes}
        taken = source is not None
        given = Setup(settings, seed, budget, folder / out, source, takes_over=taken)
        return task.start(given, data)

    first = run("first")
    steps = iter(first)
    while first.position.reported < 2.0:
        next(steps)
    run.source = first.save()
    run.weights = [parameter.detach().clone() for parameter in weights_of(first)]
    run.state = first._updates.state_dict()["optimizer"]
    first.close()
    return run


def weights_of(run: Any) -> list[torch.Tensor]:
    return list(run._workload.model.parameters())


def test_it_begins_with_the_weights_and_reports_what_is_left(lab: Any) -> None:
    run = lab("plain", lab.source, seed=77, learning_rate=0.02)
    assert all(map(torch.equal, weights_of(run), lab.weights))
    reports = reports_of(run)
    assert [report.resource for report in reports] == [3.0, 4.0, 5.0, 6.0]
    assert min(report.metrics["learning_rate"] for report in reports) > 0
    run.close()


def test_its_own_settings_hold_and_the_running_means_are_taken(lab: Any) -> None:
    run = lab("decay", lab.source, weight_decay=0.5, beta1=0.8)
    now = run._updates.state_dict()["optimizer"]
    assert {group["weight_decay"] for group in now["param_groups"]} == {0.5, 0.0}
    assert {group["betas"][0] for group in now["param_groups"]} == {0.8}
    before = lab.state["state"]
    assert now["state"].keys() == before.keys()
    assert torch.equal(now["state"][0]["exp_avg"], before[0]["exp_avg"])
    run.close()


def test_another_optimizer_starts_without_means(lab: Any) -> None:
    run = lab("sgd", lab.source, optimizer="sgd")
    assert run._updates.state_dict()["optimizer"]["state"] == {}
    assert [report.resource for report in reports_of(run)] == [3.0, 4.0, 5.0, 6.0]
    run.close()


def test_a_mean_of_the_weights_starts_from_what_was_saved(lab: Any) -> None:
    run = lab("ema", lab.source, ema=0.99)
    with run._updates.averaged():
        assert all(map(torch.equal, weights_of(run), lab.weights))
    run.close()


@pytest.mark.parametrize("batch", [{"batch_size": 7}, {"batch_size": 68}])
def test_another_batch_size_leaves_it_at_the_same_epoch(lab: Any, batch: dict[str, int]) -> None:
    run = lab(f"batch{batch}", lab.source, **batch)
    assert run._horizon.resource(run.position) == 2.0
    assert [report.resource for report in reports_of(run)] == [3.0, 4.0, 5.0, 6.0]
    run.close()


def test_the_best_is_among_its_own_reports(lab: Any, tmp_path: Path) -> None:
    # It learns nothing more, and gets no better than it begins.
    run = lab("worse", lab.source, learning_rate=1e-9)
    reports = reports_of(run)
    folder = Path(str(reports[0].best)).parent
    assert folder.name == "worse"
    assert reports[0].best == reports[0].checkpoint
    run.close()


def test_an_attempt_that_left_no_report_leaves_no_best_behind(lab: Any) -> None:
    lost = lab("again", lab.source)
    steps = iter(lost)
    while lost.position.reported < 3.0:
        next(steps)
    lost.close()
    run = lab("again", lab.source, learning_rate=1e-9)
    assert run.best is None
    reports = reports_of(run)
    assert reports[0].best == reports[0].checkpoint
    run.close()


def test_another_model_cannot_be_taken_over(lab: Any) -> None:
    with pytest.raises(RuntimeError, match="size mismatch"):
        lab("wider", lab.source, width=9)
