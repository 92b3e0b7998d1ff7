"""A tracker is told all that was committed, each point once, whoever is killed in between."""

import json
from contextlib import closing

import pytest

from hpsearch.brain.reopening import retry
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import StudyState
from hpsearch.running.tracking.mirror import Sent
from hpsearch.store.store import Store
from support.studies.driven import drive
from support.studies.small import Bowl
from support.studies.tracked import Notebook, finish, points_of, recorded, send, tracked


def test_a_study_that_is_interrupted_and_resumed_is_told_once(sqlite_url, tmp_path):
    spec, notebook = tracked(sqlite_url), Notebook()
    send(sqlite_url, spec, tmp_path, notebook)
    assert notebook.studies[-1].record.state is StudyState.INTERRUPTED
    early = points_of(recorded(sqlite_url, spec))
    assert notebook.points == early
    finish(sqlite_url, spec)
    send(sqlite_url, spec, tmp_path, notebook)
    history = recorded(sqlite_url, spec)
    assert notebook.points == points_of(history) != early
    for trial in history.trials:
        news = notebook.last[trial.number]
        assert (news.trial.state, news.trial.params) == (trial.state, trial.params)
        assert news.is_over
        known = [news.facts.get(name) for name in ("value", "value_at", "last_value")]
        assert known == [trial.value, trial.seen_at, trial.last]
    assert {State.COMPLETE, State.PRUNED, State.FAILED} == {
        news.trial.state for news in notebook.last.values()
    }
    study = notebook.studies[-1]
    assert study.record.state is StudyState.FINISHED
    assert study.facts["trials_failed"] == sum(t.state is State.FAILED for t in history.trials)
    assert study.facts["trials_running"] == 0
    assert study.facts["best_value"] == min(t.value for t in history.trials if t.value is not None)


def test_a_retried_trial_has_a_run_of_its_own_from_its_beginning(sqlite_url, tmp_path):
    spec, notebook = tracked(sqlite_url), Notebook()
    finish(sqlite_url, spec)
    send(sqlite_url, spec, tmp_path, notebook)
    (failed, *_) = (trial for trial in notebook.last.values() if trial.trial.state is State.FAILED)
    number, before = failed.trial.number, notebook.points[failed.trial.number]
    with closing(Store.open(sqlite_url)) as store:
        history = store.load(spec.study)
        retry(history, {number: "the data has changed"}, history.study.ended or 0.0)
        store.commit(history.study.id, history.drain())
    drive(sqlite_url, spec, Bowl(), workers=2, resume=True)
    send(sqlite_url, spec, tmp_path, notebook)
    again = notebook.last[number]
    assert (failed.run, again.run) == (str(number), f"{number}.2")
    assert again.is_over
    assert again.trial.state is not State.FAILED
    assert notebook.points[number] == before + points_of(recorded(sqlite_url, spec))[number]


def test_what_has_not_changed_is_not_sent_again(sqlite_url, tmp_path):
    spec = tracked(sqlite_url)
    send(sqlite_url, spec, tmp_path, Notebook())
    again = Notebook()
    send(sqlite_url, spec, tmp_path, again)
    assert again.trials == []
    assert len(again.studies) == 1, "a tracker that was begun afresh must find its runs"


def test_what_fails_is_sent_by_the_next_attempt(sqlite_url, tmp_path):
    spec, notebook = tracked(sqlite_url), Notebook(fails_at=2)
    with pytest.raises(ConnectionError):
        send(sqlite_url, spec, tmp_path, notebook)
    assert list(notebook.last) == [0, 1]
    notebook.fails_at = None
    send(sqlite_url, spec, tmp_path, notebook)
    assert notebook.points == points_of(recorded(sqlite_url, spec))


def test_the_memory_has_no_password(tmp_path):
    sent = Sent(str(tmp_path), "notebook", "https://me:secret@host/x?key=abc")
    sent.write()
    content = json.loads((tmp_path / "tracking" / "notebook.json").read_text())
    assert content["target"] == "https://host/x?..."


def test_a_tracker_that_takes_whole_trials_gets_them_whole(sqlite_url, tmp_path):
    spec, notebook = tracked(sqlite_url), Notebook(wanted=lambda trial: trial.is_over)
    send(sqlite_url, spec, tmp_path, notebook)
    early = list(notebook.last)
    finish(sqlite_url, spec)
    send(sqlite_url, spec, tmp_path, notebook)
    assert len(early) < len(notebook.last)
    assert len(notebook.trials) == len(notebook.last), "each once"
    assert notebook.points == points_of(recorded(sqlite_url, spec))


def test_steps_are_whole_numbers_that_tell_levels_apart(sqlite_url, tmp_path):
    per_trial = {"epochs": 1.5, "report_every": 0.5}
    spec = tracked(sqlite_url, budget={"trials": 3, "per_trial": per_trial})
    notebook = Notebook()
    send(sqlite_url, spec, tmp_path, notebook)
    points = [point for trial in notebook.trials for point in trial.points]
    steps = {point.resource: point.step for point in points}
    assert len(set(steps.values())) == len(steps)
