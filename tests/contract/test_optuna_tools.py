"""Optuna's own tools on our studies: plots, the dashboard, pruners; and the studies that a driver
owns."""

import io
import json
from typing import Any

import optuna
import pytest
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution
from optuna.exceptions import UpdateFinishedTrialError
from optuna.trial import FrozenTrial, TrialState

from hpsearch.domain.history import History
from hpsearch.domain.lifecycle import MOVES, State
from hpsearch.domain.records import ReportRecord, StudyRecord, Trial
from hpsearch.store.optuna_storage.view import FROM_OPTUNA, HistoryStorage
from hpsearch.store.store import Store

pytestmark = pytest.mark.usefixtures("quiet_optuna")

SPACE: dict[str, BaseDistribution] = {"x": FloatDistribution(-1.0, 1.0)}


def objective(trial: optuna.Trial) -> float:
    x = trial.suggest_float("x", -1.0, 1.0)
    rate = trial.suggest_float("rate", 1e-5, 1e-1, log=True)
    layers = trial.suggest_int("layers", 1, 4)
    kind = trial.suggest_categorical("kind", ["adam", "sgd"])
    value = x**2 + rate + 0.01 * layers + (0.1 if kind == "sgd" else 0.0)
    for step in range(1, 4):
        trial.report(value / step, step)
        if trial.should_prune():
            raise optuna.TrialPruned
    return value


def optimized() -> optuna.Study:
    """A study in Optuna's own memory."""
    study = optuna.create_study(
        sampler=optuna.samplers.TPESampler(seed=7, n_startup_trials=4),
        pruner=optuna.pruners.MedianPruner(n_startup_trials=3),
    )
    study.optimize(objective, n_trials=12)
    return study


def stored(store: Store, theirs: optuna.Study) -> optuna.Study:
    """The same study in our database, as Optuna's tools read it."""
    record = StudyRecord(0, "by-optuna", "study: by-optuna", created=1.0)
    history = History(store.create_study(record))
    for trial in theirs.trials:
        add(history, trial)
    store.commit(history.study.id, history.drain())
    storage = HistoryStorage(store.load("by-optuna"))
    return optuna.load_study(study_name="by-optuna", storage=storage)


def add(history: History, theirs: FrozenTrial) -> None:
    assert theirs.datetime_start is not None
    assert theirs.datetime_complete is not None
    trial = Trial(
        theirs.number,
        FROM_OPTUNA[theirs.state],
        theirs.params,
        value=theirs.value,
        distributions=theirs.distributions,
        started=theirs.datetime_start.timestamp(),
        ended=theirs.datetime_complete.timestamp(),
    )
    for step, value in theirs.intermediate_values.items():
        trial.reports[float(step)] = ReportRecord(trial.number, float(step), value, {})
    history.add_trial(trial)


def driven(store: Store, trials: int = 1) -> History:
    """A study with running trials, as a driver makes it."""
    history = History(store.create_study(StudyRecord(0, "driven", "study: driven", created=1.0)))
    for number in range(trials):
        history.add_trial(
            Trial(number, State.RUNNING, {"x": number / trials}, distributions=SPACE, started=2.0)
        )
    return history


def test_a_stored_study_reads_as_in_optunas_own_memory(store):
    theirs = optimized()
    ours = stored(store, theirs)
    assert {trial.state for trial in ours.trials} == {TrialState.COMPLETE, TrialState.PRUNED}
    for mine, other in zip(ours.trials, theirs.trials, strict=True):
        assert (mine.number, mine.state, mine.values) == (other.number, other.state, other.values)
        assert (mine.params, mine.distributions) == (other.params, other.distributions)
        assert mine.intermediate_values == other.intermediate_values
        assert mine.datetime_start == other.datetime_start
        assert mine.datetime_complete == other.datetime_complete
    assert ours.best_trial.number == theirs.best_trial.number


def test_several_objectives(store):
    record = StudyRecord(0, "several", "study: several", directions=("minimize", "maximize"))
    history = History(store.create_study(record))
    for number in range(3):
        values = [number / 4, number / 2]
        history.add_trial(Trial(number, State.COMPLETE, {}, value=values[0], values=values))
    study = optuna.load_study(study_name="several", storage=HistoryStorage(history))
    assert [trial.values for trial in study.trials] == [[0.0, 0.0], [0.25, 0.5], [0.5, 1.0]]
    assert len(study.best_trials) == 3


def test_a_study_of_ours_is_drawn_by_optunas_plots_and_not_changed_through_it(store):
    study = stored(store, optimized())
    with pytest.raises(NotImplementedError, match="only its own search changes"):
        study.ask()
    with pytest.raises(NotImplementedError, match="only its own search changes"):
        study.set_user_attr("key", 1)
    assert len(study.trials) == 12
    complete = [trial.value for trial in study.get_trials(states=(TrialState.COMPLETE,))]
    history = optuna.visualization.plot_optimization_history(study)
    assert list(history.data[0].y) == complete
    assert len(optuna.visualization.plot_intermediate_values(study).data) == 12
    assert optuna.visualization.plot_parallel_coordinate(study).data
    assert set(optuna.visualization.plot_param_importances(study).data[0].y) == {
        "x",
        "rate",
        "layers",
        "kind",
    }
    for plot in (
        optuna.visualization.plot_slice,
        optuna.visualization.plot_contour,
        optuna.visualization.plot_edf,
        optuna.visualization.plot_rank,
        optuna.visualization.plot_timeline,
    ):
        assert plot(study).data


def get(app: Any, path: str) -> Any:
    """The JSON that a WSGI application answers to a GET request."""
    status: list[str] = []
    environ = {
        "REQUEST_METHOD": "GET",
        "PATH_INFO": path,
        "QUERY_STRING": "",
        "SERVER_NAME": "localhost",
        "SERVER_PORT": "80",
        "wsgi.input": io.BytesIO(),
        "wsgi.errors": io.StringIO(),
        "wsgi.url_scheme": "http",
    }
    body = b"".join(app(environ, lambda code, headers, error=None: status.append(code)))
    assert status == ["200 OK"], body
    return json.loads(body)


def test_the_dashboard_of_optuna_serves_a_stored_study(store):
    from optuna_dashboard import wsgi

    study = stored(store, optimized())
    app = wsgi(study._storage)
    (summary,) = get(app, "/api/studies")["study_summaries"]
    assert summary["study_name"] == "by-optuna"
    detail = get(app, f"/api/studies/{study._study_id}")
    assert [trial["number"] for trial in detail["trials"]] == list(range(12))
    assert [trial["state"] for trial in detail["trials"]] == [
        {TrialState.COMPLETE: "Complete", TrialState.PRUNED: "Pruned"}[trial.state]
        for trial in study.trials
    ]


def test_a_paused_trial_reads_as_pruned_at_its_rung_and_then_continues(store):
    history = driven(store)
    storage = HistoryStorage(history)
    study = optuna.load_study(study_name="driven", storage=storage)
    trial = history.trials[0]
    history.add_report(ReportRecord(0, 3.0, 0.5, {"loss": 0.5}, created=1753900000.0))
    trial.state, trial.value = MOVES.move(trial.state, State.PAUSED), 0.5
    history.touch(trial)
    (paused,) = study.trials
    assert (paused.state, paused.value, paused.last_step) == (TrialState.PRUNED, 0.5, 3)
    assert paused.datetime_complete is not None
    with pytest.raises(UpdateFinishedTrialError):
        storage.set_trial_system_attr(paused._trial_id, "key", 1)

    trial.state = MOVES.move(trial.state, State.RUNNING)
    history.touch(trial)
    (running,) = study.trials
    assert (running.state, running.value, running.datetime_complete) == (
        TrialState.RUNNING,
        None,
        None,
    )
    assert paused.state == TrialState.PRUNED


def test_a_trial_is_frozen_again_only_when_it_has_changed_and_read_without_the_database(store):
    history = driven(store, trials=3)
    storage = HistoryStorage(history)
    study = optuna.load_study(study_name="driven", storage=storage)
    store.delete_study(history.study.id)
    assert len(study.trials) == 3
    assert study.study_name == "driven"
    history = driven(store, trials=2)
    study = optuna.load_study(study_name="driven", storage=HistoryStorage(history))
    first, second = study.get_trials(deepcopy=False)
    history.add_report(ReportRecord(1, 1.0, None, {}))
    first_again, second_again = study.get_trials(deepcopy=False)
    assert first_again is first
    assert second.intermediate_values == {}
    assert list(second_again.intermediate_values) == [1]


def test_what_a_sampler_notes_on_a_history_is_written_with_the_drivers_tick(store):
    history = driven(store)
    lease = store.acquire(history.study.id, "driver", ttl_s=4e9)
    store.commit(history.study.id, history.drain(), lease)
    storage = HistoryStorage(history)
    an_id = storage.get_trial_id_from_study_id_trial_number(history.study.id, 0)
    storage.set_trial_system_attr(an_id, "sampler:note", (1, 2))
    storage.set_trial_param(an_id, "y", 0.5, FloatDistribution(0, 1))
    storage.set_study_system_attr(history.study.id, "design", {"seed": 3})
    assert read(store, "driven").get_trial(an_id).system_attrs == {}
    store.commit(history.study.id, history.drain(), lease)
    reader = read(store, "driven")
    assert reader.get_trial(an_id) == storage.get_trial(an_id)
    assert reader.get_trial(an_id).system_attrs == {"sampler:note": [1, 2]}
    assert reader.get_trial(an_id).params == {"x": 0.0, "y": 0.5}
    assert reader.get_study_system_attrs(history.study.id) == {"design": {"seed": 3}}


def read(store: Store, name: str) -> HistoryStorage:
    return HistoryStorage(store.load(name))


def test_a_trial_that_ended_without_a_value_reads_as_failed(store):
    history = driven(store, trials=2)
    for trial, state in zip(history.trials, (State.COMPLETE, State.FAILED), strict=True):
        trial.state, trial.ended = state, 3.0
        trial.value = 0.5 if state is State.FAILED else None
        history.touch(trial)
    study = optuna.load_study(study_name="driven", storage=HistoryStorage(history))
    assert [(trial.state, trial.value) for trial in study.trials] == [(TrialState.FAIL, None)] * 2


def test_fractions_of_a_resource_become_whole_steps(store):
    history = driven(store)
    history.study.step_scale = 1000
    history.touch_study()
    for resource in (0.333, 1.0, 2.5):
        history.add_report(ReportRecord(0, resource, resource, {}))
    study = optuna.load_study(study_name="driven", storage=HistoryStorage(history))
    assert study.trials[0].intermediate_values == {333: 0.333, 1000: 1.0, 2500: 2.5}


def test_a_value_that_cannot_be_stored_is_refused_at_once(store):
    history = driven(store)
    storage = HistoryStorage(history)
    an_id = storage.get_trial_id_from_study_id_trial_number(history.study.id, 0)
    with pytest.raises(TypeError, match="not a JSON value"):
        storage.set_trial_system_attr(an_id, "key", object())
    with pytest.warns(UserWarning, match="persistent storage"):
        odd = CategoricalDistribution([object()])  # type: ignore[list-item]
    with pytest.raises(TypeError, match="JSON"):
        storage.set_trial_param(an_id, "odd", 0, odd)
    assert storage.get_trial(an_id).system_attrs == {}
    assert storage.get_trial(an_id).params == {"x": 0.0}
