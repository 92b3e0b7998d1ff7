"""What a report may be: one judgement for functions, scripts, other libraries' code and tasks."""

from __future__ import annotations

import array
import datetime
import math
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import sympy
import torch

from support.running.function_runs import run_of
from trials.contract import SAMPLES, Budget, Note, Report, Setup, TrainingFailed, Unit
from trials.running.reported import (
    MOST_SAMPLES,
    note_of_samples,
    number_of,
    numbers_among,
    numbers_of,
    resource_of,
    samples_in,
)
from trials.running.runner import Runner


class Scalar:
    """A number of another library."""

    def __init__(self, of: Any) -> None:
        self._of = of

    def item(self) -> Any:
        return self._of


class Halves:
    item = 3  # not a method

    def __float__(self) -> float:
        return 0.5


class Broken:
    def item(self) -> float:
        raise LookupError("the device is gone")

    def __repr__(self) -> str:
        raise LookupError("and so is its text")


NUMBERS: list[tuple[Any, float]] = [
    (1, 1.0),
    (True, 1.0),
    (np.False_, 0.0),
    (Decimal("0.25"), 0.25),
    (Fraction(1, 4), 0.25),
    (np.float32(0.25), 0.25),
    (np.array([[0.25]]), 0.25),
    (np.array(Decimal("0.25"), dtype=object), 0.25),
    (np.ma.array([0.25, 1.0])[0], 0.25),
    (np.ma.array([0.25], mask=[False]), 0.25),
    (torch.tensor([0.25], requires_grad=True), 0.25),
    (torch.tensor(0.25, dtype=torch.bfloat16), 0.25),
    (torch.tensor(True), 1.0),
    (pd.Series([0.25]), 0.25),
    (pd.array([1], dtype="Int64"), 1.0),
    (pa.scalar(0.25), 0.25),
    (sympy.Rational(1, 4), 0.25),
    (mpmath.mpf("0.25"), 0.25),
    (Scalar(Scalar(0.25).item()), 0.25),
    (Halves(), 0.5),
    (Decimal("Infinity"), math.inf),
    (-math.inf, -math.inf),
]

NOT_NUMBERS: list[Any] = [
    None,
    "0.5",
    np.str_("0.5"),
    b"0.5",
    bytearray(b"5"),
    memoryview(b"5"),
    array.array("b", b"5"),
    np.array("0.5", dtype=object),
    np.ma.masked,
    np.ma.array([0.25], mask=[True]),
    np.ma.array([1.0, 2.0], mask=True).mean(),
    pd.NA,
    pd.NaT,
    pd.Series([pd.NA]),
    pd.array([None], dtype="Int64"),
    pa.scalar(None, pa.float64()),
    np.datetime64(5, "ns"),
    np.array([5], dtype="m8[ns]"),
    datetime.timedelta(seconds=1),
    1 + 0j,
    np.complex64(1),
    torch.tensor(1 + 0j),
    torch.empty((), device="meta"),
    np.array([1.0, 2.0]),
    torch.zeros(0),
    [0.5],
    {"loss": 0.5},
    Decimal("sNaN"),
    sympy.Symbol("x"),
    Scalar("0.5"),
    Broken(),
    float,
]


@pytest.mark.parametrize(("value", "number"), NUMBERS)
def test_a_number_of_any_library_is_reported_as_it_is(value, number):
    assert number_of("loss", value) == number
    assert type(number_of("loss", value)) is float


@pytest.mark.parametrize("value", [math.nan, np.float16("nan"), torch.tensor(math.nan)])
def test_what_is_not_finite_is_a_number_too(value):
    assert math.isnan(number_of("loss", value))


@pytest.mark.parametrize("value", NOT_NUMBERS, ids=lambda value: type(value).__name__)
def test_what_stands_for_no_number_is_refused_and_left_out(value):
    with pytest.raises(ValueError, match=r"^loss must be a number, not "):
        number_of("loss", value)
    assert numbers_among({"loss": value, "accuracy": 0.5}) == {"accuracy": 0.5}


@pytest.mark.parametrize(
    "value", [10**400, Decimal("-1e400"), Fraction(10**400), np.longdouble("1e4000")]
)
def test_a_number_that_no_float_can_hold_is_not_taken_for_infinite(value):
    with pytest.raises(ValueError, match=r"^loss is too large for a float"):
        number_of("loss", value)


@pytest.mark.parametrize("value", [True, np.True_, torch.tensor(True)])
def test_true_is_not_how_far_a_trial_has_trained(value):
    with pytest.raises(ValueError, match=r"^resource must be a number, not "):
        resource_of(value)


def test_a_message_repeats_the_beginning_of_a_long_value():
    with pytest.raises(ValueError, match="not 'xxx") as caught:
        number_of("loss", "x" * 20_000_000)
    assert len(str(caught.value)) < 200


class Reporting:
    """A run of somebody's own task."""

    finished = "done"

    def __init__(self, *items: Report | Note) -> None:
        self._items = items

    def start(self, setup: Any, data: Any) -> Reporting:
        return self

    def __iter__(self) -> Any:
        return iter(self._items)


def advanced(*items: Report | Note) -> tuple[list[Report], list[Note]]:
    notes: list[Note] = []
    setup = Setup({}, 1, Budget(Unit.EPOCHS, 9.0, (9.0,)), Path("nowhere"))
    runner = Runner(Reporting(*items), None, setup, note=notes.append)  # type: ignore[arg-type]
    return list(runner.advance(9.0)), notes


def test_reports_and_notes_of_a_task_are_judged_in_the_same_way():
    measured = {"loss": torch.tensor([0.5]), "size": Decimal(2)}
    reports, notes = advanced(
        Report(1.0, measured),
        Note({"rows": np.int64(3), "absent": np.ma.masked}, {"size": np.float32(1)}, measured),
    )
    assert reports == [Report(1.0, {"loss": 0.5, "size": 2.0})]
    assert notes == [Note({"rows": 3, "absent": None}, {"size": 1.0}, {"loss": 0.5, "size": 2.0})]
    for wrong in (Report(1.0, {"loss": np.ma.masked}), Note(constraints={"loss": "high"})):
        with pytest.raises(ValueError, match="metric 'loss' must be a number"):
            advanced(wrong)
    with pytest.raises(ValueError, match=r"attributes must be values that JSON has, not \{'a'"):
        advanced(Note({"a": object()}))


def test_metrics_without_names_are_refused(tmp_path):
    with pytest.raises(TrainingFailed, match=r"metrics must be named, such as .*, not 0.5"):
        list(run_of(lambda params, trial: trial.report(1, 0.5), tmp_path))


def test_results_by_sample_are_kept_in_blocks_of_about_equal_size_with_their_mean():
    results = [float(number % 3 == 0) for number in range(1300)]
    kept = note_of_samples(results).kept[SAMPLES]
    assert kept["count"] == 1300
    assert len(kept["means"]) == MOST_SAMPLES
    assert sum(kept["means"]) / MOST_SAMPLES == pytest.approx(sum(results) / 1300, abs=0.01)
    assert note_of_samples([1.0, 0.0]).kept[SAMPLES] == {"count": 2, "means": [1.0, 0.0]}


def test_a_list_under_samples_is_no_metric_and_a_number_is():
    reported = {"accuracy": 0.5, "samples": [True, np.float32(0.0)]}
    assert samples_in(reported) == [1.0, 0.0]
    assert numbers_of(reported) == {"accuracy": 0.5}
    assert samples_in({"samples": 7}) is None
    assert numbers_of({"samples": 7}) == {"samples": 7.0}
    with pytest.raises(ValueError, match="samples"):
        samples_in({"samples": ["right"]})
