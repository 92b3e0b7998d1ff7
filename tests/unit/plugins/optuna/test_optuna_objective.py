"""Objectives of Optuna, unchanged: on real workers, with a real database, by our driver."""

import warnings
from contextlib import closing
from pathlib import Path
from typing import Any

import optuna
import pytest
import yaml
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from hpsearch.api import open_study
from hpsearch.domain import events as ev
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import Outcome, Trial
from hpsearch.running.executors.worker import Worker
from hpsearch.running.loading import load
from hpsearch.running.study_run.workers import worker_config
from hpsearch.store.audit.invariants import violations
from hpsearch.store.store import Store
from support.files import pages
from support.studies.objectives import ObjectiveStudy
from trials.contract import TaskError

BY_RUN = """
import optuna

called = []

class Net: pass
class Tree: pass

def objective(trial):
    called.append(trial.number)
    kind = trial.suggest_categorical("kind", ["net", "tree"])
    if kind == "net":
        layers = trial.suggest_int("layers", 1, 3)
        width = sum(trial.suggest_int(f"width{i}", 4, 64, log=True) for i in range(layers))
        score = abs(width - 50) / 50
    else:
        depth = trial.suggest_int("depth", 1, 8)
        share = trial.suggest_float("share", 0.1 * depth / 8, 0.9)
        score = abs(share - 0.5) + depth / 100
    cls = trial.suggest_categorical("class", (Net, Tree))
    assert cls in (Net, Tree)
    assert trial.suggest_categorical("kind", ["net", "tree"]) == kind
    assert trial.params["kind"] == kind
    trial.set_user_attr("size", score * 2)
    for step in range(4):
        trial.report(score + 1 / (step + 1), step)
        if trial.should_prune():
            raise optuna.TrialPruned
    return score
"""


def params_of(study: ObjectiveStudy) -> list[dict[str, Any]]:
    return [trial.params for trial in study.history().trials]


@pytest.fixture(scope="module")
def driven(tmp_path_factory: pytest.TempPathFactory) -> ObjectiveStudy:
    """A study whose space is only known as it runs, driven to its end."""
    study = ObjectiveStudy(tmp_path_factory.mktemp("driven"), BY_RUN)
    study.drive()
    return study


def test_a_space_that_is_defined_by_running_is_searched_and_its_database_sound(driven):
    trials = driven.history().trials
    assert [trial.state for trial in trials] == [State.COMPLETE] * 8
    kinds = {trial.params["kind"] for trial in trials}
    assert kinds == {"net", "tree"}
    for trial in trials:
        assert trial.params.keys() == trial.distributions.keys()
        if trial.params["kind"] == "tree":
            depth = trial.params["depth"]
            assert trial.distributions["share"] == FloatDistribution(0.1 * depth / 8, 0.9)
        else:
            assert trial.distributions["width0"] == IntDistribution(4, 64, log=True)
    some = trials[0].distributions["class"]
    assert some == CategoricalDistribution(("Net", "Tree"))
    with closing(Store.open(driven.url)) as store, store.reading() as connection:
        assert violations(connection) == []


def test_steps_from_zero_are_units_of_the_budget_and_the_result_is_at_its_end(driven):
    for trial in driven.history().trials:
        assert sorted(trial.reports) == [1.0, 2.0, 3.0, 4.0]
        score = trial.user_attrs["size"] / 2
        assert trial.reports[1.0].metrics["score"] == pytest.approx(score + 1)
        assert trial.reports[4.0].metrics == {"score": score, "size": score * 2}
        assert trial.value == score


def test_the_parameters_are_read_like_those_of_a_study_file(driven):
    with open_study(driven.url, "objective") as study:
        frame = study.trials(where="kind = 'tree' and depth < 9 and size >= 0", sort="share")
        assert len(frame)
        assert frame["share"].is_monotonic_increasing
        assert study.best()["class"].notna().all()
        shown = study.optuna().trials
    assert [trial.params for trial in shown] == params_of(driven)


def test_the_same_study_draws_the_same_values(driven, tmp_path):
    again = ObjectiveStudy(tmp_path, BY_RUN)
    again.drive()
    assert params_of(again) == params_of(driven)


def test_a_value_that_was_recorded_and_not_sent_is_the_same_after_the_driver_died(driven, tmp_path):
    study = ObjectiveStudy(tmp_path, BY_RUN)
    first = study.drive(answers=8)
    trial, _, name = first.asked[-1]
    recorded = study.history().trials[trial].params
    assert name in recorded
    then = study.drive()
    assert (trial, name) not in {(trial, name) for trial, _, name in then.asked}
    assert study.history().trials[trial].params.items() >= recorded.items()
    assert params_of(study) == params_of(driven)


def test_several_workers_ask_at_the_same_time(tmp_path):
    study = ObjectiveStudy(tmp_path, BY_RUN)
    study.drive(workers=3)
    trials = study.history().trials
    assert [trial.state for trial in trials] == [State.COMPLETE] * 8
    assert all("class" in trial.params for trial in trials)


LANGUAGES = ("python", "yaml")

X = """
import optuna

def objective(trial):
    x = trial.suggest_float("x", 0.0, 1.0)
    y = trial.suggest_float("y", 0.0, 1.0)
    assert x != y
"""


def one(folder: Path, rest: str, **changes: Any) -> Trial:
    """The only trial of a study whose objective goes on like this."""
    budget = {"trials": 1, "per_trial": {"steps": 4}}
    lines = "".join(f"    {line}\n" for line in rest.splitlines())
    study = ObjectiveStudy(folder, X + lines, **{"budget": budget, **changes})
    study.drive()
    return study.history().trials[0]


def test_an_objective_that_only_returns_is_one_report_at_the_full_budget(tmp_path):
    trial = one(tmp_path, "return x")
    assert {at: report.value for at, report in trial.reports.items()} == {4.0: trial.params["x"]}


def test_a_trial_is_worth_what_its_objective_returns(tmp_path):
    trial = one(tmp_path, "for step in range(4):\n    trial.report(-step, step)\nreturn 3.0")
    assert [report.value for report in trial.reports.values()] == [0.0, -1.0, -2.0, 3.0]
    assert trial.value == 3.0


def test_a_name_keeps_its_choices_from_trial_to_trial(tmp_path):
    rest = "    trial.suggest_categorical('c', list(range(2 + trial.number)))\n    return x\n"
    budget = {"trials": 2, "per_trial": {"steps": 1}}
    study = ObjectiveStudy(tmp_path, X + rest, budget=budget)
    study.drive()
    first, second = study.history().trials
    assert first.state is State.COMPLETE
    assert "does not support dynamic value space; a name keeps its kind" in str(second.error_text)


def test_attributes_are_copies_and_not_all_are_metrics(tmp_path):
    rest = (
        "kept = [1]\ntrial.set_user_attr('kept', kept)\nkept.append(2)\n"
        "trial.set_user_attr('huge', 10**400)\ntrial.set_user_attr('text', '\\0')\nreturn x"
    )
    trial = one(tmp_path, rest)
    assert trial.user_attrs == {"kept": [1], "huge": 10**400, "text": "\\x00"}
    assert trial.reports[4.0].metrics.keys() == {"score"}


def test_an_objective_may_prune_itself(tmp_path):
    trial = one(tmp_path, 'trial.report(x, 1)\nraise optuna.TrialPruned("too wide")')
    assert trial.state is State.PRUNED
    assert trial.attempts[-1].outcome is Outcome.PRUNED
    assert list(trial.reports) == [1.0]


def test_an_objective_may_prune_itself_without_words(tmp_path):
    mute = "class Mute(optuna.TrialPruned):\n    def __str__(self):\n        raise SystemExit\n"
    trial = one(tmp_path, f"trial.report(x, 1)\n{mute}raise Mute")
    assert trial.state is State.PRUNED


def test_names_of_a_type_of_the_objectives_own_are_plain_text(tmp_path):
    own = "class Own(str):\n    def __str__(self):\n        return self\n"
    name = "trial.set_user_attr(Own('a'), 1)\ntrial.suggest_float(Own('z'), 0, 1)\nreturn x"
    trial = one(tmp_path, own + name)
    assert {type(each) for each in (*trial.user_attrs, *trial.params)} == {str}


@pytest.mark.parametrize(
    ("rest", "kind", "says"),
    [
        ("return None", "error", "is of the type NoneType, but must be a number"),
        ("return x, y", "error", "one number for each of: score"),
        ("return float('nan')", "diverged", "without a finite score"),
        ("trial.report(x, -1)", "error", "must not be negative"),
        ("trial.suggest_int('x', 0, 1)", "error", "different distribution kind"),
        ("trial.set_user_attr('a', object())", "error", "not JSON serializable"),
        ("trial.suggest_categorical('z', [object(), 1])", "error", "cannot be written down"),
        (
            "trial.suggest_categorical('z', [lambda: 1, lambda: 2])",
            "error",
            "cannot be written down",
        ),
        ("trial.suggest_float('z', 0, float('inf'))", "error", "or finite bounds"),
        ("trial.suggest_float(object(), 0, 1)", "error", "a name must be text"),
        ("trial.set_user_attr(7, 1)", "error", "a name must be text"),
        ("trial.set_constraint(None, 1)", "error", "a name must be text"),
    ],
)
def test_mistakes_of_an_objective_fail_its_trial(rest, kind, says, tmp_path):
    trial = one(tmp_path, rest)
    assert trial.state is State.FAILED
    assert trial.error_kind == kind
    assert says in str(trial.error_text)


@pytest.mark.parametrize(("steps", "named"), [(99, ["beyond_budget"]), (4, []), (2, [])])
def test_a_loop_ends_where_it_does_and_says_where_that_is_not_the_budget(tmp_path, steps, named):
    loop = f"for step in range({steps}):\n    trial.report(step, step)\nreturn -1"
    trial = one(tmp_path, loop)
    assert trial.state is State.COMPLETE
    assert trial.value == -1.0
    assert (trial.ended_at, trial.last) == (steps, -1.0)
    assert [finding.name for finding in trial.findings] == named


def test_several_values_are_several_objectives(tmp_path):
    objective = [
        {"metric": "score", "direction": "minimize"},
        {"metric": "size", "direction": "maximize"},
    ]
    rest = "trial.set_constraint('width', y)\nreturn x, y"
    trial = one(tmp_path, rest, objective=objective)
    params = trial.params
    assert trial.values == [params["x"], params["y"]]
    assert trial.violation == params["y"]


def test_the_study_file_may_fix_and_search_some_of_the_parameters(tmp_path):
    space = {"x": {"type": "float", "low": 0.25, "high": 0.26}}
    trial = one(tmp_path, "return x", space=space, settings={"y": 7}, search={"sampler": "random"})
    assert 0.25 <= trial.params["x"] <= 0.26
    assert trial.params.keys() == {"x"}


def test_what_is_asked_for_is_tried_first(tmp_path):
    trial = one(tmp_path, "return x", enqueue=[{"x": 0.125}])
    assert trial.params["x"] == 0.125
    assert 0 < trial.params["y"] < 1


def test_what_is_asked_for_out_of_range_fails(tmp_path):
    trial = one(tmp_path, "return x", enqueue=[{"x": 5}])
    assert "x=5 was asked for" in str(trial.error_text)


def test_a_sampler_that_needs_the_space_answers_no_question(tmp_path):
    space = {"x": {"type": "float", "low": 0.0, "high": 1.0}}
    trial = one(tmp_path, "return x", space=space, search={"sampler": "qmc"})
    assert "asks for 'y', which the space does not name" in str(trial.error_text)


@pytest.mark.parametrize(
    "sampler", ["random", "curve_gp", {"kind": "tpe", "multivariate": True}, "nsgaii"]
)
def test_samplers_draw_what_is_asked_for_also_together(sampler, tmp_path):
    budget = {"trials": 14, "per_trial": {"steps": 1}}
    search = {"sampler": sampler, "pruner": "none"}
    study = ObjectiveStudy(tmp_path, X + "    return x + y\n", budget=budget, search=search)
    study.drive()
    drawn = params_of(study)
    assert all(params.keys() == {"x", "y"} for params in drawn)
    assert len({params["x"] for params in drawn}) == 14
    if isinstance(sampler, dict):
        together = [
            trial.system_attrs["hpsearch:relative_params"] for trial in study.history().trials
        ]
        assert together[0] == {}
        assert together[-1] == drawn[-1]


def test_a_trial_that_waits_for_an_answer_can_be_stopped(tmp_path):
    rest = "    return x\n"
    study = ObjectiveStudy(tmp_path, X + rest)
    worker = Worker(worker_config(study.spec, tmp_path / "checkpoints"), fetch=lambda data: data)
    worker.launch(ev.Launch(0, 1, "w0", {}, seed=1, until=4.0), None)
    heard: list[Any] = []
    while not any(isinstance(event, ev.Queried) for event in heard):
        heard += worker.poll(1.0)
    worker.advance(ev.Advance(0, 1, 4.0, {"other": 1}))  # not what it waits for
    worker.advance(ev.Advance(0, 1, 4.0, {"x": 0.5}))
    while [event.name for event in heard if isinstance(event, ev.Queried)] != ["x", "y"]:
        heard += worker.poll(1.0)
    worker.stop(ev.Stop(0, 1, save=True))
    while not isinstance(heard[-1], ev.Stopped):
        heard += worker.poll(1.0)
    assert heard[-1].checkpoint is None
    # Its slot is free for the next one.
    worker.launch(ev.Launch(1, 1, "w0", {"x": 0.1, "y": 0.2}, seed=1, until=4.0), None)
    while not isinstance(heard[-1], ev.Finished):
        heard += worker.poll(1.0)
    assert [event.trial for event in heard if isinstance(event, ev.Reported)] == [1]


PAUSING = """
import time

caught, began = [], []

def objective(trial):
    x = trial.suggest_float("x", 0.0, 1.0)
    began.append((trial.number, x))
    try:
        for step in range(9):
            try:
                trial.report(x + 1 / (step + 1), step)
            except Exception as error:
                caught.append(error)
                return 0.0
            assert not trial.should_prune()
    finally:
        pass
    return x
"""


def test_a_paused_objective_starts_afresh_with_the_same_values(tmp_path):
    budget = {"trials": 9, "per_trial": {"steps": 9}}
    search = {"sampler": "random", "pruner": {"kind": "promotion", "pause": True}}
    study = ObjectiveStudy(tmp_path, PAUSING, budget=budget, search=search)
    study.drive()
    trials = study.history().trials
    assert study.state()["caught"] == []
    assert {trial.state for trial in trials} >= {State.COMPLETE, State.PRUNED}
    promoted = [trial for trial in trials if len(trial.attempts) > 1]
    assert promoted
    for trial in promoted:
        values = {x for number, x in study.state()["began"] if number == trial.number}
        assert values == {trial.params["x"]}
        assert trial.gpu_seconds == pytest.approx(sum(each.gpu_seconds for each in trial.attempts))


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("class objective: pass", "objective is a class"),
        ("objective = 3", "objective is not an objective"),
        ("def objective(): pass", "cannot be called with a trial alone"),
        ("def objective(params, trial): pass", "cannot be called with a trial alone"),
        ("def other(trial): pass", "has no function 'objective'"),
    ],
)
def test_what_is_no_objective_is_refused(code, says, tmp_path):
    module = f"no_objective_{abs(hash(code))}"
    (tmp_path / f"{module}.py").write_text(code)
    with pytest.raises(TaskError, match=says):
        _ = load({"kind": f"{module}:objective", "library": "optuna"}, tmp_path).function


UNGUARDED = """
import optuna

def objective(trial):
    return 0.0

optuna.create_study().optimize(objective, n_trials=1)
raise AssertionError("a worker imported what follows the search")
"""


def test_a_script_without_a_guard_is_imported_up_to_its_search(tmp_path):
    (tmp_path / "unguarded_search.py").write_text(UNGUARDED)
    _ = load({"kind": "unguarded_search:objective", "library": "optuna"}, tmp_path).function


def test_the_page_shows_an_objective_that_runs(tmp_path):
    code, text = (pages.texts("optuna", language)[0] for language in LANGUAGES)
    shown = yaml.safe_load(text)
    assert shown.pop("task") == {"kind": "my_search:objective", "library": "optuna"}
    study = ObjectiveStudy(tmp_path, code, **{**shown, "study": "objective", "search": {}})
    study.drive()
    trials = study.history().trials
    assert len(trials) == 30
    assert {trial.state for trial in trials} == {State.COMPLETE, State.PRUNED}


def test_optuna_itself_runs_the_same_objective(tmp_path):
    scope: dict[str, Any] = {}
    exec(BY_RUN, scope)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of classes as choices
        study.optimize(scope["objective"], n_trials=4)
    assert len(study.trials) == 4
