"""A first report that shows that nothing is learnt yet, where trials are compared by it."""

import math

import pytest

from hpsearch.running.rehearsal.unlearnt import remarks
from hpsearch.study_file.levels import rung_levels
from support.studies.small import budget_of, spec_with

PROMOTION = {"pruner": {"kind": "promotion", "first_rung": 1}}
GUESSED = {"accuracy": 0.5, "loss": 0.694}


def said(metrics, at=1.0, search=PROMOTION, epochs=9):
    spec = spec_with(search=search, budget={"trials": 9, "per_trial": {"epochs": epochs}})
    return "".join(remarks(spec, at, metrics))


@pytest.mark.parametrize(
    "metrics",
    [
        GUESSED,
        {"eval_accuracy": 33.4, "eval_loss": math.log(3) + 0.01},
        {"val_acc": 1 / 151, "val_loss": math.log(151)},
        {"accuracy": 0.9, "loss": 0.4, "mcc": 0.0},
        {"eval_matthews_correlation": -0.01},
        {"r2": -0.2, "loss": 1.2},
        {"loss": 0.7, "f1": 0.0},
    ],
)
@pytest.mark.cases(7)
def test_metrics_of_a_guess_at_the_first_rung_are_told_with_the_rung_to_write(metrics):
    told = said(metrics)
    assert "at 1 epoch already, where this one has learnt nothing" in told
    assert told.endswith("write search: {pruner: {kind: promotion, first_rung: 3}}")


@pytest.mark.parametrize(
    "metrics",
    [
        {"accuracy": 0.5, "loss": 0.6},
        {"accuracy": 0.6, "loss": 0.69},
        {"accuracy": 0.9, "loss": 0.3, "mcc": 0.4},
        {"accuracy": math.nan, "loss": math.nan, "r2": math.nan},
        {"accuracy": 1.0, "loss": 0.0},
        {"accuracy": 0.0, "loss": 5.0},
        {"loss": 4.1, "perplexity": 60.0},
        {"score": 0.5},
        {"accuracy": 5e-324, "loss": 5.0},
        {"lr2": 0.01, "loss": 1.0},
    ],
)
@pytest.mark.cases(10)
def test_nothing_is_said_of_what_shows_no_guess(metrics):
    assert said(metrics) == ""


def test_nothing_is_said_where_trials_are_compared_later_and_no_pruner_is_written_above_no_rung():
    assert said(GUESSED, at=0.5) == ""
    assert said(GUESSED, search={"pruner": "none"}) == ""
    one_rung = {"pruner": {"kind": "promotion", "first_rung": 3}}
    assert said(GUESSED, at=3.0, search=one_rung).endswith("write search: {pruner: none}")


def test_what_is_written_instead_compares_later():
    search = {"pruner": {"kind": "promotion", "first_rung": 3}}
    spec = spec_with(search=search, budget=budget_of(9))
    assert rung_levels(spec)[0] > 1
