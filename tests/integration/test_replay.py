"""A study's own reports, exported and searched again."""

import json
import sys
from contextlib import closing
from pathlib import Path

import pytest

from benchmarks.simulation.running import SimulatedExecutor
from hpsearch.cli.main import main
from hpsearch.running.creation.study import create_study
from hpsearch.running.driver.journal import LEASE_TTL_S
from hpsearch.running.driver.loop import Driver
from hpsearch.running.study_run.brain import build_study
from hpsearch.store.store import Store
from hpsearch.study_file.levels import trial_budget
from hpsearch.study_file.reading import load
from support.running.programs import run_program
from support.studies.small import PLAIN, Bowl

SIMULATE = Path(__file__).parents[2] / "benchmarks" / "simulate.py"


def test_a_study_replayed_on_its_own_curves_finds_the_same(tmp_path, sqlite_url):
    study, curves = tmp_path / "study.yaml", tmp_path / "curves.parquet"
    study.write_text(json.dumps({**PLAIN, "search": {"sampler": "random", "pruner": "none"}}))
    spec = load(study)
    with closing(Store.open(sqlite_url)) as store:
        history = create_study(store, spec, tmp_path)
        executor = SimulatedExecutor(Bowl(), trial_budget(spec), 2)
        lease = store.acquire(history.study.id, "test", LEASE_TTL_S)
        Driver(build_study(history, spec), executor, store, lease, clock=executor.clock).run()
    best = min(history.trials, key=lambda trial: trial.value or 1.0)
    with pytest.raises(SystemExit) as ended:
        main(["export", "--storage", sqlite_url, "--what", "reports", "--to", str(curves)])
    assert not ended.value.code
    call = [sys.executable, str(SIMULATE), str(study), "--curves", str(curves)]
    said = run_program([*call, "--workers", "2", "--format", "json"])
    assert said.returncode == 0, said.stderr
    found = json.loads(said.stdout)["best"][0]
    assert (found["number"], found["value"]) == (best.number, best.value)
    assert found["params"] == found["recorded"] == best.params
