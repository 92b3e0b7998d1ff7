"""Whole studies that say if their best trial is better than the defaults."""

import json
import signal
from collections.abc import Mapping
from pathlib import Path

import pytest

from integration.test_run_and_resume import Workplace

TASK = """
import random
import time
from pathlib import Path

HERE = Path(__file__).parent


def train(params, trial):
    while (HERE / "hold").exists() and trial.number >= int((HERE / "hold").read_text().split()[0]):
        time.sleep(0.01)
    samples, luck = random.Random(0), random.Random(f"{trial.seed} {params['x']}")
    chance = 0.6 + params["gain"] * params["x"]
    right = [(samples.random() < chance) != (luck.random() < 0.02) for _ in range(2000)]
    trial.report(1, {"accuracy": sum(right) / 2000, "samples": right})
"""
FIRST = {"x": 0.1}


@pytest.fixture
def workplace(shared_ray: Mapping[str, str], tmp_path: Path) -> Workplace:
    place = Workplace(tmp_path, shared_ray)
    (tmp_path / "toy_task.py").write_text(TASK)
    return place


def write(workplace: Workplace, gain: float) -> None:
    workplace.write(
        settings={"gain": gain},
        objective={"metric": "accuracy", "direction": "maximize"},
        budget={"trials": 5, "per_trial": {"epochs": 1}},
        search={"sampler": "random", "pruner": "none", "certify": True},
        enqueue=[FIRST],
    )


def test_a_study_that_is_killed_while_it_certifies_ends_with_the_pairs_that_it_had_begun(workplace):
    write(workplace, gain=0.3)
    workplace.hold(7)
    process = workplace.start("run", "study.yaml")
    workplace.wait_until("SELECT 1 FROM trials WHERE number = 7 AND state = 'running'", process)
    process.kill()
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    begun = workplace.rows("SELECT number, repeats, seed FROM trials WHERE role = 'confirm'")
    workplace.let_go()
    workplace.call("resume", "toy")

    repeats = workplace.rows("SELECT number, repeats, seed FROM trials WHERE role = 'confirm'")
    assert repeats[: len(begun)] == begun
    of_defaults = sorted(seed for _, repeated, seed in repeats if repeated == 0)
    assert of_defaults == sorted(seed for _, repeated, seed in repeats if repeated != 0)
    told = workplace.ask("best", "toy")
    assert "better than the defaults by 0." in told
    assert "with 95%), from 5 trials" in told
    (best,) = json.loads(workplace.ask("best", "toy", "--format", "json"))
    assert best["certificate"]["is_shown"]
    assert best["certificate"]["samples"] == 2000
    assert 0 < best["certificate"]["at_least"] < best["certificate"]["gain"]
    assert "no problems found" in workplace.ask("db", "check")


def test_without_a_gain_a_study_says_to_use_the_defaults_and_what_more_would_tell(workplace):
    write(workplace, gain=0.01)
    told = workplace.call("run", "study.yaml")
    assert "not shown to be better: use the defaults, from 5 trials" in told
    assert "not shown to be better: use the defaults; trial " in told
    (best,) = json.loads(workplace.ask("best", "toy", "--format", "json"))
    assert not best["certificate"]["is_shown"]
