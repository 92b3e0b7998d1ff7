"""Trials at a rung by several objectives: fronts, crowding, and limits first."""

import math
import random

import numpy as np
import optuna
import pytest
from optuna.samplers.nsgaii._elite_population_selection_strategy import (
    _crowding_distance_sort,
    _rank_population,
)
from optuna.study import StudyDirection
from optuna.trial import TrialState

from hpsearch.domain.records import ReportRecord
from hpsearch.search.fronts import FrontRung
from hpsearch.search.rungs import Rungs, Verdict
from hpsearch.search.worth import ParetoPoint, Scoring
from support.studies.small import spec_with


def points(seed: int, count: int, objectives: int, violating: bool) -> list[ParetoPoint]:
    draw = random.Random(seed)
    drawn = []
    for _ in range(count):
        violation = draw.random() if violating and draw.random() < 0.4 else 0.0
        drawn.append(ParetoPoint(violation, tuple(draw.random() for _ in range(objectives))))
    return drawn


def rung_of(some: list[ParetoPoint], order: list[int]) -> FrontRung:
    rung = FrontRung(1.0)
    for number in order:
        rung.record(number, some[number])
    return rung


@pytest.mark.parametrize("violating", [False, True])
@pytest.mark.parametrize("objectives", [2, 3])
@pytest.mark.parametrize("seed", range(3))
def test_the_order_is_that_of_nsga_ii_in_optuna(seed, objectives, violating):
    some = points(seed, 60, objectives, violating)
    frozen = [
        optuna.trial.create_trial(
            values=list(point.losses),
            state=TrialState.COMPLETE,
            system_attrs={"constraints": [point.violation]},
        )
        for point in some
    ]
    for number, trial in enumerate(frozen):
        trial.number = number
    directions = [StudyDirection.MINIMIZE] * objectives
    fronts = _rank_population(frozen, directions, is_constrained=violating)
    expected = []
    for front in fronts:
        _crowding_distance_sort(front)
        expected.append([trial.number for trial in front])
    rung = rung_of(some, random.Random(seed).sample(range(60), 60))
    ours = sorted(range(60), key=rung.rank)
    assert [rung.scores[number] for number in ours] == [
        index for index, front in enumerate(expected) for _ in front
    ]
    for index, front in enumerate(expected):
        inner = [number for number in ours if rung.scores[number] == index]
        outer = _ends(front, some)
        assert set(inner) == set(front)
        assert [n for n in inner if n not in outer] == [n for n in front if n not in outer]
        assert set(inner[: len(outer)]) == outer, "the ends come first"


def _ends(front: list[int], some: list[ParetoPoint]) -> set[int]:
    """The trials that are infinitely far apart, among which any order is right."""
    losses = np.array([some[number].losses for number in front])
    return {front[i] for i in (*losses.argmin(axis=0), *losses.argmax(axis=0))}


def test_standings_do_not_depend_on_the_order_of_arrival():
    some = points(7, 80, 2, violating=True)
    one = rung_of(some, list(range(80)))
    other = FrontRung(1.0)
    for number in reversed(range(80)):
        other.record(number, ParetoPoint(0.0, (0.5, 0.5)) if number % 3 else None)
        other.record(number, some[number])  # by an attempt after a lost one
    assert one.scores == other.scores
    assert all(one.rank(number) == other.rank(number) for number in range(80))


def test_a_trial_without_a_finite_value_is_last_and_never_goes_on():
    rungs = Rungs([1], total=9, eta=3, kind=FrontRung)
    assert rungs.arrive(0, 0, None).why == "no finite value at 1"
    for number in range(1, 4):
        rungs.arrive(0, number, ParetoPoint(0.0, (float(number), float(-number))))
    assert rungs.rungs[0].rank(0) == 3
    assert 0 not in rungs.rungs[0].able
    assert len(rungs.rungs[0]) == 4


def test_the_share_that_goes_on_is_taken_from_the_first_front():
    rungs = Rungs([1], total=9, eta=3, kind=FrontRung)
    along = [(0.1, 0.9), (0.2, 0.85), (0.5, 0.5), (0.9, 0.1), (0.6, 0.6), (0.95, 0.95)]
    judged = [rungs.arrive(0, n, ParetoPoint(0.0, losses)) for n, losses in enumerate(along)]
    assert {each.verdict for each in judged} == {Verdict.PAUSE}, "each was behind others"
    promoted = rungs.promotion()
    assert promoted is not None
    number, judgement = promoted
    assert rungs.rungs[0].scores[number] == 0
    assert judgement.why.startswith("it is in front 1 of 3, and the first there that waits; 2 of 6")
    paused = judged[-1]
    assert paused.why.endswith("; it is in front 3 of 3, and others come first")


def test_what_shows_the_same_values_decides_nothing():
    rungs = Rungs([1], total=9, eta=3, kind=FrontRung)
    for number in range(4):
        rungs.arrive(0, number, ParetoPoint(0.0, (0.5, 0.5)))
    assert rungs.rungs[0].is_tied
    assert rungs.fraction(0) == 1.0


def test_fronts_that_stay_foretell_and_fronts_that_turn_do_not():
    for turned, trust in ((False, 0.9), (True, 0.2)):
        rungs = Rungs([1], total=9, kind=FrontRung)
        for number, point in enumerate(points(1, 40, 2, violating=False)):
            rungs.rungs[0].record(number, point)
            losses = tuple(1 - loss for loss in point.losses) if turned else point.losses
            rungs.finish(number, ParetoPoint(0.0, losses))
        assert (rungs.correlation(0) > trust) is not turned


def test_a_point_has_each_objective_with_its_sign_and_the_excess_over_limits():
    several = [
        {"metric": "loss", "direction": "minimize"},
        {"metric": "speed", "direction": "maximize"},
    ]
    spec = spec_with(
        objective=several, search={"sampler": "random"}, constraints={"ms": {"max": 10}}
    )
    metrics = {"loss": 1.0, "speed": 2.0, "ms": 15.0}
    scoring = Scoring(spec)
    assert scoring.point(ReportRecord(0, 1.0, 1.0, metrics)) == ParetoPoint(0.5, (1.0, -2.0))
    assert scoring.point(ReportRecord(0, 1.0, 1.0, {**metrics, "speed": math.nan})) is None
