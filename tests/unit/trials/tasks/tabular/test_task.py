"""The tabular task: what columns are taken for, how rows are encoded, and that a perceptron learns
from them."""

import dataclasses
import json
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from support.running.runs import Lab, reports_of
from trials import tasks
from trials.contract import TaskError
from trials.descriptions.builtin import describe
from trials.descriptions.tabular import CLASSIFICATION, METRICS, REGRESSION
from trials.tasks.tabular.columns import MOST_CLASSES

PART = {"kind": "tabular", "train": "train.csv", "validation": 0.25, "target": "kind"}
FAST = {"learning_rate": 0.02, "batch_size": 32, "width": 16, "depth": 1, "embedding": 4}


def table(count: int = 121, seed: int = 0) -> pd.DataFrame:
    """A price and a class that follow from an area, a colour, and an age that is often missing."""
    rng = np.random.default_rng(seed)
    area, colour = rng.uniform(10, 100, count).round(2), rng.choice(["red", "green", "blue"], count)
    age = pd.Series(rng.integers(0, 40, count).astype(float)).mask(rng.random(count) < 0.2)
    price = (3 * area + 50 * (colour == "red") + rng.normal(0, 1, count)).round(3)
    kind = np.where(price > 200, "dear", "cheap")
    return pd.DataFrame(
        {"area": area, "colour": colour, "age": age, "price": price, "kind": kind, "one": "same"}
    )


def lab_in(folder: Path) -> Lab:
    table().to_csv(folder / "train.csv", index=False)
    return Lab(folder, PART, FAST)


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return lab_in(tmp_path)


@pytest.mark.parametrize("target", ["kind", "price"])
@pytest.mark.parametrize("text", ["12,5", "abc"])
def test_what_is_not_a_number_in_another_file_is_refused(lab, target, text):
    other = table(20).astype({"area": str})
    other.loc[3, "area"] = text
    other.to_csv(lab.folder / "other.csv", index=False)
    found = lab.problems(target=target, validation="other.csv", test="other.csv")
    for where in ("task.validation", "task.test"):
        assert f"row 4: {text!r}" in found[where]


def test_the_columns_named_are_used_alone_where_both_lists_are_given_and_told_from_the_data_else(
    lab,
):
    data = lab.task(target="price").prepare({})
    assert data.encoding.numeric == ("area", "age")
    assert data.encoding.categorical == {
        "colour": ("blue", "green", "red"),
        "kind": ("cheap", "dear"),
    }
    assert data.encoding.flagged == ("age",)
    assert data.objective == REGRESSION
    assert lab.task().prepare({}).objective == CLASSIFICATION
    encoding = lab.task(numeric=["area"], categorical=[]).prepare({}).encoding
    assert (encoding.numeric, encoding.categorical) == (("area",), {})
    assert "age" in lab.task(numeric=["area"], categorical=["age"]).prepare({}).encoding.categorical


def test_a_target_of_few_whole_numbers_is_a_class_unless_it_is_said_to_be_a_quantity(lab):
    frame = table().assign(stars=np.arange(121) % 5)
    frame.to_csv(lab.folder / "stars.csv", index=False)
    part = {"train": "stars.csv", "target": "stars"}
    assert lab.task(**part).prepare({}).encoding.classes == tuple("01234")
    quantity = lab.task(**part, objective_kind="regression").prepare({})
    assert quantity.objective == "regression"


def test_numbers_are_standardised_by_the_training_rows_alone(lab):
    other = table(40, seed=1).assign(area=1000.0)
    other.to_csv(lab.folder / "other.csv", index=False)
    data = lab.task(validation="other.csv").prepare({})
    area = table()["area"]
    assert data.train.numeric[:, 0].mean() == pytest.approx(0, abs=1e-6)
    assert data.train.numeric[:, 0].std() == pytest.approx(1, rel=1e-5)
    assert data.validation.numeric[0, 0] == pytest.approx(
        (1000 - area.mean()) / area.std(ddof=0), rel=1e-5
    )


PLACEHOLDERS = ["-", "?", "N/A", "k.A.", "inf", "-inf", "1e400", "#DIV/0!", " - ", "NULL"]


@pytest.mark.cases(len(PLACEHOLDERS))
@pytest.mark.parametrize("text", PLACEHOLDERS)
def test_a_number_column_stays_one_whatever_stands_for_a_missing_number(lab, text):
    frame = table(800).astype({"area": str})
    frame.loc[17, "area"] = text
    frame.to_csv(lab.folder / "train.csv", index=False)
    frame.iloc[:40].to_csv(lab.folder / "other.csv", index=False)
    assert lab.problems(validation="other.csv") == {}
    data = lab.task(validation="other.csv").prepare({})
    assert data.encoding.numeric == ("area", "age", "price")
    assert data.encoding.flagged == ("area", "age")
    assert data.train.numeric[17, 0] == data.validation.numeric[17, 0] == 0
    assert data.train.numeric[17, 3] == 1


def test_several_words_among_many_numbers_are_missing_numbers_and_among_few_are_classes(lab):
    frame = table(200).assign(level=[["1", "2", "3", "top"][row % 4] for row in range(200)])
    frame = frame.astype({"area": str})
    frame.loc[::40, "area"] = [f"{row} m2" for row in range(5)]
    frame.to_csv(lab.folder / "train.csv", index=False)
    encoding = lab.task().prepare({}).encoding
    assert "area" in encoding.numeric
    assert encoding.categorical["level"] == ("1", "2", "3", "top")


def test_a_target_of_numbers_stays_a_quantity_and_its_gaps_are_told(lab):
    frame = table(200).astype({"price": str})
    for text, said in (("-", "1 row of"), ("NA", "1 row of"), ("cheap", "row 18: 'cheap'")):
        frame.loc[17, "price"] = text
        frame.to_csv(lab.folder / "gaps.csv", index=False)
        assert said in lab.problems(train="gaps.csv", target="price")["task.target"]
        found = lab.problems(target="price", validation="gaps.csv")
        assert said in found.get("task.target", found.get("task.validation"))


def test_a_column_that_names_its_rows_is_left_out_unless_it_is_stated(lab):
    frame = table().assign(key=[f"customer {row}" for row in range(121)])
    frame.to_csv(lab.folder / "train.csv", index=False)
    assert "key" not in lab.task().prepare({}).encoding.categorical
    stated = lab.task(categorical=["key"]).prepare({})
    assert len(stated.encoding.categorical["key"]) > MOST_CLASSES


@pytest.mark.parametrize("outlier", [1e9, -1e30, 3.4e38])
def test_one_outlier_does_not_decide_on_the_scale_of_its_column(lab, outlier):
    plain = lab.task(numeric=["area"], categorical=[]).prepare({})
    frame = table()
    frame.loc[3, "area"] = outlier
    frame.to_csv(lab.folder / "train.csv", index=False)
    data = lab.task(numeric=["area"], categorical=[]).prepare({})
    assert data.train.numeric.std(axis=0) == pytest.approx(1, abs=5)
    assert np.isfinite(data.train.numeric).all()
    assert abs(data.train.numeric).max() < 100
    assert data.encoding.means == pytest.approx(plain.encoding.means, rel=0.02)
    assert data.encoding.deviations == pytest.approx(plain.encoding.deviations, rel=0.02)


def test_skewed_numbers_and_those_that_are_mostly_equal_are_scaled_as_they_are(lab):
    rng = np.random.default_rng(0)
    frame = table(800).assign(
        income=np.exp(rng.normal(0, 1, 800)).round(3),
        gain=np.where(rng.random(800) < 0.9, 0, rng.integers(1, 9999, 800)),
        rare=(rng.random(800) < 0.01).astype(int),
    )
    frame.to_csv(lab.folder / "train.csv", index=False)
    columns = ["income", "gain", "rare"]
    part = {"numeric": columns, "categorical": [], "validation": "train.csv"}
    encoding = lab.task(**part).prepare({}).encoding
    assert encoding.means == pytest.approx(frame[columns].mean(), rel=1e-6)
    assert encoding.deviations == pytest.approx(frame[columns].std(ddof=0), rel=1e-6)


def test_a_perceptron_learns_beside_an_outlier_and_a_placeholder(lab):
    frame = table(400).drop(columns=["price", "age"]).astype({"area": object})
    frame.loc[3, "area"], frame.loc[7, "area"] = "1e9", "-"
    frame.to_csv(lab.folder / "train.csv", index=False)
    built = lab.task()
    last = reports_of(built.start(lab.setup(epochs=20), built.prepare({})))[-1]
    assert last.metrics["accuracy"] > 0.9


def test_a_missing_number_is_the_mean_and_is_flagged(lab):
    data = lab.task(validation="train.csv", categorical=["colour"]).prepare({})
    missing = table()["age"].isna().to_numpy()
    age = data.encoding.numeric.index("age")
    flag = data.train.numeric[:, -1]
    assert missing.any()
    assert np.array_equal(flag, missing.astype(np.float32))
    assert (data.train.numeric[missing, age] == 0).all()


def test_a_class_that_was_never_trained_counts_as_missing(lab):
    other = table(10, seed=1)
    other.loc[0, "colour"], other.loc[1, "colour"], other.loc[2, "colour"] = "pink", None, "red"
    other.to_csv(lab.folder / "other.csv", index=False)
    data = lab.task(validation="other.csv").prepare({})
    column = list(data.encoding.categorical).index("colour")
    assert data.validation.categorical[:3, column].tolist() == [0, 0, 3]


@pytest.mark.parametrize(
    ("changes", "where", "said"),
    [
        ({"train": "trian.csv"}, "task.train", "did you mean train.csv?"),
        ({"target": "knd"}, "task.target", "has no column 'knd'"),
        ({"target": "one"}, "task.target",
         "all training rows have one class, 'same'; two are needed"),
        ({"numeric": ["aera"]}, "task.numeric", "did you mean area?"),
        ({"numeric": ["colour"]}, "task.numeric",
         "is not a number in 121 rows, the first of them row 1"),
        ({"numeric": ["kind"]}, "task.numeric", "names 'kind', which stands under target too"),
        ({"numeric": [3]}, "task.numeric", "must be a list of texts, and has 3"),
        ({"numeric": "area"}, "task.numeric", "must be a list, not 'area'"),
        ({"target": "colour", "objective_kind": "regression"}, "task.target",
         "is not a number in 121 rows"),
        ({"target": "age", "objective_kind": "regression"}, "task.target", "without 'age'"),
        ({"objective_kind": "ranking"}, "task.objective_kind",
         "must be classification or regression"),
        ({"validation": 1.5}, "task.validation", "must be between 0 and 1"),
        ({"validation": 0.001}, "task.validation", "leaves no validation rows out of 121"),
        ({"numeric": [], "categorical": []}, "task.train", "has no column to predict from"),
    ],
)  # fmt: skip
def test_a_mistake_says_where_and_what(lab, changes, where, said):
    assert said in lab.problems(**changes)[where]


def test_a_validation_file_that_does_not_fit_the_training_file_is_told(lab):
    other = table(10).drop(columns="area").assign(kind="odd")
    other.to_csv(lab.folder / "other.csv", index=False)
    found = [p.what for p in tasks.inspect(lab.part(validation="other.csv"), lab.folder)]
    assert any("has no column 'area'" in what for what in found)
    assert any("has 1 class that no training row has: 'odd'" in what for what in found)


def test_a_perceptron_learns_classes(lab):
    run = lab.task().start(lab.setup(epochs=30), lab.task().prepare({}))
    last = reports_of(run)[-1]
    assert last.metrics["accuracy"] > 0.9
    assert last.metrics.keys() == METRICS[CLASSIFICATION]


def test_a_perceptron_learns_quantities_in_their_own_unit(lab):
    built = lab.task(target="price", categorical=["colour"])
    data = built.prepare({})
    last = reports_of(built.start(lab.setup(epochs=60, monitor="rmse"), data))[-1]
    assert last.metrics["r2"] > 0.95
    assert last.metrics.keys() == METRICS[REGRESSION]
    assert last.metrics["rmse"] == pytest.approx(
        math.sqrt(last.metrics["loss"]) * data.encoding.target_deviation
    )


def test_weights_derive_from_the_seed_and_a_checkpoint_tells_how_a_row_becomes_inputs(lab):
    built = lab.task()
    data = built.prepare({})
    one, same, other = (
        built.start(dataclasses.replace(lab.setup(), seed=seed), data)
        ._workload.model.layers[0]
        .weight
        for seed in (1, 1, 2)
    )
    assert torch.equal(one, same)
    assert not torch.equal(one, other)
    built = lab.task()
    data = built.prepare({})
    path = reports_of(built.start(lab.setup(), data))[-1].checkpoint
    told = json.loads((path / "table.json").read_text())
    assert told["encoding"] == json.loads(json.dumps(dataclasses.asdict(data.encoding)))
    assert (path / "model.safetensors").is_file()


def test_settings_of_texts_are_none_of_this_task_and_data_is_keyed_by_the_task_alone(lab):
    with pytest.raises(TaskError, match=r"settings\.max_length: is not a setting of this task"):
        lab.task().prepare({"max_length": 64})
    with pytest.raises(
        TaskError, match=r"settings\.monitor: 'rmse' is not a metric of classification"
    ):
        lab.task().start(lab.setup(monitor="rmse"), lab.task().prepare({}))
    assert {"depth", "width", "embedding", "learning_rate"} <= describe("tabular").settings.keys()
    assert "depth" not in describe("text_classification").settings
    assert lab.task().data_key({"width": 8}) == lab.task().data_key({})
    assert lab.task().data_key({}) != lab.task(split_seed=1).data_key({})


@pytest.mark.parametrize("split_seed", range(8))
def test_what_a_column_is_does_not_depend_on_which_rows_are_split_off(lab, split_seed):
    rows = [f"{row * 1.5},{row * 1.5},{row % 3},{'ab'[row % 2]}" for row in range(20)]
    rows[7], rows[11] = "abc,abc,1,b", "10,xyz,1,b"
    (lab.folder / "rows.csv").write_text("\n".join(["one_word,words,numbers,kind", *rows]))
    part = {"train": "rows.csv", "target": "kind", "validation": 0.2}
    encoding = lab.task(**part, split_seed=split_seed).prepare({}).encoding
    assert encoding.numeric == ("one_word", "numbers")
    assert list(encoding.categorical) == ["words"]


@pytest.mark.parametrize("split_seed", range(4))
def test_what_the_target_asks_for_does_not_depend_on_which_rows_are_split_off(lab, split_seed):
    rows = [f"{row % 5},{row}" for row in range(MOST_CLASSES + 1)]
    (lab.folder / "rows.csv").write_text("\n".join(["number,count", *rows]))
    part = {"train": "rows.csv", "target": "count", "validation": 0.2}
    assert lab.task(**part, split_seed=split_seed).prepare({}).objective == REGRESSION
