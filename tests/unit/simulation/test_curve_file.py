"""Reading recorded curves: what a table must have, and what its mistakes are called."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from hpsearch.errors import DataError
from hpsearch.simulation.curve_file import load_curves
from hpsearch.study_file.models import StudySpec
from studies import spec_with

SPACE = {
    "lr": {"type": "float", "low": 1e-4, "high": 1.0, "log": True},
    "lora": {"type": "categorical", "choices": [True, False]},
    "rank": {"type": "int", "low": 1, "high": 9, "when": {"lora": True}},
}


@pytest.fixture
def spec() -> StudySpec:
    return spec_with(space=SPACE, budget={"trials": 3, "per_trial": {"epochs": 2}})


def rows(lr: float, *losses: float | None, **more: Any) -> list[dict[str, Any]]:
    return [
        {"lr": lr, "lora": False, "rank": None, "epochs": i, "loss": loss, **more}
        for i, loss in enumerate(losses, 1)
    ]


def written(folder: Path, table: list[dict[str, Any]], name: str = "curves.csv") -> Path:
    frame, path = pd.DataFrame(table), folder / name
    frame.to_csv(path, index=False) if path.suffix == ".csv" else frame.to_parquet(
        path, index=False
    )
    return path


@pytest.mark.parametrize("name", ["curves.csv", "curves.parquet"])
def test_configurations_come_back_as_the_space_has_them(
    tmp_path: Path, spec: StudySpec, name: str
) -> None:
    table = rows(0.1, 3.0, 2.0) + rows(0.2, 2.0, 1.0, lora=True, rank=4)
    found = load_curves(written(tmp_path, table, name), spec)
    assert found.configurations == 2
    proposal = {"lr": 0.2, "lora": True, "rank": 4}
    assert found.curves.stand_in(proposal) == proposal
    assert found.curves.stand_in({"lr": 0.1, "lora": False}) == {"lr": 0.1, "lora": False}
    assert found.curves.measure(proposal, 0, 2.0) == {"loss": 1.0}


def test_rows_may_stand_in_any_order(tmp_path: Path, spec: StudySpec) -> None:
    found = load_curves(
        written(tmp_path, [*reversed(rows(0.1, 3.0, 2.0) + rows(0.2, 2.0, 1.0))]), spec
    )
    assert found.curves.measure({"lr": 0.1, "lora": False}, 0, 1.0) == {"loss": 3.0}


def test_seconds_are_the_tables_or_one_for_each_unit(tmp_path: Path, spec: StudySpec) -> None:
    params = {"lr": 0.1, "lora": False}
    plain = load_curves(written(tmp_path, rows(0.1, 3.0, 2.0)), spec)
    assert (plain.timed, plain.curves.seconds(params, 2.0)) == (False, 2.0)
    table = [row | {"seconds": 7.0 * row["epochs"]} for row in rows(0.1, 3.0, 2.0)]
    timed = load_curves(written(tmp_path, table), spec)
    assert (timed.timed, timed.curves.seconds(params, 2.0)) == (True, 14.0)


def test_a_curve_that_ends_early_is_left_out_but_one_that_diverged_is_not(
    tmp_path: Path, spec: StudySpec
) -> None:
    found = load_curves(
        written(tmp_path, rows(0.1, 3.0, 2.0) + rows(0.2, 1.0) + rows(0.3, None)), spec
    )
    assert (found.configurations, found.too_short) == (2, 1)


def test_trials_with_equal_parameters_are_told_apart_by_their_numbers(
    tmp_path: Path, spec: StudySpec
) -> None:
    table = rows(0.1, 3.0, 2.0, trial=0) + rows(0.1, 4.0, 3.0, trial=1)
    assert load_curves(written(tmp_path, table), spec).configurations == 2


def test_the_columns_of_an_export_are_understood(tmp_path: Path, spec: StudySpec) -> None:
    table = rows(0.1, 3.0, 2.0, trial=0)
    named = [
        {**row, "resource": row.pop("epochs"), "params.lr": row.pop("lr"), "elapsed": 5.0}
        for row in table
    ]
    found = load_curves(written(tmp_path, named), spec)
    assert found.curves.seconds({"lr": 0.1, "lora": False}, 2.0) == 5.0


@pytest.mark.parametrize(
    ("table", "says"),
    [
        (
            [row | {"lr": "high"} for row in rows(0.1, 1.0, 1.0)],
            r"row 1: lr is .*high.*, not a number",
        ),
        (
            [{"lr": 0.1, "lora": True, "rank": 1, "epochs": 1}],
            r"no column for the metric loss.*\n.*known are epochs",
        ),
        (
            [{"lr": 0.1, "lora": True, "rank": 1, "step": 1, "loss": 1.0}],
            r"no column for the resource \(epochs\)",
        ),
        (
            [{"lrs": 0.1, "lora": True, "rank": 1, "epochs": 1, "loss": 1.0}],
            r"parameter lr: .*\n.*did you mean lrs",
        ),
        (
            rows(0.1, 3.0, 2.0) * 2,
            r"rows 1 and 3 are the same configuration at 1 epochs.*\n.*column trial",
        ),
        ([row | {"epochs": 0} for row in rows(0.1, 1.0)], r"row 1: epochs must be above 0"),
        (
            rows(0.1, 3.0),
            r"no configuration is recorded up to the trial budget of 2 epochs\n.*ends at 1",
        ),
        (
            rows(0.1, 3.0) + rows(0.2, None, None),
            r"no configuration is recorded up to the trial budget",
        ),
        (
            [row | {"loss": "low"} for row in rows(0.1, 1.0)],
            r"row 1: loss is .*low.*, not a number",
        ),
    ],
)
def test_a_mistake_is_told_with_its_place(
    tmp_path: Path, spec: StudySpec, table: list[dict[str, Any]], says: str
) -> None:
    with pytest.raises(DataError, match=says):
        load_curves(written(tmp_path, table), spec)


def test_what_is_no_table_is_told(tmp_path: Path, spec: StudySpec) -> None:
    for name, text, says in [
        ("none.csv", None, "there is no such file"),
        ("curves.txt", "", "are read from .csv and .parquet files"),
        ("empty.csv", "", "cannot be read"),
        ("head.csv", "lr,lora,rank,epochs,loss\n", "has no rows"),
        ("torn.parquet", "PAR1", "cannot be read"),
    ]:
        if text is not None:
            (tmp_path / name).write_text(text)
        with pytest.raises(DataError, match=says):
            load_curves(tmp_path / name, spec)
