"""`hpsearch db backup`, and `db check` of a copy while its original goes on."""

from contextlib import closing
from pathlib import Path

import pytest

from hpsearch.domain.history import Changes
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import Attempt, Outcome, StudyRecord, StudyState, Trial
from hpsearch.store.store import Store
from support.files.checkpoints import three_saved
from trials.checkpoints.folders import folder_at

SPEC = "study: flowers\n"


@pytest.fixture
def paused(sqlite_url: str, tmp_path: Path) -> Trial:
    """A trial that waits with a checkpoint, of a study that runs."""
    _, (_, checkpoint, _) = three_saved(tmp_path / "trial")
    attempt = Attempt(0, 1, "w", 1.0, ended=2.0, outcome=Outcome.PAUSED)
    trial = Trial(0, State.PAUSED, {}, checkpoint=str(checkpoint), resource=2.0)
    trial.attempts = [attempt]
    with closing(Store.open(sqlite_url)) as store:
        record = store.create_study(StudyRecord(0, "flowers", SPEC, state=StudyState.RUNNING))
        store.commit(record.id, Changes(trials=[trial], attempts=[attempt]))
    return trial


def test_a_copy_is_checked_as_what_it_is_once_its_original_has_gone_on(
    run, sqlite_url, tmp_path, paused
):
    copy = f"sqlite:///{tmp_path}/copy.db"
    again = f"sqlite:///{tmp_path}/again.db"
    said = run("db", "backup", f"{tmp_path}/copy.db")
    assert said.code == 0, said.err
    assert "study flowers goes on, and removes checkpoints that the copy names" in said.err
    assert run("db", "check", "--storage", copy).code == 0
    folder_at(tmp_path / "trial").remove("step-2")  # as the driver of the original
    said = run("db", "check", "--storage", copy)
    assert said.code == 0, said.err
    assert (
        "checkpoints that 1 trial of flowers named have gone since this copy was made" in said.err
    )
    assert "no problems found" in said.err
    assert run("db", "check").code == 2, "it is not the copy"

    assert run("db", "backup", f"{tmp_path}/again.db", "--storage", copy).code == 0
    with closing(Store.open(copy)) as store:  # it is taken up
        store.commit(store.find_study("flowers").id, Changes(trials=[paused]))
    assert run("db", "check", "--storage", copy).code == 2
    assert run("db", "check", "--storage", again).code == 0, "a copy of a copy"


def test_what_is_wrong_with_the_tables_of_a_copy_is_wrong(run, tmp_path, paused):
    copy = f"sqlite:///{tmp_path}/copy.db"
    assert run("db", "backup", f"{tmp_path}/copy.db").code == 0
    with closing(Store.open(copy)) as store, store.writing() as connection:
        connection.exec_driver_sql("UPDATE trials SET state = 'complete'")
    assert run("db", "check", "--storage", copy).code == 2
