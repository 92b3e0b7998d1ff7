"""Language modelling: documents in blocks, every token a target once, losses per token, checkpoints
others can load."""

import itertools
import json
import math
import random

import numpy as np
import pandas as pd
import pytest
import torch
import transformers
from tokenizers import processors

from support.files.written_tokenizers import tokenizer_in
from support.running.runs import Lab, reports_of
from trials.descriptions.text import LANGUAGE_MODELING
from trials.devices.precision import Precision
from trials.tasks.datasets.prepared import digest_of
from trials.tasks.huggingface import tokenizer as text_tokenizer

SCRATCH = {"layers": 1, "width": 16, "heads": 2, "vocabulary": 280}
PART = {
    "kind": "language_modeling",
    "train": "train.txt",
    "validation": 0.25,
    "model": {"scratch": SCRATCH},
}
PARAMS = {"learning_rate": 5e-3, "batch_size": 4, "weight_decay": 0.0, "max_length": 16}


def documents(count=60):
    rng = random.Random(0)
    return [
        " ".join(["one two three four five six seven"] * rng.randint(1, 4)) for _ in range(count)
    ]


def lab_in(tmp_path):
    (tmp_path / "train.txt").write_text("\n\n".join(documents()))
    return Lab(tmp_path, PART, PARAMS)


@pytest.fixture
def lab(tmp_path):
    return lab_in(tmp_path)


def test_every_token_but_the_first_is_a_target_once(lab):
    data = lab.task(validation="train.txt").prepare(PARAMS)
    inputs, targets = data.train.inputs, data.train.targets
    assert np.array_equal(inputs.tokens[1:], targets.tokens[:-1])
    assert set(inputs.lengths[:-1].tolist()) == {16}
    assert inputs.lengths.sum() == len(targets.tokens) == data.train.weights.sum()
    tokenizer = tokenizer_in(data.tokenizer_files)
    text = tokenizer.decode([inputs.tokens[0], *targets.tokens])
    assert text == "".join(f"{document}<|endoftext|>" for document in documents())


def test_no_document_stands_in_training_and_validation(lab):
    rows = [f"document number {n}" for n in range(40)]
    pd.DataFrame({"text": rows}).to_csv(lab.folder / "rows.csv", index=False)
    data = lab.task(train="rows.csv").prepare(PARAMS)
    assert (data.validation.targets.tokens == data.padding).sum() == 10
    assert (data.train.targets.tokens == data.padding).sum() == 30


def test_documents_can_be_samples_by_themselves(lab):
    data = lab.task(samples="documents", validation="train.txt").prepare(PARAMS)
    inputs, targets = data.train.inputs, data.train.targets
    assert inputs.lengths.tolist() == targets.lengths.tolist()
    assert 1 <= inputs.lengths.min() < inputs.lengths.max() == 16
    assert (targets.tokens == data.padding).sum() == len(documents())
    assert (inputs.tokens == data.padding).sum() == 0
    texts = [targets.tokens[a:b].tolist() for a, b in itertools.pairwise(targets.offsets.tolist())]
    assert len(texts) > len(documents()), "long documents are cut"
    assert (
        "must be blocks or documents, not 'lines'" in lab.problems(samples="lines")["task.samples"]
    )


def test_lines_are_documents_where_there_is_one_paragraph(lab):
    (lab.folder / "lines.txt").write_text("\n".join(documents()))
    found, expected = (lab.task(**part).prepare(PARAMS) for part in ({"train": "lines.txt"}, {}))
    assert digest_of(found) == digest_of(expected)


def test_data_that_cannot_be_used_is_told(lab):
    (lab.folder / "empty.txt").write_text("\n \n")
    (lab.folder / "one.txt").write_text("one line alone")
    (lab.folder / "rows.csv").write_text("body\nhello\n")
    assert "has no text; name a file with data" in lab.problems(train="empty.txt")["task.train"]
    found = lab.problems(train="one.txt")["task.validation"]
    assert found.startswith("there is only one document to train and to validate; add documents")
    assert "has no column 'text', it has body" in lab.problems(train="rows.csv")["task.text"]
    assert "did you mean train.txt?" in lab.problems(train="trian.txt")["task.train"]
    assert "no such file" in lab.problems(test="no.txt")["task.test"]
    assert lab.problems(test="train.txt") == {}


def test_a_small_model_learns_the_order_of_words(lab):
    built = lab.task()
    last = reports_of(built.start(lab.setup(epochs=15), built.prepare(PARAMS)))[-1]
    assert last.metrics["perplexity"] == pytest.approx(math.exp(last.metrics["loss"]))
    assert last.metrics["perplexity"] < 4
    assert last.metrics.keys() == LANGUAGE_MODELING.metrics


def test_a_checkpoint_is_a_model_that_transformers_loads(lab):
    built = lab.task()
    run = built.start(lab.setup(dropout=0.0), built.prepare(PARAMS))
    path = reports_of(run)[-1].checkpoint
    transformers.logging.disable_progress_bar()
    loaded = transformers.AutoModelForCausalLM.from_pretrained(path)
    tokens = torch.arange(8)[None]
    with torch.inference_mode():
        assert torch.allclose(
            loaded.eval()(tokens).logits, run._workload.model.eval()(tokens).logits, atol=1e-6
        )
    again = lab.task(model=str(path))
    assert len(reports_of(again.start(lab.setup("again"), again.prepare(PARAMS)))) == 1


def test_the_loss_is_the_one_transformers_computes(lab):
    built = lab.task()
    data = built.prepare(PARAMS)
    workload = built.start(lab.setup(), data)._workload
    workload.model.eval()
    batch = workload.batch(np.array([0]))
    whole = torch.cat([batch.inputs["input_ids"], batch.labels[:, -1:]], dim=1)
    expected = workload.model(input_ids=whole, labels=whole).loss
    assert (workload.loss_sum(batch) / workload.weight(np.array([0]))).item() == pytest.approx(
        expected.item(), rel=1e-5
    )


@pytest.mark.parametrize("samples", ["blocks", "documents"])
def test_trials_of_different_lengths_are_scored_on_the_same_tokens(lab, samples):
    scored = []
    for length in (4, 16, 100):
        data = lab.task(samples=samples).prepare({**PARAMS, "max_length": length})
        scored.append(data.validation.targets.tokens.tolist())
    assert scored[0] == scored[1] == scored[2]


def workload_of(lab, task, data):
    return task.start(lab.setup(), data)._workload


def measured(workload):
    return workload.evaluate(Precision("fp32", torch.device("cpu")))


def knows_nothing(workload):
    """Makes every token as likely as any other."""
    for parameter in workload.model.parameters():
        parameter.data.zero_()
    return workload


def write_model(lab, name, tokenizer, **config):
    """A small model with a tokenizer."""
    tokenizer.save_pretrained(lab.folder / name)
    shape = {"n_embd": 16, "n_layer": 1, "n_head": 2, "vocab_size": len(tokenizer), **config}
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config(**shape))
    transformers.utils.logging.disable_progress_bar()
    model.save_pretrained(lab.folder / name)
    return lab.folder / name


@pytest.mark.parametrize("samples", ["blocks", "documents"])
def test_bits_per_byte_are_the_whole_loss_over_the_text_that_is_scored(lab, samples):
    built = lab.task(samples=samples, validation="train.txt")
    data = built.prepare(PARAMS)
    found = measured(workload_of(lab, built, data))
    firsts = 1 if samples == "blocks" else len(documents())  # nothing predicts them: each an "o"
    text_bytes = sum(len(document.encode()) for document in documents()) - firsts * len("one")
    bits = found["loss"] * len(data.validation.targets.tokens) / math.log(2)
    assert found["bits_per_byte"] == pytest.approx(bits / text_bytes, rel=1e-2)
    assert data.scored_bytes == pytest.approx(text_bytes, rel=1e-2)


def test_they_order_models_of_different_tokenizers_as_the_loss_of_a_token_does_not(lab):
    found = {}
    for name, vocabulary in (("letters", 257), ("words", 280)):
        tokenizer = text_tokenizer.byte_pairs(documents(), vocabulary)
        built = lab.task(model=str(write_model(lab, name, tokenizer)))
        found[name] = measured(knows_nothing(workload_of(lab, built, built.prepare(PARAMS))))
    assert found["letters"]["loss"] == pytest.approx(math.log(257), rel=1e-5)
    assert found["letters"]["bits_per_byte"] == pytest.approx(math.log2(257), rel=0.05)
    assert found["words"]["loss"] > found["letters"]["loss"]
    assert found["words"]["bits_per_byte"] < 0.5 * found["letters"]["bits_per_byte"]


def test_they_count_bytes_and_not_letters(lab):
    texts = ["Größe € 漢字"] * 8
    pd.DataFrame({"text": texts}).to_csv(lab.folder / "odd.csv", index=False)
    data = lab.task(train="odd.csv", validation="odd.csv").prepare(PARAMS)
    assert data.scored_bytes == pytest.approx(8 * len(texts[0].encode()), abs=len("Größe".encode()))


STARTS = {"starts": "<s> $A", "starts and ends": "<s> $A <|endoftext|>"}


@pytest.mark.parametrize("samples", ["blocks", "documents"])
@pytest.mark.parametrize("template", STARTS.values(), ids=STARTS)
def test_a_document_has_the_special_tokens_of_its_tokenizer(lab, samples, template):
    tokenizer = text_tokenizer.byte_pairs(documents(), 280)
    tokenizer.add_special_tokens({"bos_token": "<s>"})
    numbers = [(name, tokenizer.convert_tokens_to_ids(name)) for name in ("<s>", "<|endoftext|>")]
    tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single=template, special_tokens=numbers
    )
    folder = write_model(lab, "llama", tokenizer)
    data = lab.task(model=str(folder), samples=samples, validation="train.txt").prepare(PARAMS)
    inputs, targets = data.train.inputs, data.train.targets
    (_, start), (_, end) = numbers
    count = len(documents())
    assert inputs.tokens[0] == start
    assert (inputs.tokens == start).sum() == count
    assert (targets.tokens == end).sum() == count, "once, whoever adds it"
    assert data.scored_bytes == sum(len(document.encode()) for document in documents())


@pytest.mark.parametrize("lora", [False, True], ids=["whole", "lora, merged"])
def test_a_written_model_generates_as_its_model_was_set_to(lab, lora):
    folder = write_model(lab, "gpt2", text_tokenizer.byte_pairs(documents(), 280))
    wanted = {"max_new_tokens": 7, "do_sample": True, "temperature": 0.7, "eos_token_id": [0, 5]}
    (folder / "generation_config.json").write_text(json.dumps(wanted))
    built = lab.task(model=str(folder))
    data, setup = built.prepare(PARAMS), lab.setup(lora=lora)
    written = reports_of(built.start(setup, data))[-1].checkpoint
    built.complete(written, data, setup)
    found = transformers.GenerationConfig.from_pretrained(written).to_dict()
    assert {name: found[name] for name in wanted} == wanted
