"""The model of a text classification task: warm starts, pretrained weights, checkpoints others can
load."""

from __future__ import annotations

import dataclasses
import pickle
import shutil

import numpy as np
import pytest
import torch
import transformers

from trials.contract import TaskError
from trials.descriptions.models import Scratch
from trials.descriptions.text import CLASS, METRICS
from trials.tasks.huggingface import templates


def reports_of(run):
    return [item for item in run if item]


def model_of(lab, task, data, **params):
    return task.start(lab.setup("run", {"epochs": 1}, **params), data)._workload.model


@pytest.fixture
def pretrained(lab):
    """A local folder as `save_pretrained` writes it: a body with another classifier on it."""
    task = lab.task()
    run = task.start(lab.setup("pretraining", {"epochs": 1}), task.prepare({}))
    *_, last = run
    folder = lab.folder / "pretrained"
    shutil.copytree(last.checkpoint, folder)
    transformers.logging.disable_progress_bar()
    config = transformers.AutoConfig.from_pretrained(folder)
    body = transformers.BertModel.from_pretrained(folder, config=config)
    body.save_pretrained(folder)
    return folder


def test_a_small_model_learns_its_topics(lab):
    task = lab.task()
    params = {"learning_rate": 5e-3, "batch_size": 16, "weight_decay": 0.0}
    reports = reports_of(
        task.start(lab.setup("run", {"epochs": 25}, **params), task.prepare(params))
    )
    assert reports[-1].metrics["accuracy"] > 0.9
    assert reports[-1].metrics.keys() == METRICS[CLASS]


def test_a_checkpoint_is_a_model_that_transformers_loads(lab):
    task = lab.task()
    data = task.prepare({})
    run = task.start(lab.setup("run", {"epochs": 2}, learning_rate=5e-3), data)
    *_, last = run
    transformers.logging.disable_progress_bar()
    classify = transformers.pipeline(
        "text-classification", model=str(last.checkpoint), device="cpu"
    )
    found = [result["label"] for result in classify(["my new card", "the rate today"])]
    assert set(found) <= {"card", "fee", "rate"}
    loaded = transformers.AutoModelForSequenceClassification.from_pretrained(
        last.checkpoint
    ).state_dict()
    trained = run._workload.model.state_dict()
    assert all(torch.equal(loaded[name], trained[name]) for name in trained)


def test_a_warm_process_needs_the_models_files_only_once(lab, pretrained):
    templates.pretrained.cache_clear()
    task = lab.task(model="pretrained")
    data = task.prepare({})
    first = reports_of(task.start(lab.setup("a", {"epochs": 1}), data))
    shutil.rmtree(pretrained)
    second = reports_of(task.start(lab.setup("b", {"epochs": 1}), data))
    assert first[0].metrics["loss"] == second[0].metrics["loss"]
    assert templates.pretrained.cache_info().misses == 1


def test_a_trained_run_leaves_the_template_as_it_was(lab):
    task = lab.task()
    data = task.prepare({})
    before = model_of(lab, task, data).state_dict()
    reports_of(
        task.start(
            lab.setup("a", {"epochs": 1}, dropout=0.5, freeze_layers=1, learning_rate=0.1), data
        )
    )
    after = model_of(lab, task, data)
    assert all(torch.equal(before[name], tensor) for name, tensor in after.state_dict().items())
    assert all(parameter.requires_grad for parameter in after.parameters())
    assert after.config.hidden_dropout_prob == 0.1


def test_weights_from_scratch_derive_from_the_trials_seed(lab):
    task = lab.task()
    data = task.prepare({})
    setup = lab.setup("run", {"epochs": 1})
    runs = [task.start(dataclasses.replace(setup, seed=seed), data) for seed in (1, 1, 2)]
    one, same, other = (run._workload.model.state_dict()["classifier.weight"] for run in runs)
    assert torch.equal(one, same)
    assert not torch.equal(one, other)


def test_a_pretrained_body_is_kept_and_its_classifier_derives_from_the_seed(lab, pretrained):
    task = lab.task(model="pretrained")
    data = task.prepare({})
    setup = lab.setup("run", {"epochs": 1})
    one, other = (
        task.start(dataclasses.replace(setup, seed=seed), data)._workload.model for seed in (1, 2)
    )
    body = transformers.BertModel.from_pretrained(pretrained).state_dict()
    for name, tensor in body.items():
        assert torch.equal(one.bert.state_dict()[name], tensor), name
    assert not torch.equal(one.classifier.weight, other.classifier.weight)


def test_a_searched_model_replaces_the_tasks_own(lab, pretrained):
    task = lab.task()
    params = {"model": "pretrained"}
    model = model_of(lab, task, task.prepare(params), **params)
    body = transformers.BertModel.from_pretrained(pretrained).state_dict()
    assert torch.equal(
        model.bert.state_dict()["embeddings.word_embeddings.weight"],
        body["embeddings.word_embeddings.weight"],
    )


def test_a_model_that_cannot_be_loaded_is_the_users_mistake(lab):
    broken = lab.folder / "broken"
    broken.mkdir()
    (broken / "config.json").write_text("{}")
    with pytest.raises(TaskError, match=r"task\.model: .*broken' cannot be loaded"):
        lab.task(model="broken").prepare({})


def test_dropout_reaches_every_module_and_the_configuration(lab):
    task = lab.task()
    model = model_of(lab, task, task.prepare({}), dropout=0.35)
    assert {m.p for m in model.modules() if isinstance(m, torch.nn.Dropout)} == {0.35}
    assert model.config.attention_probs_dropout_prob == 0.35


def test_frozen_layers_and_embeddings_do_not_move(lab):
    task = lab.task(model={"scratch": {"layers": 2, "width": 16, "vocabulary": 120}})
    params = {"freeze_layers": 1, "learning_rate": 0.01}
    run = task.start(lab.setup("run", {"epochs": 1}, **params), task.prepare(params))
    before = {name: tensor.clone() for name, tensor in run._workload.model.state_dict().items()}
    reports_of(run)
    moved = {
        name
        for name, tensor in run._workload.model.state_dict().items()
        if not torch.equal(before[name], tensor)
    }
    assert not any("embeddings" in name or "layer.0." in name for name in moved)
    assert any("layer.1." in name for name in moved)
    assert "classifier.weight" in moved
    with pytest.raises(TaskError, match=r"settings\.freeze_layers: must be at most 2, .* not 3"):
        model_of(lab, task, task.prepare(params), freeze_layers=3)


def test_the_evaluation_batch_size_changes_no_metric(lab):
    task = lab.task()
    data = task.prepare({})
    setups = [lab.setup(f"run{size}", {"epochs": 1}, eval_batch_size=size) for size in (1, 7, 500)]
    losses, accuracies = zip(
        *[
            (r.metrics["loss"], r.metrics["accuracy"])
            for r in (reports_of(task.start(s, data))[0] for s in setups)
        ],
        strict=True,
    )
    assert losses == pytest.approx([losses[0]] * 3, rel=1e-5)
    assert len(set(accuracies)) == 1


def test_read_only_data_trains_without_a_warning(lab):
    task = lab.task()
    data = pickle.loads(pickle.dumps(task.prepare({})))
    for array in (
        data.train.tokens,
        data.train.offsets,
        data.train_labels,
        data.validation.tokens,
        data.validation.offsets,
        data.validation_labels,
    ):
        array.flags.writeable = False
    assert len(reports_of(task.start(lab.setup("run", {"epochs": 1}), data))) == 1


def test_bucketing_lowers_the_padding_that_is_reported(lab):
    task = lab.task()
    data = task.prepare({})
    with_it, without = (
        reports_of(
            task.start(lab.setup(f"run{b}", {"epochs": 1}, batch_size=8, bucketing=b), data)
        )[0]
        for b in (True, False)
    )
    assert with_it.metrics["padding_ratio"] < without.metrics["padding_ratio"] / 2


def test_an_unknown_monitor_names_the_nearest_metric(lab):
    task = lab.task()
    with pytest.raises(
        TaskError, match=r"settings\.monitor: 'acuracy' is not a metric .* did you mean accuracy\?"
    ):
        task.start(lab.setup("run", {"epochs": 1}, monitor="acuracy"), task.prepare({}))


def test_a_rehearsal_takes_the_longest_texts(lab):
    task = lab.task()
    data = task.prepare({})
    found = task.rehearse(lab.setup("run", {"epochs": 1}, batch_size=8), data)
    assert found["parameters"] > 1000
    assert not (lab.folder / "run").exists()


def test_heads_and_feed_forward_follow_the_width():
    assert Scratch.parse({"width": 256}) == Scratch(layers=2, width=256, heads=4, feed_forward=1024)
    assert Scratch.parse({}) == Scratch()


def test_labels_are_numbers_of_their_names(lab):
    data = lab.task().prepare({})
    assert data.train_labels.dtype == np.int64
    assert set(data.train_labels.tolist()) == {0, 1, 2}
