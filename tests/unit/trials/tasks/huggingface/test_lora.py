"""Adapters: what trains, on what base, what a checkpoint holds, and the whole model that is made of
it."""

import dataclasses
import json
import shutil
from pathlib import Path

import peft
import pytest
import torch
import transformers
from safetensors.torch import load_file
from torch.nn.utils.rnn import pad_sequence

from trials.checkpoints.checkpoints import Checkpoints
from trials.checkpoints.weights import MODEL
from trials.contract import TaskError
from trials.devices.precision import Precision
from trials.settings import Settings
from trials.tasks.final import training as final
from trials.tasks.huggingface import lora, templates
from unit.trials.loop.optim.test_optimizers import FAMILIES, bert
from unit.trials.tasks.final.test_training import plan, silent

CPU = torch.device("cpu")
TOKENS = torch.tensor([[1, 2, 3], [4, 5, 0]])
LORA = {"lora": True, "lora_rank": 2, "learning_rate": 0.05, "dropout": 0.1, "batch_size": 16}
CONTENT = {
    "adapter_config.json", "adapter_model.safetensors", "config.json",
    "manifest.json", "state.pt", "text.json", "tokenizer.json", "tokenizer_config.json",
}  # fmt: skip


def causal(tied=False):
    """A language model with a head of its own, which scores tokens."""
    config = transformers.LlamaConfig(
        vocab_size=20, hidden_size=8, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=16, pad_token_id=0, tie_word_embeddings=tied,
    )  # fmt: skip
    return transformers.LlamaForCausalLM(config)


def tied():
    return causal(tied=True)


def adapted(plain, fresh=frozenset(), base=lora.SCRATCH, **params):
    """A model with adapters whose base is shared with a plain one."""
    model = lora.copied(plain, fresh)
    lora.add(model, Settings.parse({"lora": True, "lora_rank": 2, **params}), fresh, base)
    return model


def trained(model):
    """The names of the parameters that train and are of no adapter."""
    return {
        name for name, p in model.named_parameters() if p.requires_grad and ".lora_" not in name
    }


def train(model):
    """Change whatever trains at random."""
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.requires_grad:
                parameter.normal_(0.0, 0.5)


def files_of(model):
    return lora.TransformerFiles(model, lora.SCRATCH, {}, CPU)


def saved(model, folder):
    folder.mkdir()
    files_of(model).write(folder, files_of(model).weights())
    return folder


def predictions(model, data):
    texts = data.validation
    rows = [torch.from_numpy(texts.row(n)).long() for n in range(len(texts.lengths))]
    tokens = pad_sequence(rows, batch_first=True, padding_value=data.padding)
    mask = pad_sequence([torch.ones_like(row) for row in rows], batch_first=True)
    with torch.inference_mode():
        return model.eval()(input_ids=tokens, attention_mask=mask).logits


@pytest.fixture(autouse=True)
def _quiet():
    transformers.logging.disable_progress_bar()


@pytest.fixture
def pretrained(lab):
    """A local folder with a body in bfloat16, without a classifier."""
    templates.pretrained.cache_clear()
    task = lab.task()
    *_, last = task.start(lab.setup("pretraining", {"epochs": 1}), task.prepare({}))
    folder = lab.folder / "pretrained"
    shutil.copytree(last.checkpoint, folder)
    transformers.BertModel.from_pretrained(folder, dtype=torch.bfloat16).save_pretrained(folder)
    return folder


# -------------------------------------------------------------------------------------------------
# what trains


def test_only_adapters_and_the_head_of_a_classifier_train():
    model = adapted(bert())
    assert trained(model) == {"classifier.weight", "classifier.bias"}
    adapters = {name.split(".lora_")[0] for name, _ in model.named_parameters() if ".lora_" in name}
    assert (
        len(adapters) == 2 * 6
    )  # query, key, value, their output and the two of the feed-forward, in two layers


@pytest.mark.parametrize("family", [causal, tied])
def test_a_head_that_scores_tokens_is_frozen_with_its_body(family):
    assert trained(adapted(family())) == set()


def test_what_came_without_pretrained_weights_trains():
    model = adapted(bert(), frozenset({"bert.pooler.dense", "classifier"}))
    assert trained(model) == {
        "bert.pooler.dense.weight",
        "bert.pooler.dense.bias",
        "classifier.weight",
        "classifier.bias",
    }
    assert trained(adapted(causal(), frozenset({"lm_head"}))) == {"lm_head.weight"}


def test_targets_are_chosen_by_name_and_a_wrong_name_is_told():
    model = adapted(bert(), lora_targets="query, value")
    names = {
        name.split(".lora_")[0].rpartition(".")[2]
        for name, _ in model.named_parameters()
        if ".lora_" in name
    }
    assert names == {"query", "value"}
    with pytest.raises(
        TaskError,
        match=r"settings\.lora_targets: querry is not a linear module .*did you mean query\?",
    ):
        adapted(bert(), lora_targets="querry")


def test_a_head_that_scores_tokens_has_an_adapter_where_it_is_asked_for():
    model = adapted(causal(), lora_targets="q_proj,lm_head")
    assert any(name.startswith("lm_head.lora_") for name, _ in model.named_parameters())
    assert trained(model) == set()
    with pytest.raises(TaskError, match=r"settings\.lora_targets: lm_head is not a linear module"):
        adapted(tied(), lora_targets="q_proj,lm_head")


def test_what_trains_in_full_has_no_adapter_beside_it():
    with pytest.raises(
        TaskError, match="classifier is not a linear module of this model that is frozen"
    ):
        adapted(bert(), lora_targets="classifier")


# --------------------------------------------------------------------------------------------------
# the base


@pytest.mark.parametrize("family", [*FAMILIES, causal, tied])
def test_a_half_precision_base_is_not_copied_and_what_trains_is_float32(family):
    plain = family().to(torch.bfloat16)
    before = {name: tensor.clone() for name, tensor in plain.state_dict().items()}
    model = adapted(plain)
    own = {parameter.data_ptr() for parameter in plain.parameters()}
    for name, parameter in model.named_parameters():
        assert parameter.dtype == (torch.float32 if parameter.requires_grad else torch.bfloat16), (
            name
        )
        assert (parameter.data_ptr() in own) != parameter.requires_grad, name
    with Precision("bf16", CPU).autocast():
        scores = model(input_ids=TOKENS, attention_mask=TOKENS.ne(0).long()).logits
        scores.float().square().sum().backward()
    # An adapter's first matrix has no gradient before its second one has moved from zero.
    assert all(
        p.grad.any()
        for name, p in model.named_parameters()
        if p.requires_grad and ".lora_A" not in name
    )
    train(model)
    assert all(torch.equal(before[name], tensor) for name, tensor in plain.state_dict().items())


@pytest.mark.parametrize("name", ["bf16", "fp32"])
def test_the_base_is_held_in_the_type_of_the_runs_arithmetic(lab, pretrained, name):
    task, settings = lab.task(model="pretrained"), {**LORA, "precision": name}
    model = task.start(
        lab.setup("a", {"epochs": 1}, **settings), task.prepare(settings)
    )._workload.model
    types = {parameter.dtype for parameter in model.parameters() if not parameter.requires_grad}
    assert types == {Precision(name, CPU).dtype}
    assert {parameter.dtype for parameter in model.parameters() if parameter.requires_grad} == {
        torch.float32
    }


# ---------------------------------------------------------------------------------------------
# checkpoints


def test_a_checkpoint_holds_what_trains_alone(lab, pretrained):
    task = lab.task(model="pretrained")
    run = task.start(lab.setup("a", {"epochs": 1}, **LORA), task.prepare(LORA))
    *_, last = run
    assert {path.name for path in last.checkpoint.iterdir()} == CONTENT
    tensors = load_file(last.checkpoint / lora.ADAPTERS)
    names = {name.removeprefix("base_model.model.").replace(".default", "") for name in tensors}
    model = run._workload.model
    assert names == {
        n.replace(".default", "") for n, p in model.named_parameters() if p.requires_grad
    }
    assert sum(t.numel() for t in tensors.values()) == sum(
        p.numel() for p in model.parameters() if p.requires_grad
    )
    config = json.loads((last.checkpoint / lora.CONFIG).read_text())
    assert config["base_model_name_or_path"] == str(pretrained)


@pytest.mark.filterwarnings(
    "ignore:`is_gradient_checkpointing` is deprecated:FutureWarning"
)  # peft asks for it
@pytest.mark.parametrize("family", [*FAMILIES, causal, tied])
def test_peft_alone_loads_a_checkpoint_and_computes_the_same(tmp_path, family):
    plain = family().eval()
    model = adapted(plain).eval()
    train(model)
    loaded = peft.PeftModel.from_pretrained(plain, saved(model, tmp_path / "adapters")).eval()
    mask = TOKENS.ne(0).long()
    expected = model(input_ids=TOKENS, attention_mask=mask).logits
    torch.testing.assert_close(loaded(input_ids=TOKENS, attention_mask=mask).logits, expected)


@pytest.mark.parametrize("name", ["fp32", "bf16"])
@pytest.mark.parametrize("changes", [{}, {"ema": 0.8}, {"gradient_checkpointing": True}], ids=str)
def test_a_run_with_adapters_resumes_bit_for_bit(lab, pretrained, without_timings, changes, name):
    settings = {**LORA, "precision": name, **changes}
    task, budget = lab.task(model="pretrained"), {"steps": 8, "report_every": 2}
    data = task.prepare(settings)
    expected = [item for item in task.start(lab.setup("a", budget, **settings), data) if item]
    first = task.start(lab.setup("b", budget, **settings), data)
    steps = iter(first)
    for _ in range(3):
        next(steps)
    run = task.start(lab.setup("b", budget, resume_from=first.save(), **settings), data)
    assert without_timings([item for item in run if item]) == without_timings(expected[1:])
    one, other = (load_file(lab.folder / out / "last" / lora.ADAPTERS) for out in ("a", "b"))
    assert all(torch.equal(one[key], other[key]) for key in one)


def test_the_best_checkpoint_of_a_run_that_stops_early_measures_what_its_report_did(
    lab, pretrained
):
    task, settings = (
        lab.task(model="pretrained"),
        {**LORA, "learning_rate": 0.5, "schedule": "constant", "patience": 2},
    )
    setup = lab.setup("a", {"epochs": 12}, **settings)
    data = task.prepare(settings)
    run = task.start(setup, data)
    reports = [item for item in run if item]
    best = min(reports, key=lambda report: report.metrics["loss"])
    assert best is reports[-3], "two reports without improvement end it"
    checkpoint = Checkpoints(setup.folder).best
    fresh = task.start(dataclasses.replace(setup, folder=lab.folder / "b"), data)._workload
    fresh.read(checkpoint)
    measured = fresh.evaluate(Precision("fp32", CPU))
    assert measured == {name: best.metrics[name] for name in measured}


def test_adapters_are_no_model_to_train(lab, pretrained):
    task = lab.task(model="pretrained")
    *_, last = task.start(lab.setup("a", {"epochs": 1}, **LORA), task.prepare(LORA))
    with pytest.raises(TaskError, match=r"task\.model: .* holds adapters \(LoRA\), not a model"):
        lab.task(model=str(last.checkpoint))


# ------------------------------------------------------------------------------------------ the
# whole model


@pytest.mark.parametrize("family", [*FAMILIES, causal, tied])
def test_a_merged_model_is_a_plain_one_that_computes_the_same(tmp_path, family):
    plain = family().eval()
    before = {name: tensor.clone() for name, tensor in plain.state_dict().items()}
    model = adapted(plain).eval()
    train(model)
    folder = saved(model, tmp_path / "merged")
    mask = TOKENS.ne(0).long()
    expected = model(input_ids=TOKENS, attention_mask=mask).logits
    files_of(model).merge(folder)
    assert not [path for path in folder.iterdir() if "adapter" in path.name]
    loaded = type(plain).from_pretrained(folder).eval()
    assert [name for name, _ in loaded.named_parameters()] == [
        name for name, _ in plain.named_parameters()
    ]
    torch.testing.assert_close(
        loaded(input_ids=TOKENS, attention_mask=mask).logits, expected, rtol=1e-4, atol=1e-4
    )
    taken = adapted(plain).eval()
    files_of(taken).take(folder)
    found = taken(input_ids=TOKENS, attention_mask=mask).logits
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
    assert all(torch.equal(before[name], tensor) for name, tensor in plain.state_dict().items())


@pytest.mark.parametrize("changes", [{}, {"ema": 0.8}], ids=["plain", "averaged"])
def test_transformers_alone_loads_the_merged_model_and_predicts_the_same(lab, changes):
    settings = {**LORA, **changes}
    task = lab.task()
    setup = lab.setup("a", {"epochs": 3}, **settings)
    data = task.prepare(settings)
    run = task.start(setup, data)
    *_, last = run
    with run._updates.averaged():
        expected = predictions(run._workload.model, data)
    whole = shutil.copytree(last.checkpoint, lab.folder / "whole")
    task.complete(whole, data, setup)
    loaded = transformers.AutoModelForSequenceClassification.from_pretrained(whole)
    torch.testing.assert_close(predictions(loaded, data), expected, rtol=1e-4, atol=1e-5)
    fresh = task.start(lab.setup("b", {"epochs": 3}, **settings), data)
    assert not torch.allclose(predictions(fresh._workload.model, data), expected, atol=1e-2)


@pytest.mark.thorough
def test_a_final_model_is_as_large_as_its_base_and_measures_what_the_best_report_did(
    lab, pretrained
):
    task, settings = (
        lab.task(model="pretrained"),
        {**LORA, "precision": "bf16", "monitor": "accuracy"},
    )
    run = task.start(lab.setup("search", {"epochs": 3}, **settings), task.prepare(settings))
    reports = [item for item in run if item is not None]
    version = final.train(task, plan(params=settings), lab.folder / "models", silent)
    tensors = load_file(version / MODEL)
    assert {tensor.dtype for tensor in tensors.values()} == {torch.bfloat16}
    assert Path(version / MODEL).stat().st_mode & 0o044, "others may read it"
    config = transformers.AutoConfig.from_pretrained(version)
    assert (config.dtype, set(config.id2label.values())) == (
        torch.bfloat16,
        {"card", "fee", "rate"},
    )
    measured = json.loads((version / "training.json").read_text())["metrics"]["validation"]
    best = max(reports, key=lambda report: report.metrics["accuracy"])
    assert measured["accuracy"] == pytest.approx(best.metrics["accuracy"], abs=0.05)
    assert measured["loss"] == pytest.approx(best.metrics["loss"], rel=0.05)


# --------------------------------------------------------------------------------- activations
# computed again


@pytest.mark.parametrize("changes", [{}, {"freeze_layers": 1}], ids=["whole", "frozen below"])
def test_activations_computed_again_change_no_result(lab, without_timings, changes):
    reports = {}
    for again in (False, True):
        settings = {
            "dropout": 0.3,
            "learning_rate": 0.01,
            "gradient_checkpointing": again,
            **changes,
        }
        task = lab.task(model={"scratch": {"layers": 2, "width": 16, "heads": 2}})
        run = task.start(lab.setup(str(again), {"steps": 6}, **settings), task.prepare(settings))
        layers = run._workload.model.bert.encoder.layer
        assert {layer.gradient_checkpointing for layer in layers} == {again}
        reports[again] = without_timings([item for item in run if item])
    assert reports[True] == reports[False]


def test_a_model_that_cannot_compute_activations_again_is_refused(lab, monkeypatch):
    monkeypatch.setattr(
        transformers.BertForSequenceClassification, "supports_gradient_checkpointing", False
    )
    task, settings = lab.task(), {"gradient_checkpointing": True}
    with pytest.raises(TaskError, match=r"settings\.gradient_checkpointing: a BertForSequence"):
        task.start(lab.setup("a", {"steps": 2}, **settings), task.prepare(settings))
