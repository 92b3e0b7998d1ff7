"""Trained models in use: every kind that `load` knows, in batches, with probabilities."""

import numpy as np
import pandas as pd
import pytest
import torch
import transformers
from sklearn.metrics import accuracy_score

from support.files import small_models
from support.running.runs import reports_of
from trials import predict, tasks
from trials.contract import Setup
from trials.running.arithmetic import Arithmetic
from trials.running.report_grid import budget_from
from trials.tasks.final import training as final
from trials.tasks.final.parts import FinalParts
from trials.tasks.images import processor
from unit.trials.tasks.images.test_task import images

ODD = {"paid": ["true", "false"], "code": ["01", "007"], "region": ["NA", "EU"]}
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
        settings = {"min_data_in_leaf": 3}
        plan = final.Plan(settings, 5, budget_from({"steps": 30}), False, "cpu", {}, Arithmetic(1))
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
        {"min_data_in_leaf": 3}, 5, budget_from({"steps": 10}), False, "cpu", {}, Arithmetic(1)
    )
    model = predict.load(final.train(task, plan, tmp_path / "models", lambda line: None))
    assert model.predict(rows) == model.predict(tmp_path / "rows.csv")


def test_a_table_of_another_format_names_the_same_classes(tmp_path):
    write_odd_table(tmp_path / "odd.csv", "paid")
    pd.read_csv(tmp_path / "odd.csv").to_parquet(tmp_path / "odd.parquet")
    part = {"kind": "tabular", "validation": 0.25, "target": "kind", "test": "odd.parquet"}
    for train_file, test_file in [("odd.csv", "odd.parquet"), ("odd.parquet", "odd.csv")]:
        task = tasks.load({**part, "train": train_file, "test": test_file}, tmp_path)
        tested = FinalParts(task).on_test({})
        column = len(tested.encoding.numeric)
        assert set(np.unique(tested.validation.features[:, column])) == {0, 1}, (
            "NaN stands for an unknown class"
        )


def test_a_folder_without_such_a_model_is_told(tmp_path):
    with pytest.raises(FileNotFoundError, match="it is not a model that was written to be used"):
        predict.load(tmp_path)


# ------------------------------------------------------------------ every kind, in batches

ONE, OTHER = "a short text", "another text, which is a good deal longer than the first of them"
TEXTS = [ONE, OTHER, "one more", *(f"{OTHER} {'and so on ' * n}" for n in range(6))]
OF_TEXTS = {"kind": "text_classification", "train": "texts.csv", "text": "text", "model": "bert"}
USED = {
    "classes": {**OF_TEXTS, "label": "topic"},
    "classes by a decoder": {**OF_TEXTS, "label": "topic", "model": "gpt2"},
    "pairs": {**OF_TEXTS, "text": ["text", "text2"], "label": "topic"},
    "labels": {**OF_TEXTS, "label": ["good", "bad"]},
    "numbers": {**OF_TEXTS, "kind": "text_regression", "label": "stars"},
    "small images": {"kind": "image_classification", "train": "images.npz"},
    "pretrained images": {"kind": "image_classification", "train": "images.npz", "model": "vit"},
    "convolutions": {"kind": "image_classification", "train": "images.npz", "model": "resnet"},
    "rows": {"kind": "tabular", "train": "rows.csv", "target": "kind"},
    "quantities": {"kind": "tabular", "train": "rows.csv", "target": "price"},
}
NUMBERS, TREES = ("numbers", "quantities"), ("rows", "quantities")


@pytest.fixture
def used(tmp_path):
    """A checkpoint of a kind, in use; with the inputs that it reads, and its workload."""
    count = 4 * len(TEXTS)
    marks = np.arange(count) % 2
    topics = [["x", "y", "z"][row % 3] for row in range(count)]
    columns = {"topic": topics, "good": marks, "bad": 1 - marks, "stars": np.arange(count) % 5}
    texts = pd.DataFrame({"text": TEXTS * 4, "text2": TEXTS[::-1] * 4, **columns})
    texts.to_csv(tmp_path / "texts.csv", index=False)
    rows = pd.DataFrame({"area": np.arange(count) % 7, "price": np.arange(count) / 2 + 0.25})
    rows["kind"] = topics
    rows.to_csv(tmp_path / "rows.csv", index=False)
    pixels, names = images()
    np.savez(tmp_path / "images.npz", images=pixels, labels=names)

    def make(kind, **settings):
        part = {**USED[kind], "validation": 0.25}
        if "model" in part:
            small_models.write(tmp_path / part["model"], part["model"], TEXTS)
            if part["model"] == "vit":
                processor.write(tmp_path / "vit", 16, (0.5,) * 3, (0.25,) * 3)
        task = tasks.load(part, tmp_path)
        unit = "steps" if kind in TREES else "epochs"
        setup = Setup(settings, 5, budget_from({unit: 1}), tmp_path / "run")
        run = task.start(setup, task.prepare(settings))
        folder = reports_of(run)[-1].checkpoint
        given = {"texts.csv": TEXTS, "images.npz": pixels, "rows.csv": rows}[part["train"]]
        if kind == "pairs":
            given = list(zip(TEXTS, TEXTS[::-1], strict=True))
        return folder, given, getattr(run, "_workload", None)

    return make


def as_list(given):
    """Inputs one by one."""
    if isinstance(given, pd.DataFrame):
        return [given.iloc[[row]] for row in range(len(given))]
    return [given[row : row + 1] for row in range(len(given))]


@pytest.mark.cases(10)
@pytest.mark.parametrize("kind", USED)
def test_batches_predict_what_single_inputs_do(kind, used):
    folder, given, _ = used(kind)
    model = predict.load(folder)
    calls = []
    if kind not in TREES:
        inside = getattr(model, "_network", model)
        of_torch = next(each for each in vars(inside).values() if isinstance(each, torch.nn.Module))
        of_torch.register_forward_pre_hook(lambda *_: calls.append(1))
    together = model.predict(given, batch_size=4)
    assert kind in TREES or len(calls) == -(-len(given) // 4)
    alone = [answer for one in as_list(given) for answer in model.predict(one)]
    if kind in NUMBERS:
        assert together == pytest.approx(alone, rel=1e-4)
    else:
        assert together == alone
    assert model.predict(given[:0]) == []
    with pytest.raises(ValueError, match="a batch has at least 1 input, not 0"):
        model.predict(given, batch_size=0)


@pytest.mark.cases(10)
@pytest.mark.parametrize("kind", USED)
def test_probabilities_name_the_likeliest_as_predict_does(kind, used):
    folder, given, _ = used(kind)
    model = predict.load(folder)
    if kind in NUMBERS:
        with pytest.raises(ValueError, match="predicts a number, which has no probabilities"):
            model.probabilities(given)
        return
    found = model.probabilities(given, batch_size=3)
    assert found.shape == (len(given), len(model.labels))
    assert np.allclose(found, model.probabilities(given), atol=1e-5)
    if kind == "labels":
        likely = [sorted(np.array(model.labels)[row > 0.5].tolist()) for row in found]
    else:
        assert found.sum(axis=1) == pytest.approx(1.0, abs=1e-5)
        likely = np.array(model.labels)[found.argmax(axis=1)].tolist()
    assert model.predict(given) == likely
    assert model.probabilities(given[:0]).shape == (0, len(model.labels))


@pytest.mark.cases(3)
@pytest.mark.parametrize("kind", ["pretrained images", "convolutions", "small images"])
def test_an_image_model_scores_as_in_its_evaluation(kind, used):
    folder, _, workload = used(kind)
    workload.model.eval()
    with torch.inference_mode():
        scores = workload.outputs(workload.batch(np.arange(8)))
    data = tasks.load({**USED[kind], "validation": 0.25}, folder.parents[1]).prepare({})
    found = predict.load(folder).probabilities(data.train[:8])
    assert found == pytest.approx(scores.softmax(dim=1).numpy(), abs=1e-4)


def test_a_pretrained_image_model_reads_other_sizes_and_grey_images(used):
    folder, _, _ = used("pretrained images")
    model = predict.load(folder)
    assert model.labels == ("lying", "standing")
    wide = np.zeros((3, 20, 31, 3), np.uint8)
    assert len(model.predict(wide)) == len(model.predict(wide[..., 0])) == 3
    for odd in (wide[..., :2], wide.astype(np.float32), wide[0, 0], wide[:, :0]):
        with pytest.raises(ValueError, match=r"give uint8 of shape \(n, height, width, 3\)"):
            model.predict(odd)


@pytest.mark.parametrize(
    ("kind", "given", "what"),
    [
        ("classes", "one text", "a list of texts, not one text; put it into a list"),
        ("classes", [("a", "b")], r"a list of texts, not \('a', 'b'\)"),
        ("classes", [None], "a list of texts, not None"),
        ("pairs", ["one text"], "pairs of texts, not 'one text'"),
        ("pairs", [("a", "b", "c")], "pairs of texts, not"),
        ("pairs", [("a", None)], "pairs of texts, not"),
    ],
)
def test_texts_of_another_form_are_refused(kind, given, what, used):
    folder, _, _ = used(kind)
    with pytest.raises(ValueError, match=f"the model reads {what}"):
        predict.load(folder).predict(given)


@pytest.mark.parametrize("kind", ["classes", "pretrained images"])
def test_a_folder_that_lacks_weights_is_refused(kind, used):
    folder, _, _ = used(kind)
    small_models.rewrite(folder, lambda weights: dict(list(weights.items())[1:]))
    with pytest.raises(ValueError, match=r"has no weights for .*; it is not whole"):
        predict.load(folder)


def test_adapters_alone_are_refused_with_how_to_merge_them(used):
    folder, _, _ = used("classes", lora=True)
    with pytest.raises(ValueError, match=r"holds adapters \(LoRA\), not a model; merge them"):
        predict.load(folder)


def test_a_model_of_tokens_is_for_transformers_to_load(tmp_path):
    transformers.GPT2Config().save_pretrained(tmp_path)
    with pytest.raises(
        FileNotFoundError, match=r"transformers loads it \(docs/final-training.md\)"
    ):
        predict.load(tmp_path)
