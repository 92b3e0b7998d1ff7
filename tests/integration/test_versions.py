"""Studies whose code or space has changed, from the command line, whoever is killed meanwhile."""

import pytest

from integration.test_run_and_resume import STUDY, TASK, Workplace

MOMENTS = (
    "SELECT 1 FROM studies WHERE lease_owner IS NOT NULL",
    "SELECT 1 FROM versions WHERE number = 2",
    "SELECT 1 FROM trials WHERE version = 2 AND state = 'running'",
)


@pytest.fixture
def interrupted(shared_ray, tmp_path):
    """A study whose driver was killed while its third trial trained."""
    workplace = Workplace(tmp_path / "work", shared_ray)
    workplace.write(budget={"trials": 5, "per_trial": {"epochs": 2}})
    workplace.hold(2, 2)
    process = workplace.start("run", "study.yaml")
    workplace.wait_until("SELECT 1 FROM reports WHERE trial = 2 AND resource = 1", process)
    process.kill()
    process.communicate()
    return workplace


def test_a_version_is_whole_or_not_there_whenever_its_driver_is_killed(interrupted):
    (interrupted.folder / "toy_task.py").write_text(TASK.replace("- 0.3", "- 0.4"))
    space = {"x": {**STUDY["space"]["x"], "low": 0.2}}
    interrupted.write(space=space, budget={"trials": 8, "per_trial": {"epochs": 2}})
    said = interrupted.ask("resume", "toy", "--from", "study.yaml", code=2)
    assert "toy_task.py differs from version 1 of toy" in said
    for moment in MOMENTS:
        begun = interrupted.rows("SELECT 1 FROM versions WHERE number = 2")
        options = [] if begun else ["--from", "study.yaml", "--changed"]
        process = interrupted.start("resume", "toy", *options)
        interrupted.wait_until(moment, process)
        process.kill()
        process.communicate()
        assert "no problems found" in interrupted.ask("db", "check")
        ((text,),) = interrupted.rows("SELECT spec FROM studies")
        versions = interrupted.rows("SELECT number FROM versions ORDER BY number")
        assert ("low: 0.2" in text) == (versions == [(1,), (2,)])
    interrupted.let_go()
    interrupted.call("resume", "toy")
    assert "no problems found" in interrupted.ask("db", "check")
    assert interrupted.rows("SELECT max(number), max(new_code) FROM versions") == [(2, 1)]
    outside = "SELECT count(*) FROM trials WHERE system_attrs LIKE '%out_of_space%'"
    low = "SELECT count(*) FROM trials WHERE CAST(params ->> 'x' AS double precision) < 0.2"
    assert interrupted.rows(outside) == interrupted.rows(low)
    assert interrupted.rows("SELECT count(*) FROM trials") == [(8,)]
