"""The training of a text classification: learning, checkpoints others can load, rehearsals."""

import pickle

import numpy as np
import pytest
import torch
import transformers

from support.running.runs import reports_of
from trials.contract import TaskError
from trials.descriptions.text import CLASS, METRICS


def model_of(lab, task, data, **params):
    return task.start(lab.setup("run", {"epochs": 1}, **params), data)._workload.model


def test_a_small_model_learns_its_topics(lab):
    task = lab.task()
    params = {"learning_rate": 5e-3, "batch_size": 16, "weight_decay": 0.0}
    reports = reports_of(
        task.start(lab.setup("run", {"epochs": 25}, **params), task.prepare(params))
    )
    assert reports[-1].metrics["accuracy"] > 0.9
    assert reports[-1].metrics.keys() == METRICS[CLASS]


def test_a_checkpoint_is_a_model_that_transformers_loads(lab):
    task = lab.task()
    data = task.prepare({})
    run = task.start(lab.setup("run", {"epochs": 2}, learning_rate=5e-3), data)
    *_, last = run
    transformers.logging.disable_progress_bar()
    classify = transformers.pipeline(
        "text-classification", model=str(last.checkpoint), device="cpu"
    )
    found = [result["label"] for result in classify(["my new card", "the rate today"])]
    assert set(found) <= {"card", "fee", "rate"}
    loaded = transformers.AutoModelForSequenceClassification.from_pretrained(
        last.checkpoint
    ).state_dict()
    trained = run._workload.model.state_dict()
    assert all(torch.equal(loaded[name], trained[name]) for name in trained)


def test_a_searched_model_replaces_the_tasks_own(lab, pretrained):
    task = lab.task()
    params = {"model": "pretrained"}
    model = model_of(lab, task, task.prepare(params), **params)
    body = transformers.BertModel.from_pretrained(pretrained).state_dict()
    assert torch.equal(
        model.bert.state_dict()["embeddings.word_embeddings.weight"],
        body["embeddings.word_embeddings.weight"],
    )


def test_the_evaluation_batch_size_changes_no_metric(lab):
    task = lab.task()
    data = task.prepare({})
    setups = [lab.setup(f"run{size}", {"epochs": 1}, eval_batch_size=size) for size in (1, 7, 500)]
    losses, accuracies = zip(
        *[
            (r.metrics["loss"], r.metrics["accuracy"])
            for r in (reports_of(task.start(s, data))[0] for s in setups)
        ],
        strict=True,
    )
    assert losses == pytest.approx([losses[0]] * 3, rel=1e-5)
    assert len(set(accuracies)) == 1


def test_read_only_data_trains_without_a_warning(lab):
    task = lab.task()
    data = pickle.loads(pickle.dumps(task.prepare({})))
    for array in (
        *(data.train.tokens, data.train.offsets, data.train_labels),
        *(data.validation.tokens, data.validation.offsets, data.validation_labels),
    ):
        array.flags.writeable = False
    assert len(reports_of(task.start(lab.setup("run", {"epochs": 1}), data))) == 1


def test_bucketing_lowers_the_padding_that_is_reported(lab):
    task = lab.task()
    data = task.prepare({})
    with_it, without = (
        reports_of(
            task.start(lab.setup(f"run{b}", {"epochs": 1}, batch_size=8, bucketing=b), data)
        )[0]
        for b in (True, False)
    )
    assert with_it.metrics["padding_ratio"] < without.metrics["padding_ratio"] / 2


def test_an_unknown_monitor_names_the_nearest_metric(lab):
    task = lab.task()
    with pytest.raises(
        TaskError, match=r"settings\.monitor: 'acuracy' is not a metric .* did you mean accuracy\?"
    ):
        task.start(lab.setup("run", {"epochs": 1}, monitor="acuracy"), task.prepare({}))


def test_a_rehearsal_takes_the_longest_texts(lab):
    task = lab.task()
    data = task.prepare({})
    found = task.rehearse(lab.setup("run", {"epochs": 1}, batch_size=8), data)
    assert found["parameters"] > 1000
    assert not (lab.folder / "run").exists()


def test_data_is_keyed_by_what_changes_it_and_pickles_without_copying_its_arrays(lab):
    task = lab.task()
    assert task.data_key({"learning_rate": 1e-3}) == task.data_key({"batch_size": 8})
    assert task.data_key({"max_length": 64}) != task.data_key({})
    assert task.data_key({}) != lab.task(split_seed=1).data_key({})
    data = lab.task().prepare({})
    buffers = []
    pickle.dumps(data, protocol=5, buffer_callback=buffers.append)
    assert {buffer.raw().nbytes for buffer in buffers} >= {
        data.train.tokens.nbytes,
        data.train_labels.nbytes,
    }


def test_trials_of_different_lengths_are_scored_on_the_same_texts_and_classes(lab):
    short, long = (lab.task().prepare({"max_length": length}) for length in (4, 64))
    assert len(short.validation.lengths) == len(long.validation.lengths)
    assert np.array_equal(short.validation_labels, long.validation_labels)
