"""Optuna's own tools on our studies: optimize, plots, the dashboard, pruners; and the studies that
a driver owns."""

from __future__ import annotations

import io
import json
import pickle
import threading
import time
from collections.abc import Iterator
from typing import Any

import optuna
import pytest
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution
from optuna.exceptions import UpdateFinishedTrialError
from optuna.trial import TrialState

from hpsearch.bridges.optuna.storage import StudyStorage
from hpsearch.domain.history import History
from hpsearch.domain.lifecycle import MOVES, State
from hpsearch.domain.records import ReportRecord, StudyRecord, Trial
from hpsearch.errors import StudyHeld
from hpsearch.optuna_storage.view import HistoryStorage
from hpsearch.store.store import Store

SPACE: dict[str, BaseDistribution] = {"x": FloatDistribution(-1.0, 1.0)}


@pytest.fixture
def store(database_url: str) -> Iterator[Store]:
    opened = Store.open(database_url)
    yield opened
    opened.close()


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    yield
    optuna.logging.set_verbosity(before)


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


def optimized(store: Store, trials: int = 12) -> optuna.Study:
    study = optuna.create_study(
        study_name="by-optuna",
        storage=StudyStorage(store),
        sampler=optuna.samplers.TPESampler(seed=7, n_startup_trials=4),
        pruner=optuna.pruners.MedianPruner(n_startup_trials=3),
    )
    study.optimize(objective, n_trials=trials)
    return study


def driven(store: Store, trials: int = 1) -> History:
    """A study with running trials, as a driver makes it."""
    history = History(
        store.create_study(StudyRecord(id=0, name="driven", spec="study: driven", created=1.0))
    )
    for number in range(trials):
        history.add_trial(
            Trial(number, State.RUNNING, {"x": number / trials}, distributions=SPACE, started=2.0)
        )
    return history


def test_optuna_optimizes_in_our_database(store: Store, database_url: str) -> None:
    study = optimized(store)
    elsewhere = optuna.load_study(
        study_name="by-optuna", storage=StudyStorage(Store.open(database_url))
    )
    assert len(elsewhere.trials) == 12
    assert {trial.state for trial in elsewhere.trials} == {TrialState.COMPLETE, TrialState.PRUNED}
    assert elsewhere.trials == study.trials
    assert elsewhere.best_trial == study.best_trial
    history = store.load("by-optuna")
    assert history.trials[study.best_trial.number].value == study.best_value
    assert history.trials[0].reports[1.0].value == study.trials[0].intermediate_values[1]


def test_it_optimizes_the_same_as_in_optunas_own_memory(store: Store) -> None:
    ours = optimized(store)
    theirs = optuna.create_study(
        sampler=optuna.samplers.TPESampler(seed=7, n_startup_trials=4),
        pruner=optuna.pruners.MedianPruner(n_startup_trials=3),
    )
    theirs.optimize(objective, n_trials=12)
    assert [t.params for t in ours.trials] == [t.params for t in theirs.trials]
    assert [t.state for t in ours.trials] == [t.state for t in theirs.trials]


def test_several_objectives(store: Store) -> None:
    study = optuna.create_study(directions=["minimize", "maximize"], storage=StudyStorage(store))
    study.optimize(lambda trial: (x := trial.suggest_float("x", 0, 1), 1 - x), n_trials=5)
    reloaded = optuna.load_study(study_name=None, storage=StudyStorage(store))
    assert [trial.values for trial in reloaded.trials] == [trial.values for trial in study.trials]
    assert len(reloaded.best_trials) >= 1
    assert store.load(study.study_name).trials[0].values == study.trials[0].values


def test_an_enqueued_trial_is_taken_by_one_of_two_processes_only(
    store: Store, database_url: str
) -> None:
    one = optuna.create_study(study_name="shared", storage=StudyStorage(store))
    two = optuna.load_study(study_name="shared", storage=StudyStorage(Store.open(database_url)))
    one.enqueue_trial({"x": 0.25})
    taken = two.ask()
    other = one.ask()
    assert taken.number == 0
    assert taken.suggest_float("x", 0, 1) == 0.25
    assert other.number == 1


def test_processes_share_a_study_without_gaps_or_losses(store: Store, database_url: str) -> None:
    optuna.create_study(study_name="shared", storage=StudyStorage(store))

    def work() -> None:
        study = optuna.load_study(
            study_name="shared",
            storage=StudyStorage(Store.open(database_url)),
            sampler=optuna.samplers.RandomSampler(seed=1),
        )
        study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=8)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    trials = store.load("shared").trials
    assert [trial.number for trial in trials] == list(range(24))
    assert all(
        trial.state is State.COMPLETE and trial.value == trial.params["x"] for trial in trials
    )


def test_the_plots_of_optuna_draw_a_stored_study(store: Store) -> None:
    optimized(store)
    study = optuna.load_study(study_name="by-optuna", storage=StudyStorage(store))
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


def test_the_dashboard_of_optuna_serves_a_stored_study(store: Store) -> None:
    from optuna_dashboard import wsgi

    study = optimized(store)
    app = wsgi(StudyStorage(store))
    (summary,) = get(app, "/api/studies")["study_summaries"]
    assert summary["study_name"] == "by-optuna"
    detail = get(app, f"/api/studies/{study._study_id}")
    assert [trial["number"] for trial in detail["trials"]] == list(range(12))
    assert [trial["state"] for trial in detail["trials"]] == [
        {TrialState.COMPLETE: "Complete", TrialState.PRUNED: "Pruned"}[trial.state]
        for trial in study.trials
    ]


# ----------------------------------------------------------------------------------------- studies
# with a driver


def test_a_paused_trial_reads_as_pruned_at_its_rung_and_then_continues(store: Store) -> None:
    history = driven(store)
    storage = HistoryStorage(history, time.time)
    study = optuna.load_study(study_name="driven", storage=storage)
    trial = history.trials[0]
    history.add_report(
        ReportRecord(trial=0, resource=3.0, value=0.5, metrics={"loss": 0.5}, created=1753900000.0)
    )
    trial.state, trial.value = MOVES.move(trial.state, State.PAUSED), 0.5
    history.touch(trial)
    (paused,) = study.trials
    assert (paused.state, paused.value, paused.last_step) == (TrialState.PRUNED, 0.5, 3)
    assert paused.datetime_complete is not None
    with pytest.raises(UpdateFinishedTrialError):
        storage.set_trial_user_attr(paused._trial_id, "key", 1)

    trial.state = MOVES.move(trial.state, State.RUNNING)
    history.touch(trial)
    (running,) = study.trials
    assert (running.state, running.value, running.datetime_complete) == (
        TrialState.RUNNING,
        None,
        None,
    )
    assert paused.state == TrialState.PRUNED


def test_a_history_is_read_without_the_database(store: Store) -> None:
    history = driven(store, trials=3)
    storage = HistoryStorage(history, time.time)
    study = optuna.load_study(study_name="driven", storage=storage)
    store.delete_study(history.study.id)
    assert len(study.trials) == 3
    assert study.study_name == "driven"


def test_what_a_sampler_notes_on_a_history_is_written_with_the_drivers_tick(
    store: Store, database_url: str
) -> None:
    history = driven(store)
    lease = store.acquire(history.study.id, "driver", ttl_s=4e9)
    store.commit(history.study.id, history.drain(), lease)
    storage = HistoryStorage(history, time.time)
    an_id = storage.get_trial_id_from_study_id_trial_number(history.study.id, 0)
    storage.set_trial_system_attr(an_id, "sampler:note", (1, 2))
    storage.set_trial_param(an_id, "y", 0.5, FloatDistribution(0, 1))
    storage.set_study_system_attr(history.study.id, "design", {"seed": 3})
    reader = StudyStorage(Store.open(database_url))
    assert reader.get_trial(an_id).system_attrs == {}
    store.commit(history.study.id, history.drain(), lease)
    assert reader.get_trial(an_id) == storage.get_trial(an_id)
    assert reader.get_trial(an_id).system_attrs == {"sampler:note": [1, 2]}
    assert reader.get_trial(an_id).params == {"x": 0.0, "y": 0.5}
    assert reader.get_study_system_attrs(history.study.id) == {"design": {"seed": 3}}


def test_a_reader_follows_a_driver(store: Store, database_url: str) -> None:
    history = driven(store, trials=2)
    store.commit(history.study.id, history.drain())
    study = optuna.load_study(study_name="driven", storage=StudyStorage(Store.open(database_url)))
    first, second = study.get_trials(deepcopy=False)
    history.add_report(ReportRecord(trial=1, resource=1.0, value=None, metrics={}))
    store.commit(history.study.id, history.drain())
    first_again, second_again = study.get_trials(deepcopy=False)
    assert first_again is first
    assert second.intermediate_values == {}
    assert list(second_again.intermediate_values) == [1]


def test_a_study_that_is_driven_elsewhere_can_be_read_but_not_written(
    store: Store, database_url: str
) -> None:
    history = driven(store)
    lease = store.acquire(history.study.id, "host-1:17", ttl_s=4e9)
    store.commit(history.study.id, history.drain(), lease)
    study = optuna.load_study(study_name="driven", storage=StudyStorage(Store.open(database_url)))
    with pytest.raises(StudyHeld, match="host-1:17"):
        study.ask()
    with pytest.raises(StudyHeld, match="host-1:17"):
        optuna.delete_study(study_name="driven", storage=StudyStorage(store))
    assert len(study.trials) == 1


def test_a_trial_that_ended_without_a_value_reads_as_failed(store: Store) -> None:
    history = driven(store, trials=2)
    for trial, state in zip(history.trials, (State.COMPLETE, State.FAILED), strict=True):
        trial.state, trial.ended = state, 3.0
        trial.value = 0.5 if state is State.FAILED else None
        history.touch(trial)
    store.commit(history.study.id, history.drain())
    study = optuna.load_study(study_name="driven", storage=StudyStorage(store))
    assert [(trial.state, trial.value) for trial in study.trials] == [(TrialState.FAIL, None)] * 2


def test_fractions_of_a_resource_become_whole_steps(store: Store) -> None:
    history = driven(store)
    history.study.step_scale = 1000
    history.touch_study()
    for resource in (0.333, 1.0, 2.5):
        history.add_report(ReportRecord(trial=0, resource=resource, value=resource, metrics={}))
    store.commit(history.study.id, history.drain())
    storage = StudyStorage(store)
    study = optuna.load_study(study_name="driven", storage=storage)
    assert study.trials[0].intermediate_values == {333: 0.333, 1000: 1.0, 2500: 2.5}
    storage.set_trial_intermediate_value(study.trials[0]._trial_id, 3000, 0.1)
    assert store.load("driven").trials[0].reports[3.0].value == 0.1


def test_a_study_is_written_after_a_value_that_cannot_be_stored(store: Store) -> None:
    study = optuna.create_study(storage=StudyStorage(store))
    trial = study.ask()
    with pytest.raises(TypeError, match="not a JSON value"):
        trial.set_user_attr("key", object())
    with pytest.warns(UserWarning, match="persistent storage"):
        odd = CategoricalDistribution([object()])  # type: ignore[list-item]
    with pytest.raises(TypeError, match="JSON"):
        study._storage.set_trial_param(trial._trial_id, "odd", 0, odd)
    study.tell(trial, 1.0)
    assert study.trials[0].user_attrs == {}
    assert study.trials[0].params == {}
    assert study.best_value == 1.0


def test_a_pickled_storage_reads_the_same_study(store: Store) -> None:
    study = optimized(store, trials=3)
    assert pickle.loads(pickle.dumps(study)).trials == study.trials
