"""The composition of `docker/` on hosts of its own, which are cut off, die and come back."""

import pytest

from support.running.composition import Composition
from support.running.programs import HPSEARCH, run_program

EPOCHS, TRIALS = 4, 6

TASK = """
import json
import socket
import time
from pathlib import Path


def train(params, trial):
    folder = Path(__file__).parent
    start = 0
    if trial.checkpoint is not None:
        start = json.loads((trial.checkpoint / "state.json").read_text())
    for epoch in range(start + 1, trial.budget + 1):
        held = folder / f"held-{trial.number}"
        while epoch == 3 and held.exists():
            (folder / f"waits-{trial.number}-on-{socket.gethostname()}").touch()
            time.sleep(0.05)
        with trial.save() as saved:
            (saved / "state.json").write_text(json.dumps(epoch))
        trial.report(epoch, {"loss": params["x"] + 1 / epoch})
"""
STUDY = f"""
study: hosts
task: {{kind: "held:train"}}
space: {{x: {{type: float, low: 0.0, high: 1.0}}}}
objective: {{metric: loss, direction: minimize}}
budget: {{trials: {TRIALS}, per_trial: {{epochs: {EPOCHS}}}}}
search: {{sampler: random, pruner: none}}
resources: {{cpu: 1, gpu: 0, worker_timeout: TIMEOUT}}
"""


class Study:
    """A study on all hosts of a composition, of which some trials are held after two epochs until
    they are let go."""

    def __init__(self, composition: Composition, *held: int, worker_timeout: str = "30s") -> None:
        self._composition = composition
        self._folder = composition.study
        (self._folder / "held.py").write_text(TASK)
        (self._folder / "study.yaml").write_text(STUDY.replace("TIMEOUT", worker_timeout))
        for number in held:
            (self._folder / f"held-{number}").touch()

    def let_go(self, *numbers: int) -> None:
        """Let trials train to their ends."""
        for number in numbers:
            (self._folder / f"held-{number}").unlink()

    def held_on(self, host: str) -> int:
        """Wait until a trial is held on a host, and its two epochs are on record; its number."""
        self._composition.wait_until(lambda: any(map(self._has_reported, self._all_held_on(host))))
        (number,) = self._all_held_on(host)
        return number

    def _all_held_on(self, host: str) -> list[int]:
        numbers = [int(file.name.split("-")[1]) for file in self._folder.glob(f"waits-*-on-{host}")]
        return [number for number in numbers if (self._folder / f"held-{number}").exists()]

    def _has_reported(self, number: int) -> bool:
        query = f"SELECT resource FROM reports WHERE trial = {number} ORDER BY 1"
        return self._composition.rows(query)[:2] == [(1.0,), (2.0,)]

    def attempts(self, trial: int) -> list[tuple[object, ...]]:
        """The number, the beginning and the outcome of each attempt of a trial."""
        query = f"SELECT number, start_resource, outcome FROM attempts WHERE trial = {trial}"
        return self._composition.rows(f"{query} ORDER BY 1")

    def has_lost_nothing(self) -> None:
        """Check that each trial was trained to its end, and each epoch is on record once, that all
        that ran is charged once, and that the database is in order."""
        trials = self._composition.rows("SELECT number, state, resource FROM trials ORDER BY 1")
        assert trials == [(number, "complete", EPOCHS) for number in range(TRIALS)]
        reports = self._composition.rows("SELECT trial, resource FROM reports ORDER BY 1, 2")
        epochs = range(1, EPOCHS + 1)
        assert reports == [(number, epoch) for number in range(TRIALS) for epoch in epochs]
        charged = "SELECT sum(gpu_seconds) FROM {}"
        ((by_trial,),) = self._composition.rows(charged.format("trials"))
        ((by_attempt,),) = self._composition.rows(charged.format("attempts"))
        assert by_trial == pytest.approx(by_attempt)
        command = [HPSEARCH, "db", "check"]
        checked = run_program([*command, "--storage", self._composition.database_url])
        assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.mark.thorough
def test_a_trial_goes_on_elsewhere_when_its_host_is_cut_off_and_the_host_comes_back(composition):
    study = Study(composition, 0, 1, 4, 5)
    composition.up()
    lost = study.held_on("ray-worker-1")
    assert {lost, study.held_on("ray-worker-2")} == {0, 1}
    composition.host("ray-worker-1").cut_off()
    composition.wait_until(lambda: study.attempts(lost)[0] == (1, 0.0, "lost"))
    study.let_go(0, 1)
    composition.wait_until(lambda: study.attempts(lost)[1:] == [(2, 2.0, "complete")])
    composition.host("ray-worker-1").reconnect()
    composition.restart("ray-worker-1")
    assert {study.held_on("ray-worker-1"), study.held_on("ray-worker-2")} == {4, 5}
    study.let_go(4, 5)
    assert composition.ended("driver") == 0, composition.said("driver")
    assert [len(study.attempts(number)) for number in range(TRIALS)].count(1) == TRIALS - 1
    study.has_lost_nothing()


@pytest.mark.thorough
def test_a_study_is_resumed_on_a_new_cluster_after_its_head_was_killed(composition):
    # Ray itself would end the driver after a minute, with a code of its own.
    study = Study(composition, 0, 1, 4, 5, worker_timeout="75s")
    composition.up()
    assert {study.held_on("ray-worker-1"), study.held_on("ray-worker-2")} == {0, 1}
    composition.kill("ray-head")
    composition.wait_for("the head of the Ray cluster does not answer; trials continue")
    study.let_go(0)
    composition.wait_until(lambda: study.attempts(0) == [(1, 0.0, "complete")])
    assert composition.ended("driver") == 3
    said = composition.said("driver")
    assert "the head of the Ray cluster has not answered for" in said
    assert "everything up to the last reports is saved; start the cluster, and resume" in said
    for service in ("driver", "ray-worker-1", "ray-worker-2"):
        composition.kill(service)
    composition.start_cluster()
    study.let_go(1, 4, 5)
    composition.start("driver", "resume", "hosts")
    assert composition.ended("driver") == 0, composition.said("driver")
    assert study.attempts(1)[-1] == (2, 2.0, "complete")
    study.has_lost_nothing()


@pytest.mark.thorough
def test_a_study_goes_on_while_the_host_of_its_database_is_cut_off(composition):
    study = Study(composition, 0, 1)
    composition.up()
    assert {study.held_on("ray-worker-1"), study.held_on("ray-worker-2")} == {0, 1}
    composition.host("database").cut_off()
    study.let_go(0, 1)
    composition.wait_for("the database does not answer")
    composition.host("database").reconnect()
    assert composition.ended("driver") == 0, composition.said("driver")
    assert [len(study.attempts(number)) for number in range(TRIALS)] == [1] * TRIALS
    study.has_lost_nothing()
