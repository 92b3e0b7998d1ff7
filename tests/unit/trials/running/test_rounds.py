"""Trials that train on fold after fold, or with seed after seed."""

from dataclasses import replace
from statistics import fmean

import pandas as pd
import pytest

from support.running.function_runs import TaskInThread, names_in, reports_of, setup_in
from trials import tasks
from trials.contract import Budget, Fold, Note, Report, Setup, Unit
from trials.running import rounds
from trials.running.rounds import TaskInRounds

EACH = Budget(Unit.EPOCHS, 2.0, (1.0, 2.0))
FOLDS = Budget(Unit.FOLDS, 3.0, (1.0, 2.0, 3.0), EACH)
SEEDS = Budget(Unit.SEEDS, 3.0, (1.0, 2.0, 3.0), EACH)


class Own:
    """The task of a function of the test."""

    def __init__(self, function):
        self.function, self.args = function, {}


def run_of(function, tmp_path, budget=FOLDS, **changes):
    task = TaskInRounds(TaskInThread(Own(function)), budget)
    return task.start(setup_in(tmp_path, budget=budget, **changes), None)


def means_of(run):
    return [each for each in reports_of(run) if not isinstance(each, Note)]


def by_fold(params, trial):
    for epoch in (1, 2):
        with trial.save() as folder:
            (folder / "state").write_text("")
        trial.report(epoch, {"loss": trial.fold + 0.1 * (2 - epoch), "folds": trial.folds})


def test_a_report_after_each_fold_is_the_mean_of_what_each_reported_last(tmp_path):
    run = run_of(by_fold, tmp_path)
    reports = means_of(run)
    assert [each.resource for each in reports] == [1, 2, 3]
    assert [each.metrics["loss"] for each in reports] == [0, 0.5, 1]
    assert {each.metrics["folds"] for each in reports} == {3}
    assert run.finished == "budget used"
    assert run.close()
    assert names_in(tmp_path / "trial") == ["best", "fold-1", "fold-2", "fold-3", "last"]


def test_a_fold_that_is_done_is_not_trained_again_and_one_that_was_cut_short_is(tmp_path):
    begun = []

    def train(params, trial):
        begun.append(trial.fold)
        assert trial.checkpoint is None
        by_fold(params, trial)

    first = run_of(train, tmp_path)
    items = iter(first)
    _, saved = (next(each for each in items if isinstance(each, Report)) for _ in range(2))
    while begun != [0, 1, 2]:
        next(items)
    assert first.save() == saved.checkpoint
    first.close()
    resumed = run_of(train, tmp_path, resume_from=saved.checkpoint)
    (last,) = means_of(resumed)
    assert begun == [0, 1, 2, 2]
    assert last.metrics == {"loss": 1.0, "folds": 3.0}
    assert last.elapsed >= saved.elapsed


def test_each_round_has_a_seed_of_its_own_and_the_first_that_of_the_trial(tmp_path):
    found = {}

    def train(params, trial):
        found.setdefault(trial.unit, []).append((trial.seed, trial.fold, trial.budget))
        assert trial.get("fold", None) == trial.fold
        assert trial.get("folds", None) == trial.folds == (None if trial.fold is None else 3)
        trial.report(2, {"loss": 1.0})

    for budget in (SEEDS, SEEDS, FOLDS):
        means_of(run_of(train, tmp_path / str(len(found.get("epochs", ()))), budget))
    seeds = [seed for seed, _, _ in found["epochs"]]
    assert seeds[0] == 1
    assert len(set(seeds[:3])) == 3
    assert seeds[:3] == seeds[3:6] == seeds[6:]
    assert max(seeds) < 2**31
    assert [fold for _, fold, _ in found["epochs"]] == [None] * 6 + [0, 1, 2]
    assert {budget for *_, budget in found["epochs"]} == {2}


def test_what_a_function_returns_counts_for_its_fold(tmp_path):
    def train(params, trial):
        if trial.fold == 0:
            trial.report(2, {"loss": 4.0})
        return {"loss": 2.0, "test": 1.0}

    reports = means_of(run_of(train, tmp_path))
    assert reports[0].metrics["loss"] == 4.0
    assert reports[-1].metrics["loss"] == pytest.approx(fmean([4, 2, 2]))
    assert reports[-1].metrics["test"] == 1.0


def test_a_metric_that_not_all_folds_have_is_left_out(tmp_path):
    def train(params, trial):
        trial.report(2, {"loss": 1.0} | ({"seldom": 1.0} if trial.fold == 1 else {}))

    reports = means_of(run_of(train, tmp_path))
    assert {*map(tuple, (each.metrics for each in reports))} == {("loss",)}


def test_a_fold_without_a_report_fails_its_trial(tmp_path):
    with pytest.raises(RuntimeError, match="2 of the folds ended without a report"):
        means_of(run_of(lambda _, trial: trial.fold or {"loss": 1.0}, tmp_path))


def test_a_long_fold_gives_signs_of_life(tmp_path, monkeypatch):
    monkeypatch.setattr(rounds, "ALIVE_S", 0.0)
    kinds = [type(each).__name__ for each in reports_of(run_of(by_fold, tmp_path))]
    assert kinds == ["Note", "Note", "Report"] * 3


@pytest.fixture
def table(tmp_path):
    frame = pd.DataFrame({"x": range(60), "who": [f"p{i // 3}" for i in range(60)]})
    frame["y"] = (frame.x * 7 % 5 > 2).astype(int)
    frame.to_csv(tmp_path / "train.csv", index=False)
    part = {"kind": "tabular", "train": "train.csv", "validation": "3 folds", "target": "y"}
    return tasks.load({**part, "group": "who"}, tmp_path)


def test_a_table_is_measured_on_every_row_once_and_its_groups_are_no_column(table, tmp_path):
    params = {"min_data_in_leaf": 2}
    task = TaskInRounds(table, FOLDS)
    data = task.prepare(params)
    assert sum(len(each.validation.target) for each in data) == 60
    assert all(each.encoding.numeric == ("x",) for each in data)
    assert not any(each.encoding.categorical for each in data)
    validated = [{*map(int, each.validation.features[:, 0])} for each in data]
    patients = [{row // 3 for row in rows} for rows in validated]
    assert sum(map(len, patients)) == 20
    each = Budget(Unit.STEPS, 4.0, (2.0, 4.0))
    setup = Setup(params, 1, replace(FOLDS, each=each), tmp_path / "trial")
    reports = means_of(task.start(setup, data))
    alone = [
        list(
            table.on_fold(Fold(number, 3)).start(
                replace(
                    setup,
                    budget=each,
                    folder=tmp_path / f"{number}",
                    seed=rounds.setup_of(setup, number).seed,
                ),
                data[number],
            )
        )[-1].metrics["loss"]
        for number in range(3)
    ]
    assert reports[-1].metrics["loss"] == pytest.approx(fmean(alone))
