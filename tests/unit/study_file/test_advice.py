"""Notes on study files that are valid, and may not do what somebody expects."""

from pathlib import Path

import pytest

from hpsearch.study_file.reading import advice, parse
from support.studies.small import spec_with


@pytest.mark.parametrize(
    ("enqueued", "said"),
    [
        (2, None),
        (3, "enqueue: 3 configurations, and budget.trials is 3: nothing is left to search"),
        (5, "enqueue: 5 configurations, and budget.trials is 3: the last 2 are not tried"),
    ],
)
def test_what_is_enqueued_is_counted_against_the_trials(enqueued, said):
    points = [{"x": n / 10} for n in range(enqueued)]
    spec = spec_with(enqueue=points, budget={"trials": 3, "per_trial": {"epochs": 9}})
    notes = [note for note in advice(spec) if note.startswith("enqueue")]
    assert len(notes) == (said is not None)
    assert said is None or notes[0].startswith(said)


def test_without_a_limit_on_trials_all_are_tried():
    budget = {"gpu_hours": 1, "per_trial": {"epochs": 9}}
    spec = spec_with(enqueue=[{"x": n / 10} for n in range(9)], budget=budget)
    assert advice(spec) == []


def test_what_the_command_line_enqueues_counts_and_so_do_the_trials_that_were_drawn():
    spec = spec_with(enqueue=[{"x": 0.1}], budget={"trials": 5, "per_trial": {"epochs": 9}})
    assert advice(spec, 3) == []
    (note,) = advice(spec, 5)
    assert note.startswith("enqueue: 6 configurations, and budget.trials is 5: the last 1 are not")
    (note,) = advice(spec, 2, 4)
    assert "6 configurations" not in note
    assert note.endswith(
        "beside 4 other trials, and budget.trials is 5: "
        "the last 2 are not tried; raise budget.trials to 7"
    )
    assert advice(spec, 2, 2) == []


def test_the_defaults_are_tried_before_what_is_enqueued():
    task = {"kind": "tabular", "train": "a.csv", "validation": 0.2, "target": "y"}
    rates = {"learning_rate": {"type": "float", "low": 1e-4, "high": 1e-1, "log": True}}
    points = [{"learning_rate": 0.01}, {"learning_rate": 0.02}, {"learning_rate": 0.03}]
    budget = {"trials": 3, "per_trial": {"steps": 9}}
    spec = spec_with(task=task, space=rates, settings={}, enqueue=points, budget=budget)
    (note,) = advice(spec)
    assert note.startswith("enqueue: 3 configurations after the defaults, and budget.trials is 3")
    assert note.endswith("the last 1 are not tried; raise budget.trials to 4")


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("no", "read as false"),
        ("On", "read as true"),
        ("y", "read as a text"),
        ("012", "read as 10"),
        ("1:30", "read as a text"),
        ("1e5", "write a number as 100000.0"),
        ("1e-7", "write a number as 1.0e-07"),
        ("2020-01-01", "not as a date"),
        ("None", "read as a text"),
        ("'no'", None),
        ("false", None),
        ("12", None),
        ("0.5", None),
        ("node", None),
    ],
)
@pytest.mark.parametrize("place", ["choices", "settings", "args"])
def test_what_yaml_reads_in_a_way_that_may_not_be_meant_is_said_with_its_line(value, said, place):
    values = {"choices": "1.5", "settings": "1.5", "args": "1.5", place: value}
    text = (
        "study: words\n"
        f"task: {{kind: 'a:b', args: {{a: {values['args']}}}}}\n"
        f"settings: {{s: {values['settings']}}}\n"
        f"space: {{x: {{type: categorical, choices: [x, {values['choices']}]}}}}\n"
        "objective: {metric: loss, direction: minimize}\n"
        "budget: {trials: 3, per_trial: {epochs: 1}}\n"
    )
    notes = advice(parse(text, base=Path()))
    if said is None:
        assert notes == []
    else:
        (note,) = notes
        assert said in note
        line = {"args": 2, "settings": 3, "choices": 4}[place]
        assert note.startswith(f"line {line}: ")
