"""The values of cells: one meaning wherever texts and tables are read."""

import json
import math
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from benchmarks.simulation.curve_file import load_curves
from hpsearch.errors import DataError
from hpsearch.plugins.tables import tables
from hpsearch.study_file.starters import command_lines
from hpsearch.study_file.text import value_of
from support.studies.small import budget_of, spec_with
from trials.descriptions.cells import column_of, number_in, number_of
from trials.descriptions.report_pattern import ReportPattern
from trials.tasks.command.report_stream import CsvRows
from trials.tasks.tabular import columns, encoding
from trials.tasks.text import targets

NUMBERS = {
    "7": 7, "+1": 1, "-2": -2, " 1 ": 1, "\u00a01": 1, "007": 7, "1e5": 1e5, "1.": 1.0, ".5": 0.5,
    "-1.5E-3": -0.0015, "nan": math.nan, "NaN": math.nan, "inf": math.inf, "-Infinity": -math.inf,
    "1e400": math.inf, "9" * 400: math.inf, "-" + "9" * 5000: -math.inf,
}  # fmt: skip
TEXTS = [
    *("1_000", "64_64", "0_5", "1e1_0", "1,5", "1,000", "0x10", "0b1", "0o7", "１", "٣", "1e٣"),
    *("True", "false", "None", "", " ", "5e", "e5", ".", "--1", "1 2", "1j", "infinit", "½", "1d5"),
]


@pytest.mark.parametrize("text", [*NUMBERS, *TEXTS])
def test_a_text_is_the_same_number_wherever_it_is_read(tmp_path, text):
    expected = NUMBERS.get(text)
    found = number_in(text)
    assert repr(found) == repr(expected), "also whether it is whole"
    is_finite = expected is not None and math.isfinite(expected)
    is_usual = is_finite and expected is not None and abs(expected) < 1e9

    given = value_of(text)
    assert (isinstance(given, int | float) and not isinstance(given, bool)) == is_finite
    assert command_lines._read(text) == (expected if is_usual else None)
    frame = pd.DataFrame({"x": [text, "2.5"]})
    of_training, _ = columns.numbers_in(frame, "x")
    assert np.isfinite(of_training[0]) == is_finite
    of_target = targets._number(text)
    assert of_target == (expected if is_finite else None)
    if found is not None and is_usual:
        assert encoding.classes_in(frame, "x")[0] == f"{found:.15g}"
    table = f"epoch,x,loss\n1,{json.dumps(text, ensure_ascii=False)},0.5\n".encode()
    (report,) = CsvRows("epoch", None).reports_in(table, ended=True)
    assert repr(report.metrics.get("x")) == repr(None if expected is None else float(expected))
    if {"_", ","} & set(text):
        return  # what a program prints so is read by the program's own consistency
    whole = ReportPattern("^x={x} *$").numbers_in(f"x={text.strip()}")
    assert repr(whole.get("x")) in (repr(expected and float(expected)), repr(expected))


@pytest.mark.parametrize(
    ("cell", "number"),
    [
        (True, None), (np.bool_(True), None), (np.float32(0.5), 0.5), (np.int64(3), 3),
        (Decimal("0.25"), 0.25), (Decimal(7), 7), (10**400, math.inf), (pd.NA, None),
        (pd.NaT, None), (None, None), (math.nan, None), (pd.Timestamp("2026-01-01"), None),
        ([1], None),
        (np.array([1.0]), None), ({"a": 1}, None), (b"1", None), (pd.Timedelta(1), None),
    ],
)  # fmt: skip
def test_a_cell_of_parquet_is_a_number_or_it_is_not(cell, number):
    assert number_of(cell) == number


@pytest.mark.parametrize(
    ("cells", "values"),
    [
        (["64_64", "32_32"], ["64_64", "32_32"]),
        (["1", "2", None], [1, 2, None]),
        (["1", "2.5", ""], [1.0, 2.5, None]),
        (["True", "false"], [True, False]),
        (["1", "inf"], ["1", "inf"]),
        (["1", "true"], ["1", "true"]),
        (["[1, 2]", '{"a": 1}'], [[1, 2], {"a": 1}]),
        ([np.array([1, 2]), None], [[1, 2], None]),
        ([pd.Timestamp("2026-01-01")], ["2026-01-01 00:00:00"]),
        (["9" * 400, "1"], ["9" * 400, "1"]),
    ],
)
def test_the_values_of_a_column_are_of_one_kind(cells, values):
    assert column_of(cells) == values


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"x": 2.5}, "x is .*2.5.*, not a whole number"),
        ({"x": "0_5"}, "x is '0_5', not a number"),
        ({"x": [1, 2]}, "x is .*1, 2.*, not a number"),
        ({"x": pd.Timestamp("2026-01-01")}, "x is .*2026.*, not a number"),
        ({"x": "9" * 400}, "x is '9+.*, not a number"),
        ({"x": math.inf}, "x is .*inf.*, not a number"),
        ({"loss": "0_5"}, "loss: '0_5' in row 1 is not a number"),
        ({"loss": [0.5]}, "loss: .*0.5.* in row 1 is not a number"),
        ({"epochs": math.inf}, "epochs is not always above 0 and at most"),
        ({"epochs": "1_0"}, "epochs: '1_0' in row 1"),
        ({"seconds": math.inf}, "a time is not finite"),
    ],
)
def test_a_cell_of_recorded_curves_that_is_wrong_is_named(tmp_path, suffix, wrong, says):
    space = {"x": {"type": "int", "low": 0, "high": 9}}
    spec = spec_with(space=space, budget=budget_of(3, 1))
    right = {"trial": 0, "x": 2, "epochs": 1, "loss": 0.5, "seconds": 1.0}
    path = tmp_path / f"curves.{suffix}"
    frame = pd.DataFrame([right | wrong])
    frame.to_csv(path, index=False) if suffix == "csv" else frame.to_parquet(path)
    with pytest.raises(DataError, match=says):
        load_curves(path, spec)


@pytest.mark.parametrize("cell", ["0_5", "[1]", "1,5", "0x10", "True", "１"])
def test_a_metric_of_past_runs_that_is_not_a_number_is_named(tmp_path, cell):
    path = tmp_path / "runs.csv"
    pd.DataFrame({"x": ["1", "2"], "loss": [cell, "0.4"]}).to_csv(path, index=False)
    problems: dict[str, str] = {}
    mapped = tables.Mapped(params={"x": "x"}, metric={"loss": "loss"}, direction=("minimize",))
    found = tables.read(str(path), mapped, problems)
    assert problems == {"runs.csv row 1": f"loss is {cell!r}, which is not a number"}
    assert found.runs[1].values == (0.4,)
