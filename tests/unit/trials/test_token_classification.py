"""Token classification: sentences from files, tags on first tokens, entities found, runs resumed."""

from __future__ import annotations

import json
import random

import numpy as np
import pytest
import transformers

from trials import tasks
from trials.budgets import budget_from
from trials.contract import Setup
from trials.tasks.sequence_data import IGNORED
from trials.tasks.token_classification import METRICS

NAMES, CITIES = ["Ada", "Grace", "Alan"], ["Paris", "Oslo", "Rome"]
PARAMS = {"learning_rate": 5e-3, "batch_size": 8, "weight_decay": 0.0}


def sentences(count=61, seed=0):
    rng = random.Random(seed)
    rows = []
    for _ in range(count):
        filler = rng.choices(["met", "saw", "the", "old", "in", "with"], k=rng.randint(1, 9))
        words = [rng.choice(NAMES), "Smith", *filler, rng.choice(CITIES)]
        rows.append((words, ["B-PER", "I-PER", *["O"] * len(filler), "B-LOC"]))
    return rows


def write_conll(path, rows, separator="\t"):
    path.write_text("\n\n".join("\n".join(f"{w}{separator}{t}" for w, t in zip(*row, strict=True)) for row in rows))


@pytest.fixture
def folder(tmp_path):
    write_conll(tmp_path / "train.conll", sentences())
    return tmp_path


def part(**changes):
    scratch = {"layers": 1, "width": 16, "heads": 2, "vocabulary": 60}
    made = {"kind": "token_classification", "train": "train.conll", "validation": 0.25, "model": {"scratch": scratch}}
    return {**made, **changes}


def task(folder, **changes):
    return tasks.load(part(**changes), folder)


def problems(folder, **changes):
    return {p.where: p.what for p in tasks.inspect(part(**changes), folder)}


def setup(folder, out="run", epochs=1, resume_from=None, **params):
    return Setup({**PARAMS, **params}, 5, budget_from({"epochs": epochs}), folder / out, resume_from)


def reports_of(run):
    return [item for item in run if item is not None]


def test_the_first_token_of_a_word_carries_its_tag(folder):
    data = task(folder, validation="train.conll").prepare({})
    assert data.labels == ("B-LOC", "B-PER", "I-PER", "O")
    assert data.train.weights.tolist() == [len(words) for words, _ in sentences()]
    offsets = data.train.targets.offsets
    tags = data.train.targets.tokens[offsets[0] : offsets[1]]
    assert [data.labels[t] for t in tags if t != IGNORED] == sentences()[0][1]
    assert tags[0] == tags[-1] == IGNORED
    assert len(data.train.targets.tokens) == len(data.train.inputs.tokens)


def test_words_behind_the_longest_length_are_cut_off_with_their_tags(folder):
    data = task(folder).prepare({"max_length": 6})
    assert data.train.inputs.lengths.max() == 6
    assert data.train.weights.max() <= 4


def test_every_format_gives_the_same_data(folder):
    import pandas as pd

    write_conll(folder / "spaces.txt", sentences(), " ")
    frame = pd.DataFrame(sentences(), columns=["words", "ner"])
    frame.to_json(folder / "train.jsonl", orient="records", lines=True)
    frame.to_parquet(folder / "train.parquet")
    expected = task(folder).prepare({}).fingerprint
    assert task(folder, train="spaces.txt").prepare({}).fingerprint == expected
    for name in ("train.jsonl", "train.parquet"):
        assert task(folder, train=name, tokens="words", tags="ner").prepare({}).fingerprint == expected


@pytest.mark.parametrize(
    ("content", "where", "said"),
    [
        ("", "task.train", "has no sentences; name a file with data"),
        ("Ada\tB-PER\nmet\n", "task.train", "line 2 of"),
        ("Ada\tO\nmet\tO\n\nAda\tO\n", "task.tags", "all training rows have one class, 'O'"),
    ],
)
def test_a_conll_file_that_cannot_be_used_is_told(folder, content, where, said):
    (folder / "bad.conll").write_text(content)
    assert said in problems(folder, train="bad.conll", validation="train.conll")[where]


@pytest.mark.parametrize(
    ("row", "where", "said"),
    [
        ({"tokens": ["a", "b"], "tags": ["O"]}, "task.tags", "row 1 of"),
        ({"tokens": "a b", "tags": ["O"]}, "task.tokens", "has no list in 'tokens' but 'a b'"),
        ({"words": ["a"], "tags": ["O"]}, "task.tokens", "has no column 'tokens'"),
    ],
)
def test_rows_without_lists_that_match_are_told(folder, row, where, said):
    (folder / "bad.jsonl").write_text(json.dumps(row))
    assert said in problems(folder, train="bad.jsonl")[where]


def test_files_that_are_missing_or_have_unseen_tags_are_told(folder):
    write_conll(folder / "other.conll", [(["Ada"], ["B-DOG"])])
    found = problems(folder, train="train.conll", validation="other.conll", test="tset.conll")
    assert "has 1 class that no training row has: 'B-DOG'" in found["task.validation"]
    assert "no such file" in found["task.test"]
    assert "did you mean train.conll?" in problems(folder, train="trian.conll")["task.train"]
    assert problems(folder, test="train.conll") == {}


def test_a_small_model_finds_the_entities(folder):
    built = task(folder)
    last = reports_of(built.start(setup(folder, epochs=20), built.prepare({})))[-1]
    assert last.metrics["f1"] > 0.9
    assert last.metrics.keys() == METRICS


@pytest.mark.parametrize("params", [{}, {"lora": True}], ids=["plain", "with adapters"])
def test_a_checkpoint_is_a_model_that_transformers_loads(folder, params):
    built = task(folder)
    path = reports_of(built.start(setup(folder, **params), built.prepare({})))[-1].checkpoint
    transformers.logging.disable_progress_bar()
    loaded = transformers.AutoModelForTokenClassification.from_pretrained(path)
    assert set(loaded.config.id2label.values()) == {"B-LOC", "B-PER", "I-PER", "O"}
    assert transformers.AutoTokenizer.from_pretrained(path).tokenize("Ada")
    again = task(folder, model=str(path))
    assert len(reports_of(again.start(setup(folder, "again"), again.prepare({})))) == 1


def test_a_resumed_run_goes_on_bit_for_bit(folder, without_timings):
    built = task(folder)
    data = built.prepare({})
    whole = reports_of(built.start(setup(folder, "whole", 3), data))
    first = built.start(setup(folder, "parts", 3), data)
    items = iter(first)
    for _ in range(8):
        next(items)
    again = reports_of(built.start(setup(folder, "parts", 3, first.save()), data))
    assert without_timings(again) == without_timings(whole)[-len(again) :]


def test_micro_batches_of_sentences_of_different_lengths_add_up(folder):
    built = task(folder)
    data = built.prepare({})
    assert len(np.unique(data.train.weights)) > 3
    params = {"dropout": 0.0, "optimizer": "sgd", "learning_rate": 0.1}
    losses = [
        [
            r.metrics["train_loss"]
            for r in reports_of(built.start(setup(folder, f"m{m}", 2, micro_batch=m, **params), data))
        ]
        for m in (None, 1, 3)
    ]
    assert losses[1] == pytest.approx(losses[0], rel=1e-4)
    assert losses[2] == pytest.approx(losses[0], rel=1e-4)


def test_a_rehearsal_measures_a_step(folder):
    built = task(folder)
    assert built.rehearse(setup(folder), built.prepare({}))["parameters"] > 1000


def test_data_is_keyed_by_what_changes_it(folder):
    assert task(folder).data_key({"batch_size": 4}) == task(folder).data_key({})
    assert task(folder).data_key({"max_length": 64}) != task(folder).data_key({})
