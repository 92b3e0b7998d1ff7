"""Earlier studies as evidence: what they tell, and how far a study agrees with them."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from optuna.distributions import FloatDistribution

from hpsearch.domain.facts import EarlierStudy, EarlierTrial, ErrorKind, Role
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import Trial
from hpsearch.search.curve_model.curves import MOST_ROWS
from hpsearch.search.curve_model.earlier import (
    FADING_FROM,
    MOST_TRIALS,
    OPENINGS,
    ROWS,
    EarlierStudies,
    earlier_study_of,
)
from hpsearch.search.curve_model.encoding import SpaceEncoding
from hpsearch.search.curve_model.model import CurveModel, Evidence, Points
from support.studies.small import history_for, spec_with

ENCODING = SpaceEncoding({"x": FloatDistribution(0.0, 1.0), "y": FloatDistribution(0.0, 1.0)})
SPACE = spec_with(
    space={
        "x": {"type": "float", "low": 0.0, "high": 1.0},
        "kind": {"type": "categorical", "choices": ["adam", "sgd"]},
    }
).space


def history_of(values: list[tuple[dict[str, Any], float]], direction: str = "minimize") -> Any:
    spec = spec_with(objective={"metric": "loss", "direction": direction})
    history = history_for(spec)
    for number, (params, value) in enumerate(values):
        history.add_trial(Trial(number, State.COMPLETE, params, value))
    return history


def earlier(
    seed: int = 0, best: float = 0.3, count: int = 30, name: str = "before"
) -> EarlierStudy:
    """A study with its good configurations around x = y = best."""
    points = np.random.default_rng(seed).random((count, 2))
    values = ((points - best) ** 2).sum(1)
    order = np.argsort(values)
    standings = 2.4 * np.linspace(0, 2, count)
    trials = []
    for (x, y), z in zip(points[order], standings, strict=True):
        trials.append(EarlierTrial({"x": float(x), "y": float(y)}, float(z)))
    return EarlierStudy(name, trials)


def params(study: EarlierStudy) -> list[dict[str, Any]]:
    return [trial.params for trial in study.trials]


def standings(study: EarlierStudy) -> list[float]:
    return [trial.standing for trial in study.trials]


def own_rows(best: float, count: int = 20, seed: int = 9) -> Evidence:
    points = np.random.default_rng(seed).random((count, 2))
    z = 8 * ((points - best) ** 2).sum(1)
    return Evidence(Points(points, np.ones(count), np.arange(count)), z - z.mean())


# --------------------------------------------------------------------------------- what is told


def test_the_best_comes_first_whichever_direction_is_best():
    values = [({"x": 0.1 * n}, float(n)) for n in range(8)]
    least = earlier_study_of(history_of(values), SPACE)
    most = earlier_study_of(history_of(values, "maximize"), SPACE)
    assert least is not None
    assert most is not None
    assert params(least)[0] == {"x": 0.0}
    assert params(most)[0] == {"x": pytest.approx(0.7)}
    assert standings(least)[0] == standings(most)[0] == 0.0
    assert standings(least) == sorted(standings(least))


def test_what_this_study_cannot_try_is_not_told():
    values = [({"x": 0.1 * n, "elsewhere": n}, float(n)) for n in range(6)]
    values += [({"x": 7.0}, -1.0), ({"x": 0.5, "kind": "lion"}, -2.0), ({"other": 1}, -3.0)]
    told = earlier_study_of(history_of(values), SPACE)
    assert told is not None
    assert len(params(told)) == 6
    assert all(set(each) == {"x"} for each in params(told))


def test_what_is_expected_counts_and_not_the_best_value_on_the_way():
    history = history_of([({"x": 0.1 * n}, float(n)) for n in range(8)])
    history.trials[5].expected = -1.0
    told = earlier_study_of(history, SPACE)
    assert told is not None
    assert params(told)[0] == {"x": 0.5}


def test_failures_are_told_as_the_worst_and_what_exceeds_a_limit_is_not_good():
    history = history_of([({"x": 0.1 * n}, float(n)) for n in range(8)])
    history.trials[0].system_attrs = {"constraints:size": 1.0}
    history.add_trial(Trial(8, State.FAILED, {"x": 0.95}, error_kind=ErrorKind.DIVERGED))
    history.add_trial(Trial(9, State.FAILED, {"x": 0.96}, error_kind=ErrorKind.LOST))
    history.add_trial(Trial(10, State.COMPLETE, {"x": 0.97}, -5.0, role=Role.CONFIRM, repeats=1))
    told = earlier_study_of(history, SPACE)
    assert told is not None
    assert params(told)[0] == {"x": 0.1}
    assert params(told)[-1] == {"x": 0.95}
    assert {"x": 0.96} not in params(told)
    assert {"x": 0.97} not in params(told)
    of_middle = standings(told)[len(standings(told)) // 2]
    assert standings(told)[params(told).index({"x": 0.0})] >= of_middle - 0.5


def test_a_study_with_hardly_any_results_tells_nothing():
    assert (
        earlier_study_of(history_of([({"x": 0.1 * n}, float(n)) for n in range(3)]), SPACE) is None
    )
    assert (
        earlier_study_of(history_of([({"elsewhere": n}, float(n)) for n in range(30)]), SPACE)
        is None
    )


def test_of_many_trials_the_best_half_and_some_of_all_others_are_told():
    values = [({"x": n / 1000}, float(n)) for n in range(1000)]
    told = earlier_study_of(history_of(values), SPACE)
    assert told is not None
    shown = [round(1000 * each["x"]) for each in params(told)]
    assert len(shown) == MOST_TRIALS
    assert shown[: MOST_TRIALS // 2] == list(range(MOST_TRIALS // 2))
    assert shown[-1] == 999


# ----------------------------------------------------------------------------------- the covariance


@given(st.integers(0, 1000), st.lists(st.floats(0.0, 1.0), min_size=1, max_size=4))
def test_every_covariance_between_studies_is_positive_definite(seed, agreements):
    studies = [earlier(seed + n, count=12) for n in range(len(agreements))]
    known = EarlierStudies(ENCODING, studies)
    rows = known.beside(own_rows(0.3, seed=seed), [1.0] * len(studies), ROWS)
    model = CurveModel(2, 2, None, agreements)
    model.theta = model.theta + np.random.default_rng(seed).normal(scale=0.5, size=len(model.theta))
    covariance = model.covariance(rows.points, rows.points)
    assert np.allclose(covariance, covariance.T)
    assert np.linalg.eigvalsh(covariance + model.noise * np.eye(len(rows))).min() > 0
    assert np.allclose(np.diag(covariance), model.variance)


def test_without_other_studies_no_number_is_another():
    own = own_rows(0.3)
    plain = CurveModel(2, 2).covariance(own.points, own.points)
    named = Points(own.points.x, own.points.tau, own.points.trial, np.zeros(len(own), dtype=int))
    assert np.array_equal(CurveModel(2, 2, None, [0.5]).covariance(own.points, own.points), plain)
    assert np.array_equal(CurveModel(2, 2, None, [0.5]).covariance(named, named), plain)


def test_a_study_without_agreement_changes_no_prediction():
    own = own_rows(0.3)
    known = EarlierStudies(ENCODING, [earlier()])
    there = Points(np.array([[0.2, 0.9]]), np.ones(1), np.array([-1]))
    alone = CurveModel(2, 2).condition(own).predict(there)
    unlike = CurveModel(2, 2, None, [0.0]).condition(known.beside(own, [1.0], ROWS)).predict(there)
    alike = CurveModel(2, 2, None, [0.9]).condition(known.beside(own, [1.0], ROWS)).predict(there)
    assert np.allclose(alone, unlike)
    assert alike[1] < alone[1]


def test_two_studies_that_agree_with_this_one_agree_with_each_other():
    known = EarlierStudies(ENCODING, [earlier(), earlier(1)])
    rows = known.beside(own_rows(0.3, count=1), [1.0, 1.0], ROWS).points
    model = CurveModel(2, 2, None, [0.5, 0.8])
    of = {study: rows.study == study for study in (0, 1, 2)}
    with_itself = Points(rows.x, rows.tau, np.arange(len(rows)))
    ratio = model.covariance(rows, rows) / CurveModel(2, 2).covariance(with_itself, with_itself)
    assert ratio[np.ix_(of[1], of[2])].max() < ratio[np.ix_(of[0], of[2])].max() < 0.8


# -------------------------------------------------------------------------------------- agreements


def test_a_study_that_is_alike_agrees_and_one_that_is_not_does_not():
    known = EarlierStudies(ENCODING, [earlier()])
    (alike,) = known.agreements(CurveModel(2, 2), own_rows(0.3))
    (unlike,) = known.agreements(CurveModel(2, 2), own_rows(0.95))
    (usual,) = known.usual
    assert unlike < 0.25 < usual < 0.6 < alike


def test_of_several_studies_those_that_are_alike_agree_more():
    known = EarlierStudies(ENCODING, [earlier(1, 0.95), earlier(0, 0.3)])
    unlike, alike = known.agreements(CurveModel(2, 2), own_rows(0.3))
    assert 0 <= unlike < 0.3 < 0.6 < alike <= 1


@pytest.mark.parametrize("count", [1, 3, 16])
def test_however_many_studies_there_are_their_rows_are_a_third_at_most(count):
    own = own_rows(0.3)
    known = EarlierStudies(ENCODING, [earlier(seed) for seed in range(count)])
    rows = known.beside(own, known.usual, ROWS)
    assert len(rows) - len(own) <= ROWS <= MOST_ROWS // 3
    assert known.rows(0) <= ROWS
    assert known.rows(10 * FADING_FROM) <= ROWS // 10
    numbers = rows.points.trial
    assert len(set(numbers.tolist())) == len(numbers), "each row is of a trial of its own"
    assert known.beside(own, [0.0] * count, ROWS) is own


# ------------------------------------------------------------------------------- what comes first


def test_the_first_ones_are_good_on_all_studies_together_and_differ():
    known = EarlierStudies(ENCODING, [earlier(0, 0.2), earlier(1, 0.8)])
    middle = np.full(2, 0.5)
    first = [known.opening(index, middle) for index in range(OPENINGS)]
    assert known.opening(OPENINGS, middle) is None
    for best in (0.2, 0.8):
        away = [np.abs(point - best).max() for point in first if point is not None]
        assert min(away) < 0.2
    assert len({tuple(point) for point in first if point is not None}) == OPENINGS


def test_what_the_earlier_study_did_not_search_is_as_it_would_have_been():
    told = earlier()
    trials = [replace(trial, params={"x": trial.params["x"]}) for trial in told.trials]
    only_x = EarlierStudy("x", trials)
    first = EarlierStudies(ENCODING, [only_x]).opening(0, np.array([0.1, 0.77]))
    assert first is not None
    assert first[0] in [each["x"] for each in params(only_x)]
    assert first[1] == 0.77
