"""`hpsearch dashboard` as a person starts it: Optuna's dashboard answers from our database."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import urllib.request
from contextlib import closing

import pytest

from hpsearch.lifecycle import State
from hpsearch.records import Changes, StudyRecord, Trial
from hpsearch.store.store import Store

pytest.importorskip("optuna_dashboard")


def test_the_dashboard_shows_a_study_until_it_is_interrupted(sqlite_url: str) -> None:
    with closing(Store.open(sqlite_url)) as store:
        record = store.create_study(StudyRecord(0, "flowers", "", ("maximize",)))
        trials = [Trial(n, State.COMPLETE, {}, value=n / 10, resource=1.0) for n in range(3)]
        store.commit(record.id, Changes(trials=trials))
    command = [sys.executable, "-c", "from hpsearch.cli.main import main; main()"]
    arguments = ["dashboard", "flowers", "--port", "0", "--storage", sqlite_url]
    with subprocess.Popen([*command, *arguments], stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        told = next(line for line in process.stderr if "http://" in line)
        address = re.search(r"http://127\.0\.0\.1:\d+", told)
        assert address is not None, told
        assert told.startswith(f"{address.group()}/dashboard/studies/{record.id} ")
        with urllib.request.urlopen(f"{address.group()}/api/studies") as answer:
            assert [study["study_name"] for study in json.load(answer)["study_summaries"]] == ["flowers"]
        with urllib.request.urlopen(f"{address.group()}/api/studies/{record.id}?after=0") as answer:
            assert [trial["values"] for trial in json.load(answer)["trials"]] == [[0.0], [0.1], [0.2]]
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=30) == 130
