"""Mistakes in the `task` part of a study file."""

import pytest

from trials import tasks


@pytest.mark.parametrize(
    ("changes", "where", "said"),
    [
        ({"lable": "x"}, "task.lable",
         "is not a key of a text_classification task; did you mean label?"),
        ({"validation": 1.5}, "task.validation", "must be between 0 and 1, not 1.5"),
        ({"validation": 1}, "task.validation", "must be between 0 and 1, not 1"),
        ({"validation": True}, "task.validation", "must be a number or text, not True"),
        ({"model": {"scratch": {"layer": 1}}}, "task.model.scratch.layer",
         "is not a size of a model"),
        ({"model": {"scratch": {"width": 0}}}, "task.model.scratch.width",
         "must be a whole number above 0, not 0"),
        ({"model": {"scratch": {"width": 30, "heads": 4}}}, "task.model.scratch.heads",
         "do not divide the width"),
        ({"model": {"scratch": 5}}, "task.model", "must be a name, or sizes such as scratch:"),
        ({"split_seed": -1}, "task.split_seed", "must be at least 0, not -1"),
        ({"model": {"layers": 3}}, "task.model", "must be a name, or sizes such as scratch:"),
        ({"model": "./nowhere"}, "task.model", "write a folder's path or a hub id"),
        ({"model": "."}, "task.model", "name a folder that save_pretrained wrote"),
        ({"kind": "text_clasification"}, "task.kind", "did you mean text_classification?"),
    ],
)  # fmt: skip
def test_a_mistake_in_the_task_part_says_where_and_what(lab, changes, where, said):
    found = lab.problems(**changes)
    assert said in found[where]


def test_a_missing_key_is_told_with_its_meaning(lab):
    part = lab.part()
    del part["label"]
    (problem,) = tasks.inspect(part, lab.folder)
    assert (problem.where, problem.what) == (
        "task.label",
        "is missing; the column with the classes, or a list of columns of 0 and 1, "
        "one for each label",
    )
