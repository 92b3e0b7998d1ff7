"""What an agent's study of a granted folder may name."""

from contextlib import closing

import pytest
import yaml

from hpsearch.errors import SpecError, StudyExists, UserError
from hpsearch.store.store import Store
from support.files.changed_code import TASK, ChangedCode

pytest.importorskip("mcp", reason="needs the extra mcp")

from hpsearch.plugins.mcp import folder as folders
from hpsearch.plugins.mcp.campaign import Campaign

LIMITS = {"gpu_hours": 4.0}


def file(**changes):
    study = {
        "study": "guess",
        "task": TASK,
        "space": {"x": {"type": "float", "low": 0.0, "high": 1.0}},
        "objective": {"metric": "loss", "direction": "minimize"},
        "budget": {"trials": 3, "gpu_hours": 1, "per_trial": {"epochs": 1}},
    }
    return yaml.safe_dump({**study, **changes})


@pytest.fixture
def folder(tmp_path):
    made = ChangedCode(tmp_path / "code").folder
    (tmp_path / "outside.py").touch()
    (made / "linked.py").symlink_to(tmp_path / "outside.py")
    return made


@pytest.fixture
def campaign(sqlite_url, folder, monkeypatch):
    monkeypatch.setattr(folders, "DRIVER", ("true",))  # which ends at once
    return Campaign(sqlite_url, LIMITS, folder)


def running(run, **more):
    return {"task": {"kind": "command", "run": run, **more}}


OUTSIDE = [
    *map(running, ("rm -rf train.py {x}", "sh -c {x}", "python -m train {x}", "./linked.py {x}")),
    *map(running, ("env python train.py {x}", "/bin/ls ./train.py {x}", "python linked.py {x}")),
    *map(running, ("python train.py --out=../../{x}", "python train.py --data /etc/passwd {x}")),
    *map(running, ("python train.py '{x} ~/data'", "sh train.py -f/etc{x}", "sh train.py [/{x}")),
    {"settings": {"y": "."}, **running("python train.py {y}{y}/outside.py {x}")},
    running("python train.py {x}", cwd=".."),
    {"task": {**TASK, "measure": "python ../outside.py {folder}"}},
    {"task": {**TASK, "harness": ["linked.py"]}},
    {"task": {"kind": "os:system"}},
    {"task": {"kind": "train:main", "args": {"data": ["s3://bucket/data"]}}},
    {"settings": {"y": "/etc"}, **running("python train.py {x} {y}")},
    {"space": {"x": {"type": "categorical", "choices": ["a", "../.."]}}},
    {"checkpoints": "/tmp"},
]


@pytest.mark.parametrize("changes", OUTSIDE, ids=str)
def test_a_study_that_leads_out_of_the_folder_is_refused(campaign, changes):
    with pytest.raises(UserError, match=r"leads? out of|is no program of"):
        campaign.start(file(**changes))
    assert campaign.grant()["left"] == LIMITS


@pytest.mark.parametrize("run", ["python train.py {x}", "./train.sh {x}", "bash train.sh {x} a/b"])
def test_programs_of_the_folder_are_started_there(campaign, sqlite_url, folder, run):
    (folder / "train.sh").write_text("#!/bin/sh\n")
    (folder / "train.sh").chmod(0o755)
    assert "a driver trains it" in campaign.start(file(**running(run)))["told"]
    with closing(Store.open(sqlite_url)) as store:
        assert store.find_study("guess").base == str(folder)


def test_limits_hold_and_mistakes_are_told(campaign, sqlite_url, tmp_path, monkeypatch):
    with pytest.raises(SpecError, match="there is no valid"):
        campaign.start(file(task={**TASK, "harness": ["valid"]}))
    campaign.start(file())
    assert campaign.grant()["left"] == {"gpu_hours": 3.0}
    with pytest.raises(UserError, match="is trained by its driver"):
        campaign.ask("guess")
    with pytest.raises(StudyExists, match="another study file"):
        campaign.start(file(seed=3))
    elsewhere = Campaign(sqlite_url, LIMITS, ChangedCode(tmp_path / "other").folder)
    with pytest.raises(StudyExists, match="another folder"):
        elsewhere.start(file())
    with pytest.raises(UserError, match="no task without"):
        Campaign(sqlite_url, LIMITS).start(file())
    monkeypatch.setattr(folders, "DRIVER", ("false",))
    with pytest.raises(UserError, match="its driver ended"):
        campaign.start(file(study="other"))
    assert campaign.grant()["left"] == {"gpu_hours": 3.0}, "that of a driver that did nothing"


def test_a_folder_is_granted_with_limits_and_its_modules_are_not_the_drivers(run, tmp_path):
    (tmp_path / "random.py").write_text("1 / 0")
    assert folders.Popen([*folders.DRIVER[:3], "--version"], cwd=tmp_path).wait() == 0
    said = run("mcp", "--storage", f"sqlite:///{tmp_path}/a.db", "--folder", str(tmp_path))
    assert (said.code, "without --grant" in said.err) == (2, True)
