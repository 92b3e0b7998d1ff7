"""Studies whose trials train on fold after fold, from the command line, on a real Ray."""

import json
import signal
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pandas as pd
import pytest

from integration.test_run_and_resume import Workplace
from support.patience import wait_until

PROGRAM = """
import json, os, sys, time
x, fold, folds = float(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
with open("begun", "a") as file:
    file.write(f"{x} {fold} of {folds}\\n")
while fold == 2 and os.path.exists("hold"):
    time.sleep(0.02)
for epoch in (1, 2):
    print(json.dumps({"resource": epoch, "loss": (x - 0.3) ** 2 + fold / epoch}), flush=True)
"""


@pytest.fixture
def workplace(shared_ray: Mapping[str, str], tmp_path: Path) -> Workplace:
    return Workplace(tmp_path / "work", shared_ray)


def test_a_killed_study_trains_no_fold_again_that_is_done_and_weak_trials_train_on_one(workplace):
    (workplace.folder / "train.py").write_text(PROGRAM)
    begun, hold = workplace.folder / "begun", workplace.folder / "hold"
    workplace.write(
        task={"kind": "command", "run": f"{sys.executable} train.py {{x}} {{fold}} {{folds}}"},
        settings={},
        budget={"trials": 6, "per_trial": {"epochs": 2, "folds": 3}},
    )
    hold.touch()
    process = workplace.start("run", "study.yaml")
    workplace.wait_until("SELECT 1 FROM reports WHERE resource = 2", process)
    wait_until(lambda: " 2 of 3\n" in begun.read_text())
    process.kill()
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    hold.unlink()
    workplace.call("resume", "toy")

    times = Counter(begun.read_text().splitlines())
    query = "SELECT params, state, resource, value FROM trials"
    trials = [(json.loads(params)["x"], *rest) for params, *rest in workplace.rows(query)]
    assert {state for _, state, *_ in trials} == {"complete", "pruned"}
    begun_so_often = []
    for x, state, resource, value in trials:
        folds = range(3 if state == "complete" else 1)
        assert resource == len(folds)
        assert value == pytest.approx((x - 0.3) ** 2 + sum(folds) / 2 / len(folds))
        begun_so_often.append([times.pop(f"{x} {fold} of 3") for fold in folds])
    assert not times
    assert begun_so_often.count([1, 1, 2]) == 1
    assert all(each in ([1], [1, 1, 1], [1, 1, 2]) for each in begun_so_often)
    assert "no problems found" in workplace.ask("db", "check")
    (number,) = workplace.rows("SELECT min(number) FROM trials WHERE state = 'complete'")[0]
    for command in (["show", "toy", str(number)], ["best", "toy"]):
        assert "is the mean over 3 folds" in workplace.hear(*command)[1]


def test_the_best_configuration_of_a_table_is_trained_on_all_its_rows(workplace):
    table = pd.DataFrame({"a": range(90)})
    table["y"] = table.a % 7 > 3
    table.to_csv(workplace.folder / "train.csv", index=False)
    workplace.write(
        task={"kind": "tabular", "train": "train.csv", "target": "y"},
        settings={"min_data_in_leaf": 3},
        space={"learning_rate": {"type": "float", "low": 0.05, "high": 0.5}},
        budget={"trials": 3, "per_trial": {"steps": 4, "folds": 3}},
    )
    assert "first report: at 1 fold" in workplace.call("check", "study.yaml")
    workplace.call("run", "study.yaml")
    workplace.ask("train", "toy")
    (about,) = (workplace.folder / "models").rglob("training.json")
    written = json.loads(about.read_text())
    assert written["data"] == "train+validation"
    assert written["budget"] == {"steps": 4.0}
