"""The tabular task: what columns are taken for, how rows are encoded, and that trees learn from
them and go on bit for bit."""

import dataclasses
import json
import math
import subprocess
import sys
from pathlib import Path

import lightgbm
import numpy as np
import pandas as pd
import pytest
import yaml

from support.running.runs import Lab, reports_of
from trials import tasks
from trials.contract import TaskError
from trials.descriptions.builtin import describe
from trials.descriptions.tabular import CLASSIFICATION, METRICS, REGRESSION
from trials.single import main
from trials.tasks.tabular import boosting
from trials.tasks.tabular.columns import MOST_CLASSES
from trials.tasks.tabular.table_run import MODEL

PART = {"kind": "tabular", "train": "train.csv", "validation": 0.25, "target": "kind"}
FAST = {"min_data_in_leaf": 3, "bagging_fraction": 0.7, "feature_fraction": 0.8}


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
    return Lab(folder, PART, FAST, "steps")


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


def test_numbers_stay_as_they_are(lab):
    other = table(40, seed=1).assign(area=1000.0)
    other.to_csv(lab.folder / "other.csv", index=False)
    data = lab.task(validation="other.csv").prepare({})
    assert data.train.features[:, 0].tolist() == table()["area"].tolist()
    assert data.validation.features[:, 0].tolist() == [1000.0] * 40


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
    assert np.isnan([data.train.features[17, 0], data.validation.features[17, 0]]).all()


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


def test_trees_learn_beside_an_outlier_and_a_placeholder(lab):
    frame = table(400).drop(columns=["price", "age"]).astype({"area": object})
    frame.loc[3, "area"], frame.loc[7, "area"] = "1e9", "-"
    frame.to_csv(lab.folder / "train.csv", index=False)
    built = lab.task()
    last = reports_of(built.start(lab.setup(epochs=20), built.prepare({})))[-1]
    assert last.metrics["accuracy"] > 0.9


def test_a_missing_number_is_told_from_every_number(lab):
    data = lab.task(validation="train.csv", categorical=["colour"]).prepare({})
    age = data.train.features[:, data.encoding.numeric.index("age")]
    assert np.array_equal(np.isnan(age), table()["age"].isna().to_numpy())


def test_a_class_that_was_never_trained_counts_as_missing(lab):
    other = table(10, seed=1)
    other.loc[0, "colour"], other.loc[1, "colour"], other.loc[2, "colour"] = "pink", None, "red"
    other.to_csv(lab.folder / "other.csv", index=False)
    data = lab.task(validation="other.csv").prepare({})
    column = len(data.encoding.numeric) + list(data.encoding.categorical).index("colour")
    found = data.validation.features[:3, column]
    assert np.isnan(found[:2]).all()
    assert found[2] == 2


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


@pytest.mark.parametrize("target", ["kind", "colour"])
def test_trees_learn_two_classes_and_more(lab, target):
    built = lab.task(target=target)
    last = reports_of(built.start(lab.setup(epochs=30), built.prepare({})))[-1]
    assert last.metrics["accuracy"] > (0.9 if target == "kind" else 0.5)
    assert last.metrics.keys() == METRICS[CLASSIFICATION]


def test_trees_learn_quantities_in_their_own_unit(lab):
    built = lab.task(target="price", categorical=["colour"])
    data = built.prepare({})
    last = reports_of(built.start(lab.setup(epochs=60, monitor="rmse"), data))[-1]
    assert last.metrics["r2"] > 0.9
    assert last.metrics.keys() == METRICS[REGRESSION]
    assert last.metrics["rmse"] == pytest.approx(
        math.sqrt(last.metrics["loss"]) * data.encoding.target_deviation
    )


@pytest.mark.parametrize("target", ["kind", "colour", "price"])
@pytest.mark.parametrize("after", [5, 8, 17])
def test_a_run_that_is_interrupted_anywhere_has_the_trees_of_one_that_was_not(
    lab, target, after, without_timings
):
    built = lab.task(target=target)
    data = built.prepare(FAST)
    whole = reports_of(built.start(lab.setup("whole", 20), data))
    first = built.start(lab.setup("parts", 20), data)
    items = iter(first)
    for _ in range(after):
        next(items)
    again = reports_of(built.start(lab.setup("parts", 20, first.save()), data))
    assert 0 < len(again) < len(whole)
    assert without_timings(again) == without_timings(whole)[-len(again) :]
    texts = [(Path(reports[-1].checkpoint) / MODEL).read_bytes() for reports in (whole, again)]
    assert texts[0] == texts[1]


def test_trees_do_not_depend_on_the_number_of_threads(lab, monkeypatch):
    built = lab.task()
    data, texts = built.prepare(FAST), set()
    for threads in (1, 2, 3):
        monkeypatch.setattr(boosting, "_threads", lambda features, threads=threads: threads)
        last = reports_of(built.start(lab.setup(f"on-{threads}", 9), data))[-1]
        trees = (last.checkpoint / MODEL).read_text()
        texts.add(trees.replace(f"num_threads: {threads}", ""))
    assert len(texts) == 1


def test_the_text_of_all_segments_is_one_model_of_lightgbm(lab):
    built = lab.task()
    data = built.prepare(FAST)
    run = built.start(lab.setup(epochs=20), data)
    last = reports_of(run)[-1]
    model = lightgbm.Booster(model_file=last.checkpoint / MODEL)
    assert model.num_trees() == 20
    alone = boosting.scores_of(run.boosting.trees, data.validation.features)[:, 0]
    scores = model.predict(data.validation.features, raw_score=True)
    assert scores == pytest.approx(alone, rel=1e-12)


def test_a_table_on_which_no_split_helps_is_told_and_not_an_error(lab):
    built = lab.task(target="price")
    data = built.prepare({})
    reports = reports_of(built.start(lab.setup(epochs=20, min_data_in_leaf=80), data))
    assert reports[-1].metrics["loss"] == reports[0].metrics["loss"]


def test_trees_derive_from_the_seed_and_a_checkpoint_tells_how_a_row_becomes_inputs(lab):
    built = lab.task()
    data = built.prepare({})
    texts, told = [], {}
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        setup = dataclasses.replace(lab.setup(name, 5), seed=seed)
        path = reports_of(built.start(setup, data))[-1].checkpoint
        texts.append((path / MODEL).read_text())
        told = json.loads((path / "table.json").read_text())
    assert texts[0] == texts[1] != texts[2]
    assert told["encoding"] == json.loads(json.dumps(dataclasses.asdict(data.encoding)))


def test_settings_of_networks_are_none_of_this_task_and_data_is_keyed_by_the_task_alone(lab):
    for name in ("max_length", "batch_size", "precision", "dropout", "warmup"):
        with pytest.raises(TaskError, match=rf"settings\.{name}: is not a setting of this task"):
            lab.task().prepare({name: 64})
    with pytest.raises(
        TaskError, match=r"settings\.monitor: 'rmse' is not a metric of classification"
    ):
        lab.task().start(lab.setup(monitor="rmse"), lab.task().prepare({}))
    assert {"num_leaves", "learning_rate"} <= describe("tabular").settings.keys()
    assert lab.task().data_key({"num_leaves": 8}) == lab.task().data_key({})
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


def test_a_killed_process_resumes_to_the_same_reports_and_trees(lab, capsys):
    study = {
        "task": lab.part(),
        "settings": FAST,
        "budget": {"per_trial": {"steps": 2000, "report_every": 100}},
        "seed": 11,
    }
    file = lab.folder / "study.yaml"
    file.write_text(yaml.safe_dump(study))
    assert main([str(file), "--out", str(lab.folder / "undisturbed"), "--device", "cpu"]) == 0
    expected = reports_in(capsys.readouterr().out)
    command = [sys.executable, "-m", "trials", str(file), "--device", "cpu"]
    command += ["--out", str(lab.folder / "killed")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        printed = process.stdout.readline() + process.stdout.readline()
        process.kill()
        printed += process.stdout.read()
    before = reports_in(printed)
    assert len(before) < len(expected)
    assert before.items() <= expected.items()
    again = [str(file), "--out", str(lab.folder / "killed"), "--device", "cpu", "--resume"]
    assert main(again) == 0
    after = reports_in(capsys.readouterr().out)
    assert list(after.items()) == list(expected.items())[-len(after) :]
    a, b = (lab.folder / out / "last" / MODEL for out in ("undisturbed", "killed"))
    assert a.read_bytes() == b.read_bytes()


def reports_in(text):
    reports = [json.loads(line) for line in text.splitlines()]
    for report in reports:
        report["metrics"].pop("samples_per_second")
    return {report["resource"]: report["metrics"] for report in reports}
