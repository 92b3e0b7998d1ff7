"""Pairs of texts, several labels, numbers and class weights: what is read from files, and what is
said of files and study files that cannot be used."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import transformers
from sklearn.utils.class_weight import compute_class_weight

from hpsearch.errors import SpecError
from hpsearch.study_file.reading import parse
from support.files.written_tokenizers import tokenizer_in
from trials.contract import TaskError
from trials.tasks.datasets.prepared import digest_of
from trials.tasks.huggingface import tokenizer as text_tokenizer
from trials.tasks.text.targets import SeveralLabels
from unit.trials.conftest import PART, TextLab

WORDS = ("card", "rate", "fee")
PAIRS = {"text": ["question", "answer"], "label": "topic"}
COLUMNS = {"label": ["card", "fee"]}
NUMBER = {"kind": "text_regression", "label": "score"}
SHAPES = {
    "pairs": PAIRS,
    "columns": COLUMNS,
    "number": NUMBER,
    "pairs with labels": {**COLUMNS, "text": ["question", "answer"]},
}


def rows(count: int = 24) -> pd.DataFrame:
    """A table with a column for every shape; the word of a text is its topic."""
    topics = [WORDS[row % 3] for row in range(count)]
    tags = {"card": "card", "rate": "", "fee": "card; fee"}
    return pd.DataFrame(
        {
            "text": [
                f"what about the {topic} number {row % 4}" for row, topic in enumerate(topics)
            ],
            "question": [f"is it {row % 4} or more" for row in range(count)],
            "answer": [f"the {topic}" for topic in topics],
            "topic": topics,
            "card": ["0" if topic == "rate" else "1" for topic in topics],
            "fee": ["1" if topic == "fee" else "0" for topic in topics],
            "tags": [tags[topic] for topic in topics],
            "score": [f"{row % 5 * 0.5 + 10}" for row in range(count)],
        }
    )


def write(folder: Path, table: pd.DataFrame, name: str = "train.csv") -> Path:
    path = folder / name
    table.to_csv(path, index=False)
    return path


def prepared(folder, params=None, **changes):
    return TextLab(folder).task(**changes).prepare(params or {})


def problems(folder, **changes):
    return TextLab(folder).problems(**changes)


def spoilt(column: str, value: str, row: int = 3) -> pd.DataFrame:
    """The table with another value in a column, in a row counted from 1."""
    table = rows()
    table.loc[row - 1, column] = value
    return table


# ---------------------------------------------------------------------------------- what is read


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_reads_its_columns_and_finds_no_mistake(shape, tmp_path):
    write(tmp_path, rows())
    write(tmp_path, rows(9), "other.csv")
    assert problems(tmp_path, **SHAPES[shape]) == {}
    files = {"validation": "other.csv", "test": "other.csv"}
    assert problems(tmp_path, **SHAPES[shape], **files) == {}


def test_a_pair_is_encoded_with_a_separator_and_the_types_of_its_tokens(tmp_path):
    write(tmp_path, rows())
    data = prepared(tmp_path, **PAIRS, validation="train.csv")
    tokenizer = tokenizer_in(data.tokenizer_files)
    expected = tokenizer("is it 0 or more", "the card")
    assert data.train.row(0).tolist() == expected["input_ids"]
    assert data.train_types.row(0).tolist() == expected["token_type_ids"]
    tokens = tokenizer.convert_ids_to_tokens(expected["input_ids"])
    assert tokens.count("[SEP]") == 2
    second = [token for token, kind in zip(tokens, expected["token_type_ids"], strict=True) if kind]
    assert second == ["the", "card", "[SEP]"]


def test_the_longer_text_of_a_pair_is_cut_first(tmp_path):
    table = rows()
    table["question"] = "is it so " * 30
    write(tmp_path, table)
    data = prepared(tmp_path, {"max_length": 8}, **PAIRS)
    assert data.train.lengths.max() == 8
    assert (data.train_types.tokens == 1).sum() == 3 * len(data.train.lengths)


def test_a_tokenizer_that_does_not_part_pairs_is_refused(tmp_path):
    write(tmp_path, rows())
    tokenizer = text_tokenizer.byte_pairs(list(rows()["text"]), 280)
    config = transformers.GPT2Config(vocab_size=280, n_embd=8, n_layer=1, n_head=1, n_positions=64)
    config.save_pretrained(tmp_path / "gpt")
    tokenizer.save_pretrained(tmp_path / "gpt")
    with pytest.raises(TaskError, match=r"task\.text: .*nothing between the texts of a pair"):
        prepared(tmp_path, {"max_length": 32}, **PAIRS, model="gpt")


def test_columns_of_0_and_1_are_labels(tmp_path):
    write(tmp_path, rows())
    columns = prepared(tmp_path, **COLUMNS)
    assert columns.labels == ("card", "fee")
    table = rows()
    truth = table[["card", "fee"]].to_numpy(dtype=np.float32)
    found = np.concatenate([columns.train_labels, columns.validation_labels])
    assert sorted(map(tuple, found)) == sorted(map(tuple, truth))


@pytest.mark.parametrize("name", ["train.parquet", "train.jsonl"])
def test_marks_may_be_numbers_or_true_and_false(name, tmp_path):
    table = rows()
    table["card"] = table["card"] == "1"
    table["fee"] = table["fee"].astype(float)
    if name.endswith("parquet"):
        table.to_parquet(tmp_path / name)
    else:
        table.to_json(tmp_path / name, orient="records", lines=True)
    write(tmp_path, rows())
    found, expected = (prepared(tmp_path, **COLUMNS, train=file) for file in (name, "train.csv"))
    assert np.array_equal(found.train_labels, expected.train_labels)


def test_rare_labels_get_their_share_of_the_validation_rows_and_of_the_training_rows():
    values = [("common",)] * 60 + [("common", "rare")] * 8 + [()] * 32
    strata = SeveralLabels.strata(None, values)
    assert strata[0] == "common"
    assert strata[60] == "rare"
    assert strata[-1] == ""


def test_numbers_are_standardised_by_the_training_rows_alone(tmp_path):
    write(tmp_path, rows())
    other = rows(9)
    other["score"] = "100"
    write(tmp_path, other, "other.csv")
    data = prepared(tmp_path, **NUMBER, validation="other.csv")
    numbers = rows()["score"].astype(float)
    assert data.mean == pytest.approx(numbers.mean())
    assert data.deviation == pytest.approx(numbers.std(ddof=0))
    assert data.train_labels.mean() == pytest.approx(0, abs=1e-6)
    assert data.train_labels.std() == pytest.approx(1, rel=1e-6)
    assert data.validation_labels == pytest.approx((100 - data.mean) / data.deviation)


def test_classes_that_are_numbers_stay_classes_where_no_number_is_asked_for(tmp_path):
    write(tmp_path, rows(40))
    data = prepared(tmp_path, label="score")
    assert data.target == "class"
    assert data.labels == ("10.0", "10.5", "11.0", "11.5", "12.0")


def test_balanced_weights_are_those_of_scikit_learn_and_of_labels_what_lacks_each(tmp_path):
    table = rows(30)
    table.loc[:20, "topic"] = "card"
    write(tmp_path, table)
    weights = prepared(tmp_path, label="topic", class_weights="balanced", validation="train.csv")
    expected = compute_class_weight("balanced", classes=np.array(weights.labels), y=table["topic"])
    assert weights.class_weights == pytest.approx(expected)
    several = prepared(tmp_path, **COLUMNS, class_weights="balanced", validation="train.csv")
    assert several.class_weights == pytest.approx([10 / 20, 20 / 10])


@pytest.mark.parametrize("shape", SHAPES)
def test_prepared_data_comes_back_from_the_cache_as_it_was(shape, tmp_path):
    write(tmp_path, rows())
    weights = {} if shape == "number" else {"class_weights": "balanced"}
    first, second = (prepared(tmp_path, **SHAPES[shape], **weights) for _ in range(2))
    assert digest_of(first) == digest_of(second)
    assert (first.labels, first.mean) == (second.labels, second.mean)
    assert np.array_equal(first.validation_labels, second.validation_labels)
    if first.pairs:
        assert np.array_equal(first.train_types.tokens, second.train_types.tokens)


# --------------------------------------------------------------------------- what cannot be used

IN_ROW = "(the first after the header is row 1)"
BAD_FILES = {
    "an empty second text": (PAIRS, spoilt("answer", ""), "task.text[1]",
     "1 row of {path} without 'answer': row 3 " + IN_ROW),
    "a blank first text": (PAIRS, spoilt("question", "  "), "task.text[0]",
     "1 row of {path} without 'question': row 3"),
    "a pair with a missing column": (PAIRS, rows().drop(columns="answer"), "task.text[1]",
     "{path} has no column 'answer', it has"),
    "a missing column of marks": (COLUMNS, rows().drop(columns="fee"), "task.label[1]",
     "{path} has no column 'fee'"),
    "a mark that is not 0 or 1": (COLUMNS, spoilt("fee", "2"), "task.label[1]",
     "1 row of {path} where 'fee' is not 0 or 1: row 3 ('2') " + IN_ROW),
    "a missing mark": (COLUMNS, spoilt("fee", ""), "task.label[1]",
     "1 row of {path} without 'fee': row 3"),
    "a word for a number": (NUMBER, spoilt("score", "many"), "task.label",
     "1 row of {path} where 'score' is not a finite number: row 3 ('many') " + IN_ROW),
    "a number that is infinite": (NUMBER, spoilt("score", "inf"), "task.label",
     "is not a finite number: row 3 ('inf')"),
    "a number that is none": (NUMBER, spoilt("score", "nan"), "task.label",
     "is not a finite number: row 3 ('nan')"),
    "a number that is too large": (NUMBER, spoilt("score", "1e300"), "task.label",
     "is not a finite number: row 3 ('1e300')"),
    "a missing number": (NUMBER, spoilt("score", ""), "task.label",
     "1 row of {path} without 'score': row 3"),
    "all numbers the same": (NUMBER, rows().assign(score="3"), "task.label",
     "all rows of {path} have one number in 'score'"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_FILES)
def test_a_bad_file_is_told_with_its_column_and_row(name, tmp_path):
    shape, table, where, what = BAD_FILES[name]
    path = write(tmp_path, table)
    found = problems(tmp_path, **shape)
    assert what.format(path=path) in found[where], found


def test_mistakes_in_validation_and_test_files_name_the_file(tmp_path):
    write(tmp_path, rows())
    other = write(tmp_path, spoilt("score", "x", row=9), "other.csv")
    found = problems(tmp_path, **NUMBER, validation="other.csv")
    assert (
        f"1 row of {other} where 'score' is not a finite number: row 9 ('x')" in found["task.label"]
    )


BAD_PARTS = {
    "three texts": ({"text": ["a", "b", "c"]}, "task.text", "must be a list of 2, not of 3"),
    "one text in a list": ({"text": ["text"]}, "task.text", "must be a list of 2, not of 1"),
    "a column that is no name": ({"text": ["text", 5]}, "task.text",
     "must be a list of texts, and has 5"),
    "the same text twice": ({"text": ["text", "text"]}, "task.text", "names 'text' twice"),
    "no label": ({"label": []}, "task.label", "must be a list of at least 1"),
    "a label twice": ({"label": ["card", "card"]}, "task.label", "names 'card' twice"),
    "an unknown word": ({"class_weights": "balance"}, "task.class_weights",
     "must be balanced, not"),
    "weights of numbers": ({**NUMBER, "class_weights": "balanced"}, "task.class_weights",
     "is not a key of a text_regression task"),
    "several numbers": ({**NUMBER, "label": ["score"]}, "task.label", "must be text, not ['"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_PARTS)
def test_a_mistake_in_the_task_part_says_where_and_what(name, tmp_path):
    changes, where, what = BAD_PARTS[name]
    write(tmp_path, rows())
    found = problems(tmp_path, **{"label": "topic", **changes})
    assert what in found[where], found


# --------------------------------------------------------------------------------- the study file

STUDY = {
    "study": "shapes",
    "space": {"learning_rate": {"type": "float", "low": 1.0e-4, "high": 1.0e-2}},
    "budget": {"trials": 2, "per_trial": {"epochs": 2}},
}
METRICS = {
    "pairs": ("accuracy", "pearson"),
    "columns": ("micro_f1", "accuracy"),
    "number": ("spearman", "accuracy"),
}
"""A metric that each shape has, and one that it has not."""


@pytest.mark.parametrize("shape", METRICS)
def test_an_objective_must_be_a_metric_of_the_shape(shape, tmp_path):
    right, wrong = METRICS[shape]

    def study(metric, **more):
        objective = {"metric": metric, "direction": "maximize"}
        task = {**PART, **SHAPES[shape]}
        return json.dumps({**STUDY, **more, "task": task, "objective": objective})

    assert parse(study(right), base=tmp_path).objective.metric == right
    with pytest.raises(SpecError, match=f"objective.metric: the task does not report '{wrong}'"):
        parse(study(wrong), base=tmp_path)
    with pytest.raises(SpecError, match=f"the task does not report '{wrong}'"):
        parse(study(right, constraints={wrong: {"min": 0}}), base=tmp_path)


def test_numbers_have_no_label_smoothing(tmp_path):
    objective = {"metric": "mae", "direction": "minimize"}
    study = {**STUDY, "task": {**PART, **NUMBER}, "objective": objective}
    study["settings"] = {"label_smoothing": 0.1}
    with pytest.raises(SpecError, match=r"settings\.label_smoothing: the task has no such setting"):
        parse(json.dumps(study), base=tmp_path)
