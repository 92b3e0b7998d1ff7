"""A study of any size is read a few trials at a time: the objects that live at once are counted."""

import gc
import json
from typing import Any, ClassVar

import pandas as pd
import pytest

from hpsearch.domain.history import Changes
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import Attempt, Outcome, ReportRecord, StudyRecord, Trial
from hpsearch.store import contents, schema
from hpsearch.store.reading import history_frames, queries, status
from hpsearch.store.reading.best import best_trials
from hpsearch.store.reading.files import write
from hpsearch.store.reading.frames import attempts_table, reports_table, trials_table
from hpsearch.store.reading.queries import each_trial, only_study
from hpsearch.store.reading.status import study_status
from hpsearch.store.store import Store
from hpsearch.views.report.data import report_data
from hpsearch.views.report.page import page

TRIALS, FETCHED = 200, 10
SPEC = """
study: many
task: {kind: "made.up:train"}
space: {x: {type: float, low: 0, high: 1}}
objective: {metric: accuracy, direction: maximize}
budget: {trials: 1000, per_trial: {epochs: 2}}
"""


class Counted:
    """Counts its objects that live."""

    live: ClassVar[int]
    most: ClassVar[int]

    def __init__(self, *cells: Any, **named: Any) -> None:
        super().__init__(*cells, **named)
        kind = type(self)
        kind.live += 1
        kind.most = max(kind.most, kind.live)

    def __del__(self) -> None:
        type(self).live -= 1


def counted(monkeypatch: pytest.MonkeyPatch, module: Any, name: str) -> type[Counted]:
    """Count the objects of a class of records that a module makes."""
    counts = {"live": 0, "most": 0}
    kind = type(name, (Counted, getattr(module, name)), counts)
    monkeypatch.setattr(module, name, kind)
    return kind


@pytest.fixture(autouse=True)
def _few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queries, "FETCHED", FETCHED)
    monkeypatch.setattr(contents, "FETCHED", FETCHED)


def many(store: Store, directions: tuple[str, ...] = ("maximize",)) -> None:
    """A study of many trials; the parameter `late` and the metric `loss` come with the last."""
    record = StudyRecord(0, "many", SPEC, directions)
    trials = []
    for number in range(TRIALS):
        params: dict[str, Any] = {"x": number / TRIALS, "depth": number}
        if number == TRIALS - 1:
            params["late"] = "yes"
        trial = Trial(number, State.COMPLETE, params, value=number / TRIALS, resource=2.0)
        if len(directions) > 1:
            trial.values = [number / TRIALS, number % 7 / 7]
        times = {"started": 100.0 + number, "ended": 101.0 + number}
        own = Attempt(number, 1, "w0", **times, outcome=Outcome.COMPLETE, gpu_seconds=1.0)
        trial.attempts, trial.gpu_seconds, trial.ended = [own], 1.0, times["ended"]
        for at in (1.0, 2.0):
            metrics = {"accuracy": number / TRIALS, "loss" if "late" in params else "held": at}
            report = ReportRecord(number, at, number / TRIALS, metrics, created=101.0 + number)
            trial.reports[at] = report
        trials.append(trial)
    attempts = [each.attempts[0] for each in trials]
    reports = [report for each in trials for report in each.reports.values()]
    store.create_study(record, Changes(trials=trials, attempts=attempts, reports=reports))


def test_a_cursor_of_the_server_is_open_while_trials_are_read(store):
    many(store)
    with store.reading() as connection:
        rows = iter(each_trial(connection, only_study(connection)))
        assert next(rows).number == 0
        if store.dialect.name == "postgresql":
            assert connection.exec_driver_sql("SELECT count(*) FROM pg_cursors").scalar() == 1
        assert sum(1 for _ in rows) == TRIALS - 1


@pytest.mark.cases(4)
@pytest.mark.parametrize("format_", ["table", "json", "yaml", "csv"])
def test_trials_are_printed_a_few_at_a_time(store, format_, monkeypatch, run):
    many(store)
    rows = counted(monkeypatch, queries, "TrialRow")
    code, out, _ = run("trials", "many", "--format", format_, "--storage", store.url)
    assert code == 0
    assert 0 < rows.most <= 3 * FETCHED
    if format_ == "json":
        found = json.loads(out)
        assert [each["number"] for each in found] == list(range(TRIALS))
        assert found[-1]["params"]["late"] == "yes"
    if format_ == "csv":
        header, *lines = out.splitlines()
        assert "params.late" in header
        assert len(lines) == TRIALS


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize("make", [trials_table, reports_table, attempts_table])
def test_files_are_written_a_few_rows_at_a_time(store, make, suffix, tmp_path, monkeypatch):
    many(store)
    rows = counted(monkeypatch, queries, "TrialRow")
    parts = []
    made = pd.DataFrame.__init__

    def seen(self: Any, *cells: Any, **named: Any) -> None:
        made(self, *cells, **named)
        parts.append(len(self))
        if len(parts) % 10 == 0:
            held = sum(type(each) is dict and "held" in each for each in gc.get_objects())
            assert held <= 5 * FETCHED

    to = tmp_path / f"made{suffix}"
    with store.reading() as connection:
        study = only_study(connection)
        whole = make(connection, study).frame()
        rows.most = rows.live
        monkeypatch.setattr(pd.DataFrame, "__init__", seen)
        count = write(make(connection, study), to, suffix)
        monkeypatch.undo()
    assert count == len(whole)
    assert max(parts) <= FETCHED
    assert rows.most <= 3 * FETCHED
    read = pd.read_csv(to) if suffix == ".csv" else pd.read_parquet(to)
    assert list(read.columns) == list(whole.columns)
    pd.testing.assert_series_equal(
        read["gpu_seconds" if "worker" in read else "value"],
        whole["gpu_seconds" if "worker" in whole else "value"],
    )


def test_a_column_of_whole_and_broken_numbers_and_of_texts_has_one_type(store, tmp_path):
    record = StudyRecord(0, "mixed", SPEC, ("maximize",))
    params = [{"a": 1, "b": 1, "c": True}] * 15 + [{"a": 0.5, "b": "x", "c": False}] * 15
    trials = [Trial(number, State.QUEUED, each) for number, each in enumerate(params)]
    store.create_study(record, Changes(trials=trials))
    to = tmp_path / "mixed.parquet"
    with store.reading() as connection:
        write(trials_table(connection, only_study(connection)), to, ".parquet")
    read = pd.read_parquet(to)
    assert read["a"].tolist() == [1.0] * 15 + [0.5] * 15
    assert read["b"].tolist() == ["1"] * 15 + ["x"] * 15
    assert read["c"].tolist() == [True] * 15 + [False] * 15


def test_whole_trials_are_read_a_few_at_a_time(store, monkeypatch):
    many(store)
    trials = counted(monkeypatch, contents, "Trial")
    monkeypatch.setitem(contents.TABLES, trials, schema.trials)
    study = store.find_study("many")
    found = []
    for trial in store.each_trial(study.id):
        found.append((trial.number, len(trial.attempts), len(trial.reports)))
    assert found == [(number, 1, 2) for number in range(TRIALS)]
    assert 0 < trials.most <= 2 * FETCHED
    revision = store.revision(study.id)
    again = Trial(7, State.COMPLETE, {"x": 1.0}, value=2.0)
    store.commit(study.id, Changes(trials=[again]))
    assert [each.number for each in store.each_trial(study.id, revision)] == [7]


def test_the_front_of_several_objectives_is_found_a_few_trials_at_a_time(store, monkeypatch):
    many(store, ("maximize", "maximize"))
    rows = counted(monkeypatch, queries, "TrialRow")
    with store.reading() as connection:
        front = best_trials(connection, only_study(connection))
    assert [each.trial.number for each in front] == [199, 195]
    assert rows.most <= 4 * FETCHED


def test_the_time_left_of_a_driven_study_is_estimated_from_some_of_its_trials(store, monkeypatch):
    many(store)
    store.acquire(store.find_study("many").id, "driver", 1e6)
    trials = counted(monkeypatch, status, "Trial")

    def seconds_left() -> float:
        with store.reading() as connection:
            found = study_status(connection, only_study(connection)).seconds_left(1000.0)
        assert found is not None
        return found

    whole = seconds_left()
    assert trials.most == TRIALS
    trials.most = trials.live
    monkeypatch.setattr(status, "TIMED", 20)
    assert seconds_left() == pytest.approx(whole, rel=0.01), "all trials took as long"
    assert trials.most - trials.live <= 20


def test_the_page_of_a_large_study_is_of_chosen_trials_and_of_counts(store, monkeypatch):
    many(store)
    monkeypatch.setattr(history_frames, "MOST_TRIALS", 30)
    rows = counted(monkeypatch, queries, "TrialRow")
    with store.reading() as connection:
        data = report_data(connection, only_study(connection), 1000.0)
    history = data.history
    assert rows.most <= 80
    chosen = set(history.trials.index)
    assert len(chosen) <= 30
    assert chosen >= set(range(0, TRIALS, 10)) | set(range(TRIALS - 10, TRIALS))
    assert set(history.reports["trial"]) == chosen
    assert len(history.attempts) == TRIALS, "the time of all trials is counted"
    bests = history.bests["value_0"]
    assert [each.trial for each in bests] == list(range(TRIALS)), "each was better than the last"
    lines = [line for section in page(data, with_charts=False).sections for line in section.lines]
    text = "".join("".join(line) for line in lines)
    assert f"Of all {TRIALS} trials, {len(chosen)} are looked at here" in text
