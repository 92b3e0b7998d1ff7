"""Tokenizers from scratch: learnt from the training texts, the same in every process."""

import hashlib
import json
import sys

import pytest

from support.running.programs import run_program
from trials import tasks
from trials.contract import TaskError

GOOD = [("my card is lost", "card"), ("what a rate", "rate"), ("why this fee", "fee")] * 4


def test_the_tokenizer_learns_from_training_texts_only(lab):
    lab.write("train2.csv", GOOD)
    lab.write("validation.csv", [("zzzz qqqq", "card")])
    data = lab.task(train="train2.csv", validation="validation.csv").prepare({})
    pieces = json.loads(data.tokenizer_files["tokenizer.json"])["model"]["vocab"]
    assert "z" not in pieces
    assert "card" in pieces
    unknown = pieces["[UNK]"]
    assert data.validation.tokens.tolist() == [pieces["[CLS]"], unknown, unknown, pieces["[SEP]"]]


def test_texts_are_lower_cased_and_cut_at_the_longest_length(lab):
    lab.write("upper.csv", [("CARD card Card " * 20, "card"), ("rate", "rate")] * 4)
    data = lab.task(train="upper.csv").prepare({"max_length": 8})
    assert data.train.lengths.max() == 8
    assert len(set(data.train.tokens[1:7].tolist())) == 1


BYTE_PAIRS = {"kind": "language_modeling", "train": "train.csv", "validation": 0.25}


@pytest.mark.parametrize("kind", ["word pieces", "byte pairs"])
def test_a_tokenizer_from_scratch_is_the_same_in_every_process(lab, kind):
    part = lab.part()
    if kind == "byte pairs":
        part = {**BYTE_PAIRS, "model": part["model"]}
    program = (
        "import sys; from pathlib import Path; from trials.tasks import load; "
        "import hashlib, json\n"
        "data = load(json.loads(sys.argv[1]), Path(sys.argv[2])).prepare({})\n"
        "print(hashlib.sha256(data.tokenizer_files['tokenizer.json']).hexdigest())"
    )
    here = tasks.load(part, lab.folder).prepare({}).tokenizer_files["tokenizer.json"]
    command = [sys.executable, "-c", program, json.dumps(part), str(lab.folder)]
    there = run_program(command, check=True).stdout.strip()

    assert hashlib.sha256(here).hexdigest() == there


def test_longer_texts_than_the_model_can_read_are_refused(lab):
    with pytest.raises(TaskError, match=r"settings\.max_length: must be at most 512"):
        lab.task().prepare({"max_length": 600})
