"""A study of a program that knows nothing of hpsearch, from the command line, on a real Ray."""

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from contract.test_trackers import need
from integration.test_run_and_resume import Workplace
from support.patience import PATIENCE_S

PROGRAM = """
import json, os, sys, time
x, total, folder = float(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
state = os.path.join(folder, "state")
latest = os.path.join(folder, "latest")
if not os.path.lexists(latest):
    os.symlink(state, latest)
    os.symlink("nothing", os.path.join(folder, "gone"))
assert os.path.realpath(latest) == os.path.realpath(state)
os.mkfifo(os.path.join(folder, "pipe"))
done = int(open(state).read()) if os.path.exists(state) else 0
print("begins after", done)
if x > 0.8:
    raise SystemExit("x is too large")
for epoch in range(done + 1, total + 1):
    time.sleep(0.05)
    while epoch > 3 and os.path.exists("hold"):
        time.sleep(0.02)
    with open(state + ".new", "w") as file:
        file.write(str(epoch))
    os.replace(state + ".new", state)
    print(json.dumps({"resource": epoch, "loss": (x - 0.3) ** 2 + 1 / epoch}), flush=True)
"""


def test_a_program_is_searched_paused_interrupted_resumed_and_removed(
    tmp_path: Path, shared_ray: Mapping[str, str]
) -> None:
    workplace = Workplace(tmp_path / "work", shared_ray)
    (workplace.folder / "train.py").write_text(PROGRAM)
    run = f"{sys.executable} train.py {{x}} {{budget}} {{folder}}"
    workplace.write(
        study="program",
        task={"kind": "command", "run": run},
        settings={},
        enqueue=[{"x": 0.9}, {"x": 0.3}],
        budget={"trials": 6, "per_trial": {"epochs": 9}},
    )
    (workplace.folder / "hold").touch()
    process = workplace.start("run", "study.yaml")
    workplace.wait_until("SELECT 1 FROM reports WHERE resource >= 3", process)
    workplace.ask("stop", "program")
    process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 5
    (workplace.folder / "hold").unlink()
    workplace.call("resume", "program")

    states = dict(workplace.rows("SELECT state, count(*) FROM trials GROUP BY state"))
    assert states["failed"] >= 1
    assert states["complete"] >= 1
    (error,) = workplace.rows("SELECT error_text FROM trials WHERE number = 0")
    assert error == ("the command ended with exit code 1: x is too large",)
    (best,) = json.loads(workplace.ask("best", "program", "--format", "json"))
    left = Path(best["checkpoint"], "folder")
    assert (left / "state").read_text() == "9"
    links = {each.name: os.fspath(each.readlink()) for each in left.iterdir() if each.is_symlink()}
    assert links == {"latest": "state", "gone": "nothing"}
    assert "begins after 3" in workplace.ask("show", "program", str(best["number"]), "--log")
    assert not list(workplace.folder.rglob("attempt-*/folder"))

    workplace.ask("rm", "program", "--yes")
    assert not list((workplace.folder / "hpsearch-studies").iterdir())


RANKED = """
import json, os, sys
import torch
from torch import distributed
x, total, folder = float(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
distributed.init_process_group("gloo")
state = os.path.join(folder, "state")
done = int(open(state).read()) if os.path.exists(state) else 0
for epoch in range(done + 1, total + 1):
    ranks = torch.ones(1)
    distributed.all_reduce(ranks)
    if distributed.get_rank() == 0:
        with open(state + ".new", "w") as file:
            file.write(str(epoch))
        os.replace(state + ".new", state)
        report = {"resource": epoch, "loss": (x - 0.3) ** 2 + 1 / epoch, "ranks": ranks.item()}
        print(json.dumps(report), flush=True)
    distributed.barrier()
distributed.destroy_process_group()
"""


@pytest.mark.thorough
def test_a_command_with_torchrun_is_paused_and_continued_with_all_its_ranks(
    tmp_path: Path, shared_ray: Mapping[str, str]
) -> None:
    workplace = Workplace(tmp_path / "work", shared_ray)
    (workplace.folder / "train.py").write_text(RANKED)
    torchrun = f"{sys.executable} -m torch.distributed.run --standalone --nproc-per-node 2"
    workplace.write(
        study="torchrun",
        task={"kind": "command", "run": f"{torchrun} train.py {{x}} {{budget}} {{folder}}"},
        settings={},
        budget={"trials": 3, "per_trial": {"epochs": 4}},
        search={"pruner": {"kind": "promotion", "eta": 2, "pause": True}},
    )
    workplace.call("run", "study.yaml")
    states = {state for (state,) in workplace.rows("SELECT DISTINCT state FROM trials")}
    assert "complete" in states
    assert states <= {"complete", "pruned"}
    outcomes = [outcome for (outcome,) in workplace.rows("SELECT outcome FROM attempts")]
    assert "paused" in outcomes
    reports = workplace.rows("SELECT metrics FROM reports")
    assert {json.loads(metrics)["ranks"] for (metrics,) in reports} == {2.0}


@pytest.mark.thorough
def test_a_program_is_searched_where_there_is_no_torch(tmp_path: Path) -> None:
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    (hidden / "torch.py").write_text("raise ModuleNotFoundError('No module named torch')")
    path = os.pathsep.join([str(hidden), os.environ.get("PYTHONPATH", "")])
    workplace = Workplace(tmp_path / "work", {"PYTHONPATH": path})
    (workplace.folder / "train.py").write_text(PROGRAM)
    task = {"kind": "command", "run": f"{sys.executable} train.py {{x}} 9 {{folder}}"}
    budget = {"trials": 2, "per_trial": {"epochs": 9}}
    workplace.write(study="program", task=task, settings={}, budget=budget)
    workplace.call("check", "study.yaml")
    workplace.call("run", "study.yaml")
    states = {state for (state,) in workplace.rows("SELECT state FROM trials")}
    assert "complete" in states
    assert "failed" not in states


WITH_EVENTS = """
import sys, time
from torch.utils.tensorboard import SummaryWriter
x, total, folder = float(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
with SummaryWriter(folder + "/runs") as writer:
    for epoch in range(total):
        writer.add_scalar("train/loss", 1.0, epoch)
        writer.add_scalar("val/loss", (x - 0.3) ** 2 + 1 / (epoch + 1), epoch)
        writer.flush()
        time.sleep(0.3)
"""


def test_a_program_that_writes_event_files_is_searched_as_it_is(
    tmp_path: Path, shared_ray: Mapping[str, str]
) -> None:
    need("tensorboard")
    workplace = Workplace(tmp_path / "work", shared_ray)
    (workplace.folder / "train.py").write_text(WITH_EVENTS)
    workplace.write(
        study="events",
        task={
            "kind": "command",
            "run": f"{sys.executable} train.py {{x}} {{budget}} {{folder}}",
            "report": {"tensorboard": "runs"},
            "resource": "step+1",
        },
        settings={},
        objective={"metric": "val/loss", "direction": "minimize"},
        budget={"trials": 6, "per_trial": {"epochs": 9}},
    )
    workplace.call("run", "study.yaml")
    states = dict(workplace.rows("SELECT state, count(*) FROM trials GROUP BY state"))
    assert sum(states.values()) == 6
    assert set(states) <= {"complete", "pruned"}
    (best,) = json.loads(workplace.ask("best", "events", "--format", "json"))
    assert best["resource"] == 9
    assert (Path(best["checkpoint"]) / "folder" / "runs").is_dir(), "its files are kept"
