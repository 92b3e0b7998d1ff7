"""The final training of every kind of task: what is written loads, and computes what was said."""

import json
import math
from dataclasses import fields, replace

import numpy as np
import pandas as pd
import pytest
import torch
import transformers
from sklearn.metrics import accuracy_score, root_mean_squared_error

from trials import predict, tasks
from trials.contract import Setup, TaskError
from trials.running.arithmetic import Arithmetic
from trials.running.report_grid import budget_from
from trials.tasks.final import training as final
from trials.tasks.final.parts import FinalParts
from trials.tasks.sequences import entities
from unit.trials.devices.test_processes import in_processes
from unit.trials.tasks.images.test_task import images
from unit.trials.tasks.sequences.test_language import documents
from unit.trials.tasks.sequences.test_pairs import pairs
from unit.trials.tasks.sequences.test_tokens import sentences, write_conll
from unit.trials.tasks.tabular.test_task import table

SCRATCH = {"scratch": {"layers": 1, "width": 16, "heads": 2, "vocabulary": 280}}
PARTS = {
    "token_classification": {"train": "train.conll", "test": "test.conll", "model": SCRATCH},
    "language_modeling": {"train": "train.txt", "test": "test.txt", "model": SCRATCH},
    "sequence_to_sequence": {"train": "pairs.csv", "test": "other_pairs.csv", "model": SCRATCH},
    "image_classification": {"train": "train.npz", "test": "test.npz"},
    "classes of a table": {
        "kind": "tabular",
        "train": "train.csv",
        "test": "test.csv",
        "target": "kind",
    },
    "quantities of a table": {
        "kind": "tabular",
        "train": "train.csv",
        "test": "test.csv",
        "target": "price",
    },
}
SETTINGS = {
    "token_classification": {"learning_rate": 2e-2, "batch_size": 8, "monitor": "f1"},
    "language_modeling": {"learning_rate": 2e-2, "batch_size": 4, "max_length": 16},
    "sequence_to_sequence": {
        "learning_rate": 2e-2,
        "batch_size": 8,
        "max_length": 16,
        "max_target_length": 12,
    },
    "image_classification": {
        "learning_rate": 5e-3,
        "width": 8,
        "depth": 2,
        "flip": True,
        "monitor": "accuracy",
    },
    "classes of a table": {"min_data_in_leaf": 3, "monitor": "accuracy"},
    "quantities of a table": {"min_data_in_leaf": 3, "monitor": "rmse"},
}
KINDS = list(PARTS)
OF_THE_LOOP = [kind for kind in KINDS if not kind.endswith("of a table")]


@pytest.fixture
def folder(tmp_path):
    """Training and test files of every kind."""
    for name, count, seed in (("train", 61, 0), ("test", 23, 1)):
        write_conll(tmp_path / f"{name}.conll", sentences(count, seed))
        (tmp_path / f"{name}.txt").write_text("\n\n".join(documents(count)))
        pixels, names = images(count, seed)
        np.savez(tmp_path / f"{name}.npz", images=pixels, labels=names)
        table(count, seed).to_csv(tmp_path / f"{name}.csv", index=False)
    pairs(61).to_csv(tmp_path / "pairs.csv", index=False)
    pairs(23).to_csv(tmp_path / "other_pairs.csv", index=False)
    return tmp_path


def task_of(kind, folder, **changes):
    return tasks.load({"kind": kind, "validation": 0.25, **PARTS[kind], **changes}, folder)


def train(kind, folder, epochs=3, joined=False, **changes):
    """The version of a final training, and what is told beside it."""
    unit = "epochs" if kind in OF_THE_LOOP else "steps"
    plan = final.Plan(
        SETTINGS[kind], 5, budget_from({unit: epochs}), joined, "cpu", {}, Arithmetic(1)
    )
    version = final.train(
        task_of(kind, folder, **changes), plan, folder / "models", lambda line: None
    )
    return version, json.loads((version / "training.json").read_text())


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_tells_the_same_of_itself(kind, folder):
    version, story = train(kind, folder, epochs=1)
    assert {
        *("data", "settings", "seed", "budget", "fingerprint", "finished", "findings", "metrics"),
    } <= set(story)
    assert len(story["fingerprint"]["data"]) == 64
    assert set(story["fingerprint"]["files"]) == {"train", "test"}
    assert story["metrics"]["validation"].keys() == story["metrics"]["test"].keys()
    assert not {"manifest.json", "state.pt", "state.json"} & {
        path.name for path in version.iterdir()
    }


@pytest.mark.thorough
@pytest.mark.parametrize("kind", OF_THE_LOOP)
def test_the_validation_samples_are_trained_too_where_that_is_asked_for(kind, folder):
    task = task_of(kind, folder)
    data = task.prepare(SETTINGS[kind])
    workload = task.workload(
        FinalParts(task).joined(data), task.SETTINGS.parse(SETTINGS[kind]), setup_of(folder)
    )
    alone = task.workload(data, task.SETTINGS.parse(SETTINGS[kind]), setup_of(folder))
    held_out = task.workload(swapped(data), task.SETTINGS.parse(SETTINGS[kind]), setup_of(folder))
    count = len(alone.lengths)
    assert len(workload.lengths) == count + len(held_out.lengths)
    for row, (source, place) in {
        0: (alone, 0),
        count: (held_out, 0),
        count + 3: (held_out, 3),
    }.items():
        torch.manual_seed(0)
        np.random.seed(0)
        joined = workload.batch(np.array([row]))
        np.random.seed(0)
        expected = source.batch(np.array([place]))
        assert torch.equal(joined.labels, expected.labels)
        assert all(
            torch.equal(joined.inputs[name], expected.inputs[name]) for name in expected.inputs
        )


def setup_of(folder):
    return Setup({}, 5, budget_from({"epochs": 1}), folder / "run")


def swapped(data):
    """The data with its validation samples in the place of the training samples."""
    names = [field.name for field in fields(data) if field.name.startswith("train")]
    return replace(
        data, **{name: getattr(data, name.replace("train", "validation")) for name in names}
    )


def test_the_validation_rows_of_a_table_are_trained_too_where_that_is_asked_for(folder):
    task = task_of("classes of a table", folder)
    data = task.prepare({})
    joined = FinalParts(task).joined(data).train
    for name in ("features", "target"):
        parts = [getattr(rows, name) for rows in (data.train, data.validation)]
        assert np.array_equal(getattr(joined, name), np.concatenate(parts), equal_nan=True)


@pytest.mark.thorough
@pytest.mark.parametrize("kind", KINDS)
def test_trained_on_everything_only_the_test_file_is_measured(kind, folder):
    _, story = train(kind, folder, epochs=1, joined=True)
    assert story["metrics"]["validation"] is None
    assert story["metrics"]["test"]["loss"] > 0


@pytest.mark.parametrize("kind", KINDS)
def test_mistakes_in_a_test_file_are_told_before_anything_is_trained(kind, folder):
    with pytest.raises(TaskError, match=r"task\.test"):
        train(kind, folder, test="nowhere.csv")
    assert not (folder / "models").exists()


# ---------------------------------------------------------------------- each as it is used


def test_a_tagger_finds_the_entities_that_were_counted(folder):
    version, story = train("token_classification", folder, epochs=8)
    tag = transformers.pipeline("token-classification", str(version), device="cpu")
    rows = sentences(23, 1)
    found = []
    for words, _ in rows:
        text, starts = " ".join(words), np.cumsum([0, *(len(word) + 1 for word in words)])
        by_start = {answer["start"]: answer["entity"] for answer in tag(text, ignore_labels=[])}
        found.append([by_start[start] for start in starts[:-1]])
    truth = [tags for _, tags in rows]
    measured = story["metrics"]["test"]
    assert measured["accuracy"] == pytest.approx(
        accuracy_score(np.concatenate(truth), np.concatenate(found))
    )
    counted = [
        (set(entities.entities(a)), set(entities.entities(b)))
        for a, b in zip(truth, found, strict=True)
    ]
    right = sum(len(a & b) for a, b in counted)
    assert measured["f1"] == pytest.approx(2 * right / sum(len(a) + len(b) for a, b in counted))
    assert measured["f1"] > 0.5


def test_a_language_model_writes_and_its_perplexity_can_be_recomputed(folder):
    version, story = train("language_modeling", folder, epochs=8)
    write = transformers.pipeline("text-generation", str(version), device="cpu")
    (answer,) = write("one two three four", max_new_tokens=3, do_sample=False)
    assert answer["generated_text"].startswith("one two three four")
    assert len(answer["generated_text"]) > len("one two three four")
    model = transformers.AutoModelForCausalLM.from_pretrained(version)
    task = task_of("language_modeling", folder)
    data = FinalParts(task).on_test(SETTINGS["language_modeling"])
    inputs, targets = data.validation.inputs, data.validation.targets
    losses = []
    for begin, end in zip(inputs.offsets, inputs.offsets[1:], strict=False):
        tokens, wanted = (
            torch.from_numpy(s.tokens[begin:end].astype(np.int64)) for s in (inputs, targets)
        )
        logits = model(tokens[None]).logits[0]
        losses.append(torch.nn.functional.cross_entropy(logits, wanted, reduction="sum").item())
    mean = sum(losses) / len(targets.tokens)
    assert story["metrics"]["test"]["perplexity"] == pytest.approx(math.exp(mean), rel=1e-4)


def test_a_model_of_pairs_is_loaded_and_writes(folder):
    version, _ = train("sequence_to_sequence", folder, epochs=8)
    read = transformers.AutoTokenizer.from_pretrained(version)
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(version)
    written = model.generate(
        **read("one one one", return_tensors="pt"), max_new_tokens=8, do_sample=False
    )
    assert "one" in read.decode(written[0], skip_special_tokens=True)


def test_quantities_come_in_their_own_unit(folder):
    version, story = train("quantities of a table", folder, epochs=30)
    rows = pd.read_csv(folder / "test.csv")
    model = predict.load(version)
    found = model.predict(rows)
    assert story["metrics"]["test"]["rmse"] == pytest.approx(
        root_mean_squared_error(rows["price"], found), rel=1e-5
    )
    assert story["metrics"]["test"]["r2"] > 0.5
    unheard_of = rows.assign(colour="violet", age=np.nan)
    assert np.isfinite(model.predict(unheard_of)).all()
    with pytest.raises(ValueError, match="the table has no column 'area'"):
        model.predict(rows.drop(columns="area"))
    with pytest.raises(ValueError, match="'area' is not a number in row 3"):
        model.predict(rows.assign(area=["1", "2", "wide", *["4"] * (len(rows) - 3)]))


def test_a_folder_of_images_is_named_by_its_names_and_contents(tmp_path):
    for name in ("a/1.png", "b/2.png"):
        (tmp_path / "one" / name).parent.mkdir(parents=True)
        (tmp_path / "one" / name).write_bytes(name.encode())
    before = final.sha256(tmp_path / "one")
    (tmp_path / "one" / "a" / "1.png").rename(tmp_path / "one" / "b" / "1.png")
    assert final.sha256(tmp_path / "one") != before
    (tmp_path / "one" / "b" / "1.png").rename(tmp_path / "one" / "a" / "1.png")
    assert final.sha256(tmp_path / "one") == before


ON_RANKS = """
import json, os, sys
from pathlib import Path
from trials import tasks
from trials.contract import Setup
from trials.devices import processes
from trials.running.report_grid import budget_from

with processes.joined("cpu") as group:
    for kind, (part, settings) in json.loads(sys.argv[1]).items():
        task = tasks.load(part, Path())
        out = Path(f"{kind}-{group.size}")
        setup = Setup(settings, 5, budget_from({"epochs": 2}), out)
        data = task.prepare(settings)
        reports = [item for item in task.start(setup, data) if item is not None]
        if group.first:
            print(json.dumps([report.metrics["loss"] for report in reports]), flush=True)
os._exit(0)  # as `python -m trials` does
"""


@pytest.mark.thorough
def test_two_processes_train_every_kind_as_one_does(folder):
    (folder / "on_ranks.py").write_text(ON_RANKS)
    same = {"dropout": 0.0, "precision": "fp32", "micro_batch": 3}
    runs = {}
    for kind in OF_THE_LOOP:
        part = {"kind": kind, "validation": 0.25, **PARTS[kind]}
        part.pop("test")
        settings = {**SETTINGS[kind], **same}
        settings.pop("flip", None)  # drawn by each rank for its own rows
        runs[kind] = part, settings
    alone, together = (
        [json.loads(line) for line in in_processes(folder, count, "on_ranks.py", json.dumps(runs))]
        for count in (1, 2)
    )
    assert len(alone) == len(OF_THE_LOOP)
    for losses, expected in zip(together, alone, strict=True):
        assert losses == pytest.approx(expected, rel=1e-3)
