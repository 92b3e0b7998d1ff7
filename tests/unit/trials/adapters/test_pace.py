"""How levels of a trial's budget become optimizer steps."""

from types import SimpleNamespace

import pytest

from trials.adapters.pace import Pace
from trials.running.report_grid import budget_from


def pace(per_trial, epoch_steps=10, step_samples=16):
    budget = budget_from(per_trial)
    trial = SimpleNamespace(
        budget=budget.total, unit=budget.unit, report_at=budget.report_at
    )  # what a pace reads of a trial
    return Pace(trial, epoch_steps, step_samples)


@pytest.mark.parametrize(
    ("per_trial", "levels"),
    [
        ({"epochs": 2}, {10: 1.0, 20: 2.0}),
        ({"epochs": 0.9, "report_every": 0.3}, {3: 0.3, 6: 0.6, 9: 0.9}),
        ({"epochs": 0.7}, {7: 0.7}),
        ({"epochs": 1, "report_every": 0.33}, {4: 0.33, 7: 0.66, 10: 1.0}),
        ({"steps": 25, "report_every": 10}, {10: 10.0, 20: 20.0, 25: 25.0}),
        ({"samples": 100, "report_every": 40}, {3: 40.0, 5: 80.0, 7: 100.0}),
        ({"epochs": 0.12, "report_every": 0.04}, {1: 0.08, 2: 0.12}),
    ],
)
def test_a_level_is_reported_after_the_step_that_reaches_it(per_trial, levels):
    assert pace(per_trial).levels() == levels


def test_a_step_between_two_levels_has_a_resource_too():
    assert pace({"epochs": 2}).resource_after(13) == 1.3
    assert pace({"samples": 100}).resource_after(3) == 48


@pytest.mark.parametrize(
    ("per_trial", "epoch_steps", "said"),
    [
        ({"tokens": 100}, 10, "counts tokens.*state per_trial in steps, epochs or samples"),
        ({"seconds": 100}, 10, "counts seconds.*state per_trial in steps, epochs or samples"),
        ({"epochs": 2}, None, "length of the training data is not known; state per_trial in steps"),
    ],
)
def test_a_budget_that_is_no_number_of_steps_is_refused(per_trial, epoch_steps, said):
    with pytest.raises(ValueError, match=said):
        pace(per_trial, epoch_steps)
