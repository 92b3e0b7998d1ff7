"""Sequence to sequence: pairs of texts, losses per token of the targets, checkpoints others can
load."""

import json
import math
import random

import numpy as np
import pandas as pd
import pytest
import torch
import transformers

from support.files import small_models
from support.files.written_tokenizers import tokenizer_in
from support.running.runs import Lab, reports_of
from trials.contract import TaskError
from trials.descriptions.text import SEQUENCE_TO_SEQUENCE
from trials.devices.precision import Precision
from trials.tasks.final.parts import FinalParts
from trials.tasks.sequences.data import IGNORED

SCRATCH = {"layers": 1, "width": 16, "heads": 2, "vocabulary": 280}
PART = {
    "kind": "sequence_to_sequence",
    "train": "train.csv",
    "validation": 0.25,
    "model": {"scratch": SCRATCH},
}
PARAMS = {
    "learning_rate": 1e-2,
    "batch_size": 8,
    "weight_decay": 0.0,
    "max_length": 16,
    "max_target_length": 12,
}


def pairs(count=61):
    """Words to repeat, from one to seven of them."""
    rng = random.Random(0)
    texts = [
        " ".join(rng.choices(["one", "two", "three"], k=rng.randint(1, 7))) for _ in range(count)
    ]
    return pd.DataFrame(
        {"source": texts, "target": [" ".join(text.split()[:2]) + "!" for text in texts]}
    )


def lab_in(tmp_path):
    pairs().to_csv(tmp_path / "train.csv", index=False)
    return Lab(tmp_path, PART, PARAMS)


@pytest.fixture
def lab(tmp_path):
    return lab_in(tmp_path)


def pretrained(folder, kind):
    """A tiny model and its tokenizer, saved on the spot."""
    texts, auto = [*pairs().source, *pairs().target], transformers.AutoModelForSeq2SeqLM
    small_models.write(folder / kind, kind, texts, auto)
    return kind


def test_sources_and_targets_are_cut_each_to_its_length_and_end(lab):
    data = lab.task(validation="train.csv").prepare(
        {**PARAMS, "max_length": 4, "max_target_length": 6}
    )
    assert data.train.inputs.lengths.max() == 4
    ends = (
        data.train.inputs.tokens[data.train.inputs.offsets[1:] - 1],
        data.train.targets.tokens[data.train.targets.offsets[1:] - 1],
    )
    assert set(np.concatenate(ends).tolist()) == {1}
    tokenizer = tokenizer_in(data.tokenizer_files)
    assert tokenizer.decode(data.train.targets.row(0)) == pairs().target[0] + "</s>"


def test_data_that_cannot_be_used_is_told(lab):
    (lab.folder / "empty.csv").write_text("source,target\n")
    (lab.folder / "gaps.csv").write_text("source,target\none,two\nthree,\n,four\n")
    (lab.folder / "one.csv").write_text("source,target\none,two\n")
    (lab.folder / "broken.jsonl").write_text('{"source": "a", "target": "b"}\n{"source"\n')
    assert "has no rows; name a file with data" in lab.problems(train="empty.csv")["task.train"]
    found = lab.problems(train="gaps.csv")
    assert "1 row of" in found["task.target"]
    assert "without 'target': row 2" in found["task.target"]
    assert "without 'source': row 3" in found["task.source"]
    assert (
        "there is only one row to train and to validate; add rows"
        in lab.problems(train="one.csv")["task.validation"]
    )
    assert "line 2" in lab.problems(train="broken.jsonl")["task.train"]
    assert (
        "has no column 'sauce', it has source, target"
        in lab.problems(source="sauce")["task.source"]
    )
    assert "did you mean train.csv?" in lab.problems(train="trian.csv")["task.train"]
    assert "no such file" in lab.problems(test="no.csv")["task.test"]
    assert lab.problems(test="train.csv") == {}


def test_a_target_longer_than_the_model_can_write_is_told(lab):
    with pytest.raises(TaskError, match=r"settings\.max_target_length: must be at most 512"):
        lab.task().prepare({"max_target_length": 600})
    with pytest.raises(TaskError, match=r"settings\.max_length: must be at most 32"):
        lab.task(model=pretrained(lab.folder, "bart")).prepare(
            {"max_length": 33, "max_target_length": 8}
        )


def test_a_model_that_is_no_encoder_and_decoder_is_refused(lab):
    pretrained(lab.folder, "t5")
    path = lab.folder / "t5" / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "decoder_start_token_id": None}))
    built = lab.task(model="t5")
    with pytest.raises(TaskError, match="names no decoder_start_token_id"):
        built.start(lab.setup(), built.prepare(PARAMS))
    (lab.folder / "t5").rename(lab.folder / "gpt2")
    transformers.GPT2Config(n_embd=16, n_layer=1, n_head=2, vocab_size=280).save_pretrained(
        lab.folder / "gpt2"
    )
    built = lab.task(model="gpt2")
    with pytest.raises(TaskError, match="cannot be loaded"):
        built.start(lab.setup(), built.prepare(PARAMS))


@pytest.mark.parametrize("kind", ["t5", "bart"])
def test_the_loss_is_the_one_transformers_computes(lab, kind):
    built = lab.task(model=pretrained(lab.folder, kind))
    data = built.prepare(PARAMS)
    workload = built.start(lab.setup(), data)._workload
    workload.model.eval()
    rows = np.arange(9)
    batch = workload.batch(rows)
    inputs = {name: batch.inputs[name] for name in ("input_ids", "attention_mask")}
    expected = workload.model(**inputs, labels=batch.labels).loss
    assert (workload.loss_sum(batch) / workload.weight(rows)).item() == pytest.approx(
        expected.item(), rel=1e-5
    )
    assert workload.weight(rows) == (batch.labels != IGNORED).sum()
    assert batch.tokens == workload.lengths[rows].sum()


@pytest.mark.thorough
def test_a_small_model_learns_to_write_the_first_words(lab):
    built = lab.task()
    run = built.start(lab.setup(epochs=25, dropout=0.0), built.prepare(PARAMS))
    reports = reports_of(run)
    last = reports[-1]
    assert last.metrics["perplexity"] == pytest.approx(math.exp(last.metrics["loss"]))
    assert last.metrics["loss"] < reports[0].metrics["loss"] / 2
    assert last.metrics.keys() == SEQUENCE_TO_SEQUENCE.metrics


@pytest.mark.parametrize("kind", [None, "bart"])
def test_a_checkpoint_is_a_model_that_transformers_loads_and_that_writes(lab, kind):
    built = lab.task() if kind is None else lab.task(model=pretrained(lab.folder, kind))
    run = built.start(lab.setup(dropout=0.0), built.prepare(PARAMS))
    path = reports_of(run)[-1].checkpoint
    transformers.logging.disable_progress_bar()
    loaded = transformers.AutoModelForSeq2SeqLM.from_pretrained(path).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(path)
    inputs = tokenizer(["one two"], return_tensors="pt")
    decoded = torch.zeros((1, 1), dtype=torch.long)
    with torch.inference_mode():
        here = run._workload.model.eval()(**inputs, decoder_input_ids=decoded).logits
        assert torch.allclose(loaded(**inputs, decoder_input_ids=decoded).logits, here, atol=1e-6)
        assert loaded.generate(**inputs, max_new_tokens=3).shape[0] == 1
    again = lab.task(model=str(path))
    assert len(reports_of(again.start(lab.setup("again"), again.prepare(PARAMS)))) == 1


def test_dropout_and_adapters_reach_a_t5(lab):
    built = lab.task(model=pretrained(lab.folder, "t5"))
    setup, data = lab.setup(dropout=0.0, lora=True, lora_rank=2), built.prepare(PARAMS)
    run = built.start(setup, data)
    model = run._workload.model
    assert model.config.dropout_rate == 0.0
    assert all(".lora_" in name for name, p in model.named_parameters() if p.requires_grad)
    path = reports_of(run)[-1].checkpoint
    transformers.logging.disable_progress_bar()
    built.complete(path, data, setup)
    merged = transformers.AutoModelForSeq2SeqLM.from_pretrained(path).eval()
    tokens = torch.arange(2, 8)[None]
    with torch.inference_mode():
        here = model.eval()(input_ids=tokens, decoder_input_ids=tokens).logits
        assert torch.allclose(
            merged(input_ids=tokens, decoder_input_ids=tokens).logits, here, atol=1e-5
        )


def test_trials_of_different_lengths_are_scored_on_the_same_tokens(lab):
    losses, targets = [], []
    for length in (4, 5, 7):
        built = lab.task(model=pretrained(lab.folder, "bart"), source="target", target="source")
        params = {"max_target_length": length, "scored_target_length": 7, "max_length": length}
        data = built.prepare({**PARAMS, **params})
        assert data.train.targets.lengths.max() == length
        workload = built.start(lab.setup(f"l{length}", **params), data)._workload
        for parameter in workload.model.parameters():
            parameter.data.zero_()  # a model that knows nothing: every token is as likely
        losses.append(workload.evaluate(Precision("fp32", torch.device("cpu")))["loss"])
        targets.append(workload._validation.batch(np.arange(5)).labels.tolist())
    assert losses == pytest.approx([math.log(workload.model.config.vocab_size)] * 3, rel=1e-6)
    assert targets[0] == targets[1] == targets[2]


def test_a_final_training_on_all_pairs_cuts_the_validation_targets_as_it_cuts_the_others(lab):
    built = lab.task(source="target", target="source")
    params = {**PARAMS, "max_target_length": 5, "scored_target_length": 7}
    joined = FinalParts(built).joined(built.prepare(params))
    assert joined.train.targets.lengths.max() == 5


def test_targets_are_scored_no_further_than_the_model_reads(lab):
    with pytest.raises(TaskError, match=r"settings\.scored_target_length: must be at most 512"):
        lab.task().prepare({"scored_target_length": 600})


@pytest.mark.parametrize("scored", [4, 12])
def test_bits_per_byte_are_the_whole_loss_over_the_text_that_is_scored(lab, scored):
    rows = pairs()
    rows.assign(target=rows.source).to_csv(lab.folder / "copied.csv", index=False)
    built = lab.task(train="copied.csv", validation="copied.csv")
    params = {"max_target_length": 4, "scored_target_length": scored}
    data = built.prepare({**PARAMS, **params})
    workload = built.start(lab.setup(**params), data)._workload
    found = workload.evaluate(Precision("fp32", torch.device("cpu")))
    tokenizer = tokenizer_in(data.tokenizer_files)
    targets = data.scored.targets
    texts = [
        tokenizer.decode(targets.row(row), skip_special_tokens=True)
        for row in range(len(targets.lengths))
    ]
    assert (texts == rows.source.tolist()) == (scored == 12), "some are cut"
    assert data.scored_bytes == sum(len(text.encode()) for text in texts)
    bits = found["loss"] * len(targets.tokens) / math.log(2)
    assert found["bits_per_byte"] == pytest.approx(bits / data.scored_bytes)
