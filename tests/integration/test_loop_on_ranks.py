"""Trials of a built-in task on one, two and three processes, on a Ray cluster of two nodes."""

import csv
import json
import os
import random
import signal
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
import ray
import torch
from ray import cloudpickle
from ray.cluster_utils import Cluster

from hpsearch.domain import events as ev
from hpsearch.domain.facts import ErrorKind
from hpsearch.running.executors.ray import RayExecutor
from hpsearch.running.executors.worker_config import WorkerConfig
from hpsearch.study_file.models import Resources
from support.patience import wait_until
from support.running.executor_events import of, wait_for
from support.running.ray_nodes import two_nodes
from trials import tasks
from trials.contract import Budget, Setup, Task, Unit

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers do not see the tests

BUDGET = Budget(Unit.EPOCHS, 3.0, (0.5, 1.0, 1.5, 2.0, 2.5, 3.0))
SCRATCH = {"layers": 1, "width": 16, "heads": 2, "vocabulary": 120}
TASK = {
    "kind": "text_classification",
    "train": "train.csv",
    "validation": 0.25,
    "text": "text",
    "label": "topic",
    "model": {"scratch": SCRATCH},
}
SETTINGS = {
    "batch_size": 16,
    "micro_batch": 3,
    "dropout": 0.0,
    "precision": "fp32",
    "learning_rate": 0.01,
    "ema": 0.9,
    "keep_checkpoints": 100,
}
NAMES = ("train_loss", "loss", "accuracy", "macro_f1", "grad_norm", "learning_rate")
TOPICS = {"card": ["card", "chip"], "rate": ["euro", "dollar"], "fee": ["fee", "price"]}


@dataclass(frozen=True)
class FaultyConfig(WorkerConfig):
    """Lets a rank fail in a step, once, as a file of its own beside the data says."""

    def load_task(self) -> Task:
        task: Any = super().load_task()
        build = task.workload
        task.workload = lambda data, settings, setup: self._armed(
            build(data, settings, setup), setup
        )
        return task  # type: ignore[no-any-return]

    def _armed(self, workload: Any, setup: Setup) -> Any:
        steps = 0

        def before_forward(model: torch.nn.Module, _: Any) -> None:
            nonlocal steps
            steps += model.training
            if setup.ranks is None or not model.training:
                return
            file = Path(self.base) / f"fault-{setup.ranks.rank}.json"
            fault = json.loads(file.read_text()) if file.is_file() else None
            if fault is not None and steps == fault["forward"]:
                file.unlink()
                fail(fault["how"], model)

        workload.model.register_forward_pre_hook(before_forward)
        return workload


def fail(how: str, model: torch.nn.Module) -> None:
    if how == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "raises":
        raise ValueError("this rank does not like its rows")
    first = next(iter(model.parameters()))
    with torch.no_grad():
        first.view(-1)[0] += 1e-7 if how == "drifts" else float("nan")


@pytest.fixture(scope="module")
def nodes() -> Iterator[Cluster]:
    """Two nodes, with two CPUs and one."""
    with two_nodes(head_cpus=2) as made:
        yield made


class Lab:
    """An executor of one slot, whose processes stay warm between tests."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.saved = folder / "saved"
        self.processes = 0
        self._trial = 0
        self._executor: Any = None
        self._slot: str | None = None  # None until its ranks are there

    def use(self, processes: int) -> None:
        """Train on so many processes from now on."""
        if processes == self.processes:
            return
        self.close()
        self._slot = None
        config = FaultyConfig(
            TASK, str(self.folder), SETTINGS, BUDGET, str(self.saved), prepares=True
        )
        self._executor = RayExecutor(config, Resources(workers=1, processes=processes, gpu=0.0))
        self.processes = processes
        self.wait_for_ranks()

    def numbers(self) -> list[int]:
        """The numbers of the processes."""
        self.wait_for_ranks()
        assert self._slot is not None
        return [each.number for each in self._executor._slots[self._slot].processes]

    def new_trial(self) -> int:
        self._trial += 1
        return self._trial

    def launch(self, trial: int, attempt: int = 1, until: float = 3.0, **more: Any) -> None:
        """Train on the ranks; if the attempt before cost them, on their successors."""
        self.wait_for_ranks()
        assert self._slot is not None
        order = ev.Launch(trial, attempt, self._slot, {}, 7, until, more.get("resume_from"))
        self._executor.launch(order)

    def advance(self, trial: int, until: float) -> None:
        self._executor.advance(ev.Advance(trial, 1, until))

    def stop(self, trial: int, attempt: int) -> list[ev.Event]:
        self._executor.stop(ev.Stop(trial, attempt, save=True))
        return self.wait(of(ev.Stopped))

    def wait(self, done: Any) -> list[ev.Event]:
        events = wait_for(self._executor, done)
        for event in events:
            if isinstance(event, ev.SlotUp):
                self._slot = event.slot
            elif isinstance(event, ev.SlotDown):
                self._slot = None
        return events

    def wait_for_ranks(self) -> None:
        if self._slot is None:
            self.wait(of(ev.SlotUp))

    def fault(self, rank: int, forward: int, how: str) -> None:
        fault = {"forward": forward, "how": how}
        (self.folder / f"fault-{rank}.json").write_text(json.dumps(fault))

    def close(self) -> None:
        if self._executor is not None:
            self._executor.close()


@pytest.fixture(scope="module")
def lab(nodes: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    made = Lab(tmp_path_factory.mktemp("ranks"))
    rng = random.Random(0)
    with (made.folder / "train.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "topic"])
        for _ in range(97):
            topic = rng.choice(sorted(TOPICS))
            words = rng.choices(["the", "my", "is", "when"], k=rng.randint(2, 12))
            writer.writerow([" ".join([*words, rng.choice(TOPICS[topic])]), topic])
    yield made
    made.close()


def ended(events: list[ev.Event]) -> Any:
    return of(ev.Finished)(events) or of(ev.Failed)(events)


def last_of(events: list[ev.Event], kind: type[Any]) -> Any:
    return [event for event in events if isinstance(event, kind)][-1]


def curve(events: list[ev.Event]) -> dict[float, list[float]]:
    """The metrics of the reports, by their level."""
    reports = [each for each in events if isinstance(each, ev.Reported)]
    return {each.resource: [each.metrics[name] for name in NAMES] for each in reports}


def trained(lab: Lab, trial: int, **more: Any) -> list[ev.Event]:
    """The events of an attempt that ends by itself, on the ranks that were there."""
    lab.launch(trial, **more)
    events = lab.wait(ended)
    assert of(ev.Finished)(events), events
    assert not of(ev.SlotDown)(events)
    return events


@pytest.mark.parametrize(
    ("rank", "forward"),
    [
        (1, 1),
        (0, 9),
        (1, 20),
    ],
)
@pytest.mark.thorough
def test_a_killed_rank_costs_one_attempt(lab: Lab, rank: int, forward: int) -> None:
    lab.use(2)
    trial, processes = lab.new_trial(), lab.numbers()
    lab.fault(rank, forward, "killed")
    lab.launch(trial)
    events = lab.wait(of(ev.SlotDown))
    assert not ended(events)
    wait_until(lambda: not any(map(psutil.pid_exists, processes)))
    reports = [each for each in events if isinstance(each, ev.Reported)]
    resume_from = reports[-1].checkpoint if reports else None
    events += trained(lab, trial, attempt=2, resume_from=resume_from)
    assert set(curve(events)) == set(BUDGET.report_at)


@pytest.mark.parametrize(
    ("rank", "how", "text"),
    [
        (1, "raises", "rank 1: ValueError: this rank does not like its rows"),
        pytest.param(
            *(0, "raises", "ValueError: this rank does not like its rows"),
            marks=pytest.mark.thorough,
        ),
        pytest.param(
            *(1, "drifts", "the ranks do not train the same model any more"),
            marks=pytest.mark.thorough,
        ),
    ],
)
def test_a_rank_that_fails_alone_fails_its_trial_at_once(
    lab: Lab, rank: int, how: str, text: str
) -> None:
    lab.use(2)
    lab.fault(rank, 7, how)
    lab.launch(lab.new_trial())
    events = lab.wait(of(ev.SlotDown))
    failed = last_of(events, ev.Failed)
    assert text in failed.text
    assert failed.kind is ErrorKind.ERROR


def test_a_rung_is_waited_at_by_all_ranks_and_passed_by_all(lab: Lab) -> None:
    lab.use(2)
    trial = lab.new_trial()
    lab.launch(trial, until=0.5)
    events = lab.wait(of(ev.Reported))
    lab.advance(trial, 1.5)
    events += lab.wait(of(ev.Reported, 2))
    lab.advance(trial, 3.0)
    events += lab.wait(ended)
    assert list(curve(events)) == list(BUDGET.report_at)


def test_a_stop_between_two_reports_ends_all_ranks_after_one_step(lab: Lab) -> None:
    lab.use(2)
    trial = lab.new_trial()
    for attempt in range(1, 4):
        lab.launch(trial, attempt)
        lab.wait(of(ev.Reported, attempt))
        events = lab.stop(trial, attempt)
        assert not of(ev.SlotDown)(events), "no rank waits for another"


def test_a_loss_that_diverges_leaves_the_ranks_warm(lab: Lab) -> None:
    lab.use(2)
    lab.fault(1, 7, "becomes nan")
    lab.launch(lab.new_trial())
    failed = last_of(lab.wait(of(ev.Failed)), ev.Failed)
    assert failed.kind is ErrorKind.DIVERGED
    assert failed.text.startswith("loss became nan at step")
    trained(lab, lab.new_trial())


def test_a_damaged_checkpoint_lets_all_ranks_begin_afresh(lab: Lab) -> None:
    lab.use(2)
    trial = lab.new_trial()
    lab.launch(trial, until=0.5)
    checkpoint = last_of(lab.wait(of(ev.Reported)), ev.Reported).checkpoint
    lab.stop(trial, 1)
    (Path(checkpoint) / "state.pt").write_bytes(b"nothing")
    events = trained(lab, trial, attempt=2, resume_from=checkpoint)
    assert list(curve(events)) == list(BUDGET.report_at)


@pytest.mark.parametrize("others", [(1,), pytest.param((2, 3), marks=pytest.mark.thorough)])
def test_ranks_train_as_one_process_and_go_on_as_another_number(
    lab: Lab, others: tuple[int, ...]
) -> None:
    lab.use(2)
    trial = lab.new_trial()
    lab.launch(trial, until=1.0)
    before = lab.wait(of(ev.Reported, 2))
    before += lab.stop(trial, 1)
    paused = last_of(before, ev.Stopped).checkpoint
    curves = []
    for attempt, processes in enumerate(others, 2):
        lab.use(processes)
        after = trained(lab, trial, attempt=attempt, resume_from=paused)
        curves.append(curve([*before, *after]))
    lab.use(1)
    alone = curve(trained(lab, lab.new_trial()))
    assert list(alone) == list(BUDGET.report_at)
    for together in curves:
        assert list(together) == list(alone)
        for level, values in together.items():
            assert values == pytest.approx(alone[level], rel=1e-4, abs=1e-6), level


def test_the_prepared_data_reach_a_worker_without_being_copied(lab: Lab) -> None:
    # Ray keeps inline what is small, as tokens of a real study are not.
    padding = np.zeros(1 << 20, dtype=np.int8)
    task = tasks.load(TASK, lab.folder)
    data, _ = ray.get(ray.put((task.prepare(SETTINGS), padding)))
    parts = [part for part in vars(data).values() if hasattr(part, "__dict__")]
    values = [value for holder in (data, *parts) for value in vars(holder).values()]
    arrays = [each for each in values if isinstance(each, np.ndarray) and each.size > 1]
    assert arrays
    assert not any(array.flags.owndata or array.flags.writeable for array in arrays)
