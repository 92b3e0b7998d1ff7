"""A page for every state that a study can be in: each says what there is, and what there is not."""

import math
import random
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest

import hpsearch
from hpsearch.domain.facts import CodeVerdict, ErrorKind
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import StudyState, Trial
from hpsearch.store.reading.queries import find_study
from hpsearch.store.store import Store
from hpsearch.views.report.charts.parameters import configurations
from hpsearch.views.report.charts.revisions import ladder
from hpsearch.views.report.data import ReportData, report_data
from hpsearch.views.report.page import html_report, markdown_report, page
from hpsearch.views.words import how_sure
from support.studies.reported import (
    BEGAN,
    PARAMS,
    RATE,
    SPACE,
    a_trial,
    ordinary_trials,
    repeats_of,
    save,
    spec_of,
)

SPEC = spec_of("flowers", SPACE)
MONTHS = ("January", "February", "March", "April", "May")
Reporting = Callable[..., ReportData]


@pytest.fixture
def report_on(sqlite_url: str) -> Reporting:
    """Saves a study and reads its data."""

    def tell(trials: Sequence[Trial], spec: str = SPEC, **more: Any) -> ReportData:
        name = save(sqlite_url, "flowers", trials, spec, **more)
        with closing(Store.open(sqlite_url)) as store, store.reading() as connection:
            return report_data(connection, find_study(connection, name), BEGAN + 5_000)

    return tell


def texts(data: ReportData) -> str:
    """The page as Markdown; it is also made as HTML, which must not fail."""
    assert "</html>" in html_report(data)
    return markdown_report(data)


def keys(data: ReportData) -> list[str]:
    return [section.key for section in page(data).sections]


@pytest.mark.parametrize(
    "clip",
    [
        {"type": "categorical", "choices": [1.0, 10.0, 1e300, 5e-324]},
        {"type": "float", "low": -1e100, "high": 1e100},
        {"type": "float", "low": 1e-300, "high": 1e100, "log": True},
    ],
)
@pytest.mark.parametrize("largest", [1e-310, 1e40, 1.79e308])
@pytest.mark.filterwarnings("error")
def test_parameters_and_values_may_be_as_large_and_as_small_as_floats(sqlite_url, clip, largest):
    spec = {
        "study": "wide",
        "space": {"clip": clip, "x": {"type": "float", "low": -1.0, "high": 1.0}},
        "objective": {"metric": "loss", "direction": "minimize"},
        "budget": {"trials": 24, "per_trial": {"epochs": 1}},
        "search": {"sampler": "random", "pruner": "none"},
    }
    with hpsearch.create(sqlite_url, spec) as study:
        while asked := study.ask():
            study.tell(asked, asked.params["x"] * largest)
    with closing(Store.open(sqlite_url, create=False)) as store, store.reading() as connection:
        data = report_data(connection, find_study(connection, "wide"), BEGAN)
    assert "Infinity" not in html_report(data)
    found = configurations(data, data.goal).importances.frame.set_index("parameter")
    assert found.importance["x"] > 0.6


def test_a_confirmed_winner_is_told_with_its_interval_and_what_trains_it(report_on):
    trials = ordinary_trials()
    best = max((t for t in trials if t.value is not None), key=lambda t: t.value or 0.0)
    data = report_on([*trials, *repeats_of(best, 40, [0.84, 0.85, 0.86])])
    said = texts(data)
    assert (
        "\n## `accuracy` 0.85, from 40 trials; mean of 3 trainings\n\n"
        f"**The configuration (trial {best.number})**\n" in said
    )
    assert "| value | 0.85 if trained again, 90% of the time between " in said
    assert "trained with other seeds 3 times more" in said
    assert f'`hpsearch best --where "number = {best.number}" --format yaml flowers' in said
    assert page(data).result.is_sure


def test_before_any_trial_has_started_the_page_says_so(report_on):
    data = report_on([], state=StudyState.RUNNING, reason=None)
    assert "## no result yet: no trial has started" in texts(data)
    assert keys(data) == ["origin"]


def test_a_single_trial_has_no_parameters_to_compare(report_on):
    data = report_on([a_trial(0, State.COMPLETE, PARAMS[0], 0.7)])
    said = texts(data)
    assert "\n## `accuracy` 0.7, from 1 trial; trained once\n" in said
    assert "parameters" not in keys(data)


def test_where_all_trials_failed_there_is_no_best_but_their_causes(report_on):
    failed = {"error_kind": ErrorKind.OUT_OF_MEMORY, "error_text": "CUDA out of memory"}
    trials = [a_trial(n, State.FAILED, PARAMS[n], None, **failed) for n in range(5)]
    data = report_on(trials, state=StudyState.FAILED, reason="5 trials failed the same way")
    said = texts(data)
    assert "## no result: all 5 trials failed" in said
    assert "| out of memory | 5 | 4 | `CUDA out of memory` |" in said
    assert "| failed or lost |" in said


def test_a_study_that_was_interrupted_tells_what_is_known_so_far(report_on):
    trials = [*ordinary_trials(20), a_trial(20, State.RUNNING, PARAMS[20], 0.5)]
    data = report_on(trials, state=StudyState.INTERRUPTED, reason=None)
    said = texts(data)
    assert "; interrupted: all of this is so far." in said
    assert " of wall clock: 21 trials, " in said
    assert " so far |" in said
    assert "| not ended |" in said


def test_no_complete_trial_is_said_of_the_best(report_on):
    trials = [a_trial(n, State.PAUSED, PARAMS[n], 0.3 + n / 50) for n in range(12)]
    said = texts(report_on(trials))
    assert "if trained to the end, from 12 trials\n" in said
    assert ": it is paused |" in said


def test_several_objectives_have_a_front_and_no_best(report_on):
    goals = [
        {"metric": "accuracy", "direction": "maximize"},
        {"metric": "latency", "direction": "minimize"},
    ]
    trials = []
    for n in range(12):
        values = [0.5 + n / 30, 10.0 + n if n % 2 else 30.0]
        trial = a_trial(n, State.COMPLETE, PARAMS[n], values[0], values=values)
        for report in trial.reports.values():
            report.metrics = {"accuracy": report.value or 0.0, "latency": 3.0}
        trials.append(trial)
    search = {"sampler": "random", "pruner": "none"}
    spec = spec_of("flowers", SPACE, objective=goals, search=search)
    data = report_on(trials, spec, directions=("maximize", "minimize"))
    said = texts(data)
    assert "## the 6 best trade-offs between `accuracy` and `latency`, from 12 trials\n" in said
    titles = [chart.title for chart in page(data).charts]
    assert titles[0] == "The front"
    assert titles[-1] == "Learning curves"
    assert data.result.best is None


def change(number: int, verdict: CodeVerdict, *gain: float) -> dict[str, Any]:
    """A change of code, by its mean and lower bound if it has pairs."""
    mean, least = gain or (None, None)
    found = {"number": number, "verdict": verdict.value, "reason": "<b>", "better_by": mean}
    return {**found, "at_least": least, "decided": None if verdict is CodeVerdict.OPEN else 1.0}


def test_the_ladder_has_a_mark_for_each_tested_change_on_the_base_as_it_was_by_then(report_on):
    keep, waits, discard = CodeVerdict.KEEP, CodeVerdict.OPEN, CodeVerdict.DISCARD
    tests = [change(1, keep, 0.25, 0.125), change(2, discard, -9.0, -20.0), change(3, discard)]
    tests += [change(4, waits, 0.125, -0.5), change(5, keep, 0.5, 0.25), change(6, waits)]
    data = report_on(ordinary_trials(6))
    made = ladder(replace(data, revisions=tests))
    drawn = {trace.name: trace for trace in made.figure.data}
    assert (drawn["base"].x, drawn["base"].y) == ((0.5, 1, 5, 5.5), (0.0, 0.25, 0.75, 0.75))
    assert (drawn["kept"].x, drawn["kept"].y) == ((1, 5), (0.25, 0.75))
    assert drawn["kept"].error_y.arrayminus == (0.125, 0.25)
    assert drawn["discarded"].y == (-0.75,)  # as far below as the base has come up
    assert drawn["not decided yet"].y == (0.375,)
    assert len({trace.marker.symbol for trace in drawn.values()}) == 4
    assert drawn["kept"].text[0] == "revision 1: &lt;b&gt;"
    assert "2 kept, 1 discarded, 1 not decided yet" in made.alternative
    assert made.remark.endswith("Farther below than drawn: 1. Without a complete pair: 2.")
    assert ladder(replace(data, revisions=tests[:1] + tests[2:4])) is None


def test_a_space_of_categories_alone_is_drawn(report_on):
    names = ("red", "green", "blue")
    space = {
        "colour": {"type": "categorical", "choices": list(names)},
        "deep": {"type": "categorical", "choices": [True, False]},
        "month": {"type": "categorical", "choices": list(MONTHS)},
    }
    trials = []
    for n in range(18):
        params = {"colour": names[n % 3], "deep": n % 2 == 0, "month": MONTHS[n % 5]}
        trials.append(a_trial(n, State.COMPLETE, params, 0.5 + n % 3 / 9))
    data = report_on(trials, spec_of("flowers", space))
    parameters = next(s for s in page(data).sections if s.key == "parameters")
    slices = next(chart for chart in parameters.charts if chart.title == "Slices")
    layout = slices.figure.layout
    axes = {axis.title.text: axis for axis in (layout.xaxis, layout.xaxis2, layout.xaxis3)}
    assert axes["colour"].categoryarray == names
    assert axes["month"].categoryarray == MONTHS
    assert "Importance of parameters" in texts(data)


def test_values_that_are_not_numbers_are_left_out(report_on):
    trials = ordinary_trials(12)
    spoilt = trials[0]
    spoilt.value = None
    for report in spoilt.reports.values():
        report.value, report.metrics = None, {"accuracy": math.nan}
    data = report_on(trials)
    assert 0 not in data.history.trials.index[data.history.trials["standing_0"].notna()]
    assert '"accuracy": NaN' not in html_report(data)


def test_sixty_parameters_with_long_names_are_thinned_to_those_that_matter(report_on):
    names = [f"{'a_very_long_name_of_a_parameter_' * 3}{n}" for n in range(60)]
    drawn = random.Random(1)
    trials = []
    for n in range(30):
        params = {name: drawn.uniform(0.01, 1.0) for name in names}
        trials.append(a_trial(n, State.COMPLETE, params, params[names[7]]))
    space = {name: {**RATE, "low": 0.01, "high": 1.0} for name in names}
    data = report_on(trials, spec_of("flowers", space))
    parameters = next(s for s in page(data).sections if s.key == "parameters")
    slices = next(chart for chart in parameters.charts if chart.title == "Slices")
    assert slices.figure.layout.xaxis12.title.text
    assert "12 of 60 parameters are drawn" in (slices.remark or "")
    assert f"against {names[7]}" in slices.alternative
    said = markdown_report(data)
    for name in names:
        assert f"| `{name}` | `" in said, "all of them are in the result"


def test_a_study_made_through_optuna_has_a_page_without_a_study_file(report_on):
    trials = [
        Trial(n, State.COMPLETE, {"x": n / 9}, value=n / 9, ended=BEGAN + n) for n in range(9)
    ]
    data = report_on(trials, "")
    said = texts(data)
    assert "## `value` 0.8419 if trained again, from 9 trials; trained once\n" in said, said
    assert "To train it" not in said
    assert "budget" not in keys(data)


def test_conditional_parameters_are_not_measured_where_not_every_trial_has_them(report_on):
    trials = ordinary_trials(30)
    for trial in trials[::2]:
        trial.params = {**trial.params, "momentum": 0.5 + trial.number / 100}
    assert "never differ: `momentum`" in texts(report_on(trials))


def test_parameters_without_effect_are_said_first_in_the_page_and_in_the_result(report_on):
    trials = [a_trial(n, State.COMPLETE, PARAMS[n], 1 / 7) for n in range(6)]
    data = report_on(trials)
    warning = "PARAMETERS WITHOUT EFFECT: 6 trials with different values of "
    assert warning in texts(data)
    first, *_ = how_sure(data.result)
    assert first.startswith(warning)
    assert "learning_rate" in first
