"""The rows that a validation fraction takes, and the problems of all files together."""

import numpy as np
import pytest

from trials.contract import TaskError
from trials.tasks.datasets.splits import stratified


def test_a_broken_validation_file_does_not_hide_a_broken_training_file(lab):
    assert lab.problems(train="no.csv", validation="neither.csv").keys() == {
        "task.train",
        "task.validation",
    }


def test_preparing_raises_what_inspecting_says(lab):
    with pytest.raises(TaskError, match=r"task\.train: no such file"):
        lab.task(train="no.csv").prepare({})


def test_the_split_is_stratified_and_the_same_for_every_trial():
    labels = ["a"] * 60 + ["b"] * 30 + ["c"] * 10 + ["d"]
    taken = stratified(labels, 0.2, seed=0)
    assert [
        sum(taken[i] for i, label in enumerate(labels) if label == name) for name in "abcd"
    ] == [12, 6, 2, 0]
    assert np.array_equal(taken, stratified(labels, 0.2, seed=0))
    assert not np.array_equal(taken, stratified(labels, 0.2, seed=1))


def test_many_small_classes_still_give_their_share():
    labels = [f"class {i % 40}" for i in range(120)]
    assert stratified(labels, 0.1, seed=0).sum() == 12


def test_classes_with_one_row_are_trained_and_take_nothing_from_the_others():
    labels = [f"class {i}" for i in range(400)] + ["two"] * 20 + ["other"] * 80
    taken = stratified(labels, 0.25, seed=0)
    assert [sum(taken[:400]), sum(taken[400:420]), sum(taken[420:])] == [0, 5, 20]


def test_a_fraction_that_no_larger_one_would_mend_says_what_helps(lab):
    lab.write("alone.csv", [(f"a text of {i}", f"class {i}") for i in range(4)])
    assert lab.problems(train="alone.csv")["task.validation"] == (
        "no class has two rows, one to train and one to validate; add rows, or name a file"
    )
    lab.write("some.csv", [(f"a text of {i}", f"class {i // 2}") for i in range(4)])
    found = lab.problems(train="some.csv", validation=0.1)
    assert found["task.validation"].endswith("give a larger one")
    assert lab.problems(train="some.csv") == {}
