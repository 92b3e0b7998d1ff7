"""Patterns that are proposed for the lines of a program whose reports are not known."""

import pytest
import yaml

from hpsearch.running.rehearsal.proposed_pattern import proposed
from trials.descriptions import report_pattern
from trials.descriptions.report_pattern import ReportPattern


@pytest.mark.parametrize(
    ("line", "metric", "numbers"),
    [
        ("Epoch 3/10: loss=0.25 val_acc=0.81", "accuracy", {"resource": 3, "accuracy": 0.81}),
        ("epoch 3 train_loss 0.5 val_loss 0.25", "loss", {"resource": 3, "loss": 0.25}),
        ("iter 100: loss 1.9042, time 12.1ms", "loss", {"resource": 100, "loss": 1.9042}),
        ("step 250: train loss 1.9, val loss 2.1", "val_loss", {"resource": 250, "val_loss": 2.1}),
        (
            "step 250: train loss 1.9, val loss 2",
            "train_loss",
            {"resource": 250, "train_loss": 1.9},
        ),
        ("[epoch 0] Loss: 1e-3 (took 3 s)", "loss", {"resource": 1, "loss": 0.001}),
        ("{'loss': 0.5, 'eval_f1': 0.75, 'epoch': 2.0}", "f1", {"resource": 2, "f1": 0.75}),
        ('{"epoch": 2, "acc": 0.5}', "accuracy", {"resource": 2, "accuracy": 0.5}),
        ("Test set, epoch 4: score 12.5%", "accuracy", {"resource": 4, "accuracy": 12.5}),
    ],
)
def test_the_count_and_the_metric_of_a_line_are_found(line, metric, numbers):
    text = proposed(["loading", line, "12 files", "done in 3 s"], metric)
    assert text is not None
    task = yaml.safe_load(text)
    assert list(report_pattern.problems_with([task["report"]])) == []
    assert ReportPattern(task["report"]).numbers_in(line) == numbers
    assert f"# matches {line}" in text


@pytest.mark.parametrize("line", ["loading", "done in 3 s", "epoch 3", "accuracy: 0.5", ""])
def test_where_no_line_has_a_count_and_a_metric_nothing_is_proposed(line):
    assert proposed([line], "accuracy") is None


def test_a_metric_of_another_name_keeps_its_own():
    text = proposed(["epoch 3 recall 0.5 speed 7"], "accuracy")
    assert text is not None
    assert "{recall}" in text or "{speed}" in text


def test_where_none_is_named_as_the_metric_that_of_validation_data_is_proposed():
    text = proposed(["step 8: train loss 1.5, val loss 1.7, value 3"], "accuracy")
    assert text is not None
    assert "{val_loss}" in text
