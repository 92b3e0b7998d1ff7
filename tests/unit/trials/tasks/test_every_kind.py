"""What holds for tasks of every kind: runs are resumed, micro-batches add up, formats say the
same."""

from dataclasses import replace
from statistics import fmean
from typing import Any

import numpy as np
import pandas as pd
import pytest

from trials.contract import Goal, Report
from trials.tasks.datasets.prepared import digest_of
from unit.trials.tasks.images import test_pretrained as pretrained
from unit.trials.tasks.images import test_task as images
from unit.trials.tasks.sequences import test_language as language
from unit.trials.tasks.sequences import test_pairs as pairs
from unit.trials.tasks.sequences import test_tokens as tokens
from unit.trials.tasks.tabular import test_task as tabular

LABS = {
    "language": language.lab_in,
    "pairs": pairs.lab_in,
    "tokens": tokens.lab_in,
    "images": images.lab_in,
    "pretrained images": pretrained.lab_in,
    "tabular": tabular.lab_in,
}


CHANGED: dict[str, Any] = {"flip": True, "shift": 2}
RESUMED: dict[str, tuple[str, str | None, dict[str, Any], dict[str, Any], int]] = {
    "language": ("language", None, {}, {}, 20),
    "pairs": ("pairs", None, {}, {}, 9),
    "pairs with a T5": ("pairs", "t5", {}, {}, 9),
    "pairs with a BART": ("pairs", "bart", {}, {}, 9),
    "tokens": ("tokens", None, {}, {}, 8),
    "changed images": ("images", None, {}, {**CHANGED, "dropout": 0.1}, 6),
    "images with a ViT": ("pretrained images", "vit", {}, CHANGED, 6),
    "images with a ResNet": ("pretrained images", "resnet", {}, CHANGED, 6),
}
"""The lab of a kind, its model, changes of its part, settings, and the steps before it stops."""


@pytest.mark.cases(len(RESUMED))
@pytest.mark.parametrize("name", RESUMED)
def test_a_resumed_run_goes_on_bit_for_bit(name, tmp_path, without_timings):
    kind, model, changes, params, after = RESUMED[name]
    lab = LABS[kind](tmp_path)
    if kind == "pairs" and model is not None:
        pairs.pretrained(tmp_path, model)
    built = lab.task(**changes, **({} if model is None else {"model": model}))
    whole, again = lab.whole_and_resumed(built, after, **params)
    assert 0 < len(again) < len(whole)
    assert without_timings(again) == without_timings(whole)[-len(again) :]


PLAIN = {"dropout": 0.0, "optimizer": "sgd", "learning_rate": 0.1}
MICRO: dict[str, tuple[dict[str, Any], float]] = {
    "language": ({**PLAIN, "batch_size": 500}, 1e-5),
    "pairs": ({**PLAIN, "batch_size": 500}, 1e-5),
    "tokens": (PLAIN, 1e-4),
    "images": ({**CHANGED, "optimizer": "sgd", "learning_rate": 0.05}, 1e-4),
    "pretrained images": ({"flip": True, "optimizer": "sgd", "learning_rate": 0.05}, 1e-4),
}


@pytest.mark.cases(len(MICRO))
@pytest.mark.parametrize("kind", MICRO)
def test_micro_batches_add_up_though_their_samples_differ(kind, tmp_path):
    lab = LABS[kind](tmp_path)
    params, nearly = MICRO[kind]
    built = lab.task()
    if kind in ("language", "pairs", "tokens"):
        assert len(np.unique(built.prepare(lab.params).train.weights)) > 1
    whole, *others = lab.train_losses(built, (None, 1, 5), **params)
    for losses in others:
        assert losses == pytest.approx(whole, rel=nearly)


@pytest.mark.cases(len(LABS))
@pytest.mark.parametrize("kind", LABS)
def test_a_rehearsal_measures_a_step(kind, tmp_path):
    lab = LABS[kind](tmp_path)
    built = lab.task()
    found = built.rehearse(lab.setup(), built.prepare(lab.params))
    assert found["step_seconds"] > 0
    assert found["checkpoint_bytes"] > 100


FORMATS: dict[str, tuple[Any, dict[str, str], tuple[str, ...]]] = {
    "language": (lambda: pd.DataFrame({"body": language.documents()}), {"text": "body"},
     ("csv", "parquet", "jsonl")),
    "pairs": (lambda: pairs.pairs().rename(columns={"source": "long", "target": "short"}),
     {"source": "long", "target": "short"}, ("csv", "parquet", "jsonl")),
    "tokens": (lambda: pd.DataFrame(tokens.sentences(), columns=["words", "ner"]),
     {"tokens": "words", "tags": "ner"}, ("parquet", "jsonl")),
    "tabular": (tabular.table, {}, ("csv", "parquet", "jsonl")),
}  # fmt: skip
"""A table of what the plain file holds, the fields that name its columns, and its formats."""


@pytest.mark.cases(len(FORMATS))
@pytest.mark.parametrize("kind", FORMATS)
def test_every_format_gives_the_same_data(kind, tmp_path):
    lab = LABS[kind](tmp_path)
    make, fields, formats = FORMATS[kind]
    frame = make()
    expected = digest_of(lab.task().prepare(lab.params))
    for name in formats:
        path = lab.folder / f"other.{name}"
        match name:
            case "csv":
                frame.to_csv(path, index=False)
            case "parquet":
                frame.to_parquet(path)
            case "jsonl":
                frame.to_json(path, orient="records", lines=True)
        found = lab.task(train=path.name, **fields).prepare(lab.params)
        assert digest_of(found) == expected, name


@pytest.mark.parametrize("kind", ["images", "tabular"])
def test_the_last_report_has_the_results_of_all_samples_whose_mean_is_the_objective(kind, tmp_path):
    lab = LABS[kind](tmp_path)
    for metric in ("accuracy", "loss") if kind == "tabular" else ("accuracy",):
        setup = replace(lab.setup(out=metric), goal=Goal(metric, maximize=True))
        built = lab.task()
        data = built.prepare(setup.params)
        reports = [item for item in built.start(setup, data) if isinstance(item, Report)]
        assert [each.samples for each in reports[:-1]] == [None] * (len(reports) - 1)
        assert reports[-1].samples
        assert fmean(reports[-1].samples) == pytest.approx(reports[-1].metrics[metric])
