"""Templates of models, and the models of trials that are made from them."""

import copy
import dataclasses
import shutil

import pytest
import torch
import transformers

from support.files import small_models
from support.running.runs import reports_of
from trials.contract import TaskError
from trials.descriptions.models import Pretrained
from trials.running.randomness import Use, derive, seed_everything
from trials.settings import Settings
from trials.tasks.huggingface import templates
from unit.trials.tasks.text.test_model import model_of

SEED = 5


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


FROM_SCRATCH = {
    "bert": transformers.AutoModelForSequenceClassification,
    "gpt2": transformers.AutoModelForCausalLM,
    "t5": transformers.AutoModelForSeq2SeqLM,
    "clip": transformers.AutoModelForImageClassification,
}


def as_transformers_begins(model, kept=()):
    """A copy whose weights transformers itself initialises, but for some."""
    copied = copy.deepcopy(model)
    for module in copied.modules():
        module._is_hf_initialized = False
    for name, parameter in copied.named_parameters():
        parameter._is_hf_initialized = name in kept
    seed_everything(derive(SEED, Use.WEIGHTS))
    copied.initialize_weights()
    return copied.state_dict()


@pytest.mark.cases(4)
@pytest.mark.parametrize("family", FROM_SCRATCH)
def test_a_model_from_scratch_begins_as_transformers_begins_it(family):
    config = small_models.config_of(family)
    source = templates.built(FROM_SCRATCH[family], config.to_json_string())
    found = templates.build(source, Settings(), SEED)
    expected = as_transformers_begins(source.model)
    for name, tensor in found.state_dict().items():
        assert torch.equal(tensor, expected[name]), name


def test_a_new_head_begins_as_transformers_begins_it(tmp_path):
    """T5 initialises the layers of its head in a way of its own."""
    folder = small_models.write(tmp_path / "t5", "t5", ["some text"])
    auto = transformers.AutoModelForSequenceClassification
    kind = templates.ModelKind(auto, ("a", "b", "c"), 0)
    source = templates.pretrained(Pretrained(str(folder)), kind)
    found = templates.build(source, Settings(), SEED)
    body = [name for name, _ in source.model.named_parameters() if "classification" not in name]
    expected = as_transformers_begins(source.model, kept=body)
    for name, tensor in found.state_dict().items():
        assert torch.equal(tensor, expected[name]), name
    assert found.classification_head.dense.weight.std().item() == pytest.approx(0.25, rel=0.2)


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
