"""Studies that began when rungs were evaluated beside near reports go on with the rungs moved
there."""

from __future__ import annotations

from typing import Any

import pytest

from hpsearch.domain.history import History
from hpsearch.domain.lifecycle import State
from hpsearch.study_file.levels import rung_levels, trial_budget
from hpsearch.study_file.models import StudySpec
from studies import Simulation, spec_with
from trials import report_grid

MOVED_DOWN = {"epochs": 3, "report_every": 0.33}
MOVED_UP = {"epochs": 27, "report_every": 5}


def study_with(per_trial: dict[str, Any]) -> StudySpec:
    return spec_with(budget={"trials": 24, "per_trial": per_trial})


def begun_before(spec: StudySpec, ticks: int, monkeypatch: pytest.MonkeyPatch) -> Simulation:
    """A study, cut short, whose rungs were not moved."""
    with monkeypatch.context() as before:
        before.setattr(report_grid, "NEAR", -1.0)
        study = Simulation(spec)
        for _ in range(ticks):
            study.tick()
    return study


def paused_at(history: History, level: float) -> list[int]:
    return [
        trial.number
        for trial in history.trials
        if trial.state is State.PAUSED and trial.resource == level
    ]


@pytest.mark.parametrize(
    ("per_trial", "rung", "before", "now"),
    [(MOVED_DOWN, 1, 1.0, 0.99), (MOVED_DOWN, 0, 0.333333, 0.33), (MOVED_UP, 1, 9.0, 10.0)],
)
def test_a_trial_that_waits_at_a_former_level_keeps_its_place(
    per_trial: dict[str, Any],
    rung: int,
    before: float,
    now: float,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    spec = study_with(per_trial)
    cut = begun_before(spec, 130, monkeypatch)
    waiting = paused_at(cut.history, before)
    assert waiting, "trials wait there"
    assert rung_levels(spec)[rung] == now
    resumed = Simulation(spec, cut.history, start=cut.executor.now)
    rungs = resumed.study._searcher._rungs
    assert rungs is not None
    of_study = rungs.rungs[rung]
    assert of_study.waiting >= set(waiting)
    assert set(of_study.scores) >= set(waiting)
    assert set(rungs.waiting()) >= set(waiting)


@pytest.mark.parametrize("per_trial", [MOVED_DOWN, MOVED_UP], ids=["down", "up"])
@pytest.mark.parametrize("ticks", [5, 40, 90, 130])
def test_a_study_begun_with_rungs_beside_its_reports_goes_on_to_its_end(
    per_trial: dict[str, Any], ticks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = study_with(per_trial)
    cut = begun_before(spec, ticks, monkeypatch)
    number_before = len(cut.history.trials)
    resumed = Simulation(spec, cut.history, start=cut.executor.now).run().history
    assert len(resumed.trials) == 24
    assert any(trial.state is State.COMPLETE for trial in resumed.trials)
    levels = set(trial_budget(spec).report_at)
    for trial in resumed.trials[number_before:]:
        assert set(trial.reports) <= levels
