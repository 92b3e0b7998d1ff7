"""A study's own reports, exported and searched again."""

import json
from contextlib import closing

import pytest

from hpsearch.cli.main import main
from hpsearch.running.creation.study import create_study
from hpsearch.running.driver.journal import LEASE_TTL_S
from hpsearch.running.driver.loop import Driver
from hpsearch.running.study_run.brain import build_study
from hpsearch.simulation.running import SimulatedExecutor
from hpsearch.store.store import Store
from hpsearch.study_file.levels import trial_budget
from hpsearch.study_file.reading import load
from support.studies.small import PLAIN, Bowl


def test_a_study_replayed_on_its_own_curves_finds_the_same(tmp_path, sqlite_url, capsys):
    study, curves = tmp_path / "study.yaml", tmp_path / "curves.parquet"
    study.write_text(json.dumps({**PLAIN, "search": {"sampler": "random", "pruner": "none"}}))
    spec = load(study)
    with closing(Store.open(sqlite_url)) as store:
        history = create_study(store, spec, tmp_path)
        executor = SimulatedExecutor(Bowl(), trial_budget(spec), 2)
        lease = store.acquire(history.study.id, "test", LEASE_TTL_S)
        Driver(build_study(history, spec), executor, store, lease, clock=executor.clock).run()
    best = min(history.trials, key=lambda trial: trial.value or 1.0)
    for arguments in (
        ["export", "--storage", sqlite_url, "--what", "reports", "--to", str(curves)],
        ["simulate", str(study), "--curves", str(curves), "--workers", "2", "--format", "json"],
    ):
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        assert not ended.value.code
    found = json.loads(capsys.readouterr().out)["best"][0]
    assert (found["number"], found["value"]) == (best.number, best.value)
    assert found["params"] == found["recorded"] == best.params
