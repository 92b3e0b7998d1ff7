"""Calls of a training function: driven, stopped and ended."""

import itertools
import sys
import threading

import numpy as np
import pytest
import torch

from support.running.function_runs import items_of, raises_in_training, reports_of, run_of


def test_reports_come_out_in_order_and_the_run_finishes_at_its_budget(tmp_path):
    def train(params, trial):
        for epoch in range(trial.budget):
            trial.report(epoch + 1, {"a": np.float32(0.5), "b": torch.tensor(2.0), "c": 1})

    run = run_of(train, tmp_path)
    reports = reports_of(run)
    assert [r.resource for r in reports] == [1.0, 2.0, 3.0]
    assert reports[0].metrics == {"a": 0.5, "b": 2.0, "c": 1.0}
    assert run.finished == "budget used"
    run.close()


def test_a_function_that_returns_early_has_finished(tmp_path):
    run = run_of(lambda params, trial: trial.report(1, {"a": 1}), tmp_path)
    assert len(reports_of(run)) == 1
    assert run.finished == "the function returned at 1 of 3 epochs"


def test_the_function_trains_on_only_when_it_is_asked_to(tmp_path):
    steps = []

    def train(params, trial):
        for epoch in range(1, 4):
            steps.append(epoch)
            trial.report(epoch, {})

    run = items_of(run_of(train, tmp_path))
    assert steps == []
    next(run)
    assert steps == [1]
    next(run)
    assert steps == [1, 2]


def test_control_comes_back_while_the_function_takes_its_time(tmp_path):
    go = threading.Event()

    def train(params, trial):
        go.wait()
        trial.report(1, {})

    run = run_of(train, tmp_path)
    items = iter(run)
    assert next(items) is None
    go.set()
    assert next(item for item in items if item is not None).resource == 1.0
    run.close()


def test_an_exception_comes_out_with_its_traceback(tmp_path):
    def train(params, trial):
        trial.report(1, {})
        raise KeyError("their own mistake")

    run = run_of(train, tmp_path)
    items = items_of(run)
    next(items)
    with raises_in_training("KeyError: 'their own mistake'") as caught:
        next(items)
    assert "in train\n    raise KeyError" in caught.value.failure.details
    run.close()


def test_sys_exit_is_an_error_unless_all_is_well(tmp_path):
    with raises_in_training(r"called sys\.exit\(3\)"):
        list(run_of(lambda params, trial: sys.exit(3), tmp_path))
    run = run_of(lambda params, trial: sys.exit(), tmp_path)
    assert list(run) == []
    assert run.finished == "the function returned"


def test_a_closed_run_raises_trial_stopped_and_finally_blocks_run(tmp_path):
    seen = []

    def train(params, trial):
        try:
            trial.report(1, {})
        except Exception:  # noqa: BLE001 - what careless training code does
            seen.append("caught")
        finally:
            seen.append("cleaned up")

    run = run_of(train, tmp_path)
    next(items_of(run))
    run.close()
    assert seen == ["cleaned up"]


def test_a_function_that_returns_as_its_trial_is_stopped_has_not_finished(tmp_path):
    is_over = []

    def train(params, trial):
        trial.report(1, {})
        while not trial.stopped:
            pass
        is_over.append(True)
        return {"late": 1}

    run = run_of(train, tmp_path)
    assert [item and item.resource for item in itertools.islice(run, 2)] == [1.0, None]
    run.close()
    assert (is_over, run.finished, list(run)) == ([True], None, [])


def test_a_closed_run_is_not_iterated_further(tmp_path):
    run = run_of(lambda params, trial: trial.report(1, {}), tmp_path)
    items = items_of(run)
    next(items)
    run.close()
    run.close()
    assert list(items) == []
    assert list(run) == []


def test_a_run_that_never_began_closes(tmp_path):
    run = run_of(lambda params, trial: pytest.fail("was called"), tmp_path)
    run.close()
    assert list(run) == []


def test_what_follows_the_last_report_runs_and_its_metrics_are_noted(tmp_path):
    def train(params, trial):
        trial.report(3, {"loss": 0.5})
        trial.report(3, {"test_loss": 0.6})
        (tmp_path / "model").touch()
        return {"test_accuracy": np.float32(0.5), "name": "a"}

    run = run_of(train, tmp_path)
    report, *notes = reports_of(run)
    assert report.metrics == {"loss": 0.5}
    assert [note.metrics for note in notes] == [{"test_loss": 0.6}, {"test_accuracy": 0.5}]
    assert (run.finished, (tmp_path / "model").exists()) == ("budget used", True)


def test_more_training_than_the_budget_ends_at_its_report(tmp_path):
    def train(params, trial):
        for epoch in itertools.count(1):
            trial.report(epoch, {})

    run = run_of(train, tmp_path)
    assert [report.resource for report in reports_of(run)] == [1, 2, 3]
    assert run.finished == "budget used"


def test_returned_metrics_are_the_report_of_a_function_that_makes_none(tmp_path):
    (report,) = reports_of(run_of(lambda params, trial: {"accuracy": 1}, tmp_path))
    assert (report.resource, report.metrics) == (3.0, {"accuracy": 1.0})
