"""A copy of a study in a stock Optuna storage: what Optuna, its command line and its dashboard read
there."""

import json
import sys
import warnings
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any

import optuna
import pytest
import yaml
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution
from optuna.storages import RDBStorage
from optuna.trial import TrialState

from contract.test_optuna_tools import get
from hpsearch.cli.options import StudyExport
from hpsearch.cli.output import What
from hpsearch.cli.results.export import export_study
from hpsearch.domain.facts import ErrorKind, Role
from hpsearch.domain.history import History
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import Attempt, Outcome, ReportRecord, StudyRecord, Trial
from hpsearch.errors import StoreUnreachable, StudyExists, UserError
from hpsearch.plugins.optuna.storages import OURS, UNPOOLED
from hpsearch.plugins.optuna.storages import write as write_trials
from hpsearch.store.store import Store
from support.running.programs import run_program

pytestmark = pytest.mark.usefixtures("quiet_optuna")

X = FloatDistribution(0.0, 1.0)
KIND = CategoricalDistribution(("a", "b"))
FILE = yaml.safe_dump({"objective": {"metric": "accuracy", "direction": "maximize"}})


def trial(number: int, state: State, **more: Any) -> Trial:
    distributions: dict[str, BaseDistribution] = {"x": X}
    params: dict[str, Any] = {"x": number / 10}
    if number % 2:
        params["kind"], distributions["kind"] = "b", KIND
    made = Trial(number, state, params, distributions=distributions, created=1000.0 + number)
    for name, value in more.items():
        setattr(made, name, value)
    return made


def a_study(name: str = "copied", *, several: bool = False) -> History:
    """A study with a trial in each state."""
    directions = ("maximize", "minimize") if several else ("maximize",)
    study = StudyRecord(3, name, "" if several else FILE, directions, uid=f"uid of {name}")
    study.user_attrs = {"team": "vision"}
    history = History(study)
    values = [0.9, 0.2] if several else None
    trials = [
        trial(0, State.COMPLETE, value=0.9, values=values, seed=7, started=1001.0, ended=1009.0),
        trial(1, State.PAUSED, value=0.4, values=values, started=1002.0),
        trial(2, State.PRUNED),
        trial(3, State.FAILED, started=1003.0, ended=1004.0, error_kind=ErrorKind.DIVERGED),
        trial(4, State.RUNNING, started=1005.0),
        trial(5, State.QUEUED),
        trial(6, State.COMPLETE, value=0.8, values=values, started=1006.0, ended=1007.0),
    ]
    trials[6].role, trials[6].repeats = Role.CONFIRM, 0
    trials[0].user_attrs = {"note": "wide"}
    trials[0].system_attrs = {"constraints:latency": -0.5, f"{OURS}relative_params": {"x": 1}}
    for each in trials:
        history.add_trial(each)
    for at, value in ((1.0, 0.5), (3.0, 0.9)):
        history.add_report(ReportRecord(0, at, value, {"accuracy": value}))
    history.add_report(ReportRecord(1, 1.0, None, {"accuracy": float("nan")}, created=1004.0))
    history.add_attempt(Attempt(0, 1, "w0", 1001.0, ended=1009.0, outcome=Outcome.COMPLETE))
    trials[0].gpu_seconds = 8.0
    return history


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A stock storage with a copy of the study in it."""
    url = f"sqlite:///{tmp_path_factory.mktemp('copy') / 'optuna.db'}"
    write(a_study(), url, replace=False)
    return url


def write(history: History, to: str, *, replace: bool) -> None:
    """Copy a whole study into an Optuna storage."""
    write_trials(history.study, history.trials, to, replace=replace)


def loaded(url: str, name: str = "copied") -> optuna.Study:
    return optuna.load_study(study_name=name, storage=RDBStorage(url, UNPOOLED))


def test_optuna_its_command_line_and_its_dashboard_read_all_trials(url):
    states = [each.state for each in loaded(url).trials]
    assert states == [
        *(TrialState.COMPLETE, TrialState.PRUNED, TrialState.PRUNED, TrialState.FAIL),
        *(TrialState.RUNNING, TrialState.WAITING, TrialState.COMPLETE),
    ]
    program = Path(sys.executable).with_name("optuna")
    command = [str(program), "best-trial", "--study-name", "copied"]
    answer = run_program([*command, "--storage", url, "-f", "json"], check=True)
    assert json.loads(answer.stdout)["number"] == 0
    dashboard = pytest.importorskip("optuna_dashboard")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        app = dashboard.wsgi(RDBStorage(url, UNPOOLED))
    assert get(app, "/api/studies")["study_summaries"][0]["study_name"] == "copied"
    detail = get(app, "/api/studies/1")
    assert [each["number"] for each in detail["trials"]] == list(range(7))


def test_parameters_values_curves_dates_and_constraints_are_there_and_attributes_tell_the_rest(url):
    study = loaded(url)
    first, second = study.trials[:2]
    assert study.best_trial.number == 0
    assert (first.params, first.distributions) == ({"x": 0.0}, {"x": X})
    assert (second.params, second.distributions) == (
        {"x": 0.1, "kind": "b"},
        {"x": X, "kind": KIND},
    )
    assert first.value == 0.9
    assert first.intermediate_values == {1: 0.5, 3: 0.9}
    assert str(second.intermediate_values) == "{1: nan}"
    assert first.datetime_start == datetime.fromtimestamp(1001.0)
    assert first.datetime_complete == datetime.fromtimestamp(1009.0)
    assert first.constraints == {"latency": -0.5}
    assert study.user_attrs["team"] == "vision"
    assert yaml.safe_load(study.user_attrs["hpsearch:study_file"])["objective"]
    assert study.metric_names == ["accuracy"]
    assert study.trials[0].user_attrs == {
        "note": "wide",
        "hpsearch:state": "complete",
        "hpsearch:role": "search",
        "hpsearch:seed": 7,
        "hpsearch:gpu_seconds": 8.0,
        "hpsearch:attempts": 1,
    }
    assert f"{OURS}relative_params" not in study.trials[0].system_attrs
    assert study.trials[1].user_attrs["hpsearch:state"] == "paused"
    assert study.trials[3].user_attrs["hpsearch:error"].startswith("diverged")
    assert study.trials[6].user_attrs["hpsearch:repeats"] == 0


def test_optuna_goes_on_with_the_copy(tmp_path):
    url = f"sqlite:///{tmp_path / 'optuna.db'}"
    write(a_study(), url, replace=False)
    study = loaded(url)
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=2)
    assert [each.state for each in study.trials[5:]] == [TrialState.COMPLETE] * 3


def test_several_objectives_keep_their_directions(tmp_path):
    url = f"sqlite:///{tmp_path / 'optuna.db'}"
    write(a_study(several=True), url, replace=False)
    study = loaded(url)
    assert [direction.name for direction in study.directions] == ["MAXIMIZE", "MINIMIZE"]
    assert study.trials[0].values == [0.9, 0.2]
    assert {each.number for each in study.best_trials} == {0, 6}


def test_a_copy_is_replaced_only_on_request_and_never_doubled(tmp_path):
    url = f"sqlite:///{tmp_path / 'optuna.db'}"
    history = a_study()
    write(history, url, replace=False)
    with pytest.raises(StudyExists, match="already has a copy of the study copied"):
        write(history, url, replace=False)
    history.add_trial(trial(7, State.QUEUED))
    write(history, url, replace=True)
    assert len(loaded(url).trials) == 8
    write(a_study("other"), url, replace=False)
    assert sorted(optuna.get_all_study_names(RDBStorage(url, UNPOOLED))) == ["copied", "other"]


def test_a_study_of_somebody_else_is_never_replaced(tmp_path):
    url = f"sqlite:///{tmp_path / 'optuna.db'}"
    optuna.create_study(study_name="copied", storage=RDBStorage(url, UNPOOLED))
    with pytest.raises(StudyExists, match="which is not a copy of this one"):
        write(a_study(), url, replace=True)


def test_places_that_cannot_be_an_optuna_storage_are_refused(tmp_path):
    ours = f"sqlite:///{tmp_path / 'hpsearch.db'}"
    Store.open(ours).close()
    with pytest.raises(UserError, match="is a database of hpsearch"):
        write(a_study(), ours, replace=False)
    with pytest.raises(UserError, match="in memory"):
        write(a_study(), "sqlite://", replace=False)
    with pytest.raises(StoreUnreachable, match="cannot be used as an Optuna storage"):
        write(a_study(), f"sqlite:///{tmp_path / 'no' / 'folder.db'}", replace=False)
    file = tmp_path / "text.db"
    file.write_text("this is not a database, but a text that is long enough to be read as one" * 99)
    with pytest.raises(StoreUnreachable, match="cannot be used as an Optuna storage"):
        write(a_study(), f"sqlite:///{file}", replace=False)


def test_postgresql_takes_a_copy_as_well(postgresql_url):
    write(a_study(), postgresql_url, replace=False)
    assert len(loaded(postgresql_url.replace("postgresql:", "postgresql+psycopg:")).trials) == 7


def test_the_command_says_what_it_wrote_and_what_excludes_what(tmp_path, capsys):
    ours, url = f"sqlite:///{tmp_path / 'ours.db'}", f"sqlite:///{tmp_path / 'optuna.db'}"
    with closing(Store.open(ours)) as store:
        store.create_study(StudyRecord(0, "empty", FILE, ("maximize",), uid="u"))
    export_study(StudyExport("empty", url, storage=ours))
    assert f"wrote 0 trials of empty to {url}" in capsys.readouterr().err
    assert loaded(url, "empty").trials == []
    for to, what, hint in (
        (url, What.REPORTS, "--what is for files"),
        ("trials.txt", What.TRIALS, "exports are .csv or .parquet files"),
        ("neptune", What.TRIALS, "--to: 'neptune' is not a tracker"),
    ):
        with pytest.raises(UserError, match=hint):
            export_study(StudyExport("empty", to, what, storage=ours))
