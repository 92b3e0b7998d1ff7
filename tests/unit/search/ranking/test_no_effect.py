"""Parameters that make no difference, and equal reports that mean nothing."""

import math
from typing import Any

import pytest

from hpsearch.search.ranking.no_effect import NoEffect, TrialReports, no_effect

LOSSES = {1.0: 0.69314718, 2.0: 0.51823719, 3.0: 0.42718281}


def course(reports: dict[float, Any], **params: Any) -> TrialReports:
    """A training; a number stands for a report of the loss alone."""
    whole = {at: each if isinstance(each, dict) else {"loss": each} for at, each in reports.items()}
    return TrialReports(params, whole)


def found(*courses: TrialReports, total: float = 3.0) -> NoEffect | None:
    return no_effect(courses, ["loss"], total)


def names(*courses: TrialReports, total: float = 3.0) -> list[str]:
    none = found(*courses, total=total)
    return [] if none is None else list(none.names)


def test_three_trials_that_report_the_same_to_the_last_digit_show_that_nothing_is_read():
    none = found(*(course(LOSSES, lr=0.1 * n, width=n) for n in (1, 2, 3)))
    assert none == NoEffect(["lr", "width"], 3, True, True, "loss", 0.42718281)


def test_trials_that_end_at_different_rungs_are_compared_as_far_as_they_go():
    short = {at: LOSSES[at] for at in (1.0, 2.0)}
    assert names(course(LOSSES, x=1), course(short, x=2), course(short, x=3)) == ["x"]
    assert names(course(LOSSES, x=1), course({1.0: LOSSES[1.0], 2.0: 0.3}, x=2)) == []


def test_metrics_of_time_and_of_the_machine_do_not_hide_it():
    def timed(n: int) -> TrialReports:
        measured = {"train_time": n, "tokens_per_second": n, "gpu_mem": n, "epoch_s": n}
        return course({at: {"loss": loss, **measured} for at, loss in LOSSES.items()}, x=n)

    assert names(timed(1), timed(2), timed(3)) == ["x"]


@pytest.mark.parametrize(
    ("name", "reports"),
    [
        ("a first report, perhaps before the first update", {1.0: 0.69314718}),
        ("a loss of zero so far", {1.0: 0.0, 2.0: 0.0}),
        ("an accuracy of chance so far", {1.0: 0.1, 2.0: 0.1}),
        ("whole numbers", {1.0: 3.0, 2.0: 4.0}),
        ("a value that is not a number", {1.0: math.nan, 2.0: math.nan}),
    ],
)
def test_what_may_be_the_same_by_chance_or_so_far_is_no_evidence(name, reports):
    assert names(*(course(reports, x=n) for n in range(10)), total=30.0) == [], name


def test_a_metric_that_stays_the_same_while_another_one_differs_is_no_evidence():
    def other(n: int) -> TrialReports:
        return course({at: {"loss": x, "acc": 0.1 * n} for at, x in LOSSES.items()}, x=n)

    assert names(*map(other, range(5))) == []


def test_one_report_of_a_coarse_value_needs_more_trials_and_a_full_training():
    ends = [course({3.0: 0.9}, x=n) for n in range(6)]
    assert names(*ends[:4]) == []
    none = found(*ends[:5])
    assert none is not None
    assert not none.is_certain
    assert names(*ends[:5], course({3.0: 0.8}, x=9)) == []


def test_one_of_several_parameters_is_found_where_it_alone_differs():
    def at(lr: float, dropout: float) -> TrialReports:
        return course({level: loss * lr for level, loss in LOSSES.items()}, lr=lr, dropout=dropout)

    grid = [at(lr, dropout) for lr in (0.13, 0.27) for dropout in (0.0, 0.1, 0.2)]
    none = found(*grid)
    assert none is not None
    assert (none.names, none.is_all) == (["dropout"], False)
    lr_alone = [at(lr, 0.1) for lr in (0.1, 0.2, 0.3)]
    assert names(*lr_alone) == []


def test_two_trials_or_repeated_configurations_are_no_evidence():
    assert names(*(course(LOSSES, x=1) for _ in range(5))) == []
    assert names(course(LOSSES, x=1), course(LOSSES, x=2)) == []
