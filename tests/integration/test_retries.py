"""Trials that failed of what was mended since run again, whoever is killed meanwhile."""

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from integration.test_run_and_resume import TASK, Workplace

BREAKS = "raise RuntimeError(f\"x = {params['x']} breaks it\")"
MOMENTS = (
    "SELECT 1 FROM studies WHERE lease_owner IS NOT NULL",
    "SELECT 1 FROM attempts WHERE trial = 1 AND number = 2",
    "SELECT 1 FROM reports WHERE trial = 1 AND resource = 2",
    "SELECT 1 FROM attempts WHERE trial = 3 AND number = 2",
)


@pytest.fixture
def failed(shared_ray: Mapping[str, str], tmp_path: Path) -> Workplace:
    """A study that has ended, of whose four trials two failed."""
    workplace = Workplace(tmp_path / "work", shared_ray)
    workplace.write(
        settings={"pause": 0.0, "fragile": True},
        budget={"trials": 4, "per_trial": {"epochs": 4}},
        search={"sampler": "random", "pruner": "none"},
        enqueue=[{"x": 0.2}, {"x": 0.99}, {"x": 0.4}, {"x": 0.98}],
        resources={"workers": 1},
    )
    workplace.call("run", "study.yaml")
    states = "SELECT state FROM trials ORDER BY number"
    assert [state for (state,) in workplace.rows(states)] == ["complete", "failed"] * 2
    return workplace


def test_a_driver_that_is_killed_while_it_retries_loses_nothing_and_retries_once(failed):
    spent = failed.rows("SELECT number, gpu_seconds FROM trials")
    (failed.folder / "toy_task.py").write_text(TASK.replace(BREAKS, "pass"))
    said = ""
    for moment in MOMENTS:
        failed.hold(*((3, 1) if "trial = 3" in moment else (1, 3)))
        waits = failed.rows("SELECT 1 FROM trials WHERE state = 'failed'")
        process = failed.start("resume", "toy", *(["--retry", "failed"] if waits else []))
        failed.wait_until(moment, process)
        if "trial = 3" in moment:
            beside = failed.ask("resume", "toy", "--retry", "failed", code=4)
            assert "study toy is driven by" in beside
        process.kill()
        said += "".join(process.communicate())
        assert "no problems found" in failed.ask("db", "check")
    failed.let_go()
    failed.call("resume", "toy")
    assert "since trials 1, 3 failed: toy_task.py has changed" in said
    assert "version 2 of toy begins: toy_task.py has changed" in said
    versions = failed.rows("SELECT number, version FROM trials ORDER BY number")
    assert versions == [(0, 1), (1, 2), (2, 1), (3, 2)]
    attempts = "SELECT outcome FROM attempts WHERE trial = {} ORDER BY number"
    for number in (1, 3):
        outcomes = [outcome for (outcome,) in failed.rows(attempts.format(number))]
        assert outcomes[0] == "failed"
        assert set(outcomes[1:-1]) == {"interrupted"}
        assert outcomes[-1] == "complete"
        asked = f"SELECT why FROM decisions WHERE trial = {number} AND why LIKE 'asked for; %'"
        ((why,),) = failed.rows(asked)
        assert re.search(r"breaks it\), and since then toy_task.py has changed", why)
        assert re.search(r"(?s)1 .*failed.*\d .*complete", failed.ask("show", "toy", str(number)))
    now = failed.rows("SELECT number, gpu_seconds FROM trials")
    assert all(more >= less for (_, less), (_, more) in zip(spent, now, strict=True))
    assert failed.rows("SELECT count(*), min(state) FROM trials") == [(4, "complete")]
    assert failed.ask("trials", "toy").count("complete: retried") == 2
    assert "no problems found" in failed.ask("db", "check")
