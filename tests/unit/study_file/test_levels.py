"""The report grid, the rungs, and Optuna's whole steps."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpsearch.study_file.levels import rung_levels, step_scale, trial_budget
from hpsearch.study_file.models import StudySpec
from hpsearch.study_file.reading import parse
from support.thoroughness import examples


def spec_with(per_trial: str, pruner: str = "promotion") -> StudySpec:
    text = f"""
study: levels
task: {{kind: "code:train"}}
space: {{x: {{type: float, low: 0, high: 1}}}}
objective: {{metric: loss, direction: minimize}}
budget: {{trials: 3, per_trial: {per_trial}}}
search: {{pruner: {pruner}}}
"""
    return parse(text, base=Path())


@pytest.mark.parametrize(
    ("per_trial", "pruner", "rungs"),
    [
        ("{epochs: 9}", "promotion", (1, 3, 9)),
        ("{epochs: 3}", "{kind: promotion, eta: 3}", (0.333333, 1, 3)),
        ("{epochs: 16}", "{kind: promotion, eta: 4}", (1, 4, 16)),
        ("{epochs: 27}", "{kind: promotion, first_rung: 1}", (1, 3, 9, 27)),
        ("{epochs: 27}", "{kind: promotion, first_rung: 2}", (3, 9, 27)),
        ("{epochs: 2}", "{kind: promotion, first_rung: 2}", (2,)),
        ("{steps: 100}", "promotion", (10, 30, 100)),
        ("{steps: 2}", "promotion", (1, 2)),
        ("{steps: 1}", "promotion", (1,)),
        ("{samples: 10}", "{kind: promotion, eta: 2, first_rung: 0.6}", (1, 2, 5, 10)),
        ("{seconds: 1.0}", "promotion", (0.1, 0.3, 1)),
        ("{epochs: 3, report_every: 0.33}", "promotion", (0.33, 0.99, 3)),
        ("{epochs: 10}", "promotion", (1, 3, 10)),
        ("{epochs: 4}", "promotion", (0.444444, 1, 4)),
        ("{epochs: 5}", "promotion", (0.555556, 2, 5)),
        ("{epochs: 10}", "{kind: promotion, first_rung: 1}", (1, 3.333333, 10)),
        ("{epochs: 27, report_every: 5}", "promotion", (3, 10, 27)),
        ("{epochs: 9, report_every: 4}", "promotion", (1, 4, 9)),
        ("{epochs: 9, report_every: 3.9}", "promotion", (1, 3.9, 9)),
        ("{epochs: 9, report_every: 4.2}", "promotion", (1, 3, 9)),
        ("{epochs: 3}", "median", (1, 2, 3)),
        ("{epochs: 3, report_every: 1.5}", "none", (1.5, 3)),
    ],
)
def test_rungs_divide_the_full_budget_by_eta(per_trial, pruner, rungs):
    assert rung_levels(spec_with(per_trial, pruner)) == rungs


@pytest.mark.parametrize(
    ("per_trial", "report_at"),
    [
        ("{epochs: 3}", (1, 2, 3)),
        ("{epochs: 2.5}", (1, 2, 2.5)),
        ("{epochs: 0.5}", (0.5,)),
        ("{steps: 95}", (10, 20, 30, 40, 50, 60, 70, 80, 90, 95)),
        ("{steps: 3}", (1, 2, 3)),
        ("{seconds: 1}", (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1)),
        ("{samples: 1000, report_every: 400}", (400, 800, 1000)),
        ("{epochs: 3, report_every: 0.33}", (0.33, 0.66, 0.99, 1.32, 1.65, 1.98, 2.31, 2.64, 3)),
        ("{epochs: 1, report_every: 0.33}", (0.33, 0.66, 1)),
        ("{epochs: 1, report_every: 0.3}", (0.3, 0.6, 0.9, 1)),
        ("{epochs: 1, report_every: 0.9}", (1,)),
        ("{steps: 10, report_every: 4}", (4, 8, 10)),
        ("{steps: 9, report_every: 4}", (4, 9)),
    ],
)
def test_a_trial_reports_at_its_grid(per_trial, report_at):
    assert trial_budget(spec_with(per_trial, "none")).report_at == report_at


def test_a_trial_reports_at_its_grid_and_at_every_rung_but_a_rung_near_a_report_costs_nothing():
    assert trial_budget(spec_with("{epochs: 3}")).report_at == (0.333333, 1, 2, 3)
    thirds = spec_with("{epochs: 3, report_every: 0.33}")
    assert len(trial_budget(thirds).report_at) == 9
    apart = spec_with("{epochs: 3, report_every: 0.5}")
    assert trial_budget(apart).report_at == (0.333333, 0.5, 1, 1.5, 2, 2.5, 3)


@pytest.mark.parametrize(
    ("per_trial", "pruner", "scale"),
    [
        ("{epochs: 9}", "promotion", 1),
        ("{steps: 1000}", "promotion", 1),
        ("{epochs: 3}", "promotion", 10),
        ("{epochs: 1, report_every: 0.25}", "none", 10),
        ("{epochs: 1, report_every: 0.01}", "none", 100),
        ("{seconds: 0.00001}", "none", 1_000_000),
    ],
)
def test_steps_are_whole_and_apart(per_trial, pruner, scale):
    assert step_scale(spec_with(per_trial, pruner)) == scale


@settings(max_examples=examples(200))
@given(
    st.sampled_from(["epochs", "seconds"]),
    st.floats(0.01, 1e5),
    st.floats(0.001, 1.0),
    st.integers(2, 5),
    st.integers(1, 6),
)
def test_levels_ascend_to_the_total_and_have_steps_of_their_own(unit, total, part, eta, rungs):
    every = f"{total * part:.17e}"
    spec = spec_with(
        f"{{{unit}: {total:.17e}, report_every: {every}}}",
        f"{{kind: promotion, eta: {eta}, first_rung: {total / eta**rungs:.17e}}}",
    )
    budget = trial_budget(spec)
    levels = rung_levels(spec)
    assert set(levels) <= set(budget.report_at)
    below = [level for level in budget.report_at if level not in levels]
    interval = spec.budget.per_trial.report_interval
    assert all(abs(level - rung) > 0.249 * interval for level in below for rung in levels)
    assert levels[-1] == budget.total
    scale = step_scale(spec)
    steps = [round(level * scale) for level in budget.report_at]
    assert steps == sorted(set(steps))


@settings(max_examples=examples(200))
@given(st.integers(1, 10**6), st.integers(2, 5), st.integers(1, 6))
def test_levels_of_whole_units_are_whole(total, eta, rungs):
    first = f"{total / eta**rungs:.17e}"
    pruner = f"{{kind: promotion, eta: {eta}, first_rung: {first}}}"
    spec = spec_with(f"{{steps: {total}}}", pruner)
    assert all(level == int(level) for level in trial_budget(spec).report_at)
    assert step_scale(spec) == 1
