"""A study in Python: frames of it, and the same study as Optuna's."""

import json
from collections.abc import Iterator
from contextlib import closing

import pandas as pd
import pytest
from optuna.distributions import BaseDistribution, FloatDistribution
from optuna.trial import TrialState

import hpsearch
from hpsearch.api import StudyReader
from hpsearch.domain.facts import Role
from hpsearch.domain.history import Changes
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import ReportRecord, StudyRecord, Trial
from hpsearch.errors import StoreUnreachable, StudyNotFound, UserError
from hpsearch.store.store import Store


@pytest.fixture
def study(database_url: str) -> Iterator[StudyReader]:
    with closing(Store.open(database_url)) as store:
        record = store.create_study(StudyRecord(0, "flowers", "", ("maximize",)))
        space: dict[str, BaseDistribution] = {
            "lr": FloatDistribution(0.0, 1.0),
            "low": FloatDistribution(0.0, 1.0),
        }
        trials = [
            Trial(
                n,
                State.COMPLETE,
                {"lr": n / 10, "low": 0.5},
                value=n / 10,
                resource=1.0,
                distributions=space,
            )
            for n in range(4)
        ]
        trials[3].role, trials[3].repeats = Role.CONFIRM, 2
        reports = [
            ReportRecord(n, 1.0, n / 10, {"accuracy": n / 10, "loss": 1.0}) for n in range(4)
        ]
        store.commit(record.id, Changes(trials=trials, reports=reports))
    with hpsearch.open(database_url, "flowers") as opened:
        yield opened


def test_it_is_frames_of_trials_and_reports_and_an_optuna_study(study):
    frame = study.trials(where="lr >= 0.1", sort="accuracy desc", limit=2)
    assert list(frame["number"]) == [3, 2]
    assert list(frame["accuracy"]) == [0.3, 0.2]
    assert set(frame["state"]) == {"complete"}
    frame = study.reports()
    assert list(frame["trial"]) == [0, 1, 2, 3]
    assert {"resource", "accuracy", "loss"} <= set(frame.columns)
    trials = study.optuna().trials
    assert [t.params["lr"] for t in trials] == [0.0, 0.1, 0.2, 0.3]
    assert {t.state for t in trials} == {TrialState.COMPLETE}
    assert repr(study).startswith("<study flowers in ")


@pytest.mark.parametrize("count", [True, -1, 1.5, "3", 2**70])
def test_how_many_rows_are_wanted_is_a_whole_number(study, count):
    with pytest.raises(UserError, match="top must be a whole number from 1 "):
        study.best(top=count)
    with pytest.raises(UserError, match="limit must be a whole number from 0 "):
        study.trials(limit=count)
    with pytest.raises(UserError, match="where must be text"):
        study.trials(where=count if not isinstance(count, str) else 3)


def test_best_comes_first_with_its_confirmation_as_on_the_command_line(study, database_url, run):
    frame = study.best(top=2)
    assert list(frame["number"]) == [2, 1]
    assert frame["confirmed"].tolist()[0] == 0.3
    assert frame["confirmed"].isna().tolist() == [False, True]
    assert list(frame["seen_at"]) == [1.0, 1.0]
    assert {"expected", "expected_deviation"} <= set(frame.columns)
    assert list(frame["params.low"]) == [0.5, 0.5], "a parameter named as a column keeps its values"
    words = ["best", "flowers", "--top", "3", "--format", "json", "--storage"]
    printed = json.loads(run(*words, database_url)[1])
    frame = study.best(top=3)
    assert list(frame["number"]) == [each["number"] for each in printed]
    for name in ("value", "expected", "expected_deviation", "expected_low", "expected_high"):
        known = [None if pd.isna(value) else value for value in frame[name]]
        assert known == [each[name] for each in printed], name
    assert frame["expected"].tolist()[0] == 0.3, "the mean of its repeats"


def test_what_is_not_there_cannot_be_opened_and_a_command_for_its_database_is_suggested(
    study, database_url
):
    with pytest.raises(StudyNotFound, match=r"hpsearch ls --storage "):
        hpsearch.open(database_url, "flower")
    with pytest.raises(StudyNotFound, match="flower"):
        hpsearch.open(database_url, "flower")
    with pytest.raises(StoreUnreachable):
        hpsearch.open("sqlite:////nowhere/at/all.db", "flowers")
