"""A run's trace: compact, whole across a resume, and filled by the loop."""

import math
from statistics import fmean

import pytest
import torch

from trials.contract import Diverged
from trials.loop.telemetry.history import MOST, Series, Trace


def test_a_long_series_keeps_its_mean_in_few_points():
    series = Series()
    for value in range(MOST * 16):
        series.add(float(value))
    assert len(series.points) <= MOST
    assert series.every * len(series.points) == MOST * 16
    assert fmean(series.points) == pytest.approx(fmean(range(MOST * 16)))


def test_a_resumed_trace_goes_on_as_if_it_had_not_stopped():
    def fill(trace, steps):
        for step in steps:
            trace.step(1 / (step + 1))
        trace.report(steps[-1], 1.0, 2.0)

    whole, first, second = Trace(), Trace(), Trace()
    fill(whole, range(1001))
    fill(whole, range(1001, 3000))
    fill(first, range(1001))
    second.load_state_dict(first.state_dict())
    fill(second, range(1001, 3000))
    assert second.history() == whole.history()


def test_reports_are_thinned_and_the_first_and_last_kept():
    trace = Trace()
    for step in range(10 * MOST):
        trace.report(step, 1.0, 2.0)
    kept = [each.step for each in trace.history().reports]
    assert len(kept) <= MOST
    assert kept[0] == 0
    assert kept[-1] == 10 * MOST - 1
    assert kept == sorted(kept)


def test_a_run_of_the_loop_records_every_step(lab):
    task = lab.task()
    setup = lab.setup("run", {"epochs": 2}, batch_size=8, learning_rate=3e-3)
    run = task.start(setup, task.prepare(setup.params))
    reports = [item for item in run if item is not None]
    history = run._telemetry.trace.history()
    assert len(history.losses) == run.position.step
    losses = [each.loss for each in history.reports]
    assert losses == [report.metrics["loss"] for report in reports]


def test_a_run_that_diverges_says_so_in_its_findings(lab):
    task = lab.task()
    setup = lab.setup("run", {"epochs": 2}, batch_size=8)
    run = task.start(setup, task.prepare(setup.params))
    with torch.no_grad():
        for parameter in run._workload.model.parameters():
            parameter.fill_(math.nan)
    with pytest.raises(Diverged):
        list(run)
    assert [finding.name for finding in run.findings()] == ["divergence"]
