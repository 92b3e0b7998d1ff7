"""The table of settings, the budget, and what is said of mistakes in them."""

import dataclasses

import pytest

from trials.contract import Goal, TaskError, Unit
from trials.descriptions.builtin import BUILT_IN, describe
from trials.descriptions.description import LOOP_METRICS
from trials.running.report_grid import budget_from
from trials.settings import LARGER_IS_BETTER, SMALLER_IS_BETTER, TABLE, Settings


def problem_of(params):
    with pytest.raises(TaskError) as caught:
        Settings.parse(params)
    (problem,) = caught.value.problems
    return f"{problem.where}: {problem.what}"


def test_every_setting_says_what_it_is_and_its_default_fits_its_own_limits():
    assert all(row.problem_with(row.default) is None for row in TABLE.values())
    assert Settings.parse({name: row.default for name, row in TABLE.items()}) == Settings()
    assert set(TABLE) == {field.name for field in dataclasses.fields(Settings)}
    assert all(row.about.endswith(".") for row in TABLE.values())


def test_an_unknown_setting_names_the_nearest_and_every_mistake_is_told_at_once():
    assert problem_of({"learning_rat": 1e-3}) == (
        "settings.learning_rat: is not a setting of this task; did you mean learning_rate?"
    )
    with pytest.raises(TaskError) as caught:
        Settings.parse({"learning_rat": 1, "warmup": 2, "dropout": -1})
    assert [p.where for p in caught.value.problems] == [
        "settings.learning_rat",
        "settings.warmup",
        "settings.dropout",
    ]


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"learning_rate": 0}, "must be above 0, not 0"),
        ({"learning_rate": "1e-4"},
         "must be a number, not '1e-4' (YAML reads 1e-4 as text; write 1.0e-4)"),
        ({"batch_size": 16.0}, "must be a whole number, not 16.0"),
        ({"bucketing": 1}, "must be true or false, not 1"),
        ({"batch_size": None}, "must have a value"),
        ({"micro_batch": "most"}, "must be auto or a number, not 'most'"),
        ({"micro_batch": 0}, "must be at least 1, not 0"),
        ({"schedule": "cosin"},
         "must be one of constant, linear, cosine, one_cycle, step, wsd, not 'cosin'"),
    ],
)  # fmt: skip
def test_an_unfit_value_says_what_would_fit(params, said):
    (name,) = params
    assert problem_of(params) == f"settings.{name}: {said}"


def test_a_whole_number_does_for_a_number_and_null_for_absent():
    settings = Settings.parse({"weight_decay": 1, "max_grad_norm": None})
    assert isinstance(settings.weight_decay, float)
    assert settings.max_grad_norm is None


def test_less_loss_and_more_of_a_score_is_better_unless_the_objective_says_otherwise():
    def mode(monitor: str, goal: Goal | None = None) -> str:
        return Settings.parse({"monitor": monitor}).monitor_mode(goal)

    assert [mode(name) for name in ("loss", "rmse", "accuracy", "r2")] == [
        "min",
        "min",
        "max",
        "max",
    ]
    assert mode("grad_norm", Goal("grad_norm", maximize=False)) == "min"
    assert mode("padding_ratio", Goal("padding_ratio", maximize=True)) == "max"
    with pytest.raises(
        TaskError,
        match=r"settings\.monitor: 'micro_batch' could be better when larger or when smaller",
    ):
        mode("micro_batch", Goal("loss", maximize=False))


@pytest.mark.parametrize("kind", BUILT_IN)
def test_the_direction_of_what_tasks_measure_themselves_is_known(kind):
    own = describe(kind).metrics - LOOP_METRICS
    assert own
    assert own <= SMALLER_IS_BETTER | LARGER_IS_BETTER


@pytest.mark.parametrize(
    ("per_trial", "levels"),
    [
        ({"epochs": 3}, (1, 2, 3)),
        ({"epochs": 2.5}, (1, 2, 2.5)),
        ({"epochs": 0.5}, (0.5,)),
        ({"steps": 25}, (3, 6, 9, 12, 15, 18, 21, 24, 25)),
        ({"steps": 5}, (1, 2, 3, 4, 5)),
        ({"samples": 100, "report_every": 40}, (40, 80, 100)),
        ({"seconds": 5, "report_every": 2.5}, (2.5, 5)),
        ({"epochs": 0.5, "report_every": 0.1}, (0.1, 0.2, 0.3, 0.4, 0.5)),
    ],
)
def test_a_budget_reports_on_a_grid_that_ends_at_its_total(per_trial, levels):
    budget = budget_from(per_trial)
    assert budget.report_at == levels
    assert budget.unit in Unit
    assert budget.total == levels[-1]


@pytest.mark.parametrize(
    ("per_trial", "said"),
    [
        (
            {},
            "budget.per_trial: needs exactly one of steps, epochs, samples, tokens or seconds, "
            "not none",
        ),
        ({"steps": 1, "epochs": 1},
         "needs exactly one of steps, epochs, samples, tokens or seconds, not steps and epochs"),
        ({"epoch": 1, "steps": 1},
         "budget.per_trial.epoch: is not a part of a trial's budget; did you mean epochs?"),
        ({"steps": "many"}, "budget.per_trial.steps: must be a number above 0, not 'many'"),
        ({"epochs": 0}, "budget.per_trial.epochs: must be a number above 0, not 0"),
        ({"epochs": 1, "report_every": -1},
         "budget.per_trial.report_every: must be a number above 0, not -1"),
        ({"steps": 1e9, "report_every": 1},
         "1000000000 reports a trial are more than 10000; raise report_every"),
    ],
)  # fmt: skip
def test_a_budget_that_cannot_be_says_why(per_trial, said):
    with pytest.raises(TaskError) as caught:
        budget_from(per_trial)
    assert said in str(caught.value)


@pytest.mark.parametrize("size", [None, 8, "auto"])
def test_a_micro_batch_is_a_number_or_auto_or_the_whole_batch(size):
    assert Settings.parse({"micro_batch": size}).micro_batch == size


@pytest.mark.parametrize("kind", BUILT_IN)
def test_only_a_task_whose_samples_are_made_of_tokens_measures_tokens(kind):
    description = describe(kind)
    measured = {"tokens_per_second", "padding_ratio"} & description.metrics
    assert bool(measured) is (Unit.TOKENS in description.units)
