"""What is expected of trials in full."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from hpsearch.domain.history import History
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import ReportRecord, Trial
from hpsearch.search.curve_model.curves import Warp, warp_of
from hpsearch.search.curve_model.forecast import LEAST, Forecast, Outlook
from hpsearch.search.proposals import forecast_of
from hpsearch.study_file.models import StudySpec
from support.studies.small import history_for, spec_with


def spec_for(unit: str = "epochs", scale: int = 1, direction: str = "minimize") -> StudySpec:
    """A study of 27 epochs, whatever they are counted in."""
    return spec_with(
        budget={"trials": 100, "per_trial": {unit: 27 * scale, "report_every": scale}},
        objective={"metric": "loss", "direction": direction},
    )


def shown_by(
    spec: StudySpec, epochs: Mapping[float, int], scale: int = 1, sign: float = 1.0
) -> History:
    """The records of trials by their x, each trained for so many of 27 epochs; x is best at 0.3."""
    history = history_for(spec)
    for number, (x, end) in enumerate(epochs.items()):
        trial = Trial(number, State.COMPLETE if end == 27 else State.PAUSED, {"x": x})
        for epoch in range(1, end + 1):
            loss = sign * ((x - 0.3) ** 2 + 1 / (1 + epoch))
            resource = float(epoch * scale)
            report = ReportRecord(number, resource, loss, {"loss": loss})
            trial.reports[resource] = report
            trial.value = loss
        trial.resource = float(end * scale)
        history.add_trial(trial)
    return history


MIXED = {0.05: 27, 0.2: 27, 0.33: 27, 0.5: 9, 0.6: 27, 0.7: 3, 0.9: 27, 0.31: 2, 0.45: 27}


def outlook_of(spec: StudySpec, history: History) -> Outlook:
    outlook = forecast_and_outlook(spec, history)[1]
    assert outlook is not None
    return outlook


def forecast_and_outlook(spec: StudySpec, history: History) -> tuple[Forecast, Outlook | None]:
    forecast = forecast_of(spec, history)
    assert forecast is not None
    return forecast, forecast.outlook()


def values_of(spec: StudySpec, history: History) -> np.ndarray[Any, Any]:
    numbers = [trial.number for trial in history.trials]
    return np.array(outlook_of(spec, history).values(numbers))


@pytest.mark.parametrize(("direction", "sign"), [("minimize", 1.0), ("maximize", -1.0)])
def test_of_complete_trials_about_their_value_is_expected_and_of_others_less_surely(
    direction, sign
):
    spec = spec_for(direction=direction)
    history = shown_by(spec, MIXED, sign=sign)
    expected, deviations, low, high = values_of(spec, history).T
    complete = np.array([trial.state is State.COMPLETE for trial in history.trials])
    values = np.array([trial.value for trial in history.trials])
    assert np.abs(expected - values)[complete] == pytest.approx(0.0, abs=0.03)
    assert (deviations > 0).all()
    assert ((low <= expected) & (expected <= high)).all()
    seen = [sign * report.value for each in history.trials for report in each.reports.values()]
    assert np.maximum(sign * low, sign * high).max() <= max(seen), "no worse than what was seen"
    assert deviations[~complete].min() > np.median(deviations[complete])
    early = 7  # after 2 epochs, at a place where others have ended well
    assert sign * expected[early] < sign * values[early] - 0.1


def test_a_maximised_objective_is_expected_as_the_same_one_minimised():
    minimised = spec_for()
    maximised = spec_for(direction="maximize")
    less = values_of(minimised, shown_by(minimised, MIXED))
    more = values_of(maximised, shown_by(maximised, MIXED, sign=-1.0))
    assert more[:, 0] == pytest.approx(-less[:, 0])
    assert more[:, 1] == pytest.approx(less[:, 1])


@pytest.mark.parametrize(("unit", "scale"), [("steps", 1000), ("samples", 50_000)])
def test_the_unit_of_the_budget_changes_nothing(unit, scale):
    in_epochs = spec_for()
    in_units = spec_for(unit, scale)
    expected = values_of(in_epochs, shown_by(in_epochs, MIXED))
    assert values_of(in_units, shown_by(in_units, MIXED, scale)).tolist() == expected.tolist()


def test_an_outlook_is_kept_until_a_curve_changes():
    spec = spec_for()
    history = shown_by(spec, MIXED)
    forecast, outlook = forecast_and_outlook(spec, history)
    history.touch(history.trials[0])
    assert forecast.outlook() is outlook
    history.add_report(ReportRecord(7, 3.0, 0.2, {"loss": 0.2}))
    later = forecast.outlook()
    assert later is not outlook
    assert later is not None
    assert {curve.number for curve in later.curves} == later.known.keys() == {*range(len(MIXED))}


def test_who_only_looks_fits_nothing_and_changes_no_decision():
    spec = spec_for()
    watched, alone = shown_by(spec, MIXED), shown_by(spec, MIXED)
    forecast = forecast_of(spec, watched)
    assert forecast is not None
    assert forecast.outlook(fit=False) is not None
    assert not watched.study.system_attrs
    decided = forecast.outlook()
    assert decided is not None
    assert forecast.outlook(fit=False) is decided
    assert watched.study.system_attrs
    numbers = list(range(len(MIXED)))
    assert decided.values(numbers) == outlook_of(spec, alone).values(numbers)
    assert watched.study.system_attrs == alone.study.system_attrs


def test_a_driver_that_resumes_expects_the_same():
    spec = spec_for()
    history = shown_by(spec, dict(list(MIXED.items())[:5]))
    forecast, _ = forecast_and_outlook(spec, history)
    rest = shown_by(spec, MIXED).trials[5:]
    for trial in rest:
        history.add_trial(trial)
        forecast.outlook()
    before = forecast.outlook()
    assert before is not None
    assert history.study.system_attrs, "something was fitted"
    after = outlook_of(spec, history)
    numbers = list(range(len(MIXED)))
    assert after.values(numbers) == before.values(numbers)
    assert [curve.number for curve in after.curves] == [curve.number for curve in before.curves]


def test_curves_are_in_order_however_they_came_and_went():
    spec = spec_for()
    history = shown_by(spec, MIXED)
    forecast, _ = forecast_and_outlook(spec, history)
    draw = np.random.default_rng(0)
    for step in range(60):
        number = int(draw.integers(len(MIXED)))
        loss = float(draw.random())
        history.add_report(ReportRecord(number, 1.0, loss, {"loss": loss}))
        history.trials[number].system_attrs = {"constraints:size": float(step % 3 - 1)}
        history.touch(history.trials[number])
        curves = forecast.reader.curves()
        keys = [(curve.outside, curve.best, curve.number) for curve in curves]
        assert keys == sorted(keys)
        bests = [curve.best for curve in curves]
        inside = [curve.best for curve in curves if not curve.outside]
        cut = [*inside, *[max(bests)] * (len(bests) - len(inside))]
        assert warp_of(curves) == Warp(min(cut), float(np.median(cut)))


@pytest.mark.parametrize("low", [-1e308, 0.0, 1e308])
@pytest.mark.parametrize("middle", [-1e308, 0.0, 1e308])
def test_values_however_far_apart_are_stretched_in_order(low, middle):
    values = np.array([-1e308, -1.0, 0.0, 1.0, 1e308])
    stretched = Warp(low, max(low, middle))(np.append(values, [np.inf, -np.inf, np.nan]))
    assert np.isfinite(stretched).all()
    assert (np.diff(stretched[: len(values)]) >= 0).all()
    assert (stretched[len(values) :] == stretched.max()).all()


def test_the_warp_has_an_inverse():
    warp = Warp(0.2, 0.7)
    values = np.linspace(0.19, 3.0, 50)
    warped = warp(values)
    assert (np.diff(warped) > 0).all()
    assert warp.undone(warped) == pytest.approx(values)


def test_nothing_is_expected_before_a_few_trials_have_shown_a_value():
    spec = spec_for()
    history = shown_by(spec, dict(list(MIXED.items())[: LEAST - 1]))
    forecast, outlook = forecast_and_outlook(spec, history)
    assert outlook is None
    diverged = Trial(LEAST - 1, State.RUNNING, {"x": 0.4})
    diverged.reports[1.0] = ReportRecord(LEAST - 1, 1.0, None, {"loss": math.nan})
    history.add_trial(diverged)
    assert forecast.outlook() is None, "it has shown nothing"
    history.add_report(ReportRecord(LEAST - 1, 2.0, 0.5, {"loss": 0.5}))
    assert forecast.outlook() is not None


def test_nothing_is_expected_where_there_are_several_objectives():
    objective = [
        {"metric": "loss", "direction": "minimize"},
        {"metric": "size", "direction": "minimize"},
    ]
    spec = spec_with(objective=objective, search={"sampler": "random", "pruner": "none"})
    assert forecast_of(spec, history_for(spec)) is None


def test_the_chance_to_win_is_greater_the_more_is_expected():
    spec = spec_for()
    outlook = outlook_of(spec, shown_by(spec, MIXED))
    near_best, far_off = 7, 5
    leader = outlook.leader(range(len(MIXED)))
    good, bad = outlook.chances([near_best, far_off], leader)
    assert 0.0 <= bad < good <= 1.0
    assert outlook.chances([leader], leader) == [0.5]


@pytest.mark.parametrize(("low", "middle"), [(-1.7e308, 1.7e308), (0.0, 1e-300), (1.0, 3.0)])
def test_a_warp_is_undone_over_all_floats(low, middle):
    warp = Warp(low, middle)
    values = np.array([low, middle])
    found = warp.undone(warp(values))
    assert found == pytest.approx(values, rel=1e-9, abs=1e-12)
