"""Token classification: sentences from files, tags on first tokens, entities, runs resumed."""

import json
import math
import random

import numpy as np
import pytest
import torch
import transformers
from torch.nn.utils.rnn import pad_sequence

from support.running.runs import Lab, reports_of
from trials.descriptions.text import TOKEN_CLASSIFICATION
from trials.devices.precision import Precision
from trials.tasks.datasets.prepared import digest_of
from trials.tasks.final.parts import FinalParts
from trials.tasks.sequences import tokens as token_data
from trials.tasks.sequences.data import IGNORED

NAMES, CITIES = ["Ada", "Grace", "Alan"], ["Paris", "Oslo", "Rome"]
SCRATCH = {"layers": 1, "width": 16, "heads": 2, "vocabulary": 60}
PART = {
    "kind": "token_classification",
    "train": "train.conll",
    "validation": 0.25,
    "model": {"scratch": SCRATCH},
}
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
    path.write_text(
        "\n\n".join(
            "\n".join(f"{w}{separator}{t}" for w, t in zip(*row, strict=True)) for row in rows
        )
    )


def lab_in(tmp_path):
    write_conll(tmp_path / "train.conll", sentences())
    return Lab(tmp_path, PART, PARAMS)


@pytest.fixture
def lab(tmp_path):
    return lab_in(tmp_path)


def test_the_first_token_of_a_word_carries_its_tag(lab):
    data = lab.task(validation="train.conll").prepare({})
    assert data.labels == ("B-LOC", "B-PER", "I-PER", "O")
    assert data.train.weights.tolist() == [len(words) for words, _ in sentences()]
    offsets = data.train.targets.offsets
    tags = data.train.targets.tokens[offsets[0] : offsets[1]]
    assert [data.labels[t] for t in tags if t != IGNORED] == sentences()[0][1]
    assert tags[0] == tags[-1] == IGNORED
    assert len(data.train.targets.tokens) == len(data.train.inputs.tokens)


def test_words_behind_the_longest_length_are_cut_off_with_their_tags(lab):
    data = lab.task().prepare({"max_length": 6})
    assert data.train.inputs.lengths.max() == 6
    assert data.train.weights.max() <= 4


def test_tags_of_one_sentence_each_are_always_trained(lab):
    rows = sentences(40)
    for number in range(20):
        rows[number][1][0] = f"B-RARE{number}"
    write_conll(lab.folder / "rare.conll", rows)
    for seed in range(5):
        assert lab.problems(train="rare.conll", split_seed=seed) == {}


@pytest.mark.parametrize("odd", ["\u00a0", "\u2009", "\u3000", "\u2028", "\x85", "\x0c"])
@pytest.mark.parametrize("separator", ["\t", " ", "  "])
def test_a_word_ends_at_a_tab_or_a_space_only(tmp_path, odd, separator):
    path = tmp_path / "odd.conll"
    words = [f"10{odd}000", f"{odd}euro", "paid"]
    path.write_bytes("\r\n".join(f"{word}{separator}O" for word in words).encode())
    assert token_data.sentences_in(path, "task.train") == [
        token_data.Sentence(tuple(words), ("O", "O", "O"))
    ]


def test_spaces_separate_as_tabs_do(lab):
    write_conll(lab.folder / "spaces.txt", sentences(), " ")
    found, expected = (lab.task(**part).prepare({}) for part in ({"train": "spaces.txt"}, {}))
    assert digest_of(found) == digest_of(expected)


@pytest.mark.parametrize(
    ("content", "where", "said"),
    [
        ("", "task.train", "has no sentences; name a file with data"),
        ("Ada\tB-PER\nmet\n", "task.train", "line 2 of"),
        ("Ada\tO\nmet\tO\n\nAda\tO\n", "task.tags", "all training rows have one class, 'O'"),
    ],
)
def test_a_conll_file_that_cannot_be_used_is_told(lab, content, where, said):
    (lab.folder / "bad.conll").write_text(content)
    assert said in lab.problems(train="bad.conll", validation="train.conll")[where]


@pytest.mark.parametrize(
    ("row", "where", "said"),
    [
        ({"tokens": ["a", "b"], "tags": ["O"]}, "task.tags", "row 1 of"),
        ({"tokens": "a b", "tags": ["O"]}, "task.tokens", "has no lists in 'tokens' and 'tags'"),
        ({"words": ["a"], "tags": ["O"]}, "task.tokens", "has no column 'tokens'"),
    ],
)
def test_rows_without_lists_that_match_are_told(lab, row, where, said):
    (lab.folder / "bad.jsonl").write_text(json.dumps(row))
    assert said in lab.problems(train="bad.jsonl")[where]


def test_files_that_are_missing_or_have_unseen_tags_are_told(lab):
    write_conll(lab.folder / "other.conll", [(["Ada"], ["B-DOG"])])
    found = lab.problems(train="train.conll", validation="other.conll", test="tset.conll")
    assert "has 1 class that no training row has: 'B-DOG'" in found["task.validation"]
    assert "no such file" in found["task.test"]
    assert "did you mean train.conll?" in lab.problems(train="trian.conll")["task.train"]
    assert lab.problems(test="train.conll") == {}


def test_a_small_model_finds_the_entities(lab):
    built = lab.task()
    last = reports_of(built.start(lab.setup(epochs=20), built.prepare({})))[-1]
    assert last.metrics["f1"] > 0.9
    assert last.metrics.keys() == TOKEN_CLASSIFICATION.metrics


@pytest.mark.parametrize("params", [{}, {"lora": True}], ids=["plain", "with adapters, merged"])
def test_a_checkpoint_is_a_model_that_transformers_loads(lab, params):
    built = lab.task()
    setup, data = lab.setup(**params), built.prepare({})
    path = reports_of(built.start(setup, data))[-1].checkpoint
    built.complete(path, data, setup)
    transformers.logging.disable_progress_bar()
    loaded = transformers.AutoModelForTokenClassification.from_pretrained(path)
    assert set(loaded.config.id2label.values()) == {"B-LOC", "B-PER", "I-PER", "O"}
    assert transformers.AutoTokenizer.from_pretrained(path).tokenize("Ada")
    again = lab.task(model=str(path))
    assert len(reports_of(again.start(lab.setup("again"), again.prepare({})))) == 1


def test_trials_of_different_lengths_are_scored_on_the_same_words_and_entities(lab):
    counts, losses = [], []
    for length in (4, 6, 64):
        built = lab.task()
        data = built.prepare({**PARAMS, "max_length": length})
        workload = built.start(lab.setup(f"l{length}", max_length=length), data)._workload
        for parameter in workload.model.parameters():
            parameter.data.zero_()  # a model that knows nothing: every tag is as likely
        losses.append(workload.evaluate(Precision("fp32", torch.device("cpu")))["loss"])
        counts.append(
            workload.count(
                [np.arange(len(data.validation.inputs.lengths))], [truth_as_far_as_read(data)]
            )
        )
    words, right, _, existing, proposed = zip(*counts, strict=True)
    assert losses == pytest.approx([math.log(4)] * 3, rel=1e-6)
    assert len(set(words)) == len(set(existing)) == 1
    assert right[0] < right[1] < right[2] == words[2], "what is cut off has no right tag"
    assert proposed[0] < proposed[1] < proposed[2] == existing[2], (
        "and is in no entity that was found"
    )


def truth_as_far_as_read(data):
    """The validation tags in the cells of the tokens that a model reads, as a model that is always
    right gives them."""
    targets = data.validation.targets
    rows = [torch.from_numpy(targets.row(n)).long() for n in range(len(targets.lengths))]
    return pad_sequence(rows, batch_first=True).clip(min=0)


def test_the_test_sentences_are_scored_in_full_too(lab):
    write_conll(lab.folder / "test.conll", sentences(20, seed=1))
    built = lab.task(test="test.conll")
    params = {**PARAMS, "max_length": 5}
    data = FinalParts(built).on_test(params)
    assert data.scored.targets.lengths.tolist() == [
        len(words) for words, _ in sentences(20, seed=1)
    ]
    assert data.scored.missed > 0
