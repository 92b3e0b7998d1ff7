"""Trials that answer like a guess for good are stopped; slow starters are not."""

from collections.abc import Mapping
from typing import Any

import pytest

from hpsearch.domain.facts import Role
from hpsearch.domain.lifecycle import State
from hpsearch.domain.phase import Phase
from hpsearch.domain.records import ReportRecord, Trial
from hpsearch.search.rungs import Verdict
from hpsearch.search.searcher import Assessment, Searcher
from hpsearch.study_file.models import StudySpec
from support.studies.small import brain, history_for, spec_with

EPOCHS = 18
GUESS = {"accuracy": 1 / 12, "loss": 2.485}
LEARNT = {"accuracy": 0.6, "loss": 1.2}


def study(**changes: Any) -> StudySpec:
    budget = {"trials": 99, "per_trial": {"epochs": EPOCHS}}
    objective = {"metric": "accuracy", "direction": "maximize"}
    return spec_with(**{"budget": budget, "objective": objective, **changes})


class Watched:
    """A study whose other trials have been trained in full, and one that is assessed at each of
    its reports."""

    def __init__(
        self,
        spec: StudySpec,
        *,
        learnt: int = 5,
        stuck: int = 2,
        role: Role = Role.SEARCH,
        params: Mapping[str, Any] | None = None,
        better: Mapping[str, float] = LEARNT,
    ) -> None:
        self.spec, self.history = spec, history_for(spec)
        for number in range(learnt + stuck):
            other = self.history.add_trial(Trial(number, State.COMPLETE, {"x": 0.5}))
            for epoch in range(1, EPOCHS + 1):
                self.add(other, epoch, GUESS if number < stuck or epoch < 2 else better)
        number = len(self.history.trials)
        trial = Trial(number, State.RUNNING, {"x": 0.1, **(params or {})}, role=role)
        self.trial = self.history.add_trial(trial)

    def add(self, trial: Trial, epoch: int, metrics: Mapping[str, float]) -> ReportRecord:
        value = metrics[self.spec.objective.metric]
        report = ReportRecord(trial.number, float(epoch), value, dict(metrics))
        trial.resource = float(epoch)
        return self.history.add_report(report)

    def searcher(self) -> Searcher:
        """As of a driver that takes the study up now."""
        return brain(self.spec, self.history)._context.searcher

    def train(self, *shown: Mapping[str, float]) -> float | None:
        """The epoch at which the trial is stopped, with the last of what it shows from then on."""
        searcher = self.searcher()
        for epoch in range(1, EPOCHS + 1):
            metrics = shown[min(epoch, len(shown)) - 1]
            if self.assess(searcher, epoch, metrics).judgement.verdict is Verdict.STOP:
                return epoch
        return None

    def assess(self, searcher: Searcher, epoch: int, metrics: Mapping[str, float]) -> Assessment:
        report = self.add(self.trial, epoch, metrics)
        found = searcher.assess(self.trial, report, Phase.SEARCHING)
        if found.worth.improves:
            self.trial.value = report.value
        return found


def test_a_trial_that_has_learnt_nothing_by_a_third_of_its_budget_is_stopped_in_words():
    watched = Watched(study())
    searcher = watched.searcher()
    early = [watched.assess(searcher, epoch, GUESS) for epoch in range(1, 6)]
    assert all(each.judgement.verdict is not Verdict.STOP for each in early)
    judgement = watched.assess(searcher, 6, GUESS).judgement
    assert judgement.verdict is Verdict.STOP
    assert judgement.why == (
        "has learnt nothing: accuracy 0.08333 since 1, as by guessing, "
        "where 5 of 7 others have learnt"
    )


@pytest.mark.parametrize("where", ["params", "settings"])
def test_a_trial_is_given_its_warm_up_and_time_after_it(where):
    spec = study(settings={"warmup": 0.5}) if where == "settings" else study()
    params = {"warmup": 0.5} if where == "params" else None
    assert Watched(spec, params=params).train(GUESS) == 12


@pytest.mark.parametrize(
    "warmup",
    [500, "long", None, True, -1.0, float("nan")],
    ids=["steps", "text", "none", "flag", "negative", "nan"],
)
def test_what_is_not_a_share_says_nothing_of_the_warm_up(warmup):
    assert Watched(study(), params={"warmup": warmup}).train(GUESS) == 6


@pytest.mark.parametrize("role", [Role.DEFAULT, Role.CONFIRM])
def test_what_is_measured_in_full_is_not_stopped(role):
    assert Watched(study(), role=role).train(GUESS) is None


@pytest.mark.parametrize("role", [Role.ENQUEUED, Role.PROPOSED])
def test_what_was_asked_for_is_judged_like_others(role):
    assert Watched(study(), role=role).train(GUESS) == 6


@pytest.mark.parametrize(
    ("learnt", "stuck"), [(2, 2), (3, 4), (9, 1)], ids=["few", "less than half", "no guess"]
)
def test_where_few_have_learnt_or_no_others_show_the_guess_nothing_is_stopped(learnt, stuck):
    watched = Watched(study(), learnt=learnt, stuck=stuck)
    if stuck == 1:
        for other in watched.history.trials[stuck:-1]:
            watched.add(other, 1, LEARNT)
            other.resource = EPOCHS
    assert watched.train(GUESS) is None


@pytest.mark.parametrize("name", ["loss", "val_loss", "train_loss"])
def test_a_slow_starter_whose_loss_falls_is_not_stopped(name):
    watched = Watched(study())
    for other in watched.history.trials[:-1]:
        for report in other.reports.values():
            report.metrics[name] = report.metrics.pop("loss")
    falls = [{"accuracy": 1 / 12, name: 2.485 - 0.01 * epoch} for epoch in range(EPOCHS)]
    assert watched.train(*falls) is None


def test_a_loss_that_jumps_above_that_of_a_guess_is_no_learning():
    jumps = [{"accuracy": 1 / 12, "loss": 9.0 / epoch + 2.485} for epoch in range(1, EPOCHS)]
    assert Watched(study()).train(*jumps) == 6


@pytest.mark.parametrize("loss", [{}, {"loss": float("nan")}], ids=["absent", "not a number"])
def test_without_a_loss_the_objective_decides(loss):
    assert Watched(study()).train({"accuracy": 1 / 12, **loss}) == 6


def test_a_trial_that_was_ever_better_or_still_moves_is_not_stopped():
    assert Watched(study()).train(LEARNT, GUESS) is None
    moves = [{"accuracy": 1 / 12 - 1e-6 * epoch, "loss": 2.485} for epoch in range(EPOCHS)]
    assert Watched(study()).train(*moves) is None


def test_a_value_that_many_are_worse_than_has_been_learnt():
    watched = Watched(study(), learnt=6, stuck=6)
    for other in watched.history.trials[:4]:
        for epoch in range(3, EPOCHS + 1):
            watched.add(other, epoch, {"accuracy": 0.01, "loss": 3.0})
    assert watched.train(GUESS) is None


def test_less_of_an_error_is_better_and_a_loss_as_objective_counts_as_itself():
    spec = study(objective={"metric": "loss", "direction": "minimize"})
    assert Watched(spec).train(GUESS) == 6
    assert Watched(spec, better={"loss": 3.0}).train(GUESS) is None


@pytest.mark.parametrize(
    "changes",
    [
        {"search": {"sampler": "random", "pruner": "none"}},
        {"search": {"sampler": "random", "pruner": {"kind": "median", "n_startup_trials": 99}}},
        {
            "objective": [
                {"metric": "accuracy", "direction": "maximize"},
                {"metric": "loss", "direction": "minimize"},
            ]
        },
    ],
    ids=["none", "median", "several objectives"],
)
def test_another_pruner_or_several_objectives_are_left_alone(changes):
    assert Watched(study(**changes)).train(GUESS) is None


def test_a_driver_that_takes_the_study_up_judges_the_same_and_its_rungs_stand_the_same():
    watched = Watched(study())
    for epoch in range(1, 6):
        watched.assess(watched.searcher(), epoch, GUESS)
    kept = watched.searcher()
    assert watched.assess(kept, 6, GUESS).judgement.verdict is Verdict.STOP
    watched.trial.state = State.PRUNED
    watched.history.touch(watched.trial)
    resumed = watched.searcher()
    assert kept._rungs is not None
    assert resumed._rungs is not None
    for before, after in zip(kept._rungs.rungs, resumed._rungs.rungs, strict=True):
        assert (before.gone_on, before.judged, before.able, before.scores) == (
            after.gone_on,
            after.judged,
            after.able,
            after.scores,
        )


def test_a_trial_that_learnt_later_in_a_lost_attempt_is_not_stopped_when_it_redoes_it():
    watched = Watched(study())
    watched.train(*[GUESS] * 4, LEARNT)
    searcher = watched.searcher()
    for epoch in range(1, 9):
        judgement = watched.assess(searcher, epoch, GUESS).judgement
        assert judgement.verdict is not Verdict.STOP
