"""Packing: the same samples and losses in fewer cells, and a refusal of models that cannot."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest
import torch
import transformers
from hypothesis import given
from hypothesis import strategies as st
from test_token_classification import sentences, write_conll

from trials import packed, tasks
from trials.budgets import budget_from
from trials.contract import Setup, TaskError
from trials.packing import Layout, bins
from trials.tasks import text_tokenizer

PARAMS = {"learning_rate": 1e-2, "batch_size": 16, "max_length": 32, "dropout": 0.0, "packing": True}
SCRATCH = {"scratch": {"layers": 2, "width": 16, "heads": 2, "vocabulary": 280}}
SIZES = {"vocab_size": 280, "pad_token_id": 0, "bos_token_id": 0, "eos_token_id": 0}
WIDE = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
CONFIGS = {
    "gpt2": transformers.GPT2Config(n_embd=16, n_layer=2, n_head=2, n_positions=64, **SIZES),
    "llama": transformers.LlamaConfig(**WIDE, num_key_value_heads=1, max_position_embeddings=64, **SIZES),
    "bloom": transformers.BloomConfig(hidden_size=16, n_layer=2, n_head=2, **SIZES),
    "mamba": transformers.MambaConfig(hidden_size=16, num_hidden_layers=2, state_size=4, **SIZES),
}


def documents(count=70):
    rng = random.Random(0)
    return [" ".join(rng.choices(["one", "two", "three", "four"], k=rng.randint(1, 9))) for _ in range(count)]


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "train.txt").write_text("\n\n".join(documents()))
    write_conll(tmp_path / "train.conll", sentences(61))
    for name, config in CONFIGS.items():
        torch.manual_seed(0)
        transformers.AutoModelForCausalLM.from_config(config).save_pretrained(tmp_path / name)
        text_tokenizer.byte_pairs(documents(), 280).save_pretrained(tmp_path / name)
    return tmp_path


def task(folder, model=SCRATCH, **changes):
    made = {"kind": "language_modeling", "train": "train.txt", "validation": 0.25, "samples": "documents"}
    return tasks.load({**made, "model": model, **changes}, folder)


def tagger(folder, model=SCRATCH):
    return tasks.load(
        {"kind": "token_classification", "train": "train.conll", "validation": 0.25, "model": model}, folder
    )


def setup(folder, out="run", epochs=2, resume_from=None, **params):
    return Setup({**PARAMS, **params}, 5, budget_from({"epochs": epochs}), folder / out, resume_from)


def reports_of(run):
    return [item for item in run if item is not None]


@given(st.lists(st.integers(1, 40), min_size=1, max_size=60), st.integers(1, 40))
def test_every_sample_is_in_one_row_and_no_row_overflows(lengths, capacity):
    lengths = np.array(lengths)
    rows = bins(lengths, capacity)
    assert sorted(np.concatenate(rows).tolist()) == list(range(len(lengths)))
    longest = max(lengths[row].sum() for row in rows)
    assert longest <= max(capacity, lengths.max())
    assert len(rows) * longest <= len(lengths) * lengths.max(), "never more cells than with padding"


@given(st.lists(st.integers(1, 9), min_size=1, max_size=20), st.integers(1, 30), st.randoms())
def test_a_layout_has_every_token_of_its_samples_once_and_in_order(lengths, capacity, rng):
    offsets = np.cumsum([0, *lengths])
    samples = rng.sample(range(len(lengths)), rng.randint(1, len(lengths)))
    layout = Layout.of(offsets, np.array(samples), capacity)
    tokens = layout.filled(layout.places + 1, 0)
    segments, positions = layout.filled(layout.numbers, 0), layout.filled(layout.positions, -1)
    assert (tokens > 0).sum() == sum(lengths[sample] for sample in samples)
    found = []
    for row, numbers in zip(tokens, segments, strict=True):
        assert (np.diff(np.flatnonzero(numbers)) == 1).all(), "padding stands behind the tokens"
        found += [row[numbers == number] - 1 for number in range(1, numbers.max() + 1)]
    assert sorted(part.tolist() for part in found) == sorted(
        list(range(offsets[sample], offsets[sample + 1])) for sample in samples
    )
    assert positions.max() == max(lengths[sample] for sample in samples) - 1


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
@pytest.mark.parametrize("model", [SCRATCH, "gpt2", "llama"])
def test_the_loss_of_every_token_is_the_unpacked_one(folder, model, attention):
    built = task(folder, model)
    data = built.prepare(PARAMS)
    workloads = [built.start(setup(folder, packing=on), data)._workload for on in (False, True)]
    rows = np.arange(20)
    losses = []
    for workload in workloads:
        workload.model.set_attn_implementation(attention)
        workload.model.eval()
        batch = workload.batch(rows)
        with torch.no_grad():
            logits = workload.logits(batch).flatten(0, 1)
        each = torch.nn.functional.cross_entropy(logits, batch.labels.flatten(), reduction="none")
        losses.append(each[batch.labels.flatten() != -100])
    assert len(losses[0]) == workloads[0].weight(rows)
    order = Layout.of(data.train.inputs.offsets, rows, PARAMS["max_length"]).places
    assert torch.allclose(losses[1][np.argsort(order, kind="stable")], losses[0], atol=1e-5)


def test_gradients_are_those_of_the_unpacked_batch(folder):
    built = task(folder)
    data = built.prepare(PARAMS)
    gradients = []
    for on in (False, True):
        workload = built.start(setup(folder, packing=on), data)._workload
        (workload.loss_sum(workload.batch(np.arange(16))) / workload.weight(np.arange(16))).backward()
        gradients.append(torch.cat([p.grad.flatten() for p in workload.model.parameters() if p.grad is not None]))
    assert torch.allclose(gradients[0], gradients[1], atol=1e-5)


def test_the_loss_of_every_tag_is_the_unpacked_one(folder):
    built = tagger(folder)
    data = built.prepare(PARAMS)
    losses = []
    for on in (False, True):
        workload = built.start(setup(folder, packing=on), data)._workload
        losses.append(workload.loss_sum(workload.batch(np.arange(30))).item())
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)


def test_packing_wastes_less_and_trains_the_same(folder):
    built = task(folder)
    data = built.prepare(PARAMS)
    params = {"optimizer": "sgd", "learning_rate": 0.1, "bucketing": False}
    plain, dense = (
        reports_of(built.start(setup(folder, f"p{on}", packing=on, **params), data)) for on in (False, True)
    )
    assert dense[-1].metrics["padding_ratio"] < 0.15 < 0.3 < plain[-1].metrics["padding_ratio"]
    for name in ("loss", "train_loss"):
        assert [r.metrics[name] for r in dense] == pytest.approx([r.metrics[name] for r in plain], rel=1e-4)
    assert [r.step for r in dense] == [r.step for r in plain], "a batch is as many samples as before"


def test_micro_batches_of_packed_samples_add_up(folder):
    built = task(folder)
    data = built.prepare(PARAMS)
    params = {"optimizer": "sgd", "learning_rate": 0.1}
    losses = [
        [
            r.metrics["train_loss"]
            for r in reports_of(built.start(setup(folder, f"m{m}", micro_batch=m, **params), data))
        ]
        for m in (None, 5)
    ]
    assert losses[1] == pytest.approx(losses[0], rel=1e-5)


def test_a_resumed_packed_run_goes_on_bit_for_bit(folder, without_timings):
    built = task(folder)
    data = built.prepare(PARAMS)
    params = {"dropout": 0.1}
    whole = reports_of(built.start(setup(folder, "whole", 3, **params), data))
    first = built.start(setup(folder, "parts", 3, **params), data)
    for _ in itertools.islice(first, 6):
        pass
    again = reports_of(built.start(setup(folder, "parts", 3, first.save(), **params), data))
    assert again
    assert without_timings(again) == without_timings(whole)[-len(again) :]


@pytest.mark.parametrize("model", ["bloom", "mamba"])
def test_a_model_that_cannot_tell_samples_apart_is_refused(folder, model):
    built = task(folder, model)
    with pytest.raises(
        TaskError, match=r"settings\.packing: is not for packed samples: a \w+ForCausalLM .* set it to false"
    ):
        built.start(setup(folder), built.prepare(PARAMS))
    assert built.start(setup(folder, packing=False), built.prepare({**PARAMS, "packing": False}))


def test_the_trial_run_of_a_model_leaves_it_as_it_was(folder):
    model = transformers.AutoModelForCausalLM.from_config(CONFIGS["gpt2"])
    model.train()
    state = torch.get_rng_state()
    packed.demand(model, causal=True)
    assert model.training
    assert torch.equal(state, torch.get_rng_state())


def test_other_tasks_have_no_packing(lab):
    with pytest.raises(TaskError, match=r"settings\.packing: is no setting of this task"):
        lab.task().prepare({"packing": True})
