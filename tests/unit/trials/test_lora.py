"""Adapters: what trains, what a checkpoint holds; and activations that are computed again."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load_file

from trials import lora
from trials.contract import TaskError
from trials.settings import Settings
from trials.weights import MODEL
from unit.trials.test_optimizers import FAMILIES, bert

LORA = {"lora": True, "lora_rank": 2, "learning_rate": 0.05, "dropout": 0.1, "batch_size": 16}


def predictions(model, run):
    data = run._data.validation
    tokens, mask = data.padded(np.arange(len(data.lengths)), run._data.padding)
    with torch.inference_mode():
        return model.eval()(input_ids=torch.from_numpy(tokens), attention_mask=torch.from_numpy(mask)).logits


def test_only_adapters_and_the_head_train():
    model = bert()
    lora.add(model, Settings.parse({"lora": True}), frozenset())
    trained = {name for name, p in model.named_parameters() if p.requires_grad}
    assert {name for name in trained if ".lora_" not in name} == {"classifier.weight", "classifier.bias"}
    adapted = {name.split(".lora_")[0] for name in trained if ".lora_" in name}
    assert len(adapted) == 2 * 6  # query, key, value, their output and the two of the feed-forward, in two layers


def test_what_came_without_pretrained_weights_trains_with_the_head():
    model = bert()
    lora.add(model, Settings.parse({"lora": True}), frozenset({"bert.pooler.dense", "classifier"}))
    assert model.bert.pooler.dense.weight.requires_grad
    assert not model.bert.embeddings.word_embeddings.weight.requires_grad


@pytest.mark.parametrize("family", FAMILIES)
def test_merged_weights_fit_the_plain_model_and_compute_the_same(family):
    torch.manual_seed(0)
    plain, model = family().eval(), family().eval()
    lora.add(model, Settings.parse({"lora": True, "lora_rank": 2}), frozenset())
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.requires_grad:
                parameter.normal_()
    plain.load_state_dict(lora.merged(model))
    tokens = torch.tensor([[1, 2, 3], [4, 5, 0]])
    torch.testing.assert_close(plain(input_ids=tokens).logits, model(input_ids=tokens).logits, rtol=1e-4, atol=1e-4)


def test_targets_are_chosen_by_name_and_a_wrong_name_is_told():
    model = bert()
    lora.add(model, Settings.parse({"lora": True, "lora_targets": "query, value"}), frozenset())
    adapted = {name.split(".lora_")[0].rpartition(".")[2] for name, _ in model.named_parameters() if ".lora_" in name}
    assert adapted == {"query", "value"}
    with pytest.raises(TaskError, match=r"settings\.lora_targets: querry is no linear module .*did you mean query\?"):
        lora.add(bert(), Settings.parse({"lora": True, "lora_targets": "querry"}), frozenset())


@pytest.mark.parametrize("changes", [{}, {"ema": 0.8}], ids=["plain", "averaged"])
def test_transformers_alone_loads_the_checkpoint_and_predicts_the_same(lab, changes):
    transformers.logging.disable_progress_bar()
    settings = {**LORA, **changes}
    task = lab.task()
    run = task.start(lab.setup("a", {"epochs": 3}, **settings), task.prepare(settings))
    *_, last = run
    loaded = transformers.AutoModelForSequenceClassification.from_pretrained(last.checkpoint)
    with run._updates.averaged():
        expected = predictions(run._workload.model, run._workload)
    torch.testing.assert_close(predictions(loaded, run._workload), expected, rtol=1e-4, atol=1e-5)
    before = predictions(
        task.start(lab.setup("b", {"epochs": 3}, **settings), run._workload._data)._workload.model, run._workload
    )
    assert not torch.allclose(before, expected, atol=1e-2)


@pytest.mark.parametrize("changes", [{}, {"ema": 0.8}, {"gradient_checkpointing": True}], ids=str)
def test_a_run_with_adapters_resumes_bit_for_bit(lab, without_timings, changes):
    settings = {**LORA, **changes}
    task, budget = lab.task(), {"steps": 8, "report_every": 2}
    data = task.prepare(settings)
    expected = [item for item in task.start(lab.setup("a", budget, **settings), data) if item]
    first = task.start(lab.setup("b", budget, **settings), data)
    steps = iter(first)
    for _ in range(3):
        next(steps)
    run = task.start(lab.setup("b", budget, resume_from=first.save(), **settings), data)
    assert without_timings([item for item in run if item]) == without_timings(expected[1:])
    same = [load_file(lab.folder / out / "last" / MODEL) for out in ("a", "b")]
    assert all(torch.equal(same[0][name], same[1][name]) for name in same[0])


@pytest.mark.parametrize("changes", [{}, {"freeze_layers": 1}], ids=["whole", "frozen below"])
def test_activations_computed_again_change_no_result(lab, without_timings, changes):
    reports = {}
    for again in (False, True):
        settings = {"dropout": 0.3, "learning_rate": 0.01, "gradient_checkpointing": again, **changes}
        task = lab.task(model={"scratch": {"layers": 2, "width": 16, "heads": 2}})
        run = task.start(lab.setup(str(again), {"steps": 6}, **settings), task.prepare(settings))
        layers = run._workload.model.bert.encoder.layer
        assert {layer.gradient_checkpointing for layer in layers} == {again}
        reports[again] = without_timings([item for item in run if item])
    assert reports[True] == reports[False]


def test_a_model_that_cannot_compute_activations_again_is_refused(lab, monkeypatch):
    monkeypatch.setattr(transformers.BertForSequenceClassification, "supports_gradient_checkpointing", False)
    task, settings = lab.task(), {"gradient_checkpointing": True}
    with pytest.raises(TaskError, match=r"settings\.gradient_checkpointing: a BertForSequence"):
        task.start(lab.setup("a", {"steps": 2}, **settings), task.prepare(settings))
