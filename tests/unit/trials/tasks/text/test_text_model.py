"""The models of pairs, of several labels and of numbers: they learn, continue from checkpoints as
if nothing had happened, and are used by others."""

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
import transformers
from scipy import stats
from sklearn import metrics as scikit

from support.running.runs import reports_of
from trials import predict, tasks
from trials.checkpoints.checkpoints import Checkpoints
from trials.descriptions.text import METRICS
from trials.running.arithmetic import Arithmetic
from trials.running.report_grid import budget_from
from trials.tasks.final import training as final
from trials.tasks.final.parts import FinalParts
from trials.tasks.workloads import heads as scores
from unit.trials.conftest import FILLER, PART, TextLab

WORDS = {"card": 30.0, "fee": -10.0, "rate": 5.0}
SCRATCH = {"scratch": {"layers": 1, "width": 32, "heads": 2, "vocabulary": 120}}
PAIRS = {"text": ["first", "second"], "label": "topic"}
NAMES = ["card", "fee"]
LABELS = {"label": NAMES}
NUMBER = {"kind": "text_regression", "text": "second", "label": "score"}
SHAPES = {"pairs": PAIRS, "labels": LABELS, "number": NUMBER}
TARGETS = {"pairs": "class", "labels": "labels", "number": "number"}
LEARNING = {"learning_rate": 1e-2, "batch_size": 16, "weight_decay": 0.0, "dropout": 0.0}


def said(draw: random.Random, words: list[str]) -> str:
    """A text with some words in it."""
    text = [*draw.choices(FILLER, k=draw.randint(1, 3)), *words]
    draw.shuffle(text)
    return " ".join(text)


def table(count: int, seed: int = 0) -> pd.DataFrame:
    """Texts with any of the words; pairs whose class, and a number, follow from the word in the
    second text alone."""
    draw = random.Random(seed)
    rows: list[dict[str, Any]] = []
    for _ in range(count):
        words = [word for word in NAMES if draw.random() < 0.4]
        topic, other = draw.choice(list(WORDS)), draw.choice(list(WORDS))
        marks = {word: int(word in words) for word in NAMES}
        texts = {
            "text": said(draw, words),
            "first": said(draw, [other]),
            "second": said(draw, [topic]),
        }
        score = 1000 + WORDS[topic] + draw.gauss(0, 1)
        rows.append({**texts, **marks, "topic": topic, "score": round(score, 2)})
    return pd.DataFrame(rows)


@pytest.fixture
def lab(tmp_path: Path) -> TextLab:
    """Training and test files of every shape."""
    table(200).to_csv(tmp_path / "train.csv", index=False)
    table(40, seed=1).to_csv(tmp_path / "test.csv", index=False)
    return TextLab(tmp_path, {**PART, "model": SCRATCH})


def trained(
    lab: TextLab, epochs: int, out: str = "run", params: Any = LEARNING, **changes: Any
) -> Any:
    """The last report of a run."""
    task = lab.task(**changes)
    setup = lab.setup(out, {"epochs": epochs, "report_every": epochs}, **params)
    return reports_of(task.start(setup, task.prepare(params)))[-1]


def baseline(shape: str) -> dict[str, float]:
    """The metrics of the best that says the same of every text."""
    rows = table(200)
    if shape == "pairs":
        return {"accuracy": rows["topic"].value_counts(normalize=True).max()}
    if shape == "labels":
        truth = rows[NAMES].to_numpy()
        guesses = (np.zeros_like(truth), np.ones_like(truth))
        found = [scores.of_labels(truth, guess) for guess in guesses]
        return {name: max(each[name] for each in found) for name in found[0]}
    away = rows["score"] - rows["score"].mean()
    errors = {"mse": (away**2).mean(), "mae": away.abs().mean()}
    return {"pearson": 0.0, "spearman": 0.0, **errors}


SMALLER = ("mse", "mae")


@pytest.mark.parametrize("shape", SHAPES)
def test_each_shape_learns_more_than_what_is_most_common(shape, lab):
    params = {**LEARNING, "learning_rate": 5e-3, "batch_size": 8}
    found = trained(lab, 24, params=params, **SHAPES[shape]).metrics
    assert found.keys() == METRICS[TARGETS[shape]]
    for name, trivial in baseline(shape).items():
        if name in SMALLER:
            assert found[name] < 0.6 * trivial, found
        else:
            assert found[name] > trivial + 0.4 * (1 - trivial), found


RARE = {
    "one class": {"label": "kind", "class_weights": "balanced"},
    "several labels": {"label": ["rare", "usual"], "class_weights": "balanced"},
}


def write_unbalanced(path: Path) -> None:
    """One text in twenty is of a rare class. Its word stands in some texts of the other class too,
    in so many that the usual class is the likelier one for it."""
    draw = random.Random(0)
    rows = []
    for number in range(240):
        is_rare = number % 20 == 0
        words = ["card"] if is_rare or draw.random() < 0.15 else ["fee"]
        marks = {"rare": int(is_rare), "usual": int(words == ["fee"])}
        rows.append({"text": said(draw, words), "kind": "rare" if is_rare else "usual", **marks})
    pd.DataFrame(rows).to_csv(path, index=False)


def rare_recall(lab: TextLab, **changes: Any) -> float:
    """The share of the rare texts of the training file that a trained model finds."""
    last = trained(lab, 12, **changes, validation="train.csv")
    rows = pd.read_csv(lab.folder / "train.csv").query("rare == 1")
    found = predict.load(last.checkpoint).predict(rows["text"].tolist())
    return float(np.mean(["rare" in answer for answer in found]))


@pytest.mark.thorough
@pytest.mark.parametrize("name", RARE)
def test_weights_raise_the_recall_of_a_rare_class(name, lab):
    write_unbalanced(lab.folder / "train.csv")
    weighted = {**RARE[name]}
    plain = {"label": weighted["label"]}
    assert rare_recall(lab, out="plain", **plain) < 0.3
    assert rare_recall(lab, out="weighted", **weighted) > 0.7


BALANCED = {"label": "topic", "class_weights": "balanced"}


def test_the_loss_of_a_weighted_class_counts_by_its_weight(lab):
    def losses(**weights: Any) -> tuple[torch.Tensor, torch.Tensor]:
        task = lab.task(label="topic", **weights)
        workload = task.workload(
            task.prepare({}), task.SETTINGS(), lab.setup("run", {"epochs": 1}, dropout=0.0)
        )
        workload.model.eval()
        rows = np.arange(40)
        of_each = [workload.loss_sum(workload.batch(rows[row : row + 1])) for row in rows]
        return torch.stack(of_each), workload.batch(rows).labels

    plain, labels = losses()
    weighted, _ = losses(class_weights="balanced")
    weights = torch.from_numpy(lab.task(**BALANCED).prepare({}).class_weights)
    assert len(set(weights.tolist())) == 3
    assert torch.allclose(weighted, weights[labels] * plain, rtol=1e-5)


HARD = {
    "dropout": 0.3,
    "batch_size": 16,
    "micro_batch": 5,
    "learning_rate": 3e-3,
    "schedule": "cosine",
    "ema": 0.9,
}


@pytest.mark.parametrize("lora", [False, True], ids=["whole", "lora"])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_killed_run_goes_on_bit_for_bit(shape, lora, lab, without_timings):
    weights = {} if shape == "number" else {"class_weights": "balanced"}
    task = lab.task(**SHAPES[shape], **weights)
    settings = {**HARD, "lora": True, "lora_rank": 2} if lora else HARD
    data = task.prepare(settings)
    budget = {"steps": 9, "report_every": 3}
    whole = reports_of(task.start(lab.setup("a", budget, **settings), data))

    killed = lab.setup("b", budget, **settings)
    run = iter(task.start(killed, data))
    reports = [next(item for item in run if item)]
    next(run), next(run)  # two more steps, of which nothing is saved
    torch.manual_seed(999)  # whatever happened in between must not matter
    again = replace(killed, resume_from=Checkpoints(lab.folder / "b").last)
    assert again.resume_from is not None
    reports += reports_of(task.start(again, data))
    assert without_timings(reports) == without_timings(whole)


def version_of(lab: TextLab, shape: str) -> tuple[Path, Any]:
    """A final training with a test file, and what is told beside it."""
    task = lab.task(**SHAPES[shape], test="test.csv")
    plan = final.Plan(LEARNING, 5, budget_from({"epochs": 6}), False, "cpu", {}, Arithmetic(1))
    version = final.train(task, plan, lab.folder / "models", lambda line: None)
    assert version is not None
    return version, json.loads((version / "training.json").read_text())["metrics"]["test"]


@pytest.mark.thorough
@pytest.mark.parametrize("shape", SHAPES)
def test_what_is_predicted_has_the_metrics_that_were_measured(shape, lab):
    version, measured = version_of(lab, shape)
    rows = table(40, seed=1)
    model = predict.load(version)
    if shape == "pairs":
        found = model.predict(rows[["first", "second"]].to_numpy().tolist())
        assert measured["accuracy"] == pytest.approx(scikit.accuracy_score(rows["topic"], found))
    elif shape == "labels":
        found = [[int(word in answer) for word in NAMES] for answer in model.predict(rows["text"])]
        truth = rows[NAMES]
        assert measured["exact_match"] == pytest.approx(scikit.accuracy_score(truth, found))
        micro = scikit.f1_score(truth, found, average="micro")
        assert measured["micro_f1"] == pytest.approx(micro)
        macro = scikit.f1_score(truth, found, average="macro")
        assert measured["macro_f1"] == pytest.approx(macro)
    else:
        found = model.predict(rows["second"])
        truth = rows["score"]
        assert measured["mse"] == pytest.approx(scikit.mean_squared_error(truth, found), rel=1e-3)
        assert measured["mae"] == pytest.approx(scikit.mean_absolute_error(truth, found), rel=1e-3)
        assert measured["pearson"] == pytest.approx(
            stats.pearsonr(truth, found).statistic, abs=1e-4
        )
        assert np.mean(found) == pytest.approx(truth.mean(), abs=20), "in the unit of the data"
    assert model.predict([]) == []
    with pytest.raises(ValueError, match="the model reads"):
        model.predict(["a text"] if shape == "pairs" else [["a text", "another"]])


@pytest.mark.parametrize("shape", SHAPES)
def test_the_files_tell_transformers_what_the_scores_are(shape, lab):
    task = lab.task(**SHAPES[shape])
    workload = task.workload(task.prepare({}), task.SETTINGS(), lab.setup("run", {"epochs": 1}))
    (lab.folder / "written").mkdir()
    workload.write(lab.folder / "written", workload.weights())
    transformers.logging.disable_progress_bar()
    score = transformers.pipeline(
        "text-classification", str(lab.folder / "written"), device="cpu", top_k=None
    )
    pair = {"text": "why a card", "text_pair": "the fee"}
    answers = score(pair) if shape == "pairs" else score(["a fee"])[0]
    found = {each["label"]: each["score"] for each in answers}
    match shape:
        case "pairs":
            assert sum(found.values()) == pytest.approx(1.0)
            batch = workload.batch(np.arange(3))
            assert batch.inputs["token_type_ids"].shape == batch.inputs["input_ids"].shape
            assert set(batch.inputs["token_type_ids"].flatten().tolist()) == {0, 1}
        case "labels":
            assert found.keys() == set(NAMES)
            assert all(0.3 < value < 0.7 for value in found.values())
        case "number":
            assert found.keys() == {"score (standardised)"}


def test_training_on_all_samples_takes_their_types_and_targets_with_them(lab):
    task = lab.task(**PAIRS)
    data = task.prepare({})
    joined = FinalParts(task).joined(data)
    count = len(data.train.lengths)
    assert len(joined.train_types.lengths) == len(joined.train_labels) == 200
    for texts, learnt, held_out in (
        (joined.train, data.train, data.validation),
        (joined.train_types, data.train_types, data.validation_types),
    ):
        for row in (0, count - 1):
            assert np.array_equal(texts.row(row), learnt.row(row))
        assert np.array_equal(texts.row(count), held_out.row(0))


def test_a_model_without_token_types_reads_pairs_by_its_separator(lab):
    """RoBERTa and DistilBERT have none."""
    tokenizer = tasks.huggingface.tokenizer.word_pieces(list(table(160)["first"]), 120)
    config = transformers.DistilBertConfig(
        vocab_size=len(tokenizer), dim=16, n_layers=1, n_heads=2, hidden_dim=32
    )
    transformers.DistilBertModel(config).save_pretrained(lab.folder / "distilbert")
    tokenizer.save_pretrained(lab.folder / "distilbert")
    task = lab.task(**PAIRS, model="distilbert")
    data = task.prepare({})
    assert data.train_types is None
    assert trained(lab, 1, **PAIRS, model="distilbert").metrics["loss"] > 0
