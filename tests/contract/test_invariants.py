"""`hpsearch db check` finds nothing in what the program writes, and names whatever is done to it by
hand."""

import shutil
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.exc import IntegrityError

from benchmarks.simulation.running import SimulatedExecutor
from contract.conftest import Run
from hpsearch.domain.history import Changes, History
from hpsearch.domain.records import Trial
from hpsearch.errors import Damaged
from hpsearch.running.creation.study import create_study
from hpsearch.running.driver.loop import Driver
from hpsearch.running.study_run.brain import build_study
from hpsearch.store.audit.invariants import RULES, StudyTrials, violations
from hpsearch.store.contents import trials_since
from hpsearch.store.reading.queries import find_study
from hpsearch.store.store import Store
from hpsearch.store.study_texts import budget_in
from hpsearch.study_file.levels import trial_budget
from support.files.checkpoints import saved
from support.studies.small import Bowl, Simulation, spec_with
from trials.checkpoints.checkpoints import Checkpoints


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.thorough)])
def database_url(request: pytest.FixtureRequest) -> str:
    """The URL of an empty database: what is written to harm it is much the same in both."""
    url = request.getfixturevalue(f"{request.param}_url")
    assert isinstance(url, str)
    return url


CHECK = Callable[[], tuple[int, str]]


@pytest.fixture
def check(store: Store, run: Run) -> CHECK:
    """Checks the test's database, and returns the exit code and all that was said."""
    return lambda: run("db", "check", "--storage", store.url)[::2]


@cache
def history() -> History:
    """What is left of a study whose trials were complete, pruned, failed and lost."""
    spec = spec_with(budget={"trials": 12, "gpu_hours": 9, "per_trial": {"epochs": 9}})
    return Simulation(spec, curves=Bowl(diverges=0.6), losses=(40.0, 130.0)).run().history


def written(store: Store, name: str, checkpoints: Path) -> None:
    """That study, with real checkpoints, in a database."""
    told = history()
    record = store.create_study(replace(told.study, name=name, base="/"))
    trials = [
        replace(trial, checkpoint=_saved(checkpoints / f"{trial.number}", trial))
        for trial in told.trials
    ]
    attempts = [attempt for trial in trials for attempt in trial.attempts]
    reports = [report for trial in trials for report in trial.reports.values()]
    store.commit(record.id, Changes(trials=trials, attempts=attempts, reports=reports))


def _saved(folder: Path, trial: Trial) -> str | None:
    return None if trial.checkpoint is None else str(saved(Checkpoints(folder), 1, _fill))


def _fill(folder: Path) -> None:
    (folder / "weights").write_bytes(b"weights")


def execute(store: Store, statement: str) -> None:
    with store._database.transaction("write") as connection:
        connection.exec_driver_sql(statement)


def one(store: Store, query: str) -> Any:
    with store.reading() as connection:
        return connection.exec_driver_sql(query).scalar_one()


@pytest.fixture
def study(store: Store, tmp_path: Path) -> str:
    written(store, "toy", tmp_path / "checkpoints")
    assert {"complete", "failed"} < {state for (state,) in rows(store, "SELECT state FROM trials")}
    assert ("lost",) in rows(store, "SELECT outcome FROM attempts")
    return "toy"


def rows(store: Store, query: str) -> list[Any]:
    with store.reading() as connection:
        return [tuple(row) for row in connection.exec_driver_sql(query)]


def test_what_a_driver_leaves_is_as_it_must_be(store, study, check):
    assert check() == (0, "no problems found\n")


@pytest.mark.parametrize(
    "change", ["standing = standing + 0.1", "violation = 0.5", "standing = NULL"]
)
def test_a_rank_that_does_not_follow_from_its_trial_is_found(store, study, check, change):
    number = one(store, "SELECT min(number) FROM trials WHERE standing IS NOT NULL")
    execute(store, f"UPDATE trials SET {change} WHERE number = {number}")
    code, said = check()
    assert code != 0
    assert f"toy, trial {number}: it is ranked by violation" in said


def test_reports_past_the_budget_are_as_the_code_of_users_makes_them(store, study, check):
    for which, resource, attempt in (("max", 99, 2), ("min", 12, 1)):
        at = f"(SELECT {which}(resource) FROM reports WHERE trial = {LOST})"
        report = f"trial = {LOST} AND resource = {at}"
        past = f"resource = {resource}, attempt = {attempt}"
        execute(store, f"UPDATE reports SET {past} WHERE {report}")
    execute(store, f"UPDATE trials SET resource = 99 WHERE number = {LOST}")
    assert check() == (0, "no problems found\n")


def test_every_moment_of_a_study_is_as_it_must_be(store, tmp_path):
    spec = spec_with(budget={"trials": 6, "per_trial": {"epochs": 9}})
    history = create_study(store, spec, tmp_path)
    executor = SimulatedExecutor(Bowl(), trial_budget(spec), workers=2, losses=(50.0,))
    lease = store.acquire(history.study.id, "driver", 1e9)
    moments = 0

    def watch(*_: object) -> None:
        nonlocal moments
        with store.reading() as connection:
            assert violations(connection) == []
        moments += 1

    Driver(build_study(history, spec), executor, store, lease, watch, executor.clock).run()
    assert moments > 20


COMPLETE = "(SELECT min(number) FROM trials WHERE state = 'complete')"
FAILED = "(SELECT min(number) FROM trials WHERE state = 'failed')"
LOST = "(SELECT min(trial) FROM attempts WHERE outcome = 'lost')"

HARM = {
    "a report is gone": (
        f"DELETE FROM reports WHERE trial = {COMPLETE} AND resource = 9",
        "it is complete at 9, but has no report there",
    ),
    "no attempt won": (
        f"UPDATE attempts SET outcome = 'pruned' WHERE outcome = 'complete' AND trial = {COMPLETE}",
        "it is complete and has 0 winning attempts",
    ),
    "two attempts won": (
        f"UPDATE attempts SET outcome = 'complete' WHERE trial = {LOST}",
        "winning attempts",
    ),
    "an attempt too many": (
        f"UPDATE attempts SET outcome = 'pruned' WHERE outcome = 'lost' AND trial = {LOST}",
        "ended pruned, and yet another one followed",
    ),
    "an attempt lives on": (
        f"UPDATE attempts SET outcome = NULL, ended = NULL WHERE trial = {COMPLETE}",
        "it is complete and has",
    ),
    "a running trial that nobody runs": (
        f"UPDATE trials SET state = 'running' WHERE number = {COMPLETE}",
        "it is running and has 0 live attempts",
    ),
    "a state its attempt does not lead to": (
        f"UPDATE trials SET state = 'paused' WHERE number = {COMPLETE}",
        "it is paused, but its last attempt ended complete",
    ),
    "a state that there is not": (
        f"UPDATE trials SET state = 'done' WHERE number = {COMPLETE}",
        "trials.state holds 'done': ",
    ),
    "an outcome that there is not": (
        f"UPDATE attempts SET outcome = 'won' WHERE trial = {COMPLETE}",
        "attempts.outcome holds 'won': ",
    ),
    "a study's state that there is not": (
        "UPDATE studies SET state = 'odd'",
        "studies.state holds 'odd': ",
    ),
    "a charge that nothing explains": (
        f"UPDATE trials SET gpu_seconds = gpu_seconds + 1 WHERE number = {COMPLETE}",
        "GPU-seconds, its attempts took",
    ),
    "a charge without an attempt": (
        f"DELETE FROM attempts WHERE trial = {FAILED}",
        "GPU-seconds, its attempts took 0",
    ),
    "a report that nobody trained": (
        f"UPDATE trials SET resource = 3 WHERE number = {COMPLETE}",
        "it has a report at 9, but trained to 3 only",
    ),
    "a report beyond the budget": (
        "UPDATE reports SET resource = 99, attempt ="
        f" (SELECT max(number) FROM attempts WHERE trial = {COMPLETE})"
        f" WHERE trial = {COMPLETE} AND resource = 1",
        "has 2 reports at or past its budget of 9, up to 99",
    ),
    "a number that is missing": ("DELETE FROM trials WHERE number = 3", "some are missing"),
    "an attempt that is missing": (
        f"DELETE FROM attempts WHERE number = 1 AND trial = {LOST}",
        "attempts have numbers from 2 to",
    ),
    "an end before the beginning": (
        f"UPDATE attempts SET ended = started - 1 WHERE trial = {COMPLETE}",
        "do not agree with its outcome",
    ),
    "a report of what was retried": (
        """UPDATE trials SET system_attrs = '{"retried": 1}'"""
        f" WHERE number = {COMPLETE}",
        "of attempt 1, after which it began again",
    ),
    "a result without a value": (
        f"UPDATE trials SET value = NULL WHERE number = {COMPLETE}",
        "it is complete, but has no value",
    ),
    "a failure without a reason": (
        f"UPDATE trials SET error_kind = NULL WHERE number = {FAILED}",
        "it is failed, but has no error",
    ),
    "a repeat of itself": (
        f"UPDATE trials SET repeats = number WHERE number = {COMPLETE}",
        "which is not another trial of the study",
    ),
    "parameters that are a list": (
        f"UPDATE trials SET params = '[1]' WHERE number = {COMPLETE}",
        "trials.params holds '[1]': ",
    ),
    "a finding without evidence": (
        """UPDATE trials SET findings = '[{"name": "a", "evidence": null, "severity": "notice"}]'"""
        f" WHERE number = {COMPLETE}",
        "trials.findings holds ",
    ),
    "a metric that is a mapping": (
        """UPDATE reports SET metrics = '{"loss": {"mean": 1}}'"""
        f" WHERE trial = {COMPLETE} AND resource = 9",
        "reports.metrics holds ",
    ),
    "a study file that is not YAML": (
        "UPDATE studies SET spec = '{'",
        "studies.spec holds a study file that is not YAML",
    ),
    "a checkpoint that is nowhere": (
        f"UPDATE trials SET checkpoint = '/nowhere/step-1' WHERE number = {COMPLETE}",
        "its checkpoint cannot be used: /nowhere/step-1 is not a checkpoint",
    ),
    "a best checkpoint that is nowhere": (
        f"UPDATE trials SET best_checkpoint = '/nowhere/step-1' WHERE number = {COMPLETE}",
        "its checkpoint cannot be used: /nowhere/step-1 is not a checkpoint",
    ),
}


@pytest.mark.parametrize(("harm", "told"), HARM.values(), ids=HARM.keys())
def test_harm_is_found_and_named(store, study, check, harm, told):
    execute(store, harm)
    code, said = check()
    assert code != 0
    assert told in said
    assert "Traceback" not in said


READERS = ("show toy {best}", "resume toy", "trials toy", "export toy --to {to}/trials.csv")
SOMETIMES = ("status toy", "best toy", "ls")
"""Commands that read some values of a trial, and those that need its state at least."""


@pytest.mark.parametrize(
    "harm",
    ["parameters that are a list", "a state that there is not", "a metric that is a mapping"],
)
def test_the_reader_of_a_damaged_value_learns_its_column_and_the_remedy(
    store, study, run, tmp_path, harm
):
    statement, told = HARM[harm]
    place = {"best": one(store, f"SELECT {COMPLETE}"), "to": tmp_path}
    execute(store, statement)
    for command in READERS if "state" not in harm else READERS + SOMETIMES:
        code, _, said = run(*command.format(**place).split(), "--storage", store.url)
        assert code == 2, (command, said)
        assert f"the database is damaged: {told}" in said, command
        assert "restore a backup" in said
        assert "hpsearch db check" in said


def test_what_is_not_json_or_yaml_is_named(sqlite_url, tmp_path, run):
    with closing(Store.open(sqlite_url)) as store:
        written(store, "toy", tmp_path / "checkpoints")
        for harm, command, told in (
            ("UPDATE trials SET params = '{'", "trials", "trials.params holds '{': it is not JSON"),
            ("UPDATE studies SET spec = '{'", "status", "holds a study file that is not YAML"),
        ):
            execute(store, harm)
            code, _, said = run(command, "toy", "--storage", sqlite_url)
            assert code == 2
            assert told in said


def test_every_rule_has_harm_that_breaks_it(store, study):
    record = store.find_study(study)
    found = set()
    for harm, _ in HARM.values():
        with store._database.connected() as connection:
            connection.exec_driver_sql("BEGIN")
            connection.exec_driver_sql(harm)
            with suppress(Damaged):
                trials = trials_since(connection, record.id, -1)
                known = StudyTrials(trials, budget_in(record.spec))
                for trial in trials.values():
                    found |= {rule for rule in RULES if list(rule(trial, known))}
            connection.exec_driver_sql("ROLLBACK")
    assert found == set(RULES)


def test_a_number_cannot_stand_twice(store, study):
    with pytest.raises(IntegrityError, match=r"(?i)unique"):
        execute(store, "INSERT INTO trials SELECT * FROM trials WHERE number = 0")


@pytest.mark.parametrize("damage", ["changed", "cut short", "missing"])
def test_a_damaged_checkpoint_is_found_and_named(store, study, check, damage):
    path = Path(one(store, f"SELECT checkpoint FROM trials WHERE number = {COMPLETE}"))
    match damage:
        case "changed":
            (path / "weights").write_bytes(b"another")
        case "cut short":
            (path / "weights").write_bytes(b"")
        case "missing":
            shutil.rmtree(path)
    code, said = check()
    assert code == 2
    assert f"its checkpoint cannot be used: {path} is" in said


def test_a_study_that_is_asked_about_answers_for_itself_alone(store, study, tmp_path):
    execute(store, f"UPDATE trials SET gpu_seconds = 0.5 WHERE number = {COMPLETE}")
    written(store, "unharmed", tmp_path / "more")
    with store.reading() as connection:
        assert violations(connection, find_study(connection, "unharmed").id) == []
        assert {v.study for v in violations(connection)} == {"toy"}


def test_a_live_study_is_checked_while_its_driver_holds_it(store, study, check):
    store.acquire(store.find_study(study).id, "driver", 1e9)
    assert check()[0] == 0
