"""Optimizers against steps computed by hand, their groups, and learning rates by depth."""

from typing import Any

import pytest
import torch
from torch import nn
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    DistilBertConfig,
    DistilBertForSequenceClassification,
    GPT2Config,
    GPT2ForSequenceClassification,
    LlamaConfig,
    LlamaForSequenceClassification,
    RobertaConfig,
    RobertaForSequenceClassification,
    T5Config,
    T5ForConditionalGeneration,
)

from trials.loop.optim import optimizers
from trials.loop.optim.depths import depths, hidden_matrices
from trials.settings import OPTIMIZERS, Settings

CPU = torch.device("cpu")
SIZES: dict[str, Any] = {
    "vocab_size": 20,
    "hidden_size": 8,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 16,
}


def bert() -> nn.Module:
    return BertForSequenceClassification(BertConfig(**SIZES, pad_token_id=0))


def distilbert() -> nn.Module:
    return DistilBertForSequenceClassification(
        DistilBertConfig(vocab_size=20, dim=8, n_layers=2, n_heads=2, hidden_dim=16)
    )


def roberta() -> nn.Module:
    return RobertaForSequenceClassification(RobertaConfig(**SIZES))


def gpt2() -> nn.Module:
    config = GPT2Config(
        vocab_size=20, n_embd=8, n_layer=2, n_head=2, bos_token_id=0, eos_token_id=0, pad_token_id=0
    )
    return GPT2ForSequenceClassification(config)


def llama() -> nn.Module:
    return LlamaForSequenceClassification(LlamaConfig(**SIZES, pad_token_id=0))


FAMILIES = [bert, distilbert, roberta, gpt2, llama]


def optimizer_of(model: nn.Module, **params: object) -> torch.optim.Optimizer:
    return optimizers.build(model, Settings.parse(params), CPU)


def test_muon_is_for_the_matrices_of_the_layers_and_adamw_for_the_rest():
    model = bert()
    hidden = hidden_matrices(model)
    assert "bert.encoder.layer.1.attention.self.query.weight" in hidden
    assert all(
        ".encoder.layer." in name and not name.endswith("bias") and "Norm" not in name
        for name in hidden
    )
    muon, adamw = optimizer_of(model, optimizer="muon")._parts
    by_muon = {id(p) for group in muon.param_groups for p in group["params"]}
    by_adamw = {id(p) for group in adamw.param_groups for p in group["params"]}
    assert by_muon == {id(p) for name, p in model.named_parameters() if name in hidden}
    assert by_adamw == {id(p) for p in model.parameters()} - by_muon


def test_without_numbered_layers_the_last_matrix_is_the_head():
    model = nn.Sequential(nn.Embedding(5, 4), nn.Linear(4, 4), nn.LayerNorm(4), nn.Linear(4, 2))
    assert hidden_matrices(model) == {"1.weight"}
    assert optimizer_of(
        nn.Sequential(nn.Linear(4, 2)), optimizer="muon"
    ).param_groups  # nothing hidden in it


def test_muon_and_adamw_step_together_as_each_would_alone():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 3, bias=False), nn.Linear(3, 2))
    alone = nn.Sequential(nn.Linear(3, 3, bias=False), nn.Linear(3, 2))
    alone.load_state_dict(model.state_dict())
    both = optimizer_of(model, optimizer="muon", learning_rate=0.1, momentum=0.9)
    muon = torch.optim.Muon(
        [alone[0].weight], lr=0.1, momentum=0.9, weight_decay=0.01, adjust_lr_fn="match_rms_adamw"
    )
    adamw = torch.optim.AdamW(
        [{"params": [alone[1].weight]}, {"params": [alone[1].bias], "weight_decay": 0.0}], lr=0.1
    )
    for _ in range(3):
        for parameter, other in zip(model.parameters(), alone.parameters(), strict=True):
            parameter.grad = torch.randn_like(parameter)
            other.grad = parameter.grad.clone()
        both.step()
        muon.step()
        adamw.step()
    for parameter, other in zip(model.parameters(), alone.parameters(), strict=True):
        torch.testing.assert_close(parameter, other)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_only_matrices_are_decayed(optimizer):
    model = bert()
    found = optimizer_of(model, optimizer=optimizer, weight_decay=0.3)
    grouped = [
        (p.ndim, group["weight_decay"]) for group in found.param_groups for p in group["params"]
    ]
    assert len(grouped) == len(list(model.parameters()))
    assert set(grouped) == {(1, 0.0), (2, 0.3)}


def test_tables_of_biases_are_not_decayed():
    model = T5ForConditionalGeneration(
        T5Config(vocab_size=20, d_model=8, d_kv=4, d_ff=16, num_layers=1, num_heads=2)
    )
    free = [
        id(parameter)
        for group in optimizers.parameter_groups(model, Settings(weight_decay=0.1))
        for parameter in group["params"]
        if not group["weight_decay"]
    ]
    for side in (model.encoder, model.decoder):
        attention = side.block[0].layer[0].SelfAttention
        assert id(attention.relative_attention_bias.weight) in free
        assert id(attention.q.weight) not in free


def test_nesterov_looks_ahead():
    found = {
        name: optimizer_of(bert(), optimizer=name).param_groups[0]["nesterov"]
        for name in ("sgd", "nesterov")
    }
    assert found == {"sgd": False, "nesterov": True}


class Perceptron(nn.Module):
    """Three hidden layers over an embedding."""

    def __init__(self) -> None:
        super().__init__()
        self.embeddings = nn.ModuleList([nn.Embedding(6, 4)])
        hidden = [
            layer
            for _ in range(3)
            for layer in (nn.Linear(4, 4), nn.LayerNorm(4), nn.ReLU(), nn.Dropout(0.0))
        ]
        self.layers = nn.Sequential(*hidden, nn.Linear(4, 2))


def test_only_what_has_matrices_is_a_layer_of_a_perceptron():
    table = Perceptron()
    found = depths(table.named_parameters())
    assert {name: depth for name, depth in found.items() if name.endswith("weight")} == {
        "embeddings.0.weight": 0,
        "layers.0.weight": 1,
        "layers.1.weight": 1,
        "layers.4.weight": 2,
        "layers.5.weight": 2,
        "layers.8.weight": 3,
        "layers.9.weight": 3,
        "layers.12.weight": 4,
    }
    names = {id(p): name for name, p in table.named_parameters()}
    groups = optimizer_of(table, layer_decay=0.5).param_groups
    factors = {names[id(p)]: group[optimizers.FACTOR] for group in groups for p in group["params"]}
    assert [factors[f"layers.{n}.weight"] for n in (12, 8, 4, 0)] == [1.0, 0.5, 0.25, 0.125]
    assert hidden_matrices(table) == {"layers.0.weight", "layers.4.weight", "layers.8.weight"}


@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
def test_each_layer_learns_at_a_share_of_the_rate_above_it(optimizer):
    model = bert()
    names = {id(p): name for name, p in model.named_parameters()}
    found = optimizer_of(model, optimizer=optimizer, layer_decay=0.5)
    factors = {
        names[id(p)]: group[optimizers.FACTOR]
        for group in found.param_groups
        for p in group["params"]
    }
    assert factors["classifier.weight"] == factors["bert.pooler.dense.bias"] == 1.0
    assert factors["bert.encoder.layer.1.output.dense.weight"] == 0.5
    assert factors["bert.encoder.layer.0.output.dense.bias"] == 0.25
    assert factors["bert.embeddings.word_embeddings.weight"] == 0.125


def test_without_layer_decay_there_are_two_groups():
    assert [group[optimizers.FACTOR] for group in optimizer_of(bert()).param_groups] == [1.0, 1.0]
