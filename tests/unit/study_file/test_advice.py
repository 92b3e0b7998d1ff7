"""Notes on study files that are valid, and may not do what somebody expects."""

from __future__ import annotations

import pytest

from hpsearch.study_file.advice import advice
from support.studies.small import spec_with


@pytest.mark.parametrize(
    ("enqueued", "said"),
    [
        (2, None),
        (3, "enqueue: 3 configurations, and budget.trials is 3: nothing is left to search"),
        (5, "enqueue: 5 configurations, and budget.trials is 3: the last 2 are not tried"),
    ],
)
def test_what_is_enqueued_is_counted_against_the_trials(enqueued: int, said: str | None) -> None:
    points = [{"x": n / 10} for n in range(enqueued)]
    spec = spec_with(enqueue=points, budget={"trials": 3, "per_trial": {"epochs": 9}})
    notes = [note for note in advice(spec) if note.startswith("enqueue")]
    assert len(notes) == (said is not None)
    assert said is None or notes[0].startswith(said)


def test_without_a_limit_on_trials_all_are_tried() -> None:
    budget = {"gpu_hours": 1, "per_trial": {"epochs": 9}}
    spec = spec_with(enqueue=[{"x": n / 10} for n in range(9)], budget=budget)
    assert advice(spec) == []
