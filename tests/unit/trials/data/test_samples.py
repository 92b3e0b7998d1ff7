"""Batches of samples: each sample is computed as if it were alone, and no batch costs too much."""

import copy
import random

import numpy as np
import pytest
import torch
import transformers
from hypothesis import given
from hypothesis import strategies as st
from torch.utils._python_dispatch import TorchDispatchMode

from trials import tasks
from trials.contract import Setup
from trials.data.batching import Sequences
from trials.data.residence import Residence
from trials.data.samples import LABELS, Column, Padded, Samples
from trials.devices import precision
from trials.running.report_grid import budget_from
from trials.tasks.huggingface import tokenizer as text_tokenizer
from unit.trials.data.test_residence import Sent

CPU = torch.device("cpu")
TOKENS = st.lists(st.lists(st.integers(0, 1000), min_size=1, max_size=30), min_size=1, max_size=40)
SIZES = {"vocab_size": 280, "bos_token_id": 0, "eos_token_id": 0}
WIDE = {
    "hidden_size": 16,
    "intermediate_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
}
LONG = {"max_position_embeddings": 130}
CONFIGS = {
    "gpt2": transformers.GPT2Config(n_embd=16, n_layer=2, n_head=2, n_positions=130, **SIZES),
    "llama": transformers.LlamaConfig(**WIDE, **LONG, num_key_value_heads=1, **SIZES),
    "mistral": transformers.MistralConfig(
        **WIDE, **LONG, num_key_value_heads=1, head_dim=8, sliding_window=16, **SIZES
    ),
    "qwen2": transformers.Qwen2Config(**WIDE, **LONG, num_key_value_heads=1, **SIZES),
    "bert": transformers.BertConfig(**WIDE, **LONG, **SIZES),
    "roberta": transformers.RobertaConfig(**WIDE, **LONG, **SIZES),
    "modernbert": transformers.ModernBertConfig(
        **WIDE,
        **LONG,
        **SIZES,
        local_attention=16,
        global_attn_every_n_layers=2,
        cls_token_id=0,
        sep_token_id=0,
        pad_token_id=0,
    ),
    "distilbert": transformers.DistilBertConfig(
        dim=16, hidden_dim=32, n_layers=2, n_heads=2, max_position_embeddings=130, vocab_size=280
    ),
    "deberta": transformers.DebertaV2Config(**WIDE, **LONG, **SIZES, relative_attention=True),
}
DECODERS = ["gpt2", "llama", "mistral", "qwen2"]
LETTERS = 70
"""A token that stands in no text."""


def pretrained(folder, name, config_padding, tokenizer_padding):
    """A folder of `save_pretrained`; model and tokenizer each name a padding token or none."""
    torch.manual_seed(0)
    model = transformers.AutoModelForSequenceClassification.from_config(
        copy.deepcopy(CONFIGS[name])
    )
    model.config.pad_token_id = config_padding
    model.save_pretrained(folder / name)
    tokenizer = text_tokenizer.byte_pairs(["a b"], 280)
    tokenizer.pad_token = tokenizer_padding
    tokenizer.save_pretrained(folder / name)
    return name


def texts(count=24):
    rng = random.Random(0)
    return [" ".join(rng.choices("abcdefgh", k=rng.randint(2, 30))) for _ in range(count)]


@pytest.fixture
def folder(tmp_path):
    rows = [f"{text},{'xyz'[row % 3]}" for row, text in enumerate(texts())]
    (tmp_path / "train.csv").write_text("\n".join(["text,topic", *rows]))
    (tmp_path / "train.txt").write_text("\n\n".join(texts()))
    (tmp_path / "even.csv").write_text(
        "\n".join(["text,topic", *("c d e,x", "f g h,y", "h d c,z") * 3])
    )
    (tmp_path / "train.conll").write_text(
        "\n\n".join(text.replace(" ", "\tO\n") + "\tB-X" for text in texts())
    )
    return tmp_path


def classifier(folder, model, train="train.csv", **changes):
    part = {
        "kind": "text_classification",
        "train": train,
        "validation": "train.csv",
        "text": "text",
        "label": "topic",
    }
    return tasks.load({**part, "model": model, **changes}, folder)


def setup(folder, **params):
    return Setup({"learning_rate": 1e-3, **params}, 5, budget_from({"epochs": 1}), folder / "run")


def scores(workload, rows):
    return workload.model(**workload.batch(rows).inputs).logits


@pytest.mark.parametrize(
    ("config_padding", "tokenizer_padding"),
    [
        (None, None),
        (None, "Z"),
        (0, "<|endoftext|>"),
        (5, None),
        (5, "<|endoftext|>"),
        (LETTERS, "Z"),
    ],
)
@pytest.mark.parametrize("name", CONFIGS)
def test_a_sample_is_scored_as_if_it_were_alone(folder, name, config_padding, tokenizer_padding):
    if name not in DECODERS and config_padding is None:
        config_padding = 1  # an encoder embeds its padding, and names it
    built = classifier(folder, pretrained(folder, name, config_padding, tokenizer_padding))
    workload = built.start(setup(folder), built.prepare({}))._workload
    workload.model.eval()
    rows = np.arange(24)
    with torch.no_grad():
        together = scores(workload, rows)
        alone = torch.cat([scores(workload, rows[row : row + 1]) for row in rows])
    assert together.std(dim=0).min() > 1e-4, "the texts differ"
    assert torch.allclose(together, alone, atol=1e-5)


@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_the_loss_does_not_depend_on_how_many_texts_are_scored_at_once(folder, name):
    built = classifier(folder, pretrained(folder, name, 5, None))
    data = built.prepare({})
    arithmetic = precision.Precision("fp32", torch.device("cpu"))
    losses = [
        built.start(setup(folder, eval_batch_size=size), data)._workload.evaluate(arithmetic)[
            "loss"
        ]
        for size in (1, 7, 24)
    ]
    assert losses[1:] == pytest.approx([losses[0]] * 2, rel=1e-6)


@pytest.mark.parametrize(
    ("name", "tokenizer_padding"),
    [
        ("gpt2", None),
        ("gpt2", "Z"),
        ("roberta", None),  # which counts positions from its padding
    ],
)
def test_what_is_written_scores_a_text_in_any_batch_as_the_run_did(folder, name, tokenizer_padding):
    built = classifier(folder, pretrained(folder, name, 5, tokenizer_padding))
    run = built.start(setup(folder), built.prepare({}))
    *_, last = (item for item in run if item is not None)
    written = transformers.AutoModelForSequenceClassification.from_pretrained(
        last.checkpoint
    ).eval()
    run._workload.model.eval()
    batch = run._workload.batch(np.arange(24))
    with torch.no_grad():
        assert torch.equal(
            written(**batch.inputs).logits, run._workload.model(**batch.inputs).logits
        )


TASKS = {
    "text_classification": {"train": "train.csv", "text": "text", "label": "topic"},
    "language_modeling": {"train": "train.txt", "samples": "documents"},
    "token_classification": {"train": "train.conll"},
}


@pytest.mark.parametrize("name", DECODERS)
@pytest.mark.parametrize("kind", TASKS)
def test_training_and_scoring_keep_no_cache_of_what_was_read(folder, monkeypatch, kind, name):
    made = []
    begin = transformers.Cache.__init__
    monkeypatch.setattr(
        transformers.Cache, "__init__", lambda *a, **k: made.append(a) or begin(*a, **k)
    )
    built = tasks.load(
        {
            "kind": kind,
            "validation": 0.25,
            **TASKS[kind],
            "model": pretrained(folder, name, 0, None),
        },
        folder,
    )
    reports = [item for item in built.start(setup(folder), built.prepare({})) if item is not None]
    assert reports
    assert not made
    written = transformers.AutoConfig.from_pretrained(reports[-1].checkpoint)
    assert written.use_cache, "who writes texts with the model may"


@pytest.mark.parametrize("name", CONFIGS)
def test_samples_of_one_length_have_no_mask_and_the_same_scores(folder, name):
    built = classifier(folder, pretrained(folder, name, 0, None), train="even.csv")
    workload = built.start(setup(folder), built.prepare({}))._workload
    workload.model.eval()
    batch = workload.batch(np.arange(9))
    assert "attention_mask" not in batch.inputs
    masked = {**batch.inputs, "attention_mask": torch.ones_like(batch.inputs["input_ids"])}
    with torch.no_grad():
        assert torch.equal(workload.model(**batch.inputs).logits, workload.model(**masked).logits)


class Reads(TorchDispatchMode):
    """Counts how often a number is read from a tensor: on a GPU each waits for the device."""

    def __init__(self):
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, function, types, arguments=(), named=None):
        self.count += function in (
            torch.ops.aten._local_scalar_dense.default,
            torch.ops.aten.is_nonzero.default,
        )
        return function(*arguments, **(named or {}))


@pytest.mark.parametrize("name", ["bert", "roberta", "modernbert", "distilbert", "deberta"])
def test_a_step_of_an_encoder_on_samples_of_one_length_reads_nothing_from_the_device(folder, name):
    built = classifier(folder, pretrained(folder, name, 1, None), train="even.csv")
    run = iter(built.start(setup(folder, batch_size=3), built.prepare({})))
    next(run)
    with Reads() as reads:
        next(run)
    assert reads.count == 0


def test_a_captured_model_gets_every_batch_in_one_form(folder, monkeypatch):
    monkeypatch.setattr("trials.loop.captured.CAPTURING", {"cpu"})
    built = classifier(folder, pretrained(folder, "bert", 0, None), train="even.csv")
    workload = built.start(setup(folder), built.prepare({}))._workload
    assert "attention_mask" in workload.batch(np.arange(9)).inputs


def samples_of(residence: Residence, tokens: list[list[int]]) -> Samples:
    sequences = Sequences.of(tokens)
    labels = np.arange(len(tokens), dtype=np.int64)
    parts = [Padded(residence, "ids", sequences, 7, "mask"), Column(residence, LABELS, labels)]
    return Samples(residence, parts, parts[:1])


@given(TOKENS, st.randoms(use_true_random=False))
def test_a_batch_is_the_same_wherever_its_samples_lie(tokens, random):
    rows = np.array(random.choices(range(len(tokens)), k=random.randint(1, 9)))
    resident, sent = (
        samples_of(residence, tokens).batch(rows) for residence in (Residence(CPU, True), Sent())
    )
    texts_asked = [tokens[row] for row in rows]
    longest = max(map(len, texts_asked))
    padded = [text + [7] * (longest - len(text)) for text in texts_asked]
    mask = [[1] * len(text) + [0] * (longest - len(text)) for text in texts_asked]
    for batch in (resident, sent):
        assert batch.inputs["ids"].tolist() == padded
        assert batch.inputs["mask"].tolist() == mask
        assert batch.inputs["ids"].dtype == batch.inputs["mask"].dtype == torch.int64
        assert batch.labels.tolist() == rows.tolist()
        assert (batch.tokens, batch.cells) == (sum(map(len, texts_asked)), longest * len(rows))


def test_every_tensor_of_a_batch_is_sent_once_and_finished_on_the_device():
    residence = Sent()
    columns = [
        Column(residence, "x", np.arange(6, dtype=np.float32)),
        Column(residence, LABELS, np.arange(6)),
    ]
    finished = []
    samples = Samples(residence, columns, finish=lambda batch: finished.append(batch) or batch)
    batch = samples.batch(np.array([4, 1]))
    assert [tensor.tolist() for tensor in residence.tensors] == [[4.0, 1.0], [4, 1]]
    assert finished == [batch]
    assert (batch.tokens, batch.cells) == (0, 0)


def test_a_column_may_have_another_type_in_a_batch_than_where_it_lies():
    column = Column(Residence(CPU, True), "x", np.arange(4, dtype=np.int32), torch.int64)
    assert column.gather(np.array([3]), torch.tensor([3]))["x"].dtype == torch.int64
