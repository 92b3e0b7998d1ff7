"""Language modelling: documents in blocks, every token a target once, losses per token, checkpoints others can load."""

from __future__ import annotations

import hashlib
import itertools
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
from trials.contract import Setup
from trials.tasks.language_modeling import METRICS

PARAMS = {"learning_rate": 5e-3, "batch_size": 4, "weight_decay": 0.0, "max_length": 16}


def documents(count=60):
    rng = random.Random(0)
    return [" ".join(["one two three four five six seven"] * rng.randint(1, 4)) for _ in range(count)]


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "train.txt").write_text("\n\n".join(documents()))
    return tmp_path


def part(**changes):
    scratch = {"layers": 1, "width": 16, "heads": 2, "vocabulary": 280}
    made = {"kind": "language_modeling", "train": "train.txt", "validation": 0.25, "model": {"scratch": scratch}}
    return {**made, **changes}


def task(folder, **changes):
    return tasks.load(part(**changes), folder)


def problems(folder, **changes):
    return {p.where: p.what for p in tasks.inspect(part(**changes), folder)}


def setup(folder, out="run", epochs=1, resume_from=None, **params):
    return Setup({**PARAMS, **params}, 5, budget_from({"epochs": epochs}), folder / out, resume_from)


def reports_of(run):
    return [item for item in run if item is not None]


def test_every_token_but_the_first_is_a_target_once(folder):
    data = task(folder, validation="train.txt").prepare(PARAMS)
    inputs, targets = data.train.inputs, data.train.targets
    assert np.array_equal(inputs.tokens[1:], targets.tokens[:-1])
    assert set(inputs.lengths[:-1].tolist()) == {16}
    assert inputs.lengths.sum() == len(targets.tokens) == data.train.weights.sum()
    files = folder / "tokenizer"
    files.mkdir()
    for name, content in data.tokenizer_files.items():
        (files / name).write_bytes(content)
    text = transformers.AutoTokenizer.from_pretrained(files).decode([inputs.tokens[0], *targets.tokens])
    assert text == "".join(f"{document}<|endoftext|>" for document in documents())


def test_no_document_stands_in_training_and_validation(folder):
    rows = [f"document number {n}" for n in range(40)]
    pd.DataFrame({"text": rows}).to_csv(folder / "rows.csv", index=False)
    data = task(folder, train="rows.csv").prepare(PARAMS)
    assert (data.validation.targets.tokens == data.padding).sum() == 10
    assert (data.train.targets.tokens == data.padding).sum() == 30


def test_documents_can_be_samples_by_themselves(folder):
    data = task(folder, samples="documents", validation="train.txt").prepare(PARAMS)
    inputs, targets = data.train.inputs, data.train.targets
    assert inputs.lengths.tolist() == targets.lengths.tolist()
    assert 1 <= inputs.lengths.min() < inputs.lengths.max() == 16
    assert (targets.tokens == data.padding).sum() == len(documents())
    assert (inputs.tokens == data.padding).sum() == 0
    texts = [targets.tokens[a:b].tolist() for a, b in itertools.pairwise(targets.offsets.tolist())]
    assert len(texts) > len(documents()), "long documents are cut"
    assert "must be blocks or documents, not 'lines'" in problems(folder, samples="lines")["task.samples"]


def test_every_format_gives_the_same_data(folder):
    frame = pd.DataFrame({"body": documents()})
    frame.to_csv(folder / "a.csv", index=False)
    frame.to_parquet(folder / "a.parquet")
    frame.to_json(folder / "a.jsonl", orient="records", lines=True)
    (folder / "lines.txt").write_text("\n".join(documents()))
    expected = task(folder).prepare(PARAMS).fingerprint
    for name in ("a.csv", "a.parquet", "a.jsonl", "lines.txt"):
        assert task(folder, train=name, text="body").prepare(PARAMS).fingerprint == expected, name


def test_data_that_cannot_be_used_is_told(folder):
    (folder / "empty.txt").write_text("\n \n")
    (folder / "one.txt").write_text("one line alone")
    (folder / "rows.csv").write_text("body\nhello\n")
    assert "has no text; name a file with data" in problems(folder, train="empty.txt")["task.train"]
    assert "leaves no validation rows out of 1" in problems(folder, train="one.txt")["task.validation"]
    assert "has no column 'text', it has body" in problems(folder, train="rows.csv")["task.text"]
    assert "did you mean train.txt?" in problems(folder, train="trian.txt")["task.train"]
    assert "no such file" in problems(folder, test="no.txt")["task.test"]
    assert problems(folder, test="train.txt") == {}


def test_a_tokenizer_from_scratch_is_the_same_in_every_process(folder):
    program = (
        "import sys, hashlib, json; from pathlib import Path; from trials.tasks import load\n"
        "data = load(json.loads(sys.argv[1]), Path(sys.argv[2])).prepare({})\n"
        "print(hashlib.sha256(data.tokenizer_files['tokenizer.json']).hexdigest())"
    )
    here = task(folder).prepare({}).tokenizer_files["tokenizer.json"]
    command = [sys.executable, "-c", program, json.dumps(part()), str(folder)]
    there = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    assert hashlib.sha256(here).hexdigest() == there


def test_a_small_model_learns_the_order_of_words(folder):
    built = task(folder)
    last = reports_of(built.start(setup(folder, epochs=15), built.prepare(PARAMS)))[-1]
    assert last.metrics["perplexity"] == pytest.approx(math.exp(last.metrics["loss"]))
    assert last.metrics["perplexity"] < 4
    assert last.metrics.keys() == METRICS


def test_a_checkpoint_is_a_model_that_transformers_loads(folder):
    built = task(folder)
    run = built.start(setup(folder, dropout=0.0), built.prepare(PARAMS))
    path = reports_of(run)[-1].checkpoint
    transformers.logging.disable_progress_bar()
    loaded = transformers.AutoModelForCausalLM.from_pretrained(path)
    tokens = torch.arange(8)[None]
    with torch.inference_mode():
        assert torch.allclose(loaded.eval()(tokens).logits, run._workload.model.eval()(tokens).logits, atol=1e-6)
    again = task(folder, model=str(path))
    assert len(reports_of(again.start(setup(folder, "again"), again.prepare(PARAMS)))) == 1


def test_the_loss_is_the_one_transformers_computes(folder):
    built = task(folder)
    data = built.prepare(PARAMS)
    workload = built.start(setup(folder), data)._workload
    workload.model.eval()
    batch = workload.batch(np.array([0]))
    whole = torch.cat([batch.inputs["input_ids"], batch.labels[:, -1:]], dim=1)
    expected = workload.model(input_ids=whole, labels=whole).loss
    assert (workload.loss_sum(batch) / workload.weight(np.array([0]))).item() == pytest.approx(
        expected.item(), rel=1e-5
    )


def test_a_resumed_run_goes_on_bit_for_bit(folder, without_timings):
    built = task(folder)
    data = built.prepare(PARAMS)
    whole = reports_of(built.start(setup(folder, "whole", 3), data))
    first = built.start(setup(folder, "parts", 3), data)
    items = iter(first)
    for _ in range(20):
        next(items)
    again = reports_of(built.start(setup(folder, "parts", 3, first.save()), data))
    assert without_timings(again) == without_timings(whole)[-len(again) :]


def test_micro_batches_add_up_though_the_last_block_is_shorter(folder):
    built = task(folder)
    data = built.prepare(PARAMS)
    assert len(set(data.train.weights.tolist())) == 2
    params = {"dropout": 0.0, "optimizer": "sgd", "learning_rate": 0.1, "batch_size": 500}
    losses = [
        [r.metrics["train_loss"] for r in reports_of(built.start(one, data))]
        for one in (setup(folder, f"m{m}", 2, micro_batch=m, **params) for m in (None, 7))
    ]
    assert losses[1] == pytest.approx(losses[0], rel=1e-5)


def test_a_rehearsal_measures_a_step(folder):
    built = task(folder)
    assert built.rehearse(setup(folder), built.prepare(PARAMS))["parameters"] > 1000
