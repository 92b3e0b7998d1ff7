"""A field of a record is declared once: columns, rows, filters, frames and JSON follow."""

import sys

from support.running.programs import run_program

PROGRAM = """
import re, sys
from pathlib import Path
from contextlib import closing

import hpsearch.domain.records as records

# The one edit: a field more in a copy of the declaration of `Trial`.
path = Path(records.__file__)
anchor = "    left_as: State | None = None"
more = "    mood: Role | None = field(default=None, metadata=SHOWN)"
source = path.read_text(encoding="utf-8")
assert source.count(anchor) == 1
exec(compile(source.replace(anchor, more + chr(10) + anchor), str(path), "exec"), records.__dict__)

from hpsearch.domain.facts import Role
from hpsearch.domain.lifecycle import State
from hpsearch.domain.history import Changes
from hpsearch.domain.records import StudyRecord, Trial
from hpsearch.store.reading.frames import trials_table
from hpsearch.store.reading.queries import find_study, trial_rows
from hpsearch.store.store import Store

with closing(Store.open(sys.argv[1])) as store:
    record = store.create_study(StudyRecord(0, "flowers", ""))
    made = [Trial(0, State.COMPLETE, {}, mood=Role.CONFIRM), Trial(1, State.COMPLETE, {})]
    store.commit(record.id, Changes(trials=made))
    assert [trial.mood for trial in store.load("flowers").trials] == [Role.CONFIRM, None]
    with store.reading() as connection:
        study = find_study(connection, "flowers")
        found = trial_rows(connection, study, where="mood = 'confirm'")
        assert [row.number for row in found] == [0]
        assert found[0].as_plain()["mood"] == "confirm"
        assert list(trials_table(connection, study).frame()["mood"])[0] == "confirm"
        try:
            trial_rows(connection, study, where="mood = 'confrm'")
        except Exception as error:
            assert "did you mean confirm?" in str(error), error
        else:
            raise AssertionError("the words of the enumeration are known to filters")
"""


def test_a_new_field_is_one_edit(tmp_path):
    done = run_program([sys.executable, "-c", PROGRAM, f"sqlite:///{tmp_path}/study.db"])
    assert done.returncode == 0, done.stderr
