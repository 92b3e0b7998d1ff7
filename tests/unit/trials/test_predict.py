"""Trained models of tables in use."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import accuracy_score

from trials import predict, tasks
from trials.final import training as final
from trials.running.arithmetic import Arithmetic
from trials.running.report_grid import budget_from

ODD = {
    "paid": ["true", "false"],
    "code": ["01", "007"],
    "region": ["NA", "EU"],
}
"""Texts that pandas takes for something else."""


def write_odd_table(path, column, count=80):
    """A table whose class follows from one column alone, a different text in every other row."""
    texts = [ODD[column][row % 2] for row in range(count)]
    rows = pd.DataFrame(
        {
            column: texts,
            "noise": np.arange(count) % 7,
            "kind": ["a" if row % 2 else "b" for row in range(count)],
        }
    )
    rows.to_csv(path, index=False)
    return rows


@pytest.fixture
def odd_model(tmp_path):
    """A model of a table with such texts, and the folder of its table."""

    def make(column):
        write_odd_table(tmp_path / "odd.csv", column)
        columns = {"numeric": ["noise"], "categorical": [column]}
        part = {
            "kind": "tabular",
            "train": "odd.csv",
            "validation": 0.25,
            "target": "kind",
            **columns,
        }
        settings = {
            "learning_rate": 0.05,
            "batch_size": 16,
            "width": 16,
            "depth": 1,
            "embedding": 4,
        }
        plan = final.Plan(settings, 5, budget_from({"epochs": 10}), False, "cpu", {}, Arithmetic(1))
        version = final.train(
            tasks.load(part, tmp_path), plan, tmp_path / "models", lambda line: None
        )
        return predict.load(version)

    return make


@pytest.mark.parametrize("column", ODD)
def test_a_file_is_read_for_a_prediction_as_it_was_for_the_training(column, odd_model, tmp_path):
    model = odd_model(column)
    rows = write_odd_table(tmp_path / "new.csv", column, 40)
    assert accuracy_score(rows["kind"], model.predict(tmp_path / "new.csv")) == 1.0
    with pytest.raises(ValueError, match="no such file"):
        model.predict("nowhere.csv")


@pytest.mark.parametrize("column", ["paid", "code"])
def test_values_that_pandas_guessed_are_the_classes_they_were(column, odd_model, tmp_path):
    model = odd_model(column)
    rows = write_odd_table(tmp_path / "new.csv", column, 40)
    guessed = pd.read_csv(tmp_path / "new.csv")
    assert not pd.api.types.is_string_dtype(guessed[column])
    assert accuracy_score(rows["kind"], model.predict(guessed)) == 1.0


def test_the_columns_of_a_frame_may_have_numbers_for_names(tmp_path):
    rows = pd.DataFrame({1: np.arange(40) % 2, "kind": ["b", "a"] * 20})
    rows.to_csv(tmp_path / "rows.csv", index=False)
    task = tasks.load(
        {"kind": "tabular", "train": "rows.csv", "validation": 0.25, "target": "kind"}, tmp_path
    )
    plan = final.Plan(
        {"learning_rate": 0.05},
        5,
        budget_from({"epochs": 10}),
        False,
        "cpu",
        {},
        Arithmetic(1),
    )
    model = predict.load(final.train(task, plan, tmp_path / "models", lambda line: None))
    assert model.predict(rows) == model.predict(tmp_path / "rows.csv")


def test_a_table_of_another_format_names_the_same_classes(tmp_path):
    write_odd_table(tmp_path / "odd.csv", "paid")
    pd.read_csv(tmp_path / "odd.csv").to_parquet(tmp_path / "odd.parquet")
    part = {"kind": "tabular", "validation": 0.25, "target": "kind", "test": "odd.parquet"}
    for train_file, test_file in [("odd.csv", "odd.parquet"), ("odd.parquet", "odd.csv")]:
        task = tasks.load({**part, "train": train_file, "test": test_file}, tmp_path)
        data = task.prepare({})
        tested = task.final().on_test(data, {})
        assert set(np.unique(tested.validation.categorical)) == {1, 2}, (
            "0 stands for an unknown class"
        )


def test_a_folder_without_such_a_model_is_told(tmp_path):
    with pytest.raises(FileNotFoundError, match="it is not a model that was written to be used"):
        predict.load(tmp_path)
