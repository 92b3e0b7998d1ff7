"""Classes: their order, and those that training data lacks."""

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.running.programs import run_program
from trials.tasks.datasets.labels import class_names

GOOD = [("my card is lost", "card"), ("what a rate", "rate"), ("why this fee", "fee")] * 4


def test_labels_unseen_in_training_are_named(lab):
    lab.write("other.csv", [*GOOD, ("where is my loan", "loan"), ("a loan", "loan")])
    found = lab.problems(train="train.csv", validation="other.csv", test="other.csv")
    said = "has 1 class that no training row has: 'loan' (rows: 2); remove them, or train them too"
    assert found == {"task.validation": said, "task.test": said}


def test_numbers_are_labels_in_the_order_of_numbers(lab):
    lab.write("numbers.parquet", [(f"text {n}", n) for n in (10, 9, 2, 1)] * 3)
    assert lab.task(train="numbers.parquet").prepare({}).labels == ("1", "2", "9", "10")


CLASSES_IN_A_PROCESS = """
from trials.tasks.datasets.labels import class_names
print(class_names(["001", "1", "7", "01", "-0", "0", "00", "+"][:{count}]))
"""


@pytest.mark.parametrize("count", [7, 8])
def test_classes_have_the_same_order_in_every_process(count):
    code = CLASSES_IN_A_PROCESS.format(count=count)
    found = {
        run_program(
            [sys.executable, "-c", code], env={"PYTHONHASHSEED": str(seed)}, check=True
        ).stdout
        for seed in range(5)
    }
    assert len(found) == 1


@given(
    st.lists(st.from_regex(r"-?0{0,3}[0-9]", fullmatch=True), unique=True).flatmap(
        lambda names: st.tuples(st.just(names), st.permutations(names))
    )
)
def test_the_order_of_classes_is_that_of_their_names_alone(both):
    names, shuffled = both
    assert class_names(names) == class_names(shuffled)
    assert [int(name) for name in class_names(names)] == sorted(map(int, names))
