"""`warm_start` on the command line: what `check` and `run` say and keep, on a real database."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from benchmarks.simulation.running import SimulatedExecutor
from hpsearch.cli.options import BudgetLimits, RunOptions
from hpsearch.cli.studies.check import check_study
from hpsearch.cli.studies.run import resume_study, run_study
from hpsearch.domain.history import History
from hpsearch.domain.records import StudyRecord, StudyState
from hpsearch.errors import Damaged, StudyNotFound
from hpsearch.running.driver.journal import LEASE_TTL_S
from hpsearch.running.driver.loop import Driver
from hpsearch.running.study_run import on_ray
from hpsearch.running.study_run.brain import build_study
from hpsearch.running.study_run.on_ray import StudyRun
from hpsearch.store.audit.invariants import violations
from hpsearch.store.store import Store
from hpsearch.study_file.levels import trial_budget
from support.studies.small import Bowl

OWN = """\
study: NAME
task: {kind: "warm_start_code:train"}
space: {x: {type: float, low: 0, high: 1}}
objective: {metric: loss, direction: minimize}
budget: {trials: 30, per_trial: {epochs: 3}}
resources: {workers: 1}
"""
CODE = "def train(params, trial):\n    trial.report(1, {'loss': params['x']})\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a study's code, in which studies are driven in the simulator."""
    (tmp_path / "warm_start_code.py").write_text(CODE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(on_ray, "drive", simulated)
    return tmp_path


def simulated(
    store: Store, run: StudyRun, open_history: Any, watch: Any, on_driver: Any
) -> StudyRecord:
    """Drives a study as `on_ray.drive` does, without a cluster."""
    history: History = open_history()
    executor = SimulatedExecutor(Bowl(), trial_budget(run.spec), 1)
    lease = store.acquire(history.study.id, "test", LEASE_TTL_S)
    Driver(build_study(history, run.spec), executor, store, lease, clock=executor.clock).run()
    store.release(lease)
    return history.study


def write(folder: Path, name: str, search: str = "") -> Path:
    file = folder / f"{name}.yaml"
    file.write_text(OWN.replace("NAME", name) + (f"search: {search}\n" if search else ""))
    return file


def options(folder: Path) -> RunOptions:
    return RunOptions(f"sqlite:///{folder}/studies.db", quiet=True)


def kept(folder: Path, name: str) -> StudyRecord:
    with closing(Store.open(f"sqlite:///{folder}/studies.db", create=False)) as store:
        return store.find_study(name)


@pytest.mark.parametrize("named", ["auto", "[before]"])
def test_a_study_begins_where_an_earlier_one_was_good(folder, capsys, named):
    run_study(write(folder, "before"), options(folder))
    run_study(write(folder, "new", f"{{warm_start: {named}}}"), options(folder))
    assert "warm_start: evidence of before (30 trials)" in capsys.readouterr().err
    (evidence,) = kept(folder, "new").warm_start
    assert [rung.share for rung in evidence.rungs] == pytest.approx([1 / 9, 1 / 3], abs=1e-3)
    assert all(rung.trials >= 4 for rung in evidence.rungs)
    assert [told.name for told in kept(folder, "new").warm_start] == ["before"]
    with closing(Store.open(f"sqlite:///{folder}/studies.db")) as store:
        history = store.load("new")
    assert abs(history.trials[0].params["x"] - 0.3) < 0.1
    assert history.study.state is StudyState.FINISHED


@pytest.mark.thorough
def test_what_it_was_told_stays_when_it_is_continued(folder):
    run_study(write(folder, "before"), options(folder))
    run_study(write(folder, "new", "{warm_start: [before]}"), options(folder))
    told = kept(folder, "new").warm_start
    with closing(Store.open(f"sqlite:///{folder}/studies.db")) as store:
        store.delete_study(store.find_study("before").id)
    resume_study("new", options(folder), BudgetLimits(trials=34))
    assert kept(folder, "new").warm_start == told
    with closing(Store.open(f"sqlite:///{folder}/studies.db")) as store:
        assert len(store.load("new").trials) == 34
        with store.reading() as connection:
            assert not violations(connection)


def test_a_name_that_is_not_there_leaves_no_study_behind(folder):
    run_study(write(folder, "before"), options(folder))
    file = write(folder, "new", "{warm_start: [befor]}")
    for command in (
        lambda: run_study(file, options(folder)),
        lambda: check_study(file, options(folder).storage, None),
    ):
        with pytest.raises(StudyNotFound, match="befor"):
            command()
    with closing(Store.open(f"sqlite:///{folder}/studies.db")) as store:
        assert store.study_names() == ["before"]


def test_check_refuses_a_name_where_there_is_no_database_yet(folder):
    file = write(folder, "new", "{warm_start: [before]}")
    with pytest.raises(StudyNotFound, match="there is no study before"):
        check_study(file, options(folder).storage, None)
    assert not (folder / "studies.db").exists()


def test_auto_says_that_nothing_fits(folder, capsys):
    run_study(write(folder, "new", "{warm_start: auto}"), options(folder))
    assert "no earlier study fits" in capsys.readouterr().err
    assert kept(folder, "new").warm_start == []


def test_what_a_study_was_told_is_checked_like_all_it_has_recorded(folder):
    run_study(write(folder, "before"), options(folder))
    with closing(sqlite3.connect(folder / "studies.db")) as connection, connection:
        connection.execute("""UPDATE studies SET warm_start = '[{"name": 3}]'""")
    with pytest.raises(Damaged, match=r"studies\.warm_start"):
        kept(folder, "before")
