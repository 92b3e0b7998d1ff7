"""The data of a text classification."""

import pickle

import numpy as np

GOOD = [("my card is lost", "card"), ("what a rate", "rate"), ("why this fee", "fee")] * 4


def test_good_data_has_no_problems(lab):
    lab.write("test.csv", GOOD)
    assert lab.problems(test="test.csv") == {}


def test_data_is_keyed_by_what_changes_it(lab):
    task = lab.task()
    assert task.data_key({"learning_rate": 1e-3}) == task.data_key({"batch_size": 8})
    assert task.data_key({"max_length": 64}) != task.data_key({})
    assert task.data_key({}) != lab.task(split_seed=1).data_key({})


def test_prepared_data_pickles_without_copying_its_arrays(lab):
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
