"""Sequence to sequence: pairs of texts, losses per token of the targets, checkpoints others can load."""

from __future__ import annotations

import json
import math
import random
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import torch
import transformers

from trials import tasks
from trials.budgets import budget_from
from trials.contract import Setup, TaskError
from trials.runner import Runner
from trials.tasks import text_tokenizer
from trials.tasks.sequence_data import IGNORED
from trials.tasks.sequence_to_sequence import METRICS

PARAMS = {"learning_rate": 1e-2, "batch_size": 8, "weight_decay": 0.0, "max_length": 16, "max_target_length": 12}


def pairs(count=61):
    """Words to repeat, from one to seven of them."""
    rng = random.Random(0)
    texts = [" ".join(rng.choices(["one", "two", "three"], k=rng.randint(1, 7))) for _ in range(count)]
    return pd.DataFrame({"source": texts, "target": [" ".join(text.split()[:2]) + "!" for text in texts]})


@pytest.fixture
def folder(tmp_path):
    pairs().to_csv(tmp_path / "train.csv", index=False)
    return tmp_path


def part(**changes):
    scratch = {"layers": 1, "width": 16, "heads": 2, "vocabulary": 280}
    made = {"kind": "sequence_to_sequence", "train": "train.csv", "validation": 0.25, "model": {"scratch": scratch}}
    return {**made, **changes}


def task(folder, **changes):
    return tasks.load(part(**changes), folder)


def problems(folder, **changes):
    return {p.where: p.what for p in tasks.inspect(part(**changes), folder)}


def setup(folder, out="run", epochs=1, resume_from=None, **params):
    return Setup({**PARAMS, **params}, 5, budget_from({"epochs": epochs}), folder / out, resume_from)


def reports_of(run):
    return [item for item in run if item is not None]


def pretrained(folder, kind):
    """A tiny model and its tokenizer, saved on the spot."""
    tokenizer = text_tokenizer.ended_byte_pairs([*pairs().source, *pairs().target], 280)
    sizes = {"vocab_size": len(tokenizer), "pad_token_id": 0, "eos_token_id": 1, "decoder_start_token_id": 0}
    if kind == "bart":
        shape = {"d_model": 16, "max_position_embeddings": 32}
        for side in ("encoder", "decoder"):
            shape |= {f"{side}_layers": 1, f"{side}_attention_heads": 2, f"{side}_ffn_dim": 32}
        config = transformers.BartConfig(**shape, **sizes, bos_token_id=0, forced_eos_token_id=1)
    else:
        config = transformers.T5Config(d_model=16, d_kv=8, d_ff=32, num_layers=1, num_heads=2, **sizes)
    transformers.AutoModelForSeq2SeqLM.from_config(config).save_pretrained(folder / kind)
    tokenizer.save_pretrained(folder / kind)
    return kind


def test_sources_and_targets_are_cut_each_to_its_length_and_end(folder):
    data = task(folder, validation="train.csv").prepare({**PARAMS, "max_length": 4, "max_target_length": 6})
    assert data.train.inputs.lengths.max() == 4
    ends = (
        data.train.inputs.tokens[data.train.inputs.offsets[1:] - 1],
        data.train.targets.tokens[data.train.targets.offsets[1:] - 1],
    )
    assert set(np.concatenate(ends).tolist()) == {1}
    files = folder / "tokenizer"
    files.mkdir()
    for name, content in data.tokenizer_files.items():
        (files / name).write_bytes(content)
    tokenizer = transformers.AutoTokenizer.from_pretrained(files)
    assert tokenizer.decode(data.train.targets.tokens[: data.train.targets.offsets[1]]) == pairs().target[0] + "</s>"


def test_every_format_gives_the_same_data(folder):
    frame = pairs().rename(columns={"source": "long", "target": "short"})
    frame.to_csv(folder / "a.csv", index=False)
    frame.to_parquet(folder / "a.parquet")
    frame.to_json(folder / "a.jsonl", orient="records", lines=True)
    expected = task(folder).prepare(PARAMS).fingerprint
    for name in ("a.csv", "a.parquet", "a.jsonl"):
        assert task(folder, train=name, source="long", target="short").prepare(PARAMS).fingerprint == expected, name


def test_data_that_cannot_be_used_is_told(folder):
    (folder / "empty.csv").write_text("source,target\n")
    (folder / "gaps.csv").write_text("source,target\none,two\nthree,\n,four\n")
    (folder / "one.csv").write_text("source,target\none,two\n")
    (folder / "broken.jsonl").write_text('{"source": "a", "target": "b"}\n{"source"\n')
    assert "has no rows; name a file with data" in problems(folder, train="empty.csv")["task.train"]
    found = problems(folder, train="gaps.csv")
    assert "1 row of" in found["task.target"]
    assert "without 'target': row 2" in found["task.target"]
    assert "without 'source': row 3" in found["task.source"]
    assert "leaves no validation rows out of 1" in problems(folder, train="one.csv")["task.validation"]
    assert "line 2" in problems(folder, train="broken.jsonl")["task.train"]
    assert "has no column 'sauce', it has source, target" in problems(folder, source="sauce")["task.source"]
    assert "did you mean train.csv?" in problems(folder, train="trian.csv")["task.train"]
    assert "no such file" in problems(folder, test="no.csv")["task.test"]
    assert problems(folder, test="train.csv") == {}


def test_a_target_longer_than_the_model_can_write_is_told(folder):
    with pytest.raises(TaskError, match=r"settings\.max_target_length: must be at most 512"):
        task(folder).prepare({"max_target_length": 600})
    with pytest.raises(TaskError, match=r"settings\.max_length: must be at most 32"):
        task(folder, model=pretrained(folder, "bart")).prepare({"max_length": 33, "max_target_length": 8})


def test_a_model_that_is_no_encoder_and_decoder_is_refused(folder):
    pretrained(folder, "t5")
    path = folder / "t5" / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "decoder_start_token_id": None}))
    built = task(folder, model="t5")
    with pytest.raises(TaskError, match="names no decoder_start_token_id"):
        built.start(setup(folder), built.prepare(PARAMS))
    (folder / "t5").rename(folder / "gpt2")
    transformers.GPT2Config(n_embd=16, n_layer=1, n_head=2, vocab_size=280).save_pretrained(folder / "gpt2")
    built = task(folder, model="gpt2")
    with pytest.raises(TaskError, match="cannot be loaded"):
        built.start(setup(folder), built.prepare(PARAMS))


@pytest.mark.parametrize("kind", ["t5", "bart"])
def test_the_loss_is_the_one_transformers_computes(folder, kind):
    built = task(folder, model=pretrained(folder, kind))
    data = built.prepare(PARAMS)
    workload = built.start(setup(folder), data)._workload
    workload.model.eval()
    rows = np.arange(9)
    batch = workload.batch(rows)
    inputs = {name: batch.inputs[name] for name in ("input_ids", "attention_mask")}
    expected = workload.model(**inputs, labels=batch.labels).loss
    assert (workload.loss_sum(batch) / workload.weight(rows)).item() == pytest.approx(expected.item(), rel=1e-5)
    assert workload.weight(rows) == (batch.labels != IGNORED).sum()
    assert batch.tokens == workload.lengths[rows].sum()


@pytest.mark.parametrize("kind", [None, "t5", "bart"])
def test_a_resumed_run_goes_on_bit_for_bit(folder, kind, without_timings):
    built = task(folder) if kind is None else task(folder, model=pretrained(folder, kind))
    data = built.prepare(PARAMS)
    whole = reports_of(built.start(setup(folder, "whole", 3), data))
    first = built.start(setup(folder, "parts", 3), data)
    items = iter(first)
    for _ in range(9):
        next(items)
    again = reports_of(built.start(setup(folder, "parts", 3, first.save()), data))
    assert again
    assert without_timings(again) == without_timings(whole)[-len(again) :]


def test_micro_batches_add_up_though_targets_differ_in_length(folder):
    built = task(folder)
    data = built.prepare(PARAMS)
    assert len(set(data.train.weights.tolist())) > 1
    params = {"dropout": 0.0, "optimizer": "sgd", "learning_rate": 0.1, "batch_size": 500}
    losses = [
        [r.metrics["train_loss"] for r in reports_of(built.start(one, data))]
        for one in (setup(folder, f"m{m}", 2, micro_batch=m, **params) for m in (None, 7))
    ]
    assert losses[1] == pytest.approx(losses[0], rel=1e-5)


def test_a_small_model_learns_to_write_the_first_words(folder):
    built = task(folder)
    run = built.start(setup(folder, epochs=25, dropout=0.0), built.prepare(PARAMS))
    reports = reports_of(run)
    last = reports[-1]
    assert last.metrics["perplexity"] == pytest.approx(math.exp(last.metrics["loss"]))
    assert last.metrics["loss"] < reports[0].metrics["loss"] / 2
    assert last.metrics.keys() == METRICS


@pytest.mark.parametrize("kind", [None, "bart"])
def test_a_checkpoint_is_a_model_that_transformers_loads_and_that_writes(folder, kind):
    built = task(folder) if kind is None else task(folder, model=pretrained(folder, kind))
    run = built.start(setup(folder, dropout=0.0), built.prepare(PARAMS))
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
    again = task(folder, model=str(path))
    assert len(reports_of(again.start(setup(folder, "again"), again.prepare(PARAMS)))) == 1


def test_dropout_and_adapters_reach_a_t5(folder):
    built = task(folder, model=pretrained(folder, "t5"))
    run = built.start(setup(folder, dropout=0.0, lora=True, lora_rank=2), built.prepare(PARAMS))
    model = run._workload.model
    assert model.config.dropout_rate == 0.0
    assert all(".lora_" in name for name, p in model.named_parameters() if p.requires_grad)
    path = reports_of(run)[-1].checkpoint
    transformers.logging.disable_progress_bar()
    merged = transformers.AutoModelForSeq2SeqLM.from_pretrained(path).eval()
    tokens = torch.arange(2, 8)[None]
    with torch.inference_mode():
        here = model.eval()(input_ids=tokens, decoder_input_ids=tokens).logits
        assert torch.allclose(merged(input_ids=tokens, decoder_input_ids=tokens).logits, here, atol=1e-5)


def test_a_killed_run_goes_on_as_if_nothing_had_happened(folder, without_timings):
    params = {**PARAMS, "save_every_steps": 4, "precision": "fp32"}
    study = {"task": part(), "settings": params, "budget": {"per_trial": {"epochs": 30}}, "seed": 5}
    (folder / "study.yaml").write_text(json.dumps(study))
    command = [sys.executable, "-m", "trials", str(folder / "study.yaml"), "--out", str(folder / "parts")]
    killed = subprocess.Popen([*command, "--device", "cpu"], stdout=subprocess.PIPE, text=True)
    with killed, killed.stdout:
        killed.stdout.readline()
        killed.kill()
    built = task(folder)
    data = built.prepare(params)
    whole = reports_of(built.start(setup(folder, "whole", 30), data))
    again = reports_of(built.start(setup(folder, "parts", 30, folder / "parts" / "last", **params), data))
    assert 0 < len(again) < 30
    assert without_timings(again) == without_timings(whole)[-len(again) :]


def test_a_short_study_goes_through_the_runner(folder):
    built = task(folder)
    runner = Runner(built, built.prepare(PARAMS), setup(folder, epochs=2))
    try:
        assert [report.resource for report in runner.advance(1.0)] == [1.0]
        assert [report.resource for report in runner.advance(2.0)] == [2.0]
        assert runner.finished == "budget used"
    finally:
        runner.close()


def test_a_rehearsal_measures_a_step(folder):
    built = task(folder)
    assert built.rehearse(setup(folder), built.prepare(PARAMS))["parameters"] > 1000
