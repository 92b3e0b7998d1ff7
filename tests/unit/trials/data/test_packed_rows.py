"""Packing: the same samples and losses in fewer cells, and a refusal of models that cannot."""

import itertools
import random

import numpy as np
import pytest
import torch
import transformers
from hypothesis import given
from hypothesis import strategies as st

from trials import tasks
from trials.contract import Setup, TaskError
from trials.data import packed_rows
from trials.data.row_layout import Layout, bins
from trials.running.report_grid import budget_from
from trials.tasks.huggingface import tokenizer as text_tokenizer
from unit.trials.tasks.sequences.test_tokens import sentences, write_conll

PARAMS = {
    "learning_rate": 1e-2,
    "batch_size": 16,
    "max_length": 32,
    "dropout": 0.0,
    "packing": True,
}
SCRATCH = {"scratch": {"layers": 2, "width": 16, "heads": 2, "vocabulary": 280}}
SIZES = {"vocab_size": 280, "pad_token_id": 0, "bos_token_id": 0, "eos_token_id": 0}
WIDE = {
    "hidden_size": 16,
    "intermediate_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
}
NEAR = {"max_position_embeddings": 128, "sliding_window": 16}
HEADS = {"num_key_value_heads": 1, "head_dim": 8}
CONFIGS = {
    "gpt2": transformers.GPT2Config(n_embd=16, n_layer=2, n_head=2, n_positions=64, **SIZES),
    "llama": transformers.LlamaConfig(
        **WIDE, num_key_value_heads=1, max_position_embeddings=64, **SIZES
    ),
    "mistral": transformers.MistralConfig(**WIDE, **HEADS, **NEAR, **SIZES),
    "qwen2": transformers.Qwen2Config(
        **WIDE, **NEAR, **SIZES, num_key_value_heads=1, use_sliding_window=True, max_window_layers=1
    ),
    "gemma2": transformers.Gemma2Config(**WIDE, **HEADS, **NEAR, **SIZES),
    "gemma3": transformers.Gemma3TextConfig(
        **WIDE, **HEADS, **NEAR, **SIZES, sliding_window_pattern=2
    ),
    "llama4": transformers.Llama4TextConfig(
        **WIDE,
        **HEADS,
        **SIZES,
        intermediate_size_mlp=32,
        max_position_embeddings=128,
        attention_chunk_size=16,
        num_local_experts=2,
        layer_types=["chunked_attention", "full_attention"],
        no_rope_layers=[1, 0],
    ),
    "bloom": transformers.BloomConfig(hidden_size=16, n_layer=2, n_head=2, **SIZES),
    "mamba": transformers.MambaConfig(hidden_size=16, num_hidden_layers=2, state_size=4, **SIZES),
}


ABSOLUTE = {"max_position_embeddings": 130}
TAGGERS = {
    "bert": transformers.BertConfig(**WIDE, **ABSOLUTE, **SIZES),
    "roberta": transformers.RobertaConfig(**WIDE, **ABSOLUTE, **{**SIZES, "pad_token_id": 1}),
    "modernbert": transformers.ModernBertConfig(
        **WIDE,
        **SIZES,
        max_position_embeddings=128,
        local_attention=16,
        global_attn_every_n_layers=2,
        cls_token_id=0,
        sep_token_id=0,
    ),
}
WINDOWED = ["mistral", "qwen2", "gemma2", "gemma3"]


def documents(count=70):
    rng = random.Random(0)
    return [
        " ".join(rng.choices(["one", "two", "three", "four"], k=rng.randint(1, 9)))
        for _ in range(count)
    ]


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "train.txt").write_text("\n\n".join(documents()))
    write_conll(tmp_path / "train.conll", sentences(61))
    for name, config in CONFIGS.items():
        torch.manual_seed(0)
        transformers.AutoModelForCausalLM.from_config(config).save_pretrained(tmp_path / name)
        text_tokenizer.byte_pairs(documents(), 280).save_pretrained(tmp_path / name)
    return tmp_path


@pytest.fixture
def long(tmp_path):
    """Samples of 25 to 40 tokens, and models that look back no further than 16."""
    rng = random.Random(0)
    letters = [" ".join(rng.choices("abcdefgh", k=rng.randint(13, 20))) for _ in range(30)]
    (tmp_path / "train.txt").write_text("\n\n".join(letters))
    write_conll(
        tmp_path / "train.conll",
        [(row.split(), ["O", *["B-X"] * row.count(" ")]) for row in letters],
    )
    for configs, auto in (
        (CONFIGS, transformers.AutoModelForCausalLM),
        (TAGGERS, transformers.AutoModelForTokenClassification),
    ):
        for name in configs:
            torch.manual_seed(0)
            auto.from_config(configs[name]).save_pretrained(tmp_path / name)
            text_tokenizer.byte_pairs(["a b"], 280).save_pretrained(tmp_path / name)
    return tmp_path


def task(folder, model=SCRATCH, **changes):
    made = {
        "kind": "language_modeling",
        "train": "train.txt",
        "validation": 0.25,
        "samples": "documents",
    }
    return tasks.load({**made, "model": model, **changes}, folder)


def tagger(folder, model=SCRATCH):
    return tasks.load(
        {
            "kind": "token_classification",
            "train": "train.conll",
            "validation": 0.25,
            "model": model,
        },
        folder,
    )


def setup(folder, out="run", epochs=2, resume_from=None, **params):
    return Setup(
        {**PARAMS, **params}, 5, budget_from({"epochs": epochs}), folder / out, resume_from
    )


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
    plain, packed_ = losses_of_each(task(folder, model), folder, attention, max_length=32)
    assert torch.allclose(packed_, plain, atol=1e-5)


@pytest.mark.parametrize("max_length", [41, 100])
@pytest.mark.parametrize(
    ("model", "attention"),
    [
        (m, a) for m in WINDOWED for a in ("sdpa", "eager") if (m, a) != ("gemma2", "sdpa")
    ],  # which it does not have
)
def test_a_layer_that_sees_what_is_near_sees_no_more_of_a_packed_sample(
    long, model, max_length, attention
):
    plain, packed_ = losses_of_each(task(long, model), long, attention, max_length=max_length)
    assert torch.allclose(packed_, plain, atol=1e-5)


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
@pytest.mark.parametrize("max_length", [41, 100])
@pytest.mark.parametrize("model", TAGGERS)
def test_every_encoder_scores_packed_words_as_it_scores_plain_ones(
    long, model, max_length, attention
):
    plain, packed_ = losses_of_each(tagger(long, model), long, attention, max_length=max_length)
    assert torch.allclose(packed_, plain, atol=1e-5)


def losses_of_each(built, folder, attention, **params):
    """The loss of each target of twenty samples, unpacked and packed, in the same order."""
    data = built.prepare({**PARAMS, **params})
    workloads = [
        built.start(setup(folder, packing=on, **params), data)._workload for on in (False, True)
    ]
    rows = np.arange(20)
    losses = []
    for workload in workloads:
        workload.model.set_attn_implementation(attention)
        workload.model.eval()
        batch = workload.batch(rows)
        with torch.no_grad():
            logits = workload.outputs(batch).flatten(0, 1)
        each = torch.nn.functional.cross_entropy(logits, batch.labels.flatten(), reduction="none")
        losses.append(each[batch.labels.flatten() != -100])
    assert len(losses[0]) == workloads[0].weight(rows)
    split, capacity = data.train, workloads[1].samples._capacity
    order = Layout.of(split.inputs.offsets, rows, capacity).places
    targets = order[split.targets.tokens[order] != -100]
    return losses[0], losses[1][np.argsort(targets, kind="stable")]


def test_gradients_are_those_of_the_unpacked_batch(folder):
    built = task(folder)
    data = built.prepare(PARAMS)
    gradients = []
    for on in (False, True):
        workload = built.start(setup(folder, packing=on), data)._workload
        (
            workload.loss_sum(workload.batch(np.arange(16))) / workload.weight(np.arange(16))
        ).backward()
        gradients.append(
            torch.cat([p.grad.flatten() for p in workload.model.parameters() if p.grad is not None])
        )
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
        reports_of(built.start(setup(folder, f"p{on}", packing=on, **params), data))
        for on in (False, True)
    )
    assert dense[-1].metrics["padding_ratio"] < 0.15 < 0.3 < plain[-1].metrics["padding_ratio"]
    for name in ("loss", "train_loss"):
        assert [r.metrics[name] for r in dense] == pytest.approx(
            [r.metrics[name] for r in plain], rel=1e-4
        )
    assert [r.step for r in dense] == [r.step for r in plain], (
        "a batch is as many samples as before"
    )


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


@pytest.mark.parametrize("model", ["bloom", "mamba", "llama4"])
def test_a_model_that_cannot_tell_samples_apart_is_refused(folder, model):
    built = task(folder, model)
    with pytest.raises(
        TaskError,
        match=r"settings\.packing: does not suit this model: a \w+ForCausalLM .* set it to false",
    ):
        built.start(setup(folder), built.prepare(PARAMS))
    assert built.start(setup(folder, packing=False), built.prepare({**PARAMS, "packing": False}))


def test_a_model_is_tried_on_rows_as_long_as_they_come():
    model = transformers.AutoModelForCausalLM.from_config(CONFIGS["llama"])
    model.config.sliding_window = 16  # which a Llama does not heed
    packed_rows.demand(model, True, 16)
    with pytest.raises(TaskError, match="computes a token differently"):
        packed_rows.demand(model, True, 24)


def test_samples_of_a_single_token_can_be_packed(folder):
    (folder / "train.txt").write_text("\n\n".join(["ab"] * 9))
    (folder / "held.txt").write_text("abc")
    built = task(folder, validation="held.txt")
    params = {"batch_size": 1}
    data = built.prepare({**PARAMS, **params})
    assert set(data.train.inputs.lengths) == {1}
    assert reports_of(built.start(setup(folder, **params), data))


def test_a_model_with_layers_that_carry_on_what_they_have_read_is_refused():
    model = transformers.AutoModelForCausalLM.from_config(CONFIGS["llama"])
    model.config.layer_types = ["linear_attention", "full_attention"]
    with pytest.raises(
        TaskError, match="has layers of linear_attention, which do not take samples into account"
    ):
        packed_rows.demand(model, True, 16)


def test_the_trial_run_of_a_model_leaves_it_as_it_was(folder):
    model = transformers.AutoModelForCausalLM.from_config(CONFIGS["gpt2"])
    model.train()
    state = torch.get_rng_state()
    packed_rows.demand(model, True, 64)
    assert model.training
    assert torch.equal(state, torch.get_rng_state())


def test_other_tasks_have_no_packing(lab):
    with pytest.raises(TaskError, match=r"settings\.packing: is not a setting of this task"):
        lab.task().prepare({"packing": True})
