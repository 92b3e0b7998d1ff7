"""Pretrained weights whose names do not match a model: a body is never random in silence."""

import json
import logging

import numpy as np
import pandas as pd
import pytest
import torch
import transformers

from support.files import small_models
from trials import tasks
from trials.contract import Setup, TaskError
from trials.running.report_grid import budget_from
from trials.tasks.huggingface import templates
from unit.trials.tasks.images.test_task import images
from unit.trials.tasks.sequences.test_tokens import sentences, write_conll

TEXTS = {"train": "rows.csv", "text": "text"}
TRAINED = {
    "text_classification": ("bert", {**TEXTS, "label": "kind"}),
    "text_classification of a decoder": ("gpt2", {**TEXTS, "label": "kind"}),
    "text_regression": ("bert", {**TEXTS, "label": "stars"}),
    "token_classification": ("bert", {"train": "train.conll"}),
    "language_modeling": ("llama", TEXTS),
    "language_modeling with tied heads": ("gpt2", TEXTS),
    "sequence_to_sequence": ("t5", {"train": "rows.csv", "source": "text", "target": "text"}),
    "image_classification": ("vit", {"train": "train.npz"}),
    "image_classification of convolutions": ("resnet", {"train": "train.npz"}),
    "image_classification of two towers": ("clip", {"train": "train.npz"}),
}
"""Kinds of task, with the family of a model."""


def prefixed(word):
    return lambda weights: {f"{word}{name}": value for name, value in weights.items()}


def inside(word):
    """Layers that are wrapped by themselves."""
    return lambda weights: {
        ".".join([*name.split(".")[:-1], word, name.split(".")[-1]]): value
        for name, value in weights.items()
    }


def without_first_half(weights):
    return dict(list(weights.items())[len(weights) // 2 :])


WRAPPED = {
    "torch.compile": prefixed("_orig_mod."),
    "DDP": prefixed("module."),
    "both": prefixed("module._orig_mod."),
    "FSDP": inside("_fsdp_wrapped_module"),
}
OTHERWISE = {
    "Lightning": prefixed("net.backbone."),
    "truncated": without_first_half,
    "of something else": lambda _: {"weight": torch.zeros(2)},
}


@pytest.fixture(autouse=True)
def _no_template_before():
    templates.pretrained.cache_clear()


@pytest.fixture
def folder(tmp_path):
    texts = [f"{first} {second} words" for first in "abcdef" for second in "uvwxyz"]
    count = len(texts)
    rows = {"text": texts, "kind": ["m", "n", "o"] * (count // 3), "stars": range(count)}
    pd.DataFrame(rows).to_csv(tmp_path / "rows.csv", index=False)
    write_conll(tmp_path / "train.conll", sentences(20))
    pixels, names = images()
    np.savez(tmp_path / "train.npz", images=pixels, labels=names)
    return tmp_path


def started(folder, kind, change=None, **options):
    """A run of a model whose weights were changed."""
    family, part = TRAINED[kind]
    texts = pd.read_csv(folder / "rows.csv")["text"].tolist()
    small_models.write(folder / "model", family, texts, **options)
    if change is not None:
        small_models.rewrite(folder / "model", change)
    part = {"kind": kind.partition(" ")[0], "validation": 0.25, "model": "model", **part}
    task = tasks.load(part, folder)
    params = {"max_length": 16} if family in ("bert", "gpt2", "llama", "t5") else {}
    setup = Setup(params, 5, budget_from({"epochs": 1}), folder / "run")
    return task.start(setup, task.prepare(params))


def refusal(folder, kind, change, **options):
    with pytest.raises(TaskError) as refused:
        started(folder, kind, change, **options)
    (problem,) = refused.value.problems
    assert problem.where == "task.model"
    return problem.what


@pytest.mark.cases(10)
@pytest.mark.parametrize("kind", TRAINED)
def test_a_head_may_be_new_and_is_said(folder, kind, caplog):
    with caplog.at_level(logging.WARNING, "trials"):
        run = started(folder, kind)
    said = [record.message for record in caplog.records]
    if run._workload.model.get_output_embeddings() is not None and kind != "language_modeling":
        assert said == [], "its head is the embeddings, which are there"
    else:
        (line,) = said
        assert f"{folder / 'model'} has no weights for " in line
        assert line.endswith("which train from random ones")
        assert "embedd" not in line


@pytest.mark.cases(10)
@pytest.mark.parametrize("kind", TRAINED)
def test_every_kind_of_task_refuses_a_body_without_weights(folder, kind):
    what = refusal(folder, kind, prefixed("_orig_mod."))
    assert "has no weights for " in what
    assert " and " in what.partition(", which would be random")[0], "and how many more"
    assert "such as _orig_mod." in what
    assert "model._orig_mod after torch.compile, model.module after DDP" in what


@pytest.mark.parametrize("with_head", [False, True], ids=["body", "with its head"])
@pytest.mark.parametrize("wrapper", WRAPPED)
def test_the_names_of_a_wrapper_are_recognised(folder, wrapper, with_head):
    auto = transformers.AutoModelForSequenceClassification if with_head else transformers.AutoModel
    what = refusal(folder, "text_classification", WRAPPED[wrapper], auto=auto)
    assert "bert.embeddings.word_embeddings.weight" in what
    assert "save the model inside: model._orig_mod" in what


@pytest.mark.parametrize("damage", OTHERWISE)
def test_other_names_are_refused_with_what_the_files_have(folder, damage):
    what = refusal(folder, "text_classification", OTHERWISE[damage])
    assert "has no weights for bert.embeddings." in what or "bert.encoder.layer.0" in what
    assert "name a folder whose config.json belongs to its weights" in what


def test_one_layer_too_many_is_enough(folder):
    def change(weights):
        config = folder / "model" / "config.json"
        config.write_text(json.dumps({**json.loads(config.read_text()), "num_hidden_layers": 3}))
        return weights

    assert "bert.encoder.layer.2.attention" in refusal(folder, "text_classification", change)


@pytest.mark.parametrize("family", ["text_classification", "language_modeling"])
def test_a_body_of_another_shape_is_refused_with_both_shapes(folder, family):
    def change(weights):
        name = next(name for name in weights if "embed" in name)
        return {**weights, name: weights[name][:4].clone()}

    what = refusal(folder, family, change)
    assert "has the shape (4," in what


def test_a_head_for_other_classes_is_new(folder, caplog):
    auto = transformers.AutoModelForSequenceClassification  # of two classes
    started(folder, "text_classification", auto=auto)
    assert "no weights for classifier.weight, classifier.bias, which train" in caplog.text


def test_a_model_that_filled_gaps_may_lack_a_pooler(folder, caplog):
    started(folder, "text_classification", auto=transformers.AutoModelForMaskedLM)
    assert "bert.pooler.dense.weight" in caplog.text


@pytest.mark.parametrize("content", [b"", b"version https://git-lfs.github.com/spec/v1"])
def test_weights_that_are_no_weights_are_refused(folder, content):
    started(folder, "text_classification")
    templates.pretrained.cache_clear()
    (folder / "model" / small_models.WEIGHTS).write_bytes(content)
    part = {"kind": "text_classification", "validation": 0.25, "model": "model"}
    task = tasks.load({**part, **TEXTS, "label": "kind"}, folder)
    setup = Setup({}, 5, budget_from({"epochs": 1}), folder / "other")
    with pytest.raises(TaskError, match=r"cannot be loaded: SafetensorError"):
        task.start(setup, task.prepare({}))
